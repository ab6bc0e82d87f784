"""A data file that was damaged on its way is rejected with its place, or scores the same.

Every mutation is made in a small valid file of every family of readers. What comes of it is read as an evaluation reads
it, by the reader and the kind of the task; no model is needed.
"""

from __future__ import annotations

import codecs
import io
import json
import os
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from harness.errors import HarnessError
from harness.kinds.kind import ReadContext, read_examples
from harness.registry.registry import Registry
from harness.running.session import open_session

LABELS = ("entailment", "neutral", "contradiction")
TAGS = ("NOUN", "VERB", "DET")
ROWS = [
    {"id": f"i{n}", "premise": f"The {n} cats sleep.", "hypothesis": f"{n} animals.", "label": LABELS[n % 3]}
    for n in range(6)
]
SENTENCES = [[("The", "DET"), (f"cat{n}", "NOUN"), ("sleeps", "VERB")] for n in range(4)]
CONTEXT = "Rio is warm. Oslo is cold."
QUESTIONS = [("q1", "Where is it warm?", "Rio", 0), ("q2", "Where is it cold?", "Oslo", 13)]


def _parquet(rows: Sequence[dict[str, Any]]) -> bytes:
    sink = io.BytesIO()
    pq.write_table(pa.Table.from_pylist(list(rows)), sink)
    return sink.getvalue()


def _lines(rows: Sequence[Sequence[str]], separator: str) -> bytes:
    return "".join(separator.join(row) + "\n" for row in rows).encode()


def _squad(answer_start: int = 13) -> dict[str, Any]:
    asked = [
        {"id": name, "question": question, "answers": [{"text": text, "answer_start": start}]}
        for name, question, text, start in QUESTIONS
    ]
    asked[1]["answers"][0]["answer_start"] = answer_start  # type: ignore[index]
    return {"version": "1.1", "data": [{"title": "t", "paragraphs": [{"context": CONTEXT, "qas": asked}]}]}


def _squad_rows() -> list[dict[str, Any]]:
    return [
        {
            "id": name,
            "title": "t",
            "context": CONTEXT,
            "question": question,
            "answers": {"text": [text], "answer_start": [start]},
        }
        for name, question, text, start in QUESTIONS
    ]


def _conllu() -> bytes:
    blocks = []
    for number, sentence in enumerate(SENTENCES):
        lines = [f"# sent_id = s{number}"]
        for position, (word, tag) in enumerate(sentence, start=1):
            head = "0" if position == 3 else "3"
            lines.append("\t".join([str(position), word, "_", tag, "_", "_", head, "dep", "_", "_"]))
        blocks.append("\n".join(lines) + "\n\n")
    return "".join(blocks).encode()


@dataclass(frozen=True, kw_only=True)
class Family:
    """A reader with a small valid file."""

    reader: str
    kind: str
    content: bytes
    options: dict[str, str] = field(default_factory=dict)
    labels: tuple[str, ...] = ()
    inputs: tuple[str, ...] = ()
    partner: bytes | None = None
    """The second of the files that are read together."""
    binary: bool = False


