"""Macro-F1 of the versions of a test set, next to their accuracy: the text of the paper calls its XNLI scores F1."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from statistics import fmean

import numpy as np

from harness import Run
from harness.metrics import MetricContext, macro_f1, macro_f1_from_counts
from harness.storage import CellResult, read_columns
from harness_translation.gap.system import Condition, GapSystem

KIND = "sequence_classification"
F1Scores = Mapping[tuple[str, Condition], float]
"""By language and version: the mean over seeds, as a fraction."""


def macro_f1_scores(system: GapSystem) -> F1Scores:
    """Return the macro-F1 of every cell of a task that classifies texts; nothing for tasks of other kinds."""
    if system.spec.kind != KIND:
        return {}
    return {
        (code, condition): fmean(_score(*by_seed[seed], system.spec.labels) for seed in system.seeds)
        for code, versions in system.cells.items()
        for condition, by_seed in versions.items()
    }


def _score(run: Run, cell: CellResult, labels: Sequence[str]) -> float:
    columns = read_columns(run.records_of(cell), ("prediction", "reference"))
    pairs = Counter(zip(columns["prediction"], columns["reference"], strict=True))
    # Few pairs of an answer and its gold label are distinct: each is parsed and scored once.
    counted = [(*map(json.loads, pair), number) for pair, number in pairs.items() if pair[1] != "null"]
    predictions, references, numbers = zip(*counted, strict=True)
    context = MetricContext(language=str(cell.language), labels=tuple(labels))
    counts = macro_f1(predictions, references, context).counts
    assert counts is not None
    return macro_f1_from_counts(np.array(numbers) @ counts)
