"""The Hub's cache is laid out by hand in a temporary folder, so nothing here needs a connection.

`huggingface_hub` reads its environment once, when it is imported. So most tests set its constants; one runs
in a process of its own, under the environment variables that a user sets.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyarrow import parquet

pytest.importorskip("datasets")

from huggingface_hub import constants

from harness.builtin import harness_register_readers
from harness.data.resolve import DataRef, HubFiles, ResolvedData
from harness.errors import DataError, MissingDataError
from harness_hub.dataset import fetch

_COMMIT = "1" * 40
_NEWER = "2" * 40
_CARD = """---
configs:
- config_name: all
  data_files:
  - split: test
    path: all/test-*
- config_name: sw
  data_files:
  - split: train
    path: sw/train-*
  - split: test
    path: sw/test-*
---
# A dataset
"""


class _Hub:
    """A folder in the layout of the Hub's cache."""

    def __init__(self, cache: Path) -> None:
        self.cache = cache

    def put(
        self, repository: str, files: dict[str, str | list[dict[str, Any]]], commit: str = _COMMIT
    ) -> Path:
        """Write text files, and records as Parquet files, and make `commit` the newest one."""
        root = self.cache / ("datasets--" + repository.replace("/", "--"))
        for name, content in files.items():
            path = root / "snapshots" / commit / name
            path.parent.mkdir(parents=True, exist_ok=True)
            if isinstance(content, str):
                path.write_text(content, encoding="utf-8")
            else:
                parquet.write_table(pa.Table.from_pylist(content), path)
        (root / "refs").mkdir(exist_ok=True)
        (root / "refs" / "main").write_text(commit, encoding="utf-8")
        return root


@pytest.fixture
def hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> _Hub:
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "hub"))
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    return _Hub(tmp_path / "hub")


def _ref(**fields: Any) -> DataRef:
    wanted: dict[str, Any] = {"path": "someone/xnli", "config": "sw", "split": "test", **fields}
    return DataRef(owner="xnli", language="sw", split="test", hub=HubFiles(**wanted))


def _rows(resolved: ResolvedData) -> list[dict[str, Any]]:
    reader = next(reader for reader in harness_register_readers() if reader.name == "parquet")
    return [dict(row.fields) for row in reader.read(resolved.paths, {})]


_TEST = [{"premise": "Habari", "label": 2}, {"premise": "Ndiyo", "label": 0}]


@pytest.mark.parametrize("name", ["validation", "train", "eval"])
def test_a_test_set_is_one_whatever_the_dataset_calls_it(hub: _Hub, tmp_path: Path, name: str) -> None:
    card = _CARD.replace("split: test", f"split: {name}")
    hub.put("someone/xnli", {"README.md": card, "all/test-00000-of-00001.parquet": _TEST})
    resolved = fetch(_ref(split=name, config="all"), tmp_path / "kept")
    assert (resolved.split_used, resolved.stands_in) == ("test", False)
    assert f", {name} at" in resolved.describe


@pytest.mark.parametrize("revision", [None, "main"])
def test_a_split_is_kept_as_parquet_with_its_commit(hub: _Hub, tmp_path: Path, revision: str | None) -> None:
    hub.put("someone/xnli", {"README.md": _CARD, "sw/test-00000-of-00001.parquet": _TEST})
    labels = {"2": "contradiction"}
    resolved = fetch(_ref(reader="parquet", label_map=labels, revision=revision), tmp_path / "kept")
    assert _rows(resolved) == _TEST
    assert (resolved.origin, resolved.split_used, resolved.stands_in) == ("hub", "test", False)
    assert (resolved.revision, resolved.pinned) == (_COMMIT, False)
    assert resolved.describe == "someone/xnli, sw, test at 111111111111 (unpinned)"
    assert (resolved.reader, resolved.label_map) == ("parquet", labels)
    assert [path.name for path in (tmp_path / "kept").rglob("*.parquet")] == [f"{_COMMIT}.parquet"]
    assert not list((tmp_path / "kept").rglob(".preparing-*"))


