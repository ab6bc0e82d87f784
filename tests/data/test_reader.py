"""Readers with their options, and pairs of files."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, strategies as st

from harness.builtin import harness_register_readers
from harness.data.readers.reader import Column, choice, flag, wanted_columns
from harness.errors import DataError, UnknownNameError, UsageError
from tests.data.conftest import Read, Write


def test_options_default_to_the_first_choice_and_reject_others() -> None:
    assert choice({}, "tokens", ("fused", "words")) == "fused"
    assert choice({"tokens": "words"}, "tokens", ("fused", "words")) == "words"
    with pytest.raises(UsageError, match="must be 'fused' or 'words', found 'word'"):
        choice({"tokens": "word"}, "tokens", ("fused", "words"))
    assert flag({}, "header", default=True)
    assert not flag({"header": "false"}, "header", default=True)
    with pytest.raises(UsageError, match="must be 'false' or 'true', found 'yes'"):
        flag({"header": "yes"}, "header", default=False)
    tsv = next(reader for reader in harness_register_readers() if reader.name == "tsv")
    with pytest.raises(UnknownNameError):
        tsv.check_options({"colums": "a"})


def test_columns_keep_and_rename() -> None:
    assert wanted_columns({}) is None
    assert wanted_columns({"columns": "tokens, tags=ner_tags"}) == (
        Column(field="tokens", source="tokens"),
        Column(field="tags", source="ner_tags"),
    )


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        *((columns, "must hold names separated by commas") for columns in ("a,,b", "a=", "")),
        ("a,b=c,a", "names 'a' twice"),
    ],
)
def test_columns_that_make_no_sense_are_rejected(columns: str, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        wanted_columns({"columns": columns})


def test_the_catalog_imports_nothing_heavy() -> None:
    heavy = "pyarrow", "numpy", "pandas", "datasets", "torch"
    code = (
        "import sys, harness.builtin, harness.data.resolve, harness.data.records;"
        "harness.builtin.harness_register_readers();"
        f"print(sorted(set({heavy!r}) & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


TABLE, SENTENCES = "text,label\na,b\n", "a\tO\n\nb\tO\n"
RECORDS = '{"text": "a"}\n'


@pytest.mark.parametrize(
    ("name", "full", "empty", "options"),
    [
        ("csv", TABLE, "text,label\n", {}),
        ("tsv", "a\tb\n", "", {"columns": "text,label"}),
        ("tsv", "a\tb\n", "\n", {"columns": "text,label"}),
        ("jsonl", RECORDS, "", {}),
        ("json", "[{}]", "[]", {}),
        ("tagged", SENTENCES, "\n", {}),
        ("squad", json.dumps({"data": [{"paragraphs": [{"context": "c", "qas": [{"id": "1", "question": "q"}]}]}]}),
         '{"data": []}', {}),
        ("jsonl", '{"text": "a", "lang": "sw"}\n', "", {"where": "lang=sw"}),
    ],
)  # fmt: skip
@pytest.mark.parametrize("place", [0, 1, 2])
def test_every_file_of_several_must_have_a_row(
    tmp_path: Path, name: str, full: str, empty: str, options: dict[str, str], place: int
) -> None:
    reader = next(reader for reader in harness_register_readers() if reader.name == name)
    paths = [tmp_path / f"part{number}" for number in range(3)]
    for path in paths:
        path.write_text(full, encoding="utf-8")
    assert len(list(reader.rows(paths, options))) >= 3
    paths[place].write_text(empty, encoding="utf-8")
    with pytest.raises(DataError) as caught:
        list(reader.rows(paths, options))
    assert str(paths[place]) in str(caught.value)


def test_a_file_may_have_no_record_of_a_filter_and_the_second_side_of_a_bitext_names_no_row(
    tmp_path: Path,
) -> None:
    paths = [tmp_path / "one", tmp_path / "two"]
    for path, code in zip(paths, ("sw", "yo"), strict=True):
        path.write_text(f'{{"lang": "{code}"}}\n', encoding="utf-8")
    readers = {reader.name: reader for reader in harness_register_readers()}
    assert [row.path for row in readers["jsonl"].rows(paths, {"where": "lang=yo"})] == [str(paths[1])]
    assert [row.path for row in readers["bitext"].rows(paths, {})] == [str(paths[0])]


@pytest.mark.parametrize("key", ["", " ", None])
@pytest.mark.parametrize("make", [lambda key: {"key": key}, lambda key: {"page": "p", "number": key}])
def test_a_missing_part_of_an_id_is_named_with_its_line(
    tmp_path: Path, key: str | None, make: Callable[[str | None], dict[str, str | None]]
) -> None:
    readers = {reader.name: reader for reader in harness_register_readers()}
    path, other = tmp_path / "queries.jsonl", tmp_path / "targets.jsonl"
    for file, last in ((other, "2"), (path, key)):
        records = [{**make("1"), "text": "a"}, {**make(last), "text": "b"}]
        file.write_text("".join(json.dumps(record) + "\n" for record in records), encoding="utf-8")
    with pytest.raises(DataError, match=r"queries\.jsonl:2: "):
        if "key" in make(key):
            list(readers["bitext"].rows([path, other], {"key": "key", "text": "text"}))
        else:
            list(readers["jsonl"].rows([path], {"columns": "id=page+number,text=text"}))


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
    shorter, blank = write("a", "1\n"), write("b", "1\n  \n")
    with pytest.raises(DataError, match="expected as many lines"):
        read("bitext", [foreign, shorter])
    with pytest.raises(DataError, match=r"b:2: expected a sentence, found a blank line"):
        read("bitext", [foreign, blank])
    with pytest.raises(UsageError, match="needs two files"):
        read("bitext", [foreign])


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
    queries = [
        row.fields["query"]
        for row in read("bitext", [foreign, english], key="nr", text="text", query_index="1")
    ]
    assert queries == ['He says "yes".', "Hello."]
    files = [write("deu.csv", 'nr,text\n7,"Ja, gern."\n'), write("eng.csv", "nr,text\n7,Gladly.\n")]
    [row] = read("bitext", files, key="nr", text="text")
    assert row.fields == {"id": "7", "query": "Ja, gern.", "target": "Gladly."}
    with pytest.raises(UsageError):
        read("bitext", files, key="nr")


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
