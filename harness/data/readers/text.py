"""Lines of UTF-8 text files, read strictly and numbered as an editor numbers them."""

from __future__ import annotations

import codecs
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from io import BufferedReader
from pathlib import Path
from typing import TypeVar

from harness.errors import DataError
from harness.languages.character import is_blank

Record = TypeVar("Record")

_ZIP = b"PK\x03\x04"
_LINE = re.compile(r"([^\r\n]*)(\r\n|\r|\n|\Z)")
_BYTES = 1 << 16
"""Lines are decoded together up to this size."""
_EXTRA: dict[Path, int] = {}


def is_blank_line(text: str) -> bool:
    """Return whether a line shows nothing: it is empty, or all white space (U+00A0 and U+200B included)."""
    return not text or (is_blank(text[0]) and all(map(is_blank, text)))


def is_blank_row(cells: Sequence[str]) -> bool:
    """Return whether the cells of a table are a blank line; a quoted empty cell is a value."""
    return not cells or (len(cells) == 1 and cells[0] != "" and is_blank_line(cells[0]))


def without_blank_lines(
    path: Path,
    records: Iterable[tuple[int, Record]],
    is_empty: Callable[[Record], bool],
    *,
    separated: bool = False,
) -> Iterator[tuple[int, Record]]:
    """Yield the records of a file that are not blank lines: a blank line separates records and is none itself.

    The rule of every reader of lines, wherever the blank lines are. Those that separate nothing are counted for
    `extra_blank_lines`; blank lines at the end of a file are not.

    Args:
        path: The file.
        records: (1-based line, record).
        is_empty: Whether a record is a blank line.
        separated: Whether one blank line separates groups of records: the first of several is yielded.
    """
    blank: list[tuple[int, Record]] = []
    count, is_first = 0, True
    for line, record in records:
        if is_empty(record):
            blank.append((line, record))
            continue
        needed = blank[:1] if separated and not is_first else []
        count += len(blank) - len(needed)
        yield from needed
        yield line, record
        blank, is_first = [], False
    count_blank_lines(path, count)


def count_blank_lines(path: Path, count: int) -> None:
    """Record how many blank lines of a file separate nothing."""
    _EXTRA[path] = count


def extra_blank_lines(path: Path) -> int:
    """Return how many blank lines of a file separated nothing when it was last read to its end."""
    return _EXTRA.get(path, 0)


def numbered_lines(path: Path) -> Iterator[tuple[int, str]]:
    r"""Yield (1-based number, line without its ending) of a UTF-8 file.

    Lines end at ``\n``, ``\r\n`` or ``\r`` and nowhere else: U+2028, U+0085 and their like are text. A byte
    order mark at the start of the file is dropped. Raises `DataError` at the line of a byte that is not
    UTF-8.
    """
    number = 0
    with _opened(path) as file:
        for position, raw in enumerate(file):
            encoded = raw.removeprefix(codecs.BOM_UTF8) if position == 0 else raw
            text = _decoded(encoded, path, first_line=number + 1)
            text = text.removesuffix("\n")
            for line in _unix(text).removesuffix("\n").split("\n") if "\r" in text else (text,):
                number += 1
                yield number, line


def lines_with_ends(path: Path) -> Iterator[tuple[int, str, str]]:
    r"""Yield (1-based number, line, its ending) as `numbered_lines` does, with a byte order mark and any ending."""
    number = 0
    with _opened(path) as file:
        while lines := file.readlines(_BYTES):
            for line, ending in _LINE.findall(_decoded(b"".join(lines), path, first_line=number + 1)):
                if line or ending:
                    number += 1
                    yield number, line, ending


def whole_text(path: Path) -> str:
    r"""Return the text of a UTF-8 file with ``\n`` line ends and without a byte order mark."""
    with _opened(path) as file:
        return _unix(_decoded(file.read().removeprefix(codecs.BOM_UTF8), path, first_line=1))


def line_of_text(path: Path, text: str) -> int:
    """Return the 1-based line of a JSON file that has a string first, for messages; 1 where it is escaped."""
    before, match, _ = whole_text(path).partition(f'"{text}"')
    return before.count("\n") + 1 if match else 1


def _opened(path: Path) -> BufferedReader:
    try:
        file = path.open("rb")
        is_archive = file.peek(4)[:4] == _ZIP
    except OSError as error:
        reason = error.strerror or str(error)
        raise DataError(f"{path}: expected a readable file, found: {reason}.") from error
    if is_archive:
        file.close()
        raise DataError(f"{path}:1: expected text, found a ZIP archive.", hint="Unpack it.")
    return file


def _decoded(encoded: bytes, path: Path, *, first_line: int) -> str:
    if b"\0" in encoded:
        line = first_line + _unix(encoded[: encoded.index(b"\0")].decode("utf-8", "replace")).count("\n")
        raise DataError(
            f"{path}:{line}: expected text, found a NUL byte.",
            hint="The file is damaged, or it is not UTF-8: put it back, or convert it with iconv.",
        )
    try:
        return encoded.decode("utf-8")
    except UnicodeDecodeError as error:
        before = _unix(encoded[: error.start].decode("utf-8"))
        line = first_line + before.count("\n")
        raise DataError(
            f"{path}:{line}: expected UTF-8, found the byte 0x{encoded[error.start]:02x}.",
            hint="Convert the file to UTF-8, for instance with iconv.",
        ) from error


def _unix(text: str) -> str:
    return text.replace("\r\n", "\n").replace("\r", "\n") if "\r" in text else text
