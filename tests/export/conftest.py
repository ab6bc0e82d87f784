from __future__ import annotations

from tests.comparison.conftest import LABELS

SUMMARY = {**LABELS, "languages": {"de": ("Indo-European", "Latn"), "sw": ("Niger-Congo", "Latn")}}
"""What a manifest says of a task of two languages."""