def test_a_pinned_commit_is_taken_and_then_sends_no_request(hub: _Hub, tmp_path: Path) -> None:
    files: dict[str, Any] = {"README.md": _CARD, "sw/test-0.parquet": _TEST}
    hub.put("someone/xnli", files)
    hub.put("someone/xnli", {**files, "sw/test-0.parquet": _TEST[:1]}, commit=_NEWER)
    pinned = _ref(revision=_COMMIT)
    resolved = fetch(pinned, tmp_path / "kept")
    assert _rows(resolved) == _TEST
    assert (resolved.revision, resolved.pinned) == (_COMMIT, True)
    assert resolved.describe == "someone/xnli, sw, test at 111111111111"
    assert _rows(fetch(_ref(), tmp_path / "kept")) == _TEST[:1]
    hub.cache.rename(hub.cache.with_name("gone"))
    assert fetch(pinned, tmp_path / "kept") == resolved


@pytest.mark.parametrize("option", ["trust_remote_code", "cache_dir", "token", "storage_options"])
def test_a_card_cannot_steer_the_loader(hub: _Hub, tmp_path: Path, option: str) -> None:
    card = _CARD.replace("config_name: sw\n", f"config_name: sw\n  {option}: true\n")
    hub.put("someone/xnli", {"README.md": card, "sw/test-0.parquet": _TEST})
    with pytest.raises(DataError, match=f"'someone/xnli'.*{option!r}"):
        fetch(_ref(), tmp_path / "kept")


def test_files_of_several_parts_are_joined_in_order(hub: _Hub, tmp_path: Path) -> None:
    parts = {f"sw/test-0000{number}-of-00002.parquet": [_TEST[number]] for number in (1, 0)}
    hub.put("someone/xnli", {"README.md": _CARD, **parts})
    assert _rows(fetch(_ref(), tmp_path / "kept")) == _TEST


@pytest.mark.parametrize("config", ["*", "all+sw"])
def test_several_configs_are_joined_with_their_names(hub: _Hub, tmp_path: Path, config: str) -> None:
    further = [{"premise": "Hello", "label": 1, "genre": "talk"}]
    hub.put("someone/xnli", {"README.md": _CARD, "sw/test-0.parquet": _TEST, "all/test-0.parquet": further})
    rows = _rows(fetch(_ref(config=config), tmp_path / "kept"))
    assert rows == [
        {"premise": "Hello", "label": 1, "genre": "talk", "config": "all"},
        *({**row, "genre": None, "config": "sw"} for row in _TEST),
    ]


