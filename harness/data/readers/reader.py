"""What a reader is: a named function from files and options to rows."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from harness.data.records import Row
from harness.errors import UnknownNameError, UsageError

__all__ = ["Reader", "choice", "flag"]


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

    def check_options(self, given: Mapping[str, str]) -> None:
        """Raise `UnknownNameError` for an option that the reader does not have."""
        for name in given:
            if name not in self.options:
                raise UnknownNameError(f"option of the reader {self.name!r}", name, self.options)


def choice(options: Mapping[str, str], name: str, allowed: Sequence[str]) -> str:
    """Return the value of an option, the first allowed one when it is not given; refuse any other value."""
    value = options.get(name, allowed[0])
    if value not in allowed:
        expected = " or ".join(repr(candidate) for candidate in allowed)
        raise UsageError(f"The reader option {name!r} must be {expected}, found {value!r}.")
    return value


def flag(options: Mapping[str, str], name: str, *, default: bool) -> bool:
    """Return the value of an option that is ``"true"`` or ``"false"``."""
    return choice(options, name, ("true", "false") if default else ("false", "true")) == "true"
