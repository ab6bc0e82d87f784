"""Systems side by side by family of languages; published means are over the run's languages."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from harness.reporting.blocks.chart import TaskChart
from harness.reporting.overview.figures import system_figures
from tests.builders import make_shown_cell, write_run

LANGUAGES = {"en": ["x", "Latn"], "de": ["x", "Latn"], "sw": ["x", "Latn"]}


def _published(label: str, scores: dict[str, float]) -> dict[str, Any]:
    languages = {"xnli": {"accuracy": scores}}
    return {"suite": "s", "label": label, "protocol": "zero_shot_transfer", "languages": languages}


def test_means_by_family(tmp_path: Path) -> None:
    spec = {
        "kind": "k",
        "metrics": ["accuracy"],
        "headline": ["accuracy"],
        "source": "en",
        "languages": LANGUAGES,
    }
    cells = [
        make_shown_cell("xnli", code, {"accuracy": {"value": value, "ci": None}}, n=10)
        for code, value in (("en", 0.9), ("de", 0.7), ("sw", 0.5))
    ]
    published = [
        _published("whole", {"en": 80.0, "de": 60.0, "fr": 10.0, "sw": 40.0}),
        _published("part", {"en": 80.0, "sw": 30.0}),
    ]
    run = write_run(tmp_path / "run", cells, {"xnli": spec}, manifest={"published": published})
    [chart] = system_figures([run])["families"].charts
    assert isinstance(chart, TaskChart)
    found = {
        (mark.kind, mark.label, row.label): round(mark.value, 1) for row in chart.rows for mark in row.marks
    }
    # 'part' has no score in German, so that its Indo-European mean would be another one.
    assert {key: score for key, score in found.items() if key[0] == "published"} == {
        ("published", "whole", "Indo-European (2)"): 70.0,
        ("published", "whole", "Niger-Congo (1)"): 40.0,
        ("published", "part", "Niger-Congo (1)"): 30.0,
    }
    assert sorted(score for key, score in found.items() if key[0] == "run") == [50.0, 80.0]
