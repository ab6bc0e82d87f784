"""The run of one cell: the model predicts its items, and their scores and records are kept."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any

from harness.data.records import Example, Prediction
from harness.errors import ContractError
from harness.kinds.methods import MethodContext
from harness.planning.plan import Cell
from harness.running.cell_reader import CellContexts, CellItems
from harness.running.cell_writer import CellWriter
from harness.running.inference import RequestCounts, Watch
from harness.running.sequential import reach
from harness.running.start import Work
from harness.running.summaries import pool_summary, release_summary
from harness.running.token_ledger import CellLedger
from harness.storage.results import CellResult, Look
from harness.storage.run_folder import FinishedCell

CHUNK = 2048
"""Items that a method gets in one call: enough to sort by length, few enough for progress and memory."""


def look(work: Work, adapter: Any, identity: Mapping[str, str], cell: Cell, contexts: CellContexts) -> None:
    """Ask samples of a cell's items, each larger than the one before, until no larger one is wanted.

    The journal has the answers to the smaller samples. The main process decides for all, from the scores alone.
    """
    sampling, processes, headline = work.sampling, work.command.processes, cell.spec.headline
    asking = replace(work.model, counts=RequestCounts())
    while (limit := sampling.wanted(cell.digest)) is not None:
        items, pool = contexts.reader.items(cell, limit=limit)
        context, watch = contexts.of(cell, items.pool, pool), CellWatch(work, cell)
        model = asking.wrap(adapter, identity, watch)
        with CellWriter(work.registry, work.run, cell, metrics=headline) as writer:
            for examples, answers in predict(work, cell, model, items, context, watch):
                if processes.is_main:
                    writer.add(examples, answers)
            far = processes.share(reach(writer.measure(), headline) if processes.is_main else None)
        sampling.add(cell.digest, Look(limit=limit, n=len(items), size=items.size, half_width=far))
    sampling.asked[cell.digest] = sampling.asked.get(cell.digest, 0) + asking.counts.asked


def evaluate(
    work: Work, adapter: Any, identity: Mapping[str, str], cell: Cell, contexts: CellContexts
) -> CellResult:
    """Return the result of a cell, which the main process scores and keeps."""
    started, before = time.monotonic(), work.model.counts.to_json()
    items, pool = contexts.reader.items(cell, limit=work.sampling.size(cell.digest))
    context, watch = contexts.of(cell, items.pool, pool), CellWatch(work, cell)
    model = work.model.wrap(adapter, identity, watch)
    remark = work.registry.kinds.get(cell.spec.kind).remark
    if remark is not None and (sentence := remark(list(items), items.pool)):
        work.note([f"{cell.spec.task}:{cell.language.code}: {sentence}"])
    predictions = predict(work, cell, model, items, context, watch)
    if not work.command.processes.is_main:
        for _ in predictions:
            pass
        return CellResult(**work.head(cell), status="ok", metrics={})
    numbers = score(work, cell, model, predictions)
    work.model.counts.move(work.sampling.asked.get(cell.digest, 0))
    result = CellResult(
        **work.head(cell),
        status="ok",
        reason="" if numbers["metrics"] else "the test file has no labels: predicted, not scored",
        **numbers,
        size=items.size,
        release=release_summary(cell, items.size),
        pool=None if pool is None else pool_summary(pool),
        seconds=round(time.monotonic() - started, 3),
    )
    if looks := work.sampling.looks.get(cell.digest):
        result = result.changed(looks=looks, stopped=work.sampling.stopped(cell.digest))
    if context.details:
        result = result.changed(details=dict(context.details))
    work.model.journal.sync()
    requests = {name: count - before[name] for name, count in work.model.counts.to_json().items()}
    fitted = None if cell.fit is None else work.fits[cell.fit.key]
    work.run.keep(FinishedCell(result=result, requests=requests, fit=fitted))
    return result


class CellWatch(Watch):
    """Follows the requests of a cell: marks it as started, and moves its bar by the answers to a chunk of items."""

    def __init__(self, work: Work, cell: Cell) -> None:
        self._work = work
        self._cell = cell
        self._items = self._shown = 0

    def start(self, items: int) -> None:
        """Begin a chunk of so many items, which may be several requests each."""
        self._items, self._shown = items, 0

    def asking(self) -> None:
        """Write down that the cell is started, so that its data may not change any more."""
        if self._work.command.processes.is_main:
            self._work.run.begin(self._cell.digest)

    def answered(self, done: int, total: int) -> None:
        """Move the bar."""
        moved = self._items * done // total if total else 0
        if moved > self._shown:
            self._work.command.progress.advance(moved - self._shown)
            self._shown = moved


def predict(
    work: Work, cell: Cell, model: Any, items: CellItems, context: MethodContext, watch: CellWatch
) -> Iterator[tuple[list[Example], list[Prediction]]]:
    """Yield the items of a cell, chunk by chunk, with what the model answered.

    Raises `ContractError` where a method answers other items than it was given.
    """
    method = cell.pairing.method
    if method.prepare is not None:
        method.prepare(model, context)
    work.command.progress.start(f"{cell.title} ({cell.pairing.protocol})", len(items), "items")
    for chunk in items.chunks(max(1, len(items)) if method.needs_all else CHUNK):
        watch.start(len(chunk))
        predictions = method.predict(model, chunk, context)
        if [prediction.id for prediction in predictions] != [example.id for example in chunk]:
            raise ContractError(
                f"The method {method.name!r} answered {len(predictions)} items for {len(chunk)}, or in another order."
            )
        watch.answered(1, 1)
        yield chunk, predictions


def score(
    work: Work, cell: Cell, model: Any, predictions: Iterable[tuple[list[Example], list[Prediction]]]
) -> dict[str, Any]:
    """Return the numbers of a cell; its records are on disk, unless scoring fails."""
    registry, pairing = work.registry, cell.pairing
    ledger = CellLedger(registry.kinds.get(cell.spec.kind), cell.spec, pairing, cell.text_language, model)
    with CellWriter(registry, work.run, cell, ledger) as writer:
        for examples, answers in predictions:
            writer.add(examples, answers)
        return writer.finish()
