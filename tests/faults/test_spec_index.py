"""The index of parsed specs: as right as reading them anew, never in the way, and what makes it quick."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import zipfile
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
import yaml

import harness.specs.folder
from harness.specs import loading
from harness.specs.catalog import Catalog
from harness.specs.folder import INDEX_FOLDER, SpecIndex, read_folder

Harness = Callable[..., Any]
Names = Callable[[], dict[str, Any]]

TASK = "task: {name}\nkind: k\nversion: 1\nlicense: l\nlanguages: {{en: , no: }}\nscore: 1.50\nflag: true\n"


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache folder."""
    monkeypatch.setenv("HARNESS_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with three tasks."""
    made = tmp_path / "specs"
    (made / "inner").mkdir(parents=True)
    for path in ("a.yaml", "b.yml", "inner/c.yaml"):
        (made / path).write_text(TASK.format(name=Path(path).stem), encoding="utf-8")
    return made


@pytest.fixture
def names(folder: Path) -> Names:
    """Return the documents of the folder by the name of their task, read with the index."""

    def read() -> dict[str, Any]:
        catalog = Catalog([("mine", folder)], kind_models={})
        assert catalog.problems == []
        return {entry.name: entry.document.data for entry in catalog.entries}

    return read


@pytest.fixture
def parsed(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The sources that were parsed and not taken from the index."""
    sources: list[str] = []
    read = loading.read_yaml

    def noted(text: str, source: str) -> loading.Document:
        sources.append(Path(source).name)
        return read(text, source)

    monkeypatch.setattr(harness.specs.folder, "read_yaml", noted)
    return sources


def _index(cache: Path) -> Path:
    [path] = (cache / INDEX_FOLDER).iterdir()
    return path


def test_what_was_parsed_once_is_not_parsed_again(names: Names, parsed: list[str], cache: Path) -> None:
    first = names()
    assert sorted(parsed) == ["a.yaml", "b.yml", "c.yaml"]
    before = _index(cache).stat()
    assert names() == first
    assert len(parsed) == 3
    assert _index(cache).stat().st_ino == before.st_ino
    assert first["a"]["languages"] == {"en": None, "no": None}
    assert (first["a"]["score"], first["a"]["flag"]) == (1.5, True)


def test_lines_are_known_of_documents_from_the_index(folder: Path, names: Names, parsed: list[str]) -> None:
    names()
    parsed.clear()
    [entry] = [item for item in Catalog([("mine", folder)], kind_models={}).entries if item.name == "a"]
    assert parsed == []
    assert entry.document.line_of(["languages", "no"]) == 5
    assert entry.document.line_of(["flag"]) == 7
    assert entry.document.line_of(["absent"]) is None


@pytest.mark.parametrize("keeps_time", [False, True], ids=["usual", "same size and time"])
def test_an_edit_is_seen_at_once(folder: Path, names: Names, keeps_time: bool) -> None:
    names()
    path = folder / "a.yaml"
    before = path.stat()
    text = path.read_text(encoding="utf-8")
    path.write_text(text.replace("license: l", "license: m"), encoding="utf-8")
    if keeps_time:
        os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
        assert (path.stat().st_size, path.stat().st_mtime_ns) == (before.st_size, before.st_mtime_ns)
    assert names()["a"]["license"] == "m"
    path.write_text(text, encoding="utf-8")
    assert names()["a"]["license"] == "l"


def test_files_that_come_go_and_move_are_seen_at_once(folder: Path, names: Names, parsed: list[str]) -> None:
    names()
    parsed.clear()
    (folder / "d.yaml").write_text(TASK.format(name="d"), encoding="utf-8")
    (folder / "b.yml").unlink()
    (folder / "a.yaml").rename(folder / "z.yaml")
    assert set(names()) == {"a", "c", "d"}
    assert parsed == ["d.yaml"]
    sources = {entry.document.source for entry in Catalog([("mine", folder)], kind_models={}).entries}
    assert str(folder / "z.yaml") in sources


def test_what_no_package_has_any_more_leaves_the_index(folder: Path, names: Names, cache: Path) -> None:
    names()
    (folder / "b.yml").unlink()
    (folder / "a.yaml").write_text(TASK.format(name="other"), encoding="utf-8")
    names()
    kept = json.loads(_index(cache).read_bytes().partition(b"\n")[2])
    assert sorted(data["task"] for data in kept.values()) == ["c", "other"]


def test_another_reader_parses_again(
    names: Names, parsed: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    names()
    monkeypatch.setattr(yaml, "__version__", "0.0")
    names()
    assert len(parsed) == 6
    monkeypatch.setattr("harness.specs.folder._reader_digest", lambda: "another")
    names()
    assert len(parsed) == 9


@pytest.mark.parametrize(
    "damage",
    [
        lambda content: b"",
        lambda content: content[:-20],
        lambda content: content.replace(b'"l"', b'"x"'),
        lambda content: content.partition(b"\n")[2],
        lambda content: b"\x00" * len(content),
        lambda content: content + b"x",
    ],
    ids=["empty", "torn", "other content", "no header", "zeros", "longer"],
)
def test_a_damaged_index_is_ignored_and_written_anew(
    names: Names, parsed: list[str], cache: Path, damage: Callable[[bytes], bytes]
) -> None:
    right = names()
    content = _index(cache).read_bytes()
    _index(cache).write_bytes(damage(content))
    assert _index(cache).read_bytes() != content
    assert names() == right
    assert len(parsed) == 6
    assert _index(cache).read_bytes() == content


def test_an_index_that_cannot_be_read_or_written(names: Names, cache: Path, tmp_path: Path) -> None:
    right = names()
    path = _index(cache)
    path.unlink()
    path.mkdir()
    assert names() == right
    for item in cache.rglob("*"):
        assert item in (cache / INDEX_FOLDER, path)
    path.rmdir()
    (cache / INDEX_FOLDER).rmdir()
    (cache / INDEX_FOLDER).write_text("a file", encoding="utf-8")
    assert names() == right


def test_a_cache_that_is_a_file_stops_no_listing(harness: Harness, tmp_path: Path) -> None:
    (tmp_path / "cache").write_text("a file", encoding="utf-8")
    listed = harness("tasks", "list", "xnli")
    assert (listed.status, listed.err) == (0, "")


def test_faulty_documents_are_reported_every_time(folder: Path) -> None:
    (folder / "faulty.yaml").write_text("task: x\nlanguages: [\n", encoding="utf-8")
    (folder / "sortless.yaml").write_text("a: 1\n", encoding="utf-8")
    printed = [
        [str(problem) for problem in Catalog([("mine", folder)], kind_models={}).problems] for _ in range(2)
    ]
    assert printed[0] == printed[1]
    assert "faulty.yaml has 1 fault:\n  line 2: " in printed[0][0]
    assert "sortless.yaml has 1 fault:\n  line 1: expected exactly one of" in printed[0][1]


def test_specs_in_a_zip_are_indexed_too(tmp_path: Path, parsed: list[str]) -> None:
    with zipfile.ZipFile(tmp_path / "specs.zip", "w") as archive:
        archive.writestr("specs/a.yaml", TASK.format(name="a"))
    for expected in (["a.yaml"], ["a.yaml"]):
        root = zipfile.Path(tmp_path / "specs.zip", "specs/")
        [entry] = Catalog([("zipped", root)], kind_models={}).entries
        assert entry.name == "a"
        assert parsed == expected


def test_many_processes_and_threads_at_once(folder: Path, names: Names, cache: Path) -> None:
    code = (
        "import sys\nfrom pathlib import Path\nfrom harness.specs.catalog import Catalog\n"
        "for _ in range(20):\n    found = Catalog([('mine', Path(sys.argv[1]))], kind_models={})\n"
        "    assert sorted(item.name for item in found.entries) == sys.argv[2].split(), found.problems\n"
        "    for path in Path(sys.argv[3]).glob('*.json'): path.unlink(missing_ok=True)\n"
    )
    words = [sys.executable, "-c", code, str(folder), "a b c", str(cache / INDEX_FOLDER)]
    started = [subprocess.Popen(words) for _ in range(2)]
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda _: set(names()), range(40)))
    assert all(item == {"a", "b", "c"} for item in found)
    assert [process.wait() for process in started] == [0, 0]
    assert not [path for path in (cache / INDEX_FOLDER).iterdir() if path.suffix != ".json"]


def test_every_shipped_document_comes_back_as_it_was(cache: Path) -> None:
    from importlib.resources import files

    folder = files("harness_task_specs") / "xtreme_r"
    for _ in range(2):
        index = SpecIndex()
        entries, problems = read_folder("task_specs", folder, index)
        index.save()
    assert problems == []
    assert len(entries) > 5
    for entry in entries:
        assert loading.read_yaml(entry.document.text, "x").data == entry.document.data
