"""What makes planning quick changes nothing: file digests follow the files, paths are judged as before."""

from __future__ import annotations

import os
from pathlib import Path, PurePosixPath

import pytest
from hypothesis import given, strategies as st

from harness.data.resolve import ResolvedData, check_relative
from harness.data.sources import data_ref
from harness.errors import DataError
from harness.languages.table import known_languages
from harness.specs.schema import LocalSource, Source


def _digest(path: Path) -> str:
    return ResolvedData(paths=(path,), origin="local", split_used="test", describe="here").digest()


def test_the_digest_of_a_file_follows_its_content(tmp_path: Path) -> None:
    path = tmp_path / "a.tsv"
    path.write_bytes(b"one")
    first = _digest(path)
    assert _digest(path) == first
    status = path.stat()
    # Another file of the same name, size and time.
    (tmp_path / "new").write_bytes(b"two")
    os.utime(tmp_path / "new", ns=(status.st_atime_ns, status.st_mtime_ns))
    (tmp_path / "new").replace(path)
    second = _digest(path)
    assert second != first
    path.write_bytes(b"one")
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns + 1))
    assert _digest(path) == first
    # Through a link, which is another file from now on.
    (tmp_path / "b").mkdir()
    (tmp_path / "other").write_bytes(b"one")
    (tmp_path / "b/a.tsv").symlink_to(tmp_path / "other")
    assert _digest(tmp_path / "b/a.tsv") == first


@pytest.mark.parametrize("size", [0, 65_536, 65_537, 300_000])
def test_the_digest_does_not_depend_on_how_a_file_is_read(size: int, tmp_path: Path) -> None:
    import hashlib

    content = os.urandom(size)
    (tmp_path / "a").write_bytes(content)
    line = f"a\0{hashlib.sha256(content).hexdigest()}\n"
    assert _digest(tmp_path / "a") == hashlib.sha256(line.encode()).hexdigest()


@given(
    st.lists(st.sampled_from(["/", ".", "..", "a", "*", "**", ":", "\\", "\0", "b.c"]), max_size=6).map(
        "".join
    )
)
def test_paths_that_leave_the_folder_are_rejected(path: str) -> None:
    pure = PurePosixPath(path)
    outside = pure.is_absolute() or ".." in pure.parts or not pure.parts
    if outside or "**" in path or any(character in path for character in "\\:\0"):
        with pytest.raises(DataError, match="must be relative to the data folder"):
            check_relative(path)
    else:
        assert check_relative(path) == pure


def test_a_bare_path_is_short_for_one_alternative() -> None:
    language = known_languages().get("sw")
    fields = {"columns": ("a", "b"), "label_map": {"0": "x"}, "options": {"k": "{language}"}, "reader": "csv"}
    refs = [
        data_ref(
            Source(local=local, **fields),  # type: ignore[arg-type]
            owner="mine",
            language=language,
            split="test",
            folder=None,
        )
        for local in ("x/{language}.csv", (LocalSource(path="x/{language}.csv"),))
    ]
    assert refs[0] == refs[1]
    assert refs[0].local[0].paths == ("x/sw.csv",)
