"""Replicas that fit the nodes of a cluster."""

from __future__ import annotations

from typing import Any

import pytest

replicas = pytest.importorskip("harness_ray.replicas", reason="ray is not installed")


def test_a_replica_needs_whole_gpus_of_one_node() -> None:
    from types import SimpleNamespace

    served: Any = SimpleNamespace(gpus=2.0, memory_gib=None)
    nodes: Any = [SimpleNamespace(gpus=gpus, memory=0) for gpus in (1, 3, 4)]
    assert replicas._room(served, nodes, 9) == 3
