"""``harness translate``: translate the texts that variants of tasks need, before or without a run."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from harness.cli.option import Data, JsonFile, Languages, Limit, Romanised, TasksFrom
from harness.cli.output import echo

if TYPE_CHECKING:
    from harness_translation.variants.corpus import Corpus

__all__ = ["app"]

Tasks = Annotated[list[str], typer.Option("--tasks", "-t", help="Tasks; 'xnli:sw+hi' picks languages.")]
TranslatorNames = Annotated[
    list[str], typer.Option("--translator", help="NAME[:REF] or ALIAS=NAME:REF; several with commas.")
]
Variants = Annotated[list[str] | None, typer.Option("--variants", help="tt, te, bt; default all three.")]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Print calls and characters; translate nothing.")]
Strict = Annotated[bool, typer.Option("--strict", help="Exit with 1 if a guard finds something.")]
Output = Annotated[
    Path | None, typer.Option("--output", "--out", help="A folder for a data set with its card.")
]
app = typer.Typer(add_completion=False)


@app.command()
def translate(
    tasks: Tasks,
    translators: TranslatorNames,
    languages: Languages = None,
    variants: Variants = None,
    data: Data = None,
    tasks_from: TasksFrom = None,
    limit: Limit = None,
    romanised: Romanised = None,
    dry_run: DryRun = False,
    strict: Strict = False,
    output: Output = None,
    json_file: JsonFile = None,
) -> int:
    """Translate the texts that variants of tasks need, each once, and report what looks wrong.

    Translations are cached by content, and a run with the same variants reuses them: harness eval --variants zs,tt.
    After an interruption, run the same command again: it continues.

    Example: harness translate --tasks xnli:sw --variants tt --translator hf-seq2seq:facebook/nllb-200-distilled-600M
    """
    # Imported here so that help stays fast.
    from harness.cli.live import show_progress
    from harness.cli.output import check_output_file, write_rows
    from harness.specs.selection import split_names
    from harness_translation.variants.corpus import gather_corpora
    from harness_translation.variants.dataset import check_output_folder, write_dataset

    check_output_file(json_file)
    check_output_folder(output)
    made = gather_corpora(
        tasks,
        translators,
        languages=split_names(languages or []) or None,
        variants=split_names(variants or []) or ["tt", "te", "bt"],
        data=data or [],
        tasks_from=tasks_from or [],
        limit=limit,
        romanised=romanised or "keep",
    )
    for reason in made.skipped:
        echo(f"skipped: {reason}", err=True)
    if dry_run:
        rows = _tagged("workload", made.workloads())
        _show_workloads(rows)
    else:
        with show_progress() as progress:
            splits = made.translate(progress)
        rows = [*_tagged("splits", splits), *_tagged("guards", made.guards())]
        _show_splits(splits)
        _show_guards(made)
    if json_file is not None:
        write_rows(json_file, rows)
    if output is not None and not dry_run:
        echo(f"Wrote {write_dataset(made, output)} files to {output}: card.json describes them.")
    return 1 if strict and not dry_run and made.found else 0


def _tagged(table: str, rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [{"table": table, **row} for row in rows]


def _show_workloads(rows: list[dict[str, Any]]) -> None:
    from harness.cli.table import print_table

    echo("Texts to translate; existing translations are reused")
    numbers = ("segments", "distinct", "calls", "characters")
    shown = [
        [row["translator"], row["pair"], *(f"{row[name]:,}" + "~" * row["estimated"] for name in numbers)]
        for row in rows
    ]
    print_table(["translator", "pair", *numbers], shown)
    if any(row["estimated"] for row in rows):
        echo("~ estimated: the input does not exist yet, so its source is counted.")


def _show_splits(rows: list[dict[str, Any]]) -> None:
    from harness.cli.table import print_table

    heads = ("task", "language", "variant", "translator", "items", "chrf++")
    shown = [
        [
            *(str(row[name]) for name in heads[:4]),
            f"{row['items']:,}",
            "" if row["chrf++"] is None else f"{row['chrf++']:.1f}",
        ]
        for row in rows
    ]
    print_table(heads, shown)


def _show_guards(made: Corpus) -> None:
    from harness.cli.table import print_table

    shown = [
        [name, f"{source}->{target}", f"{report.segments:,}", report.summary() or "none"]
        for (name, source, target), report in made.reports.items()
    ]
    print_table(["translator", "pair", "segments", "guard findings"], shown)
    for line in made.examples():
        echo(f"  {line}")
    for found in made.finder.translations.romanised.values():
        echo(f"  {found.language}: {len(found.changed):,} of {found.of:,} texts are romanised.")
