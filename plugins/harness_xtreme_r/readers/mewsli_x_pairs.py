"""The training pairs of Mewsli-X: mentions in Wikipedia with the description of their entity."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from harness import Reader, Row
from harness.data.readers.reader import choice
from harness.data.readers.structured import JSONL
from harness_xtreme_r.readers.member import member
from harness_xtreme_r.readers.mewsli_x_text import (
    CHECK_OFFSETS,
    CHECK_OFFSETS_OPTION,
    check_layout,
    description_text,
    mention_text,
)

__all__ = ["MEWSLI_X_PAIRS"]

_NAME = "mewsli_x_pairs"


def _read(paths: Sequence[Path], options: Mapping[str, str]) -> Iterator[Row]:
    """Yield one row per pair, with the id of its mention."""
    check = choice(options, "check_offsets", CHECK_OFFSETS)
    for row in JSONL.read(paths, {}):
        check_layout(row.fields, _NAME, row.where)
        pair = member(row.fields, "contextual_mention", dict, row.where)
        mention = member(pair, "mention", dict, row.where)
        identifier = member(mention, "example_id", str, row.where)
        where = f"{row.where}: mention {identifier!r}"
        fields = {
            "id": identifier,
            "query": mention_text(member(pair, "context", dict, where), mention, where, check=check),
            "passage": description_text(member(row.fields, "entity", dict, where), where),
        }
        yield Row(fields=fields, path=row.path, line=row.line)


MEWSLI_X_PAIRS = Reader(
    name=_NAME,
    read=_read,
    summary="Mewsli-X: Wikipedia mentions with the description of their entity, for training.",
    options={"check_offsets": CHECK_OFFSETS_OPTION},
)