_TABLE: dict[str, Any] = {
    "kind": "sequence_classification",
    "labels": LABELS,
    "inputs": ("premise", "hypothesis"),
}
_FIELDS = ("id", "premise", "hypothesis", "label")
_COLUMNS = {"columns": ",".join(_FIELDS)}
_CELLS = [[row[name] for name in _FIELDS] for row in ROWS]
FAMILIES = {
    "tsv": Family(reader="tsv", content=_lines(_CELLS, "\t"), options=_COLUMNS, **_TABLE),
    "csv": Family(reader="csv", content=_lines([list(_FIELDS), *_CELLS], ","), options=_COLUMNS, **_TABLE),
    "jsonl": Family(
        reader="jsonl",
        content=b"".join(json.dumps(row).encode() + b"\n" for row in ROWS),
        options=_COLUMNS,
        **_TABLE,
    ),
    "json": Family(reader="json", content=json.dumps(ROWS, indent=1).encode(), options=_COLUMNS, **_TABLE),
    "parquet": Family(reader="parquet", content=_parquet(ROWS), options=_COLUMNS, binary=True, **_TABLE),
    "squad": Family(reader="squad", kind="span_extraction", content=json.dumps(_squad(), indent=1).encode()),
    "squad_records": Family(
        reader="squad_records", kind="span_extraction", content=_parquet(_squad_rows()), binary=True
    ),
    "tagged": Family(
        reader="tagged",
        kind="token_tagging",
        content=b"\n".join(_lines(sentence, "\t") for sentence in SENTENCES),
        labels=TAGS,
    ),
    "conllu": Family(reader="conllu", kind="token_tagging", content=_conllu(), labels=TAGS),
    "bitext": Family(
        reader="bitext",
        kind="bitext_retrieval",
        content=b"".join(f"The {n} cats.\n".encode() for n in range(5)),
        partner=b"".join(f"Die {n} Katzen.\n".encode() for n in range(5)),
    ),
    "answer_texts": Family(
        reader="answer_texts",
        options={"context": "context", "answers": "answers"},
        kind="span_extraction",
        content=b"".join(
            json.dumps({"context": CONTEXT, "question": question, "answers": [text]}).encode() + b"\n"
            for _, question, text, _ in QUESTIONS
        ),
    ),
}

Mutation = Callable[[bytes], bytes]
Place = Callable[[Path, bytes], None]


def _line(number: int, change: Callable[[bytes], bytes]) -> Mutation:
    """Return a mutation of one line, counted from 0."""

    def mutated(content: bytes) -> bytes:
        lines = content.split(b"\n")
        lines[number] = change(lines[number])
        return b"\n".join(lines)

    return mutated


def _inserted(number: int, line: bytes) -> Mutation:
    def mutated(content: bytes) -> bytes:
        lines = content.split(b"\n")
        return b"\n".join([*lines[:number], line, *lines[number:]])

    return mutated


