"""Translators of this package: existing translations, the text itself, its reverse, a prompted model, one per pair.

Existing translations are looked up by text: from JSON lines, or from pairs of files aligned by row.
"""

from __future__ import annotations

import csv
import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated

from pydantic import BaseModel, Field, StringConstraints, ValidationError

from harness import CapabilityError, DataError, Problem, SpecError, UsageError
from harness.data import Translation, Translator, TranslatorContext, TranslatorInfo
from harness.models import Capability, GenerateOptions, Generates
from harness.planning import resolve_model
from harness.specs import SpecModel, read_yaml, validate_document

PROMPT = "Translate this text from {source} into {target}.\n\n{source}: {text}\n{target}:"
"""One line after the target language's name is the answer; line breaks within a segment become spaces."""
MAX_TOKENS = 256
Pair = Annotated[str, StringConstraints(pattern=r"^(\*|[A-Za-z-]+->(\*|[A-Za-z-]+)|\*->[A-Za-z-]+)$")]
TABLE = "translations.yaml"
SHOWN = 3
LONG = 60
Tables = dict[tuple[str, str], dict[str, str]]


class PlainTranslator:
    """Applies a function to each segment, for every pair of languages."""

    def __init__(self, name: str, answer: Callable[[str], str] | None) -> None:
        self._name = name
        self._answer = answer

    def info(self) -> TranslatorInfo:
        """Return a name and a version."""
        return TranslatorInfo(
            id=self._name, engine="multilingual-harness", engine_version="1", licence="CC0-1.0"
        )

    def supports(self, source: str, target: str) -> bool:
        """Return True for every pair, unless there is nothing to translate with."""
        return self._answer is not None

    def translate(self, segments: Sequence[str], source: str, target: str) -> list[Translation]:
        """Return one translation per segment."""
        assert self._answer is not None
        return [Translation(text=self._answer(segment)) for segment in segments]

    def close(self) -> None:
        """Do nothing: there is nothing to free."""


def open_identity(ref: str, context: TranslatorContext) -> PlainTranslator:
    """Return the translator that returns the text unchanged."""
    _require_no_reference("identity", ref)
    return PlainTranslator("identity", lambda text: text)


def open_released(ref: str, context: TranslatorContext) -> PlainTranslator:
    """Return the translator that supports no pair: released are whole training sets, which are read as files."""
    _require_no_reference("released", ref)
    return PlainTranslator("released", None)


def open_reverse(ref: str, context: TranslatorContext) -> PlainTranslator:
    """Return the translator that reverses the order of the words; twice, it returns the text with single spaces."""
    _require_no_reference("reverse", ref)
    return PlainTranslator("reverse", lambda text: " ".join(reversed(text.split())))


def _require_no_reference(name: str, ref: str) -> None:
    if ref:
        raise UsageError(f"The translator {name!r} takes no value after its name, got {ref!r}.")


class PromptedTranslator:
    """Prompts a model to translate, one segment per prompt."""

    def __init__(
        self,
        adapter: Generates,
        ref: str,
        context: TranslatorContext,
        *,
        licence: str = "",
        max_tokens: int = MAX_TOKENS,
    ) -> None:
        self._adapter = adapter
        self._ref = ref
        self._languages = context.languages
        self._licence = licence
        self._max_tokens = max_tokens

    def info(self) -> TranslatorInfo:
        """Return the model's identity, with the prompt among the decoding settings."""
        identity = dict(self._adapter.identity())  # type: ignore[attr-defined]
        return TranslatorInfo(
            id=self._ref,
            engine="llm",
            engine_version="1",
            decoding={"prompt": PROMPT, "max_tokens": self._max_tokens, **identity},
            licence=self._licence,
        )

    def supports(self, source: str, target: str) -> bool:
        """Return whether both languages have a name that the prompt can use."""
        return source in self._languages and target in self._languages

    def translate(self, segments: Sequence[str], source: str, target: str) -> list[Translation]:
        """Return the line that the model writes for every segment."""
        names = {"source": self._languages.get(source).name, "target": self._languages.get(target).name}
        prompts = [PROMPT.format(text=" ".join(segment.split()), **names) for segment in segments]
        options = [GenerateOptions(max_tokens=self._max_tokens, stop=("\n",))] * len(prompts)
        return [
            Translation(
                text=answer.text.strip(),
                finish="stop" if answer.finished and not answer.truncated else "length",
                target_tokens=answer.tokens,
            )
            for answer in self._adapter.generate(prompts, options)
        ]

    def close(self) -> None:
        """Free the model."""
        self._adapter.close()  # type: ignore[attr-defined]


