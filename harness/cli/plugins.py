"""``harness plugins``."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Any

import typer

from harness.cli.files import JsonRows

if TYPE_CHECKING:
    from harness.errors import HarnessError
    from harness.registry.registry import Registry
    from harness.specs.catalog import Catalog

app = typer.Typer(add_completion=False)

TABLES = (
    *("adapters", "aligners", "features", "fleet_backends", "kinds", "launchers", "methods", "metrics"),
    *("readers", "report_sections", "reports", "task_checks", "trackers", "translators", "transliterators"),
)


@app.command()
def plugins(
    check: Annotated[
        bool, typer.Option("--check", help="Also call every hook, and show names that two plugins register.")
    ] = False,
    json_file: JsonRows = None,
) -> int:
    """List the installed plugins, and what is wrong with broken ones; exit status 1 where something is wrong."""
    from harness.cli.output import print_problem, write_rows
    from harness.cli.table import print_table
    from harness.registry.discovery import discover
    from harness.registry.registry import Registry
    from harness.specs.catalog import Catalog

    discovered = discover()
    registry = Registry(discovered)
    catalog = Catalog(
        registry.task_spec_folders(), kind_models={}, drop_shadowed_names=discovered.drop_shadowed_names
    )
    conflicts_found = [*_commands(), *_double_documents(catalog), *catalog.lost_fragments()]
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


def _commands() -> Iterator[HarnessError]:
    """Yield commands of packages whose names are taken."""
    from harness.cli.main import COMMANDS, GROUP
    from harness.errors import BrokenPluginError
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
    from harness.errors import DuplicateNameError
    from harness.specs.folder import SORTS

    for sort in SORTS[:-1]:
        for name in catalog.names(sort):
            try:
                catalog.entry(sort, name)
            except DuplicateNameError as error:
                yield error


def _double_names(registry: Registry) -> Iterator[HarnessError]:
    from harness.errors import DuplicateNameError

    for table in (getattr(registry, name) for name in TABLES):
        for name, (first, second) in table.conflicts.items():
            yield DuplicateNameError(table.sort, name, first, second)
