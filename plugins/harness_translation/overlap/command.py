"""Compare what a classifier attends to in a text and its translation."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from harness import UnknownNameError
from harness.cli import echo

if TYPE_CHECKING:
    from harness import Run
    from harness.running import Session
    from harness_translation.overlap.item import OverlapGroup
    from harness_translation.overlap.measure import OverlapSettings

app = typer.Typer(add_completion=False)

Tasks = Annotated[list[str] | None, typer.Option("--tasks", "-t", help="Only these tasks.")]
Languages = Annotated[list[str] | None, typer.Option("--languages", "-l", help="Only these codes.")]
AlignerName = Annotated[str, typer.Option("--aligner", help="own:hf:MODEL, or file:FILE.")]
Options = Annotated[
    list[str] | None, typer.Option("--option", "-o", metavar="KEY=VALUE", help="Option of the adapter.")
]
Importance = Annotated[
    Literal[">=", ">"], typer.Option("--importance", help="A word is important with this score to the mean.")
]
LinkRule = Annotated[
    Literal["first", "any"], typer.Option("--link", help="Whether a word's first link counts, or any.")
]
Denominator = Annotated[
    Literal["important", "aligned"],
    typer.Option("--denominator", help="All important words, or those of them with a link."),
]
Probability = Annotated[
    float, typer.Option("--min-probability", min=0.0, max=1.0, help="Keep links with a higher probability.")
]
Over = Annotated[Literal["max", "mean"], typer.Option("--over", help="Over layers and heads.")]
Row = Annotated[
    Literal["first", "mean"], typer.Option("--row", help="Attention of the first position, or mean of all.")
]
Pieces = Annotated[Literal["sum", "mean"], typer.Option("--pieces", help="Of a word's pieces.")]
Words = Annotated[
    Literal["auto", "space"],
    typer.Option("--words", help="auto cuts unspaced text into characters; space rejects it."),
]
Rows = Annotated[Path | None, typer.Option("--json", help="Also write the rows to this file.")]


@app.command()
def overlap(
    folder: Annotated[Path, typer.Argument(metavar="RUN", help="A finished run of a fine-tuned encoder.")],
    aligner: AlignerName,
    tasks: Tasks = None,
    languages: Languages = None,
    option: Options = None,
    importance: Importance = ">=",
    link: LinkRule = "first",
    denominator: Denominator = "important",
    min_probability: Probability = 0.5,
    over: Over = "max",
    row: Row = "first",
    pieces: Pieces = "sum",
    words: Words = "auto",
    json_file: Rows = None,
) -> None:
    """Measure how many words that are important to a model in English are important in the translation too.

    It uses the English items that the model got right. The model's fit comes from the cache, texts and predictions from
    the run. A small overlap means that the translation loses what is important (Ahuja et al. 2024, section 5).

    Example: harness overlap runs/xnli --aligner own:hf:bert-base-multilingual-cased --languages sw,ur
    """
    from harness import Run, open_session
    from harness.cli import check_output_file, reporting_broken_plugins
    from harness.models import AttentionOptions
    from harness.specs import language_codes, split_names
    from harness_translation.overlap.formula import OverlapRule
    from harness_translation.overlap.item import overlap_groups
    from harness_translation.overlap.measure import OverlapSettings

    check_output_file(json_file, ".json")
    settings = OverlapSettings(
        rule=OverlapRule(
            importance=importance, link=link, denominator=denominator, min_probability=min_probability
        ),
        attention=AttentionOptions(over=over, row=row),
        pieces=pieces,
        words=words,
    )
    run = Run(folder)
    session = open_session([Path(path) for path in run.manifest.config.get("tasks_from", ())])
    with reporting_broken_plugins(session.registry.plugins, session.catalog):
        groups = overlap_groups(run, split_names(tasks or []), language_codes(languages))
        _measure(run, session, groups, aligner, option, settings, json_file)


def _measure(
    run: Run,
    session: Session,
    groups: list[OverlapGroup],
    aligner: str,
    option: list[str] | None,
    settings: OverlapSettings,
    json_file: Path | None,
) -> None:
    from harness.cli import print_table, show_progress, write_rows
    from harness.planning import key_values
    from harness_translation.overlap.measure import Engines, measure_group
    from harness_translation.overlap.model import open_model
    from harness_translation.overlap.table import overlap_notes, overlap_table

    name, _, reference = aligner.partition(":")
    if name not in session.registry.aligners:
        raise UnknownNameError("aligner", name, session.registry.aligners.names)
    results: list[dict[str, Any]] = []
    engine = session.registry.aligners.get(name).open(reference)
    try:
        with show_progress() as progress:
            for group in groups:
                fields = session.catalog.task(group.task).spec.input_names
                opened = open_model(run, group, session, key_values(option))
                try:
                    engines = Engines(model=opened, name=name, aligner=engine, settings=settings)  # type: ignore[arg-type]
                    results += measure_group(run, group, fields, engines, progress)
                finally:
                    opened.close()
        identity = engine.identity()
    finally:
        engine.close()
    if json_file is not None:
        further = {"settings": asdict(settings), "aligner": identity}
        write_rows(json_file, [{**row, **further} for row in results])
    print_table(*overlap_table(results))
    echo(
        "\nOverlap of important words, with 95 % intervals of a cluster bootstrap over premises. sum: both sentences "
        "added, as the paper's Table 3 prints; mean: half of it. machine - human: the mean difference of the "
        "items that both texts have, with the interval of these pairs."
    )
    for line in overlap_notes(results):
        echo(line)