def open_prompted(ref: str, context: TranslatorContext) -> PromptedTranslator:
    """Return the translator of a model; ``hf-causal:PATH?max_tokens=64&dtype=float16`` passes options on.

    Raises `UsageError` for a model that does not exist, `CapabilityError` for one that does not generate text.
    """
    model_name, _, query = ref.partition("?")
    if ":" not in model_name:
        raise UsageError(
            f"The translator 'llm' needs a model, got {ref!r}.",
            hint="For example: llm:hf-causal:models/smollm2",
        )
    options = dict(option.partition("=")[::2] for option in query.split("&") if option)
    longest = options.pop("max_tokens", str(MAX_TOKENS))
    if not longest.isdecimal() or int(longest) < 1:
        raise UsageError(
            f"max_tokens of the translator {ref!r} must be a whole number of at least 1, got {longest!r}."
        )
    model = resolve_model(context.adapters, model_name, options)
    if Capability.GENERATES not in model.description.offers:
        raise CapabilityError(
            f"The model {model_name!r} does not generate text, so it cannot be prompted to translate."
        )
    adapter = model.entry.open(model.description, model.options)
    assert isinstance(adapter, Generates)
    licence = str(model.description.metadata.get("licence", ""))
    return PromptedTranslator(adapter, model_name, context, licence=licence, max_tokens=int(longest))


class RoutingTable(SpecModel):
    """The YAML document of a routing table."""

    routes: dict[Pair, str] = Field(min_length=1)
    """``en->zh``, ``en->*``, ``*->en`` or ``*`` -> a value of ``--translator``; the most specific one counts."""


class RoutedTranslator:
    """Passes each pair to the translator that the table names; opens a translator when it is first needed."""

    def __init__(self, table: RoutingTable, path: Path, context: TranslatorContext) -> None:
        self._table = table
        self._path = path
        self._context = context
        self._open: dict[str, Translator] = {}

    def info(self) -> TranslatorInfo:
        """Return the table; the translator of a pair describes itself."""
        return TranslatorInfo(
            id=self._path.name, engine="route", engine_version="1", decoding=dict(self._table.routes)
        )

    def supports(self, source: str, target: str) -> bool:
        """Return whether the table has a row for the pair and its translator supports it."""
        return self._named(source, target) is not None and self.route(source, target).supports(source, target)

    def route(self, source: str, target: str) -> Translator:
        """Return the translator of a pair; raises `UsageError` if the table has none."""
        full_name = self._named(source, target)
        if full_name is None:
            raise UsageError(
                f"The routing table {str(self._path)!r} has no row for {source}->{target}.",
                hint=f"Add '{source}->{target}: NAME', or '*: NAME' for all other pairs.",
            )
        if full_name not in self._open:
            name, _, reference = full_name.partition(":")
            self._open[full_name] = self._context.translators.get(name).open(reference, self._context)
        return self._open[full_name]

    def translate(self, segments: Sequence[str], source: str, target: str) -> list[Translation]:
        """Return the translations by the pair's translator."""
        return self.route(source, target).translate(segments, source, target)

    def close(self) -> None:
        """Close all translators that were opened."""
        for translator in self._open.values():
            translator.close()
        self._open.clear()

    def _named(self, source: str, target: str) -> str | None:
        for key in (f"{source}->{target}", f"{source}->*", f"*->{target}", "*"):
            if key in self._table.routes:
                return self._table.routes[key]
        return None


def open_routes(ref: str, context: TranslatorContext) -> RoutedTranslator:
    """Return the translator of a routing table; raises `UsageError`, `DataError` or `SpecError` with lines."""
    path = Path(ref)
    if not ref or not path.is_file():
        raise UsageError(
            f"The routing table {ref!r} does not exist.", hint="Write a YAML file: routes: {'*': identity}"
        )
    try:
        document = read_yaml(path.read_text(encoding="utf-8"), ref)
    except (OSError, UnicodeDecodeError) as error:
        raise DataError(f"The routing table {ref!r} cannot be read: {error}.") from error
    table = validate_document(RoutingTable, document)
    problems = [
        Problem(message=fault, line=document.line_of(["routes", pair]))
        for pair, full_name in table.routes.items()
        for fault in _faults(pair, full_name, context)
    ]
    if problems:
        raise SpecError(ref, problems)
    return RoutedTranslator(table, path, context)


def _faults(pair: str, named: str, context: TranslatorContext) -> Iterator[str]:
    for code in set(pair.split("->")) - {"*"}:
        try:
            context.languages.get(code)
        except UsageError as error:
            yield str(error)
    name = named.partition(":")[0]
    if name == "route":
        yield "a routing table cannot name another one"
    elif name not in context.translators:
        yield f"no translator named {name!r}; known: {', '.join(context.translators.names)}"


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
        for message in _file_faults(pair, root, context)
    ]
    if faults:
        raise SpecError(str(path), faults)
    return table, root


def _file_faults(pair: FilePair, folder: Path, context: TranslatorContext) -> Iterator[str]:
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
