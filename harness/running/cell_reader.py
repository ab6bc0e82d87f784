"""Reads what a cell is run on: its test items, the candidates of its task, its shots, and what methods get of them."""

from __future__ import annotations

import itertools
from array import array
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from hashlib import blake2b
from typing import Any, overload

from harness.data.records import LIMIT_SEED, CandidatePool, draw, draw_items
from harness.data.sources import DataFinder
from harness.errors import ContractError, DataError
from harness.kinds.kind import ReadContext, TaskKind, iter_examples, read_examples
from harness.kinds.methods import LearnedSplit
from harness.planning.plan import Cell, PoolPlan, ShotPool
from harness.planning.prompts import require_shots, shot_context
from harness.prompts.prompter import Prompter
from harness.registry.registry import Registry

HELD = 16_384
"""Items that are kept once they were read; larger files are read again instead."""


HELD_OUT = 10
"""One cluster of so many is held out of train where there is no validation split."""
LEARNING_SEED = 0
"""Which items a limit keeps to learn from never depends on the seed of a cell."""


class CellItems:
    """The items of a cell that a limit keeps, chunk by chunk and as often as wanted; few items are held, more not.

    Made by one pass over the file, in which all faults of its items are found.
    """

    def __init__(self, read: Callable[[], Iterator[Any]], limit: int | None, seed: int, cell: Cell) -> None:
        """Read all items once; raises `DataError` for their faults.

        Args:
            read: Called for the examples of the split, in the order of the file; checks them.
            limit: At most so many are kept, those that `draw` keeps.
            seed: Of the draw.
            cell: Gives the names of the draw, and the task for messages.
        """
        self._read = read
        self._task = cell.spec.task
        self.size = 0
        """Number of items in the split, also of those beyond the limit."""
        self._held: list[Any] | None = []
        self._indices: array[int] | None = None
        self._order = blake2b(digest_size=16)
        language = None if cell.spec.pairs(cell.language.code) else cell.language.code
        passing = self._counted()
        if limit is not None and cell.spec.draw == "clusters":
            self._held = _drawn_clusters(list(passing), limit, seed, cell.spec.task, language)
        elif limit is None:
            self._hold(passing)
        elif limit <= HELD:
            pairs = draw_items(passing, limit, _id_of, seed=seed, task=cell.spec.task, language=language)
            self._held = [example for _, example in pairs]
        else:
            ids = map(_id_of, passing)
            drawn = draw_items(ids, limit, str, seed=seed, task=cell.spec.task, language=language)
            self._held, self._indices = None, array("Q", (index for index, _ in drawn))
        self.pool = _Pool(self.size, self._again)
        """All items of the split, read when one of them is asked for."""

    def __len__(self) -> int:
        """Return the number of items that are kept."""
        if self._held is not None:
            return len(self._held)
        return self.size if self._indices is None else len(self._indices)

    def chunks(self, size: int) -> Iterator[list[Any]]:
        """Yield the items that are kept, `size` at a time; raises `DataError` where the file has changed meanwhile."""
        items = iter(self)
        while chunk := list(itertools.islice(items, size)):
            yield chunk

    def __iter__(self) -> Iterator[Any]:
        """Yield the items that are kept, in the order of the file."""
        if self._held is not None:
            return iter(self._held)
        return self._again() if self._indices is None else self._drawn(self._indices)

    def _counted(self) -> Iterator[Any]:
        for example in self._read():
            self.size += 1
            self._order.update(_named(example))
            yield example

    def _hold(self, passing: Iterator[Any]) -> None:
        held = list(itertools.islice(passing, HELD + 1))
        self._held = held if len(held) <= HELD else None
        del held
        for _ in passing:
            pass

    def _drawn(self, indices: array[int]) -> Iterator[Any]:
        remaining = iter(indices)
        next_index = next(remaining, None)
        for index, example in enumerate(self._again()):
            if index == next_index:
                yield example
                next_index = next(remaining, None)

    def _again(self) -> Iterator[Any]:
        order = blake2b(digest_size=16)
        for example in self._read():
            order.update(_named(example))
            yield example
        if order.digest() != self._order.digest():
            raise DataError(f"The test items of {self._task!r} changed while they were read.")


