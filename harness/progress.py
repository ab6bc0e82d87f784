"""How a run tells what it is doing; the command shows bars, everything else stays silent."""

from __future__ import annotations

from typing import Protocol

__all__ = ["Progress", "SilentProgress"]


class Progress(Protocol):
    """What a run reports while it goes on."""

    def announce(self, message: str) -> None:
        """Tell one thing that happened."""

    def start(self, title: str, total: int, unit: str) -> None:
        """Begin a piece of work of `total` units."""

    def advance(self, count: int) -> None:
        """Tell that `count` further units are done."""

    def finish(self) -> None:
        """End the piece of work that was begun last."""


class SilentProgress:
    """Tells nothing."""

    def announce(self, message: str) -> None:
        """Tell nothing."""

    def start(self, title: str, total: int, unit: str) -> None:
        """Tell nothing."""

    def advance(self, count: int) -> None:
        """Tell nothing."""

    def finish(self) -> None:
        """Tell nothing."""
