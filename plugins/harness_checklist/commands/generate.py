"""``harness checklist generate``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from harness.cli.output import echo

if TYPE_CHECKING:
    from harness_checklist.generation.generator import Tally

__all__ = ["generate"]


def generate(
    suite: Annotated[
        str, typer.Argument(metavar="SUITE", help="A suite: its name, its folder, or a released .tsv.")
    ],
    languages: Annotated[
        list[str] | None, typer.Option("--languages", "-l", help="Only these codes: de,fr.")
    ] = None,
    tests: Annotated[list[str] | None, typer.Option("--tests", "-t", help="Only these tests.")] = None,
    cases: Annotated[int, typer.Option("--cases", min=1, help="Cases per test and language.")] = 200,
    seed: Annotated[int, typer.Option("--seed", help="Seed of the draw.")] = 0,
    output: Annotated[
        Path | None,
        typer.Option("--output", "--out", "-o", help="A folder; without it, one language goes to stdout."),
    ] = None,
    task: Annotated[
        str | None, typer.Option("--task", help="Task name in task.yaml; default: checklist_SUITE.")
    ] = None,
    json_file: Annotated[
        Path | None, typer.Option("--json", help="Write the counts here: a row per language and test.")
    ] = None,
) -> None:
    """Draw test cases from a suite's templates: DIR/LANGUAGE.jsonl, and DIR/task.yaml to run them.

    The same suite, test, language and seed give the same cases; with more --cases, the first ones stay. No case is
    drawn twice. Where fewer exist, all are written, and a note says why.

    Example: harness checklist generate basics --languages de,sw --output cases
    """
    # Imported here so that help stays fast.
    from harness import HarnessError, UsageError
    from harness.cli.output import check_output_file, write_rows
    from harness.specs.selection import split_names
    from harness_checklist.generation.generator import generate_cases, print_cases, task_name
    from harness_checklist.shipped import open_suite

    check_output_file(json_file)
    codes = split_names(languages or [])
    found, notices = open_suite(suite, codes or None)
    codes = codes or list(found.languages)
    name = task_name(found, task)
    for notice in notices:
        echo(f"warning: {notice}", err=True)
    if output is not None:
        tallies = generate_cases(found, codes, split_names(tests or []), cases, seed, output, name)
    elif len(codes) == 1:
        tallies = print_cases(found, codes[0], split_names(tests or []), cases, seed)
    else:
        raise UsageError(
            f"Where shall the cases in {len(codes)} languages go?",
            hint="Give --output DIR, or one language for cases on stdout.",
        )
    if json_file is not None:
        write_rows(json_file, [tally.as_row() for tally in tallies])
    _show(tallies, stderr=output is None)
    if not any(tally.cases for tally in tallies):
        raise HarnessError(f"No case of suite {found.name!r} could be made.")
    if output is not None:
        echo(
            f"Run them: harness eval --tasks-from {output / 'task.yaml'} --data {output} --tasks {name} --model MODEL"
        )


def _show(tallies: list[Tally], *, stderr: bool) -> None:
    from rich.table import Table

    from harness.cli.display import PrintableConsole, stdout

    table = Table("test", box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for head in ("languages", "cases", "examples", "without examples"):
        table.add_column(head, justify="right")
    by_test: dict[str, list[Tally]] = {}
    for tally in tallies:
        by_test.setdefault(tally.test, []).append(tally)
    parts = [*by_test.items(), *([("all", tallies)] if len(by_test) > 1 else [])]
    for test, found in parts:
        counts = [len({tally.language for tally in found})]
        counts += [sum(tally.cases for tally in found), sum(tally.examples for tally in found)]
        counts.append(sum(tally.empty for tally in found))
        table.add_row(test, *(f"{count:,}" for count in counts))
    console = PrintableConsole(stderr=True, highlight=False) if stderr else stdout()
    console.print(table)
    for tally in tallies:
        if tally.note is not None:
            echo(f"note: {tally.note}", err=True)
