"""What a journal keys answers by: the files of a model where they are here, else what its server says of it."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from harness_vllm.answers import ServedModel
from harness_vllm.description import served_fingerprint

Open = Callable[..., Any]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    path = tmp_path / "model"
    path.mkdir()
    (path / "config.json").write_text("{}")
    (path / "model.safetensors").write_bytes(b"one")
    return path


def served(root: str | None, parent: str | None = None) -> ServedModel:
    return ServedModel.model_validate({"id": "tiny", "max_model_len": 64, "root": root, "parent": parent})


@pytest.mark.parametrize("adapter", ["vllm", "openai"])
def test_weights_of_a_server_on_this_machine_belong_to_the_identity(
    open_model: Open, stand_in: Any, folder: Path, adapter: str
) -> None:
    stand_in.root = str(folder)
    before = open_model(adapter, stand_in.url).identity()
    assert open_model(adapter, stand_in.url).identity() == before
    assert len(before["files"]) == 64
    assert str(folder) not in str(before), "the same weights elsewhere are the same model"
    (folder / "model.safetensors").write_bytes(b"two!")
    after = open_model(adapter, stand_in.url).identity()
    assert {name for name in after if after[name] != before[name]} == {"files"}


def test_what_is_elsewhere_is_known_by_what_the_server_says(folder: Path) -> None:
    assert served_fingerprint(served("org/name"), local=True) == {"server.root": "org/name"}
    assert served_fingerprint(served(str(folder)), local=False) == {"server.root": str(folder)}
    assert served_fingerprint(served(None), local=True) == {}
    with_parent = served_fingerprint(served(str(folder), "base"), local=True)
    assert set(with_parent) == {"files", "server.parent"}


def test_a_folder_without_files_of_a_model_counts_as_unread(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    found = served_fingerprint(served(str(tmp_path / "empty")), local=True)
    assert found == {"server.root": str(tmp_path / "empty")}
    (folder / "broken.safetensors").symlink_to(tmp_path / "nowhere")
    assert served_fingerprint(served(str(folder)), local=True) == {"server.root": str(folder)}


def test_weights_are_read_once_until_they_change(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[str] = []
    opened = Path.open

    def counted(path: Path, *args: Any, **options: Any) -> Any:
        read.append(path.name)
        return opened(path, *args, **options)

    monkeypatch.setattr(Path, "open", counted)
    first = served_fingerprint(served(str(folder)), local=True)
    assert served_fingerprint(served(str(folder)), local=True) == first
    assert sorted(read) == ["config.json", "model.safetensors"]
    os.utime(folder / "model.safetensors", ns=(1, 1))
    assert served_fingerprint(served(str(folder)), local=True) == first
    assert read[2:] == ["model.safetensors"]
