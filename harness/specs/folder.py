"""The documents of a registered folder, found and read so that nothing in it can crash or stop a command.

The parsed documents of the last command are kept in the cache folder, by the digest of what was read. The files
themselves are read by every command, which takes microseconds each; what takes time is to parse YAML. So an index entry
cannot be out of date: it belongs to the very bytes that were parsed.
"""

from __future__ import annotations

import errno
import hashlib
import json
import os
import re
import stat
import sys
import tempfile
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Any

import yaml

from harness.errors import HarnessError, Problem, SpecError, UsageError
from harness.specs import loading
from harness.specs.loading import Document, read_yaml
from harness.specs.task_entry import Entry
from harness.storage.files import cache_folder, publish

SORTS = ("task", "training", "recipe", "suite", "published", "prompt", "extends")
"""The key that says of what sort a document is; its value is the name."""
MOST_BYTES = 2_000_000
"""Of one file. The largest spec that is shipped has 12 thousand."""
MOST_ENTRIES = 50_000
"""Of one folder with its subfolders: a plugin that gives a home folder by mistake is reported, not waited for."""
SUFFIXES = (".yaml", ".yml")
INDEX_FOLDER = "specs"
"""In the cache folder; has a file for every Python environment."""
_INDEX_FORMAT = 1


def yaml_files(plugin: str, folder: Traversable) -> list[Traversable]:
    """Return the YAML files of a folder and of the folders in it, without ``sample``, by name.

    Raises `HarnessError` where it is no folder, cannot be read, or is far too large.
    """
    files: list[Traversable] = []
    budget = MOST_ENTRIES
    try:
        outer = _children(folder, budget)
        budget -= len(outer)
        for name, item, is_folder in outer:
            if name == "sample":
                continue
            if is_folder and not name.startswith((".", "_")):
                inner = _children(item, budget)
                budget -= len(inner)
                files += [file for inner_name, file, _ in inner if inner_name.endswith(SUFFIXES)]
            elif name.endswith(SUFFIXES):
                files.append(item)
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
    return files


def read_file(file: Traversable) -> bytes:
    """Return the content of a regular file; raises `SpecError` for one that is far too large, `OSError` for others."""
    content = _read_path(file) if isinstance(file, Path) else file.read_bytes()
    if len(content) > MOST_BYTES:
        fault = f"has more than {MOST_BYTES:,} bytes, the most that a spec may have"
        raise SpecError(str(file), [Problem(message=fault)])
    return content


def read_folder(
    plugin: str, folder: Traversable, index: SpecIndex | None = None
) -> tuple[list[Entry], list[HarnessError]]:
    """Return the documents of a registered folder, two levels deep, and what is wrong with unreadable ones."""
    entries: list[Entry] = []
    problems: list[HarnessError] = []
    try:
        files = yaml_files(plugin, folder)
    except HarnessError as error:
        return [], [error]
    for file in files:
        try:
            entries += read_entries(plugin, file, folder, index)
        except HarnessError as error:
            problems.append(error)
        except Exception as error:  # noqa: BLE001, RUF100  a stranger's Traversable may raise anything
            problems.append(unreadable(file, error))
    return entries, problems


def read_entry(plugin: str, file: Traversable, folder: Traversable, index: SpecIndex | None = None) -> Entry:
    """Return the first document of a file; raises `SpecError` where its sort is unclear."""
    return read_entries(plugin, file, folder, index)[0]


def read_entries(
    plugin: str, file: Traversable, folder: Traversable, index: SpecIndex | None = None
) -> list[Entry]:
    """Return the documents of a file, which lines ``---`` separate; raises `SpecError` where a sort is unclear."""
    content = read_file(file)
    try:
        text = content.decode("utf-8")
    except UnicodeDecodeError as error:
        raise SpecError(str(file), [Problem(message=f"is not UTF-8: {error}")]) from error
    cached = None if index is None else index.get(content)
    is_given = plugin in {str(file), str(folder)}  # a plugin is never named as its files are
    if cached is not None:
        documents = [Document(source=str(file), data=cached, text=text)]
    else:
        documents = [read_yaml(piece, str(file)) for piece in _parts(text)]
        if index is not None and len(documents) == 1:
            index.put(content, documents[0].data)
    return [_entry(document, plugin, folder, given=is_given) for document in documents]


def _parts(text: str) -> list[str]:
    """Return the text of each document; empty lines before it keep the numbers of its lines."""
    pieces: list[str] = []
    line = 0
    for piece in re.split(r"^---[ \t]*$\n?", text, flags=re.MULTILINE):
        if piece.strip() or not text.strip():
            pieces.append("\n" * line + piece)
        line += piece.count("\n") + 1
    return pieces or [text]


