"""`harness doctor`: what is installed, and which versions fit."""

from __future__ import annotations

import importlib.metadata
import json
import subprocess
import sys
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from packaging.requirements import Requirement

from harness.registry.doctor import DISTRIBUTION, FEATURES
from harness.registry.plugin import declared, describe_mismatch

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


def test_a_missing_package_is_reported_with_the_command_that_installs_it(
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
    assert "search with faiss in large pools; without it numpy searches: no faiss-cpu\n" in out
    assert "-> pip install 'multilingual-harness[retrieval]'" in out
    assert _rows(cli)["feature", "retrieval"]["state"] == "missing"


@pytest.mark.parametrize(
    ("package", "version", "printed", "command"),
    [
        ("numpy", "1.25.9", "numpy  1.25.9: too old, 1.26 or newer is needed", "pip install 'numpy>=1.26'"),
        (
            "transformers",
            "6.0.1",
            "transformers  6.0.1: too new, a version below 6 is needed",
            "'transformers>=5.14,<6'",
        ),
        (
            "lm_eval",
            "0.4.5",
            "lm_eval  0.4.5: too old, 0.4.13 or newer is needed",
            "pip install 'lm_eval>=0.4.13,<0.5'",
        ),
        (
            "lm_eval",
            "0.5.0",
            "lm_eval  0.5.0: too new, a version below 0.5 is needed",
            "pip install 'lm_eval>=0.4.13,<0.5'",
        ),
    ],
)
def test_a_version_that_will_not_do_is_reported_with_the_command(
    cli: Cli, monkeypatch: pytest.MonkeyPatch, package: str, version: str, printed: str, command: str
) -> None:
    real = importlib.metadata.version
    monkeypatch.setattr(
        importlib.metadata, "version", lambda name: version if name == package else real(name)
    )
    status, out, _ = cli("doctor")
    lines = out.splitlines()
    [at] = [number for number, line in enumerate(lines) if line.startswith(f"! {package} ")]
    assert status == 0
    assert " ".join(lines[at][2:].split()) == " ".join(printed.split())
    assert command in lines[at + 1]
    assert "1 broken or too old" in lines[-1]
    assert _rows(cli)["version", package]["state"] == "outdated"


def test_what_is_too_old_is_missing_to_its_feature(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    versions = {
        "accelerate": "99",
        "datasets": "99",
        "huggingface-hub": "99",
        "psutil": "99",
        "safetensors": "99",
        "torch": "99",
    }
    versions["transformers"] = "4.57.1"
    real = importlib.metadata.version
    monkeypatch.setattr(
        importlib.metadata, "version", lambda name: versions[name] if name in versions else real(name)
    )
    row = _rows(cli)["feature", "hf"]
    assert row["state"] == "missing"
    assert row["detail"].endswith(": transformers 4.57.1 is too old")
    assert row["advice"] == "pip install 'multilingual-harness[hf]'"


def test_a_core_package_that_is_missing_is_reported(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    real = importlib.metadata.version

    def without_scipy(name: str) -> str:
        if name == "scipy":
            raise importlib.metadata.PackageNotFoundError(name)
        return real(name)

    monkeypatch.setattr(importlib.metadata, "version", without_scipy)
    row = _rows(cli)["version", "scipy"]
    assert (row["state"], row["advice"]) == ("missing", "pip install 'scipy>=1.12'")


def test_lines_are_wrapped_in_a_terminal_and_commands_are_not(
    cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "60")
    wide = cli("doctor")[1].splitlines()
    monkeypatch.setattr("harness.cli.environment._in_terminal", lambda: True)
    lines = cli("doctor")[1].splitlines()
    assert len(lines) > len(wide)
    assert [line for line in lines if len(line) > 60 and "->" not in line and len(line.split()) > 1] == []
    assert [line for line in lines if "->" in line] == [line for line in wide if "->" in line]


def test_it_is_quick_and_imports_nothing_heavy() -> None:
    code = (
        "import sys; from harness.cli.main import run_command; run_command(['doctor']); "
        "print({'torch', 'transformers', 'datasets', 'numpy', 'scipy', 'faiss'} & {*sys.modules})"
    )
    result = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60
    )
    assert result.stdout.splitlines()[-1] == "set()"


def test_broken_and_disabled_plugins_are_reported(
    cli: Cli, install_plugin: InstallPlugin, monkeypatch: pytest.MonkeyPatch
) -> None:
    install_plugin("shaky", "raise RuntimeError('no luck')\n")
    monkeypatch.setenv("HARNESS_DISABLE_PLUGINS", "checklist")
    rows = _rows(cli)
    assert "no luck" in rows["plugin", "shaky"]["detail"]
    assert "HARNESS_DISABLE_PLUGINS=shaky" in rows["plugin", "shaky"]["advice"]
    assert rows["plugin", "checklist"]["state"] == "disabled"
    assert "1 broken or too old" in cli("doctor")[1]


def test_caches_have_sizes(cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path / "hub"))
    folder = tmp_path / "cache" / "fits"
    folder.mkdir(parents=True)
    (folder / "weights").write_bytes(bytes(3 * 1024 * 1024))
    (folder / "link").symlink_to(folder / "weights")
    rows = _rows(cli)
    assert rows["cache", "cache/fits"]["detail"].startswith("3 MiB in 2 files")
    assert rows["cache", "cache/fits"]["detail"].endswith(": fine-tuned models")
    assert rows["cache", "cache/fits"]["advice"] == f"to clear it: rm -r {folder}"
    assert rows["cache", "huggingface"]["state"] == "missing"


def test_clearing_translations_is_warned_to_cost_them_again(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "cache" / "translations").mkdir(parents=True)
    assert "cost their translator's time or money" in _rows(cli)["cache", "cache/translations"]["detail"]


@pytest.mark.parametrize(
    ("script", "state", "printed"),
    [
        ("echo 'Some GPU, 80 GiB, 1.0'", "ok", "Some GPU, 80 GiB, 1.0"),
        ("exit 9", "broken", "it failed"),
    ],
)
def test_gpus_are_those_of_nvidia_smi(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, script: str, state: str, printed: str
) -> None:
    command = tmp_path / "bin" / "nvidia-smi"
    command.parent.mkdir()
    command.write_text(f"#!/bin/sh\n{script}\n", encoding="utf-8")
    command.chmod(0o755)
    monkeypatch.setenv("PATH", str(command.parent), prepend=":")
    [row] = [row for (area, name), row in _rows(cli).items() if area == "device" and name.startswith("gpu")]
    assert row["state"] == state
    assert printed in row["detail"]


PROJECT = tomllib.loads((Path(__file__).resolve().parents[2] / "pyproject.toml").read_text(encoding="utf-8"))


@pytest.mark.parametrize(
    ("text", "version", "fault"),
    [
        ("torch>=2.6", "2.6.0rc1", None),
        ("torch>=2.6", "2.6.0+cpu", None),
        ("torch>=2.6", "2.5.9", "too old, 2.6 or newer is needed"),
        ("torch>=2.6", "2.10", None),
        ("transformers>=5,<6", "6.0.1", "too new, a version below 6 is needed"),
        ("transformers", "1", None),
    ],
)
def test_an_installed_version_is_judged(text: str, version: str, fault: str | None) -> None:
    assert describe_mismatch(Requirement(text), version) == fault


def test_the_metadata_of_this_installation_are_those_of_the_project() -> None:
    found = {item.name for item in declared(DISTRIBUTION)}
    wanted = [Requirement(text).name for text in PROJECT["project"]["dependencies"]]
    assert found == set(wanted)
    assert declared("no-such-distribution") == []


def test_every_requirement_of_users_has_a_lowest_version() -> None:
    extras = PROJECT["project"]["optional-dependencies"]
    texts = [text for name, own in extras.items() if name not in {"all", "dev"} for text in own]
    for text in (*PROJECT["project"]["dependencies"], *texts):
        assert ">=" in {bound.operator for bound in Requirement(text).specifier}, (
            f"{text}: say from which version on it will do"
        )
