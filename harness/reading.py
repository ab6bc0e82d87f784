"""Reads what a cell is run on: its test items, and the candidates of its task."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from harness.data.pool import CandidatePool
from harness.data.sources import DataFinder
from harness.kinds.kind import ReadContext, TaskKind, read_examples
from harness.plan import Cell, PoolPlan
from harness.registry import Registry

__all__ = ["CellReader"]


class CellReader:
    """Reads the cells of a plan; a candidate pool is read once for all cells that share it."""

    def __init__(self, registry: Registry, finder: DataFinder) -> None:
        self._registry = registry
        self._finder = finder
        self._pools: dict[tuple[str, ...], CandidatePool] = {}

    def read(self, cell: Cell) -> tuple[list[Any], CandidatePool | None]:
        """Return the examples of a cell, and the candidates of its task where its kind has a pool.

        Raises `DataError` where a row is malformed, an id repeats, or a gold is not in the pool.
        """
        kind = self._registry.kinds.get(cell.spec.kind)
        context = ReadContext(
            owner=cell.spec.task,
            language=cell.language.code,
            split="test",
            inputs=cell.spec.input_names,
            labels=cell.spec.label_names,
            label_map=cell.test.label_map,
            cluster=cell.spec.cluster,
            phrases=cell.spec.input_phrases,
        )
        examples = read_examples(kind, self._finder.rows(cell.test), context)
        if cell.pool is None or kind.candidate is None or kind.join is None:
            return examples, None
        pool = self._pool(cell, cell.pool, kind, context)
        return kind.join(examples, pool), pool

    def _pool(self, cell: Cell, plan: PoolPlan, kind: TaskKind, context: ReadContext) -> CandidatePool:
        if plan.key not in self._pools:
            assert kind.candidate is not None
            candidates = [
                kind.candidate(row, replace(context, language=code))
                for code, found in plan.parts
                for row in self._finder.rows(found)
            ]
            self._pools[plan.key] = CandidatePool(
                candidates,
                owner=cell.spec.task,
                languages=[code for code, _ in plan.parts] if cell.spec.pools_languages else (),
                missing=plan.missing,
            )
        return self._pools[plan.key]
