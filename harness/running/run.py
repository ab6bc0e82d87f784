"""Executes a plan: cells that share a fitted model, scored and kept one by one, and the results of the run."""

from __future__ import annotations

import datetime
import json
import re
import time
import traceback
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from harness.data.pool import CandidatePool
from harness.data.records import Prediction
from harness.data.sampling import LIMIT_SEED, draw
from harness.data.sources import DataFinder
from harness.data.translation.guards import translation_notes
from harness.errors import ContractError, HarnessError, StorageError, UsageError
from harness.kinds.methods import Method, MethodContext
from harness.metrics.aggregation import aggregate_suites, aggregate_tasks
from harness.metrics.task_intervals import add_task_intervals
from harness.models.adapters import ModelReference
from harness.models.capabilities import Adapter
from harness.models.requests import HasNotices
from harness.planning.lock_file import locked_model
from harness.planning.plan import Cell, FitPlan, Plan, RunConfig, require_cells
from harness.planning.shards import shard_summary
from harness.progress import Progress, SilentProgress
from harness.registry.registry import Registry
from harness.registry.requirement import installed_version
from harness.running.cell_reader import CellItems, CellReader, HeldItems
from harness.running.cell_writer import CellWriter
from harness.running.fit_store import FitStore, Fitted
from harness.running.inference import CachedModel
from harness.running.manifest import new_manifest, planned_entries
from harness.running.method_context import CellContexts
from harness.running.processes import PeerError, ProcessGroup
from harness.running.resume import check_unchanged
from harness.running.session import LOCK, Prepared, folder_in_use_error
from harness.running.signals import Interrupted, Interruption
from harness.running.summaries import (
    empty_result,
    pool_summary,
    release_summary,
    suite_summaries,
    task_summaries,
)
from harness.running.token_ledger import CellLedger, unknown_notes
from harness.storage.clean_text import clean_text
from harness.storage.file_lock import FileLock
from harness.storage.files import cache_folder
from harness.storage.journal import Journal
from harness.storage.run_folder import SCHEMA, Run, RunFolder, RunState, first_difference

__all__ = ["Execution", "FitSummary", "Runner", "execute"]

CHUNK = 2048
"""Items that a method gets in one call: enough to sort by length, few enough for progress and memory."""
WRITE_EVERY = 5.0
"""Seconds between two writes of ``results.json`` while cells are finishing."""


