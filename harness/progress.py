"""Progress reports of a run; commands show them, Python calls stay silent by default."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedCell:
    """A cell that a run scores, or has scored before it was resumed."""

    digest: str
    task: str
    language: str
    condition: str = ""
    """Protocol, method and view, where they are not the same in all cells of the task."""
    items: int | None = None
    """Items that it has; None where this is not known before its file is read."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedFit:
    """A training stage that is not in the cache."""

    digest: str
    size: float
    """How long it takes relative to the other stages of the run."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CellOutcome:
    """How a cell ended."""

    digest: str
    metric: str = ""
    """The task's headline metric."""
    value: float | None = None
    """Its value, as a fraction; None where the cell has no score."""
    interval: tuple[float, float] | None = None
    items: int = 0
    failure: str = ""
    """The reason why it failed."""


class Progress:
    """Progress reports of a run; this class itself shows nothing, derive from it to show some of them.

    A run is a plan of cells and trainings. Within a cell or a training, and in work outside a run, one piece of work
    at a time starts, advances and ends.
    """

    def announce(self, message: str) -> None:
        """Report what the user has to know at once."""

    def mention(self, message: str) -> None:
        """Report a detail, which the run's notes or its results keep as well."""

    def status(self, message: str) -> None:
        """Report what the current work does now; the next status replaces it."""

    def plan(
        self,
        model: str,
        cells: Sequence[PlannedCell],
        fits: Sequence[PlannedFit] = (),
        done: Sequence[CellOutcome] = (),
    ) -> None:
        """Begin the cells and trainings of a model; `done` are those that an earlier attempt finished."""

    def fit_started(self, digest: str, title: str) -> None:
        """Begin a training stage."""

    def fit_finished(self, digest: str, *, failed: bool = False) -> None:
        """End a training stage."""

    def cell_started(self, digest: str) -> None:
        """Begin a cell."""

    def cell_finished(self, outcome: CellOutcome) -> None:
        """End a cell, also one that could not begin because its training failed."""

    def start(self, title: str, total: int, unit: str, done: int = 0) -> None:
        """Begin a piece of work of `total` units, of which `done` are done; 0 where the total is not known."""

    def advance(self, count: int) -> None:
        """Report that `count` more units are done."""

    def finish(self) -> None:
        """End the piece of work that was started last."""


_show: ContextVar[Callable[[str], None]] = ContextVar("show", default=lambda message: None)


def show_step(message: str) -> None:
    """Report what a slow command works on now; nothing happens outside `showing_steps`."""
    _show.get()(message)


@contextmanager
def showing_steps(show: Callable[[str], None]) -> Iterator[None]:
    """Let `show` report the steps of what is done inside."""
    token = _show.set(show)
    try:
        yield
    finally:
        _show.reset(token)
