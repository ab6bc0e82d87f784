"""A run for the Hub: ``model-index`` in the metadata of a model card, and files of ``.eval_results/``.

Formats: ``modelcard.md`` and ``eval_results.yaml`` of github.com/huggingface/hub-docs. Both are plain YAML, so that
nothing of huggingface_hub is needed. ``model-index`` holds fractions, ``.eval_results`` scores x100, as the Hub's
own examples do.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

import yaml

from harness import Run
from harness_export.score import HubData, Score, clean_model_name, distinct_names, scores

__all__ = ["eval_results", "model_index"]

PIPELINES = {
    "sequence_classification": "text-classification",
    "token_tagging": "token-classification",
    "span_extraction": "question-answering",
    "multiple_choice": "multiple-choice",
    "numeric_answer": "text-generation",
    "summary": "summarization",
    "translation": "translation",
    "bitext_retrieval": "sentence-similarity",
    "ranked_retrieval": "sentence-similarity",
}
"""Kinds of the core by the Hub's names of tasks; others are ``other``."""
_UNSAFE = re.compile(r"[^A-Za-z0-9_.-]+")


def model_index(runs: Sequence[Run]) -> Mapping[str, str]:
    """Return the metadata of a model card: one result per cell, all its metrics in it.

    Tools join results of one data set, config, split and revision, so that the config says what else differs.
    """
    run = runs[0]
    found = list(scores(run))
    cells: dict[str, tuple[str, list[Score]]] = {}
    for score, name in zip(found, distinct_names(found), strict=True):
        cells.setdefault(score.cell.digest, (name, []))[1].append(score)
    if not found:
        return {}
    model = clean_model_name(run)
    results = [_result(run, own, name) for name, own in cells.values()]
    return {
        f"{_UNSAFE.sub('-', model)}.yaml": _dumped({"model-index": [{"name": model, "results": results}]})
    }


def _dumped(document: Any) -> str:
    return yaml.safe_dump(document, sort_keys=False, allow_unicode=True, width=120)


def _result(run: Run, own: Sequence[Score], name: str) -> dict[str, Any]:
    first = own[0]
    cell, hub = first.cell, first.hub
    kind = run.manifest.tasks[cell.task].kind
    named = hub if first.from_hub else None
    config = cell.language if named is None else named.config or cell.language
    dataset = {
        "name": f"{cell.task} ({cell.language})",
        "type": cell.task if named is None else named.path,
        "config": f"{config} ({name})" if name else config,
        "split": cell.split,
        "revision": None if named is None else named.revision,
        "args": first.details(),
    }
    return {
        "task": {"type": PIPELINES.get(kind, "other"), "name": cell.task},
        "dataset": {name: value for name, value in dataset.items() if value is not None},
        "metrics": [_metric(score) for score in own],
    }


def _metric(score: Score) -> dict[str, Any]:
    value = score.value
    interval = None if value.ci is None else {"ci_low": value.ci[0], "ci_high": value.ci[1], "ci_level": 0.95}
    known: dict[str, Any] = {
        "n": score.cell.n,
        "standard_error": value.se,
        **(interval or {}),
        "ci_method": value.ci_method,
        "scale": "fraction",
    }
    return {
        "type": score.metric,
        "value": value.value,
        "name": score.metric,
        "args": {name: each for name, each in known.items() if each is not None},
    }


def eval_results(runs: Sequence[Run]) -> Mapping[str, str]:
    """Return the files of ``.eval_results/``: the headline metrics of cells whose task has a data set on the Hub.

    One file holds one task under one protocol, seed and view, since the Hub takes several scores of one data set from
    several files only.
    """
    groups: dict[str, list[dict[str, Any]]] = {}
    headline = [score for score in scores(runs[0]) if score.headline]
    for score, name in zip(headline, distinct_names(headline), strict=True):
        hub = score.hub
        if hub is None:
            continue
        metrics = {other.metric for other in headline if other.cell.digest == score.cell.digest}
        parts = [score.cell.task, score.metric if len(metrics) > 1 else "", name]
        file = f".eval_results/{_UNSAFE.sub('-', '_'.join(filter(None, parts)))}.yaml"
        groups.setdefault(file, []).append(_entry(score, hub))
    return {file: _dumped(entries) for file, entries in groups.items()}


def _entry(score: Score, hub: HubData) -> dict[str, Any]:
    dataset = {"id": hub.path, "task_id": hub.config or score.cell.language, "revision": hub.revision}
    date = score.run.manifest.created
    return {
        "dataset": {name: value for name, value in dataset.items() if value is not None},
        "value": round(100 * score.value.value, 4),
        **({"date": date} if date else {}),
        "notes": score.sentence(),
    }
