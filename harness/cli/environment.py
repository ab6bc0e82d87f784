"""``harness models``, ``harness plugins`` and ``harness doctor``: what is installed here, and what is wrong with it."""

from __future__ import annotations

import shutil
import sys
import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from harness.cli.files import JsonRows
from harness.cli.output import echo, print_problem, reporting_broken_plugins, write_rows
from harness.errors import BrokenPluginError, DuplicateNameError, UsageError

if TYPE_CHECKING:
    from harness.errors import HarnessError
    from harness.models.adapters import AdapterEntry
    from harness.registry.doctor import SetupFinding
    from harness.registry.registry import Registry
    from harness.specs.catalog import Catalog

models_app = typer.Typer(add_completion=False)
_TABLES = (
    *("adapters", "aligners", "features", "fleet_backends", "kinds", "launchers", "methods", "metrics"),
    *("readers", "report_sections", "reports", "task_checks", "trackers", "translators", "transliterators"),
)
_TITLES = {
    "version": "Versions",
    "device": "Devices",
    "plugin": "Plugins",
    "cache": "Caches",
    "feature": "Features and their extras",
}
_MARKS = {"broken": "!", "outdated": "!", "missing": "-", "disabled": "-"}


@models_app.command()
def list_models(
    name: Annotated[
        str | None,
        typer.Argument(metavar="[NAME]", help="An adapter, or ADAPTER:REF to see what a model offers."),
    ] = None,
    checked: Annotated[
        str | None,
        typer.Argument(
            metavar="[check ADAPTER:REF]", help="Try a tiny random model of this one's architecture."
        ),
    ] = None,
    json_file: JsonRows = None,
) -> None:
    """List the model adapters; with a name, show its options, or what a model can do.

    Example: harness models check hf:google/mt5-small
    """
    from harness.cli.display import print_table
    from harness.registry.discovery import discover
    from harness.registry.registry import Registry

    registry = Registry(discover())
    with reporting_broken_plugins(registry.plugins):
        heads, rows, lines = (
            _model_table(registry, name) if checked is None else _check(registry, name, checked)
        )
    print_table(heads, lines)
    write_rows(json_file, rows)


def _model_table(
    registry: Registry, name: str | None
) -> tuple[list[str], list[dict[str, Any]], list[list[str]]]:
    if name is None:
        rows: list[dict[str, Any]] = [
            {"adapter": entry.name, "summary": entry.summary, "examples": list(entry.examples)}
            for entry in registry.adapters
        ]
        lines = [[row["adapter"], row["summary"], "  ".join(row["examples"])] for row in rows]
        return ["adapter", "summary", "try"], rows, lines
    if ":" in name:
        rows = [_description(registry, name)]
        return ["field", name], rows, [[key, str(value)] for key, value in rows[0].items()]
    rows = _option_rows(registry.adapters.get(name))
    return ["option", "default", "meaning"], rows, [[str(value) for value in row.values()] for row in rows]


def _check(
    registry: Registry, word: str | None, name: str
) -> tuple[list[str], list[dict[str, Any]], list[list[str]]]:
    """Return the table of what works with a tiny model; raises `UsageError` for two names without ``check``."""
    from harness.models.adapters import ModelReference
    from harness.models.options import parse_options

    if word != "check":
        raise UsageError(f"'harness models' takes one name, got {word!r} and {name!r}.")
    reference = ModelReference.parse(name)
    entry = registry.adapters.get(reference.scheme)
    results = entry.check_model(reference.ref, parse_options(entry, {}))
    rows = [{"tried": attempt, "result": result} for attempt, result in results.items()]
    return ["tried with a tiny random model", "result"], rows, [[*row.values()] for row in rows]


def _option_rows(entry: AdapterEntry) -> list[dict[str, Any]]:
    from harness.models.options import option_meanings, options_model

    model = options_model(entry)
    return [
        {"option": key, "default": str(model.model_fields[key].default), "meaning": meaning}
        for key, meaning in option_meanings(model).items()
    ]


def _description(registry: Registry, name: str) -> dict[str, Any]:
    from harness.planning.planner import resolve_model

    description = resolve_model(registry.adapters, name, {}).description
    limits = description.constraints
    fitted = {head.value: sorted(offers) for head, offers in description.after_fit.items()}
    return {
        "adapter": description.adapter,
        "parameters": "unknown" if description.parameters is None else f"{description.parameters:,}",
        "layers": description.layers,
        "revision": description.revision,
        "labels": ", ".join(description.labels),
        "offers": ", ".join(sorted(description.offers)) or "nothing",
        **({} if limits is None else {"constrains to": ", ".join(sorted(limits)) or "nothing"}),
        **{f"after fitting {head}": ", ".join(offers) for head, offers in sorted(fitted.items())},
        "note": description.note,
    }


