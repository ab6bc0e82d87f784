"""Callbacks of training loops, which adapters declare: ``from harness.callbacks import EvaluateLanguages``."""

from __future__ import annotations

from typing import Any


def __getattr__(name: str) -> Any:
    """Return the callback of a name; raises `MissingExtraError` where what it needs is not installed."""
    if not name.startswith("_"):  # imports ask for __path__
        from harness.registry.discovery import discover
        from harness.registry.registry import Registry

        for entry in Registry(discover()).adapters:
            for target in entry.callbacks:
                if target.endswith(f":{name}"):
                    return entry.load(target)
    raise AttributeError(f"No adapter that is installed declares the callback {name!r}.")
