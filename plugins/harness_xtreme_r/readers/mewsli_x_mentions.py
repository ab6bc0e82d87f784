"""The mentions of Mewsli-X: the queries."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from harness import DataError, Reader, Row
from harness.data.readers.reader import choice
from harness.data.readers.structured import JSONL
from harness_xtreme_r.readers.member import member, required_option
from harness_xtreme_r.readers.mewsli_x_text import (
    CHECK_OFFSETS,
    CHECK_OFFSETS_OPTION,
    check_layout,
    mention_text,
)

__all__ = ["MEWSLI_X_MENTIONS"]

_NAME = "mewsli_x_mentions"


def _read(paths: Sequence[Path], options: Mapping[str, str]) -> Iterator[Row]:
    """Yield one row per mention of one language; the files hold the articles of all languages."""
    language = required_option(options, "language", _NAME)
    check = choice(options, "check_offsets", CHECK_OFFSETS)
    languages: set[str] = set()
    for row in JSONL.read(paths, {}):
        check_layout(row.fields, _NAME, row.where)
        context = member(row.fields, "context", dict, row.where)
        spoken = member(context, "language", str, row.where)
        languages.add(spoken)
        if spoken != language:
            continue
        document = member(context, "document_id", str, row.where)
        for mention in member(row.fields, "mentions", list, row.where):
            identifier = member(mention, "example_id", str, row.where)
            where = f"{row.where}: mention {identifier!r}"
            fields = {
                "id": identifier,
                "query": mention_text(context, mention, where, check=check),
                "target": member(mention, "entity_id", str, where),
                "document": document,
            }
            yield Row(fields=fields, path=row.path, line=row.line)
    if language not in languages:
        raise DataError(
            f"{', '.join(map(str, paths))}: expected articles in {language!r}, found "
            f"{', '.join(sorted(languages)) or 'no article'}."
        )


MEWSLI_X_MENTIONS = Reader(
    name=_NAME,
    read=_read,
    summary="Mewsli-X: the mentions of one language in their sentences, from JSON lines of articles.",
    options={
        "language": "the language of the articles (needed)",
        "check_offsets": CHECK_OFFSETS_OPTION,
    },
)
