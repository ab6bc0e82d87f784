from __future__ import annotations

import json
import os
import threading
from pathlib import Path

import pytest

from harness.errors import DataError, UsageError
from harness.storage.files import write_atomically
from harness.storage.results import RunResults
from harness.storage.run_folder import Run

from .conftest import RunTasks


def test_a_file_is_replaced_as_a_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "results.json"
    write_atomically(path, "old")

    def fail(*_: object) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", fail)
        with pytest.raises(OSError, match="No space left"):
            write_atomically(path, "new content")
    assert path.read_text(encoding="utf-8") == "old"
    assert [item.name for item in tmp_path.iterdir()] == ["results.json"]
    write_atomically(path, b"new")
    assert path.read_bytes() == b"new"
    assert path.stat().st_mode & 0o777 == 0o644


def test_a_reader_never_sees_a_part(tmp_path: Path) -> None:
    path = tmp_path / "results.json"
    contents = {letter * 200_000 for letter in "abc"}
    write_atomically(path, "a" * 200_000)
    stop = threading.Event()

    def write() -> None:
        while not stop.is_set():
            for content in contents:
                write_atomically(path, content)

    writer = threading.Thread(target=write)
    writer.start()
    try:
        for _ in range(200):
            assert path.read_text(encoding="utf-8") in contents
    finally:
        stop.set()
        writer.join()


@pytest.mark.parametrize("name", ["..", "a/b", "/etc", "", ".hidden", "a b", "a\n"])
def test_names_from_outside_never_become_paths_unchecked(tmp_path: Path, name: str) -> None:
    for names in ((name, "de", "0" * 12), ("xnli", name, "0" * 12), ("xnli", "de", name)):
        with pytest.raises(UsageError, match="cannot be used in a file name"):
            Run.at(tmp_path).records_path(*names)


def test_nan_is_never_written(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="not JSON compliant"):
        Run.at(tmp_path).write_results(RunResults.model_validate({"cells": [], "further": float("nan")}))
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_is_no_run_is_reported(run: RunTasks, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"The run folder '.*absent' does not exist"):
        Run(tmp_path / "absent")
    (tmp_path / "empty").mkdir()
    with pytest.raises(UsageError, match=r"is no run: it has no manifest\.json\. A run folder is what"):
        Run(tmp_path / "empty")
    finished = run("xnli:de", "baseline:majority")
    path = finished.path / "results.json"
    good = path.read_text(encoding="utf-8")
    path.write_text(good[:100], encoding="utf-8")
    with pytest.raises(DataError, match=r"results\.json cannot be read"):
        Run(finished.path)
    path.write_text("[]", encoding="utf-8")
    with pytest.raises(DataError, match="expected a JSON object"):
        Run(finished.path)
    path.write_text(json.dumps({**json.loads(good), "schema": 2}), encoding="utf-8")
    with pytest.raises(DataError, match="expected schema 1, found 2; it was written by another version"):
        Run(finished.path)
