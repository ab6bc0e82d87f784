"""What methods get to know about the cells of one opened model."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from harness.data.pool import CandidatePool
from harness.kinds.methods import MethodContext
from harness.planning.plan import Cell
from harness.progress import Progress
from harness.running.cell_reader import CellItems, CellReader

__all__ = ["CellContexts"]


@dataclass(frozen=True, slots=True, kw_only=True)
class CellContexts:
    """Makes the contexts of cells that are run on one opened model; they share a cache."""

    reader: CellReader
    cells: Sequence[Cell]
    """All that this model is asked for."""
    is_done: Callable[[Cell], bool]
    limit: int | None
    limit_seed: int
    folder: Path
    progress: Progress
    check: Callable[[], None]
    cache: dict[str, Any] = field(default_factory=dict)

    def of(
        self, cell: Cell, pool: Sequence[Any] = (), candidates: CandidatePool | None = None
    ) -> MethodContext:
        """Return the context of a cell, whose pools are needed only where its items are asked."""
        learning = cell.learning
        return MethodContext(
            spec=cell.spec,
            language=cell.text_language,
            protocol=cell.pairing.protocol,
            seed=cell.seed,
            pool=pool,
            candidates=candidates,
            cache=self.cache,
            progress=self.progress,
            prompter=self.reader.prompter(cell),
            digest=cell.digest,
            view=cell.view,
            train_language=None if learning is None else learning.language,
            seeds=() if learning is None else learning.seeds,
            data="" if learning is None else _data_of(cell),
            split=partial(self.reader.learning, cell),
            test=partial(self._test, cell),
            peers=partial(self._peers, cell),
            folder=self.folder,
            check=self.check,
        )

    def _test(self, cell: Cell) -> CellItems:
        return self.reader.stream(cell, limit=self.limit, seed=self.limit_seed)

    def _peers(self, cell: Cell) -> list[MethodContext]:
        name = cell.pairing.method.name
        return [
            self.of(other)
            for other in self.cells
            if other.pairing.method.name == name and (other.digest == cell.digest or not self.is_done(other))
        ]


def _data_of(cell: Cell) -> str:
    assert cell.learning is not None
    validation = cell.learning.validation
    files = [cell.test.files, cell.learning.train.files, None if validation is None else validation.files]
    digests = [None if one is None else one.digest() for one in files]
    change = None if cell.test.change is None else cell.test.change.to_json()
    return hashlib.sha256(json.dumps([cell.learning.language, change, *digests]).encode()).hexdigest()[:16]
