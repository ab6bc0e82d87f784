"""Compare what a classifier attends to in a text and its translation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from harness import UnknownNameError
from harness.cli import echo

if TYPE_CHECKING:
    from harness import Run
    from harness.running import Session
    from harness_translation.overlap.measure import OverlapGroup, OverlapSettings

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
HUMAN = "zs"
_Comparison = Mapping[str, Any]


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
    from harness_translation.overlap.measure import OverlapSettings, overlap_groups

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
    from harness_translation.overlap.measure import Engines, measure_group, open_model

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
    for line in _overlap_notes(results):
        echo(line)


def overlap_table(results: Sequence[_Comparison]) -> tuple[list[str], list[list[str]]]:
    """Return heads and rows: one row per text (human, machine) and scale, one column per language."""
    languages = list(dict.fromkeys(str(one["language"]) for one in results))
    keys = list(dict.fromkeys(_key(one) for one in results))
    models = len({key[:2] for key in keys}) > 1
    by_key = {(_key(one), one["language"]): one for one in results}
    rows: list[list[str]] = []
    for task, seed, text in keys:
        head = [f"{task}, {seed}"] if models else []
        own = [by_key.get(((task, seed, text), code)) for code in languages]
        for name, scale in (("overlap_sum", "sum (0..2)"), ("overlap_mean", "mean (0..1)")):
            rows.append([*head, text, scale, *(_shown(one[name]) if one else "" for one in own)])
            differences = [one["minus_human"] if one else None for one in own]
            if any(differences):
                fields = [_shown(one[name]) if one else "" for one in differences]
                rows.append([*head, f"{text} - human", scale, *fields])
    return [*(["model"] if models else []), "text", "overlap", *languages], rows


def _overlap_notes(results: Sequence[_Comparison]) -> list[str]:
    """Return one line per result: the items that were measured and skipped."""
    lines = []
    for row in results:
        reasons = {"too long": "truncated", "not translated": "missing", "undefined": "undefined"}
        out = ", ".join(f"{row[name]:,} {reason}" for reason, name in reasons.items() if row[name])
        lines.append(
            f"{row['task']} {row['language']}, {_text(row)}: {row['n']:,} of {row['correct']:,} items that the "
            f"model got right in English, of {row['labelled']:,}; {100 * (row['linked'] or 0):.1f} % of English "
            f"words linked" + (f"; skipped: {out}" if out else "")
        )
    return lines


def _key(one: _Comparison) -> tuple[str, str, str]:
    return one["task"], f"seed {one['seed']}, fit {one['fit']}", _text(one)


def _text(one: _Comparison) -> str:
    if one["variant"] == HUMAN:
        return "human"
    return f"machine ({', '.join(filter(None, (one['variant'], one['translator'])))})"


def _shown(value: Mapping[str, Any]) -> str:
    if value["value"] is None:
        return "-"
    ends = value["ci"]
    return f"{value['value']:.3f}" + (f" [{ends[0]:.3f}, {ends[1]:.3f}]" if ends else "")
