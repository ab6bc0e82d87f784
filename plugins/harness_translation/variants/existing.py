"""Existing translations, looked up by text: from JSON lines or from pairs of files aligned by row."""

from __future__ import annotations

import csv
import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from pydantic import Field

from harness import DataError, Problem, SpecError, Translation, TranslatorContext, TranslatorInfo, UsageError
from harness.specs.loading import read_yaml
from harness.specs.schema import SpecModel
from harness.specs.validating import validate_document

__all__ = ["ExistingTranslations", "FilePair", "TranslationTable", "open_file"]

TABLE = "translations.yaml"
SHOWN = 3
LONG = 60


class FilePair(SpecModel):
    """Two files aligned by row, one of texts and one of their translations; paths are below the table's root."""

    source: str
    target: str
    text: str
    """File of the texts; `.tsv` or `.jsonl`."""
    translation: str
    """File of the translations, of the same format and length."""
    columns: tuple[int, ...] = ()
    """The columns of tab-separated files that hold text, from 0."""
    fields: tuple[str, ...] = ()
    """The keys of JSON lines that hold text."""


class TranslationTable(SpecModel):
    """The document ``translations.yaml`` of a folder."""

    id: str
    """Who made the translations: ``Google Translate, 2020``."""
    licence: str = ""
    root: str = "."
    """The folder that the paths are relative to, itself relative to the table's folder."""
    pairs: tuple[FilePair, ...] = Field(min_length=1)


class ExistingTranslations:
    """Looks texts up; if a text has two translations, the first counts."""

    def __init__(
        self, id_: str, licence: str, digest: str, tables: Mapping[tuple[str, str], Mapping[str, str]]
    ) -> None:
        self._id = id_
        self._licence = licence
        self._digest = digest
        self._tables = tables

    def info(self) -> TranslatorInfo:
        """Return who made the translations, and a digest of the files."""
        return TranslatorInfo(
            id=self._id, engine="file", engine_version="1", revision=self._digest, licence=self._licence
        )

    def supports(self, source: str, target: str) -> bool:
        """Return whether there are translations of the pair."""
        return (source, target) in self._tables

    def translate(self, segments: Sequence[str], source: str, target: str) -> list[Translation]:
        """Return the translations; raises `DataError` with the texts that have none."""
        known = self._tables[(source, target)]
        missing = [segment for segment in segments if segment not in known]
        if missing:
            shown = ", ".join(map(_short, missing[:SHOWN]))
            raise DataError(
                f"{self._id!r} has no translation {source}->{target} of {len(missing)} of {len(segments)} segments: "
                f"{shown}{', ...' if len(missing) > SHOWN else ''}",
                hint="Add them to the files; the other translations are kept.",
            )
        return [Translation(text=known[segment]) for segment in segments]

    def close(self) -> None:
        """Forget the files."""
        self._tables = {}


def open_file(ref: str, context: TranslatorContext) -> ExistingTranslations:
    """Return the translations of a JSON lines file, or of a folder with ``translations.yaml``.

    A line of the JSON lines has ``source``, ``target`` (language codes), ``text`` and ``translation``.

    Raises:
        UsageError: The file or folder does not exist.
        SpecError: Faults of ``translations.yaml``, all at once.
        DataError: A row is not a pair, or two files have different lengths.
    """
    path = Path(ref)
    if path.is_dir():
        path = path / TABLE
    if not ref or not path.is_file():
        raise UsageError(
            f"There are no translations {ref!r}: expected a .jsonl file, or a folder with {TABLE}."
        )
    digest = hashlib.blake2b(path.read_bytes(), digest_size=16)
    tables: dict[tuple[str, str], dict[str, str]] = {}
    if path.suffix == ".jsonl":
        for where, row in _json_rows(path):
            direction = (_code(row, "source", where, context), _code(row, "target", where, context))
            text, translation = _text(row, "text", where), _text(row, "translation", where)
            known = tables.setdefault(direction, {}).setdefault(text, translation)
            if known != translation:
                raise DataError(
                    f"{where}: {_short(text)} has another translation {direction[0]}->{direction[1]} already: "
                    f"{_short(known)}.",
                    hint="Keep one line for each text and pair.",
                )
        return ExistingTranslations(path.name, "", digest.hexdigest(), tables)
    try:
        document = read_yaml(path.read_text(encoding="utf-8"), str(path))
    except (OSError, UnicodeDecodeError) as error:
        raise DataError(f"{str(path)!r} cannot be read: {error}.") from error
    table = validate_document(TranslationTable, document)
    root = path.parent / table.root
    faults = [
        Problem(message=message, line=document.line_of(["pairs", number]), key=f"pairs.{number}")
        for number, pair in enumerate(table.pairs)
        for message in _faults(pair, root, context)
    ]
    if faults:
        raise SpecError(str(path), faults)
    for pair in table.pairs:
        before, after = root / pair.text, root / pair.translation
        digest.update(hashlib.blake2b(before.read_bytes()).digest())
        digest.update(hashlib.blake2b(after.read_bytes()).digest())
        for text, translation in _aligned(pair, before, after):
            _add(tables, (pair.source, pair.target), text, translation)
    return ExistingTranslations(table.id, table.licence, digest.hexdigest(), tables)


