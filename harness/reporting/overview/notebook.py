"""A run as notebooks show it."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

from harness.reporting.blocks.number import interval_text, percent
from harness.reporting.overview.glance import Glance, glance
from harness.reporting.overview.material import Material, read_material
from harness.reporting.overview.plots import Plots, task_names
from harness.reporting.render.page import template
from harness.storage.run_folder import Run

if TYPE_CHECKING:
    import polars as pl


class LoadedRun(Run):
    """A run that shows itself: as a table in a notebook, as one line elsewhere, and as figures."""

    @cached_property
    def _material(self) -> Material:
        return read_material([self])

    @cached_property
    def glance(self) -> Glance:
        """The first look at the run."""
        return glance([self], self._material.summary)

    def scores(self) -> pl.DataFrame:
        """Return the table of scores; see `harness.scores.read.read_scores`."""
        from harness.scores.read import read_scores

        return read_scores([self])

    @property
    def plot(self) -> Plots:
        """Figures of the run: ``run.plot.heatmap()`` and ``run.plot.gap()``."""
        return Plots(self._material, self.glance)

    def __repr__(self) -> str:
        """Return one line: model, tasks, languages, cells and the mean."""
        look = self.glance
        completeness, mean = look.completeness, look.mean
        facts = [
            f"{completeness.tasks[0]} of {completeness.tasks[1]} tasks",
            f"{completeness.languages[0]} of {completeness.languages[1]} languages",
            f"{completeness.scored} of {completeness.cells} cells",
        ]
        if mean.value is not None:
            interval = "" if mean.interval is None else f" ({interval_text(mean.interval)})"
            facts.append(f"mean {percent(mean.value)}{interval}")
        return f"<Run {self.path}: {look.name}, {', '.join(facts)}>"

    def _repr_html_(self) -> str:
        """Return the first look as a table; its colours fit light and dark notebooks."""
        look = self.glance
        rows = list(zip(look.tasks, task_names(look.tasks), strict=True))
        scores = [
            score
            for task in look.tasks
            for score in (task.mean, *(language.score for language in task.weakest))
        ]
        marks = {mark for score in scores for mark in score.mark}
        legend = [note for note in self._material.summary.notes if note[:1] in marks]
        return template("notebook.html.j2", look=look, rows=rows, legend=legend, run=self)
