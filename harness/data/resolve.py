"""Where the files of a data source are: on the Hub, in folders of the user, or in the embedded sample."""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from glob import escape
from importlib.resources.abc import Traversable
from itertools import islice
from pathlib import Path, PurePosixPath
from typing import Literal

from harness.errors import DataError, MissingDataError
from harness.storage.files import file_digest

DataMode = Literal["hub", "local", "sample"]
State = Literal["right", "gone", "gated", "renamed", "different", "broken", "unreachable"]
"""Of a split on the Hub: ``different`` from what the spec says, ``broken`` where its files cannot be read."""
DataOrigin = Literal["hub", "local", "sample", "web"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """How files are read, where that differs from what the task says; None and empty change nothing."""

    reader: str | None = None
    columns: str | None = None
    """The reader's ``columns`` option."""
    language_columns: frozenset[str] = frozenset()
    """Columns whose names are filled with the language's codes: a table of several languages has one for each."""
    options: Mapping[str, str] = field(default_factory=dict)
    """Further options of the reader."""
    label_map: Mapping[str, str] = field(default_factory=dict)
    """Label in the files -> label of the task."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LocalFiles(Reading):
    """Files that are read together: one alternative of a source."""

    paths: tuple[str, ...]
    """Relative to a data folder, with ``/``; ``*`` means any part of a name, matches sorted by name."""
    split: str | None = None
    """The split that the files really are, where they replace the one that was asked for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HubFiles(Reading):
    """A split of a dataset on the Hugging Face Hub."""

    path: str
    """Repository, such as ``facebook/xnli``."""
    config: str | None = None
    split: str
    files: tuple[str, ...] = ()
    """The files of the repository that are the split, read by the reader as they are; patterns. Without them, the
    card of the dataset says which they are."""
    revision: str | None = None
    """Commit (40 hexadecimal digits); None is the newest one. All but a commit is shown as unpinned."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WebFiles(Reading):
    """A file on the web, or members of an archive there."""

    url: str
    checksum: str | None = None
    """``sha256:`` or ``md5:`` and the digest of the download; None where it has not been seen."""
    members: tuple[str, ...] = ()
    """Patterns of paths inside; none for a file that is read itself."""
    further: tuple[str, ...] = ()
    """What the spec names in the same archive for other languages, unpacked in the same pass."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DataRef:
    """One split of one language of a task or training set, and every place that may hold it."""

    owner: str
    """Name of the task or training set."""
    language: str
    split: str
    local: tuple[LocalFiles, ...] = ()
    """Alternatives, the best first."""
    hub: HubFiles | None = None
    fields: tuple[str, ...] = ()
    """Fields that each row has, where its columns are not named."""
    web: WebFiles | None = None
    sample: LocalFiles | None = None
    """Files below `sample_root`."""
    sample_root: Traversable | None = None

    def __str__(self) -> str:
        """Return ``'xnli' in 'sw' (test)`` for messages."""
        return f"{self.owner!r} in {self.language!r} ({self.split})"


@dataclass(frozen=True, slots=True, kw_only=True)
class DataOptions:
    """Where the user wants data to come from."""

    mode: DataMode = "hub"
    folders: tuple[Path, ...] = ()
    """Data folders of the mode ``local``; the first one that has all files of a split wins, else each of its files
    is that of the first one that has it."""
    hub_cache: Path | None = None
    """Where prepared downloads are kept."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ResolvedData(Reading):
    """The files of a source on this machine."""

    paths: tuple[Path, ...]
    origin: DataOrigin
    split_used: str
    stands_in: bool = False
    """Whether the files are another split than the one that was asked for."""
    revision: str | None = None
    """The commit of a Hub dataset; ``sha256:`` and the digest of a download from the web."""
    pinned: bool = True
    """Whether the source names exactly what it wants; a Hub dataset without a commit does not,
    nor a file of the web without a checksum."""
    describe: str
    """The place, for tables and manifests: ``xnli/test-sw.tsv in /data``."""
    _first: list[str] = field(default_factory=list, compare=False, repr=False)
    """SHA-256 of every file when it was first asked for: that of the plan."""

    def digest(self) -> str:
        """Return the SHA-256 (hexadecimal) over the names and bytes of the files, in their order.

        Files that have not changed (device and inode, size, time of modification) are read once in a process.
        """
        total = hashlib.sha256()
        for path, content in zip(self.paths, self.file_digests(), strict=True):
            total.update(f"{path.name}\0{content}\n".encode())
        return total.hexdigest()

    def file_digests(self) -> list[str]:
        """Return the SHA-256 (hexadecimal) of every file, in their order, as they were at the first call."""
        if not self._first:
            self._first.extend(self._digests_now())
        return self._first

    def check_unchanged(self) -> None:
        """Raise `DataError` if a file is not the one that the plan found, so that no other data are scored."""
        if not self._first:
            return
        try:
            now = self._digests_now()
        except OSError as error:
            raise DataError(
                f"The data file {str(error.filename)!r} disappeared during the run: {error.strerror}.",
                hint="Put the file back and resume the run.",
            ) from error
        for path, former, current in zip(self.paths, self._first, now, strict=True):
            if former != current:
                raise DataError(
                    f"The data file {str(path)!r} changed during the run: its SHA-256 was {former}, "
                    f"now it is {current}.",
                    hint="Put the former file back and resume the run, or start a new run.",
                )

    def _digests_now(self) -> list[str]:
        return [file_digest(path) for path in self.paths]


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceState:
    """State of a split on the Hub, asked without its data."""

    state: State
    detail: str = ""
    """What is not right, with the next command."""
    files: Mapping[str, int] = field(default_factory=dict)
    """The files of the repository that a run would still download -> bytes."""


_UNSAFE = re.compile(r"[\\:\0]")

HubResolver = Callable[[DataRef], ResolvedData | None]


def resolve(ref: DataRef, options: DataOptions, hub_resolver: HubResolver | None = None) -> ResolvedData:
    """Return where the files of `ref` are.

    Raises `MissingDataError`, which says where was looked and what to do next, when they are nowhere; raises
    `DataError` for a path of a spec that leaves the data folder.
    """
    if options.mode == "sample":
        return _sample(ref)
    if options.mode == "local" and not is_made(ref):
        return _local(ref, options.folders)
    return _from_hub(ref, hub_resolver)


def is_made(ref: DataRef) -> bool:
    """Return whether a plugin makes the data, ``PREFIX:NAME``: then no folder of the user can have them."""
    return ref.hub is not None and ":" in ref.hub.path


def check_relative(path: str) -> PurePosixPath:
    """Return a path of a spec; raises `DataError` where it would leave the data folder."""
    _check_inside(path)
    return PurePosixPath(path)


def _check_inside(path: str) -> None:
    segments = set(path.split("/"))
    outside = path.startswith("/") or ".." in segments or segments <= {"", "."}
    if outside or "**" in path or _UNSAFE.search(path):
        raise DataError(
            f"The data path {path!r} must be relative to the data folder, without '..', '**', ':' or '\\'.",
            hint="Correct the path in the task's spec.",
        )


# Folders of the user ----------------------------------------------------------------------------------


def _local(ref: DataRef, folders: Sequence[Path]) -> ResolvedData:
    for files in ref.local:
        for path in files.paths:
            _check_inside(path)
    # Files that lie together are of one download. A split that replaces another one is the last resort, wherever it is.
    together = [*((folder,) for folder in folders), *([tuple(folders)] if len(folders) > 1 else [])]
    for replacing in (False, True):
        for group in together:
            for files in ref.local:
                if (files.split is not None) is not replacing:
                    continue
                paths = _files_in(group, files.paths)
                if paths is not None:
                    location = f"{', '.join(files.paths)} in {', '.join(map(str, group))}"
                    return _resolved(ref, files, paths, origin="local", place=location)
    raise _missing_locally(ref, folders)


def _files_in(folders: Sequence[Path], patterns: Sequence[str]) -> tuple[Path, ...] | None:
    """Return the files of every pattern, each of the first folder that has it; None where no folder has one."""
    files: list[Path] = []
    for pattern in patterns:
        matches = next(filter(None, (sorted(_matches(folder, pattern)) for folder in folders)), None)
        if matches is None:
            return None
        files += matches
    return tuple(files)


def _matches(folder: Path, pattern: str) -> Iterator[Path]:
    if "*" in pattern:
        literal = "*".join(escape(piece) for piece in pattern.split("*"))
        yield from (path for path in folder.glob(literal) if path.is_file())
    elif os.path.isfile(os.path.join(folder, pattern)):  # noqa: PTH113, PTH118  several times faster than pathlib
        yield folder / pattern


def _missing_locally(ref: DataRef, folders: Sequence[Path]) -> MissingDataError:
    if not ref.local:
        return MissingDataError(f"No local file is known for {ref}.", hint=_other_way(ref))
    expected = " or ".join(" with ".join(files.paths) for files in ref.local)
    looked = ", ".join(str(folder) for folder in folders) or "no folder (none was given)"
    nearby = _folder_nearby(ref, folders)
    hint = _other_way(ref) if nearby is None else f"It is in {nearby}: run with --data {nearby}."
    return MissingDataError(f"No data of {ref}: looked for {expected} in {looked}.", hint=hint)


def _folder_nearby(ref: DataRef, folders: Sequence[Path]) -> Path | None:
    """Return the folder above or below a given one that has the files, where the user took the wrong level."""
    with suppress(OSError):  # a folder that may not be read is nowhere that could be advised
        for folder in folders:
            below = (
                islice((path for path in folder.iterdir() if path.is_dir()), 20) if folder.is_dir() else ()
            )
            for near in (folder.parent, *sorted(below)):
                if any(_files_in([near], files.paths) is not None for files in ref.local):
                    return near
    return None


def _other_way(ref: DataRef) -> str:
    if ref.hub is not None or ref.web is not None:
        return f"Put it there, or run with --data hub ({_remote_name(ref)})."
    way = "Put it there, or give the folder that has it with --data"
    # What is trained on may be a training set, which 'tasks show' does not know; the message names its paths.
    return f"{way} ('harness tasks show {ref.owner}' has the paths)." if ref.split == "test" else f"{way}."


# The embedded sample ----------------------------------------------------------------------------------


def _sample(ref: DataRef) -> ResolvedData:
    if ref.sample is None or ref.sample_root is None:
        hint = "Run with --data hub or --data DIR."
        if is_made(ref):
            hint = "Omit --data sample: the spec itself says where its data are."
        raise MissingDataError(f"No embedded sample of {ref} exists.", hint=hint)
    root = ref.sample_root
    if not isinstance(root, Path):
        raise MissingDataError(
            f"The embedded sample of {ref} lies in an archive, {root}.",
            hint="Install the package unpacked, with pip.",
        )
    for path in ref.sample.paths:
        _check_inside(path)
    paths = _files_in([root], ref.sample.paths)
    if paths is None:
        raise MissingDataError(
            f"The embedded sample has no {ref}: there is no {', '.join(ref.sample.paths)}.",
            hint="Run with --data hub or --data DIR.",
        )
    return _resolved(
        ref, ref.sample, paths, origin="sample", place=f"embedded sample {', '.join(ref.sample.paths)}"
    )


def _resolved(
    ref: DataRef, files: LocalFiles, found: tuple[Path, ...], *, origin: DataOrigin, place: str
) -> ResolvedData:
    split = files.split or ref.split
    return ResolvedData(
        reader=files.reader,
        columns=files.columns,
        language_columns=files.language_columns,
        options=files.options,
        label_map=files.label_map,
        paths=found,
        origin=origin,
        split_used=split,
        stands_in=split != ref.split,
        describe=place,
    )


# The Hub ----------------------------------------------------------------------------------------------


def _from_hub(ref: DataRef, hub_resolver: HubResolver | None) -> ResolvedData:
    if ref.hub is None and ref.web is None:
        files = " or ".join(" with ".join(files.paths) for files in ref.local)
        hint = f"Run with --data DIR, where DIR holds {files}." if files else None
        raise MissingDataError(f"No Hub dataset is known for {ref}.", hint=hint)
    try:
        resolved = hub_resolver(ref) if hub_resolver is not None else None
    except DataError as error:
        raise unusable(ref, error) from error
    if resolved is None:
        sort = "the Hub dataset " if ref.hub is not None else ""
        raise MissingDataError(
            f"No installed plugin reads {sort}{_remote_name(ref)} for {ref}.",
            hint="Run: pip install 'multilingual-harness[hf]', or use --data DIR.",
        )
    return resolved


def unusable(ref: DataRef, error: DataError) -> MissingDataError:
    """Return the error for a Hub dataset that cannot be read for any reason: it skips cells and ends no command."""
    if isinstance(error, MissingDataError):
        return error
    hint = error.hint or f"See what the Hub has: harness doctor --hub {ref.owner}"
    return MissingDataError(error.message, hint=hint)


def _remote_name(ref: DataRef) -> str:
    if ref.hub is None:
        assert ref.web is not None
        return ref.web.url
    names = [name for name in (ref.hub.config, ref.hub.split) if name is not None]
    return f"{ref.hub.path}, {', '.join(names)}"
