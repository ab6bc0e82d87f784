"""Members of a zip or tar archive: those that a spec names, and no other, become files of the cache."""

from __future__ import annotations

import gzip
import lzma
import tarfile
import tempfile
import zipfile
import zlib
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from pathlib import Path, PurePosixPath
from typing import IO
from urllib.parse import quote

from harness import MissingDataError, near_names
from harness.data import WebFiles
from harness.storage import FileNotWrittenError, publish, write_atomically

CHUNK = 1 << 20
LISTING = "members.txt"
_BROKEN = (
    *(tarfile.TarError, zipfile.BadZipFile, gzip.BadGzipFile, zlib.error, lzma.LZMAError),
    *(EOFError, RuntimeError, NotImplementedError),  # cut off; encrypted; packed in a way that is not known
)


def unpack(web: WebFiles, archive: Path, folder: Path, largest: int) -> tuple[Path, ...]:
    """Return the files that the members of `web` are in, by pattern and then by name, unpacked if needed.

    A tar archive can only be read from its start, so one pass unpacks what the spec names for other languages too.
    A file is called after its member, percent-encoded: no name of an archive becomes a path. Links, devices, and
    names that leave the archive are never unpacked.

    Raises `MissingDataError` where there is no such member, the archive is broken, or more than `largest` bytes come
    out of it.
    """
    listing = folder / LISTING
    if not listing.is_file() or not all(_file(folder, name).is_file() for name in _named(web, listing)):
        try:
            _pass(archive, folder, (*web.members, *web.further), largest)
        except (*_BROKEN, _TooMuch) as error:
            raise MissingDataError(
                f"{web.url} cannot be unpacked: {str(error).rstrip('.') or type(error).__name__}.",
                hint="Name its unpacked files with --data DIR.",
            ) from error
        except OSError as error:
            raise FileNotWrittenError(folder, error) from error
    return tuple(_file(folder, name) for name in _named(web, listing))


class _TooMuch(Exception):
    """An archive holds more than may be unpacked."""


def _named(web: WebFiles, listing: Path) -> list[str]:
    names = listing.read_text("utf-8").splitlines()
    found: list[str] = []
    for pattern in web.members:
        own = sorted(name for name in names if _matches(name, [pattern]))
        if not own:
            near = near_names(pattern, names)
            raise MissingDataError(
                f"{web.url} has no member {pattern!r}.",
                hint=f"Did you mean {near[0]!r}?" if near else "Use --data DIR.",
            )
        found += own
    return found


def _matches(name: str, patterns: Iterable[str]) -> bool:
    path = PurePosixPath(name)
    return any(len(path.parts) == pattern.count("/") + 1 and path.match(pattern) for pattern in patterns)


def _file(folder: Path, name: str) -> Path:
    return folder / quote(name, safe="")


def _pass(archive: Path, folder: Path, patterns: Iterable[str], largest: int) -> None:
    """Unpack all members that match, and write the names of all members when that is done."""
    folder.mkdir(exist_ok=True)
    names, left, wanted = [], largest, tuple(dict.fromkeys(patterns))
    for name, opened in _members(archive):
        names.append(name)
        if not _matches(name, wanted) or _file(folder, name).is_file():
            continue
        stream = opened()
        assert stream is not None
        with tempfile.TemporaryDirectory(dir=folder) as scratch:
            part = Path(scratch) / "part"
            with part.open("wb") as file:
                while chunk := stream.read(CHUNK):
                    left -= len(chunk)
                    if left < 0:
                        raise _TooMuch(f"more than {largest:,} bytes come out of it")
                    file.write(chunk)
            publish(part, _file(folder, name))
    write_atomically(folder / LISTING, "".join(f"{name}\n" for name in names))


def _members(archive: Path) -> Iterator[tuple[str, Callable[[], IO[bytes] | None]]]:
    """Yield the name of every file in an archive, and what opens it before the next one is asked for."""
    if zipfile.is_zipfile(archive):
        with zipfile.ZipFile(archive) as pack:
            for info in pack.infolist():
                if not info.is_dir() and _is_safe(info.filename):
                    yield str(PurePosixPath(info.filename)), partial(pack.open, info)
    else:
        with tarfile.open(archive, "r|*") as tape:
            for entry in tape:
                if entry.isreg() and _is_safe(entry.name):
                    yield str(PurePosixPath(entry.name)), partial(tape.extractfile, entry)


def _is_safe(name: str) -> bool:
    path = PurePosixPath(name)
    inside = bool(path.parts) and not path.is_absolute() and ".." not in path.parts
    return inside and name.isprintable() and "\\" not in name
