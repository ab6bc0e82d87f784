"""Tables of words, which terminal, Markdown, LaTeX and page print alike."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from harness.reporting.probing.probe import Probe

__all__ = ["ProbeRow", "ProbeTable", "rows_by_task", "titled"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ProbeRow:
    """One row; without fields it heads those that follow."""

    label: str
    fields: tuple[str, ...] = ()
    level: int = 0
    """How far it is set in: a model, a task of it, a treebank."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProbeTable:
    """One table of the probing report."""

    title: str
    corner: str
    heads: tuple[str, ...]
    rows: tuple[ProbeRow, ...]
    notes: tuple[str, ...] = ()

    @property
    def plain_heads(self) -> list[str]:
        """The heads on one line each, a word that is broken with a hyphen as a whole."""
        return [head.replace("-\n", "").replace("\n", " ") for head in self.heads]


def titled(model: str, rows: Iterable[ProbeRow], *, alone: bool) -> list[ProbeRow]:
    """Return the rows of a model, under its name where there are others."""
    rows = list(rows)
    return rows if alone or not rows else [ProbeRow(label=model), *rows]


def rows_by_task(
    probes: Sequence[Probe], fields: Callable[[Probe], tuple[str, ...] | None]
) -> list[ProbeRow]:
    """Return a row for every probe that has fields: models, within them tasks, within them treebanks."""
    found: list[ProbeRow] = []
    heads: tuple[str, str] | None = None
    models = {probe.model for probe in probes}
    for model in dict.fromkeys(probe.model for probe in probes):
        rows: list[ProbeRow] = []
        for probe in probes:
            own = fields(probe) if probe.model == model else None
            if own is None:
                continue
            if not probe.treebank:
                rows.append(ProbeRow(label=probe.title, fields=own, level=1))
                continue
            if heads != (model, probe.title):
                rows.append(ProbeRow(label=probe.title, level=1))
                heads = (model, probe.title)
            rows.append(ProbeRow(label=probe.treebank_name, fields=own, level=2))
        found += titled(model, rows, alone=len(models) == 1)
    return found
