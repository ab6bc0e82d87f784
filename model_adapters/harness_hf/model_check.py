"""Capabilities of a model's architecture, tried on a tiny random model of it."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from harness.models import (
    HEAD_CAPABILITY,
    AdapterOptions,
    Capability,
    FitOptions,
    Head,
    HeadSpec,
    TrainingSettings,
)
from harness.testing import PROBES, head_spec, is_finite, training_examples
from harness_hf.family import AnyFamilyOptions, describe_any, model_options, open_any
from harness_hf.loading import first_line
from harness_hf.miniature import save_miniature
from harness_hf.model_folder import read_config

WORKS = "works"
ITEMS = 4
SETTINGS = TrainingSettings(
    learning_rate=1e-3, epochs=1, batch_size=ITEMS, max_length=64, max_query_length=16
)


def check_model(ref: str, options: AdapterOptions) -> dict[str, str]:
    """Return the adapter of a model and, for each thing that it offers, ``works`` or what went wrong.

    Only config.json is read: the tiny model has its architecture, small sizes and random weights. It answers a few
    texts with each capability, and is trained for a step with each head. Raises `AdapterError` where none can be made.
    """
    results: dict[str, str] = {}
    with TemporaryDirectory() as name:
        folder = Path(name) / "model"
        save_miniature(read_config(ref, model_options(options)), folder)
        cpu_options = AnyFamilyOptions.model_validate({"device": "cpu"})
        description = describe_any(str(folder), cpu_options)
        results["adapter"] = description.adapter
        model: Any = open_any(description, cpu_options)
        for capability in sorted(description.offers & PROBES.keys()):
            results[capability.value] = _ask(model, capability, description.labels)
        for head in sorted(description.after_fit):
            results[f"fitted: {head.value}"] = _fit(model, head, Path(name) / head.value)
        model.close()
    return results


def _ask(model: Any, capability: Capability, labels: tuple[str, ...]) -> str:
    probe = PROBES[capability]
    requests = probe.requests[:ITEMS]
    try:
        answers = list(probe.ask(model, requests, labels))
        if len(answers) != len(requests):
            return f"returned {len(answers)} answers to {len(requests)} requests"
        faults = [
            probe.fault(answer, request, labels) for answer, request in zip(answers, requests, strict=True)
        ]
    except Exception as error:
        return first_line(error)
    finite = "" if all(map(is_finite, answers)) else "returned a number that is not finite"
    return next((f"an answer {fault}" for fault in faults if fault), finite) or WORKS


def _fit(model: Any, head: Head, folder: Path) -> str:
    spec: HeadSpec = head_spec(head)
    folder.mkdir()
    try:
        options = FitOptions(directory=folder, settings=SETTINGS, seed=1)
        fitted = model.fit(training_examples(head)[:ITEMS], [], spec, options)
    except Exception as error:
        return first_line(error)
    result = _ask(fitted, HEAD_CAPABILITY[head], spec.labels)
    fitted.close()
    return result
