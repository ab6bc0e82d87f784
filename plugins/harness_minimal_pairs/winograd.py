"""Reads XWinograd: sentences with a pronoun and the two phrases that it may mean, as rows of `form_preference`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from harness import DataError, UsageError
from harness.data import (
    Reader,
    Row,
    is_blank_line,
    numbered_lines,
    parse_json,
    read_parquet,
    without_blank_lines,
)

COLUMNS: Final = 7
GAP: Final = "_"
_QUOTES: Final = {"``": '"', "''": '"'}
"""As the tokeniser of the Penn Treebank writes quotation marks."""


def _read(paths: Sequence[Path], options: Mapping[str, str]) -> Iterator[Row]:
    """Yield one row per sentence of a language; ids are its numbers among the sentences of that language.

    The phrases replace the pronoun as they are written, also where it is possessive.
    """
    if all(path.suffix == ".parquet" for path in paths):
        yield from map(_from_columns, read_parquet(paths, {}))
        return
    if "language" not in options:
        raise UsageError("The reader 'xwinograd' needs the option 'language', such as 'en'.")
    for path in paths:
        number = 0
        for line, text in without_blank_lines(path, numbered_lines(path), is_blank_line):
            cells = text.split("\t")
            if len(cells) != COLUMNS:
                raise DataError(f"{path}:{line}: expected {COLUMNS} columns, found {len(cells)}.")
            if cells[0] == options["language"]:
                number += 1
                fields = {"id": str(number), **_fields(cells, path, line)}
                yield Row(fields=fields, path=str(path), line=line)


def _fields(cells: Sequence[str], path: Path, line: int) -> dict[str, Any]:
    sentence = cells[3]
    tokens, pronoun, candidates = (parse_json(cell, path, first_line=line) for cell in cells[4:])
    try:
        (start, end), written = pronoun[1], pronoun[0]
        right, wrong = (
            [text for text, _, _, is_right in candidates if is_right is side] for side in (True, False)
        )
    except (TypeError, ValueError, IndexError) as error:
        raise DataError(
            f"{path}:{line}: expected a pronoun and candidates with places, found a fault: {error}."
        ) from error
    if len(right) != 1 or len(wrong) != 1:
        raise DataError(
            f"{path}:{line}: expected one right and one wrong candidate, found {len(right)} and {len(wrong)}."
        )
    first = _place(sentence, tokens, start, path, line)
    last = _place(sentence, tokens, end - 1, path, line) + len(tokens[end - 1])
    return {
        "group": cells[1],
        "before": sentence[:first],
        "right": right[0].strip(),
        "wrong": wrong[0].strip(),
        "after": sentence[last:],
        "tags": {"pronoun": str(written)},
    }


def _place(sentence: str, tokens: Sequence[str], wanted: int, path: Path, line: int) -> int:
    """Return where a token begins: pronouns occur several times in a sentence, and only tokens are numbered."""
    end = 0
    for token in (_QUOTES.get(token, token) for token in tokens[: wanted + 1]):
        position = sentence.find(token, end)
        if position < 0:
            raise DataError(
                f"{path}:{line}: expected the token {token!r} in {sentence!r} from character {end + 1} on."
            )
        start, end = position, position + len(token)
    return start


def _from_columns(record: Row) -> Row:
    """Return a record of the Hub's copy: a sentence with a gap, two options and the number of the right one."""
    sentence, answer = str(record.fields.get("sentence")), str(record.fields.get("answer"))
    if sentence.count(GAP) != 1 or answer not in {"1", "2"}:
        raise DataError(
            f"{record.where}: expected one {GAP!r} in the sentence and the answer '1' or '2', found {answer!r}."
        )
    before, _, after = sentence.partition(GAP)
    options = [str(record.fields.get(name)).strip() for name in ("option1", "option2")]
    right = options[int(answer) - 1]
    fields = {
        "id": str(record.line),
        "before": before,
        "right": right,
        "wrong": options[2 - int(answer)],
        "after": after,
    }
    return Row(fields=fields, path=record.path, line=record.line)


XWINOGRAD = Reader(
    name="xwinograd",
    read=_read,
    summary="XWinograd: its table of all languages, or the Parquet columns of the Hub's copy.",
    options={"language": "the code of a language in the table's first column, such as 'jp'"},
    filters=frozenset({"language"}),
)
