"""Where files are looked for, and their digests, which follow the content."""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import zipfile
from pathlib import Path, PurePosixPath
from typing import Any

import pytest
from hypothesis import given, strategies as st

from harness.data.resolve import (
    DataOptions,
    DataRef,
    HubFiles,
    LocalFiles,
    ResolvedData,
    check_relative,
    resolve,
)
from harness.errors import DataError, MissingDataError
from harness.storage.files import file_digest

_HUB = HubFiles(path="facebook/xnli", config="sw", split="test")


def _ref(*local: LocalFiles, **fields: Any) -> DataRef:
    return DataRef(**{"owner": "xnli", "language": "sw", "split": "test", "local": local, **fields})


def _put(root: Path, name: str, content: str = "x\n") -> Path:
    path = root / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content, encoding="utf-8")
    return path


def _local(*folders: Path) -> DataOptions:
    return DataOptions(mode="local", folders=folders)


def _files(*paths: str, **fields: Any) -> LocalFiles:
    return LocalFiles(paths=paths, **fields)


def test_the_first_folder_wins_then_the_first_alternative(tmp_path: Path) -> None:
    ref = _ref(_files("xnli/test-sw.tsv"), _files("old/sw.tsv"))
    one, two = tmp_path / "one", tmp_path / "two"
    wanted = _put(two, "xnli/test-sw.tsv")
    assert resolve(ref, _local(one, two)).paths == (wanted,)
    other = _put(one, "old/sw.tsv")
    assert resolve(ref, _local(one, two)).paths == (other,)
    first = _put(one, "xnli/test-sw.tsv")
    resolved = resolve(ref, _local(one, two))
    assert resolved.paths == (first,)
    assert (resolved.origin, resolved.split_used, resolved.stands_in) == ("local", "test", False)
    assert resolved.describe == f"xnli/test-sw.tsv in {one}"


def test_an_alternative_needs_all_of_its_files(tmp_path: Path) -> None:
    ref = _ref(_files("a.deu", "a.eng"), _files("b.deu", "b.eng"))
    _put(tmp_path, "a.deu")
    expected = (_put(tmp_path, "b.deu"), _put(tmp_path, "b.eng"))
    assert resolve(ref, _local(tmp_path)).paths == expected


def test_a_star_matches_files_by_name_and_nothing_else_is_special(tmp_path: Path) -> None:
    expected = tuple(_put(tmp_path, f"ud/{name}/te-test.conllu") for name in ("A", "B[1]"))
    _put(tmp_path, "ud/C/te-dev.conllu")
    (tmp_path / "ud/D/te-test.conllu").mkdir(parents=True)
    assert resolve(_ref(_files("ud/*/te-test.conllu")), _local(tmp_path)).paths == expected
    assert resolve(_ref(_files("ud/B[1]/te-*.conllu")), _local(tmp_path)).paths == expected[1:]
    with pytest.raises(MissingDataError):
        resolve(_ref(_files("ud/?/te-test.conllu")), _local(tmp_path))


def test_a_replacing_split_is_marked_and_brings_its_reading(tmp_path: Path) -> None:
    _put(tmp_path, "dev.tsv")
    files = _files("dev.tsv", split="validation", reader="tsv", columns="a,b", label_map={"0": "no"})
    resolved = resolve(_ref(files), _local(tmp_path))
    assert (resolved.split_used, resolved.stands_in) == ("validation", True)
    assert (resolved.reader, resolved.columns, resolved.label_map) == ("tsv", "a,b", {"0": "no"})


