"""A sheet as one HTML page to label in: it needs no network and sends nothing."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from functools import cache
from importlib import resources
from typing import Any, Final

from harness.reporting.markup.character import visible
from harness.reporting.markup.element import Element, element
from harness.reporting.markup.page import page
from harness_translation.annotation.key import KeyedRow, Sheet
from harness_translation.annotation.sheet import MEANINGS

__all__ = ["sheet_page"]

KEYS: Final = 9
"""The number of labels that have a keyboard key."""


@cache
def _source(name: str) -> str:
    return (
        resources.files("harness_translation.annotation").joinpath("static", name).read_text(encoding="utf-8")
    )


def sheet_page(sheet: Sheet, annotator: str, rows: Sequence[KeyedRow], instructions: Sequence[str]) -> str:
    """Return the page: one row at a time, labels by keys or pointer, kept in the browser and saved as a file.

    It holds texts, labels and opaque row names, and neither ids nor inherited labels. Raises `ValueError` if a
    script of the page holds a tag.
    """
    return page(
        f"{sheet.name}, annotator {annotator}",
        _main(sheet, annotator, instructions),
        modules=[_source("annotate.mjs")],
        styles=[_source("annotate.css")],
        data={"job": _job(sheet, annotator, rows)},
        description="Texts to be labelled.",
    )


def _job(sheet: Sheet, annotator: str, rows: Sequence[KeyedRow]) -> dict[str, Any]:
    shown = [
        {
            "row": keyed.row,
            "fields": [[name, visible(text)] for name, text in keyed.drawn.item.fields.items()],
            "choices": {label: visible(text) for label, text in keyed.drawn.item.choices.items()},
        }
        for keyed in rows
    ]
    content = json.dumps([sheet.name, annotator, shown], ensure_ascii=True)
    return {
        "key": hashlib.blake2b(content.encode(), digest_size=8).hexdigest(),
        "sheet": sheet.name,
        "annotator": annotator,
        "language": sheet.text.language,
        "labels": list(sheet.labels),
        "rows": shown,
    }


def _main(sheet: Sheet, annotator: str, instructions: Sequence[str]) -> Element:
    return element(
        "main",
        element("h1", f"{sheet.name}, annotator {annotator}"),
        element(
            "details",
            element("summary", "What to do"),
            *(element("p", line) for line in instructions),
            element(
                "p",
                f"Keys: 1 to {min(KEYS, len(sheet.labels))} give a label and move on; left and right arrow move; "
                "u goes to the next row without a label; c goes to the comment, Escape back.",
                class_="note",
            ),
            element(
                "p",
                "Your labels stay in this browser until you save them as a file: send that file back.",
                class_="note",
            ),
            open=True,
            class_="instructions",
        ),
        element("noscript", element("p", "This page needs JavaScript; the CSV file next to it does not.")),
        element("p", role="status", id="progress"),
        element("progress", id="bar", max=1, value=0, aria_label="Rows with a label"),
        element(
            "section",
            element("h2", "Row", id="place", tabindex=-1),
            element("div", id="texts"),
            element("fieldset", element("legend", "Label"), _labels(sheet), id="labels"),
            element(
                "p",
                element("label", "Comment", for_="comment"),
                element("textarea", id="comment", rows=2, dir="auto"),
            ),
            aria_labelledby="place",
            class_="card",
        ),
        element(
            "p",
            element("button", "Previous", type="button", id="previous"),
            element("button", "Next", type="button", id="next"),
            element("button", "Next without a label", type="button", id="open"),
            class_="controls",
        ),
        element(
            "p",
            element("button", "Save as CSV", type="button", id="save-csv", class_="save"),
            element("button", "Save as JSON", type="button", id="save-json"),
            element("label", "Continue from a saved JSON file: ", for_="load", class_="note"),
            element("input", type="file", id="load", accept=".json,application/json"),
            class_="controls",
        ),
        element("p", role="alert", id="notice"),
        element("ol", id="rows", aria_label="All rows"),
        id="main",
    )


def _labels(sheet: Sheet) -> Element:
    return element(
        "div",
        *(
            element(
                "label",
                element("input", type="radio", name="label", value=label, id=f"label-{number}"),
                element("span", element("kbd", number) if number <= KEYS else None, label, class_="name"),
                element("span", MEANINGS[label], class_="note") if label in MEANINGS else None,
                element("span", "", class_="choice", dir="auto", data_label=label),
            )
            for number, label in enumerate(sheet.labels, start=1)
        ),
        class_="options",
    )