def _faults(pair: FilePair, folder: Path, context: TranslatorContext) -> Iterator[str]:
    for code in (pair.source, pair.target):
        try:
            context.languages.get(code)
        except UsageError as error:
            yield str(error)
    suffixes = set()
    for name in (pair.text, pair.translation):
        path = folder / name
        suffixes.add(path.suffix)
        if not path.resolve().is_relative_to(folder.resolve()):
            yield f"{name!r} is outside of the folder {str(folder)!r}"
        elif not path.is_file():
            yield f"there is no file {name!r}"
    if suffixes == {".tsv"} and not pair.columns:
        yield "'columns' is missing: the columns that hold text, from 0"
    elif suffixes == {".jsonl"} and not pair.fields:
        yield "'fields' is missing: the keys that hold text"
    elif len(suffixes) != 1 or not suffixes <= {".tsv", ".jsonl"}:
        yield f"expected two .tsv or two .jsonl files, found {' and '.join(sorted(suffixes))}"


def _aligned(pair: FilePair, before: Path, after: Path) -> Iterator[tuple[str, str]]:
    """Yield (text, translation); raises `DataError` for files of different lengths."""
    left, right = list(_texts(pair, before)), list(_texts(pair, after))
    if len(left) != len(right):
        raise DataError(
            f"{str(after)!r} has {len(right):,} rows, but {str(before)!r} has {len(left):,}: "
            "they must be aligned row by row."
        )
    for texts, translations in zip(left, right, strict=True):
        yield from zip(texts, translations, strict=True)


def _texts(pair: FilePair, path: Path) -> Iterator[list[str]]:
    if path.suffix == ".jsonl":
        for where, row in _json_rows(path):
            yield [_text(row, name, where) for name in pair.fields]
        return
    try:
        with path.open(encoding="utf-8", newline="") as file:
            for number, cells in enumerate(csv.reader(file, delimiter="\t", quoting=csv.QUOTE_NONE), start=1):
                where = f"{path}:{number}"
                if max(pair.columns) >= len(cells):
                    raise DataError(
                        f"{where}: expected a column {max(pair.columns)} (from 0), found {len(cells)} columns."
                    )
                yield [cells[column] for column in pair.columns]
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise DataError(f"{str(path)!r} cannot be read: {error}.") from error


def _json_rows(path: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise DataError(f"{str(path)!r} cannot be read: {error}.") from error
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        where = f"{path}:{number}"
        try:
            row = json.loads(line)
        except ValueError as error:
            raise DataError(f"{where}: this line is not JSON: {error}.") from error
        if not isinstance(row, dict):
            raise DataError(f"{where}: expected a JSON object, found a {type(row).__name__}.")
        yield where, row


def _text(row: Mapping[str, Any], name: str, where: str) -> str:
    value = row.get(name)
    if not isinstance(value, str):
        raise DataError(f"{where}: expected the text {name!r}, found {', '.join(sorted(row))}.")
    return value


def _code(row: Mapping[str, Any], name: str, where: str, context: TranslatorContext) -> str:
    code = _text(row, name, where)
    try:
        return context.languages.get(code).code
    except UsageError as error:
        raise DataError(f"{where}: the {name!r} of this translation is not a language. {error}") from error


def _short(text: str) -> str:
    return repr(text if len(text) < LONG else text[: LONG - 3] + "...")


def _add(
    tables: dict[tuple[str, str], dict[str, str]],
    pair: tuple[str, str],
    text: str,
    translation: str,
) -> None:
    tables.setdefault(pair, {}).setdefault(text, translation)
