"""Charts of a run for notebooks, made by altair; `LoadedRun.plot` has them."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from harness.errors import UsageError, require_extra
from harness.metrics.aggregation import aggregate_tasks
from harness.metrics.task_intervals import task_intervals
from harness.reporting.column import cells_of
from harness.reporting.glance import Glance, LanguageGlance, TaskGlance
from harness.reporting.number import interval_text
from harness.reporting.page import style
from harness.reporting.remark import counted
from harness.storage.results import TaskScore
from harness.storage.run_folder import Run

if TYPE_CHECKING:
    from altair import FacetChart, LayerChart

__all__ = ["INK", "OTHERS", "SOFT", "SOURCE", "Plots", "conditions", "load_altair", "styled"]

INK, SOFT, LINE = "#1a1c1e", "#565d64", "#e3e6e8"
SOURCE, OTHERS = "#d55e00", "#08519c"
FONT = "Arial, Helvetica, sans-serif"
"""A picture is laid out where it is made: what is shown in another place must be as wide there."""
LIGHT_TEXT = 0.6
"""Part of the scale from which on a number is written in white."""


class Plots:
    """Charts of one run; each is an altair chart, which a notebook shows and ``chart.save("x.svg")`` writes."""

    def __init__(self, run: Run, glance: Glance) -> None:
        self._run = run
        self._glance = glance
        pairs = zip(glance.tasks, conditions(glance.tasks), strict=True)
        self._labels = [f"{task.column.task} {further}".rstrip() for task, further in pairs]

    def heatmap(self) -> FacetChart:
        """Return a chart of tasks by languages, which are grouped by family.

        The colours are fixed, and those of the report: from chance, or 0 where none is known, to 100. A cell that was
        asked for and has no score is a dashed box.

        Raises:
            MissingExtraError: altair is not installed.
            UsageError: The run has no cells.
        """
        alt = load_altair()
        rows = [
            self._field(task, label, language)
            for task, label in zip(self._glance.tasks, self._labels, strict=True)
            for language in task.languages
        ]
        if not rows:
            raise UsageError("The run has no cells to show.")
        layers = self._fields(alt, rows)
        family = alt.Row(
            "family:N",
            sort=list(
                dict.fromkeys(row["family"] for row in sorted(rows, key=lambda row: int(row["place"])))
            ),
            header=alt.Header(
                title=None, labelAngle=0, labelAlign="left", labelColor=SOFT, labelLimit=140, labelPadding=12
            ),
        )
        chart = layers.facet(row=family, spacing=4).resolve_scale(y="independent")
        title = self._title(
            alt,
            "Scores by task and language",
            "Dashed: asked for, without a score. Blank: not a language of the task.",
            *self._hidden(),
        )
        whole: FacetChart = styled(chart.properties(title=title))
        return whole

    def _fields(self, alt: Any, rows: Sequence[Mapping[str, Any]]) -> Any:
        """Return the fields of a heat map: coloured with their number, or dashed."""
        base = alt.Chart(alt.Data(values=rows)).encode(
            x=alt.X(
                "task:N",
                sort=self._labels,
                title="Task",
                axis=alt.Axis(orient="top", labelAngle=-35, labelLimit=240, domain=False, ticks=False),
            ),
            y=alt.Y(
                "language:N",
                sort=alt.SortField("place"),
                title=None,
                axis=alt.Axis(domain=False, ticks=False, labelLimit=160),
            ),
            tooltip=[
                alt.Tooltip(f"{name}:N", title=title)
                for name, title in (
                    *(("task", "Task"), ("language", "Language"), ("score_text", "Score")),
                    *(("interval", "95 % interval"), ("items", "Items"), ("reason", "Without a score")),
                )
            ],
        )
        colour = alt.Color(
            "level:Q",
            scale=alt.Scale(domain=[0, 1], range=_blues(), clamp=True),
            legend=alt.Legend(
                title="Score",
                values=[0, 1],
                labelExpr="datum.value < 0.5 ? 'chance, or 0' : '100'",
                gradientLength=120,
            ),
        )
        number = alt.condition(f"datum.level >= {LIGHT_TEXT}", alt.value("white"), alt.value(INK))
        layers = alt.layer(
            base.transform_filter("isValid(datum.level)").mark_rect(stroke="white").encode(color=colour),
            base.transform_filter("!isValid(datum.level)").mark_rect(
                fill="white", stroke=SOFT, strokeDash=[2, 2], strokeWidth=0.7
            ),
            base.transform_filter("isValid(datum.level)")
            .mark_text(fontSize=10)
            .encode(text="score_text:N", color=number),
        ).properties(width=alt.Step(52), height=alt.Step(17))
        return layers

    @property
    def has_gap(self) -> bool:
        """Whether some task has a score in its source language and in another one, which `gap` needs."""
        return any(task.transfer_gap is not None for task in self._glance.tasks)

    def gap(self) -> LayerChart:
        """Return a chart of every task's source language against the mean of the others, with 95 % intervals.

        The interval of the mean of the others comes from the items, as that of a task's mean does.

        Raises:
            MissingExtraError: altair is not installed.
            UsageError: No task has a score in its source language and in another one.
        """
        alt = load_altair()
        rows = self._gap_rows()
        if not rows:
            raise UsageError(
                "No task of this run has a score in the language it was trained in and in another one.",
                hint="Evaluate a task that has a source language, such as xnli:en+sw, with a model that is fine-tuned.",
            )
        kinds = list(dict.fromkeys(row["kind"] for row in rows))
        source, others, other = kinds
        base = alt.Chart(alt.Data(values=rows)).encode(
            y=alt.Y("task:N", sort=list(dict.fromkeys(row["task"] for row in rows)), title="Task"),
            yOffset=alt.YOffset("lane:N", sort=["source", "others"]),
            x=alt.X(
                "score:Q", scale=alt.Scale(domain=[0, 100]), title="Score, 0 to 100, with 95 % intervals"
            ),
            color=alt.Color(
                "kind:N",
                scale=alt.Scale(domain=kinds, range=[SOURCE, OTHERS, "#9ecae1"]),
                title=None,
                legend=alt.Legend(
                    orient="top", symbolType="circle", symbolOpacity=1, labelLimit=300, columnPadding=24
                ),
            ),
            tooltip=[
                alt.Tooltip("task:N", title="Task"),
                alt.Tooltip("language:N", title="Language"),
                alt.Tooltip("score:Q", title="Score", format=".1f"),
                alt.Tooltip("interval:N", title="95 % interval"),
                alt.Tooltip("gap:N", title="Gap"),
            ],
        )
        means = alt.FieldOneOfPredicate(field="kind", oneOf=[source, others])
        layers = [
            base.transform_filter(alt.FieldEqualPredicate(field="kind", equal=other)).mark_point(
                filled=True, size=28, opacity=0.9
            ),
            base.transform_filter(means).mark_rule(strokeWidth=2).encode(x="low:Q", x2="high:Q"),
            base.transform_filter(means).mark_point(filled=True, size=75, opacity=1),
            base.transform_filter(alt.FieldEqualPredicate(field="kind", equal=source))
            .mark_text(align="left")
            .encode(x=alt.value(470), text="gap:N", color=alt.value(INK)),
        ]
        chart = alt.layer(*layers)
        title = self._title(
            alt,
            "What is lost on leaving the source language",
            "At the right: the gap, in points of the score.",
        )
        sized = chart.properties(width=460, height=alt.Step(18, **{"for": "offset"}), title=title)
        whole: LayerChart = styled(sized)
        return whole

    def _hidden(self) -> list[str]:
        """Return a sentence on the languages that have no score in any task, and so no row."""
        count = len({cell.language for cell in self._run.cells} - set(self._order))
        return [f"Not shown: {counted(count, 'language')} without any score."] if count else []

    def _title(self, alt: Any, text: str, *legend: str) -> Any:
        sample = "Sample data: these scores say nothing about the model."
        lines = [self._glance.name, *legend, *([sample] if self._run.results.run.data == "sample" else [])]
        return alt.Title(text, subtitle=lines, anchor="start")

    def _field(self, task: TaskGlance, label: str, language: LanguageGlance) -> dict[str, Any]:
        """Return what the heat map shows of one task in one language."""
        cells = [cell for cell in self._run.cells if cell.task == task.column.task]
        own = [cell for cell in cells_of(self._run, task.column) if cell.language == language.code]
        lost = [cell.reason for cell in cells if cell.language == language.code and cell.status != "ok"]
        value, chance = language.score.value, task.chance or 0.0
        return {
            "task": label,
            "language": f"{language.name} ({language.code})",
            "family": language.family,
            "place": list(self._order).index(language.code),
            "level": None if value is None else max(0.0, (value - chance) / (1 - chance)),
            "score_text": "-" if value is None else f"{value * 100:.1f}",
            "interval": interval_text(language.score.interval),
            "items": sum(cell.n for cell in own if cell.status == "ok"),
            "reason": next(iter(lost), "") if value is None else "",
        }

    @property
    def _order(self) -> dict[str, None]:
        """All languages: by family, then name of the code, as in every table."""
        found = {language.code: language.family for task in self._glance.tasks for language in task.languages}
        return dict.fromkeys(sorted(found, key=lambda code: (found[code], code)))

    def _gap_rows(self) -> list[dict[str, Any]]:
        rows: list[dict[str, Any]] = []
        names = {
            language.name
            for task in self._glance.tasks
            for language in task.languages
            if language.code == task.source and task.transfer_gap is not None
        }
        source_kind = " ".join([*names, "(source language)"]) if len(names) == 1 else "source language"
        for task, label in zip(self._glance.tasks, self._labels, strict=True):
            if task.transfer_gap is None:
                continue
            others = self._mean_of_others(task)
            own = {"task": label, "gap": f"{task.transfer_gap * 100:+.1f}"}
            for language in task.scored:
                is_source = language.code == task.source
                row = _point(language.name, language.score.value, language.score.interval)
                kind = source_kind if is_source else "another language"
                rows.append(own | row | {"kind": kind, "lane": "source" if is_source else "others"})
            mean = _point("mean of the others", others.value, others.ci)
            rows.append(own | mean | {"kind": "mean of the others", "lane": "others"})
        order = [source_kind, "mean of the others", "another language"]
        return sorted(rows, key=lambda row: order.index(row["kind"]))

    def _mean_of_others(self, task: TaskGlance) -> TaskScore:
        """Return the mean of all languages but the source, with an interval that takes parallel items together."""
        from harness.running.session import open_session

        cells = [cell for cell in cells_of(self._run, task.column) if cell.language != task.source]
        tasks = self._run.manifest.tasks
        [score] = [row for row in aggregate_tasks(cells, tasks) if row.metric == task.column.metric]
        [found] = task_intervals([score], cells, tasks, self._run.records_of, open_session().registry.metrics)
        return found


def load_altair(purpose: str = "run.plot") -> Any:
    """Return altair; raises `MissingExtraError`, which names what it is for."""
    with require_extra(purpose, "plots", f"{__name__}:Plots"):
        import altair
    return altair


def conditions(tasks: Sequence[TaskGlance]) -> list[str]:
    """Return how each row differs from others of its task: ``frozen``, ``variant=tt``; empty for a single one."""
    parts = [
        [task.column.protocol.replace("_", " "), task.column.method, *task.column.view.split()]
        for task in tasks
    ]
    found = []
    for task, own in zip(tasks, parts, strict=True):
        same = [other for one, other in zip(tasks, parts, strict=True) if one.column.task == task.column.task]
        found.append(" ".join(part for part in own if part and not all(part in other for other in same)))
    return found


def _point(name: str, value: float | None, interval: Sequence[float] | None) -> dict[str, Any]:
    low, high = (None, None) if interval is None else interval
    numbers = {"score": value, "low": low, "high": high}
    return {
        "language": name,
        "interval": interval_text(interval),
        **{key: None if number is None else number * 100 for key, number in numbers.items()},
    }


def _blues() -> list[str]:
    """Return the colours of scores on the light pages of reports, from low to high."""
    light = style().partition("@media")[0]
    return [found[1] for found in re.finditer(r"--h\d: (#[0-9a-f]{6})", light)]


def styled(chart: Any) -> Any:
    """Return a chart with the fonts and colours of all charts."""
    return (
        chart.configure(
            font=FONT, background="white", padding={"left": 8, "top": 8, "right": 24, "bottom": 8}
        )
        .configure_view(stroke=None)
        .configure_title(fontSize=15, subtitleColor=SOFT, subtitleFontSize=11, offset=14)
        .configure_axis(gridColor=LINE, labelColor=INK, titleColor=SOFT, titleFontWeight="normal")
    )
