"""What readers are made of: their declaration, the options that they share, and the lines of text files.

Files are UTF-8, read strictly, and their lines are numbered as an editor numbers them.
"""

from __future__ import annotations

import ast
import codecs
import re
from collections.abc import Callable, Collection, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from io import BufferedReader
from pathlib import Path, PurePath
from typing import Any, TypeVar

from harness.data.records import Row
from harness.errors import DataError, UnknownNameError, UsageError, near_names
from harness.languages.character import is_blank

COLUMNS = (
    "the columns to keep, separated by commas; 'tags=ner_tags' keeps the column 'ner_tags' as 'tags', 'id=page+number' "
    "joins two columns with a slash, 'A=choices.0' is the first value of a list, and 'E=choices.4?' is null where the "
    "list is shorter"
)
WHERE = (
    "only records with this value, 'partition=test', or one of several, 'label=A|B'; 'label' keeps those that have any "
    "value in the column, 'info.language=Polish' looks into it; all conditions must hold, one per line"
)
Record = TypeVar("Record")
_ZIP = b"PK\x03\x04"
_LINE = re.compile(r"([^\r\n]*)(\r\n|\r|\n|\Z)")
_BYTES = 1 << 16
"""Lines are decoded together up to this size."""
_EXTRA: dict[Path, int] = {}


@dataclass(frozen=True, slots=True, kw_only=True)
class Reader:
    """A named reader of one published format.

    `read` takes the paths that are read together, in their order, and the options; it yields rows and raises
    `DataError` with file and line at the first thing that is not what the format says.
    """

    name: str
    read: Callable[[Sequence[Path], Mapping[str, str]], Iterator[Row]]
    summary: str
    options: Mapping[str, str] = field(default_factory=dict)
    """Option name -> what it does; no other option is understood."""
    check: Callable[[Mapping[str, str]], object] | None = None
    """Raises `UsageError` for options that do not fit together, before there is a file."""
    filters: frozenset[str] = frozenset({"where"})
    """The options that keep some records of a file, so that a file may have none for a language."""
    made_from: Callable[[Path], Mapping[str, str]] | None = None
    """Returns how a generated file was made, by name, as its own head records it; empty for a file without a record."""
    joins: bool = False
    """Whether rows are made of several files together, and name one of them."""

    def rows(
        self, paths: Sequence[Path], options: Mapping[str, str], *, split: str = "The file"
    ) -> Iterator[Row]:
        """Yield the rows of files; raises what `read` does, and `DataError` for what is no file or has no row.

        Of several files each must have a row: an empty one among them would change the score without a sign.

        Args:
            paths: Files that are read together.
            options: Those of the reader.
            split: What the files are, for messages.
        """
        for path in paths:
            if path.exists() and not path.is_file():
                raise DataError(f"{path}: expected a file, found something else, such as a folder or a pipe.")
        nonempty: set[str] = set()
        for row in self.read(paths, options):
            nonempty.add(row.path)
            yield row
        if paths and not nonempty:
            raise DataError(f"{paths[0]}: {split} holds no items.")
        empty = [path for path in paths if str(path) not in nonempty]
        if len(nonempty) + len(empty) == len(paths) and not self.joins:
            for path in empty if not self.filters & options.keys() else filter(_is_blank_file, empty):
                raise DataError(
                    f"{path}: expected items, found none, while other files of the split have some.",
                    hint="Put the published file back, or move it away to score the others alone.",
                )

    def check_options(self, given: Mapping[str, str]) -> None:
        """Raise `UnknownNameError` for an option that the reader does not have, `UsageError` for unfit ones."""
        for name in given:
            if name not in self.options:
                raise UnknownNameError(f"option of the reader {self.name!r}", name, self.options)
        if self.check is not None:
            self.check(given)


def _is_blank_file(path: Path) -> bool:
    with path.open("rb") as file:
        return not any(map(bytes.strip, file))


def reader_advice(paths: Sequence[str], used: str, known: Collection[str]) -> str | None:
    """Return the sentence that names the reader called like the files' ending, where another one is used."""
    for path in paths:
        ending = PurePath(path).suffix[1:].lower()
        if ending in known and ending != used:
            return f"For {path!r} write 'reader: {ending}'."
    return None


def choice(options: Mapping[str, str], name: str, allowed: Sequence[str]) -> str:
    """Return the value of an option, or the first allowed one; raises `UsageError` for any other value."""
    value = options.get(name, allowed[0])
    if value not in allowed:
        expected = " or ".join(repr(candidate) for candidate in allowed)
        raise UsageError(f"The reader option {name!r} must be {expected}, found {value!r}.")
    return value


