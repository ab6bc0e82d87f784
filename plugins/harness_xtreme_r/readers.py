"""The readers of Mewsli-X and of XCOPA with the field ``question`` of an aligned file; checks that LAReQA shares.

Mewsli-X has mentions in their sentence, entities with a description, and training pairs.
"""

from __future__ import annotations

import codecs
import re
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, TypeVar

from pydantic_core import from_json

from harness import DataError, UsageError
from harness.data import (
    COLUMNS,
    JSONL,
    Reader,
    Row,
    choice,
    parse_json,
    pick,
    wanted_columns,
    without_blank_lines,
)

Value = TypeVar("Value")
_CHECK_OFFSETS: Final = ("true", "text")
_OFFSETS_OPTION: Final = (
    "'true' (default: a mention must be the text at its offsets and not cut a combined character) or 'text' (it "
    "must be the text at its offsets)"
)
_LAYOUTS: Final[Mapping[str, tuple[str, str]]] = {
    "mewsli_x_entities": ("entity_id", "description"),
    "mewsli_x_mentions": ("context", "mentions"),
    "mewsli_x_pairs": ("contextual_mention", "entity"),
}
"""Reader -> the keys by which a line of its file is known."""
_MARKED: Final = re.compile(r"\{(.*?)\}")
_NAME = "xcopa_aligned"
_QUESTIONS = ("cause", "effect")


def member(record: Any, name: str, kind: type[Value], where: str) -> Value:
    """Return ``record[name]``; raises `DataError` at `where` where it is missing or of another type."""
    value = record.get(name) if isinstance(record, dict) else None
    if isinstance(value, kind) and not isinstance(value, bool):
        return value
    if not isinstance(record, dict):
        raise DataError(f"{where}: expected an object with {name!r}, found {type(record).__name__}.")
    if value is None:
        shown = ", ".join(repr(key) for key in record) or "nothing"
        raise DataError(f"{where}: expected {name!r}, found {shown}.")
    raise DataError(
        f"{where}: expected {name!r} to be of type {kind.__name__}, found {type(value).__name__}."
    )


def required_option(options: Mapping[str, str], name: str, reader: str) -> str:
    """Return the value of an option; raises `UsageError` where it is not given."""
    value = options.get(name, "").strip()
    if not value:
        raise UsageError(
            f"The reader {reader!r} needs the option {name!r}, found {', '.join(options) or 'none'}."
        )
    return value


def cuts_character(text: str, offset: int) -> bool:
    """Return whether a cut at `offset` would separate a combining mark from its base character.

    Marks are the characters of the Unicode categories Mn, Mc and Me: accents, Arabic vowels, Indic vowel
    signs. Joiners do not count: a Persian word may end before a zero width non-joiner.
    """
    return 0 < offset < len(text) and unicodedata.category(text[offset]).startswith("M")


def _check_layout(record: Mapping[str, Any], reader: str, where: str) -> None:
    """Raise `DataError` where a line has other keys than the reader expects, naming the reader that fits."""
    first, second = _LAYOUTS[reader]
    if first in record and second in record:
        return
    shown = ", ".join(repr(key) for key in record) or "nothing"
    fitting = [name for name, keys in _LAYOUTS.items() if all(key in record for key in keys)]
    hint = (
        f"This is another file of Mewsli-X: read it with {fitting[0]!r}."
        if fitting
        else "Expected the layout of the release 20220518_6."
    )
    raise DataError(f"{where}: expected {first!r} and {second!r}, found {shown}.", hint=hint)


def mention_text(context: Mapping[str, Any], mention: Mapping[str, Any], where: str, *, check: str) -> str:
    """Return ``mention: left { mention } right`` with the one sentence that holds the mention.

    Earlier ``{...}`` in the sentence become ``(...)``; newlines become spaces, and each pair of spaces one. The
    mention also comes first, so that a short maximum length does not lose it. `check` is one of
    `_CHECK_OFFSETS`. Raises `DataError` where the offsets do not fit the mention, or no sentence holds it.
    """
    text = member(context, "text", str, where)
    if not text:
        raise DataError(
            f"{where}: expected the text of the article, found none.",
            hint="The release comes without texts: restore them from the WikiNews dumps with its own script.",
        )
    record = member(mention, "mention_span", dict, where)
    surface = member(record, "text", str, where)
    start, end = _span(record, text, where)
    _check_mention(start, end, surface, text, where, check)
    sentences = [_span(item, text, where) for item in member(context, "sentence_spans", list, where)]
    holding = [span for span in sentences if span[0] <= start and end <= span[1]]
    if not holding:
        raise DataError(
            f"{where}: expected the mention {surface!r} inside of one of the {len(sentences)} sentences, found "
            "none that holds it."
        )
    left = _MARKED.sub(r"(\1)", text[holding[0][0] : start])
    right = _MARKED.sub(r"(\1)", text[end : holding[0][1]])
    return _one_line(f"{surface}: {left} {{ {surface} }} {right}")


