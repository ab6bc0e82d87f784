"""The script's pure functions and Python's aggregation agree on the same fixtures."""

from __future__ import annotations

import json
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from harness.reporting.blocks.number import uncertainty
from harness.scores.aggregation import overall
from harness_board.document import Board, Score, System
from harness_board.rendering import points, standing

HERE = Path(__file__).parent
AGGREGATION = json.loads((HERE / "aggregation.json").read_text(encoding="utf-8"))
UNCERTAINTY = json.loads((HERE / "uncertainty.json").read_text(encoding="utf-8"))
NUMBERS = json.loads((HERE / "numbers.json").read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def node() -> str:
    path = shutil.which("node")
    if path is None:
        pytest.skip("node is not installed")
    return path


@pytest.mark.parametrize("one", AGGREGATION, ids=lambda one: one["name"])
def test_overall_scores(one: dict[str, Any]) -> None:
    found = overall(one["scores"], one["tasks"], one["categories"])
    assert found.paper == (one["paper"] if one["paper"] is None else pytest.approx(one["paper"]))
    assert found.flat == (one["flat"] if one["flat"] is None else pytest.approx(one["flat"]))
    for name, value in one["means"].items():
        assert found.categories[name] == (value if value is None else pytest.approx(value))


@pytest.mark.parametrize(("value", "text"), NUMBERS)
def test_numbers(value: float, text: str) -> None:
    assert points(value) == text


@pytest.mark.parametrize(("value", "low", "high", "text"), UNCERTAINTY)
def test_intervals_are_printed_as_in_the_script(value: float, low: float, high: float, text: str) -> None:
    assert uncertainty(value / 100, (low / 100, high / 100)) == text


def test_the_tests_of_the_script(node: str) -> None:
    done = subprocess.run(
        [node, "--test", str(HERE / "compute.test.mjs")],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stdout


@pytest.fixture
def extended(published: Board) -> Board:
    """The published board with a run in languages that others added to XNLI."""
    tasks = tuple(
        replace(task, added=("ig", "gsw"), marks={"ig": "⁺", "gsw": "†⁺"}) if task.task == "xnli" else task
        for task in published.tasks
    )
    by_language = {"en": 80.0, "sw": 60.0, "ig": 40.0, "gsw": 20.0}
    score = Score(task="xnli", metric="accuracy", mean=70.0, by_language=by_language, is_whole=False)
    system = System(label="mine", origin="run", protocol="zero_shot_transfer", scores=(score,))
    described = {code: {"name": code, "family": "Niger-Congo", "script": "Latn"} for code in ("ig", "gsw")}
    return replace(
        published,
        tasks=tasks,
        systems=(*published.systems, system),
        languages={**published.languages, **described},
    )


def test_added_languages_are_shown_next_to_the_mean_of_a_task(extended: Board) -> None:
    shown = standing(extended, task="xnli")
    assert shown.heads[-2:] == ("ig⁺", "gsw†⁺")
    [row] = [row for row in shown.rows if row[0] == "mine"]
    assert (row[2], row[-2:]) == ("70.0~", ("40.0", "20.0"))
    shown = standing(extended, language="gsw")
    assert shown.heads[2:] == ("xnli†⁺",)
    assert shown.rows == (("mine", "zero shot transfer · run", "20.0", "20.0"),)