def _entry(document: Document, plugin: str, folder: Traversable, *, given: bool) -> Entry:
    sorts = [sort for sort in SORTS if sort in document.data]
    if "published" in sorts:
        sorts = ["published"]  # published scores also name their suite and their recipe
    if len(sorts) != 1 or not isinstance(document.data[sorts[0]], str):
        expected = ", ".join(f"'{sort}: NAME'" for sort in SORTS)
        raise SpecError(document.source, [Problem(message=f"expected exactly one of {expected}", line=1)])
    name = document.data[sorts[0]]
    return Entry(sort=sorts[0], name=name, plugin=plugin, document=document, folder=folder, given=given)


def read_given(path: Path) -> list[Entry]:
    """Return the documents of a file or folder that the user gave; raises `HarnessError` for the first fault."""
    if path.is_dir():
        entries, problems = read_folder(str(path), path)
        if problems:
            raise problems[0]
        if not entries:
            raise UsageError(f"The folder {str(path)!r} given with --tasks-from holds no YAML spec.")
        return entries
    if not path.is_file():
        raise UsageError(f"The path {str(path)!r} given with --tasks-from does not exist.")
    try:
        return read_entries(str(path), path, path.parent)
    except OSError as error:
        raise unreadable(path, error) from error


class _TooManyError(Exception):
    """There are more entries than anyone's specs have."""


def unreadable(file: Traversable, error: Exception) -> SpecError:
    """Return the error for a file that cannot be read."""
    reason = (isinstance(error, OSError) and error.strerror) or f"{type(error).__name__}: {error}"
    return SpecError(str(file), [Problem(message=f"cannot be read: {reason}")])


def _children(folder: Traversable, most: int) -> list[tuple[str, Traversable, bool]]:
    """Return (name, entry, whether it is a folder) of what lies in a folder, by name."""
    children: list[tuple[str, Traversable, bool]] = []
    if isinstance(folder, Path):
        with os.scandir(folder) as entries:
            for entry in entries:
                children.append((entry.name, folder / entry.name, _is_folder(entry)))
                if len(children) > most:
                    raise _TooManyError
    else:
        for item in folder.iterdir():
            children.append((item.name, item, item.is_dir()))
            if len(children) > most:
                raise _TooManyError
    return sorted(children, key=lambda child: child[0])


def _is_folder(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_dir()
    except OSError:  # such as a link to itself, which is reported when it is read
        return False


def _read_path(path: Path) -> bytes:
    # A named pipe would be waited for, a device has no end: neither is opened for good or read.
    handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    with open(handle, "rb") as file:  # noqa: PTH123  opened by its number
        if not stat.S_ISREG(os.fstat(handle).st_mode):
            raise OSError(errno.EINVAL, "it is no regular file")
        return file.read(MOST_BYTES + 1)


class SpecIndex:
    """Parsed documents by the digest of their bytes; those that were not asked for are not saved again."""

    def __init__(self) -> None:
        """Read the index of this environment; one that is missing, damaged or of another reader is an empty one."""
        self._path = cache_folder() / INDEX_FOLDER / f"{_digest(os.fsencode(sys.prefix))}.json"
        self._known = _read_index(self._path)
        self._used: dict[str, dict[str, Any]] = {}
        self._is_new = False

    def get(self, content: bytes) -> dict[str, Any] | None:
        """Return the document that these bytes were parsed to, or None where they never were."""
        key = _digest(content)
        data = self._known.get(key)
        if data is not None:
            self._used[key] = data
        return data

    def put(self, content: bytes, data: dict[str, Any]) -> None:
        """Remember what bytes were parsed to."""
        self._used[_digest(content)] = data
        self._is_new = True

    def save(self) -> None:
        """Write the index if a document was new to it; where nothing can be written, the next command parses again."""
        if not self._is_new:
            return
        payload = json.dumps(self._used, separators=(",", ":")).encode()
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            handle, temporary = tempfile.mkstemp(dir=self._path.parent, prefix=".")
            try:
                with os.fdopen(handle, "wb") as file:
                    file.write(_index_header(payload) + payload)
                # Not synced to the disk, which takes longer than parsing: the header shows what a crash has torn.
                publish(Path(temporary), self._path)
            except BaseException:
                Path(temporary).unlink(missing_ok=True)
                raise
        except OSError:
            return


def _read_index(path: Path) -> dict[str, dict[str, Any]]:
    try:
        content = path.read_bytes()
    except OSError:
        return {}
    header, _, payload = content.partition(b"\n")
    if header + b"\n" != _index_header(payload):
        return {}
    documents: dict[str, dict[str, Any]] = json.loads(payload)
    return documents


def _index_header(payload: bytes) -> bytes:
    """Return the first line: the format, the source of the reader that parsed, and the digest of the rest."""
    return (
        f"harness-specs {_INDEX_FORMAT} {yaml.__version__} {_reader_digest()} {_digest(payload)}\n".encode()
    )


def _reader_digest() -> str:
    """Return the digest of the module that parses: another version of it may read the same bytes otherwise."""
    loader: Any = getattr(loading.__spec__, "loader", None)
    source = loader.get_source(loading.__name__) if hasattr(loader, "get_source") else None
    return _digest((source or "").encode())


def _digest(content: bytes) -> str:
    return hashlib.blake2b(content, digest_size=20).hexdigest()
