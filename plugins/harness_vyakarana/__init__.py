"""Vyakarana: colorless-green treebanks and the labels of its tasks (Patil et al., MRL 2021)."""

from __future__ import annotations

__all__: list[str] = []
