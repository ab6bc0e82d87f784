"""Texts and number formats that the terminal tables and the HTML page of gaps share."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from harness_translation.gap.correlation import Correlation
from harness_translation.gap.formula import FLAGGED, TITLES
from harness_translation.gap.means import Estimate
from harness_translation.gap.measure import ALL, GapValue, SystemGaps

__all__ = [
    "CAUTION",
    "LEGEND",
    "averaged_text",
    "correlation_text",
    "flag_texts",
    "interval_text",
    "mean_row",
    "percent",
    "script_text",
    "signed",
    "translator_text",
]

NOTHING: Final = "-"
CAUTION: Final = (
    "Caution: BT is source-language text that went through two translations. It no longer tests the target language, "
    "and favours models trained on translated text; compare TE - ZS with delta."
)
LEGEND: Final = (
    "Scores and differences x100. ZS: human translation; TT: it, translated into the source language; TE: the source "
    "text, translated; BT: that, translated back. Intervals: 95 %, bootstrap over clusters of items, all versions in "
    "the same resamples. Means are means of the languages' own values. * exceeds k standard errors for every "
    "translator. ~ compares more than translations. A mean over other languages than those of its row is "
    "not shown."
)


def percent(value: float) -> str:
    """Return a fraction as points: ``83.5``."""
    return f"{value * 100:.1f}"


def signed(value: float) -> str:
    """Return a difference as points: ``+2.9``."""
    # Adding zero turns a rounded -0.0 into 0.0.
    return f"{round(value * 100, 1) + 0.0:+.1f}"


def interval_text(estimate: Estimate) -> str:
    """Return the interval of a difference: ``+1.2 to +4.6``; a hyphen where there is none."""
    interval = estimate.interval
    if interval.low is None or interval.high is None:
        return NOTHING
    return f"{signed(interval.low)} to {signed(interval.high)}"


def translator_text(name: str) -> str:
    """Return the name of a translator in tables."""
    return {ALL: "all translators", "": "no translator"}.get(name, name)


def mean_row(values: Sequence[GapValue | None]) -> tuple[str, list[GapValue | None]]:
    """Return the head of a row of means, and those of its values that are means over the same languages.

    The languages are those of the value with the fewest; a mean over others is not comparable.
    """
    known = [value for value in values if value is not None]
    if not known:
        return "", []
    fewest = min(known, key=lambda value: len(value.languages))
    alike = [value if value is not None and value.languages == fewest.languages else None for value in values]
    return averaged_text(fewest), alike


def averaged_text(value: GapValue) -> str:
    """Return the languages of a mean."""
    return f"mean of {len(value.languages)}: {' '.join(value.languages)}"


def flag_texts(gaps: SystemGaps, k: float) -> list[str]:
    """Return a sentence for every contrast: the languages that exceed k standard errors for every translator."""
    names = gaps.system.translators
    if not names:
        return []
    alone = f" (one translator, {names[0]}: the translator may be the cause)" if len(names) == 1 else ""
    return [
        f"{TITLES[quantity]}: beyond {k:g} standard errors for every translator{alone}: "
        f"{' '.join(gaps.flagged[quantity]) or 'no language'}."
        for quantity in FLAGGED
        if any(value.quantity == quantity for value in gaps.values)
    ]


def correlation_text(own: Correlation) -> str:
    """Return a sentence about a rank correlation."""
    items = (
        ""
        if own.item_low is None or own.item_high is None
        else f"; over items with languages fixed {own.item_low:+.2f} to {own.item_high:+.2f}"
    )
    return (
        f"{TITLES[own.quantity]}, {translator_text(own.translator)}: Spearman's rho with pre-training size "
        f"{own.rho:+.2f} (95 % {own.low:+.2f} to {own.high:+.2f} over {len(own.languages)} languages, "
        f"p = {own.p:.3f}{items})."
    )


def script_text(gaps: SystemGaps) -> str:
    """Return how many items are not in their language's script."""
    counted = {code: count for code, count in gaps.mismatched.items() if count}
    if not gaps.mismatched:
        return "The script of the human text is unknown."
    if not counted:
        return "All human text is in the script of its language."
    counts = ", ".join(f"{code} {count:,}" for code, count in counted.items())
    return f"Items whose human text is not in the script of its language: {counts}."
