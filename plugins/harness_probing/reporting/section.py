"""The probes of runs as a section of reports, by language and method, and as rows of plain values, for JSON and CSV."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from harness import Run
from harness.languages import known_languages
from harness.reporting import Block, Fold, Note, SectionReport, Table, conditions_of, csv_text
from harness.storage import CellResult
from harness_probing.reporting.probe import METRIC, Probe, at_layer, is_probed, read_probes
from harness_probing.reporting.progression import (
    difference_table,
    group_tables,
    paper_table,
    progressions,
    score_table,
)
from harness_probing.reporting.tables import (
    Curve,
    Localisation,
    baseline_table,
    baseline_values,
    curve_blocks,
    curve_figures,
    curve_table,
    curves,
    depth_of,
    detail_table,
    localisation_table,
    localisations,
    unseen_table,
    variant_table,
)

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


@dataclass(frozen=True, slots=True, kw_only=True)
class ProbingSection:
    """The probes of one language and method."""

    title: str
    scores: tuple[Table, ...]
    """The main table, the differences, the baselines: what a summary shows."""
    further: tuple[Table, ...]
    """What fills a page of its own: further scores, gender variants, unseen types."""
    paper: Table
    """The scores as Tables 4 and 5 of Patil et al. (2021) print them."""
    curves: tuple[Curve, ...]
    localisations: tuple[Localisation, ...]

    @property
    def blocks(self) -> list[Block]:
        """All of it."""
        folds = [Fold(title=table.title, blocks=[table]) for table in self.further]
        return [*self._head, *folds, *curve_blocks(self.curves, self.localisations)]

    @property
    def brief(self) -> list[Block]:
        """Blocks of a summary."""
        names = ", ".join(table.title.rpartition(": ")[2] for table in self.further)
        also = [f"Also: {names}. All of it: harness report RUN --probing"] if names else []
        return [*self._head, curve_table(self.curves, *also)]

    @property
    def _head(self) -> list[Block]:
        return [Note(self.title, "heading"), Note(""), *self.scores]


def read_probing(runs: Sequence[Run]) -> SectionReport | None:
    """Return the section of all reports on the probes of runs; None where nothing was probed."""
    sections, notes = probing_sections(runs)
    if not sections and not notes:
        return None
    return SectionReport(
        blocks=[block for section in sections for block in section.blocks],
        brief=[block for section in sections for block in section.brief],
        notes=notes,
        covered=_shown(runs[0]),
        rows=lambda: probe_rows(runs),
        against=lambda others: group_tables(runs, others),
        papers=lambda: [section.paper for section in sections],
        figures=lambda: {
            name: chart
            for section in sections
            for name, chart in curve_figures(section.curves, section.localisations).items()
        },
    )


def probing_sections(runs: Sequence[Run]) -> tuple[list[ProbingSection], tuple[str, ...]]:
    """Return the probes of runs by language and method, and a sentence for each run that cannot be read."""
    probes, notes = read_probes(runs)
    groups: dict[tuple[str, str], list[Probe]] = {}
    for probe in probes:
        groups.setdefault((probe.language, probe.method), []).append(probe)
    sections = []
    for (language, method), group in groups.items():
        # The treebanks of a task come together, even if cells of its other axes are between them.
        order = list(dict.fromkeys((one.model, one.title) for one in group))
        group.sort(key=lambda one: order.index((one.model, one.title)))
        # Tasks without the axis of treebanks have tables of their own.
        having = [one for one in group if one.treebank]
        no_treebank = [one for one in group if not one.treebank]
        head = f"{_language_name(language)}, {method}"
        sections += [_section(head, having)] if having else []
        sections += [_section(f"{head}, other tasks" if having else head, no_treebank)] if no_treebank else []
    return sections, notes


def _shown(run: Run) -> frozenset[tuple[str, str, str]]:
    """Return the columns of a run that need no other table."""
    scored = [cell for cell in run.cells if cell.status == "ok"]
    having = {(*_key(cell), cell.language) for cell in scored if is_probed(cell)}
    incomplete = {key for cell in scored if (*(key := _key(cell)), cell.language) not in having}
    return frozenset((task, method, view) for task, method, view, _ in having) - incomplete


def _key(cell: CellResult) -> tuple[str, str, str]:
    return cell.task, str(cell.method), conditions_of(cell.view)


def _language_name(code: str) -> str:
    table = known_languages()
    return f"{table.get(code).name} ({code})" if code in table else code


def _section(head: str, probes: Sequence[Probe]) -> ProbingSection:
    models = dict.fromkeys(probe.model for probe in probes)
    of_model = f" of {next(iter(models))}" if len(models) == 1 else ""
    own_curves = curves(probes)
    localised = localisations(own_curves)
    all_progressions = progressions(probes)
    scores = (
        score_table(all_progressions, probes, f"{head}: last and best layer"),
        difference_table(all_progressions, f"{head}: differences between treebanks"),
        baseline_table(probes, f"{head}: baselines and controls"),
        localisation_table(localised, f"{head}: where in their depth models keep it"),
    )
    further = (
        detail_table(probes, f"{head}: further scores and counts"),
        variant_table(probes, f"{head}: gender variants"),
        unseen_table(probes, f"{head}: word types that are not in train"),
    )
    return ProbingSection(
        title=f"Probing{of_model}: {head}",
        scores=tuple(table for table in scores if table is not None),
        further=tuple(table for table in further if table is not None),
        paper=paper_table(probes, f"Probing, {head}"),
        curves=tuple(own_curves),
        localisations=tuple(localised),
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
