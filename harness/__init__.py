"""Evaluate multilingual models on cross-lingual benchmarks.

The public names: `evaluate` does what ``harness eval`` does, `hookimpl` marks a plugin's hooks, and the records
are what adapters, kinds and metrics exchange. Everything is imported when it is first asked for.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from harness.api import evaluate
    from harness.errors import HarnessError
    from harness.hookspecs import hookimpl
    from harness.kinds.methods import Method
    from harness.metrics.metric import Metric, MetricContext, MetricResult
    from harness.models.adapters import AdapterEntry
    from harness.models.capabilities import Capability, Head, ModelDescription
    from harness.storage.run_folder import Run

    __version__: str

__all__ = [
    "AdapterEntry",
    "Capability",
    "HarnessError",
    "Head",
    "Method",
    "Metric",
    "MetricContext",
    "MetricResult",
    "ModelDescription",
    "Run",
    "__version__",
    "evaluate",
    "hookimpl",
]

_HOME = {
    "AdapterEntry": "harness.models.adapters",
    "Capability": "harness.models.capabilities",
    "HarnessError": "harness.errors",
    "Head": "harness.models.capabilities",
    "Method": "harness.kinds.methods",
    "Metric": "harness.metrics.metric",
    "MetricContext": "harness.metrics.metric",
    "MetricResult": "harness.metrics.metric",
    "ModelDescription": "harness.models.capabilities",
    "Run": "harness.storage.run_folder",
    "evaluate": "harness.api",
    "hookimpl": "harness.hookspecs",
}


def __getattr__(name: str) -> Any:
    if name == "__version__":
        from importlib.metadata import version

        return version("multilingual-harness")
    if name not in _HOME:
        raise AttributeError(f"module 'harness' has no attribute {name!r}")
    return getattr(importlib.import_module(_HOME[name]), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
