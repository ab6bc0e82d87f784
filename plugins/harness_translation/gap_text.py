"""Words and numbers that the terminal's tables and the page of gaps share."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from harness_translation.gap import ALL, GapValue, SystemGaps
from harness_translation.gap_correlation import Correlation
from harness_translation.gap_formula import FLAGGED, TITLES
from harness_translation.gap_means import Estimate

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
    "and favours models trained on translated text; read TE - ZS beside delta."
)
LEGEND: Final = (
    "Scores and differences x100. ZS: human translation; TT: it, translated into the source language; TE: the source "
    "text, translated; BT: that, translated back. Intervals: 95 %, bootstrap over clusters of items, all versions in "
    "the same resamples. Means are means of the languages' own values. * exceeds k standard errors for every "
    "translator. ~ compares more than translations. A mean of other languages than its row's is "
    "left out."
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
    """Return what a translator is called in tables."""
    return {ALL: "all translators", "": "no translator"}.get(name, name)


def mean_row(values: Sequence[GapValue | None]) -> tuple[str, list[GapValue | None]]:
    """Return what a row of means is of, and those of its values that are of just these languages.

    They are those of the value with the fewest languages; a mean of others would not compare with it.
    """
    known = [value for value in values if value is not None]
    if not known:
        return "", []
    fewest = min(known, key=lambda value: len(value.languages))
    alike = [value if value is not None and value.languages == fewest.languages else None for value in values]
    return averaged_text(fewest), alike


def averaged_text(value: GapValue) -> str:
    """Return which languages a mean is of."""
    return f"mean of {len(value.languages)}: {' '.join(value.languages)}"


def flag_texts(gaps: SystemGaps, k: float) -> list[str]:
    """Return a sentence for every contrast: the languages that exceed k standard errors for every translator."""
    names = gaps.system.translators
    if not names:
        return []
    alone = f" (one translator, {names[0]}: it may be the translator's doing)" if len(names) == 1 else ""
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
    told = {code: count for code, count in gaps.mismatched.items() if count}
    if not gaps.mismatched:
        return "The script of the human text is not known."
    if not told:
        return "All human text is in the script of its language."
    counts = ", ".join(f"{code} {count:,}" for code, count in told.items())
    return f"Items whose human text is not in the script of its language: {counts}."
