"""Attention overlap as rows of plain objects and as a table like Table 3: texts by languages."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from harness.statistics.interval import Interval
from harness_translation.overlap.measure import OverlapResult, OverlapSettings

__all__ = ["overlap_notes", "overlap_rows", "overlap_table"]

HUMAN = "zs"


def overlap_rows(
    results: Sequence[OverlapResult], settings: OverlapSettings, aligner: Mapping[str, str]
) -> list[dict[str, Any]]:
    """Return one row per result, with all settings and the identity of the aligner."""
    return [
        {
            "task": one.task,
            "language": one.language,
            "variant": one.variant,
            "translator": one.translator,
            "seed": one.seed,
            "fit": one.fit,
            "overlap_sum": {"value": one.sum, **one.sum_interval.to_json()},
            "overlap_mean": {"value": one.mean, **one.mean_interval.to_json()},
            "sentences": list(one.sentences),
            "linked": one.linked,
            "n": one.n,
            "labelled": one.labelled,
            "correct": one.correct,
            "truncated": one.truncated,
            "missing": one.missing,
            "undefined": one.undefined,
            "settings": asdict(settings),
            "aligner": dict(aligner),
        }
        for one in results
    ]


def overlap_table(results: Sequence[OverlapResult]) -> tuple[list[str], list[list[str]]]:
    """Return heads and rows: one row per text (human, machine) and scale, one column per language."""
    languages = list(dict.fromkeys(one.language for one in results))
    keys = list(dict.fromkeys(_key(one) for one in results))
    models = len({key[:2] for key in keys}) > 1
    found = {(_key(one), one.language): one for one in results}
    rows: list[list[str]] = []
    for key in keys:
        task, seed, text = key
        own = [found.get((key, code)) for code in languages]
        head = [f"{task}, {seed}"] if models else []
        shown = [_shown(one.sum, one.sum_interval) if one else "" for one in own]
        rows.append([*head, text, "sum (0..2)", *shown])
        shown = [_shown(one.mean, one.mean_interval) if one else "" for one in own]
        rows.append([*head, text, "mean (0..1)", *shown])
    return [*(["model"] if models else []), "text", "overlap", *languages], rows


def overlap_notes(results: Sequence[OverlapResult]) -> list[str]:
    """Return one line per result: the items that were measured and skipped."""
    lines = []
    for one in results:
        left = {"too long": one.truncated, "not translated": one.missing, "undefined": one.undefined}
        out = ", ".join(f"{count:,} {reason}" for reason, count in left.items() if count)
        lines.append(
            f"{one.task} {one.language}, {_text(one)}: {one.n:,} of {one.correct:,} items that the model got right "
            f"in English, of {one.labelled:,}; {100 * (one.linked or 0):.1f} % of English words linked"
            + (f"; skipped: {out}" if out else "")
        )
    return lines


def _key(one: OverlapResult) -> tuple[str, str, str]:
    return one.task, f"seed {one.seed}, fit {one.fit}", _text(one)


def _text(one: OverlapResult) -> str:
    if one.variant == HUMAN:
        return "human"
    return f"machine ({', '.join(filter(None, (one.variant, one.translator)))})"


def _shown(value: float | None, interval: Interval) -> str:
    if value is None:
        return "-"
    if interval.low is None or interval.high is None:
        return f"{value:.3f}"
    return f"{value:.3f} [{interval.low:.3f}, {interval.high:.3f}]"
