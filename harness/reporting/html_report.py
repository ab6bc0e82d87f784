"""The whole report as a page: what runs scored, where they are weak, on which items, and how they were made."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Literal

from harness.analysis.comparison import compare
from harness.errors import HarnessError
from harness.registry.registry import Registry
from harness.reporting.comparison import LEGEND, difference_tables, task_blocks
from harness.reporting.diagnosis import page_blocks
from harness.reporting.equity.report import equity_report
from harness.reporting.equity.table import equity_blocks
from harness.reporting.finding import findings
from harness.reporting.items import item_blocks, worst_items
from harness.reporting.language import language_blocks
from harness.reporting.material import Material, read_material
from harness.reporting.model import Block, Note, Notes, Report, Section
from harness.reporting.overview import overview_blocks, score_blocks
from harness.reporting.provenance import provenance_blocks
from harness.reporting.systems import system_blocks
from harness.reporting.weakness import find_weakness
from harness.running.session import open_session
from harness.storage.run_folder import Run

__all__ = ["html_report"]

COST = (
    "What a tokenizer makes of the same content in other languages: the more sub-words, the slower and dearer it is, "
    "and the less of it fits."
)


def html_report(runs: Sequence[Run]) -> Report:
    """Return the report of runs, each followed by its baselines.

    What cannot be shown (no records, records of a version that kept no inputs, runs that have nothing in common) has
    one sentence in its place.
    """
    registry = open_session().registry
    material = read_material(runs, sections=tuple(registry.report_sections))
    found = _sections(material, registry)
    return Report(
        title=f"Report: {material.summary.title}",
        subtitle=_subtitle(material),
        sections=[section for section in found if section.blocks],
    )


def _sections(material: Material, registry: Registry) -> Iterator[Section]:
    weakness = find_weakness(material.runs, registry)
    items, faults = worst_items(material)
    sentences = findings(material, weakness)
    own_names = [material.name(run) for run in material.runs]
    pages = {code: name for code, name, _ in material.languages}
    cost = equity_report(material.every)
    yield Section(name="overview", title="Overview", blocks=overview_blocks(material))
    yield Section(name="scores", title="Scores by language", blocks=score_blocks(material))
    yield from _plugin_sections(material, "scores")
    yield Section(name="systems", title="Systems", blocks=system_blocks(material))
    yield Section(name="comparison", title="Comparison", blocks=_compared(material, registry))
    yield Section(
        name="equity",
        title="What the languages cost",
        blocks=[Note(COST, "note"), *equity_blocks(cost)] if cost else [],
    )
    yield Section(name="diagnosis", title="Diagnosis", blocks=page_blocks(own_names, weakness))
    yield Section(
        name="languages",
        title="Languages: why is one weak?",
        blocks=language_blocks(material, weakness, items, sentences),
    )
    yield from _plugin_sections(material, "items")
    yield Section(name="items", title="Worst items", blocks=item_blocks(items, pages, faults))
    yield Section(name="provenance", title="Provenance", blocks=provenance_blocks(own_names, material.runs))


def _plugin_sections(material: Material, place: Literal["scores", "items"]) -> Iterator[Section]:
    """Yield what sections of plugins show in one place of the page."""
    for section, report in material.summary.extra.items():
        if section.place == place and (report.blocks or report.notes):
            blocks = [*report.blocks, Notes(report.notes)]
            yield Section(name=section.name, title=section.title, blocks=blocks)


def _compared(material: Material, registry: Registry) -> list[Block]:
    """Return the comparison of the given runs item by item; nothing where there is one run only."""
    if len(material.runs) < 2:
        return []
    try:
        compared = compare(material.runs, registry.metrics)
    except HarnessError as error:
        return [Note(f"The runs are not compared: {error}")]
    tasks = (block for task in compared.tasks for block in task_blocks(task))
    differences = difference_tables(compared, material.runs)
    return [Note(LEGEND, "note"), *tasks, *differences, Notes(compared.notes)]


def _subtitle(material: Material) -> str:
    run = material.runs[0].results.run
    languages = {cell.language for own in material.runs for cell in own.cells if cell.has("method")}
    counts = (
        (len(material.runs), "run", "runs"),
        (len(languages), "language", "languages"),
        (len({column.task for column in material.columns}), "task", "tasks"),
    )
    made = [f"Made {run.created}"] if run.created else []
    made += [f"by harness {run.harness}."] if run.harness else []
    return " ".join([*made, ", ".join(f"{n} {one if n == 1 else many}" for n, one, many in counts)]) + "."