def test_missing_files_are_reported_with_every_place_and_the_next_step(tmp_path: Path) -> None:
    ref = _ref(_files("a.sw", "a.en"), _files("b.tsv"), hub=_HUB)
    with pytest.raises(MissingDataError) as caught:
        resolve(ref, _local(tmp_path / "one", tmp_path / "two"))
    folders = f"{tmp_path / 'one'}, {tmp_path / 'two'}"
    for text in ("a.sw with a.en or b.tsv", folders, "--data hub (facebook/xnli, sw, test)"):
        assert text in str(caught.value)
    with pytest.raises(MissingDataError, match="'harness tasks show xnli' has the paths"):
        resolve(_ref(), _local(tmp_path))
    training = _ref(_files("squad/train.json"), owner="squad_sentences", language="en", split="train")
    with pytest.raises(MissingDataError) as caught:
        resolve(training, _local(tmp_path))
    assert "tasks show" not in str(caught.value), "the command knows tasks alone"


@pytest.mark.parametrize(
    "path", ["/etc/passwd", "../a.tsv", "a/../../b", "a/**/b", "", ".", "a\\b", "C:/a", "a\0b"]
)
@pytest.mark.parametrize("mode", ["local", "sample"])
def test_a_path_never_leaves_the_data_folder(tmp_path: Path, mode: Any, path: str) -> None:
    _put(tmp_path, "a.tsv")
    files = _files(path)
    ref = _ref(files, sample=files, sample_root=tmp_path / "inner")
    with pytest.raises(DataError, match="must be relative to the data folder"):
        resolve(ref, DataOptions(mode=mode, folders=(tmp_path / "inner",)))


def test_the_sample_is_found_in_its_package(tmp_path: Path) -> None:
    path = _put(tmp_path, "xnli/sw.jsonl")
    sample = _files("xnli/sw.jsonl", reader="jsonl")
    ref = _ref(_files("xnli/test-sw.tsv"), sample=sample, sample_root=tmp_path)
    resolved = resolve(ref, DataOptions(mode="sample"))
    assert (resolved.paths, resolved.origin, resolved.reader) == ((path,), "sample", "jsonl")
    assert resolved.describe == "embedded sample xnli/sw.jsonl"


def test_a_sample_that_is_not_there_is_reported(tmp_path: Path) -> None:
    options = DataOptions(mode="sample")
    with pytest.raises(MissingDataError, match="No embedded sample of 'xnli' in 'sw'"):
        resolve(_ref(), options)
    with pytest.raises(MissingDataError, match=r"The embedded sample has no .*: there is no a\.jsonl"):
        resolve(_ref(sample=_files("a.jsonl"), sample_root=tmp_path), options)
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as archive:
        archive.writestr("a.jsonl", "{}")
    ref = _ref(sample=_files("a.jsonl"), sample_root=zipfile.Path(tmp_path / "a.zip"))
    with pytest.raises(MissingDataError, match="lies in an archive"):
        resolve(ref, options)


def test_the_hub_is_asked_through_the_resolver(tmp_path: Path) -> None:
    path = _put(tmp_path, "a.parquet")
    answer = ResolvedData(paths=(path,), origin="hub", split_used="test", describe="facebook/xnli")
    ref = _ref(hub=_HUB)
    asked = []

    def resolver(ref: DataRef) -> ResolvedData:
        asked.append(ref)
        return answer

    assert resolve(ref, DataOptions(), resolver) is answer
    assert asked == [ref]


def test_without_a_hub_dataset_or_a_plugin_the_next_step_is_reported() -> None:
    with pytest.raises(MissingDataError, match=r"--data DIR, where DIR holds xnli/test-sw\.tsv"):
        resolve(_ref(_files("xnli/test-sw.tsv")), DataOptions(), lambda ref: None)
    for resolver in (None, lambda ref: None):
        with pytest.raises(MissingDataError, match=r"Run: pip install 'multilingual-harness\[hf\]'"):
            resolve(_ref(hub=_HUB), DataOptions(), resolver)


