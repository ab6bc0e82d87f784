"""The script's pure functions and Python's aggregation agree: the same fixtures, the same boards."""

from __future__ import annotations

import json
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from harness.metrics.suites import overall
from harness.reporting.markup.heatmap import levels
from harness.reporting.number import uncertainty
from harness_board.document import Board, Score, System
from harness_board.standing import Field, Z, amount, points, ranks, standing

HERE = Path(__file__).parent
COMPUTE = HERE.parents[1] / "plugins" / "harness_board" / "static" / "compute.mjs"
AGGREGATION = json.loads((HERE / "aggregation.json").read_text(encoding="utf-8"))
UNCERTAINTY = json.loads((HERE / "uncertainty.json").read_text(encoding="utf-8"))
NUMBERS = json.loads((HERE / "numbers.json").read_text(encoding="utf-8"))
SHOW = """
import { cellText, cellTitle, levels, prepare, view } from %s;
import { readFileSync } from "node:fs";
const board = prepare(JSON.parse(readFileSync(process.argv[2])));
const out = JSON.parse(process.argv[3]).map((state) => {
  const shown = view(board, state);
  const rows = shown.rows.map((r) => {
    const cells = r.cells.map((c) => [cellText(c), cellTitle(c)]);
    return [r.index, r.rank, r.range, r.group, cellText(r.total), cellTitle(r.total), ...cells];
  });
  const shades = shown.columns.map((_, place) => levels(shown.rows.map((row) => row.cells[place])));
  return { shades, columns: shown.columns.map((c) => [c.id, c.head, c.title, c.low]), facts: shown.facts, rows };
});
process.stdout.write(JSON.stringify(out));
"""


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


def _shown(board: Board, **route: str) -> dict[str, Any]:
    made = standing(board.content(), **route)
    fields = [[row.fields[place] for row in made.rows] for place in range(len(made.columns))]
    reaches = [[None if field.error is None else Z * field.error for field in own] for own in fields]
    return {
        "shades": [
            [None if level is None else pytest.approx(level) for level in levels([f.value for f in own], ends)]
            for own, ends in zip(fields, reaches, strict=True)
        ],
        "columns": [[column.id, column.head, column.title, column.low] for column in made.columns],
        "facts": list(made.facts),
        "rows": [
            [row.index, row.rank, row.range, row.group, row.total.text, row.total.description,
             *([field.text, field.description] for field in row.fields)]
            for row in made.rows
        ],
    }  # fmt: skip


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


@pytest.fixture
def partial(hostile: Board) -> Board:
    """A board of systems without an overall score, the first of which has a mean over fewer languages."""
    scores = [replace(system.scores[0], is_whole=place > 0) for place, system in enumerate(hostile.systems)]
    systems = [
        replace(system, scores=(score,)) for system, score in zip(hostile.systems, scores, strict=True)
    ]
    return replace(hostile, systems=tuple(systems))


@pytest.mark.parametrize("name", ["published", "hostile", "extended", "partial"])
def test_python_and_the_script_show_the_same_tables(
    name: str, node: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    board: Board = request.getfixturevalue(name)
    content = tmp_path / "content.json"
    content.write_text(json.dumps(board.content()), encoding="utf-8")
    program = tmp_path / "show.mjs"
    program.write_text(SHOW % json.dumps(COMPUTE.as_uri()), encoding="utf-8")
    routes: list[dict[str, str]] = [
        {},
        *({"task": task.task} for task in board.tasks),
        *({"language": code} for code in board.languages),
    ]
    done = subprocess.run(
        [node, str(program), str(content), json.dumps(routes)],
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    for route, found in zip(routes, json.loads(done.stdout), strict=True):
        assert found == _shown(board, **route), route


def test_added_languages_are_shown_next_to_the_mean_of_a_task(extended: Board) -> None:
    shown = standing(extended.content(), task="xnli")
    assert [column.head for column in shown.columns][-2:] == ["ig⁺", "gsw†⁺"]
    [row] = [row for row in shown.rows if row.label == "mine"]
    assert (row.total.text, [field.text for field in row.fields][-2:]) == ("70.0~", ["40.0", "20.0"])
    shown = standing(extended.content(), language="gsw")
    assert [column.head for column in shown.columns] == ["xnli†⁺"]
    assert [(row.label, row.total.text) for row in shown.rows] == [("mine", "20.0")]


def test_ranks_leave_incomplete_scores_out() -> None:
    totals = [
        Field(value=50.0, se=1.0), Field(value=51.0, se=1.0), Field(value=60.0, se=1.0), Field(value=None),
        Field(value=99.0, se=1.0, is_whole=False),
    ]  # fmt: skip
    found = ranks(totals)
    assert [one["rank"] for one in found] == ["3", "2", "1", "", ""]
    assert [one["group"] for one in found] == ["B", "B", "A", "", ""]
    assert [one["range"] for one in found] == ["2–3", "2–3", "1–1", "", ""]


@pytest.mark.parametrize(
    ("value", "text"), [(None, "-"), (178e6, "178M"), (13e9, "13B"), (6.3e12, "6.3T"), (999, "999")]
)
def test_amounts(value: float | None, text: str) -> None:
    assert amount(value) == text
