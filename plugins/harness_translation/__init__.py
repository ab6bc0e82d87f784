"""Translation as an axis of evaluation: gaps between versions of a text, and labels checked by people."""

from __future__ import annotations

__all__: list[str] = []
