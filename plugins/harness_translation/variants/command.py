"""Translate the texts that variants of tasks need; ship them as a data set."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from harness.cli import Data, JsonFile, Languages, Limit, Romanised, TasksFrom, echo, takes_settings

if TYPE_CHECKING:
    from harness_translation.variants.corpus import Corpus, TrainingRequest

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
Price = Annotated[
    float | None, typer.Option("--price", min=0, help="Of a million characters, to show what a run costs.")
]
app = typer.Typer(add_completion=False)


@app.command()
@takes_settings("split", "train_variant", "train_pivot", "train_limit")
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
    price: Price = None,
    json_file: JsonFile = None,
    **training: Any,
) -> int:
    """Translate the texts that variants of tasks need, each once, and report what looks wrong.

    With --train-variant, these are the tasks' training sets. What is to be translated is counted before it starts.

    Translations are cached by content, and a run with the same variants reuses them: harness eval --variants zs,tt.
    After an interruption, run the same command again: it continues.

    Example: harness translate --tasks xnli:sw --variants tt --translator hf-seq2seq:facebook/nllb-200-distilled-600M
    """
    from harness.cli import check_output_file, show_progress, write_rows
    from harness.specs import language_codes, split_names
    from harness_translation.variants.corpus import check_output_folder, gather_corpora, write_dataset

    check_output_file(json_file, ".json")
    check_output_folder(output)
    corpus = gather_corpora(
        tasks,
        translators,
        languages=language_codes(languages) or None,
        variants=split_names(variants or []) or ["tt", "te", "bt"],
        data=data or [],
        tasks_from=tasks_from or [],
        limit=limit,
        romanised=romanised or "keep",
        split=training["split"] or "test",
        train=_training_request(training, limit),
    )
    rows = _show_workloads(corpus, price)
    if not dry_run:
        with show_progress() as progress:
            splits = corpus.translate(progress)
        rows = [*_tagged("splits", splits), *_tagged("guards", corpus.guards())]
        _show_splits(splits)
        _show_guards(corpus)
    if json_file is not None:
        write_rows(json_file, rows)
    if output is not None and not dry_run:
        echo(
            f"Wrote {write_dataset(corpus, output)} files to {output}: card.json describes them.\nOthers use them "
            f"without the translator: --translator file:{output}/translations-NAME.jsonl"
        )
    return 1 if strict and not dry_run and corpus.found else 0


def _tagged(table: str, rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [{"table": table, **row} for row in rows]


def _training_request(training: dict[str, Any], limit: int | None) -> TrainingRequest | None:
    """Return the training sets that were asked for; raises `UsageError` for their options without them."""
    from harness import UsageError
    from harness_translation.variants.corpus import TrainingRequest

    variant, pivot, train_limit = (training[name] for name in ("train_variant", "train_pivot", "train_limit"))
    if variant is None:
        if pivot is not None or train_limit is not None:
            raise UsageError("--train-pivot and --train-limit need --train-variant.")
        return None
    if limit is not None:
        raise UsageError("--limit is of test items; training items are limited by --train-limit.")
    return TrainingRequest(variant=variant, pivot=pivot or "es", limit=train_limit)


def _show_workloads(made: Corpus, price: float | None) -> list[dict[str, Any]]:
    """Print what was skipped and what is to be translated; return the rows of the latter."""
    from harness.cli import print_table

    for reason in made.skipped:
        echo(f"skipped: {reason}", err=True)
    rows = _tagged("workload", made.workloads())
    echo("Texts to translate; existing translations are reused")
    numbers = ("segments", "distinct", "calls", "characters")
    table = [
        [
            *(row[name] for name in ("translator", "pair")),
            *(f"{row[name]:,}" + "~" * row["estimated"] for name in numbers),
            *([] if price is None else [f"{price * row['characters'] / 1e6:,.2f}"]),
        ]
        for row in rows
    ]
    print_table(["translator", "pair", *numbers, *([] if price is None else ["cost"])], table)
    if any(row["estimated"] for row in rows):
        echo("~ estimated: the input does not exist yet, so its source is counted.")
    return rows


def _show_splits(rows: list[dict[str, Any]]) -> None:
    from harness.cli import print_table

    heads = ("task", "language", "variant", "translator", "items", "lost", "chrf++")
    table = [
        [
            *(str(row[name]) for name in heads[:4]),
            f"{row['items']:,}",
            "" if row["lost"] is None else f"{row['lost']:,}",
            "" if row["chrf++"] is None else f"{row['chrf++']:.1f}",
        ]
        for row in rows
    ]
    print_table(heads, table)


def _show_guards(made: Corpus) -> None:
    from harness.cli import print_table

    table = [
        [name, f"{source}->{target}", f"{report.segments:,}", report.summary() or "none"]
        for (name, source, target), report in made.reports.items()
    ]
    print_table(["translator", "pair", "segments", "guard findings"], table)
    for line in made.examples():
        echo(f"  {line}")
    for romanisation in made.finder.translations.romanised.values():
        echo(
            f"  {romanisation.language}: {len(romanisation.changed):,} of {romanisation.of:,} texts are romanised."
        )
