"""``harness checklist score``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from harness import MissingDataError, UsageError
from harness.cli.output import echo

if TYPE_CHECKING:
    from harness_checklist.generation.case import Case
    from harness_checklist.reporting.case_score import TestScore
    from harness_checklist.suites.profile import Profile

__all__ = ["score"]

HEADS = (
    "language",
    "test",
    "cases",
    "error",
    "95 % interval",
    "examples",
    "floor",
    "corrected",
    "95 % interval",
)


def score(
    cases: Annotated[
        str, typer.Argument(metavar="CASES", help="Generated cases: a .jsonl file or a folder of them.")
    ],
    predictions: Annotated[Path, typer.Argument(metavar="PREDICTIONS", help="A .jsonl or .tsv file.")],
    suite: Annotated[
        str | None, typer.Option("--suite", help="The suite that says how answers are compared.")
    ] = None,
    json_file: Annotated[
        Path | None, typer.Option("--json", help="Also write the scores here, a row per language and test.")
    ] = None,
) -> None:
    """Score a file of predictions for generated cases: errors, and the floor that the templates force.

    A line of PREDICTIONS is {"id": EXAMPLE, "prediction": TEXT}, in a .tsv file EXAMPLE<TAB>TEXT. A case fails where
    any of its examples does. Nothing is scored while an id is missing, doubled or unknown.

    Example: harness checklist score cases.jsonl predictions.jsonl --suite basics
    """
    from harness.cli.output import check_output_file, write_rows
    from harness.cli.table import print_table
    from harness_checklist.reporting.case_score import score_cases
    from harness_checklist.reporting.prediction import read_predictions

    check_output_file(json_file)
    made = _cases(cases)
    profiles = _profiles(suite, sorted({case.language for case in made}))
    scores = score_cases(made, read_predictions(predictions, made), profiles.__getitem__)
    if json_file is not None:
        write_rows(json_file, [one.as_row() for one in scores])
    print_table(HEADS, [_shown(one) for one in scores])
    echo(
        "\nIn percent. error: failed cases; examples: wrong examples; floor: cases that cannot be passed; "
        "corrected: failed cases among those that can."
    )


def _cases(path: str) -> list[Case]:
    from harness_checklist.commands.lint import generated_files
    from harness_checklist.generation.case_file import read_cases

    files = generated_files(path)
    if not files:
        raise UsageError(
            f"{path!r} holds no generated cases: expected a .jsonl file or a folder of them.",
            hint="Make some: harness checklist generate SUITE --output cases.jsonl",
        )
    made = [case for file in files for case in read_cases(file)]
    if not made:
        raise MissingDataError(f"{path!r} has no cases.")
    return made


def _profiles(suite: str | None, languages: list[str]) -> dict[str, Profile]:
    """Return how answers are compared in each language; without a suite, with no articles."""
    from harness_checklist.shipped import find_suite
    from harness_checklist.suites.profile import Profile

    if suite is None:
        echo(
            "Answers are compared without articles: give --suite for the normalisation of a suite.", err=True
        )
        return {code: Profile() for code in languages}
    found = find_suite(suite)
    missing = [code for code in languages if code not in found.languages]
    if missing:
        raise UsageError(
            f"The cases are in languages that suite {found.name!r} does not have: {', '.join(missing)}."
        )
    return {code: found.languages[code].profile for code in languages}


def _shown(one: TestScore) -> tuple[str, ...]:
    return (
        one.language,
        one.test,
        f"{one.cases:,}",
        _percent(one.error),
        _between(one.interval),
        _percent(one.example_error),
        _percent(one.floor),
        _percent(one.corrected_error),
        _between(one.corrected_interval),
    )


def _percent(rate: float | None) -> str:
    return "-" if rate is None else f"{100 * rate:.1f}"


def _between(interval: tuple[float, float] | None) -> str:
    return "-" if interval is None else f"{100 * interval[0]:.1f} to {100 * interval[1]:.1f}"
