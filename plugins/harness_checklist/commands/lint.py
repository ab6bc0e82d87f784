"""``harness checklist lint``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from harness import UnknownNameError, UsageError
from harness.cli.output import echo

if TYPE_CHECKING:
    from collections.abc import Sequence

    from harness_checklist.generation.case import Case
    from harness_checklist.lint.linter import LintReport
    from harness_checklist.suites.suite import Suite

__all__ = ["chosen", "generated_files", "lint"]

Where = Annotated[
    str,
    typer.Argument(
        metavar="PATH", help="A suite: its name, folder or released .tsv; or generated .jsonl cases."
    ),
]
Languages = Annotated[list[str] | None, typer.Option("--languages", "-l", help="Only these codes.")]
Tests = Annotated[list[str] | None, typer.Option("--tests", "-t", help="Only these tests.")]


def lint(
    path: Where,
    languages: Languages = None,
    tests: Tests = None,
    cases: Annotated[int, typer.Option("--cases", min=1, help="Cases drawn for each floor.")] = 200,
    seed: Annotated[int, typer.Option("--seed", help="Seed of the draw.")] = 0,
    suite: Annotated[
        str | None,
        typer.Option("--suite", help="For generated cases: the suite that says how answers are compared."),
    ] = None,
    json_file: Annotated[
        Path | None, typer.Option("--json", help="Write the floors here: a row per language and test.")
    ] = None,
    findings_file: Annotated[
        Path | None, typer.Option("--findings", help="Write every finding here, as JSON rows.")
    ] = None,
    every: Annotated[
        bool, typer.Option("--all", help="Print every finding, not an example of each kind.")
    ] = False,
    strict: Annotated[bool, typer.Option("--strict", help="Exit with 1 where anything is found.")] = False,
) -> None:
    """Check whether each case can be passed, and find other faults of a suite.

    The floor of a test is the error that its templates force on any system: the share of cases without examples, with
    two answers to one question, or with an answer that is no span of its context.

    Example: harness checklist lint checklist_templates.tsv --languages tr,kk
    """
    from harness.cli.display import stdout
    from harness.cli.output import check_output_file, write_rows
    from harness_checklist.lint.table import render_lint

    check_output_file(json_file)
    check_output_file(findings_file)
    files = generated_files(path)
    if files is None:
        if suite is not None:
            raise UsageError("--suite is for generated cases; PATH is a suite itself.")
        report, titles = _lint_suite(path, languages, tests, cases, seed)
    else:
        report, titles = _lint_files(files, suite, languages, tests)
    if json_file is not None:
        write_rows(json_file, [floor.as_row() for floor in report.floors])
    if findings_file is not None:
        write_rows(findings_file, [finding.as_row() for finding in report.findings])
    stdout().print(render_lint(report, titles, every=every))
    if strict and report.findings:
        raise typer.Exit(1)


def _lint_suite(
    path: str, languages: list[str] | None, tests: list[str] | None, n: int, seed: int
) -> tuple[LintReport, dict[str, str]]:
    from harness_checklist.lint.linter import lint_suite
    from harness_checklist.shipped import find_suite

    found = find_suite(path)
    codes = chosen("language", languages, list(found.languages))
    ids = chosen("test", tests, [test.id for test in found.tests])
    report = lint_suite(found, languages=codes, tests=ids, n=n, seed=seed)
    return report, {test.id: test.title for test in found.tests}


def _lint_files(
    files: list[Path], suite: str | None, languages: list[str] | None, tests: list[str] | None
) -> tuple[LintReport, dict[str, str]]:
    from harness_checklist.generation.case_file import read_cases
    from harness_checklist.lint.linter import lint_generated
    from harness_checklist.shipped import find_suite

    by: Suite | None = None if suite is None else find_suite(suite)
    if by is None:
        echo(
            "Answers are compared without articles: give --suite for the normalisation of a suite.", err=True
        )
    cases: list[Case] = [case for file in files for case in read_cases(file)]
    codes = chosen("language", languages, dict.fromkeys(case.language for case in cases))
    ids = chosen("test", tests, dict.fromkeys(case.test for case in cases))
    kept = [case for case in cases if case.language in codes and case.test in ids]
    return lint_generated(kept, by), {} if by is None else {test.id: test.title for test in by.tests}


def generated_files(path: str) -> list[Path] | None:
    """Return the files of generated cases that a path names: itself, or those of a folder; None for a suite."""
    place = Path(path)
    if place.is_dir() and not (place / "suite.yaml").exists():
        return sorted(place.glob("*.jsonl")) or None
    return [place] if place.suffix == ".jsonl" else None


def chosen(kind: str, given: Sequence[str] | None, known: Sequence[str] | dict[str, None]) -> list[str]:
    """Return the names that an option gives, separated by commas too, or all; raises `UnknownNameError`."""
    from harness.specs.selection import split_names

    names = split_names(given or [])
    for name in names:
        if name not in known:
            raise UnknownNameError(kind, name, known)
    return names or list(known)
