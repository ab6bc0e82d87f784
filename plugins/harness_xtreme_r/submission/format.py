"""The protocol of a submission file format, and the text files that all formats use."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from harness import DataError, UsageError

__all__ = ["FileFormat", "FilePair", "PairedItems", "read_lines", "read_text", "write_text"]


@dataclass(frozen=True, slots=True, kw_only=True)
class FilePair:
    """The predictions and the gold of one language, for messages."""

    predictions: Path
    gold: Path


@dataclass(frozen=True, slots=True, kw_only=True)
class PairedItems:
    """The items of one language in gold order, as metrics take them."""

    outputs: Sequence[Any]
    references: Sequence[Any]
    missing: tuple[str, ...] = ()
    """Ids of gold items without a prediction; they count 0."""
    extra: tuple[str, ...] = ()
    """Ids of predictions without a gold item; they do not count."""
    note: str = ""
    """A suspicious finding that the format allows."""


class FileFormat(Protocol):
    """How the files of a task are read, written and paired."""

    @property
    def extension(self) -> str:
        """Return the extension without a dot: ``tsv``."""

    def read_predictions(self, path: Path) -> Any:
        """Return the content of a file of predictions; raises `DataError` with file and line."""

    def read_gold(self, path: Path) -> Any:
        """Return the content of a gold file; raises `DataError` with file and line."""

    def write(self, path: Path, content: Any) -> None:
        """Write what `read_predictions` returns, creating the folder; raises `DataError` or `UsageError`."""

    def pair(self, predictions: Any, gold: Any, files: FilePair) -> PairedItems:
        """Return predictions paired with gold; raises `DataError` where lines or sentences do not match."""


def read_text(path: Path) -> str:
    """Return the text of a UTF-8 file with line feeds as line ends, without a byte order mark.

    Raises `DataError` with file and line where the file is not UTF-8, and with the reason where it is
    unreadable.
    """
    try:
        data = path.read_bytes()
    except OSError as error:
        raise DataError(f"{path}: expected a readable file, found: {error.strerror}.") from error
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise DataError(
            f"{path}:{line}: expected UTF-8, found the byte 0x{data[error.start]:02x}."
        ) from error
    return text.replace("\r\n", "\n").replace("\r", "\n")


def read_lines(path: Path) -> list[str]:
    """Return the lines of a file without line ends and without blank lines at its end, at least one.

    Lines end at line feeds only: str.splitlines would also break at characters that occur inside of words.
    """
    lines = read_text(path).split("\n")
    while lines and not lines[-1].strip():
        lines.pop()
    if not lines:
        raise DataError(f"{path}:1: expected at least one item, found an empty file.")
    return lines


def write_text(path: Path, text: str) -> None:
    """Write a UTF-8 file, creating its folder; raises `UsageError` where that fails."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8", newline="\n")
    except OSError as error:
        raise UsageError(
            f"Cannot write {path}: {error.strerror}.", hint="Choose a folder you can write to."
        ) from error
