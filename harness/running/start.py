"""Opening and checks of a run before its first cell, remarks on its test files, and the state that its steps share."""

from __future__ import annotations

import datetime
import re
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from itertools import islice
from pathlib import Path
from typing import Any

from harness.data.origin import CHANGED, RELEASED, Checksums, FileState
from harness.data.sources import DataFinder
from harness.errors import HarnessError, UsageError
from harness.planning.lock_file import LockFile
from harness.planning.plan import Cell, Plan
from harness.planning.run_config import RunConfig
from harness.planning.task_checks import CheckedItems
from harness.progress import Progress
from harness.registry.plugin import installed_version
from harness.registry.registry import Registry
from harness.running.cell_reader import CellReader
from harness.running.inference import CachedModel
from harness.running.manifest import (
    cell_head,
    check_unchanged,
    code_versions,
    further_metrics_kept,
    new_manifest,
    planned_entries,
)
from harness.running.processes import Interruption, ProcessGroup
from harness.running.run_logs import RunLogs, open_logs
from harness.running.sequential import Sampling
from harness.running.session import Prepared
from harness.specs.catalog import Catalog
from harness.storage.results import CellResult, Manifest
from harness.storage.run_folder import FittedModel, Run, first_difference

LOCK_PATIENCE = 5.0
"""Seconds that a killed run's other processes may take to notice that it is gone."""
_LOOKED_AT = 10_000
"""Items of a test set that are looked at."""


@dataclass(slots=True, kw_only=True)
class RunState:
    """A run of one plan: what it is made of, and what is finished so far."""

    config: RunConfig
    plan: Plan
    run: Run
    registry: Registry
    catalog: Catalog
    finder: DataFinder
    checksums: Checksums
    """The digests of published files."""
    locked: LockFile | None = None
    """The model must be that of this lock file; baselines are not locked."""
    progress: Progress = field(default_factory=Progress)
    processes: ProcessGroup = field(default_factory=ProcessGroup)
    interruption: Interruption = field(default_factory=Interruption)
    created: str = ""
    resume: bool = False
    journals: Sequence[Path] = ()
    """Journals of other runs whose answers are reused."""
    is_baseline: bool = False
    model: CachedModel = field(init=False)
    """Set when the journal is open."""
    logs: RunLogs = field(default_factory=RunLogs, init=False)
    cells: dict[str, CellResult] = field(default_factory=dict, init=False)
    """By digest: the cells that are finished or failed."""
    fits: dict[str, FittedModel] = field(default_factory=dict, init=False)
    """By `FitPlan.key`."""
    sampling: Sampling = field(init=False)
    """How many items of each cell are asked."""
    notes: dict[str, None] = field(default_factory=dict, init=False)
    """Sentences for the user, each once, in their order."""
    started: float = field(default_factory=time.monotonic, init=False)
    written: float = field(default=0.0, init=False)

    def __post_init__(self) -> None:
        """Begin without any sample."""
        config = self.config
        self.sampling = Sampling(precision=config.precision, budget=config.budget, limit=config.limit)

    @property
    def is_main(self) -> bool:
        """Whether this process scores and writes."""
        return self.processes.is_main

    def of_baseline(self, plan: Plan) -> RunState:
        """Return the state of a baseline's run, in a folder within this one's."""
        run = Run.at(self.run.path / "baselines" / _safe(plan.model.reference.ref))
        return replace(self, plan=plan, run=run, locked=None, is_baseline=True)

    def head(self, cell: Cell) -> dict[str, Any]:
        """Return the fields of a cell's result besides its numbers."""
        head = cell_head(cell, None if cell.fit is None else self.fits.get(cell.fit.key))
        state = self.file_state(cell)
        return {**head, "file_state": None if state is None else state.word}

    def file_state(self, cell: Cell) -> FileState | None:
        """Return whether the test files of a cell are released ones."""
        return self.checksums.state(cell.test.untranslated)

    def note(self, sentences: Iterable[str]) -> None:
        """Add sentences to the run's notes, and mention each once."""
        for sentence in sentences:
            if sentence not in self.notes:
                self.notes[sentence] = None
                self.progress.mention(sentence)

    def announce(self, messages: Iterable[str]) -> None:
        """Show messages, which are not kept."""
        for message in messages:
            self.progress.announce(message)


@contextmanager
def hold_folder(state: RunState) -> Iterator[None]:
    """Create the run folder where the run is new, and hold its lock, in the main process.

    Raises `UsageError` where the folder cannot be used.
    """
    with ExitStack() as stack:
        with state.processes.collective():
            if state.is_main:
                if not state.resume:
                    state.run.create()
                stack.enter_context(state.run.lock(LOCK_PATIENCE))
        yield