class Runner:
    """One run of one model, from its plan to the results on disk.

    All processes of a run walk through the same cells; each asks the model its share, and the leading one scores and
    writes.
    """

    def __init__(
        self,
        plan: Plan,
        registry: Registry,
        finder: DataFinder,
        store: FitStore,
        folder: RunFolder,
        progress: Progress,
        cached_model: CachedModel,
        state: RunState,
    ) -> None:
        self._plan = plan
        self._registry = registry
        self._reader = CellReader(registry, finder)
        self._store = store
        self._folder = folder
        self._progress = progress
        self._cached_model = cached_model
        self._processes = cached_model.processes
        self._state = state
        self._cells: dict[str, dict[str, Any]] = {}
        self._fits: dict[str, FitSummary] = {}
        self._notices: dict[str, None] = {}
        self._header: dict[str, Any] = {}
        self._started = time.monotonic()
        self._written = 0.0

    def run(self, header: dict[str, Any], *, limit: int | None) -> None:
        """Run all cells; the leading process writes ``results.json``, after Ctrl-C too.

        Args:
            header: The ``run`` object of the results, without its counts.
            limit: At most so many items a cell.

        Raises:
            StorageError: Where nothing can be kept any more.
            PeerError: Where another process could not open the model.
        """
        self._header = header
        self._take_finished()
        try:
            self._run_groups(limit)
        except BaseException:
            if self._processes.is_main:
                self._folder.write_results(self._results())
            raise
        if self._processes.is_main:
            # What is done is on disk before the intervals of means are computed from the records.
            self._folder.write_results(results := self._results())
            self._folder.write_results(self._with_intervals(results))
            self._announce(self._registry.run_finished(self._folder.path))

    def _take_finished(self) -> None:
        """Load the cells that an earlier attempt finished."""
        finished = self._processes.share(dict(self._state.finished_cells()))
        for digest, kept in finished.items():
            self._cells[digest] = kept["result"]
            self._cached_model.counts.add(
                {**kept["requests"], "asked": 0, "reused": kept["requests"]["planned"]}
            )
            if kept["fit"] is not None:
                self._fits[kept["fit"]["key"]] = FitSummary(**kept["fit"])
        if finished and self._processes.is_main:
            self._progress.announce(f"{len(finished)} of {len(self._plan.cells)} cells are done already.")

    def _run_groups(self, limit: int | None) -> None:
        left = [
            (fit, [cell for cell in cells if cell.digest not in self._cells])
            for fit, cells in self._plan.groups()
        ]
        if not any(cells for _, cells in left):
            return
        model = self._plan.model
        with self._processes.collective(), self._cached_model.interruption.immediate():
            adapter = model.entry.open(model.description, model.options)
        try:
            with self._processes.collective():
                identity = dict(adapter.identity())
                _require_same_model(self._processes, identity)
                self._state.keep_identity(identity, write=self._processes.is_main)
            for fit, cells in left:
                if cells:
                    self._run_group(adapter, fit, cells, limit)
        finally:
            adapter.close()

    def _run_group(
        self, adapter: Adapter, fit: FitPlan | None, cells: Sequence[Cell], limit: int | None
    ) -> None:
        fitted: Fitted | None = None
        if fit is not None:
            try:
                with self._processes.collective():
                    fitted = self._store.fit(adapter, fit)
            except StorageError:
                raise
            except Exception as error:  # noqa: BLE001, RUF100  one failed fit leaves the other cells alone
                for cell in cells:
                    self._fail(cell, error)
                return
            self._fits[fit.key] = FitSummary(
                key=fit.key, digest=fitted.digest, title=fit.title, stages=list(fitted.stages)
            )
        chosen = adapter if fitted is None else fitted.adapter
        try:
            identity = {**chosen.identity(), **({} if fitted is None else {"harness.fit": fitted.digest})}
            asked = self._cached_model.wrap(chosen, identity)
            contexts = CellContexts(
                reader=self._reader,
                cells=cells,
                is_done=lambda cell: cell.digest in self._cells,
                limit=limit,
                limit_seed=LIMIT_SEED,
                folder=cache_folder(),
                progress=self._progress,
                check=self._cached_model.interruption.check,
            )
            for cell in cells:
                self._cached_model.interruption.check()
                self._run_cell(asked, cell, contexts)
                self._take_notices(chosen)
        finally:
            if fitted is not None:
                fitted.adapter.close()

    def _run_cell(self, adapter: Any, cell: Cell, contexts: CellContexts) -> None:
        started = time.monotonic()
        before = self._cached_model.counts.to_json()
        result: dict[str, Any] = {}
        try:
            with self._processes.collective():
                result = self._evaluate(adapter, cell, contexts, started, before)
        except StorageError:
            raise
        except Exception as error:  # noqa: BLE001, RUF100  one failed cell leaves the others alone
            self._fail(cell, error)
            return
        finally:
            self._progress.finish()
        self._cells[cell.digest] = result
        if not self._processes.is_main:
            return
        self._announce(self._registry.cell_finished(result))
        if time.monotonic() - self._written > WRITE_EVERY:
            self._folder.write_results(self._results())
            self._written = time.monotonic()

    def _evaluate(
        self, adapter: Any, cell: Cell, contexts: CellContexts, started: float, before: Mapping[str, int]
    ) -> dict[str, Any]:
        """Ask all items of a cell; in the leading process score them, and write records and result."""
        items, pool = self._items(cell, contexts.limit)
        context = contexts.of(cell, items.pool, pool)
        method = cell.pairing.method
        if self._processes.is_main:
            self._cached_model.begin = partial(self._state.begin_cell, cell.digest)
        with ExitStack() as stack:
            cell_writer = (
                stack.enter_context(self._cell_writer(cell, adapter)) if self._processes.is_main else None
            )
            if method.prepare is not None:
                method.prepare(adapter, context)
            self._progress.start(f"{cell.title} ({cell.pairing.protocol})", len(items), "items")
            for chunk in items.chunks(max(1, len(items)) if method.needs_all else CHUNK):
                predictions = self._predict(adapter, method, chunk, context)
                if cell_writer is not None:
                    cell_writer.add(chunk, predictions)
            if cell_writer is None:
                return self._cell_head(cell)
            result = {
                **self._cell_result(cell, cell_writer.finish()),
                "size": items.size,
                "release": release_summary(cell, items.size),
                "pool": None if pool is None else pool_summary(pool),
                **({"details": context.details} if context.details else {}),
                "seconds": round(time.monotonic() - started, 3),
            }
        self._cached_model.journal.sync()
        after = self._cached_model.counts.to_json()
        fit = None if cell.fit is None else asdict(self._fits[cell.fit.key])
        requests = {name: after[name] - before[name] for name in after}
        self._state.keep_cell(
            cell.digest, {"result": result, "requests": requests, "fit": fit}, cell_writer.path
        )
        return result

    def _items(self, cell: Cell, limit: int | None) -> tuple[CellItems | HeldItems, CandidatePool | None]:
        """Return the items of a cell, which are streamed unless its kind or method looks at all of them."""
        if not self._reader.needs_list(cell):
            return self._reader.stream(cell, limit=limit, seed=LIMIT_SEED), None
        examples, pool = self._reader.read(cell)
        language = None if cell.spec.pairs(cell.language.code) else cell.language.code
        ids = [example.id for example in examples]
        kept = draw(ids, limit, seed=LIMIT_SEED, task=cell.spec.task, language=language)
        return HeldItems(examples, kept), pool

    def _cell_writer(self, cell: Cell, adapter: Any) -> CellWriter:
        kind, pairing = self._registry.kinds.get(cell.spec.kind), cell.pairing
        return CellWriter(
            self._registry,
            self._folder,
            spec=cell.spec,
            language=cell.language.code,
            method=cell.pairing.method.name,
            digest=cell.digest,
            gold=cell.gold,
            text_language=cell.text_language.code,
            ledger=CellLedger(kind, cell.spec, pairing, cell.text_language, adapter),
        )

    def _predict(
        self, adapter: Any, method: Method, chunk: Sequence[Any], context: MethodContext
    ) -> list[Prediction]:
        meter = _Meter(self._progress, len(chunk))
        self._cached_model.meter = meter.move
        answered = method.predict(adapter, chunk, context)
        if [prediction.id for prediction in answered] != [example.id for example in chunk]:
            raise ContractError(
                f"The method {method.name!r} answered {len(answered)} items for {len(chunk)}, or in another order."
            )
        meter.move(1, 1)
        return answered

    def _cell_result(self, cell: Cell, numbers: Mapping[str, Any]) -> dict[str, Any]:
        reason = "" if numbers["metrics"] else "the test file has no labels: predicted, not scored"
        return {**self._cell_head(cell), "status": "ok", "reason": reason, **numbers}

    def _cell_head(self, cell: Cell) -> dict[str, Any]:
        fitted = self._fits.get(cell.fit.key) if cell.fit is not None else None
        return {
            "task": cell.spec.task,
            "version": cell.spec.version,
            "language": cell.language.code,
            "split": cell.test.files.split_used,
            "stands_in": cell.test.files.stands_in,
            "provenance": cell.provenance,
            "protocol": cell.pairing.protocol,
            "fit": "none" if cell.fit is None else (fitted.digest if fitted is not None else None),
            "method": cell.pairing.method.name,
            "view": dict(sorted(cell.view.items())),
            "seed": cell.seed,
            "prompt": None
            if cell.prompt is None
            else cell.prompt.to_json(cell.prompt.compiled(cell.prompt.instruction)),
            "digest": cell.digest,
            "data": cell.test.to_json(),
            **({} if cell.learning is None else {"learning": cell.learning.to_json()}),
        }

    def _fail(self, cell: Cell, error: Exception) -> None:
        reason = str(error) if isinstance(error, HarnessError) else f"{type(error).__name__}: {error}"
        reason = clean_text(reason)
        self._progress.announce(f"{cell.title} failed: {reason}")
        trace = "".join(traceback.format_exception(error))
        name = (
            f"{cell.digest}.txt" if self._processes.is_main else f"{cell.digest}-{self._processes.rank}.txt"
        )
        file = self._folder.path / "failures" / name
        if self._processes.is_main or not isinstance(error, PeerError):
            self._state.write(file, f"{cell.title}\n{trace}")
        self._cells[cell.digest] = {
            **self._cell_head(cell),
            "n": 0,
            "status": "failed",
            "reason": reason,
            "traceback": f"failures/{file.name}",
            "metrics": {},
            "truncated": 0,
            "unparsed": 0,
            "seconds": 0.0,
        }

    def _take_notices(self, adapter: Any) -> None:
        """Add an adapter's notes on its answers to the run's notes, and announce each once."""
        own = list(adapter.notices()) if isinstance(adapter, HasNotices) else []
        for message in self._processes.gather(json.dumps(own).encode()):
            self.add_notes(json.loads(message))

    def add_notes(self, notes: Sequence[str]) -> None:
        """Add sentences to the run's notes, and announce each once."""
        for note in notes:
            if note not in self._notices:
                self._notices[note] = None
                self._progress.announce(note)

    def _announce(self, messages: Sequence[str]) -> None:
        for message in messages:
            self._progress.announce(message)

    def _results(self) -> dict[str, Any]:
        done = [
            self._cells.get(cell.digest)
            or {**self._cell_head(cell), **empty_result("skipped", "the run was stopped before this cell")}
            for cell in self._plan.cells
        ]
        skipped = [
            {
                "task": skip.task,
                "language": skip.language,
                "protocol": skip.protocol,
                "view": dict(skip.view),
                **empty_result("skipped", skip.reason),
            }
            for skip in self._plan.skipped
        ]
        description = self._plan.model.description
        return {
            "schema": SCHEMA,
            "run": {
                **self._header,
                "seconds": round(time.monotonic() - self._started, 2),
                "requests": self._cached_model.counts.to_json(),
            },
            "model": {
                "adapter": description.adapter,
                "ref": description.ref,
                "revision": description.revision,
                "parameters": description.parameters,
                "metadata": {**description.metadata, **self._state.identity},
            },
            "fits": {
                fitted.digest: {"title": fitted.title, "stages": fitted.stages}
                for fit in self._plan.fits
                if (fitted := self._fits.get(fit.key)) is not None
            },
            "notes": [*unknown_notes(done), *self._plan.notes, *self._notices],
            "cells": [*done, *skipped],
            "tasks": (rows := aggregate_tasks([*done, *skipped], task_summaries(self._plan))),
            "suites": aggregate_suites(rows, suite_summaries(self._plan)),
        }

    def _with_intervals(self, results: Mapping[str, Any]) -> dict[str, Any]:
        tasks, suites = task_summaries(self._plan), suite_summaries(self._plan)
        return add_task_intervals(results, tasks, suites, self._folder.records_of, self._registry.metrics)


