"""Answers that are drawn as the model has them, with faulty items that are known."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest
from scipy.special import expit

from harness.storage.run_folder import Run
from tests.builders import write_item_run
from tests.comparison.conftest import item

CHANCE = 0.25
LABELS = ("a", "b", "c", "d")
Drawn = tuple[npt.NDArray[np.float64], npt.NDArray[np.bool_]]
"""Answers of shape (systems, languages, items), and which items are faulty, of shape (languages, items)."""


def draw_answers(
    systems: int,
    *,
    languages: int = 8,
    items: int = 150,
    faults: float = 0.0,
    seed: int = 0,
    alike: bool = False,
) -> Drawn:
    """Draw answers; systems that are `alike` give the same one nine times in ten."""
    rng = np.random.default_rng(seed)
    ability = rng.normal(2.2, 0.6, (systems, 1)) + rng.normal(0, 0.5, languages)
    own = rng.normal(0, 0.4, (systems, items))
    logits = (
        ability[:, :, None] + rng.normal(0, 1, items) + own[:, None] + rng.normal(0, 0.7, (languages, items))
    )
    faulty = rng.random((languages, items)) < faults
    chances = np.where(faulty, np.minimum(CHANCE, expit(logits)), expit(logits))
    answers = (rng.random(chances.shape) < chances).astype(float)
    if alike:
        answers = np.where(rng.random(chances.shape) < 0.9, answers[:1], answers)
    return answers, faulty


MakeRuns = Callable[..., list[Run]]


@pytest.fixture
def make_runs(tmp_path: Path) -> MakeRuns:
    """Write the runs of drawn answers: one per system; a wrong answer is another label, the same for all systems."""

    def make(drawn: Drawn, codes: tuple[str, ...], *, parallel: bool = True, cluster: int = 1) -> list[Run]:
        answers, _ = drawn
        summary = {
            "labels": list(LABELS),
            "headline": ["accuracy"],
            "parallel": parallel,
            "source": "en",
            "chance": 0.25,
        }
        task = {"kind": "sequence_classification", "metric_options": {}, "axes": [], **summary}
        runs = []
        for number, own in enumerate(answers):
            cells = []
            for language, code in enumerate(codes):
                records = []
                for at, right in enumerate(own[language]):
                    gold, other = LABELS[at % 4], LABELS[(at + 1) % 4]
                    text = f"{code} words number {at} and some more"
                    records.append(
                        item(
                            f"i{at}",
                            gold if right else other,
                            gold,
                            scores={"accuracy": float(right)},
                            cluster=f"c{at // cluster}",
                            inputs=json.dumps({"id": f"i{at}", "inputs": {"text": text}}),
                        )
                    )
                cell = {
                    "task": "topics",
                    "language": code,
                    "protocol": "prompted",
                    "method": "rank",
                    "seed": 1,
                }
                cells.append(({**cell, "view": {}}, records))
            manifest = {"model": f"m:s{number}", "tasks": {"topics": task}}
            runs.append(write_item_run(tmp_path / f"run{number}", cells, manifest, {"data": "local"}))
        return runs

    return make
