from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from harness.data.features import Items
from harness.languages.table import known_languages
from harness.storage.records import ItemRecord
from harness.storage.run_folder import Run
from tests.builders import write_item_run

MakeRun = Callable[..., Run]
SPECS: dict[str, dict[str, Any]] = {
    "xnli": {
        "kind": "sequence_classification",
        "labels": ["contradiction", "entailment", "neutral"],
        "headline": ["accuracy"],
        "inputs": ["premise", "hypothesis"],
        "parallel": True,
    },
    "xquad": {"kind": "span_extraction", "headline": ["f1", "exact_match"], "parallel": True},
    "wikiann": {
        "kind": "token_tagging",
        "labels": ["O", "B-PER", "I-PER", "B-LOC", "I-LOC"],
        "headline": ["chunk_f1"],
    },
    "udpos": {"kind": "token_tagging", "labels": ["NOUN", "VERB", "ADJ"], "headline": ["chunk_f1"]},
}


def record(
    identifier: str, fields: Mapping[str, Any], prediction: Any, gold: Any, **given: Any
) -> ItemRecord:
    """Return a record of what was asked, answered and right."""
    inputs = json.dumps({"id": identifier, **fields}, ensure_ascii=False, sort_keys=True)
    defaults: dict[str, Any] = {
        "inputs_digest": inputs,
        "cluster": None,
        "group": None,
        "tags": {},
        "flags": {},
    }
    return ItemRecord(
        id=identifier,
        inputs=inputs,
        prediction=prediction,
        reference=gold,
        **{**defaults, "scores": {}, **given},
    )


def pair(identifier: str, premise: str, hypothesis: str, label: str, gold: str, **given: Any) -> ItemRecord:
    """Return a record of XNLI."""
    output = given.pop("output", {"label": label})
    fields = {"inputs": {"premise": premise, "hypothesis": hypothesis}}
    return record(identifier, fields, output, gold, scores={"accuracy": float(label == gold)}, **given)


def question(identifier: str, words: int, score: float, **given: Any) -> ItemRecord:
    """Return a record of XQuAD whose question has so many words."""
    fields = {"context": "the answer is here .", "question": " ".join(["what"] * words)}
    scores = {"f1": score, "exact_match": float(score == 1)}
    return record(identifier, fields, {"text": "here"}, ["here"], scores=scores, **given)


def sentence(identifier: str, tokens: str, predicted: str, gold: str, **given: Any) -> ItemRecord:
    """Return a record of a tagging task; tags and tokens are separated by spaces."""
    from harness.metrics.chunk import chunk_f1
    from harness.metrics.metric import MetricContext

    counts = chunk_f1([predicted.split()], [gold.split()], MetricContext(language="en")).counts
    assert counts is not None
    scores = {"chunk_f1": counts[0].tolist()}
    fields = {"tokens": tokens.split(), "text": None}
    return record(identifier, fields, predicted.split(), gold.split(), scores=scores, **given)


def write_run(
    path: Path,
    cells: Mapping[tuple[str, str], Sequence[ItemRecord]],
    *,
    cell: Mapping[str, Any] | None = None,
    run: Mapping[str, Any] | None = None,
    model: str | None = None,
) -> Run:
    """Write a run folder from (task, language) -> records; `cell` and `run` are further keys of theirs."""
    usual = {"version": 1, "protocol": "frozen", "method": "head", "seed": 42, "view": {}}
    names = {task for task, _ in cells}
    defaults = {"labels": [], "metric_options": {}, "axes": [], "parallel": False}
    tasks = {task: {**defaults, **SPECS[task]} for task in names}
    specs = {task: {"inputs": SPECS[task].get("inputs", [])} for task in names}
    return write_item_run(
        path,
        [
            ({**usual, "task": task, "language": language, **(cell or {})}, records)
            for (task, language), records in cells.items()
        ],
        {"model": model or f"m:{path.name}", "tasks": tasks, "specs": specs},
        {"id": path.name, **(run or {})},
    )


@pytest.fixture
def make_run(tmp_path: Path) -> MakeRun:
    """Write runs by name: see `write_run`."""

    def make(name: str, cells: Mapping[tuple[str, str], Sequence[ItemRecord]], **given: Any) -> Run:
        return write_run(tmp_path / name, cells, **given)

    return make


def items_of(task: str, language: str, records: Sequence[ItemRecord]) -> Items:
    """Return records as columns."""
    spec = SPECS[task]
    return Items(
        task=task,
        kind=spec["kind"],
        language=known_languages().get(language),
        labels=tuple(spec.get("labels", ())),
        input_names=tuple(spec.get("inputs", ())),
        ids=[own.id for own in records],
        digests=[own.inputs_digest for own in records],
        fields=[own.fields for own in records],
        predictions=[own.prediction for own in records],
        references=[own.reference for own in records],
        clusters=[own.cluster for own in records],
        tags=[own.tags for own in records],
        scores=[own.scores for own in records],
    )