@contextmanager
def track(state: RunState) -> Iterator[None]:
    """Log a run to the trackers that were asked for, in the main process.

    Raises `PluginError` where a tracker of a new run cannot be opened.
    """
    with ExitStack() as stack:
        with state.processes.collective():
            if state.is_main:
                logs = open_logs(
                    state.config.log, state.registry, state.plan, state.run.path, state.progress.announce
                )
                state.logs = stack.enter_context(logs)
        yield


def require_same_model(processes: ProcessGroup, identity: Mapping[str, str]) -> None:
    """Raise `UsageError` if this process opened another model than the main process."""
    main = processes.share(dict(identity))
    if main != identity:
        name = first_difference(main, identity)
        raise UsageError(
            f"Process {processes.rank} opened another model than process 0: {name} is "
            f"{identity.get(name)!r}, not {main.get(name)!r}."
        )


def journals_of(run: Path) -> list[Path]:
    """Return the journals of a run and of its baselines; raises `UsageError` where there is none."""
    folders = [path for path in (run / "journal", *sorted(run.glob("baselines/*/journal"))) if path.is_dir()]
    if not folders:
        raise UsageError(
            f"The folder {str(run)!r} has no journal, so no answers can be reused.",
            hint="--reuse takes run folders, as 'harness eval --output DIR' writes them.",
        )
    return folders


def make_metrics_ready(prepared: Prepared) -> None:
    """Raise `HarnessError` for a metric that cannot be computed here, before a model is trained or asked."""
    metrics = prepared.session.registry.metrics
    for name in sorted({name for cell in prepared.plan.cells for name in cell.spec.metrics}):
        metric = metrics.get(name)
        if metric.ready is not None:
            metric.ready()


def new_folder(plan: Plan, created: str) -> Path:
    """Return the folder of a run that the user gives no name."""
    stamp = re.sub(r"[^0-9]", "", created)[:14]
    base = f"{stamp}-{_safe(plan.model.name.rpartition('/')[2])}"
    name, number = base, 2
    while (Path("runs") / name).exists():
        name, number = f"{base}-{number}", number + 1
    return Path("runs") / name


def open_manifest(state: RunState) -> Manifest:
    """Return the manifest of a run, a new one or that of the run that is resumed; it is on disk."""
    plan, run = state.plan, state.run
    if state.resume and (run.path / "manifest.json").is_file():
        manifest = Run.read_manifest(run.path)
        for leftover in run.path.glob("records/*/*/.*"):
            leftover.unlink(missing_ok=True)  # what a kill left half written
        version = installed_version("multilingual-harness")
        code = code_versions(plan, state.registry)
        resolution = check_unchanged(manifest, plan, state.catalog, version, code, run.path)
        resolved = resolution.model_dump(mode="json")
        if resolved != manifest.resolved:
            entries = planned_entries(plan, resolved)
            entries["tasks"] = further_metrics_kept(entries["tasks"], manifest.tasks)
            manifest = manifest.changed(**entries, **plan.shard)
        manifest = manifest.changed(resumed=[*manifest.resumed, now()])
    else:
        run.create()
        content = new_manifest(state.config, plan, state.registry, state.catalog, state.created)
        manifest = Manifest.model_validate({**content, **plan.shard})
    run.write_manifest(manifest)
    return manifest


def now() -> str:
    """Return the time, as files of a run keep it."""
    return datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")


def _safe(text: str) -> str:
    return re.sub(r"[^A-Za-z0-9._-]+", "-", text).strip(".-") or "model"


def data_remarks(state: RunState) -> Iterator[str]:
    """Yield the remarks on the test files of a plan, each set of items once; what cannot be read fails its cell."""
    reader = CellReader(state.registry, state.finder)
    for cell in {
        f"{cell.spec.task} {cell.test.untranslated.digest()}": cell for cell in state.plan.cells
    }.values():
        files = state.file_state(cell)
        for name, released in () if files is None else files.changed.items():
            clause = "" if released is None else f"; its content is that of the published file {released!r}"
            yield (
                f"{cell.spec.task} {cell.language.code}: {CHANGED} {name!r}: its SHA-256 is not that of a version that "
                f"the specs know{clause}"
            )
        is_known = cell.test.files.origin == "sample" or (files is not None and files.word == RELEASED)
        # Of texts that were translated before, the language is another one.
        if not is_known and cell.test.change is None and cell.text_language == cell.language:
            yield from _signs(state, reader, cell)


def _signs(state: RunState, reader: CellReader, cell: Cell) -> Iterator[str]:
    try:
        examples = list(islice(reader.examples(cell), _LOOKED_AT))
    except HarnessError:
        return
    reference = state.registry.kinds.get(cell.spec.kind).reference
    items = CheckedItems(
        spec=cell.spec,
        language=cell.language.code,
        axes=tuple(cell.view[axis] for axis in cell.spec.axes),
        found=cell.test,
        examples=examples,
        references=[reference(example) for example in examples],
        languages=state.catalog.task(cell.spec.task).languages,
    )
    for checks in state.registry.task_checks:
        yield from checks.load(checks.remarks)(items) if checks.remarks else ()
