"""The adapter of sequence-to-sequence models, and the translator."""

from __future__ import annotations
