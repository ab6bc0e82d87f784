"""Existing translations, looked up by text: from JSON lines or from pairs of files aligned by row."""

from __future__ import annotations

import csv
import hashlib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from pydantic import BaseModel, Field, ValidationError

from harness import DataError, Problem, SpecError, UsageError
from harness.data import Translation, TranslatorContext, TranslatorInfo
from harness.specs import SpecModel, read_yaml, validate_document

TABLE = "translations.yaml"
SHOWN = 3
LONG = 60


class FilePair(SpecModel):
    """Two files aligned by row, one of texts and one of their translations; paths are below the table's root."""

    source: str
    target: str
    text: str
    """File of the texts: ``.tsv``."""
    translation: str
    """File of the translations, of the same length."""
    columns: tuple[int, ...] = Field(min_length=1)
    """The columns that hold text, from 0."""


class TranslationTable(SpecModel):
    """The document ``translations.yaml`` of a folder."""

    id: str
    """Who made the translations: ``Google Translate, 2020``."""
    licence: str = ""
    root: str = "."
    """The folder that the paths are relative to, itself relative to the table's folder."""
    pairs: tuple[FilePair, ...] = Field(min_length=1)


class TranslatedText(BaseModel):
    """A line of JSON lines."""

    source: str
    target: str
    text: str
    translation: str


class ExistingTranslations:
    """Looks texts up; if a text has two translations, the first counts."""

    def __init__(self, info: TranslatorInfo, tables: Mapping[tuple[str, str], Mapping[str, str]]) -> None:
        self._info = info
        self._tables = tables

    def info(self) -> TranslatorInfo:
        """Return who made the translations, and a digest of the files."""
        return self._info

    def supports(self, source: str, target: str) -> bool:
        """Return whether there are translations of the pair."""
        return (source, target) in self._tables

    def translate(self, segments: Sequence[str], source: str, target: str) -> list[Translation]:
        """Return the translations; raises `DataError` with the texts that have none."""
        table = self._tables[(source, target)]
        missing = [segment for segment in segments if segment not in table]
        if missing:
            examples = ", ".join(map(_short, missing[:SHOWN]))
            raise DataError(
                f"{self._info.id!r} has no translation {source}->{target} of {len(missing)} of {len(segments)} "
                f"segments: {examples}{', ...' if len(missing) > SHOWN else ''}",
                hint="Add them to the files; the other translations are kept.",
            )
        return [Translation(text=table[segment]) for segment in segments]

    def close(self) -> None:
        """Forget the files."""
        self._tables = {}


Tables = dict[tuple[str, str], dict[str, str]]


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
    name, licence = path.name, ""
    if path.suffix == ".jsonl":
        tables = _read_lines(path, context)
    else:
        tables = {}
        table, root = _read_table(path, context)
        name, licence = table.id, table.licence
        for pair in table.pairs:
            for file in (pair.text, pair.translation):
                digest.update(hashlib.blake2b((root / file).read_bytes()).digest())
            for text, translation in _aligned(pair, root / pair.text, root / pair.translation):
                tables.setdefault((pair.source, pair.target), {}).setdefault(text, translation)
    info = TranslatorInfo(
        id=name, engine="file", engine_version="1", revision=digest.hexdigest(), licence=licence
    )
    return ExistingTranslations(info, tables)


def _read_lines(path: Path, context: TranslatorContext) -> Tables:
    try:
        lines = path.read_text(encoding="utf-8").split("\n")
    except (OSError, UnicodeDecodeError) as error:
        raise DataError(f"{str(path)!r} cannot be read: {error}.") from error
    tables: Tables = {}
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        where = f"{path}:{number}"
        try:
            row = TranslatedText.model_validate_json(line)
            pair = _code("source", row.source, context), _code("target", row.target, context)
        except ValidationError as error:
            first = error.errors()[0]
            location = ".".join(map(str, first["loc"])) or "this line"
            raise DataError(f"{where}: {location!r}: {first['msg']}.") from error
        except UsageError as error:
            raise DataError(f"{where}: {error}") from error
        earlier = tables.setdefault(pair, {}).setdefault(row.text, row.translation)
        if earlier != row.translation:
            raise DataError(
                f"{where}: {_short(row.text)} has another translation {pair[0]}->{pair[1]} already: {_short(earlier)}.",
                hint="Keep one line for each text and pair.",
            )
    return tables


def _code(name: str, code: str, context: TranslatorContext) -> str:
    try:
        return context.languages.get(code).code
    except UsageError as error:
        raise UsageError(f"the {name!r} of this translation is not a language. {error}") from error


def _read_table(path: Path, context: TranslatorContext) -> tuple[TranslationTable, Path]:
    """Return the document of a folder, and the folder of its files."""
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
    return table, root


def _faults(pair: FilePair, folder: Path, context: TranslatorContext) -> Iterator[str]:
    for code in (pair.source, pair.target):
        try:
            context.languages.get(code)
        except UsageError as error:
            yield str(error)
    for name in (pair.text, pair.translation):
        path = folder / name
        if not path.resolve().is_relative_to(folder.resolve()):
            yield f"{name!r} is outside of the folder {str(folder)!r}"
        elif path.suffix != ".tsv" or not path.is_file():
            yield f"there is no .tsv file {name!r}"


def _aligned(pair: FilePair, before: Path, after: Path) -> Iterator[tuple[str, str]]:
    """Yield (text, translation); raises `DataError` for files of different lengths."""
    source_rows, target_rows = list(_texts(pair, before)), list(_texts(pair, after))
    if len(source_rows) != len(target_rows):
        raise DataError(
            f"{str(after)!r} has {len(target_rows):,} rows, but {str(before)!r} has {len(source_rows):,}: "
            "they must be aligned row by row."
        )
    for texts, translations in zip(source_rows, target_rows, strict=True):
        yield from zip(texts, translations, strict=True)


def _texts(pair: FilePair, path: Path) -> Iterator[list[str]]:
    try:
        with path.open(encoding="utf-8", newline="") as file:
            for number, cells in enumerate(csv.reader(file, delimiter="\t", quoting=csv.QUOTE_NONE), start=1):
                if max(pair.columns) >= len(cells):
                    raise DataError(
                        f"{path}:{number}: expected a column {max(pair.columns)} (from 0), found {len(cells)} columns."
                    )
                yield [cells[column] for column in pair.columns]
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise DataError(f"{str(path)!r} cannot be read: {error}.") from error


def _short(text: str) -> str:
    return repr(text if len(text) < LONG else text[: LONG - 3] + "...")
