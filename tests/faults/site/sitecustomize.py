"""Puts faults into a real command: Python imports this module at its start where its folder is on the path.

``HARNESS_TEST_FAULTS`` is a JSON object: ``pace`` (seconds that every use of the model takes longer) and ``rows`` (more
rows than these are out of memory).
"""

from __future__ import annotations

import importlib.abc
import importlib.machinery
import json
import os
import sys
import time
from collections.abc import Sequence
from types import ModuleType
from typing import Any

VARIABLE = "HARNESS_TEST_FAULTS"


def install() -> None:
    """Put in what the environment asks for; into torch as soon as it is imported."""
    faults = json.loads(os.environ.get(VARIABLE) or "{}")

    if not {"pace", "rows"} & set(faults):
        return
    if "torch" in sys.modules:
        _change_torch(faults)
    else:
        sys.meta_path.insert(0, _AfterTorch(faults))


def _change_torch(faults: dict[str, Any]) -> None:
    """Every network looks its pieces up in embeddings, whatever else it does."""
    import torch

    forward = torch.nn.Embedding.forward

    def slower(self: torch.nn.Embedding, pieces: torch.Tensor) -> torch.Tensor:
        if len(pieces) > faults.get("rows", len(pieces)):
            raise torch.OutOfMemoryError(f"out of memory with {len(pieces)} rows")
        time.sleep(faults.get("pace", 0.0))
        return forward(self, pieces)

    torch.nn.Embedding.forward = slower  # type: ignore[method-assign, assignment]


class _AfterTorch(importlib.abc.MetaPathFinder):
    """Changes torch once its import is done."""

    def __init__(self, faults: dict[str, Any]) -> None:
        self._faults = faults

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        """Return the true spec of torch, whose loader is followed by the change."""
        if name != "torch":
            return None
        sys.meta_path.remove(self)
        spec = importlib.machinery.PathFinder.find_spec(name, path)
        assert spec is not None
        assert spec.loader is not None
        loader, faults = spec.loader, self._faults
        run = loader.exec_module

        def run_and_change(module: ModuleType) -> None:
            run(module)
            _change_torch(faults)

        loader.exec_module = run_and_change  # type: ignore[method-assign]
        return spec


install()