plugins_app = typer.Typer(add_completion=False)


@plugins_app.command()
def list_plugins(
    check: Annotated[
        bool, typer.Option("--check", help="Also call every hook, and show names that two plugins register.")
    ] = False,
    json_file: JsonRows = None,
) -> int:
    """List the installed plugins, and what is wrong with broken ones; exit status 1 where something is wrong."""
    from harness.cli.display import print_table
    from harness.registry.discovery import discover
    from harness.registry.registry import Registry
    from harness.specs.catalog import Catalog

    discovered = discover()
    registry = Registry(discovered)
    catalog = Catalog(
        registry.task_spec_folders(), kind_models={}, drop_shadowed_names=discovered.drop_shadowed_names
    )
    conflicts_found = [*_shadowed_commands(), *_double_documents(catalog), *catalog.lost_fragments()]
    conflicts_found += _double_names(registry) if check else ()
    conflicts_found += discovered.undone
    broken = {(plugin.name, plugin.module) for plugin in discovered.broken}
    rows: list[dict[str, Any]] = [
        {
            "name": plugin.name,
            "package": plugin.distribution,
            "version": plugin.version,
            "module": plugin.module,
            "state": "broken"
            if plugin.error
            else "faulty spec"
            if plugin.name in catalog.unreadable
            else "ok",
            "error": plugin.error or "\n".join(map(str, catalog.unreadable.get(plugin.name, []))) or None,
        }
        for plugin in [
            *(item for item in discovered.loaded if (item.name, item.module) not in broken),
            *discovered.broken,
        ]
    ]
    rows += [
        {"name": name, "package": "", "version": "", "module": "", "state": "disabled", "error": None}
        for name in discovered.disabled
    ]
    print_table(
        ["plugin", "package", "version", "state"],
        [[str(row[key] or "") for key in ("name", "package", "version", "state")] for row in rows],
    )
    for plugin in discovered.broken:
        print_problem(
            f"{plugin.name} ({plugin.module}): {plugin.error}{plugin.stop} {plugin.problem.hint}",
            plugin.problem,
        )
    for problem in (*catalog.problems, *conflicts_found):
        print_problem(str(problem), problem)
    write_rows(json_file, rows)
    return int(bool(discovered.broken or catalog.problems or conflicts_found))


def _shadowed_commands() -> Iterator[HarnessError]:
    """Yield commands of packages whose names are taken."""
    from harness.cli.main import COMMANDS, GROUP
    from harness.registry.plugin import DISTRIBUTION, find_entry_points, package_of

    entry_points = sorted(set(find_entry_points(GROUP)[0]), key=lambda item: (item.name, item.value))
    ours = {item.name for item in entry_points if package_of(item.dist)[0] == DISTRIBUTION}
    owners: dict[str, str] = {}
    for item in entry_points:
        package = package_of(item.dist)[0]
        if item.name in COMMANDS or (item.name in ours and package != DISTRIBUTION):
            yield BrokenPluginError(
                f"The command {item.name!r} of the package {package!r} is never run: it is one of the harness itself."
            )
            continue
        if item.name in owners:
            yield BrokenPluginError(
                f"The command {item.name!r} comes with both {owners[item.name]!r} and {package!r}.",
                hint="Uninstall one of them.",
            )
        owners[item.name] = package


def _double_documents(catalog: Catalog) -> Iterator[HarnessError]:
    from harness.specs.folder import SORTS

    for sort in SORTS[:-1]:
        for name in catalog.names(sort):
            try:
                catalog.entry(sort, name)
            except DuplicateNameError as error:
                yield error


def _double_names(registry: Registry) -> Iterator[HarnessError]:

    for table in (getattr(registry, name) for name in _TABLES):
        for name, (first, second) in table.conflicts.items():
            yield DuplicateNameError(table.sort, name, first, second)


doctor_app = typer.Typer(add_completion=False)