def test_only_the_files_of_the_split_are_downloaded(
    hub: _Hub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import huggingface_hub

    hub.put("someone/xnli", {"README.md": _CARD, "sw/test-0.parquet": _TEST})
    asked: list[list[str]] = []
    download = huggingface_hub.snapshot_download

    def spy(repository: str, **options: Any) -> str:
        asked.append(options["allow_patterns"])
        assert options["repo_type"] == "dataset"
        return str(download(repository, **options))

    monkeypatch.setattr(huggingface_hub, "snapshot_download", spy)
    fetch(_ref(), tmp_path / "kept")
    assert asked == [["README.md", "xnli.py"], ["sw/test-*"]]


def test_json_lines_and_options_of_the_card_are_understood(hub: _Hub, tmp_path: Path) -> None:
    card = (
        "---\nconfigs:\n"
        "- config_name: default\n  data_files: [{split: test, path: ['a.jsonl', '[bc].jsonl']}]\n"
        '- config_name: tabs\n  data_dir: tables\n  sep: "\\t"\n'
        "  data_files: [{split: test, path: x.csv}]\n---\n"
    )
    lines = ["".join(json.dumps(record) + "\n" for record in part) for part in (_TEST[:1], _TEST[1:])]
    hub.put(
        "someone/xnli",
        {"README.md": card, "a.jsonl": lines[0], "b.jsonl": lines[1], "tables/x.csv": "a\tb\n1\t2,3\n"},
    )
    assert _rows(fetch(_ref(config=None), tmp_path / "kept")) == _TEST
    assert _rows(fetch(_ref(config="tabs"), tmp_path / "kept")) == [{"a": 1, "b": "2,3"}]


def test_a_card_without_configs_lets_the_loader_find_the_splits(hub: _Hub, tmp_path: Path) -> None:
    hub.put("someone/xnli", {"README.md": "# Data\n", "data/test-00000-of-00001.parquet": _TEST})
    assert _rows(fetch(_ref(config=None), tmp_path / "kept")) == _TEST
    hub.put("someone/bare", {"test.csv": "a\n1\n"})
    assert _rows(fetch(_ref(path="someone/bare", config=None), tmp_path / "kept")) == [{"a": 1}]


def test_a_script_is_rejected(hub: _Hub, tmp_path: Path) -> None:
    ran = tmp_path / "ran"
    hub.put("someone/xnli", {"README.md": "# Data\n", "xnli.py": f"open({str(ran)!r}, 'w')\n"})
    with pytest.raises(DataError, match=r"'someone/xnli' is a script \(xnli\.py\)"):
        fetch(_ref(), tmp_path / "kept")
    assert not ran.exists()


@pytest.mark.parametrize(
    ("fields", "named"),
    [
        ({"config": "swa"}, "config 'swa'.*'sw'"),
        ({"config": "sw+al"}, "config 'al'"),
        ({"config": None}, "config 'default'.*all, sw"),
        ({"split": "tset"}, "split 'tset'.*'test'"),
        ({"split": "dev"}, "split 'dev'.*test, train"),
    ],
)
def test_an_unknown_config_or_split_is_reported(
    hub: _Hub, tmp_path: Path, fields: dict[str, Any], named: str
) -> None:
    hub.put("someone/xnli", {"README.md": _CARD, "sw/test-0.parquet": _TEST})
    with pytest.raises(MissingDataError, match=named):
        fetch(_ref(**fields), tmp_path / "kept")


@pytest.mark.parametrize(
    "pattern", ["/etc/passwd", "../../x.csv", "https://example.org/x.csv", "zip://x.csv::a.zip", "~/x.csv"]
)
def test_a_card_that_points_outside_is_rejected(hub: _Hub, tmp_path: Path, pattern: str) -> None:
    card = f"---\nconfigs:\n- config_name: sw\n  data_files: [{{split: test, path: '{pattern}'}}]\n---\n"
    hub.put("someone/xnli", {"README.md": card})
    with pytest.raises(DataError, match=re.escape(repr(pattern))):
        fetch(_ref(), tmp_path / "kept")


@pytest.mark.parametrize(("revision", "shown"), [(None, "main"), (_NEWER, _NEWER), ("v1", "v1")])
def test_what_is_not_here_is_reported(hub: _Hub, tmp_path: Path, revision: str | None, shown: str) -> None:
    with pytest.raises(MissingDataError, match=f"'someone/xnli' at revision {shown!r}.*HF_HUB_OFFLINE"):
        fetch(_ref(revision=revision), tmp_path / "kept")


@pytest.mark.parametrize("files", [{}, {"sw/test-0.parquet": "not parquet"}])
def test_files_that_are_not_here_or_broken_are_reported(
    hub: _Hub, tmp_path: Path, files: dict[str, str | list[dict[str, Any]]]
) -> None:
    hub.put("someone/xnli", {"README.md": _CARD, **files})
    with pytest.raises(MissingDataError, match=rf"'test' .*'someone/xnli' .*'sw'.*{_COMMIT}.*tree/{_COMMIT}"):
        fetch(_ref(), tmp_path / "kept")
    assert not list((tmp_path / "kept").rglob("*.parquet"))
    if files:
        with pytest.raises(MissingDataError, match="could not be read"):
            fetch(_ref(files=("sw/*.parquet",)), tmp_path / "kept")


def test_names_never_become_paths(hub: _Hub, tmp_path: Path) -> None:
    card = "---\nconfigs:\n- config_name: ../../x\n  data_files: [{split: test, path: a.csv}]\n---\n"
    hub.put("someone/xnli", {"README.md": card, "a.csv": "a\n1\n"})
    (path,) = fetch(_ref(config="../../x"), tmp_path / "kept").paths
    assert path.parent.parent == tmp_path / "kept"
    with pytest.raises(MissingDataError, match="could not be downloaded"):
        fetch(_ref(path="../someone/xnli"), tmp_path / "kept")


def test_it_works_under_the_environment_of_a_user(tmp_path: Path) -> None:
    _Hub(tmp_path / "hub").put("someone/xnli", {"README.md": _CARD, "sw/test-0.parquet": _TEST})
    code = (
        "import sys, pathlib\n"
        "from harness.data.resolve import DataRef, HubFiles\n"
        "import harness_hub, harness_hub.dataset as snapshot\n"
        "assert not {'datasets', 'huggingface_hub', 'pandas', 'pyarrow'} & set(sys.modules)\n"
        "hub = HubFiles(path='someone/xnli', config='sw', split='test')\n"
        "ref = DataRef(owner='xnli', language='sw', split='test', hub=hub)\n"
        "print(snapshot.fetch(ref, pathlib.Path(sys.argv[1])).describe)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path / "kept")],
        env={**os.environ, "HF_HUB_CACHE": str(tmp_path / "hub"), "HF_HUB_OFFLINE": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout == "someone/xnli, sw, test at 111111111111 (unpinned)\n", done.stderr


def test_files_that_a_spec_names_are_returned_as_they_are(hub: _Hub, tmp_path: Path) -> None:
    """Also those of a script, which is never run, and those of a branch."""
    hub.put("someone/xnli", {"xnli.py": "raise SystemExit\n", "data/sw.json": "[]", "data/yo.json": "[1]"})
    resolved = fetch(_ref(files=("data/s*.json",), reader="json"), tmp_path / "kept")
    assert [path.name for path in resolved.paths] == ["sw.json"]
    assert (resolved.reader, resolved.revision, resolved.pinned) == ("json", _COMMIT, False)
    assert fetch(_ref(files=("data/sw.json",), revision=_COMMIT), tmp_path / "kept").pinned
    with pytest.raises(MissingDataError, match=r"has no file 'data/x\.json'"):
        fetch(_ref(files=("data/x.json",)), tmp_path / "kept")
    with pytest.raises(DataError, match=r"spec of the Hub dataset .* points outside"):
        fetch(_ref(files=("../x.json",)), tmp_path / "kept")


@pytest.mark.parametrize(
    ("form", "text"),
    [
        ("jsonl", "".join(json.dumps(row) + "\n" for row in _TEST)),
        ("csv", "premise,label\nHabari,2\nNdiyo,0\n"),
    ],
)
def test_integers_get_the_names_that_the_card_declares(
    hub: _Hub, tmp_path: Path, form: str, text: str
) -> None:
    card = (
        f"---\nconfigs:\n- {{config_name: sw, data_files: [{{split: test, path: x.{form}}}]}}\n"
        "dataset_info:\n  config_name: sw\n  features:\n  - {name: premise, dtype: string}\n"
        "  - name: label\n    dtype: {class_label: {names: {'0': 'yes', '1': maybe, '2': 'no'}}}\n---\n"
    )
    hub.put("someone/xnli", {"README.md": card, f"x.{form}": text})
    resolved = fetch(_ref(), tmp_path / "kept")
    assert _rows(resolved) == _TEST
    assert resolved.label_map == {"0": "yes", "1": "maybe", "2": "no"}
    with pytest.raises(DataError, match="contradicts the label names"):
        fetch(_ref(label_map={"0": "no", "1": "maybe", "2": "yes"}), tmp_path / "kept")


@pytest.mark.parametrize(
    "card", ["---\nconfigs: [{\n---\n", "---\nconfigs: 3\ndataset_info: 4\n---\n", "\udcff"]
)
def test_a_card_that_cannot_be_understood_is_reported(hub: _Hub, tmp_path: Path, card: str) -> None:
    root = hub.put("someone/xnli", {"sw/test-0.parquet": _TEST})
    readme = root / "snapshots" / _COMMIT / "README.md"
    readme.write_bytes(card.encode("utf-8", "surrogateescape"))
    with pytest.raises(DataError):
        fetch(_ref(), tmp_path / "kept")
