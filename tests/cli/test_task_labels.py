"""The row of labels of ``harness tasks show``."""

from __future__ import annotations

from collections.abc import Callable

import pytest

Cli = Callable[..., tuple[int, str, str]]


@pytest.mark.parametrize(
    ("task", "labels"),
    [
        ("xnli", "contradiction, entailment, neutral"),
        ("brighter", "anger, disgust, fear, joy, sadness, surprise"),  # and not their 64 sets
        ("massive_intent", "alarm_query, alarm_remove,"),
    ],
)
def test_labels_are_those_of_the_document_and_many_are_cut(cli: Cli, task: str, labels: str) -> None:
    status, out, _ = cli("tasks", "show", task)
    assert status == 0
    lines = [line.strip() for line in out.splitlines()]
    start = next(number for number, line in enumerate(lines) if line.startswith("labels"))
    end = next(number for number, line in enumerate(lines) if line.startswith("metrics"))
    shown = " ".join(lines[start:end]).removeprefix("labels").strip()
    assert shown.startswith(labels)
    assert shown.endswith("(60 in all)") == (task == "massive_intent")
    assert shown.count(",") == {"xnli": 2, "brighter": 5, "massive_intent": 19}[task]
