"""Tables of probes: baselines and controls, further scores, gender variants, unseen types, depth."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from harness.reporting import BLANK, Table, TableRow, percent, signed
from harness_probing.reporting.curve import Localisation, depth_of
from harness_probing.reporting.probe import METRIC, Probe, at_layer

LABEL_WIDTH = 30
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
DETAIL_HEADS = (
    "weighted\nF1",
    "SD",
    "macro\nF1",
    "accu-\nracy",
    "train",
    "dev",
    "test\nitems",
    "clus-\nters",
)
UNSEEN_HEADS = ("types", "unseen\n%", "items", "unseen\n%", "F1\nseen", "F1\nunseen", "differ-\nence")
DEPTH_HEADS = ("layers", "best\nlayer", "depth", "best", "last", "gravity", "depth")
BASELINE_NOTES = (
    "All at the best layer. Majority: the most frequent class of train; word type: that of every word type. "
    "Random encoder: the same architecture with random weights, at its own best layer. Layer 0: the embeddings.",
    "Selectivity: the score minus that on a control task (Hewitt and Liang 2019), points. Compr.: how many times "
    "shorter the labels' online code is than the uniform one (Voita and Titov 2020). Gravity: the mean layer of a "
    "scalar mix of all layers (Tenney et al. 2019).",
)


def probe_table(
    title: str, heads: Sequence[str], rows: Iterable[TableRow], notes: Iterable[str] = ()
) -> Table:
    """Return a table of probes whose labels fold in a terminal."""
    return Table(
        title=title, corner="task", heads=tuple(heads), rows=tuple(rows), notes=tuple(notes), folding=True,
        label_width=LABEL_WIDTH, style="levels",
    )  # fmt: skip


def titled_rows(model: str, rows: Iterable[TableRow], *, alone: bool) -> list[TableRow]:
    """Return the rows of a model, under its name if there are several models."""
    rows = list(rows)
    return rows if alone or not rows else [TableRow(label=model, style="head"), *rows]


def rows_by_task(
    probes: Sequence[Probe], fields: Callable[[Probe], tuple[str, ...] | None]
) -> list[TableRow]:
    """Return a row for every probe that has fields: by model, then by task, then by treebank."""
    table_rows: list[TableRow] = []
    heads: tuple[str, str] | None = None
    models = {probe.model for probe in probes}
    for model in dict.fromkeys(probe.model for probe in probes):
        rows: list[TableRow] = []
        for probe in probes:
            row_fields = fields(probe) if probe.model == model else None
            if row_fields is None:
                continue
            if not probe.treebank:
                rows.append(TableRow(label=probe.title, fields=row_fields))
                continue
            if heads != (model, probe.title):
                rows.append(TableRow(label=probe.title))
                heads = (model, probe.title)
            rows.append(TableRow(label=probe.treebank_name, fields=row_fields, depth=1))
        table_rows += titled_rows(model, rows, alone=len(models) == 1)
    return table_rows


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


def baseline_table(probes: Sequence[Probe], title: str) -> Table:
    """Return the baselines of every score."""
    return probe_table(title, BASELINE_HEADS, rows_by_task(probes, _baseline_fields), BASELINE_NOTES)


def _baseline_fields(probe: Probe) -> tuple[str, ...]:
    values = baseline_values(probe)
    names = ("majority", "type_majority", "random_encoder", "layer_0")
    return (
        percent(probe.best[METRIC]["value"]),
        *(percent(values[name]) for name in names),
        signed(values["selectivity"]),
        _ratio(values["compression"]),
        _ratio(values["center_of_gravity"]),
    )


def _ratio(value: float | None) -> str:
    return BLANK if value is None else f"{value:.2f}"


def detail_table(probes: Sequence[Probe], title: str) -> Table:
    """Return the further scores of the best layer, their spread over seeds, and what they are counted over."""
    notes = [
        "At the best layer. SD: over the seeds of the probes, points. Clusters: source sentences.",
        *_coverage_notes(probes),
    ]
    return probe_table(title, DETAIL_HEADS, rows_by_task(probes, _detail_fields), notes)


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
    """Yield notes on items that did not reach the probes, each with its probes."""
    names_by_fact: dict[str, list[str]] = {}
    for probe in probes:
        for fact in _coverage(probe):
            names_by_fact.setdefault(fact, []).append(probe.name)
    for fact, names in names_by_fact.items():
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


def variant_table(probes: Sequence[Probe], title: str) -> Table | None:
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
    note = (
        f"Weighted F1 x100 of each variant alone ({min(counts):,} to {max(counts):,} items), at the best layer. "
        "Spread: the best variant minus the worst."
    )
    return probe_table(title, (*names, "spread"), rows_by_task(having, fields), [note])


def unseen_table(probes: Sequence[Probe], title: str) -> Table | None:
    """Return the scores of test words whose type is in train, and of all others; None for tasks over sentences."""
    having = [probe for probe in probes if probe.details.get("unseen_types")]
    if not having:
        return None
    note = "Word types of test, those that are not in train, and weighted F1 x100 of their items at the best layer."
    return probe_table(title, UNSEEN_HEADS, rows_by_task(having, _unseen_fields), [note])


def _unseen_fields(probe: Probe) -> tuple[str, ...]:
    counts: Mapping[str, Any] = probe.details["unseen_types"]
    seen_f1, unseen_f1 = counts["weighted_f1_seen"], counts["weighted_f1_unseen"]
    return (
        f"{counts['types']:,}",
        _share(counts["unseen"], counts["types"]),
        f"{counts['items']:,}",
        _share(counts["unseen_items"], counts["items"]),
        percent(seen_f1),
        percent(unseen_f1),
        signed(None if seen_f1 is None or unseen_f1 is None else unseen_f1 - seen_f1),
    )


def _share(part: int, whole: int) -> str:
    return percent(part / whole) if whole else BLANK


def localisation_table(found: Sequence[Localisation], title: str) -> Table | None:
    """Return where every model has its best layer and its centre of gravity; None where there is one model."""
    rows = [row for localisation in found for row in _rows(localisation)]
    if not rows:
        return None
    note = "Depth: the layer divided by the last one. Gravity: the mean layer of a scalar mix of all layers."
    return replace(probe_table(title, DEPTH_HEADS, rows, [note]), corner="task and model")


def _rows(one: Localisation) -> Iterator[TableRow]:
    yield TableRow(label=one.title)
    for curve in one.curves:
        probe = curve.probe
        gravity = baseline_values(probe)["center_of_gravity"]
        yield TableRow(
            label=probe.model,
            fields=(
                str(probe.depth),
                str(probe.best["layer"]),
                f"{depth_of(probe, probe.best['layer']):.2f}",
                percent(probe.best[METRIC]["value"]),
                percent(probe.last[METRIC]["value"]),
                BLANK if gravity is None else f"{gravity:.2f}",
                BLANK if gravity is None else f"{depth_of(probe, gravity):.2f}",
            ),
            depth=1,
        )
