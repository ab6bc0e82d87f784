from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from harness.analysis.comparison import LanguageComparison, TaskComparison
from harness.analysis.significance import Difference
from harness.storage.records import ItemRecord
from harness.storage.run_folder import Run
from tests.builders import write_item_run

MakeRun = Callable[..., Run]
Cells = list[tuple[str, str, list[ItemRecord], dict[str, Any]]]
"""Task, language, records and further keys of cells."""

LABELS = {"kind": "sequence_classification", "metrics": ["accuracy"], "headline": ["accuracy"]}
SPANS = {"kind": "span_extraction", "metrics": ["f1", "exact_match"], "headline": ["f1"]}
TAGS = {"kind": "token_tagging", "metrics": ["chunk_f1"], "headline": ["chunk_f1"]}


def item(identifier: str, prediction: Any, reference: Any, **given: Any) -> ItemRecord:
    """Return a record; a text as prediction is a label."""
    output = {"label": prediction, "scores": []} if isinstance(prediction, str) else prediction
    defaults: dict[str, Any] = {
        "inputs_digest": f"d-{identifier}",
        "cluster": None,
        "group": None,
        "tags": {},
    }
    flags = {"truncated": given.pop("truncated", False), "unparsed": given.pop("unparsed", False)}
    fields = {**defaults, "scores": {}, **given}
    return ItemRecord(id=identifier, prediction=output, reference=reference, flags=flags, **fields)


def labelled(predictions: str, references: str, **given: Any) -> list[ItemRecord]:
    """Return one record per letter."""
    pairs = zip(predictions, references, strict=True)
    return [item(str(number), *pair, **given) for number, pair in enumerate(pairs)]


def difference_of(task: TaskComparison | LanguageComparison, number: int = 1) -> Difference:
    """Return the difference of a system from the first one, in the first metric."""
    difference = task.scores[0].differences[number]
    assert difference is not None
    return difference


def write_runs(make_run: MakeRun, gold: str, *codes: str, **answers: str) -> list[Run]:
    """Write a run of XNLI per system, whose answers are letters, the same in some languages."""
    return [
        make_run(name, [("xnli", code, labelled(text, gold), {}) for code in codes or ("de",)])
        for name, text in answers.items()
    ]


@pytest.fixture
def make_run(tmp_path: Path) -> MakeRun:
    """Write a run folder from cells: (task, language) -> records, or (records, further keys of the cell)."""

    def make(
        name: str,
        cells: Sequence[tuple[str, str, Sequence[ItemRecord], Mapping[str, Any]]],
        *,
        model: str | None = None,
        specs: Mapping[str, Mapping[str, Any]] | None = None,
        data: str = "local",
    ) -> Run:
        usual = {"protocol": "frozen", "method": "head", "seed": 42, "view": {}}
        tasks = {
            task: {"labels": list("abc"), "metric_options": {}, "axes": [], "parallel": False, **spec}
            for task, spec in (specs or {"xnli": LABELS}).items()
        }
        return write_item_run(
            tmp_path / name,
            [
                ({**usual, "task": task, "language": language, **further}, records)
                for task, language, records, further in cells
            ],
            {"model": model or f"m:{name}", "tasks": tasks},
            {"data": data},
        )

    return make
