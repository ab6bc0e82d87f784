"""Executes a plan: fits once per digest, predicts and scores cell by cell, isolates failures, keeps what is done."""

from __future__ import annotations

import json
import time
import traceback
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any

from harness.aggregation import aggregate_suites, aggregate_tasks
from harness.asking import Asker
from harness.capabilities import Adapter
from harness.cell_context import CellContexts
from harness.cell_keeping import CellKeeper
from harness.data.pool import CandidatePool
from harness.data.records import Prediction
from harness.data.sampling import draw
from harness.data.sources import DataFinder
from harness.documents import empty_result, pool_summary, release_summary, suite_summaries, task_summaries
from harness.errors import ContractError, HarnessError, StorageError
from harness.fitting import FitStore, Fitted, cache_folder
from harness.ledger import CellLedger
from harness.methods import Method, MethodContext
from harness.plan import Cell, FitPlan, Plan
from harness.processes import PeerError
from harness.progress import Progress
from harness.reading import CellItems, CellReader
from harness.registry import Registry
from harness.results import SCHEMA, RunFolder
from harness.run_state import RunState
from harness.streaming import HasNotices
from harness.task_intervals import with_task_intervals

__all__ = ["FitSummary", "HeldItems", "Runner"]

CHUNK = 2048
"""Items that a method gets in one call: enough to sort by length, few enough for progress and memory."""
WRITE_EVERY = 5.0
"""Seconds between two writes of ``results.json`` while cells are finishing."""
LIMIT_SEED = 0
"""Which items a limit keeps never depends on the training seed, so that seeds are compared on the same items."""


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
        asker: Asker,
        state: RunState,
    ) -> None:
        self._plan = plan
        self._registry = registry
        self._reader = CellReader(registry, finder)
        self._store = store
        self._folder = folder
        self._progress = progress
        self._asker = asker
        self._crew = asker.crew
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
            if self._crew.leads:
                self._folder.write_results(self._results())
            raise
        if self._crew.leads:
            # What is done is on disk before the intervals of means are computed from the records.
            self._folder.write_results(results := self._results())
            self._folder.write_results(self._with_intervals(results))
            self._announce(self._registry.run_finished(self._folder.path))

    def _take_finished(self) -> None:
        """Take over the cells that an earlier attempt finished."""
        finished = self._crew.share(dict(self._state.finished_cells()))
        for digest, kept in finished.items():
            self._cells[digest] = kept["result"]
            self._asker.counts.add({**kept["requests"], "asked": 0, "reused": kept["requests"]["planned"]})
            if kept["fit"] is not None:
                self._fits[kept["fit"]["key"]] = FitSummary(**kept["fit"])
        if finished and self._crew.leads:
            self._progress.announce(f"{len(finished)} of {len(self._plan.cells)} cells are done already.")

    def _run_groups(self, limit: int | None) -> None:
        left = [
            (fit, [cell for cell in cells if cell.digest not in self._cells])
            for fit, cells in self._plan.groups()
        ]
        if not any(cells for _, cells in left):
            return
        model = self._plan.model
        with self._crew.step():
            adapter = model.entry.open(model.description, model.options)
        try:
            with self._crew.step():
                self._state.keep_identity(dict(adapter.identity()), self._crew)
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
                with self._crew.step():
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
            asked = self._asker.wrap(chosen, identity)
            contexts = CellContexts(
                reader=self._reader,
                cells=cells,
                is_done=lambda cell: cell.digest in self._cells,
                limit=limit,
                limit_seed=LIMIT_SEED,
                folder=cache_folder(),
                progress=self._progress,
                check=self._asker.interruption.check,
            )
            for cell in cells:
                self._asker.interruption.check()
                self._run_cell(asked, cell, contexts)
                self._take_notices(chosen)
        finally:
            if fitted is not None:
                fitted.adapter.close()

    def _run_cell(self, adapter: Any, cell: Cell, contexts: CellContexts) -> None:
        started = time.monotonic()
        before = self._asker.counts.to_json()
        result: dict[str, Any] = {}
        try:
            with self._crew.step():
                result = self._evaluate(adapter, cell, contexts, started, before)
        except StorageError:
            raise
        except Exception as error:  # noqa: BLE001, RUF100  one failed cell leaves the others alone
            self._fail(cell, error)
            return
        finally:
            self._progress.finish()
        self._cells[cell.digest] = result
        if not self._crew.leads:
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
        if self._crew.leads:
            self._asker.begin = partial(self._state.begin_cell, cell.digest)
        with ExitStack() as stack:
            keeper = stack.enter_context(self._keeper(cell, adapter)) if self._crew.leads else None
            if method.prepare is not None:
                method.prepare(adapter, context)
            self._progress.start(f"{cell.title} ({cell.pairing.protocol})", len(items), "items")
            for chunk in items.chunks(max(1, len(items)) if method.needs_all else CHUNK):
                predictions = self._predict(adapter, method, chunk, context)
                if keeper is not None:
                    keeper.add(chunk, predictions)
            if keeper is None:
                return self._cell_head(cell)
            result = {
                **self._cell_result(cell, keeper.finish()),
                "size": items.size,
                "release": release_summary(cell, items.size),
                "pool": None if pool is None else pool_summary(pool),
                **({"details": context.details} if context.details else {}),
                "seconds": round(time.monotonic() - started, 3),
            }
        self._asker.journal.sync()
        after = self._asker.counts.to_json()
        fit = None if cell.fit is None else asdict(self._fits[cell.fit.key])
        requests = {name: after[name] - before[name] for name in after}
        self._state.keep_cell(cell.digest, {"result": result, "requests": requests, "fit": fit}, keeper.path)
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

    def _keeper(self, cell: Cell, adapter: Any) -> CellKeeper:
        kind, pairing = self._registry.kinds.get(cell.spec.kind), cell.pairing
        return CellKeeper(
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
        self._asker.meter = meter.move
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
        self._progress.announce(f"{cell.title} failed: {reason}")
        trace = "".join(traceback.format_exception(error))
        name = f"{cell.digest}.txt" if self._crew.leads else f"{cell.digest}-{self._crew.rank}.txt"
        file = self._folder.path / "failures" / name
        if self._crew.leads or not isinstance(error, PeerError):
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
        """Put what an adapter has to say of its answers among the run's notes, and tell it once."""
        own = list(adapter.notices()) if isinstance(adapter, HasNotices) else []
        for message in self._crew.gather(json.dumps(own).encode()):
            self.add_notes(json.loads(message))

    def add_notes(self, notes: Sequence[str]) -> None:
        """Put sentences among the run's notes, and tell each once."""
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
                "requests": self._asker.counts.to_json(),
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
            "notes": [*self._plan.notes, *self._notices],
            "cells": [*done, *skipped],
            "tasks": (rows := aggregate_tasks([*done, *skipped], task_summaries(self._plan))),
            "suites": aggregate_suites(rows, suite_summaries(self._plan)),
        }

    def _with_intervals(self, results: Mapping[str, Any]) -> dict[str, Any]:
        tasks, suites = task_summaries(self._plan), suite_summaries(self._plan)
        return with_task_intervals(results, tasks, suites, self._folder.records_of, self._registry.metrics)


@dataclass(frozen=True, slots=True, kw_only=True)
class FitSummary:
    """What results say of a fit."""

    key: str
    digest: str
    title: str
    stages: list[Any]


class HeldItems:
    """The items of a cell that are all in memory."""

    def __init__(self, pool: Sequence[Any], kept: Sequence[int]) -> None:
        self.pool = pool
        self.size = len(pool)
        self._kept = kept

    def __len__(self) -> int:
        """Return the number of items that a limit keeps."""
        return len(self._kept)

    def chunks(self, size: int) -> Iterator[list[Any]]:
        """Yield the items that are kept, `size` at a time."""
        for start in range(0, len(self._kept), size):
            yield [self.pool[index] for index in self._kept[start : start + size]]


class _Meter:
    """Moves the bar of a cell by the answers to a chunk of its items, which may be several requests each."""

    def __init__(self, progress: Progress, items: int) -> None:
        self._progress = progress
        self._items = items
        self._told = 0

    def move(self, done: int, total: int) -> None:
        moved = self._items * done // total if total else 0
        if moved > self._told:
            self._progress.advance(moved - self._told)
            self._told = moved
