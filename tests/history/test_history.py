"""The history of a model line: its order, its differences, and its change points."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from harness.analysis.history import Series, history_runs, read_histories
from harness.errors import UsageError
from harness.running.session import open_session
from harness.statistics import change_points, paired_difference
from harness.storage.records import ItemRecord
from harness.storage.run_folder import Run
from tests.builders import write_item_run

SPEC = {
    "kind": "sequence_classification",
    "metrics": ["accuracy"],
    "headline": ["accuracy"],
    "labels": ["a", "b"],
}
TAGS = {"kind": "token_tagging", "metrics": ["chunk_f1"], "headline": ["chunk_f1"]}
Cli = Callable[..., tuple[int, str, str]]
Cells = Sequence[tuple[str, str, Sequence[ItemRecord]]]
SEEN: dict[str, Any] = {
    "cluster": None,
    "group": None,
    "tags": {},
    "flags": {"truncated": False, "unparsed": False},
    "scores": {},
}


def answers(right: Sequence[bool], first: int = 0) -> list[ItemRecord]:
    return [
        ItemRecord(
            id=str(number),
            inputs_digest=f"d{number}",
            prediction={"label": "a" if own else "b", "scores": []},
            reference="a",
            **SEEN,
        )
        for number, own in enumerate(right, start=first)
    ]


def tagged(right: Sequence[bool]) -> list[ItemRecord]:
    return [
        ItemRecord(
            id=str(number),
            inputs_digest=f"d{number}",
            prediction=["B-PER", "O"] if own else ["O", "B-PER"],
            reference=["B-PER", "O"],
            **SEEN,
        )
        for number, own in enumerate(right)
    ]


def line(folder: Path, runs: Sequence[Cells], *, parallel: bool = False) -> list[Run]:
    """Write runs that were made one per day; the names are in the opposite order."""
    usual = {"protocol": "frozen", "method": "head", "seed": 42, "view": {}}
    tasks = {"xnli": {**SPEC, "parallel": parallel}, "wikiann": TAGS}
    return [
        write_item_run(
            folder / f"run{len(runs) - day}",
            [({**usual, "task": task, "language": code}, records) for task, code, records in cells],
            {"model": f"m:{day}", "tasks": {task: tasks[task] for task in {cell[0] for cell in cells}}},
            {"created": f"2026-01-0{day + 1}T00:00:00+00:00"},
        )
        for day, cells in enumerate(runs)
    ]


def series(runs: Sequence[Run]) -> list[Series]:
    return read_histories(runs, open_session().registry.metrics)


def drawn(random: np.random.Generator, share: float, n: int = 300) -> list[bool]:
    return [bool(own) for own in random.random(n) < share]


def test_runs_of_a_folder_are_ordered_by_when_they_were_made(tmp_path: Path) -> None:
    line(tmp_path, [[("xnli", "en", answers([True, False]))]] * 3)
    assert [run.path.name for run in history_runs([tmp_path])] == ["run3", "run2", "run1"]
    one = tmp_path / "run1"
    assert [run.path.name for run in history_runs([one, tmp_path / "run2", one])] == ["run2", "run1"]
    with pytest.raises(UsageError, match="at least two runs"):
        history_runs([one])


def test_differences_have_the_paired_interval(tmp_path: Path) -> None:
    random = np.random.default_rng(1)
    first, second = drawn(random, 0.6), drawn(random, 0.7)
    [found] = series(line(tmp_path, [[("xnli", "en", answers(first))], [("xnli", "en", answers(second))]]))
    differences = np.array(second, dtype=float) - np.array(first, dtype=float)
    paired = paired_difference(differences, np.zeros(300, dtype=np.int64), np.arange(300))
    assert [step.value for step in found.steps] == [np.mean(first), np.mean(second)]
    assert paired.high is not None and paired.low is not None
    # The signs keep no mean difference: their second moment is that about 0, which differs little here.
    assert found.half(0, 1) == pytest.approx((paired.high - paired.low) / 2, rel=0.07)
    assert found.band == found.half(0, 1)


def test_a_step_is_found_where_it_is_in_every_metric(tmp_path: Path) -> None:
    random = np.random.default_rng(2)
    shares = [0.5, 0.5, 0.5, 0.7, 0.7]
    cells: list[Cells] = [
        [("xnli", "en", answers(drawn(random, own))), ("wikiann", "en", tagged(drawn(random, own)))]
        for own in shares
    ]
    found = series(line(tmp_path, cells))
    assert [own.metric for own in found] == ["accuracy", "chunk_f1", "first metric of each"]
    for own in found:
        [change] = own.changes
        values = [step.value for step in own.steps]
        assert change.at == 3
        assert change.step == pytest.approx(np.mean(values[3:]) - np.mean(values[:3]))
        assert change.p <= 0.05
    one, two, mean = ([step.value for step in own.steps] for own in found)
    assert mean == pytest.approx([(a + b) / 2 for a, b in zip(one, two, strict=True)])


def test_equal_runs_have_no_change_and_no_noise(tmp_path: Path) -> None:
    right = drawn(np.random.default_rng(3), 0.5, 50)
    [found] = series(line(tmp_path, [[("xnli", "en", answers(right))]] * 4))
    assert found.changes == ()
    assert found.half(0, 3) == 0
    assert found.band is None


def test_translations_are_one_draw(tmp_path: Path) -> None:
    random = np.random.default_rng(4)
    cells: list[Cells] = []
    for _ in range(2):
        right = drawn(random, 0.5)
        cells.append([("xnli", "en", answers(right)), ("xnli", "de", answers(right))])
    [linked] = series(line(tmp_path / "linked", cells, parallel=True))
    [apart] = series(line(tmp_path / "apart", cells))
    one, other = linked.half(0, 1), apart.half(0, 1)
    assert one is not None and other is not None
    # The same answers in both languages: half as many draws.
    assert one / other == pytest.approx(2**0.5, rel=0.1)


def test_only_common_items_and_languages_count(tmp_path: Path) -> None:
    cells: list[Cells] = [
        [("xnli", "en", answers([True] * 10)), ("xnli", "de", answers([True] * 10))],
        [("xnli", "en", answers([True, False] * 5, first=4))],
    ]
    [found] = series(line(tmp_path, cells))
    assert found.languages == ("en",)
    assert found.items == 6
    assert [step.value for step in found.steps] == [1.0, 0.5]
    assert [step.ci for step in found.steps] == [None, None]
    assert len(found.notes) == 2


def test_constant_series_have_few_false_changes() -> None:
    random, found = np.random.default_rng(5), 0
    for _ in range(200):
        scores = random.normal(size=(400, 6))
        apart = scores - scores.mean(axis=1, keepdims=True)
        noise = random.choice([-1.0, 1.0], size=(399, 400)) @ apart
        found += bool(change_points(scores.sum(axis=0), noise))
    # 5 % of 200 are 10; more than 20 have a probability of 0.1 %.
    assert found <= 20


def test_two_changes_are_found_apart() -> None:
    noise = np.random.default_rng(6).normal(scale=0.01, size=(999, 9))
    scores = np.array([0.5, 0.5, 0.5, 0.6, 0.6, 0.6, 0.4, 0.4, 0.4])
    assert [(own.at, round(own.step, 3)) for own in change_points(scores, noise)] == [(3, 0.1), (6, -0.2)]


@pytest.mark.thorough
def test_the_command_writes_rows_and_a_figure(tmp_path: Path, cli: Cli) -> None:
    random = np.random.default_rng(7)
    line(tmp_path / "runs", [[("xnli", "en", answers(drawn(random, own)))] for own in (0.4, 0.4, 0.7)])
    command = ["compare", "--history", str(tmp_path / "runs")]
    status, _, error = cli(*command, "--json", str(tmp_path / "rows.json"))
    assert status == 0, error
    rows = json.loads((tmp_path / "rows.json").read_text())
    assert [row["is_change"] for row in rows] == [False, False, True]
    assert rows[2]["change"] == pytest.approx(rows[2]["value"] - rows[1]["value"])
    assert cli(*command, "--output", str(tmp_path / "line.svg"))[0] == 0
    assert (tmp_path / "line.svg").read_text().startswith("<svg")
    assert cli(*command, "--strict")[0] == 2
