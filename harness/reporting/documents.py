"""Whole reports: text for a terminal, Markdown, LaTeX, and the page with all that is known of runs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Literal

import polars as pl

from harness.registry.registry import Registry
from harness.reporting.blocks.model import Block, Download, Note, Notes, Report, Section, file_stem
from harness.reporting.blocks.words import counted, legend
from harness.reporting.comparison.comparison import page_comparison
from harness.reporting.cost.cost import equity_report
from harness.reporting.cost.table import equity_blocks
from harness.reporting.languages.language import findings, language_blocks
from harness.reporting.overview.glance import Glance, glance
from harness.reporting.overview.glance_blocks import glance_blocks
from harness.reporting.overview.missing import missing_blocks
from harness.reporting.overview.overview import overview_blocks, task_blocks
from harness.reporting.overview.provenance import MISSING, banners, chips, glossary_blocks, provenance_blocks
from harness.reporting.overview.summary import Material, Summary, read_material, summarise
from harness.reporting.overview.summary_blocks import (
    detail_blocks,
    language_table,
    score_blocks,
    summary_blocks,
    system_table,
    systems_latex,
)
from harness.reporting.render.console import print_blocks
from harness.reporting.render.page import render_html
from harness.reporting.render.text import COLUMNS, csv_text, escape_markdown, render_latex, render_markdown
from harness.reporting.sections import installed_registry, installed_sections
from harness.reporting.weakness.diagnosis import find_weakness, page_blocks
from harness.reporting.weakness.items import item_blocks, worst_items
from harness.scores.table import read_scores
from harness.storage.run_folder import Run

SCORE_COLUMNS = tuple(name for name in COLUMNS if name not in {"version", "status", "reason"})
"""Columns of the table of scores; version, status and reason are left to ``--format csv``."""
MADE = "How it was made"
TABS = ("Overview", "Comparison", "Languages", "Tasks", "Items", "Cost", MADE)


def terminal_text(runs: Sequence[Run], *, width: int = 100, details: bool = True) -> str:
    """Return the summary as plain text of a given width; with `details` the tables by language are before it."""
    summary = summarise(runs, sections=installed_sections(in_terminal=True))
    tables = detail_blocks(summary, width=width) if details else []
    return print_blocks([*tables, *glance_blocks(runs, summary, width=width, alone=not details)], width=width)


def markdown_text(runs: Sequence[Run]) -> str:
    """Return the content of `latex_text` as a Markdown document, with the cost of the languages."""
    summary, equity = summarise(runs, sections=installed_sections()), equity_report(runs)
    cost = [Note("What the languages cost", "heading"), *equity_blocks(equity)] if equity else []
    return f"# {escape_markdown(summary.title)}\n" + render_markdown([*_blocks(runs, summary), *cost])


def latex_text(runs: Sequence[Run]) -> str:
    """Return the summary of the first run, with the others' means, as LaTeX tables for the booktabs package.

    Several runs that are not each other's baselines come with a table of all means, and a table by language each.
    """
    return render_latex(_blocks(runs, summarise(runs, sections=installed_sections())))


def _blocks(runs: Sequence[Run], summary: Summary) -> list[Block]:
    """Return the summary of the first run; of several, all means before it, and the others' tables after it."""
    material = read_material(runs) if len(runs) > 1 else None
    if material is None or len(material.runs) < 2:
        return summary_blocks(summary)
    means = system_table(material)
    tables = [replace(language_table(summarise([run])), untitled=False) for run in material.runs[1:]]
    return [*([] if means is None else [means]), *summary_blocks(summary), *tables]


def html_text(runs: Sequence[Run]) -> str:
    """Return the whole report as one page."""
    return render_html(html_report(runs, installed_registry()))


# The page ----------------------------------------------------------------------------------------------------


def html_report(runs: Sequence[Run], registry: Registry) -> Report:
    """Return the report of runs, each followed by its baselines, as far as a page shows it.

    What cannot be shown (no records, records of a version that kept no inputs, runs that have nothing in common) has
    one sentence in its place.
    """
    material = read_material(runs, sections=tuple(registry.report_sections), metrics=registry.metrics)
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
        downloads=list(_downloads(material)),
    )


def _sections(material: Material, first: Glance, registry: Registry) -> Iterator[Section]:
    weakness = find_weakness(material.runs, registry)
    items, faults = worst_items(material)
    sentences = findings(material, weakness)
    named = {material.name(run): run for run in material.runs}
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
        ("diagnosis", "Diagnosis", "Languages", page_blocks([*named], weakness)),
        ("tasks", "Systems and tasks", "Tasks", task_blocks(material)),
        (
            "equity",
            "What the languages cost",
            "Cost",
            [Note(legend("what languages cost")), *equity_blocks(cost, legend_first=True)] if cost else [],
        ),
        ("items", "Worst items", "Items", item_blocks(items, pages, faults)),
        (MISSING, "What is missing", MADE, missing_blocks(named)),
        ("notes", "Notes", MADE, [Notes(notes)] if (notes := material.summary.notes) else []),
        ("provenance", "Provenance", MADE, [Note(_counts(material), "soft"), *provenance_blocks(named)]),
    ):
        yield Section(name=name, title=title, tab=tab, blocks=blocks)
    # Where no task has a row of its own, such as for probes of layers, what the plugin shows comes first.
    yield from _plugin_sections(material, "scores", "Tasks" if first.tasks else "Overview")
    yield from _plugin_sections(material, "items", "Items")


def _plugin_sections(material: Material, place: Literal["scores", "items"], tab: str) -> Iterator[Section]:
    """Yield the sections of plugins in one place of the page."""
    for section, report in material.summary.extra.items():
        if section.place == place and (report.blocks or report.notes):
            yield Section(name=section.name, title=section.title, tab=tab, blocks=report.all_blocks)


def _downloads(material: Material) -> Iterator[Download]:
    """Yield the scores of all cells in the metrics of the report as CSV, and systems against tasks as LaTeX."""
    if (table := system_table(material)) is None:
        return
    name = file_stem("scores", material.runs[0].manifest.model_name)
    pairs = {(column.task, column.metric) for column in material.columns}
    names = {str(path): name for path, name in material.names.items()}
    scores = read_scores(material.every).with_columns(model=pl.col("run").replace(names))
    rows = scores.select(SCORE_COLUMNS).rename(COLUMNS, strict=False).to_dicts()
    csv = csv_text([row for row in rows if (row["task"], row["metric"]) in pairs])
    latex = systems_latex(material, table)
    yield Download(label="CSV", file=f"{name}.csv", media="text/csv", text=csv)
    yield Download(label="LaTeX", file=f"{name}.tex", media="application/x-tex", text=latex)


def _title(material: Material) -> str:
    if title := material.runs[0].manifest.title:
        return title
    names = [run.manifest.model_name for run in material.runs]
    names = list(dict.fromkeys(names))
    return " and ".join(names) if len(names) < 3 else f"{names[0]} and {len(names) - 1} more"


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
