"""Matrices: languages against the values of a second axis, such as question x answer language."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any

from harness.reporting.score import Score, interval_of
from harness.reporting.unreadable import UNREADABLE, is_unreadable
from harness.storage.run_folder import Run

__all__ = ["LEAST_OBSERVATIONS", "Matrix", "is_crossed", "matrices"]

LEAST_OBSERVATIONS = 10
"""Fields with fewer observations stay blank, as in XTREME-R's Figure 4 and Table 9."""
SMALL = 12
"""Matrices with at most so many rows and columns belong into the summary."""

WIDEST = 8
"""So many columns are readable at 80 characters."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Matrix:
    """Scores of one metric by two conditions."""

    title: str
    corner: str
    """What the rows and the columns are."""
    columns: tuple[str, ...]
    rows: tuple[tuple[str, tuple[Score, ...]], ...]
    """Empty where all fields would be blank; the notes say why."""
    notes: tuple[str, ...] = ()
    task: str = ""
    """Whose axis it is; empty for a metric by group."""
    heat: bool = False
    """Whether its fields are error rates that a page may colour."""

    @property
    def is_small(self) -> bool:
        """Whether it belongs in the summary; error rates always do."""
        return self.heat or (len(self.rows) <= SMALL and len(self.columns) <= SMALL)


def is_crossed(spec: Mapping[str, Any]) -> bool:
    """Whether a task has one axis, so that its scores are a matrix rather than a column."""
    return len(spec.get("axes", [])) == 1


def matrices(run: Run, short: Mapping[str, str]) -> tuple[Matrix, ...]:
    """Return the matrices of a run: tasks with an axis, and metrics that are given by group.

    Args:
        run: The run.
        short: Metric -> its short name.
    """
    specs: Mapping[str, Any] = run.manifest["tasks"]
    crossed = [task for task, spec in specs.items() if is_crossed(spec)]
    return (
        *(matrix for task in crossed for matrix in _crossed(run, task, specs[task], short)),
        *_grouped(run, short),
        *_tests(run),
    )


def _crossed(run: Run, task: str, spec: Mapping[str, Any], short: Mapping[str, str]) -> Iterator[Matrix]:
    axis = spec["axes"][0]
    cells = [cell for cell in run.cells if cell["task"] == task and cell["status"] == "ok"]
    conditions = dict.fromkeys(
        (
            cell["protocol"],
            tuple(sorted((name, value) for name, value in cell["view"].items() if name != axis)),
        )
        for cell in cells
    )
    unreadable = {(cell["language"], cell["view"][axis]) for cell in cells if is_unreadable(cell)}
    stand_ins = {(cell["language"], cell["view"][axis]) for cell in cells if cell["stands_in"]}
    for protocol, view in conditions:
        for metric in spec.get("shown", spec["headline"]):
            fields: dict[tuple[str, str], list[float]] = {}
            for cell in cells:
                rest = tuple(sorted((name, value) for name, value in cell["view"].items() if name != axis))
                if (cell["protocol"], rest) == (protocol, view) and metric in cell["metrics"]:
                    field = (cell["language"], cell["view"][axis])
                    fields.setdefault(field, []).append(cell["metrics"][metric]["value"])
            if not fields:
                continue
            rows = list(dict.fromkeys(language for language, _ in fields))
            columns = list(
                dict.fromkeys(
                    [*(code for code in rows if any(code == c for _, c in fields)), *(c for _, c in fields)]
                )
            )
            known = {
                field: Score(mark=UNREADABLE)
                if field in unreadable
                else Score(value=fmean(values), mark="*" if field in stand_ins else "")
                for field, values in fields.items()
            }
            named = " ".join([protocol, *(f"{name}={value}" for name, value in view)])
            by_language = not {column for _, column in fields}.isdisjoint(spec["languages"])
            scores = {field: score.value for field, score in known.items() if score.value is not None}
            same = [value for (row, column), value in scores.items() if row == column]
            other = [value for (row, column), value in scores.items() if row != column]
            yield Matrix(
                task=task,
                title=f"{task} {short.get(metric, metric)} ({named}), {len(fields)} of {_asked(run, task, axis)} pairs",
                corner=f"language \\ {axis.replace('_', ' ')}",
                columns=tuple(columns),
                rows=tuple(
                    (row, tuple(known.get((row, column), Score()) for column in columns)) for row in rows
                ),
                notes=_mean_notes(same, other, by_language=by_language),
            )


def _mean_notes(same: Sequence[float], other: Sequence[float], *, by_language: bool) -> tuple[str, ...]:
    if not same and not other:
        return ()
    return (_halves(same, other) if by_language else f"Mean: {fmean([*same, *other]) * 100:.1f}.",)


def _asked(run: Run, task: str, axis: str) -> int:
    """Return how many pairs were asked for; seeds, protocols and variants of a pair count once."""
    cells = [cell for cell in run.cells if cell["task"] == task]
    return len({(cell["language"], cell["view"][axis]) for cell in cells if axis in cell["view"]})


def _halves(same: Sequence[float], other: Sequence[float]) -> str:
    parts = [
        f"{name} {fmean(values) * 100:.1f}"
        for name, values in (("same language", same), ("across languages", other))
        if values
    ]
    return f"Mean of the pairs: {', '.join(parts)}."


def _grouped(run: Run, short: Mapping[str, str]) -> Iterator[Matrix]:
    for row in run.results["tasks"]:
        matrix = row.get("matrix")
        if not matrix or not (row.get("same_language") or row.get("cross_language")):
            continue
        # Rows and columns have one order, so that the diagonal is not crossed.
        groups = sorted({group for fields in matrix.values() for group in fields})
        languages = sorted(matrix)
        fields = {
            (language, group): _field(score)
            for language, scores in matrix.items()
            for group, score in scores.items()
        }
        view = "".join(f" {name}={value}" for name, value in sorted(row["view"].items()))
        title = f"{row['task']} {short.get(row['metric'], row['metric'])} ({row['protocol']}{view})"
        notes = (_averages(row), f"Blank: fewer than {LEAST_OBSERVATIONS} queries.")
        if all(score.value is None for score in fields.values()):
            fewer = f"Every pair has fewer than {LEAST_OBSERVATIONS} queries, so there is no matrix."
            yield Matrix(title=title, corner="", columns=(), rows=(), notes=(_averages(row), fewer))
        # The longer side goes down the page, where it would be too wide for it.
        elif len(groups) > max(WIDEST, len(languages)):
            yield Matrix(
                title=title,
                corner="target \\ query language",
                columns=tuple(languages),
                rows=tuple(
                    (group, tuple(fields.get((code, group), Score()) for code in languages))
                    for group in groups
                ),
                notes=notes,
            )
        else:
            yield Matrix(
                title=title,
                corner="query \\ target language",
                columns=tuple(groups),
                rows=tuple(
                    (code, tuple(fields.get((code, group), Score()) for group in groups))
                    for code in languages
                ),
                notes=notes,
            )


def _tests(run: Run) -> Iterator[Matrix]:
    """Yield error rates by language and group.

    They come from a metric with groups whose name ends with ``_error``, and from the metric of the same name that
    ends with ``_floor``: the part of the error that no system can avoid.
    """
    rows = [row for row in run.results["tasks"] if row.get("matrix")]
    for row in rows:
        stem, ending, _ = row["metric"].rpartition("_error")
        same = ("task", "protocol", "method", "view")
        floors = [o for o in rows if o["metric"] == f"{stem}_floor" and all(o[n] == row[n] for n in same)]
        if not ending or not floors:
            continue
        matrix, floor = row["matrix"], floors[0]["matrix"]
        groups = tuple(dict.fromkeys(group for fields in matrix.values() for group in fields))
        means = {code: fmean(field["value"] for field in fields.values()) for code, fields in matrix.items()}
        ordered = sorted(matrix, key=lambda code: (means[code], code))
        lines = [
            (
                code,
                (
                    *(_error(matrix[code].get(group), floor.get(code, {}).get(group)) for group in groups),
                    Score(value=means[code]),
                ),
            )
            for code in ordered
        ]
        average = [
            fmean(own)
            if (own := [matrix[code][group]["value"] for code in ordered if group in matrix[code]])
            else None
            for group in groups
        ]
        lines.append(
            ("Avg", (*(Score(value=value) for value in average), Score(value=fmean(means.values()))))
        )
        cases = sum(field["n"] for fields in matrix.values() for field in fields.values())
        view = "".join(f" {name}={value}" for name, value in sorted(row["view"].items()))
        yield Matrix(
            title=f"{row['task']} error rate ({row['protocol']}{view})",
            corner="language \\ test",
            columns=(*(group.replace("_", " ") for group in groups), "avg"),
            rows=tuple(lines),
            notes=(
                f"Share of {cases:,} test cases with a wrong answer, best language first.",
                "In brackets: the floor, the share of cases that no system can pass.",
            ),
            heat=True,
        )


def _error(field: Mapping[str, Any] | None, floor: Mapping[str, Any] | None) -> Score:
    if field is None:
        return Score()
    least = 0.0 if floor is None else floor["value"]
    mark = f" [{least * 100:.1f}]" if least > 0 else ""
    return Score(value=field["value"], interval=interval_of(field), mark=mark)


def _field(score: Mapping[str, Any]) -> Score:
    return Score(value=score["value"]) if score["n"] >= LEAST_OBSERVATIONS else Score(mark=" ")


def _averages(row: Mapping[str, Any]) -> str:
    parts = []
    for key, name in (("same_language", "same language"), ("cross_language", "across languages")):
        half = row.get(key)
        if half is not None:
            parts.append(f"{name} {half['micro'] * 100:.1f} (macro {half['macro'] * 100:.1f})")
    return f"Over all queries (micro): {', '.join(parts)}."
