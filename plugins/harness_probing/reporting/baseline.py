"""What is shown with the score of a probe: baselines, controls, code lengths, the scalar mix, coverage."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from harness.reporting.number import NOTHING, percent, signed
from harness.reporting.text_table import TextTable
from harness_probing.reporting.probe import METRIC, Probe, at_layer
from harness_probing.reporting.task_rows import rows_by_task

__all__ = [
    "baseline_table",
    "baseline_values",
    "detail_table",
    "unseen_table",
    "variant_table",
]

EMBEDDINGS = 0
NAMED = 3
"""Probes that a note names."""
BASELINE_HEADS = (
    "best",
    "majo-\nrity",
    "word\ntype",
    "random\nencoder",
    "layer\n0",
    "selec-\ntivity",
    "compr.",
    "gravity",
)
BASELINE_NOTES = (
    "All at the best layer. Majority: the most frequent class of train; word type: that of every word type. "
    "Random encoder: the same architecture with random weights, at its own best layer. Layer 0: the embeddings.",
    "Selectivity: the score minus that on a control task (Hewitt and Liang 2019), points. Compr.: how many times "
    "shorter the labels' online code is than the uniform one (Voita and Titov 2020). Gravity: the mean layer of a "
    "scalar mix of all layers (Tenney et al. 2019).",
)


def baseline_values(probe: Probe) -> dict[str, float | None]:
    """Return the baselines of a probe and what its layers say of it; fractions, ratios, and a layer number."""
    baselines: Mapping[str, Mapping[str, float]] = probe.problem["baselines"]
    chosen = probe.chosen or {}
    mix = probe.problem.get("mix")
    random = probe.details.get("random_encoder")
    embeddings = at_layer(probe.layers, EMBEDDINGS)
    return {
        "majority": _baseline(baselines, "majority"),
        "type_majority": _baseline(baselines, "type_majority"),
        "random_encoder": random["headline"][METRIC]["value"] if random else None,
        "layer_0": embeddings["test"][METRIC]["value"] if embeddings else None,
        "selectivity": chosen["selectivity"][METRIC]["value"] if "selectivity" in chosen else None,
        "compression": chosen["code"]["compression"] if "code" in chosen else None,
        "center_of_gravity": mix["center_of_gravity"] if mix else None,
    }


def _baseline(baselines: Mapping[str, Mapping[str, float]], name: str) -> float | None:
    return baselines[name][METRIC] if name in baselines else None


def baseline_table(probes: Sequence[Probe], title: str) -> TextTable:
    """Return the baselines of every score."""
    return TextTable(
        title=title,
        corner="task",
        heads=BASELINE_HEADS,
        rows=tuple(rows_by_task(probes, _baseline_fields)),
        notes=BASELINE_NOTES,
    )


def _baseline_fields(probe: Probe) -> tuple[str, ...]:
    own = baseline_values(probe)
    names = ("majority", "type_majority", "random_encoder", "layer_0")
    return (
        percent(probe.best[METRIC]["value"]),
        *(percent(own[name]) for name in names),
        signed(own["selectivity"]),
        _ratio(own["compression"]),
        _ratio(own["center_of_gravity"]),
    )


def _ratio(value: float | None) -> str:
    return NOTHING if value is None else f"{value:.2f}"


def detail_table(probes: Sequence[Probe], title: str) -> TextTable:
    """Return the further scores of the best layer, their spread over seeds, and what they are counted over."""
    notes = [
        "At the best layer. SD: over the seeds of the probes, points. Clusters: source sentences.",
        *_coverage_notes(probes),
    ]
    return TextTable(
        title=title,
        corner="task",
        heads=(
            "weighted\nF1",
            "SD",
            "macro\nF1",
            "accu-\nracy",
            "train",
            "dev",
            "test\nitems",
            "clus-\nters",
        ),
        rows=tuple(rows_by_task(probes, _detail_fields)),
        notes=tuple(notes),
    )


def _detail_fields(probe: Probe) -> tuple[str, ...]:
    best, items = probe.best, probe.problem["items"]
    return (
        percent(best[METRIC]["value"]),
        percent(best[METRIC]["sd"]),
        percent(best["macro_f1"]["value"]),
        percent(best["accuracy"]["value"]),
        *(f"{items[split]:,}" for split in ("train", "dev", "test")),
        f"{best['clusters']:,}",
    )


def _coverage_notes(probes: Sequence[Probe]) -> Iterator[str]:
    """Yield what did not reach the probes, each with the probes that it is about."""
    found: dict[str, list[str]] = {}
    for probe in probes:
        for fact in _coverage(probe):
            found.setdefault(fact, []).append(probe.name)
    for fact, names in found.items():
        more = f" and {len(names) - NAMED} more" if len(names) > NAMED else ""
        yield f"{fact}: {', '.join(names[:NAMED])}{more}."


def _coverage(probe: Probe) -> Iterator[str]:
    items = probe.problem["items"]
    if items["missing_in_train"]:
        yield (
            f"Not in train: {', '.join(items['missing_in_train'])}, which "
            f"{items['test_items_of_missing_classes']:,} test items have, and which count as wrong"
        )
    for split, counts in probe.details.get("coverage", {}).items():
        for key, fact in (("truncated_sentences", "Sentences cut"), ("empty_words", "Words without a piece")):
            if counts.get(key):
                yield f"{fact} in {split}, {counts[key]:,}"


def variant_table(probes: Sequence[Probe], title: str) -> TextTable | None:
    """Return the scores of every gender variant; None where no probe has several."""
    having = [probe for probe in probes if len(probe.groups) > 1]
    if not having:
        return None
    names = tuple(sorted({name for probe in having for name in probe.groups}))

    def fields(probe: Probe) -> tuple[str, ...] | None:
        if len(probe.groups) < 2:
            return None
        values = {name: value for name, (value, _) in probe.groups.items()}
        spread = max(values.values()) - min(values.values())
        return (*(percent(values.get(name)) for name in names), percent(spread))

    counts = [count for probe in having for _, count in probe.groups.values()]
    return TextTable(
        title=title,
        corner="task",
        heads=(*names, "spread"),
        rows=tuple(rows_by_task(having, fields)),
        notes=(
            f"Weighted F1 x100 of each variant alone ({min(counts):,} to {max(counts):,} items), at the best layer. "
            "Spread: the best variant minus the worst.",
        ),
    )


def unseen_table(probes: Sequence[Probe], title: str) -> TextTable | None:
    """Return the scores of test words whose type is in train, and of all others; None for tasks over sentences."""
    having = [probe for probe in probes if probe.details.get("unseen_types")]
    if not having:
        return None
    return TextTable(
        title=title,
        corner="task",
        heads=("types", "unseen\n%", "items", "unseen\n%", "F1\nseen", "F1\nunseen", "differ-\nence"),
        rows=tuple(rows_by_task(having, _unseen_fields)),
        notes=(
            "Word types of test, those that are not in train, and weighted F1 x100 of their items at the best layer.",
        ),
    )


def _unseen_fields(probe: Probe) -> tuple[str, ...]:
    own: Mapping[str, Any] = probe.details["unseen_types"]
    seen, unseen = own["weighted_f1_seen"], own["weighted_f1_unseen"]
    return (
        f"{own['types']:,}",
        _share(own["unseen"], own["types"]),
        f"{own['items']:,}",
        _share(own["unseen_items"], own["items"]),
        percent(seen),
        percent(unseen),
        signed(None if seen is None or unseen is None else unseen - seen),
    )


def _share(part: int, whole: int) -> str:
    return percent(part / whole) if whole else NOTHING
