"""Declarations of plugins, in typed tables that are filled at first use."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, TypeVar, overload

from harness import data, kinds, metrics, models, specs
from harness.languages.table import LanguageTable, known_languages
from harness.registry import declarations
from harness.registry.plugin import safe_str
from harness.table import NamedTable

if TYPE_CHECKING:
    from importlib.resources.abc import Traversable

    from harness.data.resolve import DataRef, ResolvedData, SourceState
    from harness.metrics.metric import Metric
    from harness.registry.discovery import Plugins
    from harness.storage.results import CellResult

Item = TypeVar("Item")
REPORT_HOOK = "harness_register_reports"


class Slot(Generic[Item]):
    """One table of the registry: the sort of its items, the hook that returns them, and their class.

    Classes are behind a function, so that a table without readers imports nothing. `besides` is a second class that
    the hook may return, which another table holds.
    """

    def __init__(
        self,
        sort: str,
        hook: str,
        record: Callable[[], type[Item]],
        besides: Callable[[], type] | None = None,
        *,
        key: Callable[[Item], str] = lambda item: str(getattr(item, "name", "")),
    ) -> None:
        self.sort, self.hook, self.record, self.besides, self.key = sort, hook, record, besides, key

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    @overload
    def __get__(self, registry: None, owner: type) -> Slot[Item]: ...
    @overload
    def __get__(self, registry: Registry, owner: type) -> NamedTable[Item]: ...
    def __get__(self, registry: Registry | None, owner: type) -> Slot[Item] | NamedTable[Item]:
        """Return the table, which is filled once per registry."""
        if registry is None:
            return self
        table = vars(registry)[self._name] = self.table(registry)
        return table

    def table(
        self, registry: Registry, families: Mapping[str, Callable[[str], Item]] | None = None
    ) -> NamedTable[Item]:
        """Return the declarations of plugins; objects of another class are skipped, and their plugin is reported."""
        triples = []
        for plugin, item in registry.plugins.declarations(self.hook):
            if isinstance(item, self.record()) and isinstance(getattr(item, "name", ""), str):
                triples.append((plugin, self.key(item), item))
            elif self.besides is None or not isinstance(item, self.besides()):
                registry.reject(plugin, item, self.sort, self.hook)
        remaining = registry.plugins.drop_shadowed_names(self.sort, triples)
        return NamedTable(self.sort, remaining, families=families)


class Registry:
    """Declarations of the plugins of one command; each table is filled when it is first asked for."""

    def __init__(
        self, plugins: Plugins, *, metric_families: Mapping[str, Callable[[str], Metric]] | None = None
    ) -> None:
        self.plugins = plugins
        self._metric_families = metric_families
        self.languages: LanguageTable = known_languages()
        """The languages of the table, and in a session those that its documents describe."""

    adapters = Slot("adapter", "harness_register_adapters", lambda: models.AdapterEntry)
    """Model adapters by the name before the colon of ``--model``."""
    kinds = Slot("task kind", "harness_register_kinds", lambda: kinds.TaskKind)
    """Kinds of task."""
    readers = Slot("reader", "harness_register_readers", lambda: data.Reader)
    """Readers of file formats."""
    features = Slot("attribute", "harness_register_features", lambda: data.Feature)
    """Attributes of items."""
    methods = Slot(
        "method",
        "harness_register_methods",
        lambda: kinds.Method,
        key=lambda item: f"{item.kind}:{item.name}",
    )
    """Methods, by ``kind:name``."""
    translators = Slot("translator", "harness_register_translators", lambda: data.TranslatorEntry)
    """Translators by the name before the colon of ``--translator``."""
    transliterators = Slot("transliterator", "harness_register_transliterators", lambda: data.Transliterator)
    """Ways to write other scripts in Latin letters."""
    aligners = Slot("aligner", "harness_register_aligners", lambda: data.Aligner)
    """Word aligners."""
    task_sources = Slot("source of tasks", "harness_register_task_sources", lambda: specs.TaskSource)
    """Sources of tasks by their prefix."""
    reports = Slot(
        "report format", REPORT_HOOK, lambda: declarations.ReportFormat, lambda: declarations.ReportSection
    )
    """Report formats."""
    report_sections = Slot(
        "report section", REPORT_HOOK, lambda: declarations.ReportSection, lambda: declarations.ReportFormat
    )
    """Sections of reports."""
    launchers = Slot("launcher", "harness_register_launchers", lambda: declarations.Launcher)
    """Ways to run several processes."""
    fleet_backends = Slot(
        "fleet backend", "harness_register_fleet_backends", lambda: declarations.FleetBackend
    )
    """Ways to run the jobs of ``harness submit``."""
    task_checks = Slot("set of task checks", "harness_register_task_checks", lambda: declarations.TaskChecks)
    """Checks of tasks on their data."""
    trackers = Slot("tracker", "harness_register_trackers", lambda: declarations.Tracker)
    """Experiment trackers by the value of ``--log``."""

    @cached_property
    def metrics(self) -> NamedTable[Metric]:
        """Metrics."""
        from harness.metrics.external import COMMAND, command_metric  # numpy, which listing does not need

        source_families = {
            source.name: source.open_metric for source in self.task_sources if source.metric is not None
        }
        families = {COMMAND: command_metric, **source_families, **(self._metric_families or {})}
        slot = Slot("metric", "harness_register_metrics", lambda: metrics.Metric)
        return slot.table(self, families=families)

    def task_spec_folders(self) -> list[tuple[str, Traversable]]:
        """Return (plugin name, folder) pairs of YAML documents."""
        return self._folders("harness_register_task_specs")

    def grammar_folders(self) -> list[tuple[str, Traversable]]:
        """Return (plugin name, folder) pairs of language definitions for treebank generation."""
        return self._folders("harness_register_grammars")

    def resolve_data(self, ref: DataRef, cache: Path) -> ResolvedData | None:
        """Ask the plugins for the files of a split that no local folder has."""
        answer: ResolvedData | None = self.plugins.first_answer("harness_resolve_data", ref=ref, cache=cache)
        return answer

    def inspect_data(self, refs: Sequence[DataRef], cache: Path, *, footers: bool) -> Sequence[SourceState]:
        """Ask the plugins what the Hub says of splits; empty where no plugin knows it."""
        states: Sequence[SourceState] | None = self.plugins.first_answer(
            "harness_inspect_data", refs=refs, cache=cache, footers=footers
        )
        return states or ()

    def cell_finished(self, cell: CellResult) -> list[str]:
        """Notify observers of a finished cell; return one message for each that raised."""
        return self.plugins.notify("harness_cell_finished", cell=cell)

    def run_finished(self, run: Path) -> list[str]:
        """Notify observers of a finished run; return one message for each that raised."""
        return self.plugins.notify("harness_run_finished", run=run)

    def _folders(self, hook: str) -> list[tuple[str, Traversable]]:
        from importlib.resources.abc import Traversable

        folders = []
        for plugin, item in self.plugins.declarations(hook):
            if isinstance(item, Traversable):
                folders.append((plugin, item))
            else:
                self.reject(plugin, item, "folder", hook)
        return folders

    def reject(self, plugin: str, item: Any, sort: str, hook: str) -> None:
        """Report a plugin that returned an object of another class from a hook."""
        self.plugins.report(plugin, f"it returned {safe_str(item, repr)} from {hook}, which is no {sort}")
