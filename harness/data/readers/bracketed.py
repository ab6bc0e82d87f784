"""Sentences with spans in brackets, ``wake me at [time : five am]``, as tokens with tags (MASSIVE)."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from harness.data.readers.column import COLUMNS, WHERE
from harness.data.readers.reader import Reader, choice
from harness.data.readers.structured import read_jsonl, read_parquet
from harness.data.records import Row
from harness.errors import DataError

_SPAN = re.compile(r"\[\s*(\w+)\s*:([^\[\]]*)\]")
_TOKENS = ("space", "character")


def _read(paths: Sequence[Path], options: Mapping[str, str]) -> Iterator[Row]:
    """Yield one row per sentence, with the fields ``tokens`` and ``tags`` in place of ``marked``."""
    by_character = choice(options, "tokens", _TOKENS) == "character"
    reader_options = {name: value for name, value in options.items() if name != "tokens"}
    for path in paths:
        read = read_parquet if path.suffix == ".parquet" else read_jsonl
        for row in read([path], reader_options):
            fields = dict(row.fields)
            marked = fields.pop("marked", None)
            if not isinstance(marked, str):
                raise DataError(
                    f"{row.where}: expected the text field 'marked', found {type(marked).__name__}.",
                    hint="Name the column with 'columns' in the spec: {marked: annot_utt}.",
                )
            fields["tokens"], fields["tags"] = _tagged(marked, row.where, by_character=by_character)
            yield Row(fields=fields, path=row.path, line=row.line)


def _tagged(marked: str, where: str, *, by_character: bool) -> tuple[list[str], list[str]]:
    """Return the tokens of a sentence and their tags (``O``, ``B-time``, ``I-time``)."""
    tokens: list[str] = []
    tags: list[str] = []
    end = 0
    for match in _SPAN.finditer(marked):
        _add(marked[end : match.start()], None, tokens, tags, where, by_character=by_character)
        _add(match[2], match[1], tokens, tags, where, by_character=by_character)
        end = match.end()
    _add(marked[end:], None, tokens, tags, where, by_character=by_character)
    return tokens, tags


def _add(
    text: str, label: str | None, tokens: list[str], tags: list[str], where: str, *, by_character: bool
) -> None:
    if "[" in text or "]" in text:
        raise DataError(f"{where}: expected spans written '[label : text]', found {text.strip()[:80]!r}.")
    span_tokens = [token for word in text.split() for token in _split(word, by_character=by_character)]
    if label is not None and not span_tokens:
        raise DataError(f"{where}: the span {label!r} has no text.")
    tokens += span_tokens
    tags += ["O" if label is None else f"{'I' if at else 'B'}-{label}" for at in range(len(span_tokens))]


def _split(word: str, *, by_character: bool) -> Sequence[str]:
    """Return the tokens of a word: of characters, all-ASCII words stay whole, as in the authors' script.

    Source: alexa/massive, scripts/create_hf_dataset.py.
    """
    return [*word] if by_character and not word.isascii() else [word]


BRACKETED = Reader(
    name="bracketed",
    read=_read,
    summary="JSON lines or Parquet with spans in brackets: 'wake me at [time : five am]' in the field 'marked'.",
    options={
        "columns": COLUMNS,
        "where": WHERE,
        "tokens": "'space' (default) or 'character', for scripts without spaces between words",
    },
)
