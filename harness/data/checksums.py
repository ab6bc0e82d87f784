"""Published files by their SHA-256: whether a file that is read is a released one.

A folder of specs may hold the file `NAME` in the format of ``sha256sum``: a digest and the path of the file below a
data folder, as the specs name it. A path has a line for each release; lines that begin with ``#`` are comments.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from importlib.resources.abc import Traversable
from pathlib import PurePosixPath

from harness.data.sources import FoundData
from harness.errors import Problem, SpecError

NAME = "SHA256SUMS"
RELEASED = "released file"
CHANGED = "changed file"
UNKNOWN = "file of no known release"
_LINE = re.compile(r"([0-9a-f]{64}) [ *](\S.*)")


@dataclass(frozen=True, slots=True, kw_only=True)
class FileState:
    """Whether the files of a split are released ones: `CHANGED` if one is, else `UNKNOWN` if one is."""

    word: str
    changed: Mapping[str, str | None] = field(default_factory=dict)
    """Changed file -> the path of the published file that has its content, None where none has."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Checksums:
    """The digests of published files."""

    digests: Mapping[str, frozenset[str]]
    """Path below a data folder -> the SHA-256 of its releases."""
    paths: Mapping[str, str]
    """SHA-256 -> path."""

    @classmethod
    def read(cls, folders: Iterable[Traversable]) -> Checksums:
        """Return the digests in folders of specs; raises `SpecError` for a line in another format."""
        digests: dict[str, set[str]] = {}
        for file in (folder.joinpath(NAME) for folder in folders):
            for number, line in enumerate(file.read_text("utf-8").splitlines() if file.is_file() else (), 1):
                if not line or line.startswith("#"):
                    continue
                match = _LINE.fullmatch(line)
                if match is None:
                    fault = f"expected a SHA-256, two spaces and a path, found {line[:80]!r}"
                    raise SpecError(str(file), [Problem(message=fault, line=number)])
                digests.setdefault(match[2], set()).add(match[1])
        paths = {digest: path for path, sums in digests.items() for digest in sums}
        return cls(digests={path: frozenset(sums) for path, sums in digests.items()}, paths=paths)

    def state(self, found: FoundData) -> FileState | None:
        """Return whether the files of a split are released ones; None for samples and for data of the Hub.

        A file is known by the names that its spec gives it, in any of the alternatives; one that has no known name is
        released where its content is.
        """
        if found.files.origin != "local":
            return None
        words, changed = set(), {}
        for number, digest in enumerate(found.files.file_digests()):
            names = [name for name in _names(found, number) if name in self.digests]
            if any(digest in self.digests[name] for name in names) or (not names and digest in self.paths):
                words.add(RELEASED)
            elif names:
                changed[names[0]] = self.paths.get(digest)
            else:
                words.add(UNKNOWN)
        word = CHANGED if changed else UNKNOWN if UNKNOWN in words else RELEASED
        return FileState(word=word, changed=changed)


def _names(found: FoundData, number: int) -> Iterator[str]:
    """Yield the paths that a spec has for the file of a number, in the alternatives that are read as its own is."""
    path, alternatives = found.files.paths[number], found.ref.local
    patterns = [pattern for files in alternatives for pattern in files.paths if "*" in pattern]
    if any(path.match(pattern) for pattern in patterns):
        yield from (f"{PurePosixPath(pattern).parent}/{path.name}" for pattern in patterns)
        return
    for files in alternatives:
        is_split = (files.split or found.ref.split) == found.files.split_used
        if is_split and len(files.paths) == len(found.files.paths):
            yield files.paths[number]
