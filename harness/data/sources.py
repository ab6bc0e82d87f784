"""From a spec's source to examples: fill the codes in, find the files, read them, give rows their field names."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from harness.data.records import Row
from harness.data.resolve import DataOptions, DataRef, HubFiles, LocalFiles, ResolvedData, resolve
from harness.errors import DataError, MissingDataError, UnknownNameError
from harness.languages import Language
from harness.specs.schema import HubSource, LocalSource, Source

if TYPE_CHECKING:
    from harness.registry import Registry

__all__ = ["DataFinder", "FoundData", "Pins", "data_ref"]

Columns = Sequence[str] | Mapping[str, str] | None
Pins = Mapping[tuple[str, str | None, str], str]
"""Repository, config and split of a Hub dataset -> the commit that a lock file names."""


def data_ref(
    source: Source,
    *,
    owner: str,
    language: Language,
    split: str,
    folder: Traversable | None,
    conditions: Mapping[str, str] | None = None,
) -> DataRef:
    """Return where a split may be found, with the language's codes filled into paths and configs.

    `conditions` are further names that may stand in braces: the axes of a cell.
    """
    codes = {**_codes(language), **(conditions or {})}
    return DataRef(
        owner=owner,
        language=language.code,
        split=split,
        local=_alternatives(source, codes, owner),
        hub=_hub_files(source.hub, codes, owner),
        sample=_sample_files(source, codes, owner),
        sample_root=None if folder is None else _sample_root(folder),
    )


def _sample_root(folder: Traversable) -> Traversable:
    return _below(folder) if isinstance(folder, Path) else folder.joinpath("sample")


@lru_cache(maxsize=1024)
def _below(folder: Path) -> Path:
    return folder / "sample"


@lru_cache(maxsize=1024)
def _codes(language: Language) -> Mapping[str, str]:
    return language.codes()


def _alternatives(source: Source, codes: Mapping[str, str], owner: str) -> tuple[LocalFiles, ...]:
    if isinstance(source.local, str):
        # What `Source.alternatives` would make of it, without an object between.
        only = LocalFiles(
            paths=(_fill(source.local, codes, owner),),
            reader=source.reader,
            columns=_columns(source.columns),
            options={name: _fill(value, codes, owner) for name, value in source.options.items()},
            label_map=source.label_map or {},
        )
        return (only,)
    return tuple(
        _local_files(source, item, codes, owner) for item in source.alternatives if item.serves(codes)
    )


def _local_files(source: Source, item: LocalSource, codes: Mapping[str, str], owner: str) -> LocalFiles:
    options = source.options if item.options is None else item.options
    return LocalFiles(
        paths=tuple(_fill(path, codes, owner) for path in item.paths),
        split=item.split,
        reader=item.reader or source.reader,
        columns=_columns(source.columns if item.columns is None else item.columns),
        options={name: _fill(value, codes, owner) for name, value in options.items()},
        label_map=(source.label_map if item.label_map is None else item.label_map) or {},
    )


def _hub_files(hub: HubSource | None, codes: Mapping[str, str], owner: str) -> HubFiles | None:
    if hub is None or codes["language"] in hub.lacks:
        return None
    return HubFiles(
        path=hub.path,
        config=None if hub.config is None else _fill(hub.config, codes, owner),
        split=hub.split,
        revision=hub.revision,
        reader=hub.reader,
        columns=_columns(hub.columns),
        options={name: _fill(value, codes, owner) for name, value in hub.options.items()},
        label_map=hub.label_map or {},
    )


def _sample_files(source: Source, codes: Mapping[str, str], owner: str) -> LocalFiles | None:
    if source.sample is None:
        return None
    if isinstance(source.sample, LocalSource):
        return _local_files(source, source.sample, codes, owner)
    return LocalFiles(
        paths=(_fill(source.sample, codes, owner),), reader="jsonl", label_map=source.label_map or {}
    )


def _columns(columns: Columns) -> str | None:
    """Return the readers' ``columns`` option: names in order, or ``field=column`` pairs."""
    if columns is None:
        return None
    if isinstance(columns, Mapping):
        return ",".join(f"{field}={column}" for field, column in columns.items())
    return ",".join(columns)


def _fill(text: str, codes: Mapping[str, str], owner: str) -> str:
    try:
        return text.format_map(codes)
    except KeyError as error:
        raise UnknownNameError(
            f"language code in {text!r} of {owner!r}", str(error.args[0]), codes
        ) from error
    except (ValueError, IndexError, AttributeError) as error:
        raise DataError(
            f"The path {text!r} of {owner!r} has a brace that is no {{code}}: {error}."
        ) from error


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundData:
    """A split whose files are known, with all that is needed to read it."""

    ref: DataRef
    files: ResolvedData
    note: str = ""
    """What makes scores on it differ from the benchmark's."""

    @property
    def label_map(self) -> Mapping[str, str]:
        """Label in the files -> label of the task."""
        return self.files.label_map

    def digest(self) -> str:
        """Return a digest of the bytes of the files and of how they are read."""
        files = self.files
        how = [files.reader, files.columns, dict(files.options), dict(files.label_map)]
        text = json.dumps([files.digest(), how], ensure_ascii=False, sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()

    def to_json(self) -> dict[str, Any]:
        """Return what results and manifests record of it."""
        return {
            "origin": self.files.origin,
            "files": self.files.describe,
            "split": self.files.split_used,
            "stands_in": self.files.stands_in,
            "revision": self.files.revision,
            "pinned": self.files.pinned,
            "note": self.note,
            "digest": self.digest(),
        }


def _pinned(ref: DataRef, pins: Pins) -> DataRef:
    """Return where a split may be found, its Hub dataset at the commit of the pins where they have it."""
    if ref.hub is None:
        return ref
    commit = pins.get((ref.hub.path, ref.hub.config, ref.hub.split), ref.hub.revision)
    return replace(ref, hub=replace(ref.hub, revision=commit))


class DataFinder:
    """Finds and reads the splits of specs, where the user asked to look."""

    def __init__(
        self, options: DataOptions, registry: Registry, cache: Path, *, pins: Pins | None = None
    ) -> None:
        self.options = options
        self._registry = registry
        self._cache = cache
        self._pins = pins or {}

    def find(self, source: Source, ref: DataRef) -> FoundData:
        """Return the files of a split; raises `MissingDataError` with the way to get them."""
        lacks = {} if source.hub is None else source.hub.lacks
        ref = _pinned(ref, self._pins)
        if self.options.mode == "hub" and ref.language in lacks:
            raise MissingDataError(
                f"The Hub dataset of {ref} cannot be used: {lacks[ref.language]}.",
                hint="Get the published files and name their folder with --data DIR.",
            )
        files = resolve(ref, self.options, lambda wanted: self._registry.resolve_data(wanted, self._cache))
        note = source.hub.note if source.hub is not None and files.origin == "hub" else ""
        return FoundData(ref=ref, files=files, note=note)

    def rows(self, found: FoundData) -> Iterator[Row]:
        """Return the rows of a split, with the field names of the spec; raises `DataError`."""
        files = found.files
        assert files.reader is not None
        reader = self._registry.readers.get(files.reader)
        options = dict(files.options)
        if files.columns is not None:
            options["columns"] = files.columns
        unknown = sorted(set(options) - set(reader.options))
        if unknown:
            raise UnknownNameError(f"option of the reader {reader.name!r}", unknown[0], reader.options)
        return reader.read(files.paths, options)
