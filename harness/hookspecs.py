"""Every hook of the harness: the one file that the author of a plugin must read.

A plugin is a module or package that an entry point of the group ``harness`` names. It marks functions with
`hookimpl`; each returns declarations, so a plugin is loaded in milliseconds and imports nothing heavy::

    # my_package/__init__.py
    from harness.hookspecs import hookimpl

    @hookimpl
    def harness_register_task_specs():
        from importlib.resources import files
        return [files("my_package") / "specs"]

    # pyproject.toml
    [project.entry-points.harness]
    my_package = "my_package"

Hooks are named ``harness_<verb>_<noun>``. When they are called: ``register_task_specs`` by every command that
names tasks; the other ``register`` hooks when a command first needs what they declare, always before a model is
loaded; ``resolve_data`` while a run is planned; the ``finished`` observers while it is running.

A plugin that needs hooks, or arguments of hooks, that older versions of the harness do not have declares this in its
module: ``HARNESS_HOOKS = 2``, the number of `HOOK_VERSION` that it was written for. An older harness then asks the
user to upgrade.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pluggy

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from importlib.resources.abc import Traversable
    from pathlib import Path

    from harness.data.features import Feature
    from harness.data.readers.reader import Reader
    from harness.data.resolve import DataRef, ResolvedData, SourceState
    from harness.data.translation.services import Aligner, TranslatorEntry, Transliterator
    from harness.kinds.kind import TaskKind
    from harness.kinds.methods import Method
    from harness.metrics.metric import Metric
    from harness.models.adapters import AdapterEntry
    from harness.registry.declarations import (
        FleetBackend,
        Launcher,
        ReportFormat,
        ReportSection,
        TaskChecks,
        Tracker,
    )
    from harness.specs.task_entry import TaskSource
    from harness.storage.results import CellResult

HOOK_VERSION = 1
"""Grows by one with every release that adds a hook, or an argument to one."""
PROJECT = "harness"
hookspec = pluggy.HookspecMarker(PROJECT)
hookimpl = pluggy.HookimplMarker(PROJECT)


class HookSpecs:
    """The hooks, in the order in which a run reaches them."""

    @hookspec
    def harness_register_task_specs(self) -> Iterable[Traversable]:
        """Return folders of YAML documents: tasks, training sets, recipes, suites, language fragments.

        Called by every command that names or lists tasks. Sample files are looked up in the folder's ``sample``.
        """

    @hookspec
    def harness_register_kinds(self) -> Iterable[TaskKind]:
        """Return kinds of task. Called before specs are validated."""

    @hookspec
    def harness_register_methods(self) -> Iterable[Method]:
        """Return methods, for the plugin's own kinds or for those of others. Called before a run is planned."""

    @hookspec
    def harness_register_readers(self) -> Iterable[Reader]:
        """Return readers of file formats. Called before data are read."""

    @hookspec
    def harness_register_metrics(self) -> Iterable[Metric]:
        """Return metrics. Called before specs are checked and when a run is scored."""

    @hookspec
    def harness_register_adapters(self) -> Iterable[AdapterEntry]:
        """Return declarations of model adapters; they name their code, which is imported when a model is opened."""

    @hookspec
    def harness_register_launchers(self) -> Iterable[Launcher]:
        """Return ways to run several processes; the first by name is used. Called only where there are several."""

    @hookspec
    def harness_register_fleet_backends(self) -> Iterable[FleetBackend]:
        """Return declarations of ways to run the jobs of ``harness submit``; the one that is used is imported."""

    @hookspec
    def harness_register_features(self) -> Iterable[Feature]:
        """Return attributes of items, by which a diagnosis splits scores. Called by ``harness diagnose`` and boards."""

    @hookspec
    def harness_register_translators(self) -> Iterable[TranslatorEntry]:
        """Return declarations of translators; they name their code, which is imported when one is opened.

        Called by ``harness translate``, and by runs with variants that are made by translation.
        """

    @hookspec
    def harness_register_transliterators(self) -> Iterable[Transliterator]:
        """Return ways to write other scripts in Latin letters. Called by ``harness treebank code-switch``."""

    @hookspec
    def harness_register_aligners(self) -> Iterable[Aligner]:
        """Return word aligners; they name their code, which is imported when one is opened by ``harness overlap``."""

    @hookspec
    def harness_register_grammars(self) -> Iterable[Traversable]:
        """Return folders of language definitions (YAML) for treebank generation. Called by ``harness treebank``."""

    @hookspec
    def harness_register_task_sources(self) -> Iterable[TaskSource]:
        """Return sources of tasks that are named ``PREFIX:NAME``; they name their code. Called with specs."""

    @hookspec
    def harness_register_task_checks(self) -> Iterable[TaskChecks]:
        """Return checks of tasks on their data; they name their code. Called by ``harness tasks validate --data``.

        Their findings are joined with those of the task audit, so that one report shows both.
        """

    @hookspec
    def harness_register_reports(self) -> Iterable[ReportFormat | ReportSection]:
        """Return report formats, and sections of reports. Called when a report or a summary is written."""

    @hookspec
    def harness_register_trackers(self) -> Iterable[Tracker]:
        """Return experiment trackers; they name their code. Called where ``--log`` names one, before data are read."""

    @hookspec(firstresult=True)
    def harness_resolve_data(self, ref: DataRef, cache: Path) -> ResolvedData | None:
        """Return the files of a split that is not in a local folder, or None where this plugin cannot get it.

        Called with ``--data hub``, once per split; the first answer that is not None is taken. May download into
        `cache`, with progress.
        """

    @hookspec(firstresult=True)
    def harness_inspect_data(
        self, refs: Sequence[DataRef], cache: Path, footers: bool
    ) -> Sequence[SourceState] | None:
        """Return the state of each split, all of Hub datasets, asked without their data; None where none is known.

        Called before anything is downloaded (`footers` false: whether the files are there, and how large they are), and
        by ``harness doctor --hub`` (true: also their columns and label names). The first answer is taken.
        """

    @hookspec
    def harness_cell_finished(self, cell: CellResult) -> None:
        """Observe a cell as it is in ``results.json``, once its records are on disk."""

    @hookspec
    def harness_run_finished(self, run: Path) -> None:
        """Observe the folder of a finished run."""
