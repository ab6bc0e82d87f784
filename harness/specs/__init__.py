"""Task, training-set, recipe and suite specs: strict YAML, a catalogue of all of them, and selections."""

from __future__ import annotations

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
