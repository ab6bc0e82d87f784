"""``harness tasks list|show|validate|schema``."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from harness.cli.files import JsonRows, OutputFile, SpecFiles
from harness.cli.output import (
    check_output_file,
    choose_format,
    echo,
    format_suffixes,
    reporting_broken_plugins,
    write_or_print,
    write_rows,
)
from harness.errors import DuplicateNameError, HarnessError, StoppedError, StorageError, UsageError

if TYPE_CHECKING:
    from harness.registry.discovery import Plugins
    from harness.running.auditor import Auditor
    from harness.running.session import Session
    from harness.specs.catalog import Catalog
    from harness.specs.schema import TaskSpec
    from harness.specs.task_entry import TaskEntry

app = typer.Typer(add_completion=False, no_args_is_help=True, help="List, show and validate task specs.")


def open_catalog(tasks_from: Sequence[Path] = ()) -> tuple[Plugins, Catalog]:
    """Return the specs of this environment as they were found, without loading what would validate them."""
    from harness.registry.discovery import discover
    from harness.registry.registry import Registry
    from harness.specs.catalog import Catalog

    plugins = discover()
    registry = Registry(plugins)
    folders, sources = registry.task_spec_folders(), registry.task_sources
    catalog = Catalog(
        folders,
        kind_models={},
        extra_paths=tasks_from,
        sources=sources,
        drop_shadowed_names=plugins.drop_shadowed_names,
    )
    return plugins, catalog


MOST_NAMES = 20
"""Of languages that a row of several tasks names, and of labels of a task."""


OfSuite = Annotated[
    str | None, typer.Option("--suite", help="The tasks of a suite: sizes, languages, metric, domain.")
]
SuiteFormat = Annotated[
    str | None, typer.Option("--format", "-f", help="With --suite: text, csv, latex or markdown.")
]
SuiteOutput = Annotated[
    Path | None, typer.Option("--output", "--out", help="With --suite: write to this file.")
]


@app.command("list")
def list_tasks(
    pattern: Annotated[
        str | None, typer.Argument(help="Only names that match this glob; @sw: as --language sw.")
    ] = None,
    language: Annotated[str | None, typer.Option("--language", "-l", help="Only tasks that have it.")] = None,
    suite: OfSuite = None,
    format_name: SuiteFormat = None,
    output: SuiteOutput = None,
    tasks_from: SpecFiles = None,
    json_file: JsonRows = None,
) -> None:
    """List the tasks and suites: kind, languages, licence."""
    from fnmatch import fnmatch

    from harness.cli.display import print_table

    if suite is not None:
        _list_suite(suite, format_name, output, tasks_from or (), json_file)
        return
    if format_name is not None or output is not None:
        raise UsageError(
            "--format and --output go with --suite.", hint="--json FILE writes the list of tasks."
        )
    from harness.specs.selection import LANGUAGE_MARK, tasks_with

    if pattern is not None and pattern.startswith(LANGUAGE_MARK):
        if language is not None:
            raise UsageError(f"{pattern} and --language {language} both name a language: give one of them.")
        language, pattern = pattern.removeprefix(LANGUAGE_MARK), None
    plugins, catalog = open_catalog(tasks_from or ())
    with reporting_broken_plugins(plugins, catalog):
        having = None if language is None else tasks_with(catalog, language)
        if pattern is not None and catalog.is_made(pattern):
            names = list(catalog.names_made(pattern))
        else:
            names = [name for name in catalog.names("task") if pattern is None or fnmatch(name, pattern)]
        rows = list(task_rows(catalog, [name for name in names if having is None or name in having]))
        suites = _suite_tasks(catalog, pattern, having)
    table = [
        [
            row["task"],
            str(row["kind"] or "?"),
            f"{len(row['languages'])}: {' '.join(_cut(row['languages'], all_of_them=len(rows) == 1))}",
            str(row["license"] or "?"),
        ]
        for row in rows
    ]
    print_table(["task", "kind", "languages", "licence"], table)
    for row in rows:
        if row["on_request"]:
            echo(f"{row['task']}, only where they are named: {' '.join(row['on_request'])}")
    for suite_name, tasks in suites.items():
        echo(f"suite {suite_name}: {' '.join(tasks)}")
    if language is not None:
        echo(f"Run all of them in this language: harness eval --tasks @{language} --model MODEL")
    write_rows(json_file, rows)


def _list_suite(
    name: str,
    format_name: str | None,
    output: Path | None,
    tasks_from: Sequence[Path],
    json_file: Path | None,
) -> None:
    """Print or write the tasks of a suite as a table of a paper."""
    from harness.cli.display import print_table
    from harness.reporting.overview.paper_tables import suite_overview, suite_overview_text
    from harness.running.session import open_session

    check_output_file(output)
    session = open_session(tasks_from)
    form = choose_format(format_name, output, format_suffixes("text", "csv", "latex", "markdown"))
    with reporting_broken_plugins(session.registry.plugins, session.catalog):
        rows = suite_overview(session.catalog, name)
    write_rows(json_file, rows)
    if form == "text" and output is None:
        print_table(list(rows[0]), [list(row.values()) for row in rows])
        return
    text = suite_overview_text(name, rows, "markdown" if form == "text" else form)
    write_or_print(output, text)


def _cut(names: Sequence[str], end: str = "...", *, all_of_them: bool = False) -> Sequence[str]:
    """Return names, and of many the first ones with `end` in place of the others."""
    return names if all_of_them or len(names) <= MOST_NAMES else [*names[: MOST_NAMES - 1], end]


def _suite_tasks(catalog: Catalog, pattern: str | None, having: Sequence[str] | None) -> dict[str, list[str]]:
    """Return the tasks of every suite, only those in `having` where it is given.

    A suite that two plugins bring becomes a problem of the catalogue.
    """
    from fnmatch import fnmatch

    suites = {}
    for name in catalog.names("suite"):
        try:
            if pattern is None or fnmatch(name, pattern):
                tasks = catalog.entry("suite", name).document.texts("tasks")
                suites[name] = [task for task in tasks if having is None or task in having]
        except DuplicateNameError as error:
            catalog.problems.append(error)
    return {name: tasks for name, tasks in suites.items() if tasks}


def task_rows(catalog: Catalog, names: Sequence[str]) -> Iterator[dict[str, Any]]:
    """Yield the row of every task in the list; one that cannot be read becomes a problem of the catalogue."""
    for name in names:
        try:
            entry = catalog.entry("task", name)
        except HarnessError as error:
            catalog.problems.append(error)
            continue
        data, on_request = entry.document.data, catalog.on_request(name)
        yield {
            "task": name,
            "kind": data.get("kind"),
            "languages": [code for code in catalog.languages_of(name) if code not in on_request],
            "on_request": on_request,
            "metrics": data.get("metrics"),
            "license": data.get("license"),
            "plugin": entry.plugin,
        }


@app.command()
def show(
    name: str,
    render: Annotated[
        str | None,
        typer.Option("--render", help="Print what a model sees of the first item in this language."),
    ] = None,
    prompt: Annotated[str | None, typer.Option("--prompt", help="With --render: the prompt.")] = None,
    shots: Annotated[
        int, typer.Option("--shots", min=0, help="With --render: so many solved items before it.")
    ] = 0,
    shots_from: Annotated[
        Literal["train", "validation"], typer.Option("--shots-from", help="With --shots: their split.")
    ] = "train",
    shots_language: Annotated[
        Literal["source", "target"], typer.Option("--shots-language", help="With --shots: their language.")
    ] = "source",
    chat: Annotated[
        bool, typer.Option("--chat", help="With --render: as the turns of a conversation.")
    ] = False,
    data: Annotated[
        list[str] | None,
        typer.Option("--data", "-d", help="With --render: sample (default), hub, or folders."),
    ] = None,
    tasks_from: SpecFiles = None,
    json_file: JsonRows = None,
) -> None:
    """Show a task: what it is, how it is scored, trained and prompted, and where its data come from."""
    from harness.checks.spec_checks import check_task
    from harness.cli.display import print_table
    from harness.running.session import open_session

    session = open_session(tasks_from or ())
    if render is not None:
        prompt_options = {"shots": shots, "shots_from": shots_from, "shots_language": shots_language}
        _render(session, f"{name}:{render}", prompt, data or ["sample"], {**prompt_options, "chat": chat})
        return
    with reporting_broken_plugins(session.registry.plugins, session.catalog):
        entry = session.catalog.task(name)
        check_task(entry, session.registry, session.catalog)
    spec = entry.spec
    print_table(["task", spec.task], _task_rows(entry, session.catalog))
    echo("")
    rows = [_language_row(entry, code) for code in spec.languages]
    print_table(list(rows[0]), [[str(value or "") for value in row.values()] for row in rows])
    if json_file is not None:
        write_rows(
            json_file, [{"spec": spec.model_dump(mode="json", exclude_defaults=True), "languages": rows}]
        )


def _task_rows(entry: TaskEntry, catalog: Catalog) -> list[list[str]]:
    """Return the properties of a task, as pairs of name and value."""
    spec = entry.spec
    # Those of the document: a kind may make sets of them.
    labels, transfer = getattr(spec, "labels", ()), spec.transfer
    training = "" if transfer is None else f"{' then '.join(transfer.stages)}, recipe {transfer.recipe}"
    return [
        ["description", spec.description],
        ["kind", spec.kind],
        ["version", str(spec.version)],
        ["inputs", ", ".join(spec.input_names)],
        ["labels", ", ".join(_cut(labels, f"... ({len(labels)} in all)"))],
        ["metrics", ", ".join(spec.metrics)],
        ["protocols", ", ".join(spec.protocols)],
        ["training", training],
        ["prompts", ", ".join(catalog.presets(spec.task)) or "none"],
        ["licence", spec.license],
        ["citation", spec.citation],
        ["plugin", entry.plugin],
        *_further_rows(spec),
        *_word_rows(entry, catalog),
        ["file", entry.document.source],
    ]


def _further_rows(spec: TaskSpec) -> list[list[str]]:
    """Return the properties that only some tasks have: a pool, axes, variants, known releases."""
    apart = f", but in {' '.join(spec.unpaired)}" if spec.unpaired else ""
    parallel = f"yes: an id is the same item in every language{apart}" if spec.parallel else "no"
    rows = [["parallel", parallel]]
    if spec.pool_source is not None:
        files = " | ".join(" + ".join(item.paths) for item in spec.pool_source.alternatives)
        rows.append(["candidates", f"{files}{', of all languages' if spec.pools_languages else ''}"])
    rows += [[f"axis {axis}", " ".join(values)] for axis, values in spec.axes.items()]
    rows += [[f"variant {name}", variant.description] for name, variant in spec.variants.items()]
    if spec.translate is not None:
        where = "variants tt, te, bt" if spec.translate.answers is None else "training sets"
        rows.append(["translated", f"{', '.join(spec.translate.fields)} ({where})"])
    rows += [
        ["release", f"{name}{release.note and ': '}{release.note}"] for name, release in spec.releases.items()
    ]
    return rows


def _word_rows(entry: TaskEntry, catalog: Catalog) -> list[list[str]]:
    """Return which prompts have words in the languages that fragments added, and where missing ones are written."""
    from harness.checks.prompt_checks import is_missing_words, place_of_words

    rows = []
    added = [code for code in entry.added if code not in entry.on_request]
    for code in dict.fromkeys([*added, *(code for _, code in entry.words)]):
        presets = [preset for preset, language in entry.words if language == code]
        without = [
            preset
            for preset in catalog.presets(entry.spec.task)
            if preset not in presets
            and is_missing_words(catalog.prompt(entry.spec.task, preset), catalog, code)
        ]
        words = [f"{preset} ({entry.words[preset, code].words.provenance})" for preset in presets]
        if without and code in added:
            location = place_of_words(entry, code, "NAME")
            words.append(f"English in {', '.join(without)} (write them in {location})")
        rows.append([f"words in {code}", ", ".join(words)])
    return rows


def _render(
    session: Session, task: str, prompt: str | None, data: Sequence[str], asked: Mapping[str, Any]
) -> None:
    from harness.data.sources import DataFinder
    from harness.planning.run_config import RunConfig, data_options
    from harness.running.item_prompt import render_first_item
    from harness.storage.files import cache_folder

    config = RunConfig(
        tasks=(task,),
        model="any:model",
        data=data_options(data),
        prompt=None if prompt is None else (prompt,),
        **asked,
    )
    with reporting_broken_plugins(session.registry.plugins, session.catalog):
        finder = DataFinder(config.data, session.registry, cache_folder() / "data")
        rendering = render_first_item(config, session, finder)
    for line in rendering.lines():
        echo(line)


def _language_row(entry: Any, code: str) -> dict[str, Any]:
    from harness.data.sources import data_ref

    language = entry.languages.get(code)
    source = entry.spec.source(code, "test")
    provenance = entry.spec.provenance_of(code) or ""
    row = {
        "code": code,
        "language": language.name,
        "test files": "",
        "hub or web": "",
        "provenance": provenance,
    }
    if code in entry.added:
        row["provenance"] += f" (from {entry.added[code]})"
    if source is not None:
        ref = data_ref(
            source,
            owner=entry.spec.task,
            language=language,
            split="test",
            folder=None,
            conditions={axis: f"{{{axis}}}" for axis in entry.spec.axes},
        )
        row["test files"] = " | ".join(" + ".join(files.paths) for files in ref.local)
        if ref.hub is not None:
            pin = (ref.hub.revision or "unpinned")[:12]
            row["hub or web"] = f"{ref.hub.path} {ref.hub.config or ''} {ref.hub.split} ({pin})"
        if ref.web is not None:
            row["hub or web"] = f"{ref.web.url} ({(ref.web.checksum or 'no checksum')[:19]})"
    return row


@app.command()
def validate(
    targets: Annotated[
        list[str] | None, typer.Argument(metavar="[TASK|FILE|DIR...]", help="Default: all tasks.")
    ] = None,
    tasks_from: SpecFiles = None,
    data: Annotated[
        list[str] | None,
        typer.Option("--data", "-d", help="Also check the tasks on data: sample, hub, or folders."),
    ] = None,
    locked: Annotated[
        Path | None,
        typer.Option("--locked", metavar="FILE", help="With --data: the data must be those of FILE."),
    ] = None,
    prompts: Annotated[
        bool, typer.Option("--prompts", help="With --data: print all that every prompt shows of one item.")
    ] = False,
    json_file: JsonRows = None,
) -> int:
    """Check specs: schema, names, labels. All faults of a file are shown, with lines; exit status 2 where one is.

    With --data the tasks are checked on it: gold scores 100, trivial answers no more than chance, prompts and data are
    what they say. Exit status 1 where they are not, or where a named task has no test items there.
    """
    from harness.checks.spec_validation import validate_specs
    from harness.running.auditor import open_auditor
    from harness.running.session import open_session

    session = open_session(tasks_from or ())
    with reporting_broken_plugins(session.registry.plugins):
        checked = validate_specs(session.registry, session.catalog, targets or [])
        if data:
            # Fills the table here, so that faulty declarations of checks are reported with the other problems.
            len(session.registry.task_checks)
    _print_checked(checked, spec_alone=not data)
    broken = any(item["problems"] for item in checked)
    has_findings = False
    if locked is not None and not data:
        raise UsageError("--locked compares data with a lock file: name the data with --data.")
    if data:
        auditor = open_auditor(session, data, locked)
        has_findings = _audit_checked(session, checked, auditor, named=bool(targets), prompts=prompts)
    write_rows(json_file, checked)
    return 2 if broken else int(has_findings)


@app.command()
def schema(
    output: OutputFile = None,
) -> None:
    """Print the JSON schema of spec files; editors use it to complete and check them."""
    from harness.checks.spec_validation import spec_schema
    from harness.running.session import open_session

    check_output_file(output, ".json")
    text = json.dumps(spec_schema(open_session().registry), indent=1, ensure_ascii=False) + "\n"
    write_or_print(output, text)


def _print_checked(checked: Sequence[Mapping[str, Any]], *, spec_alone: bool) -> None:
    """Print a line for every document, and the faults of broken ones; without data the spec is all that is checked."""
    for item in checked:
        if item["problems"]:
            count = len(item["problems"])
            echo(f"{item['source']}: {count} {'fault' if count == 1 else 'faults'}", err=True)
            for problem in item["problems"]:
                echo(f"  {problem}", err=True)
        else:
            echo(f"{'' if spec_alone else 'spec '}ok  {item['sort']} {item['name']}")


def _audit_checked(
    session: Session, checked: list[dict[str, Any]], auditor: Auditor, *, named: bool, prompts: bool
) -> bool:
    """Check the tasks without problems on data and add the results to their rows.

    Returns whether there is a fault; a task that the user named and that has no test item is one.
    """
    from harness.running.auditor import audited_entry

    faulty = False
    for row in checked:
        entry = (
            None
            if row["problems"]
            else audited_entry(session.catalog, row["sort"], row["name"], row["source"])
        )
        if entry is None:
            continue
        try:
            audit = auditor.audit(entry, only=_own_languages(row) if named else ())
        except (StoppedError, StorageError):
            raise
        except HarnessError as error:
            # The other tasks can still be checked.
            echo(f"  fault    {entry.spec.task}: {error}", err=True)
            row["proof"], faulty = {"error": str(error)}, True
            continue
        row["proof"] = audit.to_json()
        faulty = faulty or bool(audit.findings) or (named and audit.is_empty)
        echo(audit.summary())
        for finding in audit.findings:
            echo(f"  fault    {finding}", err=True)
        for note in audit.notes:
            echo(f"  note     {note}")
        for reason in audit.skipped:
            echo(f"  skipped  {audit.task}: {reason}.")
        for line in audit.prompt_lines(whole=prompts):
            echo(line)
    return faulty


def _own_languages(row: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the languages of a fragment, the only ones its author asks about; none for other documents."""
    from harness.specs.folder import read_entry

    if row["sort"] != "extends":
        return ()
    path = Path(row["source"])
    return tuple(read_entry(row["source"], path, path.parent).document.data["languages"])
