"""The labels that were imported into an annotation, and the final label of every row."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from harness.errors import DataError, UsageError
from harness.storage.run_folder import write_atomically
from harness_translation.annotation_key import ANNOTATIONS, Key, Sheet
from harness_translation.sheet import ADJUDICATED
from harness_translation.sheet_reading import Labelled

__all__ = [
    "Annotations",
    "disagreements",
    "final_label",
    "merge",
    "read_annotations",
    "shown_to_adjudicator",
    "write_annotations",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Annotations:
    """All labels so far."""

    labels: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    """By annotator and row; without the final ones."""
    final: Mapping[str, str] = field(default_factory=dict)
    """By row: what an adjudicator decided."""
    comments: Mapping[str, Mapping[str, str]] = field(default_factory=dict)

    def of(self, sheet: Sheet) -> dict[str, dict[str, str]]:
        """Return the labels of a sheet's rows, by annotator and row; annotators without any are left out."""
        own = {
            name: {row: label for row, label in labels.items() if row in sheet.by_row}
            for name, labels in self.labels.items()
        }
        return {name: labels for name, labels in own.items() if labels}


def final_label(row: str, annotations: Annotations) -> str | None:
    """Return the label that a row has in the end; None while nobody decided.

    That is the adjudicator's, or else the one that more than half of its annotators gave: with two annotators, both.
    """
    if row in annotations.final:
        return annotations.final[row]
    given = Counter(labels[row] for labels in annotations.labels.values() if row in labels)
    if not given:
        return None
    label, votes = given.most_common(1)[0]
    return label if 2 * votes > given.total() else None


def disagreements(sheet: Sheet, annotations: Annotations) -> list[str]:
    """Return the rows that were labelled and still have no final label, in the order of the sheet."""
    labelled = {row for labels in annotations.labels.values() for row in labels}
    return [
        keyed.row
        for keyed in sheet.rows
        if keyed.row in labelled and final_label(keyed.row, annotations) is None
    ]


def merge(annotations: Annotations, new: Labelled, key: Key, *, replace: bool = False) -> Annotations:
    """Return the labels with new ones beside them.

    Raises `UsageError` where an annotator's labels of a sheet, or a final label, are there already and `replace` is
    not set.
    """
    labels = {name: dict(own) for name, own in annotations.labels.items()}
    final = dict(annotations.final)
    for name, own in new.labels.items():
        target = final if name == ADJUDICATED else labels.setdefault(name, {})
        for sheet in key.sheets:
            rows = [row for row in own if row in sheet.by_row]
            there = [row for row in (rows if name == ADJUDICATED else sheet.by_row) if row in target]
            if not rows or not there:
                continue
            if not replace:
                raise UsageError(
                    f"The annotator {name!r} has labels of the sheet {sheet.name!r} already, first of the row "
                    f"{there[0]!r}.",
                    hint="Import them anew with --replace, or say whose labels these are with --annotator NAME.",
                )
            for row in there:
                del target[row]
        target.update(own)
    comments = {name: dict(own) for name, own in annotations.comments.items()}
    for name, own in new.comments.items():
        comments.setdefault(name, {}).update(own)
    return Annotations(labels=labels, final=final, comments=comments)


def read_annotations(folder: Path) -> Annotations:
    """Return what was imported, nothing where that is so; raises `DataError` for a broken file."""
    path = folder / ANNOTATIONS
    if not path.exists():
        return Annotations()
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        return Annotations(labels=content["labels"], final=content["final"], comments=content["comments"])
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise DataError(f"The labels {str(path)!r} cannot be read: {error}.") from error


def write_annotations(annotations: Annotations, folder: Path) -> None:
    """Write all labels into the folder of an annotation."""
    content = {
        "labels": _plain(annotations.labels),
        "final": dict(annotations.final),
        "comments": _plain(annotations.comments),
    }
    write_atomically(folder / ANNOTATIONS, json.dumps(content, ensure_ascii=False, indent=1) + "\n")


def _plain(values: Mapping[str, Mapping[str, str]]) -> dict[str, dict[str, str]]:
    return {name: dict(own) for name, own in sorted(values.items())}


def shown_to_adjudicator(
    sheet: Sheet, annotations: Annotations, rows: Sequence[str]
) -> dict[str, dict[str, str]]:
    """Return what every annotator gave to the rows that are to be decided."""
    return {
        name: {row: labels[row] for row in rows if row in labels}
        for name, labels in sorted(annotations.of(sheet).items())
    }
