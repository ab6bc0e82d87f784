"""``harness doctor`` tells what is there, what is broken and what is missing for what; it always exits 0."""

from __future__ import annotations

import importlib.metadata
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from harness.doctor import DISTRIBUTION, FEATURES

Cli = Callable[..., tuple[int, str, str]]
InstallPlugin = Callable[..., Path]


def _rows(cli: Cli, *arguments: str) -> dict[tuple[str, str], dict[str, Any]]:
    status, _, err = cli("doctor", "--json", "rows.json", *arguments)
    assert (status, err) == (0, "")
    rows = json.loads(Path("rows.json").read_text(encoding="utf-8"))
    return {(row["area"], row["name"]): row for row in rows}


def test_versions_are_those_of_the_installed_packages(cli: Cli) -> None:
    rows = _rows(cli)
    for name in ("numpy", "pydantic", DISTRIBUTION):
        assert rows["version", name]["detail"] == importlib.metadata.version(name)
    assert rows["version", "python"]["detail"] == ".".join(map(str, sys.version_info[:3]))


def test_every_extra_has_a_purpose_and_every_purpose_an_extra() -> None:
    declared = set(importlib.metadata.metadata(DISTRIBUTION).get_all("Provides-Extra") or ())
    assert set(FEATURES) == declared - {"all", "dev"}


def test_a_missing_package_is_told_with_the_command_that_installs_it(
    cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    version = importlib.metadata.version

    def without_faiss(name: str) -> str:
        if name == "faiss-cpu":
            raise importlib.metadata.PackageNotFoundError(name)
        return version(name)

    monkeypatch.setattr(importlib.metadata, "version", without_faiss)
    status, out, _ = cli("doctor")
    assert status == 0
    assert "search with faiss in large pools: no faiss-cpu" in out
    assert "-> pip install 'multilingual-harness[retrieval]'" in out
    assert _rows(cli)["feature", "retrieval"]["state"] == "missing"


def test_broken_and_disabled_plugins_are_told(
    cli: Cli, install_plugin: InstallPlugin, monkeypatch: pytest.MonkeyPatch
) -> None:
    install_plugin("shaky", "raise RuntimeError('no luck')\n")
    monkeypatch.setenv("HARNESS_DISABLE_PLUGINS", "checklist")
    rows = _rows(cli)
    assert "no luck" in rows["plugin", "shaky"]["detail"]
    assert "HARNESS_DISABLE_PLUGINS=shaky" in rows["plugin", "shaky"]["advice"]
    assert rows["plugin", "checklist"]["state"] == "disabled"
    assert "1 broken" in cli("doctor")[1]


def test_caches_have_sizes(cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path / "hub"))
    folder = tmp_path / "cache" / "fits"
    folder.mkdir(parents=True)
    (folder / "weights").write_bytes(bytes(3 * 1024 * 1024))
    (folder / "link").symlink_to(folder / "weights")
    rows = _rows(cli)
    assert rows["cache", "cache/fits"]["detail"].startswith("3 MiB in 2 files")
    assert rows["cache", "huggingface"]["state"] == "missing"


@pytest.mark.parametrize(
    ("script", "state", "told"),
    [
        ("echo 'Some GPU, 80 GiB, 1.0'", "ok", "Some GPU, 80 GiB, 1.0"),
        ("exit 9", "broken", "it failed"),
    ],
)
def test_gpus_are_those_of_nvidia_smi(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, script: str, state: str, told: str
) -> None:
    command = tmp_path / "bin" / "nvidia-smi"
    command.parent.mkdir()
    command.write_text(f"#!/bin/sh\n{script}\n", encoding="utf-8")
    command.chmod(0o755)
    monkeypatch.setenv("PATH", str(command.parent), prepend=":")
    [row] = [row for (area, name), row in _rows(cli).items() if area == "device" and name.startswith("gpu")]
    assert row["state"] == state
    assert told in row["detail"]
