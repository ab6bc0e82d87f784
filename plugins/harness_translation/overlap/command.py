"""``harness overlap`` on the command line."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from harness import UnknownNameError, UsageError
from harness.cli.output import echo

if TYPE_CHECKING:
    from harness import Run, Session
    from harness_translation.overlap.item import OverlapGroup
    from harness_translation.overlap.measure import OverlapSettings

__all__ = ["app"]

app = typer.Typer(add_completion=False)

CHOICES = {
    "importance": (">=", ">"),
    "link": ("first", "any"),
    "denominator": ("important", "aligned"),
    "over": ("max", "mean"),
    "row": ("first", "mean"),
    "pieces": ("sum", "mean"),
    "words": ("auto", "space"),
}
"""The values of the options that are choices; the first value is the choice of the authors."""

Tasks = Annotated[list[str] | None, typer.Option("--tasks", "-t", help="Only these tasks.")]
Languages = Annotated[list[str] | None, typer.Option("--languages", "-l", help="Only these codes.")]
AlignerName = Annotated[
    str, typer.Option("--aligner", help="own:hf:MODEL, file:FILE, simalign:MODEL, awesome-align:MODEL.")
]
ModelName = Annotated[
    str | None,
    typer.Option("--model", "-m", help="hf:FOLDER of the run's classifier, if its fit is not in the cache."),
]
Options = Annotated[
    list[str] | None, typer.Option("--option", "-o", metavar="KEY=VALUE", help="Option of the adapter.")
]
Importance = Annotated[
    str, typer.Option("--importance", help="A word is important with a score >= (default) or > the mean.")
]
LinkRule = Annotated[str, typer.Option("--link", help="first (default): a word's first link only; or any.")]
Denominator = Annotated[
    str, typer.Option("--denominator", help="important (default): all important words; or aligned ones.")
]
Probability = Annotated[
    float, typer.Option("--min-probability", min=0.0, max=1.0, help="Keep links with a higher probability.")
]
Over = Annotated[str, typer.Option("--over", help="max (default) or mean over layers and heads.")]
Row = Annotated[str, typer.Option("--row", help="Attention of the first position (default), or mean of all.")]
Pieces = Annotated[str, typer.Option("--pieces", help="sum (default) or mean of a word's pieces.")]
Words = Annotated[
    str,
    typer.Option("--words", help="auto (default) cuts unspaced text into characters; space rejects it."),
]
Rows = Annotated[Path | None, typer.Option("--json", help="Also write the rows to this file.")]


@app.command()
def overlap(
    folder: Annotated[Path, typer.Argument(metavar="RUN", help="A finished run of a fine-tuned encoder.")],
    aligner: AlignerName,
    tasks: Tasks = None,
    languages: Languages = None,
    model: ModelName = None,
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
    from harness.cli.output import check_output_file, reporting_broken_plugins

    check_output_file(json_file)
    settings = _settings(
        {
            "importance": importance,
            "link": link,
            "denominator": denominator,
            "over": over,
            "row": row,
            "pieces": pieces,
            "words": words,
        },
        min_probability,
    )
    run = Run(folder)
    session = open_session([Path(path) for path in run.manifest["config"].get("tasks_from", ())])
    with reporting_broken_plugins(session.registry.plugins, session.catalog):
        groups = _groups(run, session, tasks or [], languages or [])
        _measure(run, session, groups, aligner, (model, option), settings, json_file)


def _settings(chosen: dict[str, str], min_probability: float) -> OverlapSettings:
    from harness import AttentionOptions
    from harness_translation.overlap.formula import OverlapRule
    from harness_translation.overlap.measure import OverlapSettings

    for name, value in chosen.items():
        if value not in CHOICES[name]:
            raise UsageError(f"--{name} must be one of {', '.join(CHOICES[name])}, got {value!r}.")
    names = ("importance", "link", "denominator")
    rule = OverlapRule(**{name: chosen[name] for name in names}, min_probability=min_probability)  # type: ignore[arg-type]
    attention = AttentionOptions(over=chosen["over"], row=chosen["row"])  # type: ignore[arg-type]
    return OverlapSettings(
        rule=rule,
        attention=attention,
        pieces=chosen["pieces"],  # type: ignore[arg-type]
        words=chosen["words"],  # type: ignore[arg-type]
    )


def _groups(run: Run, session: Session, tasks: list[str], languages: list[str]) -> list[OverlapGroup]:
    from harness.specs.selection import split_names
    from harness_translation.overlap.item import overlap_groups

    def fields_of(task: str) -> tuple[str, ...]:
        return session.catalog.task(task).spec.input_names

    return overlap_groups(run, split_names(tasks), split_names(languages), fields_of)


def _measure(
    run: Run,
    session: Session,
    groups: list[OverlapGroup],
    aligner: str,
    model: tuple[str | None, list[str] | None],
    settings: OverlapSettings,
    json_file: Path | None,
) -> None:
    from harness.cli.display import ConsoleProgress
    from harness.cli.option import key_values
    from harness.cli.output import write_rows
    from harness.cli.table import print_table
    from harness_translation.overlap.measure import OverlapResult, measure_group
    from harness_translation.overlap.model import open_model
    from harness_translation.overlap.table import overlap_notes, overlap_rows, overlap_table

    name, _, reference = aligner.partition(":")
    if name not in session.registry.aligners:
        raise UnknownNameError("aligner", name, session.registry.aligners.names)
    named, options = model
    results: list[OverlapResult] = []
    engine = session.registry.aligners.get(name).open(reference)
    try:
        with ConsoleProgress() as progress:
            for group in groups:
                opened = open_model(run, group, session.registry, named=named, options=key_values(options))
                try:
                    results += measure_group(run, group, opened, (name, engine), settings, progress)  # type: ignore[arg-type]
                finally:
                    opened.close()
        identity = engine.identity()
    finally:
        engine.close()
    if json_file is not None:
        write_rows(json_file, overlap_rows(results, settings, identity))
    print_table(*overlap_table(results))
    echo(
        "\nOverlap of important words, with 95 % intervals of a cluster bootstrap over premises. sum: both sentences "
        "added, as the paper's Table 3 prints; mean: half of it."
    )
    for line in overlap_notes(results):
        echo(line)
