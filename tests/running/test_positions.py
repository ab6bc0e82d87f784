"""Counts of answers by position, and the remark on cells that prefer one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from harness.data.records import MultipleChoiceExample, Prediction
from harness.reporting.overview.run_remarks import run_remarks
from harness.running.cell_counts import AnswerPositions
from tests.builders import make_shown_cell, write_run

NAMES = ("a", "b", "c")


def example(number: int, names: tuple[str, ...] = NAMES) -> MultipleChoiceExample:
    return MultipleChoiceExample(
        id=str(number), context="", choices=names, label=0, names=names, cluster=None, group=None, meta={}
    )


def answer(number: int, label: str | None, **flags: Any) -> Prediction:
    return Prediction(id=str(number), output={"label": label, "scores": []}, **flags)


def test_items_of_the_commonest_size_are_counted_by_position() -> None:
    counter = AnswerPositions()
    counter.add(
        [example(1), example(2), example(3), example(4, ("a", "b")), example(5), example(6)],
        [
            *(answer(1, "a"), answer(2, "c"), answer(3, "b"), answer(4, "b")),
            *(answer(5, "a", unparsed=True), answer(6, None, unfinished=True)),
        ],
        ["a", "a", "b", "a", "a", "a"],
    )
    found = counter.to_json()
    assert found == {"answered": [1, 1, 1], "gold": [2, 1, 0], "right": [1, 1, 0], "p": None}


def test_other_kinds_have_no_positions() -> None:
    assert AnswerPositions().to_json() == {}


def test_the_remark_names_the_cells_that_differ_after_holm(tmp_path: Path) -> None:
    own = {"answered": [60, 40], "gold": [50, 50], "right": [40, 20], "p": 0.001}
    cells = [
        make_shown_cell("xcopa", code, {"accuracy": {"value": 0.5}}, positions={**own, "p": p})
        for code, p in (("et", 0.001), ("it", 0.03), ("sw", None))
    ]
    spec: dict[str, Any] = {"kind": "multiple_choice", "metrics": ["accuracy"], "headline": ["accuracy"]}
    spec |= {"languages": {code: ["Uralic", "Latn"] for code in ("et", "it", "sw")}}
    run = write_run(tmp_path / "run", cells, {"xcopa": spec})
    texts = [remark.text for remark in run_remarks(run) if "position" in remark.text]
    assert len(texts) == 1
    assert "xcopa:et" in texts[0]
    assert "xcopa:it" in texts[0]
    cells[1]["positions"] = {**own, "p": 0.06}
    [text] = [
        r.text for r in run_remarks(write_run(tmp_path / "b", cells, {"xcopa": spec})) if "position" in r.text
    ]
    assert "xcopa:it" not in text
