"""Readers of minimal pairs (BLiMP and its kin, CLAMS), BMLAMA and XWinograd, as rows of the kind `form_preference`."""

from __future__ import annotations

import csv
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from harness import DataError, UsageError
from harness.data import (
    JSONL,
    PARQUET,
    Reader,
    Row,
    choice,
    is_blank_line,
    is_blank_row,
    numbered_lines,
    parse_json,
    read_parquet,
    without_blank_lines,
)

FORMATS: Final = ("csv", "judged", "jsonl", "parquet")
GAP: Final = "<mask>"
BETWEEN: Final = ", "
COLUMNS: Final = 7
OPTION_GAP: Final = "_"
_QUOTES: Final = {"``": '"', "''": '"'}
"""As the tokeniser of the Penn Treebank writes quotation marks."""


def _read_pairs(paths: Sequence[Path], options: Mapping[str, str]) -> Iterator[Row]:
    """Yield one row per pair; a pair of identical sentences has no right answer and is skipped, but counted in ids."""
    form = choice(options, "format", FORMATS)
    keeps_equal = choice(options, "equal", ("skip", "keep")) == "keep"
    numbers: Counter[str] = Counter()
    for path in paths:
        for record in _FORMATS[form](path, options):
            group = _group(record, path, options)
            numbers[group or ""] += 1
            right, wrong = (_sentence(record, options.get(name, name), name) for name in ("right", "wrong"))
            if right == wrong and not keeps_equal:
                continue
            number = str(numbers[group or ""])
            fields = {
                "id": number if group is None else f"{group}:{number}",
                "group": group,
                "before": "",
                "right": right,
                "wrong": wrong,
                "tags": _tags(record, options),
            }
            yield Row(fields=fields, path=record.path, line=record.line)


def _sentence(record: Row, column: str, side: str) -> str:
    text = record.fields.get(column)
    if not isinstance(text, str) or not text.strip():
        content = ", ".join(map(repr, record.fields)) if column not in record.fields else repr(text)
        raise DataError(
            f"{record.where}: expected the {side} sentence in the column {column!r}, found {content}."
        )
    return text.strip()


def _group(record: Row, path: Path, options: Mapping[str, str]) -> str | None:
    name = options.get("group")
    if name == "file":
        return path.stem.removeprefix(options.get("prefix", ""))
    value = None if name is None else record.fields.get(name)
    return None if value is None else str(value).strip()


def _tags(record: Row, options: Mapping[str, str]) -> dict[str, str]:
    names = [name for name in options.get("tags", "").split(",") if name]
    return {name: str(record.fields[name]) for name in names if record.fields.get(name) is not None}


# Formats ------------------------------------------------------------------------------------------------


def _csv_records(path: Path, options: Mapping[str, str]) -> Iterator[Row]:
    records = without_blank_lines(path, _cells(path, options.get("delimiter", ",")), is_blank_row)
    _, names = next(records, (1, []))
    for line, cells in records:
        if len(cells) != len(names):
            raise DataError(f"{path}:{line}: expected {len(names)} cells, found {len(cells)}.")
        yield Row(fields=dict(zip(names, cells, strict=True)), path=str(path), line=line)


def _cells(path: Path, delimiter: str) -> Iterator[tuple[int, list[str]]]:
    """Yield the first line and the cells of every record of a table whose cells may be quoted."""
    table = csv.reader((f"{text}\n" for _, text in numbered_lines(path)), delimiter=delimiter, strict=True)
    line = 1
    try:
        for cells in table:
            yield line, cells
            line = table.line_num + 1
    except csv.Error as error:
        raise DataError(f"{path}:{line}: expected cells quoted as RFC 4180 says: {error}.") from error


def _judged_records(path: Path, options: Mapping[str, str]) -> Iterator[Row]:
    """Yield the pairs of a file of CLAMS: a line that begins with ``True``, and one with ``False`` after it."""
    right: tuple[int, str] | None = None
    for line, text in without_blank_lines(path, numbered_lines(path), is_blank_line):
        judgement, tab, sentence = text.partition("\t")
        expected = "True" if right is None else "False"
        if judgement != expected or not tab:
            raise DataError(f"{path}:{line}: expected {expected!r}, a tab and a sentence, found {text!r}.")
        if right is None:
            right = (line, sentence)
        else:
            yield Row(fields={"right": right[1], "wrong": sentence}, path=str(path), line=right[0])
            right = None
    if right is not None:
        raise DataError(
            f"{path}:{right[0]}: expected the wrong sentence after it, found the end of the file."
        )


def _jsonl_records(path: Path, options: Mapping[str, str]) -> Iterator[Row]:
    return JSONL.read([path], {})


def _parquet_records(path: Path, options: Mapping[str, str]) -> Iterator[Row]:
    return PARQUET.read([path], {})


_FORMATS: Final = {
    "csv": _csv_records,
    "judged": _judged_records,
    "jsonl": _jsonl_records,
    "parquet": _parquet_records,
}

# Cloze questions ----------------------------------------------------------------------------------------


def _read_cloze(paths: Sequence[Path], options: Mapping[str, str]) -> Iterator[Row]:
    """Yield the questions of BMLAMA (Qi et al., 2023), named by their number: row n is one fact in all languages.

    The columns go by position, since the header of the Chinese file has five names over four columns. Cells are read as
    quoted ones: the authors' script splits lines at tabs and so keeps the marks around 144 rows in Hebrew, and there
    finds no candidate that equals the answer in 134 of them.
    """
    for path in paths:
        records = without_blank_lines(path, _cells(path, "\t"), is_blank_row)
        _, names = next(records, (1, []))
        if names[:1] != ["Prompt"]:
            raise DataError(f"{path}:1: expected a header that begins with 'Prompt', found {names[:1]}.")
        for number, (line, cells) in enumerate(records, start=1):
            where = f"{path}:{line}"
            if len(cells) != 4:
                raise DataError(
                    f"{where}: expected prompt, answer, candidates and subject, found {len(cells)} cells."
                )
            yield Row(fields=_cloze(cells, str(number), where), path=str(path), line=line)


