"""Processes that accelerate was asked for, and did not start."""

from __future__ import annotations

import pytest

from harness.errors import UsageError

joining = pytest.importorskip("harness_accelerate.processes", reason="accelerate is not installed")


def test_one_process_that_was_to_be_several_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("WORLD_SIZE", raising=False)
    monkeypatch.setattr(joining, "asked_processes", lambda: 4)
    with pytest.raises(UsageError, match="4"):
        joining.join(cpu=True)
    monkeypatch.setattr(joining, "asked_processes", lambda: 1)
    assert joining.join(cpu=True) is None
