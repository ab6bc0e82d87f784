"""The declaration of a reader: a named function from files and options to rows."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePath

from harness.data.records import Row
from harness.errors import DataError, UnknownNameError, UsageError


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
            for path in empty if not self.filters & options.keys() else filter(_is_blank, empty):
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


def _is_blank(path: Path) -> bool:
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
