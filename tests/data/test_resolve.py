from __future__ import annotations

import hashlib
import os
import re
import zipfile
from pathlib import Path
from typing import Any

import pytest

from harness.data.resolve import DataOptions, DataRef, HubFiles, LocalFiles, ResolvedData, resolve
from harness.errors import DataError, MissingDataError

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
    assert str(caught.value) == (
        "No data of 'xnli' in 'sw' (test): looked for a.sw with a.en or b.tsv in "
        f"{tmp_path / 'one'}, {tmp_path / 'two'}. "
        "Put it there, or run with --data hub (facebook/xnli, sw, test)."
    )
    with pytest.raises(MissingDataError) as caught:
        resolve(_ref(), _local(tmp_path))
    assert str(caught.value).startswith("No local file is known for 'xnli' in 'sw' (test). Put it there")
    assert "('harness tasks show xnli' has the paths)" in str(caught.value)


def test_missing_training_data_name_no_command_that_knows_tasks_alone(tmp_path: Path) -> None:
    ref = _ref(_files("squad/train.json"), owner="squad_sentences", language="en", split="train")
    with pytest.raises(MissingDataError) as caught:
        resolve(ref, _local(tmp_path))
    assert str(caught.value).endswith("Put it there, or give the folder that has it with --data.")


@pytest.mark.parametrize(
    "path", ["/etc/passwd", "../a.tsv", "a/../../b", "a/**/b", "", ".", "a\\b", "C:/a", "a\0b"]
)
@pytest.mark.parametrize("mode", ["local", "sample"])
def test_a_path_never_leaves_the_data_folder(tmp_path: Path, mode: Any, path: str) -> None:
    _put(tmp_path, "a.tsv")
    files = _files(path)
    ref = _ref(files, sample=files, sample_root=tmp_path / "inner")
    with pytest.raises(DataError) as caught:
        resolve(ref, DataOptions(mode=mode, folders=(tmp_path / "inner",)))
    assert str(caught.value) == (
        f"The data path {path!r} must be relative to the data folder, without '..', '**', ':' or '\\'. "
        "Correct the path in the task's spec."
    )


def test_the_sample_is_found_in_its_package(tmp_path: Path) -> None:
    path = _put(tmp_path, "xnli/sw.jsonl")
    sample = _files("xnli/sw.jsonl", reader="jsonl")
    ref = _ref(_files("xnli/test-sw.tsv"), sample=sample, sample_root=tmp_path)
    resolved = resolve(ref, DataOptions(mode="sample"))
    assert (resolved.paths, resolved.origin, resolved.reader) == ((path,), "sample", "jsonl")
    assert resolved.describe == "embedded sample xnli/sw.jsonl"


def test_a_sample_that_is_not_there_is_reported(tmp_path: Path) -> None:
    options = DataOptions(mode="sample")
    with pytest.raises(MissingDataError) as caught:
        resolve(_ref(), options)
    assert str(caught.value) == (
        "No embedded sample of 'xnli' in 'sw' (test) exists. Run with --data hub or --data DIR."
    )
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
    with pytest.raises(MissingDataError) as caught:
        resolve(_ref(_files("xnli/test-sw.tsv")), DataOptions(), lambda ref: None)
    assert str(caught.value) == (
        "No Hub dataset is known for 'xnli' in 'sw' (test). "
        "Run with --data DIR, where DIR holds xnli/test-sw.tsv."
    )
    for resolver in (None, lambda ref: None):
        with pytest.raises(MissingDataError) as caught:
            resolve(_ref(hub=_HUB), DataOptions(), resolver)
        assert str(caught.value) == (
            "No installed plugin reads the Hub dataset facebook/xnli, sw, test for 'xnli' in 'sw' (test). "
            "Run: pip install 'multilingual-harness[hf]', or use --data DIR."
        )


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


def test_a_changed_file_has_another_digest(tmp_path: Path) -> None:
    path = _put(tmp_path, "a.tsv", "1")
    resolved = ResolvedData(paths=(path,), origin="local", split_used="test", describe="")
    before = resolved.digest()
    resolved.check_unchanged()
    path.write_text("2", encoding="utf-8")
    os.utime(path, ns=(1, 1))
    assert resolved.digest() == before, "a run keeps the digest of its plan"
    with pytest.raises(DataError, match=re.escape(str(path))):
        resolved.check_unchanged()
    found_again = ResolvedData(paths=(path,), origin="local", split_used="test", describe="")
    assert found_again.digest() != before


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
