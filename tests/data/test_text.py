"""Lines of files: their ends, their encoding, and blank ones, which separate records."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from hypothesis import given, strategies as st

from harness.data.readers.reader import extra_blank_lines, numbered_lines, whole_text
from harness.data.records import Row
from harness.errors import DataError
from harness.running.session import open_session
from tests.data.conftest import Write


@pytest.mark.parametrize(
    ("content", "lines"),
    [
        (b"", []),
        (b"a", ["a"]),
        (b"a\n", ["a"]),
        (b"a\nb\n", ["a", "b"]),
        (b"a\r\nb\r\n", ["a", "b"]),
        (b"a\rb\r", ["a", "b"]),
        (b"a\n\n", ["a", ""]),
        (b"a\r\n\r\n", ["a", ""]),
        (b"\xef\xbb\xbfa\nb", ["a", "b"]),
        ("a\u2028b\u0085c\x0bd\x0ce\x1cf\n".encode(), ["a\u2028b\u0085c\x0bd\x0ce\x1cf"]),
        ("a\n\ufeffb\n".encode(), ["a", "\ufeffb"]),
    ],
)
def test_lines_end_where_an_editor_ends_them(write: Write, content: bytes, lines: list[str]) -> None:
    path = write("text", content)
    assert list(numbered_lines(path)) == list(enumerate(lines, start=1))
    assert whole_text(path).removesuffix("\n").split("\n") == (lines or [""])


@pytest.mark.parametrize(("content", "line"), [(b"a\nb\nc\xe9\n", 3), (b"a\rb\r\xe9", 3), (b"\xe9", 1)])
def test_a_byte_that_is_not_utf8_is_reported_with_its_line(write: Write, content: bytes, line: int) -> None:
    path = write("latin", content)
    for reading in (lambda: list(numbered_lines(path)), lambda: whole_text(path)):
        with pytest.raises(DataError, match=f"latin:{line}: expected UTF-8, found the byte 0xe9"):
            reading()


def test_a_file_that_is_not_there_is_reported(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="none: expected a readable file"):
        list(numbered_lines(tmp_path / "none"))


Readers = Callable[[str, Sequence[Path], dict[str, str]], list[Row]]

BLANKS = st.lists(st.sampled_from(["", " ", "\t ", "\u00a0", "\u3000", "\u200b", "\u202f "]), max_size=3)
BLOCKS: dict[str, tuple[list[str], dict[str, str], int]] = {
    "tagged": (["a\tO\nb\tB-X", "\u00a0\tO\nc\tO", "d\tI-X"], {}, 1),
    "conllu": (
        ["1\ta" + "\t_" * 4 + "\t0\troot\t_\t_", "# text = b\n1\tb" + "\t_" * 4 + "\t0\troot\t_\t_"],
        {},
        1,
    ),
    "jsonl": (['{"x": 1}', '{"x": 2}', '{"x": 3}'], {}, 0),
    "tsv": (["a\tb", "c\td", "e\tf"], {"columns": "x,y"}, 0),
    "csv": (["x,y", 'a,"b\n\n"', "c,d"], {}, 0),
    "judged": (["True\ta", "False\tb", "True\tc", "False\td"], {}, 0),
}
"""Reader -> blocks of lines, its options, and the blank lines that blocks need between them."""


@pytest.fixture(scope="module")
def readers() -> Readers:
    registry = open_session().registry

    def read(name: str, paths: Sequence[Path], options: dict[str, str]) -> list[Row]:
        if name == "judged":
            name, options = "sentence_pairs", {"format": "judged", **options}
        return list(registry.readers.get(name).rows(paths, options))

    return read


@pytest.mark.parametrize("name", BLOCKS)
@given(gaps=st.lists(BLANKS, min_size=5, max_size=5))
def test_further_blank_lines_change_nothing(name: str, gaps: list[list[str]], readers: Readers) -> None:
    blocks, options, needed = BLOCKS[name]
    if name == "tsv":  # "\t " is a row of two cells there
        gaps = [[blank.strip("\t") for blank in gap] for gap in gaps]
    lines = [*gaps[0]]
    for block, gap in zip(blocks, gaps[1:], strict=False):
        lines += [block, *([""] * needed), *gap]
    inside = sum(map(len, gaps[: len(blocks)]))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "file"
        path.write_text(("\n" + "\n" * needed).join(blocks) + "\n", encoding="utf-8")
        plain = [row.fields for row in readers(name, [path], options)]
        assert extra_blank_lines(path) == 0
        path.write_text("\n".join(lines) + "\n", encoding="utf-8")
        assert [row.fields for row in readers(name, [path], options)] == plain
        assert extra_blank_lines(path) == inside


def test_a_word_of_no_break_space_is_kept_where_lines_are_words(readers: Readers, tmp_path: Path) -> None:
    path = tmp_path / "words.tsv"
    path.write_text("a\n\u00a0\n\n \nb\n", encoding="utf-8")
    assert [row.fields["tokens"] for row in readers("tagged", [path], {})] == [("a", "\u00a0"), ("b",)]


def test_a_line_that_is_blank_in_both_files_is_no_pair(readers: Readers, tmp_path: Path) -> None:
    first, second = tmp_path / "a", tmp_path / "b"
    first.write_text("1\n\n2\n\n\n", encoding="utf-8")
    second.write_text("x\n \ny\n", encoding="utf-8")
    rows = readers("bitext", [first, second], {})
    assert [(row.fields["id"], row.fields["query"], row.fields["target"]) for row in rows] == [
        ("1", "1", "x"),
        ("3", "2", "y"),
    ]
    assert extra_blank_lines(first) == 1
