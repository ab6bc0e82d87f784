"""The scores of a submission as a table that stays readable at 80 columns."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from rich import box
from rich.table import Table

from harness_xtreme_r.submission.scoring import SubmissionScore

__all__ = ["score_table"]

_GAP: Final = 2
"""Characters between two columns, and between two languages of a line."""
_OTHER_COLUMNS: Final = len("mewslix") + len("exact_match") + len("100.0") + len("48*") + 4 * _GAP
"""Characters of the columns before the languages at their widest."""
_ONLY_MEAN: Final = frozenset({"precision", "recall"})
"""Metrics whose languages would repeat the shape of F1; the JSON has them."""


def score_table(score: SubmissionScore, width: int) -> Table:
    """Return one row per task and metric: the mean, the number of languages, and the languages' points."""
    table = Table(
        box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0), title="XTREME-R submission (points)", title_justify="left"
    )
    table.add_column("task", no_wrap=True)
    table.add_column("metric", no_wrap=True)
    table.add_column("mean", justify="right", no_wrap=True)
    table.add_column("n", justify="right", no_wrap=True)
    table.add_column("languages", no_wrap=True)
    for name, task in score.tasks.items():
        means = task.mean
        for position, metric in enumerate(task.task.metrics):
            points = {language: part.metrics[metric] for language, part in task.languages.items()}
            table.add_row(
                name if position == 0 else "",
                metric,
                f"{means[metric]:.1f}",
                str(len(points)) + ("*" if task.missing else ""),
                "" if metric in _ONLY_MEAN else _cells(points, width - _OTHER_COLUMNS),
            )
    if any(task.missing for task in score.tasks.values()):
        table.caption = "* languages of the gold are missing from the mean"
        table.caption_justify = "left"
    return table


def _cells(points: Mapping[str, float], width: int) -> str:
    code = max(map(len, points))
    cells = [f"{language:<{code}} {value:>5.1f}" for language, value in points.items()]
    per_line = max(1, (width + _GAP) // (len(cells[0]) + _GAP))
    lines = [cells[start : start + per_line] for start in range(0, len(cells), per_line)]
    return "\n".join((" " * _GAP).join(line) for line in lines)