@dataclass(frozen=True, slots=True, kw_only=True)
class FitSummary:
    """What results say of a fit."""

    key: str
    digest: str
    title: str
    stages: list[Any]


def _require_same_model(processes: ProcessGroup, identity: Mapping[str, str]) -> None:
    """Raise `UsageError` if this process opened another model than the main process."""
    main = processes.share(dict(identity))
    if main != identity:
        name = first_difference(main, identity)
        raise UsageError(
            f"Process {processes.rank} opened another model than process 0: {name} is "
            f"{identity.get(name)!r}, not {main.get(name)!r}."
        )


class _Meter:
    """Moves the bar of a cell by the answers to a chunk of its items, which may be several requests each."""

    def __init__(self, progress: Progress, items: int) -> None:
        self._progress = progress
        self._items = items
        self._shown = 0

    def move(self, done: int, total: int) -> None:
        moved = self._items * done // total if total else 0
        if moved > self._shown:
            self._progress.advance(moved - self._shown)
            self._shown = moved


LOCK_PATIENCE = 5.0
"""Seconds that a killed run's other processes may take to notice that it is gone."""


def execute(
    config: RunConfig,
    prepared: Prepared,
    progress: Progress,
    *,
    created: str | None = None,
    processes: ProcessGroup | None = None,
    resume: bool = False,
) -> Path:
    """Run prepared plans and return the run folder.

    Args:
        config: What was asked for.
        prepared: The plans.
        progress: Shows how far the run is, in the leading process.
        created: When the run began, by default now.
        processes: The processes that share the work.
        resume: Whether ``config.output`` is a run that is resumed.

    Raises:
        UsageError: A run to reuse has no journal, or another command is using the folder.
        Interrupted: After Ctrl-C, with the command that resumes the run.
        StorageError: Where the run folder or the cache can no longer be written.
    """
    require_cells(prepared.plan)
    _make_metrics_ready(prepared)
    if not resume:
        # A run that ends because a package is missing would leave a folder that the same command rejects.
        prepared.plan.model.entry.make_ready()
    journals = [path for run in config.reuse for path in _journals(run)]
    processes = processes or ProcessGroup()
    created = processes.share(created or datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"))
    path = Path(processes.share(str(config.output or Path("runs") / _run_name(prepared.plan, created))))
    interruption = Interruption(progress.announce)
    execution = Execution(
        config=config,
        prepared=prepared,
        progress=progress if processes.is_main else SilentProgress(),
        created=created,
        processes=processes,
        interruption=interruption,
        resume=resume,
        journals=journals,
    )
    resume_hint = f"Resume it with: harness eval --resume {path}"
    try:
        with interruption.listening():
            execution.run(path)
    except KeyboardInterrupt as error:
        raise Interrupted(f"Stopped. All answers so far are kept. {resume_hint}") from error
    except StorageError as error:
        if "--resume" not in (error.hint or "") and (path / "manifest.json").is_file():
            error.hint = " ".join(filter(None, (error.hint, "All answers so far are kept.", resume_hint)))
        raise
    return path


@dataclass(frozen=True, slots=True, kw_only=True)
class Execution:
    """One command's run of a model and of its baselines."""

    config: RunConfig
    prepared: Prepared
    progress: Progress
    created: str
    processes: ProcessGroup = field(default_factory=ProcessGroup)
    interruption: Interruption = field(default_factory=Interruption)
    resume: bool = False
    journals: Sequence[Path] = ()
    """Journals of other runs whose answers are reused."""

    def run(self, path: Path) -> None:
        """Run everything below `path`, which no other command may use meanwhile."""
        lock = FileLock(path / LOCK)
        folder = RunFolder(path)
        with self.processes.collective():
            if self.processes.is_main:
                if not self.resume:
                    folder.create()
                if not lock.acquire(patience=LOCK_PATIENCE):
                    raise folder_in_use_error(path, lock)
        try:
            self._run_one(self.prepared.plan, folder)
            for plan in self.prepared.baselines:
                if plan.cells:
                    self.progress.announce(f"Now the baseline {plan.model.reference}.")
                    self._run_one(plan, RunFolder(path / "baselines" / _safe(plan.model.reference.ref)))
        finally:
            lock.release()

    def _run_one(self, plan: Plan, folder: RunFolder) -> None:
        registry = self.prepared.session.registry
        with self.processes.collective():
            manifest = self.processes.share(self._manifest(plan, folder) if self.processes.is_main else None)
            if not (folder.path / "manifest.json").is_file():
                raise StorageError(
                    f"Process {self.processes.rank} does not see the run folder {str(folder.path)!r}.",
                    hint="Give --output a folder that all hosts share.",
                )
            journal = Journal.open(folder.path / "journal", self.processes.rank, reuse=self.journals)
        try:
            self._announce_dropped(journal)
            cached_model = CachedModel(
                processes=self.processes, journal=journal, interruption=self.interruption
            )
            store = FitStore(
                cache_folder(), self.prepared.finder, self.progress, self.processes, self.interruption
            )
            state = RunState(folder, manifest, self._check_model(plan))
            runner = Runner(
                plan, registry, self.prepared.finder, store, folder, self.progress, cached_model, state
            )
            header = {
                "id": folder.path.name,
                "created": manifest["created"],
                "harness": installed_version("multilingual-harness"),
                "data": self.config.data.mode,
                "processes": self.processes.count,
                "resumed": len(manifest["resumed"]),
            }
            self._translate(plan, state, runner)
            with self.processes.collective():
                runner.run(header, limit=self.config.limit)
        finally:
            journal.close()

    def _translate(self, plan: Plan, state: RunState, runner: Runner) -> None:
        """Translate what is missing for the plan's variants and training sets, before a model takes the memory.

        The leading process translates; the others learn its engines and find everything in the store.
        """
        found = {
            data.digest(): data
            for cell in plan.cells
            for data in (
                cell.test,
                *(own for stage in (cell.fit.stages if cell.fit else ()) for _, own in stage.train),
            )
            if data.change is not None
        }
        if not found:
            return
        finder = self.prepared.finder
        with self.processes.collective():
            if self.processes.is_main:
                with self.interruption.immediate():
                    finder.translate(found.values(), self.progress)
                runner.add_notes(translation_notes(finder.translations))
            finder.translations.adopt(self.processes.share(finder.translations.engines()))
            state.keep_translators(finder.translations.engines(), write=self.processes.is_main)

    def _check_model(self, plan: Plan) -> Callable[[Mapping[str, str]], None]:
        """Return a check that the model is the locked one; baselines are no subject of locks."""
        locked = self.prepared.locked
        if locked is None or plan is not self.prepared.plan:
            return lambda _: None
        return partial(locked_model, locked, plan.model.description)

    def _manifest(self, plan: Plan, folder: RunFolder) -> dict[str, Any]:
        """Return the manifest of a run, a new one or that of the run that is resumed."""
        registry, catalog = self.prepared.session.registry, self.prepared.session.catalog
        if self.resume and (folder.path / "manifest.json").is_file():
            manifest = Run.read_manifest(folder.path)
            for leftover in folder.path.glob("records/*/*/.*"):
                leftover.unlink(missing_ok=True)  # what a kill left half written
            version = installed_version("multilingual-harness")
            resolved = check_unchanged(manifest, plan, catalog, version, folder.path).model_dump(mode="json")
            if resolved != manifest["resolved"]:
                manifest |= planned_entries(plan, resolved) | self._shard_summary(plan)
            now = datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
            manifest["resumed"] = [*manifest["resumed"], now]
        else:
            folder.create()
            manifest = new_manifest(self.config, plan, registry, catalog, self.created)
            manifest |= self._shard_summary(plan)
        folder.write_manifest(manifest)
        return manifest

    def _shard_summary(self, plan: Plan) -> dict[str, Any]:
        shard = self.prepared.shard
        return {} if shard is None else shard_summary(self.prepared.whole[id(plan)], shard)

    def _announce_dropped(self, journal: Journal) -> None:
        if journal.dropped:
            places = "place is" if journal.dropped == 1 else "places are"
            self.progress.announce(
                f"{journal.dropped} {places} damaged in the journal; the answers there are asked again."
            )


def _journals(run: Path) -> list[Path]:
    """Return the journals of a run and of its baselines; raises `UsageError` where there is none."""
    folders = [path for path in (run / "journal", *sorted(run.glob("baselines/*/journal"))) if path.is_dir()]
    if not folders:
        raise UsageError(
            f"The folder {str(run)!r} has no journal, so no answers can be reused.",
            hint="--reuse takes run folders, as 'harness eval --output DIR' writes them.",
        )
    return folders


def _make_metrics_ready(prepared: Prepared) -> None:
    """Raise `HarnessError` for a metric that cannot be computed here, before a model is trained or asked."""
    metrics = prepared.session.registry.metrics
    for name in sorted({name for cell in prepared.plan.cells for name in cell.spec.metrics}):
        metric = metrics.get(name)
        if metric.ready is not None:
            metric.ready()


def _run_name(plan: Plan, created: str) -> str:
    stamp = re.sub(r"[^0-9]", "", created)[:14]
    reference: ModelReference = plan.model.reference
    base = f"{stamp}-{_safe(reference.ref.rstrip('/').rsplit('/', 1)[-1])}"
    name, number = base, 2
    while (Path("runs") / name).exists():
        name, number = f"{base}-{number}", number + 1
    return name


def _safe(text: str) -> str:
    return re.sub(r"[^A-Za-z0-9._-]+", "-", text).strip(".-") or "model"