def _drawn_clusters(
    items: Sequence[Any], limit: int, seed: int, task: str, language: str | None
) -> list[Any]:
    """Return the items of as many clusters as the limit says; an item without a cluster is one."""
    owners = [item.id if item.cluster is None else item.cluster for item in items]
    names = list(dict.fromkeys(owners))
    clusters = {names[index] for index in draw(names, limit, seed=seed, task=task, language=language)}
    return [item for item, owner in zip(items, owners, strict=True) if owner in clusters]


class _Pool(Sequence[Any]):
    """All items of a split for methods that look at them, which few do; read at the first look."""

    def __init__(self, size: int, read: Callable[[], Iterator[Any]]) -> None:
        self._size = size
        self._read = read
        self._items: list[Any] | None = None

    def __len__(self) -> int:
        return self._size

    @overload
    def __getitem__(self, index: int) -> Any: ...

    @overload
    def __getitem__(self, index: slice) -> Sequence[Any]: ...

    def __getitem__(self, index: int | slice) -> Any:
        if self._items is None:
            self._items = list(self._read())
        return self._items[index]


def _id_of(example: Any) -> str:
    identifier: str = example.id
    return identifier


def _named(example: Any) -> bytes:
    # The length keeps ids apart, whatever characters they hold.
    encoded = _id_of(example).encode()
    return b"%d:%b" % (len(encoded), encoded)


