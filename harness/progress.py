"""How a run reports its progress; the command shows bars, Python calls stay silent by default."""

from __future__ import annotations

from typing import Protocol

__all__ = ["Progress", "SilentProgress"]


class Progress(Protocol):
    """What a run reports while it works."""

    def announce(self, message: str) -> None:
        """Report one event."""

    def start(self, title: str, total: int, unit: str) -> None:
        """Begin a piece of work of `total` units."""

    def advance(self, count: int) -> None:
        """Report that `count` more units are done."""

    def finish(self) -> None:
        """End the piece of work that was started last."""


class SilentProgress:
    """Reports nothing."""

    def announce(self, message: str) -> None:
        """Do nothing."""

    def start(self, title: str, total: int, unit: str) -> None:
        """Do nothing."""

    def advance(self, count: int) -> None:
        """Do nothing."""

    def finish(self) -> None:
        """Do nothing."""
