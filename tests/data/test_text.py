from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from harness.data.readers.text import numbered_lines, whole_text
from harness.errors import DataError

Write = Callable[[str, str | bytes], Path]


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
    expected = (
        f"{path}:{line}: expected UTF-8, found the byte 0xe9. "
        "Convert the file to UTF-8, for instance with iconv."
    )
    for reading in (lambda: list(numbered_lines(path)), lambda: whole_text(path)):
        with pytest.raises(DataError) as caught:
            reading()
        assert str(caught.value) == expected


def test_a_file_that_is_not_there_is_reported(tmp_path: Path) -> None:
    with pytest.raises(DataError) as caught:
        list(numbered_lines(tmp_path / "none"))
    assert str(caught.value) == (
        f"{tmp_path / 'none'}: expected a readable file, found: No such file or directory."
    )
