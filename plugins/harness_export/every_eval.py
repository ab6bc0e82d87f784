"""A run as a record of Every Eval Ever, schema 0.3.0 (github.com/evaleval/every_eval_ever, ``eval.schema.json``).

The schema has no field for a language: `harness_export.score.language_details` says how ``additional_details`` names
it. All values of ``additional_details`` are texts, and scores are proportions.
"""

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence
from typing import Any

from harness import Run
from harness_export.score import (
    Score,
    clean_model_name,
    created,
    language_details,
    scores,
    texts,
    without_none,
)

SCHEMA_VERSION = "0.3.0"
SPLITS = {"train": "train", "validation": "val", "test": "test"}
SELF_DEPLOYED = ("hf-", "baseline")
"""Adapters whose model runs in the same process."""


def files(runs: Sequence[Run]) -> Mapping[str, str]:
    """Return the record of the first run."""
    run = runs[0]
    results = [_result(score) for score in scores(run)]
    if not results:
        return {}
    name = clean_model_name(run)
    moment = created(run)
    stamp = None if moment is None else str(int(moment))
    record = {
        "schema_version": SCHEMA_VERSION,
        "evaluation_id": f"harness/{name.replace('/', '_')}/{stamp or run.results.run.id}",
        "evaluation_timestamp": stamp,
        "retrieved_timestamp": str(int(time.time())),
        "source_metadata": {
            "source_name": "multilingual-harness",
            "source_type": "evaluation_run",
            "source_organization_name": "unknown",
            "evaluator_relationship": "other",
        },
        "eval_library": {
            "name": "multilingual-harness",
            "version": run.results.run.harness or "unknown",
            "additional_details": _run_details(run),
        },
        "model_info": _model_info(run, name),
        "evaluation_results": results,
    }
    text = json.dumps(without_none(record), ensure_ascii=False, indent=2) + "\n"
    return {f"{name.replace('/', '_')}.json": text}


def _run_details(run: Run) -> dict[str, str]:
    states = [cell.status for cell in run.cells]
    details = {
        "run": run.results.run.id,
        "data": run.results.run.data,
        "sample_data": "true" if run.results.run.data == "sample" else None,
        "limit": run.manifest.config.get("limit"),
        "cells_failed": states.count("failed") or None,
        "cells_skipped": states.count("skipped") or None,
        **{f"version.{name}": version for name, version in run.manifest.versions.items()},
    }
    return texts(details)


def _model_info(run: Run, name: str) -> dict[str, Any]:
    head = run.results.model
    details = {
        "deployment_type": "self_deployed" if head.adapter.startswith(SELF_DEPLOYED) else "unknown",
        "model_availability": "unknown",
        "adapter": head.adapter,
        "revision": head.revision,
        "parameters": head.parameters,
        "weights_sha256": run.manifest.identity.get("weights"),
        "dtype": run.manifest.identity.get("dtype"),
    }
    developer = name.partition("/")[0] if "/" in name and head.adapter != "baseline" else None
    return {"name": name, "id": name, "developer": developer, "additional_details": texts(details)}


def _result(score: Score) -> dict[str, Any]:
    cell, prompt = score.cell, score.cell.prompt
    names = {"num_fewshot": "shots", "prompt": "name", "prompt_digest": "digest"}
    shots = prompt and {name: prompt.get(key) for name, key in names.items()}
    return {
        "evaluation_result_id": f"{cell.digest}.{score.metric}",
        "evaluation_name": f"harness.{cell.task}.{cell.language}",
        "source_data": _source(score),
        "metric_config": {
            "evaluation_description": score.sentence(),
            "metric_id": score.metric,
            "metric_name": score.metric,
            "metric_unit": "proportion",
            "lower_is_better": not score.higher_is_better,
            "score_type": "continuous",
            "min_score": 0.0,
            "max_score": 1.0,
            "additional_details": {"headline": str(score.headline).lower()},
        },
        "score_details": {
            "score": score.value.value,
            "uncertainty": _uncertainty(score),
            "details": score.details(),
        },
        "generation_config": shots and {"additional_details": texts(shots)},
    }


def _source(score: Score) -> dict[str, Any]:
    """Return where the items are from; paths of this machine stay here."""
    cell, hub = score.cell, score.hub if score.from_hub else None
    details = {
        **language_details(cell.language),
        "provenance": cell.provenance,
        "split": cell.split,
        "sha256": cell.data.get("digest"),
        "origin": cell.data.get("origin"),
    }
    if hub is None:
        return {"dataset_name": cell.task, "source_type": "other", "additional_details": texts(details)}
    details |= {"config": hub.config or None, "revision": hub.revision or None}
    return {
        "dataset_name": cell.task,
        "source_type": "hf_dataset",
        "hf_repo": hub.path,
        "hf_split": SPLITS.get(hub.split, hub.split),
        "samples_number": cell.size,
        "additional_details": texts(details),
    }


def _uncertainty(score: Score) -> dict[str, Any]:
    value, error, interval = score.value, None, None
    if value.se is not None:
        error = {"value": value.se, "method": "analytic" if value.draws is None else "bootstrap"}
    if value.ci is not None:
        ends = {"lower": value.ci[0], "upper": value.ci[1]}
        interval = {**ends, "confidence_level": 0.95, "method": value.ci_method or "unknown"}
    return {
        "num_samples": score.cell.n,
        "standard_error": error,
        "confidence_interval": interval,
        "num_bootstrap_samples": value.draws,
    }
