"""``harness translate``: translate what variants of tasks need, before or without a run."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from harness_translation.corpus import Corpus

__all__ = ["app"]

app = typer.Typer(add_completion=False)


@app.command()
def translate(
    tasks: Annotated[list[str], typer.Option("--tasks", "-t", help="Tasks; 'xnli:sw+hi' picks languages.")],
    translators: Annotated[
        list[str],
        typer.Option("--translator", help="NAME[:REF] or ALIAS=NAME:REF; several with commas."),
    ],
    languages: Annotated[
        list[str] | None, typer.Option("--languages", "-l", help="Only these codes.")
    ] = None,
    variants: Annotated[
        list[str] | None, typer.Option("--variants", help="tt, te, bt; default all three.")
    ] = None,
    data: Annotated[list[str] | None, typer.Option("--data", "-d", help="hub, sample, or folders.")] = None,
    tasks_from: Annotated[list[Path] | None, typer.Option("--tasks-from", help="Further specs.")] = None,
    limit: Annotated[int | None, typer.Option("--limit", min=1, help="Items a task and language.")] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Print calls and characters; ask nothing.")
    ] = False,
    strict: Annotated[
        bool, typer.Option("--strict", help="End with 1 where a guard finds something.")
    ] = False,
    output: Annotated[
        Path | None, typer.Option("--output", "--out", help="A folder for a data set with its card.")
    ] = None,
    json_file: Annotated[Path | None, typer.Option("--json", help="Also write the rows here.")] = None,
) -> int:
    """Translate the texts that variants of tasks need, each once, and tell what looks wrong.

    What was translated is kept by content, and a run with the same variants uses it: harness eval --variants zs,tt.
    After an interruption the same command goes on.

    Example: harness translate --tasks xnli:sw --variants tt --translator hf-seq2seq:facebook/nllb-200-distilled-600M
    """
    # Imported here so that help stays fast.
    from harness.cli.display import ConsoleProgress, refuse_file, write_rows
    from harness.specs.selection import split_names
    from harness_translation.corpus import gather_corpora
    from harness_translation.dataset import refuse_folder, write_dataset

    refuse_file(json_file)
    refuse_folder(output)
    made = gather_corpora(
        tasks,
        translators,
        languages=split_names(languages or []) or None,
        variants=split_names(variants or []) or ["tt", "te", "bt"],
        data=data or [],
        tasks_from=tasks_from or [],
        limit=limit,
    )
    for reason in made.skipped:
        typer.echo(f"skipped: {reason}", err=True)
    if dry_run:
        rows = made.workloads()
        _show(rows, "What would be translated; what is translated already is not asked again")
    else:
        with ConsoleProgress() as progress:
            rows = made.translate(progress)
        _show(rows, "Translated; the guards count what looks wrong")
        _examples(made)
    if json_file is not None:
        write_rows(json_file, rows)
    if output is not None and not dry_run:
        typer.echo(f"Wrote {write_dataset(made, output)} files to {output}: begin with README.md.")
    return 1 if strict and not dry_run and made.found else 0


def _show(rows: list[dict[str, Any]], title: str) -> None:
    from harness.cli.display import print_table

    if not rows:
        typer.echo("Nothing is to be translated.")
        return
    typer.echo(title)
    heads = list(rows[0])
    shown = [
        [f"{value:,}" if isinstance(value, int) else _plain(value) for value in row.values()] for row in rows
    ]
    print_table(heads, shown)


def _plain(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:.1f}"
    return (
        " ".join(map(str, value)) if isinstance(value, list | tuple) else "" if value is None else str(value)
    )


def _examples(made: Corpus) -> None:
    for line in made.examples():
        typer.echo(f"  {line}")
