"""The run of one cell: the model predicts its items, and their scores and records are kept."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from hashlib import sha256
from typing import Any

from harness.data.records import LIMIT_SEED, CandidatePool, Example, Prediction
from harness.errors import ContractError
from harness.kinds.methods import LearningContext, MethodContext
from harness.planning.plan import Cell
from harness.running.cell_counts import CellLedger
from harness.running.cell_reader import CellItems, CellReader
from harness.running.cell_writer import CellWriter
from harness.running.inference import RequestCounts, Watch
from harness.running.manifest import pool_summary, release_summary
from harness.running.sequential import reach
from harness.running.start import RunState
from harness.storage.files import cache_folder
from harness.storage.results import CellResult, Look
from harness.storage.run_folder import FinishedCell

CHUNK = 2048
"""Items that a method gets in one call: enough to sort by length, few enough for progress and memory."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CellGroup:
    """Cells that one opened model is asked for; their methods share a cache."""

    adapter: Any
    identity: Mapping[str, str]
    """Of the model, with the digest of its fit."""
    reader: CellReader
    cells: Sequence[Cell]
    cache: dict[str, Any] = field(default_factory=dict)


def look(state: RunState, group: CellGroup, cell: Cell) -> None:
    """Ask samples of a cell's items, each larger than the one before, until no larger one is wanted.

    The journal has the answers to the smaller samples. The main process decides for all, from the scores alone.
    """
    sampling, processes, headline = state.sampling, state.processes, cell.spec.headline
    asking = replace(state.model, counts=RequestCounts())
    while (limit := sampling.wanted(cell.digest)) is not None:
        items, pool = group.reader.items(cell, limit=limit)
        context, watch = method_context(state, group, cell, items.pool, pool), CellWatch(state, cell)
        model = asking.wrap(group.adapter, group.identity, watch)
        with CellWriter(state.registry, state.run, cell, metrics=headline) as writer:
            for examples, answers in predict(state, cell, model, items, context, watch):
                if processes.is_main:
                    writer.add(examples, answers)
            far = processes.share(reach(writer.measure(), headline) if processes.is_main else None)
        sampling.add(cell.digest, Look(limit=limit, n=len(items), size=items.size, half_width=far))
    sampling.asked[cell.digest] = sampling.asked.get(cell.digest, 0) + asking.counts.asked


def evaluate(state: RunState, group: CellGroup, cell: Cell) -> CellResult:
    """Return the result of a cell, which the main process scores and keeps; its records are on disk."""
    started, counts = time.monotonic(), state.model.counts
    before = counts.to_json()
    items, pool = group.reader.items(cell, limit=state.sampling.size(cell.digest))
    context, watch = method_context(state, group, cell, items.pool, pool), CellWatch(state, cell)
    model = state.model.wrap(group.adapter, group.identity, watch)
    kind = state.registry.kinds.get(cell.spec.kind)
    if kind.remark is not None and (sentence := kind.remark(list(items), items.pool)):
        state.note([f"{cell.spec.task}:{cell.language.code}: {sentence}"])
    predictions = predict(state, cell, model, items, context, watch)
    if not state.is_main:
        for _ in predictions:
            pass
        return CellResult(**state.head(cell), status="ok", metrics={})
    ledger = CellLedger(kind, cell.spec, cell.pairing, cell.text_language, model)
    with CellWriter(state.registry, state.run, cell, ledger) as writer:
        for examples, answers in predictions:
            writer.add(examples, answers)
        numbers = writer.finish()
    counts.move(state.sampling.asked.get(cell.digest, 0))
    result = CellResult(
        **state.head(cell),
        status="ok",
        reason="" if numbers["metrics"] else "the test file has no labels: predicted, not scored",
        **numbers,
        size=items.size,
        release=release_summary(cell, items.size),
        pool=None if pool is None else pool_summary(pool),
        seconds=round(time.monotonic() - started, 3),
    )
    if looks := state.sampling.looks.get(cell.digest):
        result = result.changed(looks=looks, stopped=state.sampling.stopped(cell.digest))
    if context.details:
        result = result.changed(details=dict(context.details))
    state.model.journal.sync()
    requests = {name: count - before[name] for name, count in counts.to_json().items()}
    fitted = None if cell.fit is None else state.fits[cell.fit.key]
    state.run.keep(FinishedCell(result=result, requests=requests, fit=fitted))
    return result


