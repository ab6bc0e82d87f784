"""Prompts: templates (structure) and literals (words by language), compiled once for a task and a language."""

from __future__ import annotations

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