@doctor_app.command()
def examine_setup(
    tasks: Annotated[
        list[str] | None,
        typer.Argument(metavar="[TASK]...", help="Tasks and suites for --hub."),
    ] = None,
    hub: Annotated[
        bool,
        typer.Option(
            "--hub",
            help="Ask the Hub for the data of tasks, without downloading them; exit 1 where some differ.",
        ),
    ] = False,
    devices: Annotated[
        bool, typer.Option("--devices", help="Also import torch and list its devices.")
    ] = False,
    json_file: JsonRows = None,
) -> int:
    """Show versions, devices, plugins and caches, and what is missing for which feature; changes nothing."""
    from harness.registry.discovery import discover
    from harness.registry.doctor import examine

    if hub or tasks:
        return _show_sources(tasks or [], json_file)
    plugins = discover()
    findings = examine(plugins, devices=devices)
    for area, title in _TITLES.items():
        rows = [finding for finding in findings if finding.area == area]
        width = max((len(row.name) for row in rows), default=0)
        echo(title)
        for row in rows:
            for line in _finding_lines(row, width):
                echo(line)
        echo("")
    broken = sum(finding.state in {"broken", "outdated"} for finding in findings)
    echo(f"{broken} broken or too old: see the lines that begin with !" if broken else "Nothing is broken.")
    for problem in plugins.undone:
        print_problem(f"Warning: {problem}", problem)
    write_rows(json_file, [asdict(finding) for finding in findings])
    return 0


def _finding_lines(row: SetupFinding, width: int) -> Iterator[str]:
    """Yield a finding's lines: wrapped in a terminal, one line elsewhere; commands are never broken."""
    shows_state = row.state == "missing" or row.area == "feature"
    detail = f"{row.state:7}  {row.detail}" if shows_state else row.detail or row.state
    text = f"{_MARKS.get(row.state, ' ')} {row.name:{width}}  {detail}".rstrip()
    indent = " " * (width + 4)
    if _in_terminal():
        columns = max(shutil.get_terminal_size().columns, width + 30)
        yield textwrap.fill(
            text, columns, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False
        )
    else:
        yield text
    if row.advice:
        yield f"{indent}-> {row.advice}"


def _in_terminal() -> bool:
    return sys.stdout.isatty()


def _show_sources(names: Sequence[str], json_file: Path | None) -> int:
    """Print what the Hub says of the data of tasks, all where none is named; return 1 where something is not right."""
    from harness.planning.hub_sources import HubSources
    from harness.running.session import open_session
    from harness.specs.selection import select
    from harness.storage.files import cache_folder

    session = open_session()
    with reporting_broken_plugins(session.registry.plugins, session.catalog):
        selected = select(session.catalog, names or session.catalog.names("task"))
        sources = HubSources(selected, session.registry, session.catalog, cache_folder() / "data")
    rows: list[dict[str, Any]] = [
        {
            "state": source.state,
            "dataset": hub.path,
            "revision": hub.revision,
            "config": hub.config,
            "split": hub.split,
        }
        | {"owner": ref.owner, "language": ref.language, "detail": source.detail}
        for ref, source in sources.states()
        if (hub := ref.hub) is not None
    ]
    _print_sources(rows)
    if not_on_hub := [
        item.entry.spec.task
        for item in selected
        if item.entry.spec.task not in {row["owner"] for row in rows}
    ]:
        echo(f"Not from the Hub: {', '.join(not_on_hub)}")
    write_rows(json_file, rows)
    return int(any(row["state"] != "right" for row in rows))


def _print_sources(rows: Sequence[dict[str, Any]]) -> None:
    from harness.cli.display import print_table
    from harness.reporting.blocks.words import counted

    groups: dict[tuple[str, ...], list[str]] = {}
    details: dict[str, list[str]] = {}
    for row in sorted(rows, key=lambda row: (row["state"] == "right", row["state"], row["dataset"])):
        key = (row["state"], row["dataset"], (row["revision"] or "main")[:12])
        groups.setdefault(key, []).append(row["owner"])
        details.setdefault(row["detail"], []).append(f"{row['owner']}:{row['language']}")
    lines = [[*key, ", ".join(dict.fromkeys(owners)), str(len(owners))] for key, owners in groups.items()]
    print_table(("state", "dataset", "revision", "tasks and training sets", "splits"), lines)
    for detail, splits in details.items():
        if detail:
            echo(f"! {detail} ({splits[0]}{f' and {len(splits) - 1} more' if len(splits) > 1 else ''})")
    off = sum(row["state"] != "right" for row in rows)
    echo(f"{counted(len(rows), 'split')} on the Hub, {off} not right")