def _description_text(entity: Mapping[str, Any], where: str) -> str:
    """Return the sentences of an entity's description in one line; its title is not used.

    Raises `DataError` where there are none.
    """
    description = member(entity, "description", str, where)
    sentences = []
    for item in member(entity, "sentence_spans", list, where):
        start, end = _span(item, description, where)
        sentences.append(description[start:end])
    text = _one_line(" ".join(sentences))
    if not text:
        raise DataError(f"{where}: expected a description with at least one sentence, found none.")
    return text


def _span(record: Any, text: str, where: str) -> tuple[int, int]:
    start, end = member(record, "start", int, where), member(record, "end", int, where)
    if not 0 <= start < end <= len(text):
        raise DataError(
            f"{where}: expected offsets inside of the {len(text)} characters of the text, found {start} to {end}."
        )
    return start, end


def _check_mention(start: int, end: int, surface: str, text: str, where: str, check: str) -> None:
    found = text[start:end]
    if found != surface:
        raise DataError(f"{where}: expected the mention {surface!r} from {start} to {end}, found {found!r}.")
    for offset in (start, end):
        if check == "true" and cuts_character(text, offset):
            raise DataError(
                f"{where}: expected the mention {surface!r} to begin and end between characters, found the "
                f"offset {offset} inside of {text[offset - 1 : offset + 1]!r}.",
                hint="A release that marks such mentions on purpose can be read with check_offsets: text.",
            )


def _one_line(text: str) -> str:
    return " ".join(text.splitlines()).replace("  ", " ").strip()


def _read_entities(paths: Sequence[Path], options: Mapping[str, str]) -> Iterator[Row]:
    """Yield one row per entity; only the seen ids are kept in memory, not the whole file."""
    seen: set[str] = set()
    for path in paths:
        name = str(path)
        for line, record in _objects(path):
            where = f"{name}:{line}"
            _check_layout(record, "mewsli_x_entities", where)
            identifier = member(record, "entity_id", str, where)
            if identifier in seen:
                raise DataError(f"{where}: expected every entity once, found {identifier!r} repeated.")
            seen.add(identifier)
            fields = {
                "id": identifier,
                "text": _description_text(record, where),
                "language": member(record, "description_language", str, where),
            }
            yield Row(fields=fields, path=name, line=line)


def _objects(path: Path) -> Iterator[tuple[int, Mapping[str, Any]]]:
    """Yield line and object of every line.

    Several times as fast as the reader ``jsonl``, which is asked only what is wrong with a line; of a key that
    occurs twice in an object the last one counts.
    """
    try:
        with path.open("rb") as file:
            for line, encoded in without_blank_lines(path, enumerate(file, start=1), _is_blank):
                yield (
                    line,
                    _object(encoded.removeprefix(codecs.BOM_UTF8) if line == 1 else encoded, path, line),
                )
    except OSError as error:
        raise DataError(f"{path}: expected a readable file, found: {error.strerror or error}.") from error


def _is_blank(encoded: bytes) -> bool:
    return not encoded.strip()


def _object(encoded: bytes, path: Path, line: int) -> Mapping[str, Any]:
    try:
        record = from_json(encoded, allow_inf_nan=False)
    except ValueError as error:
        try:
            text = encoded.rstrip(b"\r\n").decode("utf-8")
        except UnicodeDecodeError as fault:
            raise DataError(
                f"{path}:{line}: expected UTF-8, found the byte 0x{encoded[fault.start]:02x}."
            ) from fault
        parse_json(text, path, first_line=line)
        raise DataError(f"{path}:{line}: expected JSON, found: {error}.") from error
    if not isinstance(record, dict):
        raise DataError(f"{path}:{line}: expected a JSON object, found {type(record).__name__}.")
    return record


MEWSLI_X_ENTITIES = Reader(
    name="mewsli_x_entities",
    read=_read_entities,
    summary="Mewsli-X: the candidate entities, each with the description in one language.",
)


