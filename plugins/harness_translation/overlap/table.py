"""Attention overlap as a table like Table 3: texts by languages."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

HUMAN = "zs"
Row = Mapping[str, Any]


def overlap_table(results: Sequence[Row]) -> tuple[list[str], list[list[str]]]:
    """Return heads and rows: one row per text (human, machine) and scale, one column per language."""
    languages = list(dict.fromkeys(str(one["language"]) for one in results))
    keys = list(dict.fromkeys(_key(one) for one in results))
    models = len({key[:2] for key in keys}) > 1
    by_key = {(_key(one), one["language"]): one for one in results}
    rows: list[list[str]] = []
    for task, seed, text in keys:
        head = [f"{task}, {seed}"] if models else []
        own = [by_key.get(((task, seed, text), code)) for code in languages]
        for name, scale in (("overlap_sum", "sum (0..2)"), ("overlap_mean", "mean (0..1)")):
            rows.append([*head, text, scale, *(_shown(one[name]) if one else "" for one in own)])
            differences = [one["minus_human"] if one else None for one in own]
            if any(differences):
                fields = [_shown(one[name]) if one else "" for one in differences]
                rows.append([*head, f"{text} - human", scale, *fields])
    return [*(["model"] if models else []), "text", "overlap", *languages], rows


def overlap_notes(results: Sequence[Row]) -> list[str]:
    """Return one line per result: the items that were measured and skipped."""
    lines = []
    for row in results:
        reasons = {"too long": "truncated", "not translated": "missing", "undefined": "undefined"}
        out = ", ".join(f"{row[name]:,} {reason}" for reason, name in reasons.items() if row[name])
        lines.append(
            f"{row['task']} {row['language']}, {_text(row)}: {row['n']:,} of {row['correct']:,} items that the "
            f"model got right in English, of {row['labelled']:,}; {100 * (row['linked'] or 0):.1f} % of English "
            f"words linked" + (f"; skipped: {out}" if out else "")
        )
    return lines


def _key(one: Row) -> tuple[str, str, str]:
    return one["task"], f"seed {one['seed']}, fit {one['fit']}", _text(one)


def _text(one: Row) -> str:
    if one["variant"] == HUMAN:
        return "human"
    return f"machine ({', '.join(filter(None, (one['variant'], one['translator'])))})"


def _shown(value: Mapping[str, Any]) -> str:
    if value["value"] is None:
        return "-"
    ends = value["ci"]
    return f"{value['value']:.3f}" + (f" [{ends[0]:.3f}, {ends[1]:.3f}]" if ends else "")
