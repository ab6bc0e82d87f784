"""Declarations of plugins, in typed tables that are filled at first use."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from harness.languages.table import LanguageTable, known_languages
from harness.registry.plugin import safe_str
from harness.table import NamedTable

if TYPE_CHECKING:
    from importlib.resources.abc import Traversable

    from harness.data.features import Feature
    from harness.data.readers.reader import Reader
    from harness.data.resolve import DataRef, ResolvedData, SourceState
    from harness.data.translation.aligners import Aligner
    from harness.data.translation.translators import TranslatorEntry
    from harness.data.translation.transliterators import Transliterator
    from harness.kinds.kind import TaskKind
    from harness.kinds.methods import Method
    from harness.metrics.metric import Metric
    from harness.models.adapters import AdapterEntry
    from harness.planning.task_checks import TaskChecks
    from harness.registry.discovery import Plugins
    from harness.reporting.formats import ReportFormat, ReportSection
    from harness.running.fleet import FleetBackend
    from harness.running.processes import Launcher
    from harness.running.trackers import Tracker
    from harness.specs.task_source import TaskSource
    from harness.storage.results import CellResult

REPORT_HOOK = "harness_register_reports"
REPORT_FORMAT = "harness.reporting.formats.ReportFormat"
REPORT_SECTION = "harness.reporting.formats.ReportSection"


class Registry:
    """Declarations of the plugins of one command; each table is filled when it is first asked for."""

    def __init__(
        self, plugins: Plugins, *, metric_families: Mapping[str, Callable[[str], Metric]] | None = None
    ) -> None:
        self.plugins = plugins
        self._metric_families = metric_families
        self.languages: LanguageTable = known_languages()
        """The languages of the table, and in a session those that its documents describe."""

    @cached_property
    def adapters(self) -> NamedTable[AdapterEntry]:
        """Model adapters by the name before the colon of ``--model``."""
        return self._named("adapter", "harness_register_adapters", "harness.models.adapters.AdapterEntry")

    @cached_property
    def kinds(self) -> NamedTable[TaskKind]:
        """Kinds of task."""
        return self._named("task kind", "harness_register_kinds", "harness.kinds.kind.TaskKind")

    @cached_property
    def metrics(self) -> NamedTable[Metric]:
        """Metrics."""
        from harness.metrics.external import COMMAND, command_metric  # numpy, which listing does not need

        hook = "harness_register_metrics"
        pairs = self._declared("metric", hook, "harness.metrics.metric.Metric")
        triples = [(plugin, item.name, item) for plugin, item in pairs]
        source_families = {
            source.name: source.open_metric for source in self.task_sources if source.metric is not None
        }
        families = {COMMAND: command_metric, **source_families, **(self._metric_families or {})}
        return NamedTable("metric", self.plugins.drop_shadowed_names("metric", triples), families=families)

    @cached_property
    def readers(self) -> NamedTable[Reader]:
        """Readers of file formats."""
        return self._named("reader", "harness_register_readers", "harness.data.readers.reader.Reader")

    @cached_property
    def reports(self) -> NamedTable[ReportFormat]:
        """Report formats."""
        return self._named("report format", REPORT_HOOK, REPORT_FORMAT, besides=REPORT_SECTION)

    @cached_property
    def report_sections(self) -> NamedTable[ReportSection]:
        """Sections of reports."""
        return self._named("report section", REPORT_HOOK, REPORT_SECTION, besides=REPORT_FORMAT)

    @cached_property
    def features(self) -> NamedTable[Feature]:
        """Attributes of items."""
        return self._named("attribute", "harness_register_features", "harness.data.features.Feature")

    @cached_property
    def launchers(self) -> NamedTable[Launcher]:
        """Ways to run several processes."""
        return self._named("launcher", "harness_register_launchers", "harness.running.processes.Launcher")

    @cached_property
    def fleet_backends(self) -> NamedTable[FleetBackend]:
        """Ways to run the jobs of ``harness submit``."""
        hook = "harness_register_fleet_backends"
        return self._named("fleet backend", hook, "harness.running.fleet.FleetBackend")

    @cached_property
    def methods(self) -> NamedTable[Method]:
        """Methods, by ``kind:name``."""
        pairs = self._declared("method", "harness_register_methods", "harness.kinds.methods.Method")
        triples = [(plugin, f"{method.kind}:{method.name}", method) for plugin, method in pairs]
        return NamedTable("method", self.plugins.drop_shadowed_names("method", triples))

    @cached_property
    def translators(self) -> NamedTable[TranslatorEntry]:
        """Translators by the name before the colon of ``--translator``."""
        return self._named(
            "translator",
            "harness_register_translators",
            "harness.data.translation.translators.TranslatorEntry",
        )

    @cached_property
    def transliterators(self) -> NamedTable[Transliterator]:
        """Ways to write other scripts in Latin letters."""
        return self._named(
            "transliterator",
            "harness_register_transliterators",
            "harness.data.translation.transliterators.Transliterator",
        )

    @cached_property
    def aligners(self) -> NamedTable[Aligner]:
        """Word aligners."""
        return self._named(
            "aligner", "harness_register_aligners", "harness.data.translation.aligners.Aligner"
        )

    @cached_property
    def task_sources(self) -> NamedTable[TaskSource]:
        """Sources of tasks by their prefix."""
        hook = "harness_register_task_sources"
        return self._named("source of tasks", hook, "harness.specs.task_source.TaskSource")

    @cached_property
    def task_checks(self) -> NamedTable[TaskChecks]:
        """Checks of tasks on their data."""
        hook = "harness_register_task_checks"
        return self._named("set of task checks", hook, "harness.planning.task_checks.TaskChecks")

    @cached_property
    def trackers(self) -> NamedTable[Tracker]:
        """Experiment trackers by the value of ``--log``."""
        return self._named("tracker", "harness_register_trackers", "harness.running.trackers.Tracker")

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
                self._reject(plugin, item, "folder", hook)
        return folders

    def _named(self, sort: str, hook: str, wanted: str, *, besides: str = "") -> NamedTable[Any]:
        declared = self._declared(sort, hook, wanted, besides=besides)
        triples = [(plugin, item.name, item) for plugin, item in declared]
        return NamedTable(sort, self.plugins.drop_shadowed_names(sort, triples))

    def _declared(self, sort: str, hook: str, wanted: str, *, besides: str = "") -> list[tuple[str, Any]]:
        """Return the declarations of plugins; objects of another class are skipped, and their plugin is reported.

        The classes are named, not imported: they are in a layer above this one. `besides` names a second class
        that the hook may return, which another table holds.
        """
        pairs = []
        for plugin, item in self.plugins.declarations(hook):
            classes = {f"{cls.__module__}.{cls.__qualname__}" for cls in type(item).__mro__}
            if wanted in classes and isinstance(getattr(item, "name", ""), str):
                pairs.append((plugin, item))
            elif besides not in classes:
                self._reject(plugin, item, sort, hook)
        return pairs

    def _reject(self, plugin: str, item: Any, sort: str, hook: str) -> None:
        self.plugins.report(plugin, f"it returned {safe_str(item, repr)} from {hook}, which is no {sort}")
