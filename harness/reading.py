"""Reads what a cell is run on: its test items, the candidates of its task, and the shots of its prompts."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from harness.data.pool import CandidatePool
from harness.data.sources import DataFinder
from harness.errors import ContractError, DataError
from harness.kinds.kind import ReadContext, TaskKind, read_examples
from harness.plan import Cell, PoolPlan, ShotPool
from harness.prompts.prompter import Prompter
from harness.registry import Registry

__all__ = ["CellReader"]


class CellReader:
    """Reads the cells of a plan; a candidate pool is read once for all cells that share it."""

    def __init__(self, registry: Registry, finder: DataFinder) -> None:
        self._registry = registry
        self._finder = finder
        self._pools: dict[tuple[str, ...], CandidatePool] = {}
        self._shots: dict[tuple[str, str, str], list[Any]] = {}

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

    def prompter(self, cell: Cell) -> Prompter | None:
        """Return what builds the prompts of a cell, its shots read once for all cells; None where it needs none."""
        prompt = cell.prompt
        if prompt is None:
            return None
        kind = self._registry.kinds.get(cell.spec.kind)
        if kind.prompt_item is None:
            raise ContractError(f"The kind {kind.name!r} gives no fields to prompts.")
        pool: list[Any] = []
        if prompt.pool is not None:
            # The same file may be read by tasks of several kinds, each in its way.
            key = (kind.name, prompt.pool.owner, prompt.pool.found.digest())
            if key not in self._shots:
                self._shots[key] = self._read_shots(kind, prompt.pool)
            pool = self._shots[key]
            if len(pool) < prompt.shots:
                raise DataError(
                    f"{prompt.pool.found.ref} has {len(pool)} labelled items, fewer than --shots {prompt.shots}."
                )
        return Prompter(
            prompt=prompt.compiled(prompt.instruction),
            item=kind.prompt_item,
            task=cell.spec.task,
            language=None if cell.spec.parallel else cell.language.code,
            seed=cell.seed,
            shots=prompt.shots,
            pool=pool,
            chat=prompt.chat,
            constrained=prompt.constrained,
        )

    def _read_shots(self, kind: TaskKind, pool: ShotPool) -> list[Any]:
        context = ReadContext(
            owner=pool.owner,
            language=pool.language,
            split=pool.split,
            inputs=pool.inputs,
            labels=pool.labels,
            label_map=pool.found.label_map,
            phrases=pool.phrases,
        )
        read = read_examples(kind, self._finder.rows(pool.found), context)
        return [example for example in read if kind.reference(example) is not None]

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
