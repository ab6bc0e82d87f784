"""The blind sheet of an annotator: instructions, and rows of text to label."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence
from hashlib import blake2b
from typing import Final

from harness_translation.annotation.item import AnnotationItem
from harness_translation.annotation.key import KeyedRow, Sheet

__all__ = ["ADJUDICATED", "COLUMNS", "MEANINGS", "annotator_rows", "default_instructions", "write_sheet"]

ADJUDICATED: Final = "adjudicated"
"""The annotator's name in a file of final labels."""
COLUMNS: Final = ("row", "annotator", "label", "comment")
"""The columns that the import reads; the others are texts."""
MEANINGS: Final[Mapping[str, str]] = {
    "entailment": "the premise makes the hypothesis true",
    "contradiction": "the hypothesis cannot be true given the premise",
    "neutral": "the hypothesis may or may not be true given the premise",
}
"""Labels of natural language inference: after Table 5 of the translation-errors paper (EACL 2024)."""
_FORMULA: Final = ("=", "+", "-", "@", "\t", "\r")


def default_instructions(labels: Sequence[str], *, choices: bool = False) -> list[str]:
    """Return the default instructions for annotators, by paragraph."""
    meant = [f"{label}: {MEANINGS[label]}." for label in labels if label in MEANINGS]
    if choices:
        meant = ["Choose the text that goes with the others, and give its name."]
    elif not meant:
        meant = [f"The labels are: {', '.join(labels)}."]
    return [
        "Read each text as it is, in its own language, and give it one label.",
        *meant,
        "Work alone: compare neither with others nor with the original of a translation.",
        "Where a text makes no sense, give the label that fits best and say why under 'comment'.",
    ]


def annotator_rows(sheet: Sheet, annotator: str) -> list[KeyedRow]:
    """Return the rows in this annotator's order; every annotator has a different one."""
    return sorted(
        sheet.rows, key=lambda keyed: blake2b(f"{annotator}\0{keyed.row}".encode(), digest_size=8).digest()
    )


def write_sheet(
    sheet: Sheet,
    annotator: str,
    rows: Sequence[KeyedRow],
    instructions: Sequence[str],
    *,
    given: Mapping[str, Mapping[str, str]] | None = None,
) -> str:
    """Return a sheet as CSV: instructions as comments, then one row per item with an empty label.

    Args:
        sheet: The sheet of the rows.
        annotator: The annotator who labels it.
        rows: The rows in their order.
        instructions: The instructions, by paragraph.
        given: Labels to show to an adjudicator, by annotator and row.
    """
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    for line in (*instructions, f"Labels: {', '.join(sheet.labels)}."):
        writer.writerow([f"# {line}"])
    names = _names(rows[0].drawn.item)
    others = {f"label of {name}": labels for name, labels in (given or {}).items()}
    writer.writerow([COLUMNS[0], *names, *others, *COLUMNS[1:]])
    for keyed in rows:
        shown = _texts(keyed.drawn.item)
        seen = [labels.get(keyed.row, "") for labels in others.values()]
        writer.writerow([keyed.row, *(_plain(shown[name]) for name in names), *seen, annotator, "", ""])
    return text.getvalue()


def _names(item: AnnotationItem) -> list[str]:
    """Return the columns of the texts; one with the name of a fixed column gets a prefix."""
    return list(_texts(item))


def _texts(item: AnnotationItem) -> dict[str, str]:
    texts = {**item.fields, **item.choices}
    return {f"text {name}" if name in COLUMNS else name: value for name, value in texts.items()}


def _plain(text: str) -> str:
    """Return a text that a spreadsheet does not read as a formula."""
    return f"'{text}" if text.startswith(_FORMULA) else text
