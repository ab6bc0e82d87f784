"""``harness checklist import``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from harness.cli.output import echo

__all__ = ["import_"]


def import_(
    source: Annotated[
        Path,
        typer.Argument(metavar="FILE", help="checklist_templates.tsv, or test cases of CheckList (.jsonl)."),
    ],
    output: Annotated[Path, typer.Option("--output", "--out", "-o", help="The folder to write.")],
    names: Annotated[
        Path | None,
        typer.Option("--names", help="Names by language (JSON); else names_by_language.json next to a .tsv."),
    ] = None,
    suite: Annotated[
        str | None,
        typer.Option("--suite", help="FILE is a filled-in sheet of this suite: its name or folder."),
    ] = None,
) -> None:
    """Read suites and test cases of others: templates become a suite folder, cases become DIR/LANGUAGE.jsonl.

    A .tsv is the sheet of templates that was released with XTREME-R. A .jsonl holds one CheckList case per line, with
    test, case and examples. Surprises in the templates are printed as warnings.

    Example: harness checklist import checklist_templates.tsv --output multichecklist
    """
    # Imported here so that help stays fast.
    from harness import UsageError

    if suite is not None:
        _sheet(source, suite, output)
    elif source.suffix == ".tsv":
        _templates(source, output, names)
    elif source.suffix in (".json", ".jsonl"):
        if names is not None:
            raise UsageError("--names is for templates (.tsv); test cases have their names already.")
        _cases(source, output)
    else:
        raise UsageError(
            f"{str(source)!r} cannot be imported: expected a .tsv of templates or a .jsonl of cases."
        )


def _sheet(source: Path, suite: str, output: Path) -> None:
    from harness_checklist.sheets.sheet import import_sheet

    imported = import_sheet(source, suite, output)
    for finding in imported.report.findings:
        echo(f"warning: {finding.kind}: {finding.message}", err=True)
    echo(
        f"The suite with {imported.language!r} is in {output}. "
        f"Look at it: harness checklist lint {output} --languages {imported.language}"
    )


def _templates(source: Path, output: Path, names: Path | None) -> None:
    from harness_checklist.released.importer import read_released
    from harness_checklist.suites.dumping import dump_suite

    imported = read_released(source, names)
    dump_suite(imported.suite, output)
    for notice in imported.notices:
        echo(f"warning: {notice}", err=True)
    count = len(imported.suite.languages)
    echo(f"{len(imported.suite.tests)} tests in {count} languages are in {output}.")
    echo(f"Generate cases: harness checklist generate {output} --output cases")


def _cases(source: Path, output: Path) -> None:
    from harness import UsageError
    from harness_checklist.generation.case import Case
    from harness_checklist.generation.case_file import write_cases
    from harness_checklist.released.checklist_json import read_checklist_json
    from harness_checklist.released.rule import released_profile

    by_language: dict[str, list[Case]] = {}
    for case in read_checklist_json(source):
        by_language.setdefault(case.language, []).append(case)
    try:
        output.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UsageError(f"The folder {str(output)!r} cannot be created: {error.strerror}.") from error
    for language, cases in by_language.items():
        write_cases(cases, output / f"{language}.jsonl", released_profile(language))
    total = sum(map(len, by_language.values()))
    tests = len({case.test for cases in by_language.values() for case in cases})
    echo(f"{total:,} cases of {tests} tests in {len(by_language)} languages are in {output}.")
