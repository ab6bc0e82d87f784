from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from harness.errors import UnknownNameError, UsageError
from harness.planning.run_config import RunConfig, settings
from harness.planning.unused_options import RULES

FULL: dict[str, Any] = {
    "tasks": "xnli,udpos",
    "model": "baseline:char-ngram",
    "options": ["ngrams=3"],
    "languages": ["de,sw"],
    "tasks_from": "specs",
    "data": "sample",
    "limit": 3,
    "seeds": "2,1,2",
    "romanised": "skip",
    "shots_from": "validation",
    "chat": True,
    "gold": "gold.json",
    "reuse": ["a", "b"],
}


def test_values_of_a_command_line_become_those_of_the_fields() -> None:
    config = RunConfig.read(FULL)
    assert (config.tasks, config.languages) == (("xnli", "udpos"), ("de", "sw"))
    assert (config.options, config.seeds, config.limit) == ({"ngrams": "3"}, (2, 1), 3)
    assert (config.tasks_from, config.reuse) == ((Path("specs"),), (Path("a"), Path("b")))
    assert (config.data.mode, config.gold, config.chat) == ("sample", Path("gold.json"), True)


def test_a_manifest_gives_the_configuration_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    written = json.loads(json.dumps(RunConfig.read({**FULL, "output": "run"}).to_json()))
    assert (written["gold"], written["output"]) == (str(tmp_path / "gold.json"), "run")
    again = RunConfig.read(written)
    assert again.to_json() == written
    assert (again.seeds, again.options, again.data.mode) == ((2, 1), {"ngrams": "3"}, "sample")


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("limit", "three"),
        ("limit", True),
        ("seeds", "a"),
        ("seeds", [1.5]),
        ("tasks", {"xnli": 1}),
        ("languages", ["de", 1]),
        ("chat", "no"),
        ("options", [1]),
        ("data", 5),
        ("shots_from", "test"),
        ("output", 5),
    ],
)
def test_values_of_other_types_are_reported(name: str, value: Any) -> None:
    with pytest.raises(ValueError, match=r"^expected "):
        settings()[name].read(value)
    with pytest.raises(UsageError, match=f"'{name}'"):
        RunConfig.read({"tasks": "xnli", "model": "m", name: value})


@pytest.mark.parametrize(("name", "value"), [("limit", 0), ("shots", -1), ("seeds", (1, -1))])
def test_numbers_below_the_minimum_are_reported(name: str, value: Any) -> None:
    with pytest.raises(UsageError, match=f"^--{name} must be at least "):
        RunConfig(tasks=("xnli",), model="m", **{name: value})


def test_an_unknown_setting_is_reported_with_near_names() -> None:
    with pytest.raises(UnknownNameError) as caught:
        RunConfig.read({"tasks": "xnli", "model": "m", "limits": 3}, "evaluate")
    assert caught.value.near == ["limit"]


def test_every_setting_has_an_option_of_its_own() -> None:
    options = [setting.long for setting in settings().values()]
    assert len(set(options)) == len(options)
    assert all(setting.help and setting.panel for setting in settings().values())
    assert {setting.affects for setting in settings().values() if setting.affects} == set(RULES)
