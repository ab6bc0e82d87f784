"""Material of a report: the runs that were given, their baselines, and the summary that all sections agree with."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harness.reporting.formats import ReportSection
from harness.reporting.overview.column import Column
from harness.reporting.overview.mean_row import MeanRow, mean_row, row_of
from harness.reporting.overview.published import Place, place_of
from harness.reporting.overview.summary import Summary, columns_of, summarise
from harness.reporting.overview.system_name import system_names
from harness.storage.run_folder import Run


@dataclass(frozen=True, slots=True, kw_only=True)
class Material:
    """The runs of a report."""

    runs: tuple[Run, ...]
    """The given runs, the main run first."""
    every: tuple[Run, ...]
    """The given runs with their baselines; baselines follow their run."""
    names: Mapping[Path, str]
    """Path of a run -> what the report calls it; each name is used once."""
    summary: Summary
    columns: tuple[Column, ...]
    """Those of all given runs, the summary's first."""
    families: tuple[str, ...]
    """In the order of their colours, the same in all charts."""
    published: tuple[Mapping[str, Any], ...]

    def name(self, run: Run) -> str:
        """Return the name of a run in the report."""
        return self.names[run.path]

    @property
    def languages(self) -> list[tuple[str, str, str]]:
        """The languages of the summary in its order: code, name, family."""
        return [
            (code, name, section.family)
            for section in self.summary.sections
            for code, name, _ in section.rows
        ]

    def place(self, column: Column) -> Place:
        """Return the place of a column's published scores: over the languages of the first run that has it."""
        owner = next((run for run in self.every if row_of(run, column) is not None), self.runs[0])
        return place_of(column, row_of(owner, column), owner.manifest.tasks.get(column.task))

    def mean(self, run: Run, column: Column) -> MeanRow:
        """Return the mean of a run in a column, compared with the first run that has this column itself."""
        owner = next((candidate for candidate in self.every if row_of(candidate, column) is not None), run)
        return mean_row(run, owner, column, self.columns)


def read_material(runs: Sequence[Run], *, sections: Sequence[ReportSection] = ()) -> Material:
    """Return the material of runs, each of which may be followed by its baselines, with sections of plugins."""
    # A baseline that the user also names comes twice: once as a run, and once with its own run.
    times = Counter(run.path.resolve() for run in runs)
    runs = list({run.path.resolve(): run for run in reversed(runs)}.values())[::-1]
    runs.sort(key=lambda run: list(times).index(run.path.resolve()))
    requested = [
        run for run in runs if times[path := run.path.resolve()] > 1 or not _is_baseline(path, times.keys())
    ]
    summary = summarise(runs, sections=sections)
    return Material(
        runs=tuple(requested),
        every=tuple(runs),
        names=dict(zip((run.path for run in runs), system_names(runs), strict=True)),
        summary=summary,
        columns=tuple(dict.fromkeys(column for run in (runs[0], *requested) for column in columns_of(run))),
        families=tuple(sorted({section.family for section in summary.sections})),
        published=tuple(runs[0].manifest.published),
    )


def _is_baseline(path: Path, paths: Collection[Path]) -> bool:
    return path.parent.name == "baselines" and path.parent.parent in paths
