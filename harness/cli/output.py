"""Output of commands: printed text and tables, files that the user named, and the warnings at the end."""

from __future__ import annotations

import json
import os
import re
import shlex
import sys
import traceback
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import TYPE_CHECKING, Any

from harness.errors import UnknownNameError, UsageError
from harness.storage.redaction import redact

if TYPE_CHECKING:
    from harness.registry.discovery import Plugins
    from harness.specs.catalog import Catalog

DEBUG: ContextVar[bool] = ContextVar("DEBUG", default=False)
"""Whether the command line has ``--debug``."""
FIGURES = ("svg", "pdf", "png")
"""Formats for files alone."""
SUFFIXES = {"console": ".txt", "text": ".txt", "latex": ".tex", "markdown": ".md"}
"""Suffixes that differ from the name of their format."""
FILE_SUFFIXES = frozenset(
    ".csv .html .json .jsonl .lock .md .pdf .png .svg .tex .txt .yaml .yml .conllu .parquet".split()
)
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


def write_rows(path: Path | None, rows: Sequence[Mapping[str, Any]]) -> None:
    """Write rows of plain objects as JSON, where a file is given.

    Raises `UsageError` where the file is of another format or not writable.
    """
    if path is not None:
        check_output_file(path, ".json")
        write_file(path, json.dumps(list(rows), ensure_ascii=False, indent=1) + "\n")


def write_or_print(path: Path | None, text: str) -> None:
    """Write a text into the file that the user named, or print it where there is none."""
    if path is None:
        echo(text, nl=False)
    else:
        write_file(path, text)


def write_file(path: Path, text: str) -> None:
    """Write a file that the user named; raises `UsageError` where it cannot be written."""
    from harness.storage.files import write_atomically

    try:
        write_atomically(path, text)
    except OSError as error:
        raise UsageError(f"The file {str(path)!r} cannot be written: {error.strerror}.") from error


def write_files(files: Iterable[tuple[str, str]], folder: Path) -> list[Path]:
    """Write files below a folder, given by name, and return their paths; raises `UsageError` as `write_file`."""
    written = []
    for name, text in files:
        path = folder / name
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise UsageError(f"The folder {str(path.parent)!r} cannot be made: {error.strerror}.") from error
        write_file(path, text)
        written.append(path)
    return written


def check_outputs_first(command: Any) -> None:
    """Let a command check the files that it is to write before it does anything, its own as well as a plugin's.

    That is every ``--json``, and every ``--output`` whose suffix is that of a file: a run folder has none.
    """
    for child in getattr(command, "commands", {}).values():
        check_outputs_first(child)
    for option in command.params:
        if option.callback is None and {"--json", "--output"} & {*option.opts}:
            option.callback = _checked_output


def _checked_output(_: Any, option: Any, value: Any) -> Any:
    if isinstance(value, str | Path) and ("--json" in option.opts or Path(value).suffix in FILE_SUFFIXES):
        check_output_file(Path(value), *([".json"] if "--json" in option.opts else []))
    return value


def check_output_file(path: Path | None, *suffixes: str) -> None:
    """Raise `UsageError` where a file could not be written, before the work whose result it shall hold.

    Args:
        path: The file, or None.
        suffixes: Those that fit what is written, as ``.json``; a file without a suffix fits all, and none given also.
    """
    if path is None:
        return
    if suffixes and path.suffix and path.suffix.lower() not in suffixes:
        raise UsageError(
            f"The file {str(path)!r} would hold {suffixes[0].removeprefix('.')}, which its suffix does not say.",
            hint=f"Name it {path.with_suffix(suffixes[0]).name}.",
        )
    if path.is_dir():
        raise UsageError(f"The file {str(path)!r} cannot be written: it is a folder.")
    if not path.absolute().parent.is_dir() or not os.access(path.absolute().parent, os.W_OK | os.X_OK):
        raise UsageError(
            f"The file {str(path)!r} cannot be written: its folder is not there or not writable.",
            hint=f"Make it (mkdir -p {shlex.quote(str(path.parent))}), or name another file.",
        )


def format_suffixes(*names: str) -> dict[str, str]:
    """Return the suffix of every format by its name, for `choose_format`."""
    return {name: SUFFIXES.get(name, f".{name}") for name in names}


def choose_format(
    name: str | None, output: Path | None, formats: Mapping[str, str], *, folders: Collection[str] = ()
) -> str:
    """Return the name of the format of an output: the suffix of a file is its format.

    Args:
        name: What the user named with ``--format``; None takes the format of the suffix, or else the first one.
        output: The file or folder; None prints.
        formats: Name -> suffix, as ``.tex``. A suffix of two formats is that of the first.
        folders: The formats that are written into a folder, whose name may have dots.

    Raises:
        UnknownNameError: There is no such format.
        UsageError: The suffix is that of another format, or of none.
    """
    suffix = "" if output is None or output.is_dir() else output.suffix.lower()
    of_suffix = next((candidate for candidate, ending in formats.items() if ending == suffix), None)
    if name is None:
        if suffix and of_suffix is None:
            suffixes = ", ".join(sorted(set(formats.values())))
            raise UsageError(
                f"No format has the suffix {suffix!r} of the file {str(output)!r}.",
                hint=f"Known: {suffixes}.",
            )
        return of_suffix or next(iter(formats))
    if name not in formats:
        raise UnknownNameError("format", name, formats)
    if output is not None and of_suffix is not None and formats[name] != suffix and name not in folders:
        raise UsageError(
            f"The file {str(output)!r} would hold {name}, but its suffix is that of {of_suffix}.",
            hint=f"Name it {output.with_suffix(formats[name]).name}, or choose --format {of_suffix}.",
        )
    if name in FIGURES and output is None:
        raise UsageError(f"The format {name!r} is for files.", hint=f"Add --output FILE.{name}.")
    return name
