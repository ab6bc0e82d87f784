"""The start of a small spec, which several tests complete."""

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
