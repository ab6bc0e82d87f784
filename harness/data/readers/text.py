"""Lines of UTF-8 text files, read strictly and numbered as an editor numbers them."""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterator
from io import BufferedReader
from pathlib import Path

from harness.errors import DataError

__all__ = ["line_of_text", "lines_with_ends", "numbered_lines", "whole_text"]

_ZIP = b"PK\x03\x04"
_LINE = re.compile(r"([^\r\n]*)(\r\n|\r|\n|\Z)")


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
            for line in _unix(text).removesuffix("\n").split("\n"):
                number += 1
                yield number, line


def lines_with_ends(path: Path) -> Iterator[tuple[int, str, str]]:
    r"""Yield (1-based number, line, its ending) as `numbered_lines` does, with a byte order mark and any ending."""
    number = 0
    with _opened(path) as file:
        for raw in file:
            text = _decoded(raw, path, first_line=number + 1)
            for line in _LINE.finditer(text) if "\r" in text else [_LINE.match(text)]:
                if line is not None and line[0]:
                    number += 1
                    yield number, line[1], line[2]


def whole_text(path: Path) -> str:
    r"""Return the text of a UTF-8 file with ``\n`` line ends and without a byte order mark."""
    with _opened(path) as file:
        return _unix(_decoded(file.read().removeprefix(codecs.BOM_UTF8), path, first_line=1))


def line_of_text(path: Path, text: str) -> int:
    """Return the 1-based line of a JSON file that has a string first, for messages; 1 where it is escaped."""
    before, found, _ = whole_text(path).partition(f'"{text}"')
    return before.count("\n") + 1 if found else 1


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
