"""The table and the figure of "Translation Errors ..." (EACL 2024) in the paper's form.

Its tables have a row for every version of the test set and a column for every language, with the mean over target
languages last (Tables 1, 2, 9 to 16). Figure 1 has two curves over the languages, human text (TT) and machine text (BT)
in the source language, and a line for the score of the source language's own test set.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from harness.reporting import BLANK, CurveChart, Line, Table, rows_of

CURVES: Final = {"tt": "human text (TT)", "bt": "machine text (BT)"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """A score as it is shown, with its interval if it has one."""

    value: float
    low: float | None = None
    high: float | None = None


def paper_table(
    title: str,
    source: str,
    codes: Sequence[str],
    translators: Sequence[str],
    text: Callable[[str, str, str | None], str],
) -> Table:
    """Return versions as rows and languages as columns; versions without any score are skipped.

    Args:
        title: The caption.
        source: The source language, the first column.
        codes: The other languages.
        translators: Their names, as in ``BT-g``.
        text: Returns a field: quantity, translator and language, None for the mean; empty without one.
    """
    versions = [("zs", ""), *((name, each) for each in translators for name in ("tt", "te", "bt", "delta"))]
    rows = []
    for quantity, translator in versions:
        fields = [text(quantity, translator, code) for code in (source, *codes, None)]
        if any(fields):
            name = quantity if quantity == "delta" else quantity.upper()
            rows.append(["-".join(filter(None, (name, translator))), *(field or BLANK for field in fields)])
    return Table(title=title, corner="", heads=(source, *codes, "avg"), rows=rows_of(rows))


def transfer_chart(
    title: str, source: str, points: Mapping[str, Mapping[str, Point]], codes: Sequence[str]
) -> CurveChart | None:
    """Return Figure 1; None unless two languages have both curves.

    Args:
        title: The title.
        source: The source language.
        points: By variant and language; ``zs`` of the source language is the line.
        codes: The languages, in the order of the axis.
    """
    both = [code for code in codes if all(code in points.get(variant, {}) for variant in CURVES)]
    if len(both) < 2:
        return None
    lines = [
        _curve(label, group, [points[variant][code] for code in both])
        for group, (variant, label) in enumerate(CURVES.items())
    ]
    english = points.get("zs", {}).get(source)
    if english is not None:
        ends = ((0.0, english.value), (len(both) - 1.0, english.value))
        lines.append(Line(label=f"{source} (ZS)", points=ends, group=6, stroke="dashed", is_guide=True))
    return CurveChart(
        title=title,
        lines=tuple(lines),
        groups=tuple(CURVES.values()),
        x_label="languages, largest pre-training data first",
        y_label="score",
        x_names=tuple(both),
        summary="; ".join(
            f"{label}: {', '.join(f'{code} {points[variant][code].value:.1f}' for code in both)}"
            for variant, label in CURVES.items()
        ),
        strokes=() if english is None else (("dashed", f"{source}, its own test set ({english.value:.1f})"),),
    )


def _curve(label: str, group: int, points: Sequence[Point]) -> Line:
    return Line(
        label=label,
        points=tuple((float(position), point.value) for position, point in enumerate(points)),
        group=group,
        whiskers=tuple(
            (float(position), point.low, point.high)
            for position, point in enumerate(points)
            if point.low is not None and point.high is not None
        ),
    )
