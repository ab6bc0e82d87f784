"""Kinds of task: one file per family, with their specs, records, references and methods."""

from __future__ import annotations

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
