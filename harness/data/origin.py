"""Where the data of a task or a training set are looked for, and whether a file that is read is a released one.

A folder of specs may hold the file `CHECKSUM_FILE` in the format of ``sha256sum``: a digest and the path of the file
below a data folder, as the specs name it. A path has a line for each release; lines that begin with ``#`` are comments.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from importlib.resources.abc import Traversable
from pathlib import PurePosixPath
from typing import cast

from harness.data.resolve import DataRef
from harness.data.sources import DataFinder, FoundData, data_ref, local_paths
from harness.errors import HarnessError, MissingDataError, Problem, SpecError
from harness.languages.table import LanguageTable
from harness.specs.catalog import Catalog
from harness.specs.schema import Source, Split, TaskSpec, TrainingSpec
from harness.specs.task_entry import TaskEntry, described_languages

CHECKSUM_FILE = "SHA256SUMS"
RELEASED = "released file"
CHANGED = "changed file"
UNKNOWN = "file of no known release"
_CHECKSUM_LINE = re.compile(r"([0-9a-f]{64}) [ *](\S.*)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Origin:
    """A task or training set with its languages and the folders of their samples."""

    name: str
    spec: TaskSpec | TrainingSpec
    languages: LanguageTable
    folders: Mapping[str, Traversable]

    @classmethod
    def of(cls, entry: TaskEntry) -> Origin:
        """Return the origin of a task's own splits."""
        return cls(name=entry.spec.task, spec=entry.spec, languages=entry.languages, folders=entry.folders)

    @classmethod
    def named(cls, name: str, catalog: Catalog) -> Origin:
        """Return the training set of a name, or the task where there is no such training set."""
        if name not in catalog.names("training"):
            return cls.of(catalog.task(name))
        spec, entry = catalog.training(name)
        return cls(
            name=name,
            spec=spec,
            languages=described_languages(spec),
            folders=dict.fromkeys(spec.languages, entry.folder),
        )

    def source(self, code: str, split: str) -> Source | None:
        """Return the source of a split in a language, None where there is none."""
        return self.spec.source(code, cast("Split", split))

    def ref(
        self, code: str, split: str, source: Source, conditions: Mapping[str, str] | None = None
    ) -> DataRef:
        """Return where a source may be found in a language; its rows have the inputs and the label of the spec."""
        # A task without its source language (XCOPA) finds its items below the folder of any language it has.
        folder = self.folders.get(code) or next(iter(self.folders.values()), None)
        inputs = () if split == "candidates" else self.spec.input_names
        # A model learns from few languages, and is tested in all of them.
        codes = () if source.web is None or split in {"train", "validation"} else self.spec.languages
        return data_ref(
            source,
            owner=self.name,
            language=self.languages.get(code),
            split=split,
            folder=folder,
            conditions=conditions,
            others=map(self.languages.get, codes),
            fields=(*inputs, "label") if inputs and self.spec.label_names else inputs,
        )

    def refs(self, code: str, split: str, source: Source) -> Iterator[DataRef]:
        """Yield where a source may be found, for all values of the task's axes."""
        for conditions in self._conditions():
            # A spec with a fault is reported where its cell is planned.
            with suppress(HarnessError):
                yield self.ref(code, split, source, conditions)

    def local_paths(self, code: str, source: Source) -> Iterator[list[tuple[str, ...]]]:
        """Yield the `local_paths` of a source in a language, for all values of the task's axes."""
        language = self.languages.get(code)
        for conditions in self._conditions():
            with suppress(HarnessError):
                yield local_paths(source, owner=self.name, language=language, conditions=conditions)

    def _conditions(self) -> Iterator[dict[str, str]]:
        axes: Mapping[str, tuple[str, ...]] = getattr(self.spec, "axes", {})
        for values in itertools.product(*axes.values()):
            yield dict(zip(axes, values, strict=True))

    def train_finder(self, finder: DataFinder) -> Callable[[str, Source], FoundData]:
        """Return the finder of a language's training files at a source."""
        return lambda code, source: self.find(finder, code, "train", source=source)

    def find(
        self,
        finder: DataFinder,
        code: str,
        split: str,
        conditions: Mapping[str, str] | None = None,
        *,
        source: Source | None = None,
    ) -> FoundData:
        """Return the files of a split in a language; raises `MissingDataError`.

        Args:
            finder: Finds them.
            code: The language.
            split: The split, or ``candidates``.
            conditions: Values of the task's axes.
            source: Another source than that of the split.
        """
        source = source or self.spec.source(code, cast("Split", split))
        if source is None:
            raise MissingDataError(f"{self.name!r} has no {split} split in {code!r}.")
        return finder.find(source, self.ref(code, split, source, conditions))


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
        for file in (folder.joinpath(CHECKSUM_FILE) for folder in folders):
            for number, line in enumerate(file.read_text("utf-8").splitlines() if file.is_file() else (), 1):
                if not line or line.startswith("#"):
                    continue
                match = _CHECKSUM_LINE.fullmatch(line)
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
            names = [name for name in _published_paths(found, number) if name in self.digests]
            if any(digest in self.digests[name] for name in names) or (not names and digest in self.paths):
                words.add(RELEASED)
            elif names:
                changed[names[0]] = self.paths.get(digest)
            else:
                words.add(UNKNOWN)
        word = CHANGED if changed else UNKNOWN if UNKNOWN in words else RELEASED
        return FileState(word=word, changed=changed)


def _published_paths(found: FoundData, number: int) -> Iterator[str]:
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