class CellWatch(Watch):
    """Follows the requests of a cell: marks it as started, and moves its bar by the answers to a chunk of items."""

    def __init__(self, state: RunState, cell: Cell) -> None:
        self._state = state
        self._cell = cell
        self._items = self._shown = 0

    def start(self, items: int) -> None:
        """Begin a chunk of so many items, which may be several requests each."""
        self._items, self._shown = items, 0

    def asking(self) -> None:
        """Write down that the cell is started, so that its data may not change any more."""
        if self._state.is_main:
            self._state.run.begin(self._cell.digest)

    def answered(self, done: int, total: int) -> None:
        """Move the bar."""
        moved = self._items * done // total if total else 0
        if moved > self._shown:
            self._state.progress.advance(moved - self._shown)
            self._shown = moved


def predict(
    state: RunState, cell: Cell, model: Any, items: CellItems, context: MethodContext, watch: CellWatch
) -> Iterator[tuple[list[Example], list[Prediction]]]:
    """Yield the items of a cell, chunk by chunk, with what the model answered.

    Raises `ContractError` where a method answers other items than it was given.
    """
    method = cell.pairing.method
    if method.prepare is not None:
        method.prepare(model, context)
    state.progress.start(f"{cell.title} ({cell.pairing.protocol})", len(items), "items")
    for chunk in items.chunks(max(1, len(items)) if method.needs_all else CHUNK):
        watch.start(len(chunk))
        predictions = method.predict(model, chunk, context)
        if [prediction.id for prediction in predictions] != [example.id for example in chunk]:
            raise ContractError(
                f"The method {method.name!r} answered {len(predictions)} items for {len(chunk)}, or in another order."
            )
        watch.answered(1, 1)
        yield chunk, predictions


def method_context(
    state: RunState,
    group: CellGroup,
    cell: Cell,
    pool: Sequence[Any] = (),
    candidates: CandidatePool | None = None,
) -> MethodContext:
    """Return the context of a cell for its method, whose pools are needed only where its items are asked."""
    return MethodContext(
        spec=cell.spec,
        language=cell.text_language,
        cell_language=cell.language,
        protocol=cell.pairing.protocol,
        seed=cell.seed,
        pool=pool,
        candidates=candidates,
        cache=group.cache,
        progress=state.progress,
        prompter=group.reader.prompter(cell),
        digest=cell.digest,
        learning=LearningContext() if cell.learning is None else _learning_context(state, group, cell),
    )


def _learning_context(state: RunState, group: CellGroup, cell: Cell) -> LearningContext:
    assert cell.learning is not None

    def peers() -> list[MethodContext]:
        name = cell.pairing.method.name
        return [
            method_context(state, group, candidate)
            for candidate in group.cells
            if candidate.pairing.method.name == name
            and (candidate.digest == cell.digest or candidate.digest not in state.cells)
        ]

    return LearningContext(
        view=cell.view,
        train_language=cell.learning.language,
        seeds=cell.learning.seeds,
        data=_data_of(cell),
        split=partial(group.reader.learning, cell),
        test=partial(group.reader.stream, cell, limit=state.config.limit, seed=LIMIT_SEED),
        peers=peers,
        folder=cache_folder(),
        check=state.interruption.check,
    )


def _data_of(cell: Cell) -> str:
    assert cell.learning is not None
    validation = cell.learning.validation
    files = [cell.test.files, cell.learning.train.files, None if validation is None else validation.files]
    digests = [None if resolved is None else resolved.digest() for resolved in files]
    change = None if cell.test.change is None else cell.test.change.to_json()
    return sha256(json.dumps([cell.learning.language, change, *digests]).encode()).hexdigest()[:16]