def _read_mentions(paths: Sequence[Path], options: Mapping[str, str]) -> Iterator[Row]:
    """Yield one row per mention of one language; the files hold the articles of all languages."""
    language = required_option(options, "language", "mewsli_x_mentions")
    check = choice(options, "check_offsets", _CHECK_OFFSETS)
    languages: set[str] = set()
    for row in JSONL.read(paths, {}):
        _check_layout(row.fields, "mewsli_x_mentions", row.where)
        context = member(row.fields, "context", dict, row.where)
        spoken = member(context, "language", str, row.where)
        languages.add(spoken)
        if spoken != language:
            continue
        document = member(context, "document_id", str, row.where)
        for mention in member(row.fields, "mentions", list, row.where):
            identifier = member(mention, "example_id", str, row.where)
            where = f"{row.where}: mention {identifier!r}"
            fields = {
                "id": identifier,
                "query": mention_text(context, mention, where, check=check),
                "target": member(mention, "entity_id", str, where),
                "document": document,
            }
            yield Row(fields=fields, path=row.path, line=row.line)
    if language not in languages:
        raise DataError(
            f"{', '.join(map(str, paths))}: expected articles in {language!r}, found "
            f"{', '.join(sorted(languages)) or 'no article'}."
        )


MEWSLI_X_MENTIONS = Reader(
    name="mewsli_x_mentions",
    read=_read_mentions,
    summary="Mewsli-X: the mentions of one language in their sentences, from JSON lines of articles.",
    options={
        "language": "the language of the articles (needed)",
        "check_offsets": _OFFSETS_OPTION,
    },
)


def _read_pairs(paths: Sequence[Path], options: Mapping[str, str]) -> Iterator[Row]:
    """Yield one row per pair, with the id of its mention."""
    check = choice(options, "check_offsets", _CHECK_OFFSETS)
    for row in JSONL.read(paths, {}):
        _check_layout(row.fields, "mewsli_x_pairs", row.where)
        pair = member(row.fields, "contextual_mention", dict, row.where)
        mention = member(pair, "mention", dict, row.where)
        identifier = member(mention, "example_id", str, row.where)
        where = f"{row.where}: mention {identifier!r}"
        fields = {
            "id": identifier,
            "query": mention_text(member(pair, "context", dict, where), mention, where, check=check),
            "passage": _description_text(member(row.fields, "entity", dict, where), where),
        }
        yield Row(fields=fields, path=row.path, line=row.line)


MEWSLI_X_PAIRS = Reader(
    name="mewsli_x_pairs",
    read=_read_pairs,
    summary="Mewsli-X: Wikipedia mentions with the description of their entity, for training.",
    options={"check_offsets": _OFFSETS_OPTION},
)


def _read(paths: Sequence[Path], options: Mapping[str, str]) -> Iterator[Row]:
    """Yield the rows of the first file, in its order, with ``question`` taken from the second by ``idx``.

    Raises `UsageError` unless there are two files, and `DataError` where their items or labels differ.
    """
    if len(paths) != 2:
        raise UsageError(
            f"The reader {_NAME!r} reads two files, one of the language and an aligned one, found "
            f"{len(paths)}."
        )
    columns = wanted_columns(options)
    own, aligned = (_by_index(path) for path in paths)
    _check_same(own, aligned, *paths)
    for index, row in own.items():
        other = aligned[index]
        if row.fields.get("label") != other.fields.get("label"):
            raise DataError(
                f"{row.where}: expected the label {other.fields.get('label')!r} of the aligned item at "
                f"{other.where}, found {row.fields.get('label')!r}."
            )
        fields = {**row.fields, "question": _question(other)}
        yield Row(fields=pick(fields, columns, row.where), path=row.path, line=row.line)


def _by_index(path: Path) -> dict[Any, Row]:
    rows: dict[Any, Row] = {}
    for row in JSONL.read([path], {}):
        index = row.fields.get("idx")
        if type(index) is not int:
            shown = ", ".join(repr(name) for name in row.fields)
            raise DataError(f"{row.where}: expected a number 'idx', found {index!r} among {shown}.")
        if index in rows:
            raise DataError(f"{row.where}: the 'idx' {index} was already used at {rows[index].where}.")
        rows[index] = row
    return rows


def _check_same(own: Mapping[int, Row], aligned: Mapping[int, Row], path: Path, other: Path) -> None:
    for present, missing, file in ((own, aligned, other), (aligned, own, path)):
        absent = sorted(set(present) - set(missing))
        if absent:
            raise DataError(
                f"{file}: expected the item with 'idx' {absent[0]} of {present[absent[0]].where}, found "
                f"{len(missing)} items without it ({len(absent)} are missing)."
            )


def _question(row: Row) -> str:
    value = row.fields.get("question")
    if value not in _QUESTIONS:
        raise DataError(f"{row.where}: expected the 'question' cause or effect, found {value!r}.")
    return str(value)


XCOPA_ALIGNED = Reader(
    name=_NAME,
    joins=True,
    read=_read,
    summary="XCOPA JSON lines of one language, with 'question' taken from an aligned file, the second one.",
    options={"columns": COLUMNS},
)
