"""What commands print, what they write into files that the user named, and the warnings that they end with."""

from __future__ import annotations

import json
import os
import re
import sys
import traceback
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from harness.cli.tracing import DEBUG
from harness.errors import UsageError
from harness.storage.clean_text import redact

if TYPE_CHECKING:
    from harness.registry.discovery import Plugins
    from harness.specs.catalog import Catalog

__all__ = [
    "check_output_file",
    "echo",
    "print_problem",
    "printable",
    "reporting_broken_plugins",
    "write_file",
    "write_rows",
]

_CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff]|\r(?!\n)")


def printable(text: str) -> str:
    """Return a text without secrets, with ``⟦U+001B⟧`` in place of control characters other than tabs and line ends.

    Texts of data, models, servers and runs of others are printed; none of them may move the cursor, set the title of
    the window or hide a line.
    """
    return _CONTROL.sub(lambda found: f"⟦U+{ord(found[0]):04X}⟧", redact(text))


def echo(text: str = "", *, nl: bool = True, err: bool = False) -> None:
    """Print a text as `printable` makes it, with a line end where `nl`; to stderr where `err`."""
    import typer

    typer.echo(printable(text), nl=nl, err=err)


@contextmanager
def reporting_broken_plugins(plugins: Plugins, catalog: Catalog | None = None) -> Iterator[None]:
    """Warn, after what is done inside, about broken plugins and specs that cannot be read.

    Also when it raised: an unknown name may be one that a broken plugin would have brought.
    """
    try:
        yield
    finally:
        problems = [*plugins.problems, *([] if catalog is None else catalog.problems)]
        for problem in problems:
            print_problem(f"Warning: {problem}", problem)


def print_problem(message: str, problem: BaseException) -> None:
    """Write a line to stderr; with ``--debug`` the traceback of what a problem came from goes before it."""
    if DEBUG.get() and problem.__cause__ is not None:
        sys.stderr.write(printable("".join(traceback.format_exception(problem.__cause__))))
    sys.stderr.write(printable(f"{message}\n"))


def write_rows(path: Path, rows: Sequence[Mapping[str, Any]]) -> None:
    """Write rows of plain objects as JSON; raises `UsageError` where the file cannot be written."""
    write_file(path, json.dumps(list(rows), ensure_ascii=False, indent=1) + "\n")


def write_file(path: Path, text: str) -> None:
    """Write a file that the user named; raises `UsageError` where it cannot be written."""
    from harness.storage.files import write_atomically

    try:
        write_atomically(path, text)
    except OSError as error:
        raise UsageError(f"The file {str(path)!r} cannot be written: {error.strerror}.") from error


def check_output_file(path: Path | None) -> None:
    """Raise `UsageError` where a file could not be written, before the work whose result it shall hold."""
    if path is None:
        return
    if path.is_dir():
        raise UsageError(f"The file {str(path)!r} cannot be written: it is a folder.")
    if not path.absolute().parent.is_dir() or not os.access(path.absolute().parent, os.W_OK | os.X_OK):
        raise UsageError(
            f"The file {str(path)!r} cannot be written: its folder is not there or not writable."
        )