def _cloze(cells: Sequence[str], number: str, where: str) -> dict[str, Any]:
    prompt, answer, listed, _ = cells
    before, gap, after = prompt.partition(GAP)
    candidates = listed.split(BETWEEN)
    if not gap or GAP in after:
        raise DataError(f"{where}: expected {GAP!r} once in the prompt, found {prompt!r}.")
    if candidates.count(answer) != 1:
        raise DataError(
            f"{where}: expected the answer once among the candidates, found {answer!r} and {listed!r}."
        )
    wrong = [candidate for candidate in candidates if candidate != answer]
    return {"id": number, "before": before, "after": after, "right": answer, "wrong": wrong}


READERS: Final = (
    Reader(
        name="sentence_pairs",
        read=_read_pairs,
        summary="minimal pairs of a good and a bad sentence; pairs of identical sentences are skipped",
        options={
            "format": "'csv' (default), 'jsonl', 'parquet', or 'judged': lines of True or False, a tab, a sentence",
            "delimiter": "of csv: ',' (default)",
            "right": "the column of the good sentence (default right)",
            "wrong": "the column of the bad sentence (default wrong)",
            "group": "the column of the phenomenon, where the file has it, or 'file' for the file's name",
            "prefix": "what the names of files begin with and the groups do not",
            "tags": "further columns to keep, separated by commas",
            "equal": "pairs of identical sentences: 'skip' (default) or 'keep'",
        },
    ),
    Reader(
        name="bmlama",
        read=_read_cloze,
        summary="BMLAMA: prompts with a gap, the answer and its candidates, one fact per line",
    ),
)


def _read(paths: Sequence[Path], options: Mapping[str, str]) -> Iterator[Row]:
    """Yield one row per sentence of a language; ids are its numbers among the sentences of that language.

    The phrases replace the pronoun as they are written, also where it is possessive.
    """
    if all(path.suffix == ".parquet" for path in paths):
        yield from map(_from_columns, read_parquet(paths, {}))
        return
    if "language" not in options:
        raise UsageError("The reader 'xwinograd' needs the option 'language', such as 'en'.")
    for path in paths:
        number = 0
        for line, text in without_blank_lines(path, numbered_lines(path), is_blank_line):
            cells = text.split("\t")
            if len(cells) != COLUMNS:
                raise DataError(f"{path}:{line}: expected {COLUMNS} columns, found {len(cells)}.")
            if cells[0] == options["language"]:
                number += 1
                fields = {"id": str(number), **_fields(cells, path, line)}
                yield Row(fields=fields, path=str(path), line=line)


def _fields(cells: Sequence[str], path: Path, line: int) -> dict[str, Any]:
    sentence = cells[3]
    tokens, pronoun, candidates = (parse_json(cell, path, first_line=line) for cell in cells[4:])
    try:
        (start, end), written = pronoun[1], pronoun[0]
        right, wrong = (
            [text for text, _, _, is_right in candidates if is_right is side] for side in (True, False)
        )
    except (TypeError, ValueError, IndexError) as error:
        raise DataError(
            f"{path}:{line}: expected a pronoun and candidates with places, found a fault: {error}."
        ) from error
    if len(right) != 1 or len(wrong) != 1:
        raise DataError(
            f"{path}:{line}: expected one right and one wrong candidate, found {len(right)} and {len(wrong)}."
        )
    first = _place(sentence, tokens, start, path, line)
    last = _place(sentence, tokens, end - 1, path, line) + len(tokens[end - 1])
    return {
        "group": cells[1],
        "before": sentence[:first],
        "right": right[0].strip(),
        "wrong": wrong[0].strip(),
        "after": sentence[last:],
        "tags": {"pronoun": str(written)},
    }


def _place(sentence: str, tokens: Sequence[str], wanted: int, path: Path, line: int) -> int:
    """Return where a token begins: pronouns occur several times in a sentence, and only tokens are numbered."""
    end = 0
    for token in (_QUOTES.get(token, token) for token in tokens[: wanted + 1]):
        position = sentence.find(token, end)
        if position < 0:
            raise DataError(
                f"{path}:{line}: expected the token {token!r} in {sentence!r} from character {end + 1} on."
            )
        start, end = position, position + len(token)
    return start


def _from_columns(record: Row) -> Row:
    """Return a record of the Hub's copy: a sentence with a gap, two options and the number of the right one."""
    sentence, answer = str(record.fields.get("sentence")), str(record.fields.get("answer"))
    if sentence.count(OPTION_GAP) != 1 or answer not in {"1", "2"}:
        raise DataError(
            f"{record.where}: expected one {OPTION_GAP!r} in the sentence and the answer '1' or '2', found {answer!r}."
        )
    before, _, after = sentence.partition(OPTION_GAP)
    options = [str(record.fields.get(name)).strip() for name in ("option1", "option2")]
    right = options[int(answer) - 1]
    fields = {
        "id": str(record.line),
        "before": before,
        "right": right,
        "wrong": options[2 - int(answer)],
        "after": after,
    }
    return Row(fields=fields, path=record.path, line=record.line)


XWINOGRAD = Reader(
    name="xwinograd",
    read=_read,
    summary="XWinograd: its table of all languages, or the Parquet columns of the Hub's copy.",
    options={"language": "the code of a language in the table's first column, such as 'jp'"},
    filters=frozenset({"language"}),
)
