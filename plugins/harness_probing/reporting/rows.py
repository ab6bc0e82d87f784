"""The probes of runs as rows of plain values, one per layer, for JSON and CSV."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from harness import Run
from harness.reporting import csv_text
from harness_probing.reporting.curve import depth_of
from harness_probing.reporting.probe import METRIC, Probe, at_layer, read_probes
from harness_probing.reporting.tables import baseline_values

COLUMNS = (
    "model",
    "task",
    "view",
    "treebank",
    "language",
    "method",
    "data",
    "stands_in",
    "layer",
    "depth",
    "best",
    "last",
    "chosen_on",
    "weighted_f1",
    "sd",
    "ci_low",
    "ci_high",
    "macro_f1",
    "accuracy",
    "control",
    "selectivity",
    "compression",
    "random_encoder",
    "mix_weight",
    "center_of_gravity",
    "majority",
    "type_majority",
)


def probe_rows(runs: Sequence[Run]) -> list[dict[str, Any]]:
    """Return one row for every layer of every probe; scores are fractions, depth runs from 0 to 1.

    ``random_encoder`` is the score of the encoder with random weights in this layer; the interval is given of the
    best and the last layer.
    """
    probes, _ = read_probes(runs)
    return [row for probe in probes for row in _rows(probe)]


def _rows(probe: Probe) -> Iterator[dict[str, Any]]:
    baselines = baseline_values(probe)
    mix = probe.problem.get("mix")
    for entry in probe.layers:
        layer, test = entry["layer"], entry["test"]
        random = at_layer(probe.random_layers, layer)
        low, high = _interval(probe, layer)
        yield {
            **dict.fromkeys(COLUMNS),
            "model": probe.model,
            "task": probe.task,
            "view": probe.view,
            "treebank": probe.treebank or None,
            "language": probe.language,
            "method": probe.method,
            "data": probe.data,
            "stands_in": probe.stands_in,
            "layer": layer,
            "depth": depth_of(probe, layer),
            "best": layer == probe.best["layer"],
            "last": layer == probe.depth,
            "chosen_on": probe.best["chosen_on"],
            "weighted_f1": test[METRIC]["value"],
            "sd": test[METRIC]["sd"],
            "ci_low": low,
            "ci_high": high,
            "macro_f1": test["macro_f1"]["value"],
            "accuracy": test["accuracy"]["value"],
            "control": _value(entry, "control"),
            "selectivity": _value(entry, "selectivity"),
            "compression": entry["code"]["compression"] if "code" in entry else None,
            "random_encoder": _value(random, "test"),
            "mix_weight": mix["weights"].get(str(layer)) if mix else None,
            **{name: baselines[name] for name in ("center_of_gravity", "majority", "type_majority")},
        }


def _interval(probe: Probe, layer: int) -> tuple[float | None, float | None]:
    for block in (probe.best, probe.last):
        if block["layer"] == layer and block[METRIC].get("ci"):
            low, high = block[METRIC]["ci"]
            return low, high
    return None, None


def _value(entry: Mapping[str, Any] | None, key: str) -> float | None:
    return None if entry is None or key not in entry else float(entry[key][METRIC]["value"])


def render_probe_csv(runs: Sequence[Run]) -> str:
    """Return the rows as CSV with a header."""
    return csv_text(probe_rows(runs), COLUMNS)
