"""The adapter of decoders."""

from __future__ import annotations
