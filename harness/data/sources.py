"""From a spec's source to examples: fill the codes in, find the files, read them, give rows their field names."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from harness.data.records import Row
from harness.data.resolve import DataOptions, DataRef, HubFiles, LocalFiles, ResolvedData, resolve
from harness.errors import DataError, UnknownNameError
from harness.languages import Language
from harness.specs.schema import HubSource, Source

if TYPE_CHECKING:
    from harness.registry import Registry

__all__ = ["DataFinder", "FoundData", "data_ref", "read_rows"]

Columns = Sequence[str] | Mapping[str, str] | None


def data_ref(
    source: Source, *, owner: str, language: Language, split: str, folder: Traversable | None
) -> DataRef:
    """Return where a split may be found, with the language's codes filled into paths and configs."""
    codes = language.codes()
    local = tuple(
        LocalFiles(
            paths=tuple(_fill(path, codes, owner) for path in alternative.paths), split=alternative.split
        )
        for alternative in source.alternatives
    )
    hub = None if source.hub is None else _hub_files(source.hub, codes, owner)
    sample = None if source.sample is None else _fill(source.sample, codes, owner)
    return DataRef(
        owner=owner,
        language=language.code,
        split=split,
        local=local,
        hub=hub,
        sample=sample,
        sample_root=None if folder is None else folder.joinpath("sample"),
    )


def _hub_files(hub: HubSource, codes: Mapping[str, str], owner: str) -> HubFiles:
    return HubFiles(
        path=hub.path,
        config=None if hub.config is None else _fill(hub.config, codes, owner),
        split=hub.split,
        revision=hub.revision,
    )


def _fill(text: str, codes: Mapping[str, str], owner: str) -> str:
    try:
        return text.format_map(codes)
    except KeyError as error:
        raise UnknownNameError(f"language code in {text!r} of {owner!r}", str(error.args[0]), codes) from error
    except (ValueError, IndexError, AttributeError) as error:
        raise DataError(f"The path {text!r} of {owner!r} has a brace that is no {{code}}: {error}.") from error


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundData:
    """A split whose files are known, with all that is needed to read it."""

    ref: DataRef
    files: ResolvedData
    reader: str
    columns: Columns
    label_map: Mapping[str, str]
    options: Mapping[str, str]
    only: Mapping[str, str]

    def digest(self) -> str:
        """Return a digest of the bytes of the files and of how they are read."""
        how = [self.reader, self.columns, self.label_map, self.options, self.only]
        text = json.dumps([self.files.digest(), how], ensure_ascii=False, sort_keys=True, default=list)
        return hashlib.sha256(text.encode()).hexdigest()

    def to_json(self) -> dict[str, Any]:
        """Return what the manifest records of it."""
        return {
            "origin": self.files.origin,
            "files": self.files.describe,
            "split": self.files.split_used,
            "stands_in": self.files.stands_in,
            "revision": self.files.revision,
            "digest": self.digest(),
        }


class DataFinder:
    """Finds and reads the splits of specs, where the user asked to look."""

    def __init__(self, options: DataOptions, registry: Registry, cache: Path) -> None:
        self.options = options
        self._registry = registry
        self._cache = cache

    def find(self, source: Source, ref: DataRef) -> FoundData:
        """Return the files of a split; raises `MissingDataError` with the way to get them."""
        files = resolve(ref, self.options, lambda wanted: self._registry.resolve_data(wanted, self._cache))
        if files.origin == "sample":
            return _found(ref, files, reader="jsonl", columns=None, label_map={}, options={}, only={})
        if files.origin == "hub":
            assert source.hub is not None
            hub = source.hub
            return _found(
                ref,
                files,
                reader=hub.reader,
                columns=hub.columns,
                label_map=hub.label_map or {},
                options=hub.options or {},
                only=hub.only or {},
            )
        alternative = source.alternatives[files.alternative]
        return _found(
            ref,
            files,
            reader=alternative.reader or source.reader,
            columns=source.columns if alternative.columns is None else alternative.columns,
            label_map=(source.label_map or {}) if alternative.label_map is None else alternative.label_map,
            options=source.options if alternative.options is None else alternative.options,
            only={},
        )

    def rows(self, found: FoundData) -> Iterator[Row]:
        """Return the rows of a split, with the field names of the spec."""
        reader = self._registry.readers.get(found.reader)
        options = dict(found.options)
        if not isinstance(found.columns, Mapping) and found.columns:
            options["columns"] = ",".join(found.columns)
        unknown = sorted(set(options) - set(reader.options))
        if unknown:
            raise UnknownNameError(f"option of the reader {reader.name!r}", unknown[0], reader.options)
        options = {key: value.replace("{language}", found.ref.language) for key, value in options.items()}
        rows = reader.read(found.files.paths, options)
        return read_rows(rows, found.columns, found.only)


def _found(ref: DataRef, files: ResolvedData, **how: Any) -> FoundData:
    return FoundData(ref=ref, files=files, **how)


def read_rows(rows: Iterable[Row], columns: Columns, only: Mapping[str, str]) -> Iterator[Row]:
    """Return rows with columns renamed (``{field: column}``) and with those left out that `only` excludes."""
    renamed = dict(columns) if isinstance(columns, Mapping) else {}
    for row in rows:
        if any(not str(row.fields.get(name, "")).startswith(prefix) for name, prefix in only.items()):
            continue
        if not renamed:
            yield row
            continue
        fields = dict(row.fields)
        for name, column in renamed.items():
            if column not in row.fields:
                raise DataError(
                    f"{row.where}: expected the column {column!r}, found {', '.join(sorted(row.fields))}."
                )
            fields[name] = row.fields[column]
        yield Row(fields=fields, path=row.path, line=row.line)
