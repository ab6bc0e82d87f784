"""Behavioural tests: generate, import, lint, translate, score."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from harness.cli import check_output_file, choose_format, echo, format_suffixes, write_file, write_rows
from harness.storage import CellResult

if TYPE_CHECKING:
    from harness.storage import ItemRecord
    from harness_checklist.case import Case
    from harness_checklist.case_score import ScoreRow
    from harness_checklist.generation import Tally
    from harness_checklist.suite import Suite

# What the commands need is imported in them, so that help stays fast.

app = typer.Typer(no_args_is_help=True, add_completion=False, help="Behavioural tests from templates.")

SuiteName = Annotated[
    str, typer.Argument(metavar="SUITE", help="A suite: its name, its folder, or a released .tsv.")
]
Languages = Annotated[list[str] | None, typer.Option("--languages", "-l", help="Only these codes: de,fr.")]
Tests = Annotated[list[str] | None, typer.Option("--tests", "-t", help="Only these tests.")]
Seed = Annotated[int, typer.Option("--seed", help="Seed of the draw.")]
ComparedBy = Annotated[
    str | None, typer.Option("--suite", help="The suite that says how the answers of cases are compared.")
]
NO_SUITE = "Answers are compared without articles: give --suite for the normalisation of a suite."
INTERVAL = "95 % interval"
HEADS = ("language", "test", "cases", "error", INTERVAL, "examples", "floor", "corrected", INTERVAL)


@app.callback()
def checklist() -> None:
    """Behavioural tests of question answering from templates, in many languages."""


def _chosen(kind: str, given: list[str] | None, available: Collection[str]) -> list[str]:
    """Return the names that an option gives, separated by commas too, or all; raises `UnknownNameError`."""
    from harness import UnknownNameError
    from harness.specs import split_names

    names = split_names(given or [])
    for name in names:
        if name not in available:
            raise UnknownNameError(kind, name, available)
    return names or list(available)


# Suites ---------------------------------------------------------------------------------------------------


@app.command()
def generate(
    suite: SuiteName,
    languages: Languages = None,
    tests: Tests = None,
    cases: Annotated[int, typer.Option("--cases", min=1, help="Cases per test and language.")] = 200,
    seed: Seed = 0,
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
    from harness import HarnessError, UsageError
    from harness.specs import language_codes, split_names
    from harness_checklist.folder import find_suite
    from harness_checklist.generation import generate_cases, task_name

    check_output_file(json_file, ".json")
    codes, chosen = language_codes(languages), split_names(tests or [])
    loaded_suite = find_suite(suite, codes or None)
    codes = codes or list(loaded_suite.languages)
    name = task_name(loaded_suite, task)
    if output is None and len(codes) != 1:
        raise UsageError(
            f"Where shall the cases in {len(codes)} languages go?",
            hint="Give --output DIR, or one language for cases on stdout.",
        )
    tallies = generate_cases(loaded_suite, codes, chosen, n=cases, seed=seed, folder=output, task=name)
    if json_file is not None:
        write_rows(json_file, [asdict(tally) for tally in tallies])
    _show_tallies(tallies, stderr=output is None)
    if not any(tally.cases for tally in tallies):
        raise HarnessError(f"No case of suite {loaded_suite.name!r} could be made.")
    if output is not None:
        echo(
            f"Run them: harness eval --tasks-from {output / 'task.yaml'} --data {output} --tasks {name} --model MODEL"
        )


def _show_tallies(tallies: list[Tally], *, stderr: bool) -> None:
    from harness.cli import print_table

    by_test: dict[str, list[Tally]] = {}
    for tally in tallies:
        by_test.setdefault(tally.test, []).append(tally)
    rows = []
    for test, test_tallies in [*by_test.items(), *([("all", tallies)] if len(by_test) > 1 else [])]:
        counts = [len({tally.language for tally in test_tallies})]
        counts += [
            sum(getattr(tally, key) for tally in test_tallies) for key in ("cases", "examples", "empty")
        ]
        rows.append((test, *(f"{count:,}" for count in counts)))
    heads = ("test", "languages", "cases", "examples", "without examples")
    print_table(heads, rows, err=stderr)
    for tally in tallies:
        if tally.note is not None:
            echo(f"note: {tally.note}", err=True)


@app.command()
def sheet(
    suite: SuiteName,
    language: Annotated[
        str, typer.Option("--language", "-l", help="Code of the language to translate into.")
    ],
    output: Annotated[
        Path | None, typer.Option("--output", "--out", "-o", help="A .csv file; else it is printed.")
    ] = None,
) -> None:
    """Write a translator's sheet: a CSV file with all texts of a suite, one row per text.

    The texts that the suite has are filled in. Import the sheet: harness checklist import SHEET --suite SUITE

    Example: harness checklist sheet basics --language sv --output basics-sv.csv
    """
    from harness_checklist.folder import find_suite
    from harness_checklist.sheet import write_sheet

    check_output_file(output, ".csv")
    loaded_suite = find_suite(suite)
    text = write_sheet(loaded_suite, language)
    if output is None:
        echo(text, nl=False)
        return
    write_file(output, text)
    filled = language in loaded_suite.languages
    echo(
        f"Wrote {output}: {'filled in with the texts that the suite has' if filled else 'to be filled in'}. "
        f"Import it: harness checklist import {output} --suite {suite} --output DIR"
    )


@app.command("import")
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
        typer.Option("--suite", help="FILE is a filled-in sheet (.csv) of this suite: its name or folder."),
    ] = None,
) -> None:
    """Read suites and test cases of others: templates become a suite folder, cases become DIR/LANGUAGE.jsonl.

    A .tsv is the sheet of templates that was released with XTREME-R. A .jsonl holds one CheckList case per line, with
    test, case and examples.

    Example: harness checklist import checklist_templates.tsv --output multichecklist
    """
    from harness import UsageError

    if names is not None and source.suffix != ".tsv":
        raise UsageError("--names is for templates (.tsv); other files have their names already.")
    if suite is not None:
        _import_sheet(source, suite, output)
    elif source.suffix == ".tsv":
        _import_templates(source, output, names)
    elif source.suffix in (".json", ".jsonl"):
        _import_cases(source, output)
    else:
        raise UsageError(
            f"{str(source)!r} cannot be imported: expected a .tsv of templates or a .jsonl of cases.",
            hint="A translator's sheet also needs --suite SUITE.",
        )


def _import_sheet(source: Path, suite: str, output: Path) -> None:
    from harness_checklist.folder import dump_suite, find_suite
    from harness_checklist.lint import lint_suite
    from harness_checklist.sheet import read_sheet

    base = find_suite(suite)
    language = read_sheet(source, base)
    extended = base.model_copy(update={"languages": {**base.languages, language.language: language}})
    dump_suite(extended, output)
    for finding in lint_suite(extended, languages=[language.language]).findings:
        echo(f"warning: {finding.kind}: {finding.message}", err=True)
    echo(
        f"The suite with {language.language!r} is in {output}. "
        f"Look at it: harness checklist lint {output} --languages {language.language}"
    )


def _import_templates(source: Path, output: Path, names: Path | None) -> None:
    from harness_checklist.folder import dump_suite
    from harness_checklist.released import read_released

    suite = read_released(source, names)
    dump_suite(suite, output)
    borrowing = sorted(code for code, spoken in suite.languages.items() if spoken.names.borrowed)
    if borrowing:
        echo(f"warning: no names, so English ones are drawn, in: {', '.join(borrowing)}.", err=True)
    echo(f"{len(suite.tests)} tests in {len(suite.languages)} languages are in {output}.")
    echo(f"Generate cases: harness checklist generate {output} --output cases")


def _import_cases(source: Path, output: Path) -> None:
    from harness_checklist.case import case_lines
    from harness_checklist.generation import make_folder
    from harness_checklist.released import read_checklist_json

    by_language: dict[str, list[Case]] = {}
    for case in read_checklist_json(source):
        by_language.setdefault(case.language, []).append(case)
    make_folder(output)
    for language, cases in by_language.items():
        write_file(output / f"{language}.jsonl", case_lines(cases))
    total = sum(map(len, by_language.values()))
    tests = len({case.test for cases in by_language.values() for case in cases})
    echo(f"{total:,} cases of {tests} tests in {len(by_language)} languages are in {output}.")


# Cases ----------------------------------------------------------------------------------------------------


@app.command()
def lint(
    path: Annotated[
        str,
        typer.Argument(
            metavar="PATH", help="A suite: its name, folder or released .tsv; or generated .jsonl cases."
        ),
    ],
    languages: Languages = None,
    tests: Tests = None,
    cases: Annotated[int, typer.Option("--cases", min=1, help="Cases drawn for each floor.")] = 200,
    seed: Seed = 0,
    suite: ComparedBy = None,
    json_file: Annotated[
        Path | None, typer.Option("--json", help="Write the floors here: a row per language and test.")
    ] = None,
    findings_file: Annotated[
        Path | None, typer.Option("--findings", help="Write every finding here, as JSON rows.")
    ] = None,
    every: Annotated[bool, typer.Option("--all", help="Print all findings, not one of each kind.")] = False,
    strict: Annotated[bool, typer.Option("--strict", help="Exit with 1 where anything is found.")] = False,
) -> None:
    """Check whether each case can be passed, and find other faults of a suite.

    The floor of a test is the error that its templates force on any system: the share of cases without examples, with
    two answers to one question, or with an answer that is no span of its context.

    Example: harness checklist lint checklist_templates.tsv --languages tr,kk
    """
    from harness import UsageError
    from harness_checklist.folder import find_suite
    from harness_checklist.lint import lint_generated, lint_suite, print_lint

    check_output_file(json_file, ".json")
    check_output_file(findings_file, ".json")
    loaded_suite: Suite | None
    generated_cases = _generated(path)
    if generated_cases is None:
        if suite is not None:
            raise UsageError("--suite is for generated cases; PATH is a suite itself.")
        loaded_suite = find_suite(path)
        codes = _chosen("language", languages, loaded_suite.languages)
        ids = _chosen("test", tests, loaded_suite.tests)
        report = lint_suite(loaded_suite, languages=codes, tests=ids, n=cases, seed=seed)
    else:
        loaded_suite = None if suite is None else find_suite(suite)
        if loaded_suite is None:
            echo(NO_SUITE, err=True)
        codes = _chosen("language", languages, dict.fromkeys(case.language for case in generated_cases))
        ids = _chosen("test", tests, dict.fromkeys(case.test for case in generated_cases))
        chosen = [case for case in generated_cases if case.language in codes and case.test in ids]
        report = lint_generated(chosen, loaded_suite)
    if json_file is not None:
        write_rows(json_file, [asdict(floor) for floor in report.floors])
    if findings_file is not None:
        write_rows(findings_file, [asdict(finding) for finding in report.findings])
    titles = {} if loaded_suite is None else {test.id: test.title for test in loaded_suite.tests.values()}
    print_lint(report, titles, every=every)
    if strict and report.findings:
        raise typer.Exit(1)


def _generated(path: str) -> list[Case] | None:
    """Return the generated cases of a file, or of those in a folder; None where the path names a suite."""
    from harness_checklist.case import read_cases

    source = Path(path)
    files = [source] if source.suffix == ".jsonl" else []
    if source.is_dir() and not (source / "suite.yaml").exists():
        files = sorted(source.glob("*.jsonl"))
    return [case for file in files for case in read_cases(file)] if files else None


@app.command()
def score(
    cases: Annotated[
        str, typer.Argument(metavar="CASES", help="Generated cases: a .jsonl file or a folder of them.")
    ],
    predictions: Annotated[Path, typer.Argument(metavar="PREDICTIONS", help="A .jsonl or .tsv file.")],
    suite: ComparedBy = None,
    json_file: Annotated[
        Path | None, typer.Option("--json", help="Also write the scores here, a row per language and test.")
    ] = None,
) -> None:
    """Score a file of predictions for generated cases: errors, and the floor that the templates force.

    A line of PREDICTIONS is {"id": EXAMPLE, "prediction": TEXT}, in a .tsv file EXAMPLE<TAB>TEXT. A case fails where
    any of its examples does. Nothing is scored while an id is missing, doubled or unknown.

    Example: harness checklist score cases.jsonl predictions.jsonl --suite basics
    """
    from harness import MissingDataError, UsageError
    from harness.cli import print_table
    from harness_checklist.case_score import read_predictions, score_cases
    from harness_checklist.folder import find_suite
    from harness_checklist.suite import Profile

    check_output_file(json_file, ".json")
    generated_cases = _generated(cases)
    if generated_cases is None:
        raise UsageError(
            f"{cases!r} holds no generated cases: expected a .jsonl file or a folder of them.",
            hint="Make some: harness checklist generate SUITE --output cases",
        )
    if not generated_cases:
        raise MissingDataError(f"{cases!r} has no cases.")
    codes = sorted({case.language for case in generated_cases})
    profiles = dict.fromkeys(codes, Profile())
    if suite is None:
        echo(NO_SUITE, err=True)
    else:
        loaded_suite = find_suite(suite)
        missing = ", ".join(code for code in codes if code not in loaded_suite.languages)
        if missing:
            raise UsageError(
                f"The cases are in languages that suite {loaded_suite.name!r} does not have: {missing}."
            )
        profiles = {code: loaded_suite.languages[code].profile for code in codes}
    scores = score_cases(
        generated_cases, read_predictions(predictions, generated_cases), profiles.__getitem__
    )
    if json_file is not None:
        write_rows(json_file, scores)
    print_table(HEADS, [_shown(row) for row in scores])
    echo(
        "\nIn percent. error: failed cases; examples: wrong examples; floor: cases that cannot be passed; "
        "corrected: failed cases among those that can."
    )


def _shown(row: ScoreRow) -> tuple[str, ...]:
    def percent(*keys: str) -> str:
        values = [row[key] for key in keys]
        return "-" if values[0] is None else " to ".join(f"{100 * float(value or 0):.1f}" for value in values)

    return (
        str(row["language"]),
        str(row["test"]),
        f"{row['cases']:,}",
        percent("error"),
        percent("error_low", "error_high"),
        percent("example_error"),
        percent("floor"),
        percent("corrected_error"),
        percent("corrected_low", "corrected_high"),
    )


# Runs -----------------------------------------------------------------------------------------------------


@app.command()
def failures(
    folder: Annotated[Path, typer.Argument(metavar="RUN", help="A run folder.")],
    languages: Languages = None,
    tests: Tests = None,
    cases: Annotated[int, typer.Option("--cases", min=1, help="Cases per language and test.")] = 1,
    json_file: Annotated[
        Path | None, typer.Option("--json", help="Write the wrong examples here, one row each.")
    ] = None,
    output: Annotated[
        Path | None, typer.Option("--output", "--out", "-o", help="Write a table: a .tex, .md or .csv file.")
    ] = None,
) -> None:
    """Print test cases that a run failed: context, question, expected answer, given answer.

    Example: harness checklist failures runs/my-run --languages de --tests comparisons
    """
    from harness import Run, UsageError
    from harness.specs import language_codes, split_names
    from harness_checklist.failures import failing_cases, failure_table, is_checklist

    check_output_file(json_file, ".json")
    check_output_file(output)
    form = choose_format(None, output, format_suffixes("text", "latex", "markdown", "csv"))
    run = Run(folder)
    codes, test_names = language_codes(languages), split_names(tests or [])
    checklists = [cell for cell in run.cells if is_checklist(run, cell)]
    if not checklists:
        raise UsageError(
            f"The run {str(folder)!r} has no test cases.", hint="Run: harness eval --tasks multichecklist"
        )
    rows = [
        _failure(cell, test, case, record)
        for cell in checklists
        if not codes or cell.language in codes
        for test, records_by_case in failing_cases(run, cell, cases).items()
        if not test_names or test in test_names
        for case, records in records_by_case.items()
        for record in records
    ]
    if output is not None:
        write_file(output, failure_table(rows, form))
    last = None
    for row in rows if output is None else ():
        heading = (row["language"], row["test"], row["case"])
        if heading != last:
            defect = f", which no model can pass ({row['defect']})" if row["defect"] else ""
            echo(f"{row['language']} {row['test']}, case {row['case']}{defect}")
            last = heading
        for name in ("context", "question", "expected", "answered"):
            echo(f"  {name:<9} {row[name]}")
        echo("")
    if not rows:
        echo("No test case failed.")
    if json_file is not None:
        write_rows(json_file, rows)


def _failure(cell: CellResult, test: str, case: str, record: ItemRecord) -> dict[str, Any]:
    from harness_checklist.failures import answered

    return {
        "task": cell.task,
        "language": cell.language,
        "test": test,
        "case": case,
        "id": record.id,
        "defect": record.tags.get("defect"),
        "context": record.fields.get("context", ""),
        "question": record.fields.get("question", ""),
        "expected": "; ".join(map(str, record.reference)),
        "answered": answered(record),
    }
