"""The entities of Mewsli-X: the candidate set, a million descriptions in many languages."""

from __future__ import annotations

import codecs
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from pydantic_core import from_json

from harness import DataError, Reader, Row
from harness.data.readers.structured import parse_json
from harness_xtreme_r.readers.member import member
from harness_xtreme_r.readers.mewsli_x_text import check_layout, description_text

__all__ = ["MEWSLI_X_ENTITIES"]

_NAME = "mewsli_x_entities"


def _read(paths: Sequence[Path], options: Mapping[str, str]) -> Iterator[Row]:
    """Yield one row per entity; only the seen ids are kept in memory, not the whole file."""
    seen: set[str] = set()
    for path in paths:
        name = str(path)
        for line, record in _objects(path):
            where = f"{name}:{line}"
            check_layout(record, _NAME, where)
            identifier = member(record, "entity_id", str, where)
            if identifier in seen:
                raise DataError(f"{where}: expected every entity once, found {identifier!r} repeated.")
            seen.add(identifier)
            fields = {
                "id": identifier,
                "text": description_text(record, where),
                "language": member(record, "description_language", str, where),
            }
            yield Row(fields=fields, path=name, line=line)


def _objects(path: Path) -> Iterator[tuple[int, Mapping[str, Any]]]:
    """Yield line and object of every line.

    Several times as fast as the reader ``jsonl``, which is asked only what is wrong with a line; of a key that
    occurs twice in an object the last one counts.
    """
    blank = 0
    try:
        with path.open("rb") as file:
            for line, encoded in enumerate(file, start=1):
                if blank:
                    raise DataError(f"{path}:{blank}: expected a JSON object, found a blank line.")
                if not encoded.strip():
                    blank = line
                    continue
                yield (
                    line,
                    _object(encoded.removeprefix(codecs.BOM_UTF8) if line == 1 else encoded, path, line),
                )
    except OSError as error:
        raise DataError(f"{path}: expected a readable file, found: {error.strerror or error}.") from error


def _object(encoded: bytes, path: Path, line: int) -> Mapping[str, Any]:
    try:
        record = from_json(encoded, allow_inf_nan=False)
    except ValueError as error:
        try:
            text = encoded.rstrip(b"\r\n").decode("utf-8")
        except UnicodeDecodeError as fault:
            raise DataError(
                f"{path}:{line}: expected UTF-8, found the byte 0x{encoded[fault.start]:02x}."
            ) from fault
        parse_json(text, path, first_line=line)
        raise DataError(f"{path}:{line}: expected JSON, found: {error}.") from error
    if not isinstance(record, dict):
        raise DataError(f"{path}:{line}: expected a JSON object, found {type(record).__name__}.")
    return record


MEWSLI_X_ENTITIES = Reader(
    name=_NAME,
    read=_read,
    summary="Mewsli-X: the candidate entities, each with the description in one language.",
)
