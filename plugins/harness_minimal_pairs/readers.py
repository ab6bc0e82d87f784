"""Readers of minimal pairs (BLiMP and its kin, CLAMS) and of BMLAMA, as rows of the kind `form_preference`."""

from __future__ import annotations

import csv
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from harness import DataError
from harness.data import (
    JSONL,
    PARQUET,
    Reader,
    Row,
    choice,
    is_blank_line,
    is_blank_row,
    numbered_lines,
    without_blank_lines,
)

FORMATS: Final = ("csv", "judged", "jsonl", "parquet")
GAP: Final = "<mask>"
BETWEEN: Final = ", "


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
