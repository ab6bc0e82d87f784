"""Bitext: two files whose lines are translations of each other."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from harness.data.readers.reader import Reader, choice
from harness.data.readers.text import numbered_lines
from harness.data.records import Row
from harness.errors import DataError, UsageError

__all__ = ["BITEXT"]


def _read(paths: Sequence[Path], options: Mapping[str, str]) -> Iterator[Row]:
    if len(paths) != 2:
        raise UsageError(f"The reader 'bitext' needs two files, one of each language, found {len(paths)}.")
    query_index = int(choice(options, "query_index", ("0", "1")))
    query_path, target_path = paths[query_index], paths[1 - query_index]
    queries, targets = _sentences(query_path), _sentences(target_path)
    if len(queries) != len(targets):
        raise DataError(
            f"{query_path}: expected as many lines as {target_path} has, "
            f"found {len(queries)} against {len(targets)}."
        )
    for line, (query, target) in enumerate(zip(queries, targets, strict=True), start=1):
        fields = {"id": str(line), "query": query, "target": target}
        yield Row(fields=fields, path=str(query_path), line=line)


def _sentences(path: Path) -> list[str]:
    sentences = []
    for line, text in numbered_lines(path):
        sentence = text.rstrip()
        if not sentence:
            raise DataError(f"{path}:{line}: expected a sentence, found a blank line.")
        sentences.append(sentence)
    return sentences


BITEXT = Reader(
    name="bitext",
    read=_read,
    summary="Two files with one sentence per line; equal line numbers are translations.",
    options={"query_index": "which of the two files holds the queries: '0' (default) or '1'"},
)