ANY: dict[str, Mutation] = {
    "empty file": lambda content: b"",
    "line ends alone": lambda content: b"\n\n\n",
    "mark alone": lambda content: codecs.BOM_UTF8,
    "NULs alone": lambda content: bytes(len(content)),
    "NULs at the end": lambda content: content + bytes(64),
    "first half": lambda content: content[: len(content) // 2 - 3],
    "last 9 bytes cut": lambda content: content[:-9],
    "gzip": lambda content: b"\x1f\x8b\x08\x00" + content,
    "zip": lambda content: b"PK\x03\x04" + content,
    "page of an error": lambda content: b"<!DOCTYPE html>\n<html><body>404</body></html>\n",
    "pointer of Git LFS": lambda content: (
        b"version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 9\n"
    ),
    "brackets": lambda content: b"[[[[[[",
    "deep brackets": lambda content: b"[" * 100_000,
    "JSON null": lambda content: b"null\n",
    "a long line": lambda content: b"x" * 3_000_000,
    "twice": lambda content: content + content,
}
TEXT: dict[str, Mutation] = {
    "byte order mark": lambda content: codecs.BOM_UTF8 + content,
    "CRLF": lambda content: content.replace(b"\n", b"\r\n"),
    "CR": lambda content: content.replace(b"\n", b"\r"),
    "UTF-16": lambda content: content.decode().encode("utf-16"),
    "UTF-16 without mark": lambda content: content.decode().encode("utf-16-le"),
    "UTF-32": lambda content: content.decode().encode("utf-32"),
    "invalid UTF-8": _line(2, lambda line: line[:3] + b"\xff" + line[3:]),
    "cut character": lambda content: content + "é".encode()[:1],
    "surrogate in UTF-8": _line(1, lambda line: line[:3] + b"\xed\xa0\x80" + line[3:]),
    "NUL in a text": _line(1, lambda line: line[:4] + b"\x00" + line[4:]),
    "NUL in each line": lambda content: content.replace(b"\n", b"\x00\n"),
    "blank lines at the end": lambda content: content.rstrip(b"\n") + b"\n\n",
    "no line end": lambda content: content.rstrip(b"\n"),
    "text after the end": lambda content: content + b"}}garbage\tgarbage",
    "mark of a merge": _inserted(2, b"<<<<<<< HEAD"),
    "comment": _inserted(0, b"// data"),
    "blank line at the start": _inserted(0, b""),
    "blanks alone": lambda content: b"   \n\t\n",
}
LINES: dict[str, Mutation] = {
    "blank line within": _inserted(2, b""),
    "a line of spaces within": _inserted(2, b"   "),
    "a long line within": _inserted(2, b"y" * 2_000_000),
    "two lines joined": lambda content: content.replace(b"\n", b" ", 1),
}
TABLES: dict[str, Mutation] = {
    "repeated line": lambda content: content + content.split(b"\n")[2] + b"\n",
    "unknown label": lambda content: content.replace(b"neutral", b"neutrl", 1),
    "label in capitals": lambda content: content.replace(b"entailment", b"Entailment", 1),
    "label with blanks": lambda content: content.replace(b"neutral", b" neutral ", 1),
    "a number for a label": lambda content: content.replace(b"contradiction", b"7", 1),
    "empty label": lambda content: content.replace(b"neutral", b"", 1),
    "repeated id": lambda content: content.replace(b"i4", b"i1"),
}


def _json_rows(change: Callable[[dict[str, Any], int], dict[str, Any]]) -> Mutation:
    """Return a mutation of the records of JSON lines or a JSON array."""

    def mutated(content: bytes) -> bytes:
        is_array = content.startswith(b"[")
        rows = json.loads(content) if is_array else [json.loads(line) for line in content.splitlines()]
        changed = [change(dict(row), number) for number, row in enumerate(rows)]
        if is_array:
            return json.dumps(changed, indent=1).encode()
        return b"".join(json.dumps(row).encode() + b"\n" for row in changed)

    return mutated


def _set(name: str, value: Any, *, only: int | None = 1) -> Mutation:
    return _json_rows(lambda row, number: {**row, name: value} if only in (None, number) else row)


def _without(name: str, *, only: int | None = None) -> Mutation:
    def change(row: dict[str, Any], number: int) -> dict[str, Any]:
        return {key: own for key, own in row.items() if key != name} if only in (None, number) else row

    return _json_rows(change)


def _renamed(one: str, other: str) -> Mutation:
    return _json_rows(
        lambda row, number: {{one: other, other: one}.get(key, key): own for key, own in row.items()}
    )


RECORDS: dict[str, Mutation] = {
    "extra field": _set("comment", "x", only=None),
    "fields in another order": _json_rows(lambda row, number: dict(reversed(row.items()))),
    "dropped label": _without("label"),
    "dropped label of one": _without("label", only=3),
    "dropped text": _without("premise"),
    "dropped text of one": _without("premise", only=3),
    "label and text swapped": _renamed("label", "premise"),
    "label is null": _set("label", None),
    "label is a number": _set("label", 1),
    "label is a list": _set("label", ["neutral"]),
    "label is true": _set("label", True),
    "text is null": _set("premise", None),
    "text is a number": _set("premise", 4.5),
    "text is a list": _set("premise", ["The", "cats"]),
    "id is null": _set("id", None),
    "id is a list": _set("id", ["i1"]),
    "id is an object": _set("id", {"i": 1}),
    "id is true": _set("id", True),
    "repeated id by field": _set("id", "i4"),
    "long integer": lambda content: content.replace(b'"i1"', b"9" * 5_000, 1),
    "infinity": lambda content: content.replace(b'"i1"', b"Infinity", 1),
    "repeated key": lambda content: content.replace(b'"id"', b'"id": "x", "id"', 1),
    "half of a pair": lambda content: content.replace(b"cats", b"\\ud83d", 1),
    "single quotes": lambda content: content.replace(b'"', b"'"),
}
CELLS: dict[str, Mutation] = {
    "dropped column": lambda content: _columns(content, [0, 1, 2]),
    "dropped first column": lambda content: _columns(content, [1, 2, 3]),
    "extra column": lambda content: _columns(content, [0, 1, 2, 3, 3]),
    "label and text swapped": lambda content: _columns(content, [0, 3, 2, 1]),
    "label and id swapped": lambda content: _columns(content, [3, 1, 2, 0]),
    "extra cell in a line": _line(3, lambda line: line + line[-20:-19] + b"\tx,x"),
    "missing cell in a line": _line(3, lambda line: re.split(rb"[\t,]", line)[0]),
    "other separator": lambda content: content.replace(b"\t", b";").replace(b",", b";"),
    "open quote": _line(2, lambda line: line.replace(b",", b',"', 1).replace(b"\t", b'\t"\t', 1)),
}


def _columns(content: bytes, order: Sequence[int]) -> bytes:
    separator = b"\t" if b"\t" in content else b","
    rows = [line.split(separator) for line in content.splitlines()]
    return b"".join(separator.join(row[place] for place in order) + b"\n" for row in rows)


TAGGED: dict[str, Mutation] = {
    "unknown tag": lambda content: content.replace(b"VERB", b"VRB", 1),
    "dropped tag": lambda content: content.replace(b"\tNOUN", b"", 1),
    "spaces for tabs": lambda content: content.replace(b"\t", b" "),
    "empty word": lambda content: content.replace(b"sleeps", b"", 1),
    "extra column in a line": _line(1, lambda line: line + b"\tx"),
    "no column in a line": _line(1, lambda line: b""),
}


def _parquet_rows(change: Callable[[pa.Table], pa.Table]) -> Mutation:
    def mutated(content: bytes) -> bytes:
        sink = io.BytesIO()
        pq.write_table(change(pq.read_table(io.BytesIO(content))), sink)
        return sink.getvalue()

    return mutated


def _replaced(name: str, values: Sequence[Any]) -> Mutation:
    return _parquet_rows(
        lambda table: table.set_column(table.column_names.index(name), name, pa.array(list(values)))
    )


ARCHIVES: dict[str, Mutation] = {
    "flipped byte of the data": lambda content: content[:8] + bytes([content[8] ^ 255]) + content[9:],
    "flipped byte of the footer": lambda content: content[:-12] + bytes([content[-12] ^ 255]) + content[-11:],
    "zeros in the middle": lambda content: content[:40] + bytes(60) + content[100:],
    "start cut": lambda content: content[16:],
    "end cut": lambda content: content[:-1],
    "no rows": _parquet_rows(lambda table: table.slice(0, 0)),
    "rows twice": _parquet_rows(lambda table: pa.concat_tables([table, table])),
    "extra column": _parquet_rows(lambda table: table.append_column("x", pa.array([1] * table.num_rows))),
    "columns in another order": _parquet_rows(lambda table: table.select(table.column_names[::-1])),
    "id is a list": _parquet_rows(
        lambda table: table.set_column(
            table.column_names.index("id"), "id", pa.array([[own] for own in table["id"].to_pylist()])
        )
    ),
}
LABELLED_ARCHIVES: dict[str, Mutation] = {
    "dropped label": _parquet_rows(lambda table: table.drop_columns(["label"])),
    "label is bytes": _replaced("label", [row["label"].encode() for row in ROWS]),
    "label is a number": _replaced("label", [number % 3 for number in range(6)]),
    "label is null": _replaced("label", [None, *(row["label"] for row in ROWS[1:])]),
    "text is bytes": _replaced("premise", [b"\xff"] * 6),
    "text is null": _replaced("premise", [None, *(row["premise"] for row in ROWS[1:])]),
    "text is a number": _replaced("premise", range(6)),
    "id is null": _replaced("id", [None, *(row["id"] for row in ROWS[1:])]),
    "repeated column": _parquet_rows(lambda table: table.append_column("label", table["premise"])),
}


def _question(change: Callable[[dict[str, Any]], object]) -> Mutation:
    """Return a mutation of the first question of a SQuAD file."""

    def mutated(content: bytes) -> bytes:
        document = json.loads(content)
        change(document["data"][0]["paragraphs"][0]["qas"][0])
        return json.dumps(document, indent=1).encode()

    return mutated


def _document(change: Callable[[dict[str, Any]], object]) -> Mutation:
    def mutated(content: bytes) -> bytes:
        document = json.loads(content)
        change(document)
        return json.dumps(document, indent=1).encode()

    return mutated


SQUADS: dict[str, Mutation] = {
    "offset of another place": _question(lambda own: own["answers"][0].update(answer_start=4)),
    "negative offset": _question(lambda own: own["answers"][0].update(answer_start=-1)),
    "offset is a text": _question(lambda own: own["answers"][0].update(answer_start="0")),
    "offset is a fraction": _question(lambda own: own["answers"][0].update(answer_start=0.5)),
    "offset is missing": _question(lambda own: own["answers"][0].pop("answer_start")),
    "answer is empty": _question(lambda own: own["answers"][0].update(text="")),
    "answer is null": _question(lambda own: own["answers"][0].update(text=None)),
    "answer is elsewhere": _question(lambda own: own["answers"][0].update(text="Lima")),
    "answers are an object": _question(lambda own: own.update(answers={"text": "Rio"})),
    "answers are a text": _question(lambda own: own.update(answers="Rio")),
    "answers of one are dropped": _question(lambda own: own.pop("answers")),
    "no answers of one": _question(lambda own: own.update(answers=[])),
    "question is dropped": _question(lambda own: own.pop("question")),
    "question is a number": _question(lambda own: own.update(question=1)),
    "id is dropped": _question(lambda own: own.pop("id")),
    "id is null": _question(lambda own: own.update(id=None)),
    "id is a number": _question(lambda own: own.update(id=7)),
    "repeated id": _question(lambda own: own.update(id="q2")),
    "extra key": _question(lambda own: own.update(comment="x")),
    "context is dropped": _document(lambda own: own["data"][0]["paragraphs"][0].pop("context")),
    "context is stripped": _document(
        lambda own: own["data"][0]["paragraphs"][0].update(context=CONTEXT.replace("Rio is", "Rio"))
    ),
    "no data": _document(lambda own: own.pop("data")),
    "data is empty": _document(lambda own: own.update(data=[])),
    "no paragraphs": _document(lambda own: own["data"][0].update(paragraphs=[])),
    "an article is null": _document(lambda own: own["data"].append(None)),
    "a paragraph is a list": _document(lambda own: own["data"][0]["paragraphs"].append([])),
}
ROWS_OF_QUESTIONS: dict[str, Mutation] = {
    "dropped answers": _without("answers"),
    "dropped answers of one": _without("answers", only=1),
    "answers are a text": _set("answers", "Oslo"),
    "answers are numbers": _set("answers", [1]),
    "answers are empty texts": _set("answers", [""]),
    "context is dropped": _without("context"),
    "context is null": _set("context", None),
    "question is a list": _set("question", ["x"]),
    "extra field": _set("comment", "x", only=None),
}
OWN: dict[str, dict[str, Mutation]] = {
    "tsv": {**LINES, **TABLES, **CELLS},
    "csv": {**LINES, **TABLES, **CELLS},
    "jsonl": {**LINES, **TABLES, **RECORDS},
    "json": {**TABLES, **RECORDS},
    "parquet": {**ARCHIVES, **LABELLED_ARCHIVES},
    "squad": SQUADS,
    "squad_records": ARCHIVES,
    "tagged": {**LINES, **TAGGED},
    "conllu": {**LINES, **TAGGED},
    "bitext": {
        "blank line within": LINES["blank line within"],
        "spaces within": LINES["a line of spaces within"],
    },
    "answer_texts": ROWS_OF_QUESTIONS,
}
UNSEEN = {
    *((name, "twice") for name in ("tagged", "conllu", "answer_texts")),  # without ids, items may repeat
    *(("tagged", name) for name in ("brackets", "JSON null")),  # a word without a tag
    *(
        ("tagged", name)
        for name in ("blank line within", "a line of spaces within", "no column in a line")  # two sentences
    ),
    ("conllu", "first half"),
    ("bitext", "last 9 bytes cut"),  # a shorter text
}
"""What no reader can see: the file is a valid one with other items or texts."""


def _linked(path: Path, content: bytes) -> None:
    target = path.with_name(f"target-{path.name}")
    target.write_bytes(content)
    path.symlink_to(target)


PLACED: dict[str, Place] = {
    "symbolic link": _linked,
    "dangling link": lambda path, content: path.symlink_to(path.with_name("nowhere")),
    "link to itself": lambda path, content: path.symlink_to(path),
    "folder": lambda path, content: path.mkdir(),
    "missing file": lambda path, content: None,
    "device without end": lambda path, content: path.symlink_to("/dev/zero"),
    "pipe": lambda path, content: os.mkfifo(path),
}


def _cases() -> Iterator[Any]:
    for name, family in FAMILIES.items():
        table = {**ANY, **({} if family.binary else TEXT), **OWN[name]}
        for title, mutation in table.items():
            if (name, title) not in UNSEEN and mutation(family.content) != family.content:
                yield pytest.param(name, mutation, id=f"{name}-{title.replace(' ', '-')}")


@pytest.fixture(scope="module")
def readers() -> Registry:
    """What the installed plugins declare."""
    return open_session().registry


def _read(registry: Registry, family: Family, path: Path) -> list[Any]:
    """Return the examples of a file, read as an evaluation reads them."""
    partner = path.with_name("partner")
    if family.partner is not None:
        partner.write_bytes(family.partner)
    paths = [path] if family.partner is None else [path, partner]
    rows = registry.readers.get(family.reader).rows(paths, family.options)
    context = ReadContext(
        owner="task", language="en", split="test", inputs=family.inputs, labels=family.labels
    )
    return read_examples(registry.kinds.get(family.kind), rows, context)


_EXPECTED = "an object|a column|a file|a Parquet|a readable|as many|'data'"
WHOLE = f"The file holds|record|article|question|expected (?:{_EXPECTED})"
"""What follows the file in a message without a line: a fault of the whole file, or a record."""


def _outcome(registry: Registry, family: Family, path: Path) -> str:
    """Return ``same`` or ``rejected``; fails for any other outcome, and for a message without its place."""
    expected = _read(registry, family, _written(path.with_name("valid"), family.content))
    try:
        found = _read(registry, family, path)
    except HarnessError as error:
        assert re.search(f"{re.escape(str(path))}(?::[0-9]|: (?:{WHOLE}))", str(error)), str(error)
        return "rejected"
    plain = [[replace(own, id="") for own in examples] for examples in (expected, found)]
    assert plain[0] == plain[1]
    assert len({own.id for own in found}) == len(found)
    return "same"


def _written(path: Path, content: bytes) -> Path:
    path.write_bytes(content)
    return path


@pytest.mark.parametrize(("name", "mutation"), list(_cases()))
def test_a_mutated_file_is_rejected_or_scores_the_same(
    name: str, mutation: Mutation, readers: Registry, tmp_path: Path
) -> None:
    family = FAMILIES[name]
    _outcome(readers, family, _written(tmp_path / "mutated", mutation(family.content)))


@pytest.mark.parametrize("name", FAMILIES)
@pytest.mark.parametrize("place", PLACED)
def test_what_is_no_file_is_rejected(name: str, place: str, readers: Registry, tmp_path: Path) -> None:
    family, path = FAMILIES[name], tmp_path / "mutated"
    PLACED[place](path, family.content)
    assert _outcome(readers, family, path) == ("same" if place == "symbolic link" else "rejected")
