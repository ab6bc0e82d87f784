from __future__ import annotations

import csv
import tempfile
from pathlib import Path

import pytest
from hypothesis import given, strategies as st

from harness.errors import DataError, UsageError
from tests.data.conftest import Read, Write

_TEXT = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0\t\n\r"))


def test_tsv_gives_the_named_columns_and_takes_quotes_as_text(read: Read, write: Write) -> None:
    path = write("a.tsv", 'He said "no".\t"\tneutral\nx\ty\tentailment\n')
    rows = read("tsv", path, columns="premise,hypothesis,label")
    assert [dict(row.fields) for row in rows] == [
        {"premise": 'He said "no".', "hypothesis": '"', "label": "neutral"},
        {"premise": "x", "hypothesis": "y", "label": "entailment"},
    ]
    assert [row.where for row in rows] == [f"{path}:1", f"{path}:2"]
    quoted, second = write("b.tsv", '"a\tb"\tc\n'), write("a2.tsv", "d\te\n\n")
    rows = read("tsv", [quoted, second], columns="x,y", quoting="rfc4180")
    assert [row.fields for row in rows] == [{"x": "a\tb", "y": "c"}, {"x": "d", "y": "e"}]


def test_a_header_names_the_columns_and_columns_picks_among_them(read: Read, write: Write) -> None:
    path = write("a.tsv", "id\tsentence1\tsentence2\n7\ta\tb\n")
    assert read("tsv", path, header="true")[0].fields == {"id": "7", "sentence1": "a", "sentence2": "b"}
    row = read("tsv", path, header="true", columns="text=sentence2")[0]
    assert (row.fields, row.line) == ({"text": "b"}, 2)


def test_csv_follows_rfc_4180(read: Read, write: Write) -> None:
    path = write("a.csv", 'id,text\r\n1,"a, ""b""\r\nc"\r\n2,d\r\n')
    rows = read("csv", path)
    assert [row.fields for row in rows] == [{"id": "1", "text": 'a, "b"\nc'}, {"id": "2", "text": "d"}]
    assert [row.line for row in rows] == [2, 4]


@pytest.mark.parametrize(
    ("reader", "content", "options", "message"),
    [
        ("tsv", "a\tb\na\n", {"columns": "x,y"}, ":2: expected 2 columns (x, y)"),
        ("tsv", "a\tb\tc\n", {"columns": "x,y"}, ":1: expected 2 columns (x, y)"),
        ("tsv", "", {"header": "true"}, ":1: expected a header line"),
        ("tsv", "a\ta\n", {"header": "true"}, ":1: expected unique column names"),
        (
            "tsv",
            "premis\tlabel\nx\ty\n",
            {"header": "true", "columns": "premise"},
            ":2: expected a column 'premise'",
        ),
        ("csv", "a,b\n1\n", {}, ":2: expected 2 columns (a, b)"),
        ("csv", 'a,b\n1,"2\n3,4\n', {}, ":2: expected cells quoted as RFC 4180 says"),
        ("csv", 'a,b\n1,"2"3\n', {}, ":2: expected cells quoted as RFC 4180 says"),
    ],
)
def test_a_fault_is_reported_with_its_line(
    read: Read, write: Write, reader: str, content: str, options: dict[str, str], message: str
) -> None:
    path = write("table", content)
    with pytest.raises(DataError) as caught:
        read(reader, path, **options)
    assert message in str(caught.value)


def test_a_table_without_names_is_rejected(read: Read, write: Write) -> None:
    with pytest.raises(UsageError, match="needs the option 'columns' when there is no header"):
        read("tsv", write("a.tsv", "a\n"))
    with pytest.raises(UsageError, match="cannot rename 'b' where there is no header"):
        read("csv", write("a.csv", "a\n"), header="false", columns="a=b")


@given(st.lists(st.tuples(_TEXT, _TEXT), max_size=8))
def test_tsv_reads_back_what_was_written(read: Read, records: list[tuple[str, str]]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "a.tsv"
        path.write_bytes("".join(f"{a}\t{b}\n" for a, b in records).encode())
        rows = read("tsv", path, columns="a,b")
    # A byte order mark that begins the first cell is the file's, as everywhere.
    found = [(row.fields["a"], row.fields["b"]) for row in rows]
    assert found == [
        (a.removeprefix("\ufeff") if index == 0 else a, b) for index, (a, b) in enumerate(records)
    ]
    assert [row.line for row in rows] == list(range(1, len(records) + 1))


@given(
    st.lists(
        st.tuples(st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0")), _TEXT),
        max_size=8,
    )
)
def test_csv_reads_back_what_python_wrote(read: Read, records: list[tuple[str, str]]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "a.csv"
        with path.open("w", encoding="utf-8", newline="") as file:
            csv.writer(file).writerows([("a", "b"), *records])
        rows = read("csv", path)
    expected = [(a.replace("\r\n", "\n").replace("\r", "\n"), b) for a, b in records]
    assert [(row.fields["a"], row.fields["b"]) for row in rows] == expected
