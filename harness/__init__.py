"""Evaluate multilingual models on cross-lingual benchmarks."""

from __future__ import annotations
