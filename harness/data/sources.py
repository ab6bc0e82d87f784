"""From a spec's source to examples: fill the codes in, find the files, read them, give rows their field names."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from harness.data.readers.reader import (
    MissingColumnError,
    Reader,
    extra_blank_lines,
    reader_advice,
    wanted_records,
)
from harness.data.records import Row, draw_items
from harness.data.resolve import (
    DataOptions,
    DataRef,
    HubFiles,
    LocalFiles,
    ResolvedData,
    WebFiles,
    is_made,
    resolve,
    unusable,
)
from harness.data.translation.services import TranslatorContext
from harness.data.translation.variants import TextChange, Translations
from harness.errors import DataError, HarnessError, MissingDataError, UnknownNameError, UsageError
from harness.languages.table import Language
from harness.progress import Progress
from harness.specs.schema import HubSource, LocalSource, Source, WebSource

if TYPE_CHECKING:
    from harness.table import NamedTable

Columns = Sequence[str] | Mapping[str, str] | None
Pins = Mapping[tuple[str, str | None, str], str]
"""Repository, config and split of a Hub dataset -> the commit that a lock file names; `web_pin` -> a checksum."""


def data_ref(
    source: Source,
    *,
    owner: str,
    language: Language,
    split: str,
    folder: Traversable | None,
    conditions: Mapping[str, str] | None = None,
    others: Iterable[Language] = (),
    fields: tuple[str, ...] = (),
) -> DataRef:
    """Return where a split may be found, with the language's codes filled into paths and configs.

    `conditions` are further names for braces: the axes of a cell. `others` are the languages that are likely asked
    for next, whose members of the same archive are unpacked with this one's.
    """
    codes = _codes(language, conditions)
    return DataRef(
        owner=owner,
        language=language.code,
        split=split,
        local=_alternatives(source, codes, owner),
        hub=_hub_files(source.hub, codes, owner),
        fields=fields,
        web=_web_files(source, codes, owner, others),
        sample=_sample_files(source, codes, owner),
        sample_root=None if folder is None else _sample_root(folder),
    )


def local_paths(
    source: Source, *, owner: str, language: Language, conditions: Mapping[str, str] | None = None
) -> list[tuple[str, ...]]:
    """Return the paths of each local alternative of `data_ref`, relative to a data folder."""
    codes = _codes(language, conditions)
    return [
        tuple(_fill(path, codes, owner) for path in item.paths)
        for item in source.alternatives
        if item.serves(codes)
    ]


def _sample_root(folder: Traversable) -> Traversable:
    return _below(folder) if isinstance(folder, Path) else folder.joinpath("sample")


@lru_cache(maxsize=1024)
def _below(folder: Path) -> Path:
    return folder / "sample"


def _codes(language: Language, conditions: Mapping[str, str] | None = None) -> Mapping[str, str]:
    codes = _language_codes(language)
    return {**codes, **conditions} if conditions else codes


@lru_cache(maxsize=1024)
def _language_codes(language: Language) -> Mapping[str, str]:
    return language.codes()


def _alternatives(source: Source, codes: Mapping[str, str], owner: str) -> tuple[LocalFiles, ...]:
    return tuple(
        _local_files(source, item, codes, owner) for item in source.alternatives if item.serves(codes)
    )


def _local_files(source: Source, item: LocalSource, codes: Mapping[str, str], owner: str) -> LocalFiles:
    paths = tuple(_fill(path, codes, owner) for path in item.paths)
    return LocalFiles(paths=paths, split=item.split, **_reading(source, item, codes, owner))


def _reading(
    source: Source, item: LocalSource | WebSource, codes: Mapping[str, str], owner: str
) -> dict[str, Any]:
    """Return the fields of `Reading` for files that are read as the split is, where they do not say otherwise."""
    options = source.options if item.options is None else item.options
    where = source.where if item.where is None else item.where
    columns = source.columns if item.columns is None else item.columns
    names = columns.values() if isinstance(columns, Mapping) else columns or ()
    return {
        "reader": source.reader_of(item),
        "columns": _columns(columns, codes, owner),
        "language_columns": frozenset(_fill(name, codes, owner) for name in names if "{" in name),
        "options": _options(options, where, codes, owner),
        "label_map": (source.label_map if item.label_map is None else item.label_map) or {},
    }


def _web_files(
    source: Source, codes: Mapping[str, str], owner: str, others: Iterable[Language]
) -> WebFiles | None:
    web = source.web
    if web is None:
        return None
    url = _fill(web.url, codes, owner)
    members = web.paths if web.member else ()
    sums = {"sha256": web.sha256, "md5": web.md5}
    checksums = [
        f"{name}:{digest}" for name, text in sums.items() if text and (digest := _fill(text, codes, owner))
    ]
    tables = [{**codes, **_codes(language)} for language in others]
    shared = [table for table in tables if _fill(web.url, table, owner) == url]
    return WebFiles(
        url=url,
        checksum=next(iter(checksums), None),
        members=tuple(_fill(member, codes, owner) for member in members),
        further=tuple(_fill(member, table, owner) for table in shared for member in members),
        **_reading(source, web, codes, owner),
    )


def _hub_files(hub: HubSource | None, codes: Mapping[str, str], owner: str) -> HubFiles | None:
    if hub is None or codes["language"] in hub.lacks:
        return None
    return HubFiles(
        path=_fill(hub.path, codes, owner),
        config=None if hub.config is None else _fill(hub.config, codes, owner),
        split=_fill(hub.split, codes, owner),
        files=tuple(_fill(file, codes, owner) for file in hub.paths),
        revision=hub.revision,
        reader=hub.reader,
        columns=_columns(hub.columns, codes, owner),
        options=_options(hub.options, hub.where, codes, owner),
        label_map=hub.label_map or {},
    )


def _columns(columns: Columns, codes: Mapping[str, str], owner: str) -> str | None:
    """Return the readers' ``columns`` option with the language's codes: a parallel file has a column per language."""
    option = columns_option(columns)
    return None if option is None else _fill(option, codes, owner)


def _options(
    options: Mapping[str, str], where: Mapping[str, str] | None, codes: Mapping[str, str], owner: str
) -> dict[str, str]:
    """Return the reader's options with the language's codes, `where` among them."""
    return {name: _fill(value, codes, owner) for name, value in with_conditions(options, where).items()}


def with_conditions(options: Mapping[str, str], where: Mapping[str, str] | None) -> Mapping[str, str]:
    """Return options with the readers' ``where`` option: a condition per line."""
    if not where:
        return options
    return {**options, "where": "\n".join(f"{column}={value}" for column, value in where.items())}


