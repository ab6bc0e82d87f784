"""The probes of runs, as ``results.json`` keeps them: one task of one model on one treebank."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from harness import Run
from harness.reporting import conditions_of, system_names
from harness.storage import CellResult

SCHEMA = 1
METRIC = "weighted_f1"
"""The published score (Patil et al. 2021)."""
TREEBANK = "treebank"
"""The axis whose values are shown side by side."""
TREEBANK_NAMES = {"original": "original", "cg": "CG", "cscg": "csCG"}
"""In the order of the paper, as it calls them; others follow under their own names."""

Block = Mapping[str, Any]
Entry = Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Probe:
    """Results of the probes of one task in the layers of one model, on one treebank."""

    model: str
    """What the report calls the run."""
    task: str
    view: str
    """The conditions but the treebank: ``inputs=full``; empty where there are none."""
    treebank: str
    """Empty for a task without this axis."""
    language: str
    method: str
    stands_in: bool
    """Whether it was scored on another split than test."""
    details: Mapping[str, Any]
    """``details.probing`` of the cell."""
    groups: Mapping[str, tuple[float, int]]
    """Scores of gender variants with their numbers of observations: the mean over the cells of all seeds."""
    counts: bool = True
    """Whether it is in its suite's average; one of other inputs than the suite takes is not."""
    data: str = "local"
    """``sample`` where the scores say nothing about the model."""

    @property
    def title(self) -> str:
        """The task with its view."""
        return f"{self.task} {self.view}".rstrip()

    @property
    def treebank_name(self) -> str:
        """Name of the treebank in reports."""
        return TREEBANK_NAMES.get(self.treebank, self.treebank)

    @property
    def name(self) -> str:
        """Model, task, view and treebank."""
        return " ".join(text for text in (self.model, self.title, self.treebank_name) if text)

    @property
    def problem(self) -> Mapping[str, Any]:
        """Its results, one of ``ProbeResult.problems``."""
        results: Mapping[str, Any] = self.details["problem"]
        return results

    @property
    def best(self) -> Block:
        """The scores of the chosen layer; ``chosen_on`` says by which split."""
        scores: Block = self.problem["headline"]
        return scores

    @property
    def last(self) -> Block:
        """The scores of the last layer."""
        scores: Block = self.problem["last"]
        return scores

    @property
    def layers(self) -> Sequence[Entry]:
        """One entry per layer, in order: the layer curve."""
        curve: Sequence[Entry] = self.problem["layers"]
        return curve

    @property
    def random_layers(self) -> Sequence[Entry]:
        """The layer curve of the encoder with random weights; empty where it was not run."""
        encoder = self.details.get("random_encoder")
        curve: Sequence[Entry] = encoder["layers"] if encoder else ()
        return curve

    @property
    def chosen(self) -> Entry | None:
        """The entry of the chosen layer in the layer curve."""
        return at_layer(self.layers, self.best["layer"])

    @property
    def depth(self) -> int:
        """Number of the last layer."""
        return int(self.last["layer"])


def at_layer(entries: Sequence[Entry], layer: int) -> Entry | None:
    """Return the entry of a layer in a layer curve, or None where it was not probed."""
    return next((entry for entry in entries if entry["layer"] == layer), None)


def is_probed(cell: CellResult) -> bool:
    """Whether a cell of ``results.json`` holds probes that can be read."""
    details = _kept(cell)
    return details is not None and details.get("schema") == SCHEMA


def _kept(cell: CellResult) -> Mapping[str, Any] | None:
    if cell.status != "ok":
        return None
    details: Mapping[str, Any] | None = (cell.details or {}).get("probing")
    return details


def read_probes(runs: Sequence[Run]) -> tuple[tuple[Probe, ...], tuple[str, ...]]:
    """Return all probes of runs in the order of their cells, and a sentence for every run that cannot be read.

    The cell of the first seed holds the results of all seeds.
    """
    # A run may be named twice, or as a baseline of another.
    runs = list({run.path.resolve(): run for run in runs}.values())
    probes: list[Probe] = []
    notes: list[str] = []
    for run, name in zip(runs, system_names(runs), strict=True):
        for cell in run.cells:
            details = _kept(cell)
            if details is None:
                continue
            if not is_probed(cell):
                notes.append(
                    f"The probing results of {name} have the schema {details.get('schema')!r}, not {SCHEMA}: "
                    "another version of the harness wrote them, and they are not shown."
                )
                continue
            probes.append(_probe(run, name, cell, details))
    return tuple(probes), tuple(dict.fromkeys(notes))


def _probe(run: Run, name: str, cell: CellResult, kept: Mapping[str, Any]) -> Probe:
    view = {key: value for key, value in cell.view.items() if key != TREEBANK}
    return Probe(
        model=name,
        task=cell.task,
        view=conditions_of(view),
        treebank=str(cell.view.get(TREEBANK, "")),
        language=cell.language,
        method=str(cell.method),
        stands_in=bool(cell.stands_in),
        details=kept,
        groups=_groups(run, cell),
        counts=_counts(run, cell),
        data=run.results.run.data,
    )


def _counts(run: Run, cell: CellResult) -> bool:
    fixed = [suite.views.get(cell.task, {}) for suite in run.manifest.suites]
    return all(cell.view.get(key) == value for view in fixed for key, value in view.items())


def _groups(run: Run, cell: CellResult) -> dict[str, tuple[float, int]]:
    def same(own: CellResult) -> tuple[Any, ...]:
        return own.task, own.language, own.view, own.method, own.protocol

    by_group: dict[str, list[tuple[float, int]]] = {}
    for peer in run.cells:
        if peer.status == "ok" and METRIC in peer.metrics and same(peer) == same(cell):
            for group, score in peer.metrics[METRIC].groups.items():
                by_group.setdefault(group, []).append((score.value, score.n))
    return {
        group: (sum(value for value, _ in scores) / len(scores), scores[0][1])
        for group, scores in sorted(by_group.items())
    }


def ordered_treebanks(probes: Sequence[Probe]) -> tuple[str, ...]:
    """Return the treebanks of probes, those of the paper first and in its order."""
    treebanks = dict.fromkeys(probe.treebank for probe in probes)
    published = [name for name in TREEBANK_NAMES if name in treebanks]
    return (*published, *(name for name in treebanks if name not in TREEBANK_NAMES))
