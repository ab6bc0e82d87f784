"""The adapter of encoders, its heads, and the word aligner."""

from __future__ import annotations
