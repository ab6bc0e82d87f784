"""The start of a small spec, which several tests complete, and a package that registers specs."""

from __future__ import annotations

MOOD = """\
task: mood
kind: sequence_classification
version: 1
description: Moods of short texts.
citation: nobody2026moods
license: cc0-1.0
inputs: [text]
labels: [good, bad]
metrics: [accuracy]
"""
SPECS = (
    "from harness import hookimpl\nfrom importlib.resources import files\n@hookimpl\n"
    "def harness_register_task_specs(): return [files(__name__) / 'specs']\n"
)
"""A package whose specs are in its folder ``specs``."""
PLAN = ("plan", "--tasks", "xnli:de", "--model", "baseline:majority", "--data", "sample")


def task_text(name: str) -> str:
    """Return a whole spec: a task of this name with a test file in English."""
    started = MOOD.replace("task: mood", f"task: {name}")
    test = "{local: en.jsonl, reader: jsonl}"
    return f"{started}transfer: {{stages: [{name}]}}\nlanguages: {{en: {{test: {test}}}}}\n"
