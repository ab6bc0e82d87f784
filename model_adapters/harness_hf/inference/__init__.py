"""Run an opened network over many texts: batches, pooling, words, and vectors."""

from __future__ import annotations
