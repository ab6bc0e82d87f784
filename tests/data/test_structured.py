from __future__ import annotations

import json
import re
import tempfile
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, strategies as st
from pyarrow import parquet

from harness.data.readers.tabular import JSON, JSONL, PARQUET
from harness.errors import DataError
from tests.data.conftest import Read, Write

_TEXT = st.text(st.characters(exclude_categories=["Cs"]))
_VALUE = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | _TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_TEXT, inner, max_size=3),
    max_leaves=6,
)


def test_jsonl_gives_one_row_a_line(read: Read, write: Write) -> None:
    path = write("a.jsonl", '{"premise": "a", "label": 0}\r\n{"premise": "b\\u2028c", "label": 1}\r\n')
    rows = read("jsonl", path)
    assert [row.fields for row in rows] == [
        {"premise": "a", "label": 0},
        {"premise": "b\u2028c", "label": 1},
    ]
    assert [row.line for row in rows] == [1, 2]
    assert read("jsonl", path, columns="text=premise")[1].fields == {"text": "b\u2028c"}


def test_json_numbers_the_records(read: Read, write: Write) -> None:
    rows = read("json", write("a.json", '\ufeff[{"x": 1},\n {"x": 2}]'))
    assert [(row.fields, row.line) for row in rows] == [({"x": 1}, 1), ({"x": 2}, 2)]


def test_json_reads_the_array_that_an_object_names(read: Read, write: Write) -> None:
    path = write("a.json", '{"canary": "c", "examples": [{"x": 1}, {"x": 2}]}')
    assert [row.fields for row in read("json", path, records="examples")] == [{"x": 1}, {"x": 2}]
    with pytest.raises(DataError, match="expected a column 'rows', found 'canary', 'examples'"):
        read("json", path, records="rows")
    with pytest.raises(DataError, match="expected an array of objects"):
        read("json", path, records="canary")


def test_a_question_mark_makes_the_end_of_a_shorter_list_null(
    read: Read, write: Write, tmp_path: Path
) -> None:
    records = [{"c": [{"t": "x"}, {"t": "y"}]}, {"c": [{"t": "u"}]}]
    expected = [{"A": "x", "B": "y"}, {"A": "u", "B": None}]
    path = write("a.jsonl", "\n".join(map(json.dumps, records)))
    assert [row.fields for row in read("jsonl", path, columns="A=c.0.t,B=c.1?.t")] == expected
    parquet.write_table(pa.Table.from_pylist(records), tmp_path / "a.parquet")
    columns = "A=c.0.t,B=c.1?.t"
    assert [row.fields for row in read("parquet", tmp_path / "a.parquet", columns=columns)] == expected
    with pytest.raises(DataError, match=r"expected 'c\.1\.t', found no '1' in it"):
        read("jsonl", path, columns="A=c.1.t")


def test_a_condition_looks_into_a_column_and_takes_one_of_several_values(
    read: Read, write: Write, tmp_path: Path
) -> None:
    records = [
        {"n": number, "info": {"lang": lang}, "key": key}
        for number, (lang, key) in enumerate(
            [("de", "A"), ("de", "@"), ("fr", "A"), ("de", "B"), ("de", "A|B")]
        )
    ]
    path = write("a.jsonl", "\n".join(map(json.dumps, records)))
    where = "info.lang=de\nkey=A|B"
    assert [row.fields["n"] for row in read("jsonl", path, where=where)] == [0, 3, 4]
    parquet.write_table(pa.Table.from_pylist(records), tmp_path / "a.parquet")
    rows = read("parquet", tmp_path / "a.parquet", columns="n", where=where)
    assert [row.fields for row in rows] == [{"n": 0}, {"n": 3}, {"n": 4}]


def test_parquet_gives_python_values_and_numbers_the_records(read: Read, tmp_path: Path) -> None:
    records = [
        {"id": "q1", "answers": {"text": ["b"], "answer_start": [2]}, "n": 1},
        {"id": "q2", "answers": None, "n": None},
    ]
    parquet.write_table(pa.Table.from_pylist(records), tmp_path / "a.parquet")
    rows = read("parquet", tmp_path / "a.parquet")
    assert [row.fields for row in rows] == records
    assert [row.line for row in rows] == [1, 2]
    assert read("parquet", tmp_path / "a.parquet", columns="key=id")[1].fields == {"key": "q2"}


@pytest.mark.parametrize(
    ("reader", "content", "message"),
    [
        ("jsonl", '{"x": 1}\n[1]\n', ":2: expected a JSON object"),
        ("jsonl", '{"x": 1}\n"a"\n', ":2: expected a JSON object"),
        ("jsonl", '{"x": 1}\n{"x": \n', ":2: expected JSON"),
        ("jsonl", '{"x": 1, "x": 2}\n', ":1: expected unique keys"),
        ("jsonl", '{"x": NaN}\n', ":1: expected finite numbers"),
        ("jsonl", '{"x": "\\ud800"}\n', ":1: expected Unicode text"),
        ("jsonl", "[" * 100_000, ":1: expected JSON"),
        ("json", '{"data": []}', ":1: expected an array of objects"),
        ("json", '[{"x": 1},\n 2]', ": record 2: expected a JSON object"),
        ("json", '[{"x": 1},\n {]', ":2: expected JSON"),
    ],
)
def test_a_fault_is_reported_with_its_place(
    read: Read, write: Write, reader: str, content: str, message: str
) -> None:
    path = write("records", content)
    with pytest.raises(DataError) as caught:
        read(reader, path)
    assert message in str(caught.value)


