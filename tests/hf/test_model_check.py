"""``harness models check``: tiny random models of the architectures of well-known multilingual models."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from harness.errors import AdapterError
from harness_hf.family import AnyFamilyOptions
from harness_hf.inference.text_vectors import TextWriter
from harness_hf.model_check import WORKS, check_model

from ..conftest import Cli

HEADS = {"classification", "dual_encoder", "multiple_choice", "span_extraction", "tagging"}
CONFIGS: Mapping[str, Mapping[str, Any]] = yaml.safe_load(
    Path(__file__).with_name("model_configs.yaml").read_text(encoding="utf-8")
)


def write_config(folder: Path, config: Mapping[str, Any]) -> Path:
    folder.mkdir(exist_ok=True)
    (folder / "config.json").write_text(json.dumps(config), encoding="utf-8")
    return folder


@pytest.mark.thorough
@pytest.mark.parametrize("name", list(CONFIGS))
def test_an_architecture_has_what_its_adapter_offers(tmp_path: Path, name: str) -> None:
    results = check_model(str(write_config(tmp_path, CONFIGS[name])), AnyFamilyOptions())
    adapter = results.pop("adapter")
    heads = {what.removeprefix("fitted: ") for what in results if what.startswith("fitted: ")}
    assert adapter in {"hf-encoder", "hf-causal", "hf-seq2seq"}
    assert heads == ({"text_to_text"} if adapter == "hf-seq2seq" else HEADS)
    assert {what: result for what, result in results.items() if result != WORKS} == {}


def test_an_architecture_with_code_of_its_own_is_named(tmp_path: Path) -> None:
    config = {
        "model_type": "new",
        "architectures": ["NewModel"],
        "auto_map": {"AutoConfig": "configuration.NewConfig", "AutoModel": "modeling.NewModel"},
    }
    with pytest.raises(AdapterError, match="own repository"):
        check_model(str(write_config(tmp_path, config)), AnyFamilyOptions())


@pytest.mark.thorough
def test_what_fails_is_shown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(TextWriter, "loglikelihood", lambda *arguments: 1 / 0)
    folder = write_config(tmp_path, CONFIGS["EuroLLM, Salamandra"])
    results = check_model(str(folder), AnyFamilyOptions())
    assert "ZeroDivisionError" in results["ScoresContinuations"]
    assert results["Generates"] == WORKS


@pytest.mark.thorough
def test_the_command_prints_what_works(cli: Cli, tmp_path: Path) -> None:
    rows = tmp_path / "rows.json"
    folder = write_config(tmp_path / "umt5", CONFIGS["umT5"])
    status, _, err = cli("models", "check", f"hf:{folder}", "--json", rows)
    assert status == 0, err
    tried = {row["tried"]: row["result"] for row in json.loads(rows.read_text(encoding="utf-8"))}
    assert (tried["adapter"], tried["Generates"]) == ("hf-seq2seq", WORKS)
    assert cli("models", "show", f"hf:{folder}")[0] == 2
    assert cli("models", "check", "baseline:majority")[0] == 2