def test_the_digest_is_that_of_names_and_bytes(tmp_path: Path) -> None:
    first, second = _put(tmp_path, "a.tsv", "1"), _put(tmp_path, "b.tsv", "2")

    def digest(*paths: Path) -> str:
        return ResolvedData(paths=paths, origin="local", split_used="test", describe="").digest()

    parts = [f"{path.name}\0{hashlib.sha256(path.read_bytes()).hexdigest()}\n" for path in (first, second)]
    assert digest(first, second) == hashlib.sha256("".join(parts).encode()).hexdigest()
    assert digest(first, second) != digest(second, first)
    copy = _put(tmp_path / "elsewhere", "a.tsv", "1")
    assert digest(copy) == digest(first)
    assert digest(_put(tmp_path, "c.tsv", "1")) != digest(first)
    resolved = ResolvedData(paths=(first,), origin="local", split_used="test", describe="")
    before = resolved.digest()
    resolved.check_unchanged()
    first.write_text("2", encoding="utf-8")
    os.utime(first, ns=(1, 1))
    assert resolved.digest() == before, "a run keeps the digest of its plan"
    with pytest.raises(DataError, match=re.escape(str(first))):
        resolved.check_unchanged()
    assert digest(first) != before


def test_files_that_are_read_together_may_lie_in_several_folders(tmp_path: Path) -> None:
    """A folder that has all of them wins; else each file is that of the first folder that has it."""
    ref = _ref(_files("b.deu", "b.eng"))
    one, two, three = (tmp_path / name for name in ("one", "two", "three"))
    first, second = _put(two, "b.deu"), _put(one, "b.eng")
    _put(three, "b.eng")
    found = resolve(ref, _local(one, two, three))
    assert found.paths == (first, second)
    with pytest.raises(MissingDataError):
        resolve(ref, _local(one, three))
    whole = _put(three, "b.deu")
    assert resolve(ref, _local(one, two, three)).paths == (whole, three / "b.eng")


def _digest_of(path: Path) -> str:
    return ResolvedData(paths=(path,), origin="local", split_used="test", describe="here").digest()


def test_the_digest_of_a_file_follows_its_content(tmp_path: Path) -> None:
    path = tmp_path / "a.tsv"
    path.write_bytes(b"one")
    first = _digest_of(path)
    assert _digest_of(path) == first
    status = path.stat()
    # Another file of the same name, size and time.
    (tmp_path / "new").write_bytes(b"two")
    os.utime(tmp_path / "new", ns=(status.st_atime_ns, status.st_mtime_ns))
    (tmp_path / "new").replace(path)
    second = _digest_of(path)
    assert second != first
    path.write_bytes(b"one")
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns + 1))
    assert _digest_of(path) == first
    # Through a link, which is another file from now on.
    (tmp_path / "b").mkdir()
    (tmp_path / "other").write_bytes(b"one")
    (tmp_path / "b/a.tsv").symlink_to(tmp_path / "other")
    assert _digest_of(tmp_path / "b/a.tsv") == first


@pytest.mark.parametrize("size", [0, 65_536, 65_537, 300_000])
def test_the_digest_does_not_depend_on_how_a_file_is_read(size: int, tmp_path: Path) -> None:
    import hashlib

    content = os.urandom(size)
    (tmp_path / "a").write_bytes(content)
    line = f"a\0{hashlib.sha256(content).hexdigest()}\n"
    assert _digest_of(tmp_path / "a") == hashlib.sha256(line.encode()).hexdigest()


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


@pytest.mark.parametrize("replaced", [False, True], ids=["edited", "replaced"])
def test_a_file_with_its_old_time_is_read_again(replaced: bool, tmp_path: Path) -> None:
    file, other = tmp_path / "train.tsv", tmp_path / "other.tsv"
    file.write_text("one")
    before, status = file_digest(file), file.stat()
    if replaced:
        other.write_text("two")
        shutil.copystat(file, other)
        other.replace(file)
    else:
        file.write_text("two")
    os.utime(file, ns=(status.st_atime_ns, status.st_mtime_ns))
    assert file.stat().st_mtime_ns == status.st_mtime_ns
    assert file_digest(file) != before
