"""Files of a data folder that lie where the selected tasks look, and that no task reads: a wrong name is not silent."""

from __future__ import annotations

import itertools
import os
import posixpath
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from pathlib import Path, PurePosixPath
from typing import Any

from harness.data.origin import Origin
from harness.data.resolve import DataOptions
from harness.specs.catalog import Catalog
from harness.specs.schema import SPLITS
from harness.specs.selection import SelectedTask

NAMED = 5
"""Files that a note names, and notes on folders where no task looks."""
WALKED = 20_000
"""Files of a data folder that are looked at."""
Alternatives = Sequence[Sequence[str]]
"""Paths that are read together, the first of several whose files exist."""
_BRACES = re.compile(r"\{[^{}]*\}")


def unread_file_notes(selected: Sequence[SelectedTask], catalog: Catalog, options: DataOptions) -> list[str]:
    """Return a sentence for every folder with files that no source of any task matches.

    The files have the suffix of a file that the selected tasks read. Folders in which these tasks look are always
    reported, with the names that they read there; others only where a test set was not found.
    """
    if options.mode != "local":
        return []
    splits = [split for task in selected for split in _splits(task)]
    names: dict[str, dict[str, None]] = {}
    for path in (path for _, alternatives in splits for paths in alternatives for path in paths):
        folder, name = posixpath.split(posixpath.normpath(path))
        names.setdefault(folder or ".", {})[name] = None
    suffixes = {_suffix(name) for group in names.values() for name in group} - {""}
    patterns = _patterns_of_all(catalog, suffixes)
    looked, elsewhere = [], []
    for root, folder, files in _files(options.folders, suffixes):
        unread = _unmatched(files, folder, patterns) if files else []
        note = f"no task reads {_some(unread)} in {root / folder}"
        if unread and folder in names:
            looked.append(f"{note}; the selected tasks read {_some(list(names[folder]))} there")
        elif unread:
            elsewhere.append(f"{note}; 'harness tasks show TASK' has the paths")
    tests = (alternatives for split, alternatives in splits if split == "test")
    is_complete = not elsewhere or all(_is_there(alternatives, options.folders) for alternatives in tests)
    return looked if is_complete else looked + elsewhere[:NAMED]


def _some(names: Sequence[str]) -> str:
    return ", ".join(names[:NAMED]) + (f" and {len(names) - NAMED} more" if len(names) > NAMED else "")


def _splits(selected: SelectedTask) -> Iterator[tuple[str, Alternatives]]:
    """Yield the splits of a selected task in its languages, for all values of its axes, and their paths."""
    origin = Origin.of(selected.entry)
    for code, split in itertools.product(selected.languages, SPLITS):
        source = origin.source(code, split)
        if source is not None:
            yield from ((split, alternatives) for alternatives in origin.local_paths(code, source))


def _suffix(name: str) -> str:
    return posixpath.splitext(name)[1]


def _is_there(alternatives: Alternatives, roots: Sequence[Path]) -> bool:
    return any(
        all(any(root.glob(path)) for path in paths)
        for paths in alternatives
        for root in roots
        if root.is_dir()
    )


def _files(roots: Iterable[Path], suffixes: set[str]) -> Iterator[tuple[Path, str, list[str]]]:
    """Yield data folder, folder below it, and the names of its files with these suffixes, sorted."""
    for root in roots:
        walked = 0
        for top, folders, names in os.walk(root):
            folders.sort()
            walked += len(names)
            if walked > WALKED:
                break  # The folder may be a whole file system.
            yield (
                root,
                Path(top).relative_to(root).as_posix(),
                sorted(name for name in names if _suffix(name) in suffixes),
            )


def _patterns_of_all(catalog: Catalog, suffixes: set[str]) -> Mapping[tuple[str, ...], set[str]]:
    """Return the texts of tasks and training sets that may be such files, braces as ``*``: parts of folder -> names."""
    names = ((sort, name) for sort in ("task", "training") for name in catalog.names(sort))
    texts = {text for sort, name in names for text in _texts(catalog.entry(sort, name).document.data)}
    patterns = {_BRACES.sub("*", text) for text in texts}
    names_by_folder: dict[tuple[str, ...], set[str]] = {}
    for pattern in patterns:
        if any(fnmatchcase(end, _suffix(pattern)) for end in suffixes):
            *folder, name = pattern.split("/")
            names_by_folder.setdefault(tuple(folder), set()).add(name)
    return names_by_folder


def _unmatched(files: Iterable[str], folder: str, known: Mapping[tuple[str, ...], set[str]]) -> list[str]:
    """Return the files of a folder that no pattern of `known` matches."""
    segments = PurePosixPath(folder).parts
    names = {
        name
        for patterns, names in known.items()
        if len(segments) == len(patterns) and all(map(fnmatchcase, segments, patterns))
        for name in names
    }
    return [file for file in files if not any(fnmatchcase(file, name) for name in names)]


def _texts(content: Any) -> Iterator[str]:
    if isinstance(content, str):
        yield content
    elif isinstance(content, Mapping):
        yield from (text for key, member in content.items() if key != "sample" for text in _texts(member))
    elif isinstance(content, list | tuple):
        yield from (text for member in content for text in _texts(member))
