from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, strategies as st

from harness.data.readers.bitext import BITEXT
from harness.data.records import Row
from harness.errors import DataError, UsageError

Read = Callable[..., list[Row]]
Write = Callable[[str, str | bytes], Path]

_SENTENCE = st.text(
    st.characters(exclude_categories=["Cs"], exclude_characters="\0\n\r\ufeff"), min_size=1
).filter(lambda text: text == text.rstrip())


def test_equal_lines_are_translations(read: Read, write: Write) -> None:
    foreign, english = write("t.deu", "Hallo. \nJa.\n"), write("t.eng", "Hello.\r\nYes.\r\n")
    rows = read("bitext", [foreign, english], query_index="1")
    assert [row.fields for row in rows] == [
        {"id": "1", "query": "Hello.", "target": "Hallo."},
        {"id": "2", "query": "Yes.", "target": "Ja."},
    ]
    assert rows[1].where == f"{english}:2"
    assert read("bitext", [foreign, english])[0].fields["query"] == "Hallo."


def test_unequal_counts_are_reported_with_both(read: Read, write: Write) -> None:
    first, second = write("a", "1\n2\n"), write("b", "1\n2\n3\n")
    with pytest.raises(DataError) as caught:
        read("bitext", [first, second])
    assert str(caught.value) == f"{first}: expected as many lines as {second} has, found 2 against 3."


def test_a_blank_line_is_reported(read: Read, write: Write) -> None:
    first, second = write("a", "1\n2\n"), write("b", "1\n  \n")
    with pytest.raises(DataError) as caught:
        read("bitext", [first, second])
    assert str(caught.value) == f"{second}:2: expected a sentence, found a blank line."


def test_one_file_is_not_a_bitext(read: Read, write: Write) -> None:
    with pytest.raises(UsageError) as caught:
        read("bitext", [write("a", "1\n")])
    assert str(caught.value) == "The reader 'bitext' needs two files, one of each language, found 1."


@given(st.lists(st.tuples(_SENTENCE, _SENTENCE), max_size=6))
def test_reads_back_what_was_written(read: Read, pairs: list[tuple[str, str]]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        first, second = Path(folder) / "a", Path(folder) / "b"
        first.write_bytes("".join(f"{a}\n" for a, _ in pairs).encode())
        second.write_bytes("".join(f"{b}\n" for _, b in pairs).encode())
        rows = read("bitext", [first, second])
    assert [(row.fields["query"], row.fields["target"]) for row in rows] == pairs
    assert [row.fields["id"] for row in rows] == [str(line) for line in range(1, len(pairs) + 1)]


def test_tables_are_joined_by_their_key(read: Read, write: Write) -> None:
    foreign = write("deu.tsv", 'nr\ttopic\ttext\n7\tx\tHallo.\n3\ty\t"Er sagt ""ja""."\n')
    english = write("eng.tsv", 'nr\ttopic\ttext\n3\ty\t"He says ""yes""."\n7\tx\tHello.\n')
    rows = read("bitext", [foreign, english], key="nr", text="text")
    assert [row.fields for row in rows] == [
        {"id": "7", "query": "Hallo.", "target": "Hello."},
        {"id": "3", "query": 'Er sagt "ja".', "target": 'He says "yes".'},
    ]
    assert rows[0].where == f"{foreign}:2"
    assert [
        row.fields["query"]
        for row in read("bitext", [foreign, english], key="nr", text="text", query_index="1")
    ] == [
        'He says "yes".',
        "Hello.",
    ]


def test_tables_may_be_separated_by_commas(read: Read, write: Write) -> None:
    files = [write("deu.csv", 'nr,text\n7,"Ja, gern."\n'), write("eng.csv", "nr,text\n7,Gladly.\n")]
    [row] = read("bitext", files, key="nr", text="text")
    assert row.fields == {"id": "7", "query": "Ja, gern.", "target": "Gladly."}


@pytest.mark.parametrize(
    ("second", "place"),
    [
        ("nr\ttext\n7\tHello.\n", "a.tsv:3"),
        ("nr\ttext\n7\tHello.\n3\tYes.\n4\tNo.\n", "b.tsv:4"),
        ("nr\ttext\n7\tHello.\n3\tYes.\n3\tNo.\n", "b.tsv:4"),
        ("nr\ttext\n7\tHello.\n3\t \n", "b.tsv:3"),
    ],
)
def test_tables_that_do_not_match_are_reported(read: Read, write: Write, second: str, place: str) -> None:
    files = [write("a.tsv", "nr\ttext\n7\tHallo.\n3\tJa.\n"), write("b.tsv", second)]
    with pytest.raises(DataError) as caught:
        read("bitext", files, key="nr", text="text")
    assert f"{place}:" in str(caught.value)


def test_a_key_without_a_text_is_no_option(read: Read, write: Write) -> None:
    assert BITEXT.check is not None
    with pytest.raises(UsageError):
        BITEXT.check({"key": "nr"})
    BITEXT.check({})
    BITEXT.check({"key": "nr", "text": "text"})