def _sample_files(source: Source, codes: Mapping[str, str], owner: str) -> LocalFiles | None:
    if source.sample is None:
        return None
    if isinstance(source.sample, LocalSource):
        return _local_files(source, source.sample, codes, owner)
    return LocalFiles(
        paths=(_fill(source.sample, codes, owner),), reader="jsonl", label_map=source.label_map or {}
    )


def columns_option(columns: Columns) -> str | None:
    """Return the readers' ``columns`` option: names in order, or ``field=column`` pairs."""
    if columns is None:
        return None
    if isinstance(columns, Mapping):
        return ",".join(f"{field}={column}" for field, column in columns.items())
    return ",".join(columns)


def _fill(text: str, codes: Mapping[str, str], owner: str) -> str:
    if "{" not in text and "}" not in text:
        return text
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
class DrawnRows:
    """The draw of a limit, made before items are: keeps the rows of the items that `draw` would keep."""

    limit: int
    seed: int
    task: str
    language: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundData:
    """A split whose files are known, with all that is needed to read it."""

    ref: DataRef
    files: ResolvedData
    note: str = ""
    """What makes scores on it differ from the benchmark's."""
    change: TextChange | None = None
    """How its texts are translated before they are read."""
    aligned: FoundData | None = None
    """The language's own items, of which these are translations: as many, or the same ids."""
    share: float = 1.0
    """Part of its rows that is used, drawn by row."""
    drawn: DrawnRows | None = None
    """Which rows a limit will keep: others need no translation."""
    made_from: Mapping[str, str] = field(default_factory=dict)
    """How its first file was generated, as the head of that file records it."""

    @property
    def label_map(self) -> Mapping[str, str]:
        """Label in the files -> label of the task."""
        return self.files.label_map

    @property
    def untranslated(self) -> FoundData:
        """The split as its files are."""
        return replace(self, change=None, aligned=None, share=1.0, drawn=None)

    def shares_rows(self, other: FoundData) -> bool:
        """Return whether two splits may have rows in common: a file, of which they do not keep different parts.

        Parts are different where the option ``where`` wants different values of one column (``partition=train`` and
        ``partition=dev``).
        """
        first, second = (wanted_records(split.files.options) for split in (self, other))
        pairs = (
            []
            if first is None or second is None
            else [
                (first.values[name], second.values[name])
                for name in first.values.keys() & second.values.keys()
            ]
        )
        is_parted = any(None not in pair and pair[0] != pair[1] for pair in pairs)
        return not is_parted and not set(self.files.paths).isdisjoint(other.files.paths)

    def content(self) -> tuple[object, ...]:
        """Return all that decides the rows: the bytes of the files, whatever their names, and how they are read."""
        files = self.files
        how = (files.reader, files.columns, *sorted(files.options.items()))
        return (
            *files.file_digests(),
            how,
            None if self.change is None else json.dumps(self.change.to_json()),
        )

    def digest(self) -> str:
        """Return a digest of the bytes of the files and of how they are read."""
        files = self.files
        how = [files.reader, files.columns, dict(files.options), dict(files.label_map)]
        identity: list[Any] = [files.digest(), how]
        if self.change is not None:
            # What a file has before it is translated, and by what; an own file that only limits it counts too.
            identity += [
                self.change.to_json(),
                None if self.aligned is None else self.aligned.digest(),
                self.share,
            ]
        elif self.share < 1:
            identity.append(self.share)
        text = json.dumps(identity, ensure_ascii=False, sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()

    def to_json(self) -> dict[str, Any]:
        """Return the record of results and manifests."""
        return {
            "origin": self.files.origin,
            "files": self.files.describe,
            "split": self.files.split_used,
            "stands_in": self.files.stands_in,
            "revision": self.files.revision,
            "pinned": self.files.pinned,
            "note": self.note,
            "digest": self.digest(),
            **({} if self.change is None else {"translated": self.change.to_json()}),
            **({"made_from": dict(self.made_from)} if self.made_from else {}),
        }


def web_pin(url: str) -> tuple[str, str | None, str]:
    """Return the key of a download from the web in `Pins`."""
    return (url, None, "web")


def _pinned(ref: DataRef, pins: Pins) -> DataRef:
    """Return where a split may be found, its download at the commit or checksum of the pins where they have it."""
    if ref.web is not None:
        checksum = ref.web.checksum or pins.get(web_pin(ref.web.url))
        return replace(ref, web=replace(ref.web, checksum=checksum))
    if ref.hub is None:
        return ref
    commit = pins.get((ref.hub.path, ref.hub.config, ref.hub.split), ref.hub.revision)
    return replace(ref, hub=replace(ref.hub, revision=commit))


class Declared(TranslatorContext, Protocol):
    """Declarations of plugins that finding and reading data needs; the registry has them."""

    @property
    def readers(self) -> NamedTable[Reader]:
        """Readers of file formats."""

    def resolve_data(self, ref: DataRef, cache: Path) -> ResolvedData | None:
        """Return the files of a split that no local folder has, or None if no plugin can get it."""


class DataFinder:
    """Finds and reads the splits of specs, where the user asked to look."""

    def __init__(
        self, options: DataOptions, declared: Declared, cache: Path, *, pins: Pins | None = None
    ) -> None:
        self.options = options
        self._declared = declared
        self._cache = cache
        self._pins = pins or {}
        self.translations = Translations(declared, cache.parent / "translations")
        self.notes: dict[str, None] = {}
        """Sentences about the files that were read, for a run's notes."""

    def find(self, source: Source, ref: DataRef) -> FoundData:
        """Return the files of a split; raises `MissingDataError` with the way to get them."""
        unusable = {} if source.hub is None else source.hub.lacks
        ref = _pinned(ref, self._pins)
        if self.options.mode == "hub" and ref.language in unusable:
            raise MissingDataError(
                f"The Hub dataset of {ref} cannot be used: {unusable[ref.language]}.",
                hint="Get the published files and name their folder with --data DIR.",
            )
        files = resolve(ref, self.options, lambda wanted: self._declared.resolve_data(wanted, self._cache))
        note = source.hub.note if source.hub is not None and files.origin == "hub" else ""
        split = FoundData(ref=ref, files=files, note=note, made_from=self._made_from(files))
        self._check_kept(split)
        if files.origin == "hub" and not is_made(ref):
            self._check_readable(split)
        return split

    def _made_from(self, files: ResolvedData) -> Mapping[str, str]:
        """Return how generated files were made, where their reader knows."""
        readers = self._declared.readers
        reader = readers.get(files.reader) if files.reader is not None and files.reader in readers else None
        return reader.made_from(files.paths[0]) if reader and reader.made_from and files.paths else {}

    def _check_readable(self, found: FoundData) -> None:
        """Raise `MissingDataError` where the first row of a Hub split cannot be read, or has not the fields."""
        if found.files.reader not in self._declared.readers.names:
            return
        reader, options = self._reader_of(found)
        try:
            for row in reader.rows(found.files.paths, options):
                for name in () if "columns" in options else found.ref.fields:
                    if name not in row.fields:
                        raise MissingColumnError(name, row.fields, row.where)
                break
        except DataError as error:
            raise unusable(found.ref, error) from error

    def _check_kept(self, found: FoundData) -> None:
        """Raise `MissingDataError` where the user's file of several languages has no records of this one."""
        files = found.files
        readers = self._declared.readers
        if files.origin != "local" or files.reader is None or files.reader not in readers:
            return
        chosen = sorted(readers.get(files.reader).filters & files.options.keys())
        absent = self._absent(found, chosen) if chosen or files.language_columns else None
        if absent:
            raise MissingDataError(
                f"No data of {found.ref}: {files.describe} has no {absent}.",
                hint=f"Put a file there that has it ('harness tasks show {found.ref.owner}' says where it is from).",
            )

    def _absent(self, found: FoundData, chosen: Sequence[str]) -> str | None:
        """Return which records or column of a language a file does not have; other faults fail the cell later."""
        reader, options = self._reader_of(found)
        try:
            if any(True for _ in reader.read(found.files.paths, options)) or not chosen:
                return None
        except MissingColumnError as error:
            return f"column {error.column!r}" if error.column in found.files.language_columns else None
        except HarnessError:
            return None
        return "record with " + " and ".join(f"{name}: {options[name]}" for name in chosen)

    def rows(self, found: FoundData) -> Iterator[Row]:
        """Return the rows of a split, with the field names of the spec; raises `DataError`.

        Texts that are to be translated are taken from the store of translations, or translated where it is incomplete.
        """
        if found.change is None:
            return iter(self.rows_before(found)) if found.share < 1 else self._read(found)
        return self.translations.rows(found.change, self.rows_before(found), found.ref.owner)

    def translate(self, splits: Iterable[FoundData], progress: Progress) -> None:
        """Translate all texts of splits that are not in the store; raises what `Translations.prepare` does."""
        workload = [(split.change, self.rows_before(split)) for split in splits if split.change is not None]
        self.translations.prepare(workload, progress)

    def fingerprints(self, found: FoundData) -> list[str]:
        """Return the identities of the translators of a split, step by step; translates it where they are not known."""
        assert found.change is not None
        if not self.translations.infos(found.change):
            self.translations.prepare([(found.change, self.rows_before(found))])
        return [info["fingerprint"] for info in self.translations.infos(found.change)]

    def rows_before(self, found: FoundData) -> list[Row]:
        """Return the rows that are translated: those that the language's own items have, or a share of them."""
        rows = list(self._read(found))
        _check_unique_ids(rows)
        if found.aligned is not None:
            own_rows = list(self._read(found.aligned))
            _check_unique_ids(own_rows)
            rows = _aligned(rows, own_rows, found)
        # Items without ids are named by their number, which they must keep.
        rows = [
            row if "id" in row.fields else replace(row, fields={**row.fields, "id": str(number)})
            for number, row in enumerate(rows, start=1)
        ]
        if found.share < 1:
            size = max(1, round(len(rows) * found.share))
            rows = _drawn(rows, DrawnRows(limit=size, seed=0, task=found.ref.owner, language=None))
        return rows if found.drawn is None else _drawn(rows, found.drawn)

    def _read(self, found: FoundData) -> Iterator[Row]:
        reader, options = self._reader_of(found)
        yield from _checked_rows(reader, found, options, self._declared)
        if blank := sum(map(extra_blank_lines, set(found.files.paths))):
            lines = "1 blank line that separates" if blank == 1 else f"{blank:,} blank lines that separate"
            self.notes[f"{found.ref}: {found.files.describe} has {lines} nothing, read as none"] = None

    def _reader_of(self, found: FoundData) -> tuple[Reader, dict[str, str]]:
        files = found.files
        assert files.reader is not None
        reader = self._declared.readers.get(files.reader)
        options = dict(files.options)
        if files.columns is not None:
            options["columns"] = files.columns
        unknown = sorted(set(options) - set(reader.options))
        if unknown:
            raise UnknownNameError(f"option of the reader {reader.name!r}", unknown[0], reader.options)
        return reader, options


def find_split(
    finder: DataFinder,
    source: Source,
    owner: str,
    language: Language,
    split: str,
    folder: Any,
    conditions: Mapping[str, str] | None = None,
) -> FoundData:
    """Return the files of a split in a language; raises `MissingDataError`."""
    ref = data_ref(source, owner=owner, language=language, split=split, folder=folder, conditions=conditions)
    return finder.find(source, ref)


def _checked_rows(
    reader: Reader, found: FoundData, options: Mapping[str, str], declared: Declared
) -> Iterator[Row]:
    """Yield the rows of a reader; an error about its options also names the data that it reads.

    Raises `DataError` if a file changed since the plan was made, or while it was read.
    """
    found.files.check_unchanged()
    try:
        split = f"The {found.ref.split} split of {found.ref.owner!r} in {found.ref.language!r}"
        yield from reader.rows(found.files.paths, options, split=split)
        found.files.check_unchanged()
    except UsageError as error:
        advice = reader_advice([path.name for path in found.files.paths], reader.name, declared.readers.names)
        raise UsageError(
            f"{found.ref}, {found.files.describe}: {error.message}", hint=advice or error.hint
        ) from error


def _check_unique_ids(rows: Sequence[Row]) -> None:
    """Raise `DataError` for the first id that occurs twice: variants are compared item by item."""
    first: dict[Any, Row] = {}
    for row in rows:
        earlier = first.setdefault(row.fields.get("id", row.where), row)
        if earlier is not row:
            raise DataError(
                f"{row.where}: the id {str(row.fields['id'])!r} is already in {earlier.where}; items that are "
                "translated need ids of their own."
            )


def _aligned(rows: list[Row], own: Sequence[Row], found: FoundData) -> list[Row]:
    """Return the rows that have the ids of the language's own items, or all where none has ids.

    A field that is missing in them, such as a label that was never published with the source, is that of the own item.

    Raises `DataError` where the two are not the same items: their scores could not be compared item by item.
    """
    ids = [row.fields.get("id") for row in own]
    if None in ids or any(row.fields.get("id") is None for row in rows):
        if len(rows) != len(own):
            raise DataError(
                f"{found.ref} has {len(rows):,} items and the language's own file {len(own):,}: without ids they must "
                "be as many, row by row."
            )
        pairs = list(zip(rows, own, strict=True))
    else:
        by_id = dict(zip(ids, own, strict=True))
        pairs = [(row, by_id[row.fields["id"]]) for row in rows if row.fields["id"] in by_id]
        if len(pairs) != len(own):
            raise DataError(
                f"Items of {found.ref} are missing: {len(own) - len(pairs):,} of the {len(own):,} items of the "
                "language's own file."
            )
    return [replace(row, fields={**own_row.fields, **row.fields}) for row, own_row in pairs]


def _drawn(rows: Sequence[Row], draw: DrawnRows) -> list[Row]:
    drawn = draw_items(rows, draw.limit, _row_id, seed=draw.seed, task=draw.task, language=draw.language)
    return [row for _, row in drawn]


def _row_id(row: Row) -> str:
    return str(row.fields["id"])
