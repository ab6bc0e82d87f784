"""A run for the Hub: ``model-index`` in the metadata of a model card, and files of ``.eval_results/``.

Formats: ``modelcard.md`` and ``eval_results.yaml`` of github.com/huggingface/hub-docs. Both are plain YAML, so that
nothing of huggingface_hub is needed. ``model-index`` holds fractions, ``.eval_results`` scores x100, as the Hub's
own examples do.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import yaml

from harness import Run
from harness_export.score import Score, clean_model_name, distinct_names, safe_name, scores, without_none

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


def model_index(runs: Sequence[Run]) -> Mapping[str, str]:
    """Return the metadata of a model card: one result per cell, all its metrics in it.

    Tools join results of one data set, config, split and revision, so that the config says what else differs.
    """
    run = runs[0]
    run_scores = list(scores(run))
    cells: dict[str, tuple[str, list[Score]]] = {}
    for score, name in zip(run_scores, distinct_names(run_scores), strict=True):
        cells.setdefault(score.cell.digest, (name, []))[1].append(score)
    if not run_scores:
        return {}
    model = clean_model_name(run)
    results = [_result(run, cell_scores, name) for name, cell_scores in cells.values()]
    return {f"{safe_name(model)}.yaml": _dumped({"model-index": [{"name": model, "results": results}]})}


def _dumped(document: Any) -> str:
    return yaml.safe_dump(without_none(document), sort_keys=False, allow_unicode=True, width=120)


def _result(run: Run, own: Sequence[Score], name: str) -> dict[str, Any]:
    first, cell = own[0], own[0].cell
    hub = first.hub if first.from_hub else None
    config = (hub and hub.config) or cell.language
    dataset = {
        "name": f"{cell.task} ({cell.language})",
        "type": hub.path if hub else cell.task,
        "config": f"{config} ({name})" if name else config,
        "split": cell.split,
        "revision": hub and hub.revision,
        "args": first.details(),
    }
    kind = PIPELINES.get(run.manifest.tasks[cell.task].kind, "other")
    return {
        "task": {"type": kind, "name": cell.task},
        "dataset": dataset,
        "metrics": [_metric(score) for score in own],
    }


def _metric(score: Score) -> dict[str, Any]:
    value = score.value
    low, high = value.ci or (None, None)
    details = {
        "n": score.cell.n,
        "standard_error": value.se,
        "ci_low": low,
        "ci_high": high,
        "ci_level": value.ci and 0.95,
        "ci_method": value.ci_method,
        "scale": "fraction",
    }
    return {"type": score.metric, "value": value.value, "name": score.metric, "args": details}


def eval_results(runs: Sequence[Run]) -> Mapping[str, str]:
    """Return the files of ``.eval_results/``: the headline metrics of cells whose task has a data set on the Hub.

    One file holds one task under one protocol, seed and view, since the Hub takes several scores of one data set from
    several files only.
    """
    groups: dict[str, list[dict[str, Any]]] = {}
    headline = [score for score in scores(runs[0]) if score.headline]
    for score, name in zip(headline, distinct_names(headline), strict=True):
        if (hub := score.hub) is not None:
            metrics = {other.metric for other in headline if other.cell.digest == score.cell.digest}
            parts = [score.cell.task, score.metric if len(metrics) > 1 else "", name]
            file = f".eval_results/{safe_name('_'.join(filter(None, parts)))}.yaml"
            task = hub.config or score.cell.language
            entry = {
                "dataset": {"id": hub.path, "task_id": task, "revision": hub.revision},
                "value": round(100 * score.value.value, 4),
                "date": score.run.manifest.created or None,
                "notes": score.sentence(),
            }
            groups.setdefault(file, []).append(entry)
    return {file: _dumped(entries) for file, entries in groups.items()}
