"""The entities of Mewsli-X: the candidate set, a million descriptions in many languages."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from harness.data.readers.reader import Reader
from harness.data.readers.structured import JSONL
from harness.data.records import Row
from harness.errors import DataError
from harness_xtreme_r.readers.member import member
from harness_xtreme_r.readers.mewsli_x_text import check_layout, description_text

__all__ = ["MEWSLI_X_ENTITIES"]

_NAME = "mewsli_x_entities"


def _read(paths: Sequence[Path], options: Mapping[str, str]) -> Iterator[Row]:
    """Yield one row an entity; the file is never held as a whole, only the ids that were seen."""
    seen: set[str] = set()
    for row in JSONL.read(paths, {}):
        record = row.fields
        check_layout(record, _NAME, row.where)
        identifier = member(record, "entity_id", str, row.where)
        if identifier in seen:
            raise DataError(f"{row.where}: expected every entity once, found {identifier!r} repeated.")
        seen.add(identifier)
        fields = {
            "id": identifier,
            "text": description_text(record, row.where),
            "language": member(record, "description_language", str, row.where),
        }
        yield Row(fields=fields, path=row.path, line=row.line)


MEWSLI_X_ENTITIES = Reader(
    name=_NAME,
    read=_read,
    summary="Mewsli-X: the candidate entities, each with the description in one language.",
)
