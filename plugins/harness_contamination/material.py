"""The texts of a cell: its items in shards of neighbours, in the order of the file, and texts that are fresh."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from harness import UsageError
from harness.running import CellReader, Prepared
from harness_contamination.comparison import SEED


@dataclass(frozen=True, slots=True, kw_only=True)
class Material:
    """Items that are tested in one task and language."""

    task: str
    language: str
    shards: Sequence[Sequence[str]]
    """All items of the file in its order; those that share a cluster are one, each text once."""
    drawn: Sequence[int]
    """The numbers of the shards that the model is asked about."""
    data: Mapping[str, Any]
    """Files and digest, as in results."""
    fresh: Sequence[str]

    @property
    def items(self) -> list[str]:
        """The items of the shards that were drawn."""
        return [text for number in self.drawn for text in self.shards[number]]


def read_material(
    prepared: Prepared, fresh: Mapping[str, Sequence[str]], size: int, limit: int | None
) -> list[Material]:
    """Return the items of every task and language of a plan in shards of `size`; a limit draws whole shards.

    Raises `UsageError` where there are none.
    """
    kinds = prepared.session.registry.kinds
    reader, found = CellReader(prepared.session.registry, prepared.finder), {}
    for cell in prepared.plan.cells:
        task, code, texts_of = cell.spec.task, cell.language.code, kinds.get(cell.spec.kind).texts
        # The cells of several prompts have the same items.
        if texts_of is None or (task, code) in found:
            continue
        clusters: dict[str, dict[str, None]] = {}
        for item in reader.read(cell)[0]:
            own = clusters.setdefault(item.id if item.cluster is None else item.cluster, {})
            own |= dict.fromkeys(text for text in texts_of(item, cell.spec) if text.strip())
        texts = [" ".join(own) for own in clusters.values() if own]
        # Items that do not fill the last shard are not used, except where they are all that there are.
        starts = range(0, max(1, len(texts) - size + 1), size)
        wanted = len(starts) if limit is None else max(1, limit // size)
        found[task, code] = Material(
            task=task,
            language=code,
            shards=[texts[start : start + size] for start in starts],
            drawn=sorted(np.random.default_rng(SEED).permutation(len(starts))[:wanted].tolist()),
            data=cell.test.to_json(),
            fresh=fresh.get(code, ()),
        )
    if not found:
        raise UsageError("No items are left to test.", hint="Give the folder of their files with --data DIR.")
    return list(found.values())


def read_fresh(path: Path) -> dict[str, list[str]]:
    """Return the texts of a file by language, whose lines are ``code<TAB>text``; raises `UsageError` for others."""
    try:
        lines = path.read_text(encoding="utf-8").removesuffix("\n").split("\n")
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"The file of fresh texts {str(path)!r} cannot be read: {error}.") from error
    texts: dict[str, dict[str, None]] = {}
    for number, line in enumerate(lines, start=1):
        code, _, text = (part.strip() for part in line.partition("\t"))
        if not code or not text:
            raise UsageError(
                f"{path}:{number}: expected a language code, a tab and a text, found {line[:60]!r}."
            )
        texts.setdefault(code, {})[text] = None
    return {code: list(own) for code, own in texts.items()}
