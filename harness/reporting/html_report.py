"""The whole report as a page: what runs scored, where they are weak, on which items, and how they were made."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Literal

from harness.registry.registry import Registry
from harness.reporting.blocks.model import Block, Note, Notes, Report, Section
from harness.reporting.blocks.remark import counted
from harness.reporting.comparison.comparison import page_comparison
from harness.reporting.cost.report import equity_report
from harness.reporting.cost.table import equity_blocks
from harness.reporting.languages.finding import findings
from harness.reporting.languages.language import language_blocks
from harness.reporting.overview.glance import Glance, glance
from harness.reporting.overview.material import Material, read_material
from harness.reporting.overview.opening import MISSING, banners, chips, glossary_blocks
from harness.reporting.overview.overview import overview_blocks, task_blocks
from harness.reporting.overview.provenance import provenance_blocks
from harness.reporting.overview.score_table import missing_blocks, score_blocks
from harness.reporting.overview.systems import downloads, system_table
from harness.reporting.weakness.diagnosis import page_blocks
from harness.reporting.weakness.items import item_blocks, worst_items
from harness.reporting.weakness.weakness import find_weakness
from harness.running.session import open_session
from harness.storage.run_folder import Run

MADE = "How it was made"
TABS = ("Overview", "Comparison", "Languages", "Tasks", "Items", "Cost", MADE)
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
    first = glance(material.every, material.summary)
    candidates = _sections(material, first, registry)
    sections = [section for section in candidates if section.blocks]
    words = glossary_blocks(block for section in sections for block in section.blocks)
    sections += [Section(name="glossary", title="Glossary", tab=MADE, blocks=words)] if words else []
    return Report(
        title=_title(material),
        sections=sorted(sections, key=lambda section: TABS.index(section.tab)),
        chips=chips(material.runs[0]),
        banners=banners(material),
        downloads=downloads(material, system_table(material)),
    )


def _sections(material: Material, first: Glance, registry: Registry) -> Iterator[Section]:
    weakness = find_weakness(material.runs, registry)
    items, faults = worst_items(material)
    sentences = findings(material, weakness)
    names = [material.name(run) for run in material.runs]
    pages = {code: name for code, name, _ in material.languages}
    cost = equity_report(material.every)
    for name, title, tab, blocks in (
        ("overview", "Overview", "Overview", overview_blocks(material, first, sentences)),
        ("comparison", "Comparison", "Comparison", page_comparison(material.runs, registry.metrics)),
        ("scores", "Scores by language", "Languages", score_blocks(material)),
        (
            "languages",
            "Languages: why is one weak?",
            "Languages",
            language_blocks(material, weakness, items, sentences),
        ),
        ("diagnosis", "Diagnosis", "Languages", page_blocks(names, weakness)),
        ("tasks", "Systems and tasks", "Tasks", task_blocks(material)),
        (
            "equity",
            "What the languages cost",
            "Cost",
            [Note(COST), *equity_blocks(cost, legend_first=True)] if cost else [],
        ),
        ("items", "Worst items", "Items", item_blocks(items, pages, faults)),
        (MISSING, "What is missing", MADE, missing_blocks(material)),
        ("notes", "Notes", MADE, [Notes(notes)] if (notes := material.summary.notes) else []),
        ("provenance", "Provenance", MADE, _provenance(material)),
    ):
        yield Section(name=name, title=title, tab=tab, blocks=blocks)
    # Where no task has a row of its own, such as for probes of layers, what the plugin shows comes first.
    yield from _plugin_sections(material, "scores", "Tasks" if first.tasks else "Overview")
    yield from _plugin_sections(material, "items", "Items")


def _plugin_sections(material: Material, place: Literal["scores", "items"], tab: str) -> Iterator[Section]:
    """Yield the sections of plugins in one place of the page."""
    for section, report in material.summary.extra.items():
        if section.place == place and (report.blocks or report.notes):
            blocks = [*report.blocks, Notes(report.notes)]
            yield Section(name=section.name, title=section.title, tab=tab, blocks=blocks)


def _title(material: Material) -> str:
    if title := material.runs[0].manifest.title:
        return title
    names = [run.manifest.model_name for run in material.runs]
    names = list(dict.fromkeys(names))
    return " and ".join(names) if len(names) < 3 else f"{names[0]} and {len(names) - 1} more"


def _provenance(material: Material) -> list[Block]:
    names = [material.name(run) for run in material.runs]
    return [Note(_counts(material), "soft"), *provenance_blocks(names, material.runs)]


def _counts(material: Material) -> str:
    header = material.runs[0].results.run
    languages = {cell.language for run in material.runs for cell in run.cells if cell.has("method")}
    counts = (
        (len(material.runs), "run"),
        (len(languages), "language"),
        (len({column.task for column in material.columns}), "task"),
    )
    words = [f"Made {header.created}"] if header.created else []
    words += [f"by harness {header.harness}."] if header.harness else []
    return " ".join([*words, ", ".join(counted(*pair) for pair in counts)]) + "."
