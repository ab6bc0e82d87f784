"""The YAML files of a registered folder: found and read so that nothing in it can crash or stop a command."""

from __future__ import annotations

import errno
import os
import stat
from importlib.resources.abc import Traversable
from pathlib import Path

from harness.errors import HarnessError, Problem, SpecError

__all__ = ["MOST_BYTES", "MOST_ENTRIES", "read_file", "unreadable", "yaml_files"]

MOST_BYTES = 2_000_000
"""Of one file. The largest spec that is shipped has 12 thousand."""
MOST_ENTRIES = 50_000
"""Of one folder with the folders in it: a plugin that gives a home folder by mistake is told, not waited for."""
SUFFIXES = (".yaml", ".yml")


def yaml_files(plugin: str, folder: Traversable) -> list[Traversable]:
    """Return the YAML files of a folder and of the folders in it, without ``sample``, by name.

    Raises `HarnessError` where it is no folder, cannot be read, or is far too large.
    """
    found: list[Traversable] = []
    left = MOST_ENTRIES
    try:
        outer = _children(folder, left)
        left -= len(outer)
        for name, item, is_folder in outer:
            if name == "sample":
                continue
            if is_folder and not name.startswith((".", "_")):
                inner = _children(item, left)
                left -= len(inner)
                found += [file for inner_name, file, _ in inner if inner_name.endswith(SUFFIXES)]
            elif name.endswith(SUFFIXES):
                found.append(item)
    except _TooManyError as error:
        raise HarnessError(
            f"The folder {str(folder)!r} of the plugin {plugin!r} holds more than {MOST_ENTRIES:,} files: expected "
            "one of YAML specs."
        ) from error
    except Exception as error:  # a stranger's Traversable may raise anything
        reason = (isinstance(error, OSError) and error.strerror) or f"{type(error).__name__}: {error}"
        raise HarnessError(
            f"The folder {str(folder)!r} of the plugin {plugin!r} cannot be read: {reason}.",
            hint="Install its package again, or uninstall it.",
        ) from error
    return found


def read_file(file: Traversable) -> bytes:
    """Return the content of a regular file; raises `SpecError` for one that is far too large, `OSError` for others."""
    content = _read_path(file) if isinstance(file, Path) else file.read_bytes()
    if len(content) > MOST_BYTES:
        fault = f"has more than {MOST_BYTES:,} bytes, the most that a spec may have"
        raise SpecError(str(file), [Problem(message=fault)])
    return content


class _TooManyError(Exception):
    """There are more entries than anyone's specs have."""


def unreadable(file: Traversable, error: Exception) -> SpecError:
    """Return what is told about a file that cannot be read."""
    reason = (isinstance(error, OSError) and error.strerror) or f"{type(error).__name__}: {error}"
    return SpecError(str(file), [Problem(message=f"cannot be read: {reason}")])


def _children(folder: Traversable, most: int) -> list[tuple[str, Traversable, bool]]:
    """Return (name, entry, whether it is a folder) of what lies in a folder, by name."""
    found: list[tuple[str, Traversable, bool]] = []
    if isinstance(folder, Path):
        with os.scandir(folder) as entries:
            for entry in entries:
                found.append((entry.name, folder / entry.name, _is_folder(entry)))
                if len(found) > most:
                    raise _TooManyError
    else:
        for item in folder.iterdir():
            found.append((item.name, item, item.is_dir()))
            if len(found) > most:
                raise _TooManyError
    return sorted(found, key=lambda child: child[0])


def _is_folder(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_dir()
    except OSError:  # such as a link to itself, which is told when it is read
        return False


def _read_path(path: Path) -> bytes:
    # A named pipe would be waited for, a device has no end: neither is opened for good or read.
    handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    with open(handle, "rb") as file:  # noqa: PTH123  opened by its number
        if not stat.S_ISREG(os.fstat(handle).st_mode):
            raise OSError(errno.EINVAL, "it is no regular file")
        return file.read(MOST_BYTES + 1)
