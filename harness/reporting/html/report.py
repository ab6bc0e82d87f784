"""The whole report: all sections in one page."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from importlib import resources
from typing import Literal

from harness.reporting.html.diagnosis import diagnosis_section
from harness.reporting.html.equity import equity_section
from harness.reporting.html.finding import findings
from harness.reporting.html.items import WorstItem, worst_items
from harness.reporting.html.language import language_section
from harness.reporting.html.layout import notes, section, table
from harness.reporting.html.material import Material, read_material
from harness.reporting.html.overview import overview_section, score_section
from harness.reporting.html.pairing import pair_section
from harness.reporting.html.provenance import provenance_section
from harness.reporting.html.severity import confidence_of, first_rank
from harness.reporting.html.systems import system_section
from harness.reporting.html.weakness import find_weakness
from harness.reporting.markup.element import Child, Element, element
from harness.reporting.markup.page import page
from harness.running.session import open_session
from harness.storage.run_folder import Run

__all__ = ["render_html"]


def render_html(runs: Sequence[Run]) -> str:
    """Return the report of runs, each followed by its baselines, as one HTML file without network or scripts.

    What cannot be shown (no records, records of a version that kept no inputs, runs that have nothing in common) has
    one sentence in its place.
    """
    registry = open_session().registry
    material = read_material(runs, sections=tuple(registry.report_sections))
    weakness = find_weakness(material.runs, registry)
    items, faults = worst_items(material)
    sections = [
        overview_section(material),
        score_section(material),
        *_plugin_sections(material, "scores"),
        system_section(material),
        pair_section(material, registry),
        equity_section(material),
        diagnosis_section(material, weakness),
        language_section(material, weakness, items, findings(material, weakness)),
        *_plugin_sections(material, "items"),
        _item_section(material, items, faults),
        provenance_section(material),
    ]
    return _page(material, [part for part in sections if part is not None])


def _plugin_sections(material: Material, place: Literal["scores", "items"]) -> list[Element | None]:
    """Return what sections of plugins show in one place of the page."""
    return [
        report.render_page() for section, report in material.summary.extra.items() if section.place == place
    ]


def _page(material: Material, sections: Sequence[Element]) -> str:
    run = material.runs[0].results["run"]
    tasks = len({column.task for column in material.columns})
    languages = len({cell["language"] for own in material.runs for cell in own.cells if "method" in cell})
    subtitle = " ".join(
        [
            *([f"Made {run['created']}"] if "created" in run else []),
            *([f"by harness {run['harness']}."] if "harness" in run else []),
            f"{len(material.runs)} {'run' if len(material.runs) == 1 else 'runs'},",
            f"{languages} {'language' if languages == 1 else 'languages'},",
            f"{tasks} {'task' if tasks == 1 else 'tasks'}.",
        ]
    )
    title = f"Report: {material.summary.title}"
    return page(
        title,
        element(
            "header",
            element("h1", title),
            element("p", subtitle, class_="soft"),
            class_="top",
        ),
        element(
            "nav", element("ul", list(_contents(sections))), class_="top contents", aria_label="Contents"
        ),
        element("main", sections, id="main"),
        element(
            "footer",
            element(
                "p", "Texts of data sets and models are shown as text. Nothing here loads or sends anything."
            ),
            class_="end note",
        ),
        styles=[resources.files("harness.reporting.html").joinpath("report.css").read_text(encoding="utf-8")],
        description=title,
    )


def _contents(sections: Sequence[Element]) -> Iterator[Element]:
    for part in sections:
        heading = next(child for child in part.children if isinstance(child, Element) and child.tag == "h2")
        yield element("li", element("a", heading.children, href=f"#{dict(part.attributes)['id']}"))


def _item_section(
    material: Material, items: Mapping[str, Sequence[WorstItem]], faults: Sequence[str]
) -> Element | None:
    """Return the worst items of all languages as a table that leads to them."""
    pages = {code: name for code, name, _ in material.languages}
    rows: list[tuple[Child, ...]] = [
        (
            element("a", element("bdi", item.record.id[:60]), href=f"#{item.anchor}"),
            item.title,
            pages.get(code, code),
            _fault_text(item),
        )
        for code, own in items.items()
        for item in own
        if code in pages
    ]
    if not rows and not faults:
        return None
    rows.sort(key=lambda row: str(row[1]))
    shown = None
    if rows:
        caption = (
            "The worst items of the first run in each task and language; the pages of languages show them"
        )
        shown = table(caption, ("item", "task", "language", "how wrong"), rows, texts={1, 2, 3})
    return section("items", "Worst items", shown, notes(faults))


def _fault_text(item: WorstItem) -> str:
    record = item.record
    sure, rank = confidence_of(record.prediction), first_rank(record.prediction, record.reference)
    if rank is not None:
        return f"first right candidate at rank {rank} or later"
    if item.kind == "token_tagging":
        wrong = sum(gold != given for gold, given in zip(record.reference, record.prediction, strict=False))
        return f"{wrong} of {len(record.reference)} tags wrong"
    if item.kind in {"sequence_classification", "multiple_choice"}:
        return "wrong" if sure is None else f"wrong with confidence {sure * 100:.0f} %"
    scores = [
        f"{name} {value * 100:.1f}" for name, value in record.scores.items() if isinstance(value, int | float)
    ]
    return " ".join(scores) or "wrong"