class CellReader:
    """Reads the cells of a plan; a candidate pool is read once for all cells that share it."""

    def __init__(self, registry: Registry, finder: DataFinder) -> None:
        self._registry = registry
        self._finder = finder
        self._pools: dict[tuple[str, ...], CandidatePool] = {}
        self._shots: dict[tuple[str, str, str], list[Any]] = {}
        self._twins: dict[tuple[str, str], dict[str, frozenset[str]]] = {}

    def read(self, cell: Cell) -> tuple[list[Any], CandidatePool | None]:
        """Return the examples of a cell, and the candidates of its task where its kind has a pool.

        Raises `DataError` where a row is malformed, an id repeats, or a gold is not in the pool.
        """
        kind = self._registry.kinds.get(cell.spec.kind)
        context = _test_context(cell)
        examples = read_examples(kind, self._finder.rows(cell.test), context)
        if cell.pool is None or kind.candidate is None or kind.join is None:
            return examples, None
        pool = self._pool(cell, cell.pool, kind, context)
        return kind.join(examples, pool), pool

    def examples(self, cell: Cell) -> Iterator[Any]:
        """Yield the test items of a cell one by one; raises what `read` does, as far as the items are read."""
        kind = self._registry.kinds.get(cell.spec.kind)
        return iter_examples(kind, partial(self._finder.rows, cell.test), _test_context(cell))

    def needs_list(self, cell: Cell) -> bool:
        """Return whether a cell takes all of its items at once, from `read`; other cells can take `stream`."""
        return cell.pool is not None or cell.pairing.method.needs_all

    def stream(self, cell: Cell, *, limit: int | None, seed: int) -> CellItems:
        """Return the items of a cell without a pool of candidates; raises what `read` does, after one pass.

        Args:
            cell: One that does not need a list.
            limit: At most so many items are kept, the same ones as `draw` keeps.
            seed: Of that draw.
        """
        if cell.pool is not None:
            raise ValueError(f"The cell {cell.title!r} has a pool of candidates: take 'read'.")
        return CellItems(partial(self.examples, cell), limit, seed, cell)

    def items(self, cell: Cell, *, limit: int | None) -> tuple[CellItems, CandidatePool | None]:
        """Return the items of a cell that a limit keeps, and the candidates of its task where its kind has a pool."""
        if not self.needs_list(cell):
            return self.stream(cell, limit=limit, seed=LIMIT_SEED), None
        examples, pool = self.read(cell)
        return CellItems(lambda: iter(examples), limit, LIMIT_SEED, cell), pool

    def prompter(self, cell: Cell) -> Prompter | None:
        """Return the prompter of a cell, its shots read once for all cells; None where it needs none."""
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
            require_shots(prompt.pool, len(pool), prompt.shots)
        return Prompter(
            prompt=prompt.compiled(prompt.instruction, cell.language.code),
            item=kind.prompt_item,
            task=cell.spec.task,
            language=None if cell.spec.pairs(cell.language.code) else cell.language.code,
            seed=cell.seed,
            shots=prompt.shots,
            pool=pool,
            twins={} if prompt.pool is None else self._read_twins(cell, kind, prompt.pool),
            chat=prompt.chat,
            constrained=prompt.constrained,
            repeats=prompt.repeats,
        )

    def _read_shots(self, kind: TaskKind, pool: ShotPool) -> list[Any]:
        read = read_examples(kind, self._finder.rows(pool.found), shot_context(pool))
        return [example for example in read if kind.reference(example) is not None]

    def _read_twins(self, cell: Cell, kind: TaskKind, pool: ShotPool) -> dict[str, frozenset[str]]:
        """Return the texts of the tested items in the language of the shots, by id; none of a file with faults."""
        if pool.twins is None:
            return {}
        assert kind.prompt_item is not None
        key = (cell.spec.task, pool.twins.digest())
        if key not in self._twins:
            context = ReadContext.of_test(cell.spec, pool.language, pool.twins.label_map)
            rows = self._finder.rows(pool.twins)
            with suppress(DataError):  # its own cell reports it
                items = read_examples(kind, rows, context)
                self._twins[key] = {item.id: kind.prompt_item(item).text_key for item in items}
        return self._twins.setdefault(key, {})

    def learning(self, cell: Cell, split: LearnedSplit) -> list[Any]:
        """Return the examples of a split that a cell's method learns from, after the limit.

        Where there is no validation split, it is every tenth cluster of train, and train is the others. The limit
        takes the same items of the same ids in all tasks, so that those over the same sentences can share them.
        Raises `DataError` where an item has no label, or nothing is left.
        """
        plan = cell.learning
        if plan is None:
            raise ContractError(f"The cell {cell.title!r} has nothing to learn from.")
        chosen = plan.validation if split == "validation" else plan.train
        kind = self._registry.kinds.get(cell.spec.kind)
        source = plan.train if chosen is None else chosen
        # The ids of training data may repeat.
        read_as = "train" if source is plan.train else split
        cluster = cell.spec.cluster if plan.owner == cell.spec.task else None
        context = ReadContext.of(
            plan.spec, plan.owner, plan.language, read_as, source.label_map, cluster=cluster
        )
        examples = read_examples(kind, self._finder.rows(source), context)
        if kind.reference(examples[0]) is None:
            raise DataError(f"The {source.ref} has items without labels, from which nothing can be learnt.")
        if plan.validation is None:
            examples = _held_out(examples, held=split == "validation")
        if not examples:
            raise DataError(f"The {source.ref} has too few items to hold every tenth out.")
        ids = [example.id for example in examples]
        drawn = draw(ids, plan.limit, seed=LEARNING_SEED, task="", language=plan.language)
        return [examples[index] for index in drawn]

    def _pool(self, cell: Cell, plan: PoolPlan, kind: TaskKind, context: ReadContext) -> CandidatePool:
        if plan.key not in self._pools:
            assert kind.candidate is not None
            candidates = [
                kind.candidate(row, replace(context, language=code))
                for code, split in plan.parts
                for row in self._finder.rows(split)
            ]
            self._pools[plan.key] = CandidatePool(
                candidates,
                owner=cell.spec.task,
                languages=[code for code, _ in plan.parts] if cell.spec.pools_languages else (),
                missing=plan.missing,
            )
        return self._pools[plan.key]


def _held_out(examples: Sequence[Any], *, held: bool) -> list[Any]:
    """Return the items of every tenth cluster, or those of all others; an item without a cluster is one."""
    owners = [item.id if item.cluster is None else item.cluster for item in examples]
    chosen = set(list(dict.fromkeys(owners))[HELD_OUT - 1 :: HELD_OUT])
    return [item for item, owner in zip(examples, owners, strict=True) if (owner in chosen) is held]


def _test_context(cell: Cell) -> ReadContext:
    return ReadContext.of_test(cell.spec, cell.language.code, cell.test.label_map)
