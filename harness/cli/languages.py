"""``harness languages``."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from harness.cli.files import JsonRows, SpecFiles
from harness.cli.output import echo, reporting_broken_plugins, write_rows
from harness.errors import DataError, MissingExtraError, UsageError

if TYPE_CHECKING:
    from harness.analysis.coverage import CoveredLanguage, SuiteCoverage
    from harness.languages.table import Language

app = typer.Typer(add_completion=False)

MARKS = {"1": "x", "1?": "x?", "0?": "?"}
"""How the typological marks of Table 7 are shown."""
COLUMNS = ("name", "code", "wiki", "script", "family", "diacr", "comp", "clit", "infl", "deriv", "sets")
LEGEND = (
    "wiki: millions of Wikipedia articles. diacr: diacritics or special characters. comp: extensive compounding. "
    "clit: bound words or clitics. infl, deriv: inflection, derivation; a '?' is a mark that cannot be read with "
    "certainty in the paper. sets: the suite's tasks that have the language; in brackets what the paper prints."
)


@app.command()
def languages(
    codes: Annotated[
        list[str] | None, typer.Argument(metavar="[CODE...]", help="Only these, in full.")
    ] = None,
    suite: Annotated[
        str | None, typer.Option("--suite", help="The languages of a suite: coverage and diversity.")
    ] = None,
    tasks_from: SpecFiles = None,
    json_file: JsonRows = None,
) -> None:
    """List the languages by code: name, script, family, and the tasks that have them."""
    if suite is None:
        _show_languages(codes or [], tasks_from or [], json_file)
    elif codes:
        raise UsageError(f"--suite {suite} shows all languages of the suite; give it or codes, not both.")
    else:
        _show_suite(suite, tasks_from or [], json_file)


def _show_languages(codes: Sequence[str], tasks_from: Sequence[Path], json_file: Path | None) -> None:
    from harness.cli.display import print_table
    from harness.cli.tasks import open_catalog, task_rows
    from harness.languages.table import known_languages

    table = known_languages()
    chosen = [table.get(table.code_of(code) or code) for code in codes] if codes else list(table)
    plugins, catalog = open_catalog(tasks_from)
    with reporting_broken_plugins(plugins, catalog):
        having = {
            row["task"]: [*row["languages"], *row["on_request"]]
            for row in task_rows(catalog, catalog.names("task"))
        }
    rows = [
        {
            **asdict(language),
            "tasks": [name for name, task_codes in having.items() if language.code in task_codes],
        }
        for language in chosen
    ]
    if codes:
        for row in rows:
            print_table(
                ["field", str(row["code"])], [[key, _shown(value)] for key, value in row.items() if value]
            )
    else:
        keys = ("code", "name", "script", "family", "branch", "iso639_3", "tasks")
        print_table(list(keys), [[_counted(row[key]) for key in keys] for row in rows])
        echo("All other living languages of ISO 639-3 are known by code and name: harness languages rue")
    write_rows(json_file, rows)


def _counted(value: object) -> str:
    return str(len(value)) if isinstance(value, list) else str(value)


def _shown(value: object) -> str:
    return " ".join(value) if isinstance(value, list) else str(value)


def _show_suite(name: str, tasks_from: Sequence[Path], json_file: Path | None) -> None:
    from harness.analysis.coverage import suite_coverage
    from harness.cli.display import print_table
    from harness.cli.tasks import open_catalog

    plugins, catalog = open_catalog(tasks_from)
    with reporting_broken_plugins(plugins, catalog):
        coverage = suite_coverage(catalog, name)
    print_table(COLUMNS, [_table_row(item) for item in coverage.languages])
    echo("")
    print_table(["code", *coverage.tasks, "total"], [*_coverage_rows(coverage)])
    for line in ("", LEGEND, *_notes(coverage)):
        echo(line)
    write_rows(json_file, [item.row() for item in coverage.languages])


def _table_row(item: CoveredLanguage) -> list[str]:
    language = item.language
    family = "IE" if language.branch and language.family == "Indo-European" else language.family
    marks = (
        language.diacritics,
        language.compounding,
        language.clitics,
        language.inflection,
        language.derivation,
    )
    differs = item.printed_datasets not in {None, item.datasets}
    return [
        language.name,
        language.code,
        language.wikipedia_articles,
        language.script,
        f"{family}: {language.branch}" if language.branch else family,
        *(MARKS.get(mark, "") for mark in marks),
        f"{item.datasets} ({item.printed_datasets})" if differs else str(item.datasets),
    ]


def _coverage_rows(coverage: SuiteCoverage) -> Iterator[list[str]]:
    for item in coverage.languages:
        marks = ["x" if task in item.tasks else "" for task in coverage.tasks]
        yield [item.language.code, *marks, str(item.datasets)]
    totals = [coverage.total(task) for task in coverage.tasks]
    yield [str(len(coverage.languages)), *map(str, totals), str(sum(totals))]


def _notes(coverage: SuiteCoverage) -> Iterator[str]:
    from harness.analysis.coverage import dataset_differences, family_index

    notes = coverage.notes
    if "average" in notes:
        yield f"Average: {notes['average']}"
    if "script" in notes:
        yield f"Script: {notes['script']}"
    different = [
        f"{code} ({printed}, here {count})"
        for code, printed, count in dataset_differences(coverage.languages)
    ]
    if different:
        yield f"Datasets: another number is printed for {', '.join(different)}. {notes.get('datasets', '')}".rstrip()
    if coverage.added:
        yield f"Not counted, because they were added to the suite's tasks: {', '.join(coverage.added)}."
    sets = {"": [item.language for item in coverage.languages], **coverage.compared}
    for name, languages in sets.items():
        families, count = family_index(languages)
        share = f"{families} families / {count} languages = {families / count:.2f}"
        ending = "" if name else notes.get("family_index", "")
        yield f"Family index{name and f' of {name}'}: {share}. {ending}".rstrip()
    for name, languages in sets.items():
        ending = "" if name else notes.get("typology_index", "")
        yield f"Typology index{name and f' of {name}'}: {_typology(languages)} {ending}".rstrip()


def _typology(languages: Sequence[Language]) -> str:
    from harness.analysis.coverage import FEATURE_SETS, typology_index

    try:
        values = [f"{typology_index(languages, name):.3f} ({name})" for name in FEATURE_SETS]
    except (DataError, MissingExtraError) as error:
        return f"not computed. {error}"
    return f"{', '.join(values)}, the mean entropy in nats of URIEL's syntactic features."
