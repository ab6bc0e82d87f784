from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, strategies as st

from harness.data.records import Row
from harness.errors import DataError

Read = Callable[..., list[Row]]
Write = Callable[[str, str | bytes], Path]

_WORD = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0\t\n\r\ufeff "), min_size=1)
_SENTENCES = st.lists(st.lists(st.tuples(_WORD, _WORD), min_size=1, max_size=5), max_size=5)


def test_sentences_are_separated_by_blank_lines(read: Read, write: Write) -> None:
    path = write("a.tsv", "मैं\tPRON\nहूँ\tAUX\n\nनहीं\u200cतो\tADV\n")
    rows = read("tagged", path)
    assert [row.fields for row in rows] == [
        {"tokens": ("मैं", "हूँ"), "tags": ("PRON", "AUX")},
        {"tokens": ("नहीं\u200cतो",), "tags": ("ADV",)},
    ]
    assert [row.line for row in rows] == [1, 4]


def test_a_file_of_words_alone_has_no_tags(read: Read, write: Write) -> None:
    rows = read("tagged", write("a.tsv", "a\nb\n\nc\n\n\n"))
    assert [row.fields for row in rows] == [
        {"tokens": ("a", "b"), "tags": None},
        {"tokens": ("c",), "tags": None},
    ]


def test_the_language_prefix_ends_at_the_first_colon(read: Read, write: Write) -> None:
    rows = read("tagged", write("a.tsv", "en:10:30\tO\nen::\tO\n"), token_prefix="lang")
    assert rows[0].fields["tokens"] == ("10:30", ":")


def test_a_space_separates_and_lines_without_a_word_are_left_out(read: Read, write: Write) -> None:
    rows = read("tagged", write("a.txt", "10 000 NUM\n O\n\n# B-X\n"), separator="space")
    assert [row.fields for row in rows] == [
        {"tokens": ("10 000",), "tags": ("NUM",)},
        {"tokens": ("#",), "tags": ("B-X",)},
    ]


def test_columns_have_numbers_and_comments_names(read: Read, write: Write) -> None:
    path = write(
        "a.conll", "# text = a b = c\n# slots: x\n1\ta\tO\n2\t\tO\n3\t#\tB-X\n\n# text = d\n1\td\tO\n"
    )
    rows = read("tagged", path, columns="tokens=2,tags=3,text=text")
    assert [row.fields for row in rows] == [
        {"tokens": ("a", "#"), "tags": ("O", "B-X"), "text": "a b = c"},
        {"tokens": ("d",), "tags": ("O",), "text": "d"},
    ]
    assert [row.line for row in rows] == [1, 7]


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ("tokens=4", "{path}:1: expected a column 4, found 2 columns."),
        ("label=intend", "{path}:1: expected a column 'intend', found 'intent'."),
        ("tokens=2", "{path}:5: expected 2 columns, found 'b'."),
    ],
)
def test_faults_of_columns(read: Read, write: Write, columns: str, message: str) -> None:
    content = "# intent = x\n1\ta\n\n1\tb\n" + ("b\n" if columns == "tokens=2" else "")
    path = write("a.conll", content)
    with pytest.raises(DataError) as raised:
        read("tagged", path, columns=columns)
    assert str(raised.value).startswith(message.format(path=path))


@pytest.mark.parametrize(
    ("content", "options", "message"),
    [
        ("a\tO\nb\n", {}, "{path}:2: expected a word, a tab and a tag, found 1 column: 'b'."),
        ("a\n\nb\tO\n", {}, "{path}:3: expected a word alone, found 2 columns: 'b\\tO'."),
        ("a\tO\tx\n", {}, "{path}:1: expected a word, a tab and a tag, found 3 columns: 'a\\tO\\tx'."),
        ("a\tO\n\tO\n", {}, "{path}:2: expected a word, a tab and a tag, found '\\tO'."),
        ("a\tO\nb\t\n", {}, "{path}:2: expected a word, a tab and a tag, found 'b\\t'."),
        (
            "en:a\tO\nb\tO\n",
            {"token_prefix": "lang"},
            "{path}:2: expected a word with a language prefix such as 'en:', found 'b'.",
        ),
    ],
)
def test_a_fault_is_reported_with_its_line(
    read: Read, write: Write, content: str, options: dict[str, str], message: str
) -> None:
    path = write("a.tsv", content)
    with pytest.raises(DataError) as caught:
        read("tagged", path, **options)
    assert str(caught.value) == message.format(path=path)


def test_files_that_are_read_together_are_alike(read: Read, write: Write) -> None:
    tagged, bare = write("a.tsv", "a\tO\n"), write("b.tsv", "b\n")
    with pytest.raises(DataError) as caught:
        read("tagged", [tagged, bare])
    assert str(caught.value) == f"{bare}:1: expected a word, a tab and a tag, found 1 column: 'b'."


@given(_SENTENCES)
def test_reads_back_what_was_written(read: Read, sentences: list[list[tuple[str, str]]]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "a.tsv"
        blocks = ["".join(f"{word}\t{tag}\n" for word, tag in sentence) for sentence in sentences]
        path.write_bytes("\n".join(blocks).encode())
        rows = read("tagged", path)
    found = [list(zip(row.fields["tokens"], row.fields["tags"], strict=True)) for row in rows]
    assert found == sentences


@given(_SENTENCES)
def test_reads_back_prefixed_words_alone(read: Read, sentences: list[list[tuple[str, str]]]) -> None:
    words = [tuple(word for word, _ in sentence) for sentence in sentences]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "a.tsv"
        blocks = ["".join(f"sw:{word}\n" for word in sentence) for sentence in words]
        path.write_bytes("\n".join(blocks).encode())
        rows = read("tagged", path, token_prefix="lang")
    assert [row.fields["tokens"] for row in rows] == words
