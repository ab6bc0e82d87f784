"""The report of the probes of runs, by language and method."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from harness import Run
from harness.languages.table import known_languages
from harness.reporting.column import conditions_of
from harness.reporting.text_table import TextTable
from harness_probing.reporting.baseline import baseline_table, detail_table, unseen_table, variant_table
from harness_probing.reporting.curve import Curve, curves
from harness_probing.reporting.localisation import Localisation, localisation_table, localisations
from harness_probing.reporting.probe import Probe, is_probed, read_probes
from harness_probing.reporting.progression import difference_table, progressions, score_table

__all__ = ["ProbingReport", "ProbingSection", "probing_report"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ProbingSection:
    """The probes of one language and method."""

    title: str
    scores: tuple[TextTable, ...]
    """The main table, the differences, the baselines: what a summary shows."""
    further: tuple[TextTable, ...]
    """What fills a page of its own: further scores, gender variants, unseen types."""
    curves: tuple[Curve, ...]
    localisations: tuple[Localisation, ...]

    @property
    def tables(self) -> tuple[TextTable, ...]:
        """All tables."""
        return (*self.scores, *self.further)


@dataclass(frozen=True, slots=True, kw_only=True)
class ProbingReport:
    """Empty where nothing was probed."""

    sections: tuple[ProbingSection, ...] = ()
    notes: tuple[str, ...] = ()
    shown: frozenset[tuple[str, str, str]] = frozenset()
    """Task, method and conditions of the first run's cells whose scores are shown here for all their languages."""

    def __bool__(self) -> bool:
        """Whether there is something to show."""
        return bool(self.sections or self.notes)


def probing_report(runs: Sequence[Run]) -> ProbingReport:
    """Return the report of the probes of runs."""
    probes, notes = read_probes(runs)
    groups: dict[tuple[str, str], list[Probe]] = {}
    for probe in probes:
        groups.setdefault((probe.language, probe.method), []).append(probe)
    for own in groups.values():
        # The treebanks of a task come together, even if cells of its other axes are between them.
        places = {
            key: place for place, key in enumerate(dict.fromkeys((one.model, one.title) for one in own))
        }
        own.sort(key=lambda one: places[one.model, one.title])
    sections = []
    for (language, method), own in groups.items():
        # Tasks without the axis of treebanks have tables of their own.
        having = [one for one in own if one.treebank]
        others = [one for one in own if not one.treebank]
        head = f"{_language_name(language)}, {method}"
        sections += [_section(head, having)] if having else []
        sections += [_section(f"{head}, other tasks" if having else head, others)] if others else []
    return ProbingReport(sections=tuple(sections), notes=notes, shown=_shown(runs[0]))


def _shown(run: Run) -> frozenset[tuple[str, str, str]]:
    """Return the columns of a run that need no other table."""
    scored = [cell for cell in run.cells if cell["status"] == "ok"]
    having = {(*_key(cell), cell["language"]) for cell in scored if is_probed(cell)}
    incomplete = {key for cell in scored if (*(key := _key(cell)), cell["language"]) not in having}
    return frozenset((task, method, view) for task, method, view, _ in having) - incomplete


def _key(cell: Mapping[str, Any]) -> tuple[str, str, str]:
    return cell["task"], cell["method"], conditions_of(cell["view"])


def _language_name(code: str) -> str:
    table = known_languages()
    return f"{table.get(code).name} ({code})" if code in table else code


def _section(head: str, probes: Sequence[Probe]) -> ProbingSection:
    models = dict.fromkeys(probe.model for probe in probes)
    of_model = f" of {next(iter(models))}" if len(models) == 1 else ""
    own_curves = curves(probes)
    places = localisations(own_curves)
    found = progressions(probes)
    scores = (
        score_table(found, probes, f"{head}: last and best layer"),
        difference_table(found, f"{head}: differences between treebanks"),
        baseline_table(probes, f"{head}: baselines and controls"),
        localisation_table(places, f"{head}: where in their depth models keep it"),
    )
    further = (
        detail_table(probes, f"{head}: further scores and counts"),
        variant_table(probes, f"{head}: gender variants"),
        unseen_table(probes, f"{head}: word types that are not in train"),
    )
    return ProbingSection(
        title=f"Probing{of_model}: {head}",
        scores=tuple(one for one in scores if one is not None),
        further=tuple(one for one in further if one is not None),
        curves=tuple(own_curves),
        localisations=tuple(places),
    )