def test_a_missing_column_is_reported(read: Read, write: Write, tmp_path: Path) -> None:
    path = write("a.jsonl", '{"text": "a"}\n{"txt": "b"}\n')
    with pytest.raises(DataError) as caught:
        read("jsonl", path, columns="text")
    assert str(caught.value) == f"{path}:2: expected a column 'text', found 'txt'. Did you mean 'txt'?"
    parquet.write_table(pa.table({"tokens": ["a"]}), tmp_path / "a.parquet")
    with pytest.raises(DataError) as caught:
        read("parquet", tmp_path / "a.parquet", columns="label")
    assert str(caught.value) == f"{tmp_path / 'a.parquet'}: expected a column 'label', found 'tokens'."


def test_a_file_that_is_not_parquet_is_reported(read: Read, write: Write) -> None:
    path = write("a.parquet", b"not a parquet file at all")
    with pytest.raises(DataError, match="expected a Parquet file, found: Parquet magic bytes not found"):
        read("parquet", path)


@given(st.lists(st.dictionaries(_TEXT, _VALUE, max_size=4), max_size=6), st.booleans())
def test_jsonl_reads_back_what_was_written(
    read: Read, records: list[dict[str, Any]], ascii_only: bool
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "a.jsonl"
        lines = [json.dumps(record, ensure_ascii=ascii_only) + "\n" for record in records]
        path.write_bytes("".join(lines).encode())
        rows = read("jsonl", path)
    assert [row.fields for row in rows] == records


RECORDS = [
    {
        "page": "a",
        "number": 1,
        "part": "test",
        "choices": "['x', \"it's\"]",
        "deep": {"list": [5, 6]},
        "a.b": 1,
        "c+d": 2,
    },
    {
        "page": "b",
        "number": 2,
        "part": "dev",
        "choices": ["u", "v"],
        "deep": {"list": [7]},
        "a.b": 3,
        "c+d": 4,
    },
]


@pytest.mark.parametrize(
    ("columns", "expected"),
    [
        ("id=page+number", [{"id": "a/1"}, {"id": "b/2"}]),
        ("A=choices.0,B=choices.1", [{"A": "x", "B": "it's"}, {"A": "u", "B": "v"}]),
        ("first=deep.list.0", [{"first": 5}, {"first": 7}]),
        ("x=a.b,y=c+d", [{"x": 1, "y": 2}, {"x": 3, "y": 4}]),
    ],
)
def test_columns_are_joined_and_taken_from_lists_unless_a_name_has_the_mark(
    tmp_path: Path, columns: str, expected: list[dict[str, Any]]
) -> None:
    path = tmp_path / "x.jsonl"
    path.write_text("".join(json.dumps(record) + "\n" for record in RECORDS), encoding="utf-8")
    assert [dict(row.fields) for row in JSONL.read([path], {"columns": columns})] == expected


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ("id=page+numbr", "expected a column 'numbr'"),
        ("A=choices.2", "expected 'choices.2', found no '2' in it"),
        ("A=page.0", "expected a list for 'page.0', found 'a'"),
    ],
)
def test_a_missing_part_of_a_column_is_named(tmp_path: Path, columns: str, message: str) -> None:
    path = tmp_path / "x.jsonl"
    path.write_text(json.dumps(RECORDS[0]) + "\n", encoding="utf-8")
    with pytest.raises(DataError, match=re.escape(message)):
        list(JSONL.read([path], {"columns": columns}))


@pytest.mark.parametrize("suffix", ["jsonl", "json", "parquet"])
def test_records_are_kept_by_a_value(tmp_path: Path, suffix: str) -> None:
    records = [{"text": "a", "part": "test"}, {"text": "b", "part": "dev"}, {"text": "c", "part": None}]
    path = tmp_path / f"x.{suffix}"
    if suffix == "parquet":
        parquet.write_table(pa.Table.from_pylist(records), path)
    elif suffix == "json":
        path.write_text(json.dumps(records), encoding="utf-8")
    else:
        path.write_text("".join(json.dumps(record) + "\n" for record in records), encoding="utf-8")
    reader = {"jsonl": JSONL, "json": JSON, "parquet": PARQUET}[suffix]

    def texts(where: str) -> list[str]:
        return [row.fields["text"] for row in reader.read([path], {"columns": "text", "where": where})]

    assert (texts("part=test"), texts("part")) == (["a"], ["a", "b"])
    assert (texts("part=te*"), texts("part=*e*"), texts("part=?est|[t]est")) == (["a"], ["a", "b"], [])
    with pytest.raises(DataError, match="expected a column 'prt'"):
        texts("prt=test")
