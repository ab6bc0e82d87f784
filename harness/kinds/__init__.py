"""Kinds of task: one file each, with its spec, its records, its references and its methods."""

from __future__ import annotations

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
