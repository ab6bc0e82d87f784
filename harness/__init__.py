"""Evaluate multilingual models on cross-lingual benchmarks.

This module is the public surface: `evaluate` and `Run` for programs, and everything that the author of a plugin needs
(`hookimpl`, the declarations that hooks return, the capability protocols, the records they exchange, the errors).
Contract suites for plugins are in `harness.testing`. ``__init__.pyi`` lists the names and the modules that define
them; each is imported at first use.
"""

from __future__ import annotations

from typing import Any

import lazy_loader

_load, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)


def __getattr__(name: str) -> Any:
    if name == "__version__":
        from importlib.metadata import version

        return version("multilingual-harness")
    return _load(name)
