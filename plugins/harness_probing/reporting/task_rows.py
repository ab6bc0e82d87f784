"""The rows of tables of probes, grouped by model and task."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from harness.reporting.text_table import TextRow
from harness_probing.reporting.probe import Probe

__all__ = ["rows_by_task", "titled"]


def titled(model: str, rows: Iterable[TextRow], *, alone: bool) -> list[TextRow]:
    """Return the rows of a model, under its name if there are several models."""
    rows = list(rows)
    return rows if alone or not rows else [TextRow(label=model), *rows]


def rows_by_task(probes: Sequence[Probe], fields: Callable[[Probe], tuple[str, ...] | None]) -> list[TextRow]:
    """Return a row for every probe that has fields: by model, then by task, then by treebank."""
    found: list[TextRow] = []
    heads: tuple[str, str] | None = None
    models = {probe.model for probe in probes}
    for model in dict.fromkeys(probe.model for probe in probes):
        rows: list[TextRow] = []
        for probe in probes:
            own = fields(probe) if probe.model == model else None
            if own is None:
                continue
            if not probe.treebank:
                rows.append(TextRow(label=probe.title, fields=own, level=1))
                continue
            if heads != (model, probe.title):
                rows.append(TextRow(label=probe.title, level=1))
                heads = (model, probe.title)
            rows.append(TextRow(label=probe.treebank_name, fields=own, level=2))
        found += titled(model, rows, alone=len(models) == 1)
    return found