def flag(options: Mapping[str, str], name: str, *, default: bool) -> bool:
    """Return the value of an option that is ``"true"`` or ``"false"``."""
    return choice(options, name, ("true", "false") if default else ("false", "true")) == "true"


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """One column of a file and the field it becomes."""

    field: str
    source: str

    def parts(self, known: Container[str]) -> list[list[str]]:
        """Return the columns that are joined, each with the steps into its value.

        A name that the file has is that column, whatever characters are in it.
        """
        if self.source in known:
            return [[self.source]]
        return [[name] if name in known else name.split(".") for name in self.source.split("+")]

    def value(self, record: Mapping[str, Any], where: str) -> Any:
        """Return the value in a record; raises `DataError` for a column that is missing."""
        if self.source in record:
            return record[self.source]
        values = []
        for name, *steps in self.parts(record):
            if name not in record:
                raise MissingColumnError(name, record, where)
            value = record[name]
            for step in steps:
                value = _member(value, step, self.source, where)
                if value is None and step.endswith("?"):
                    break
            if self.field == "id" and (value is None or not str(value).strip()):
                raise DataError(f"{where}: expected {name!r} as part of the id, found {value!r}.")
            values.append(value)
        return values[0] if len(values) == 1 else "/".join(map(str, values))


def _member(value: Any, step: str, source: str, where: str) -> Any:
    if isinstance(value, str):
        value = _literal(value, source, where)
    if isinstance(value, Mapping) and step in value:
        return value[step]
    number = step.removesuffix("?")
    if isinstance(value, Sequence) and number.isdecimal():
        if int(number) < len(value):
            return value[int(number)]
        if step.endswith("?"):
            return None
    raise DataError(f"{where}: expected {source!r}, found no {step!r} in it.")


def _literal(text: str, source: str, where: str) -> Any:
    """Return the list or mapping that a cell holds as JSON or Python writes it."""
    try:
        value = ast.literal_eval(text)
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        value = None
    if not isinstance(value, list | tuple | dict):
        raise DataError(f"{where}: expected a list for {source!r}, found {text[:60]!r}.")
    return value


_LITERAL = str.maketrans({"[": "[[]", "?": "[?]"})
"""The characters besides ``*`` that a pattern of file names gives a meaning to."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Condition:
    """Which records are kept: those with all of the values."""

    values: Mapping[str, str | None]
    """Column -> the value as text, or several with bars between them, in which ``*`` matches any text; None means any
    value but null."""

    def holds(self, record: Mapping[str, Any], where: str) -> bool:
        """Return whether a record is kept; raises `DataError` for a column that is missing."""
        return all(self._has(record, column, value, where) for column, value in self.values.items())

    def _has(self, record: Mapping[str, Any], column: str, value: str | None, where: str) -> bool:
        actual = Column(field="", source=column).value(record, where)
        if value is None:
            return actual is not None
        text = str(actual).strip()
        choices = value.split("|")
        if text == value or text in choices:
            return True
        patterns = [choice.translate(_LITERAL) for choice in choices if "*" in choice]
        return actual is not None and any(fnmatchcase(text, pattern) for pattern in patterns)


def wanted_records(options: Mapping[str, str]) -> Condition | None:
    """Return the condition of the option ``where``, None when it is not given; raises `UsageError` without a column."""
    if "where" not in options:
        return None
    values: dict[str, str | None] = {}
    for condition in options["where"].split("\n"):
        column, equals, value = (piece.strip() for piece in condition.partition("="))
        if not column or column in values:
            raise UsageError(
                f"The reader option 'where' must name a column once, found {options['where']!r}."
            )
        values[column] = value if equals else None
    return Condition(values=values)


def wanted_columns(options: Mapping[str, str]) -> tuple[Column, ...] | None:
    """Return the columns that the option ``columns`` names, None when it is not given.

    Raises `UsageError` for an empty name or a field that is named twice.
    """
    if "columns" not in options:
        return None
    columns = []
    for entry in options["columns"].split(","):
        name, _, source = (piece.strip() for piece in entry.partition("="))
        if not name or ("=" in entry and not source):
            raise UsageError(
                "The reader option 'columns' must hold names separated by commas, "
                f"found {options['columns']!r}."
            )
        columns.append(Column(field=name, source=source or name))
    names = [column.field for column in columns]
    for name in names:
        if names.count(name) > 1:
            raise UsageError(f"The reader option 'columns' names {name!r} twice: {options['columns']!r}.")
    return tuple(columns)


def pick(record: Mapping[str, Any], columns: Sequence[Column] | None, where: str) -> Mapping[str, Any]:
    """Return the wanted columns of a record, all of them when `columns` is None.

    Raises `DataError` at `where` for a column that is missing in the record.
    """
    if columns is None:
        return record
    return {column.field: column.value(record, where) for column in columns}


class MissingColumnError(DataError):
    """A column is not there; the hint has near names."""

    def __init__(self, name: str, found: Mapping[str, Any] | Sequence[str], where: str) -> None:
        near = near_names(name, found)
        columns = ", ".join(repr(candidate) for candidate in found) or "none"
        hint = f"Did you mean {near[0]!r}?" if near else None
        super().__init__(f"{where}: expected a column {name!r}, found {columns}.", hint=hint)
        self.column = name


def counted(count: int) -> str:
    """Return ``1 column`` or ``2 columns``."""
    return "1 column" if count == 1 else f"{count} columns"


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
