"""The imported labels of an annotation, and the final label of each row."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from harness import DataError, UsageError
from harness.storage.files import write_atomically
from harness_translation.annotation.key import ANNOTATIONS, Key, Sheet
from harness_translation.annotation.sheet import ADJUDICATED
from harness_translation.annotation.sheet_reading import Labelled

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
    """All labels that were imported so far."""

    labels: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    """By annotator and row; without the final labels."""
    final: Mapping[str, str] = field(default_factory=dict)
    """The decisions of the adjudicator, by row."""
    comments: Mapping[str, Mapping[str, str]] = field(default_factory=dict)

    def of(self, sheet: Sheet) -> dict[str, dict[str, str]]:
        """Return the labels of a sheet's rows, by annotator and row; annotators without labels are skipped."""
        own = {
            name: {row: label for row, label in labels.items() if row in sheet.by_row}
            for name, labels in self.labels.items()
        }
        return {name: labels for name, labels in own.items() if labels}


def final_label(row: str, annotations: Annotations) -> str | None:
    """Return the final label of a row; None while it is undecided.

    It is the adjudicator's label, or else the label that more than half of the annotators gave: with two annotators,
    both.
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
    """Return the labels with new ones added.

    Raises `UsageError` if an annotator's labels of a sheet, or a final label, exist already and `replace` is not
    set.
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
                    f"The annotator {name!r} already has labels of the sheet {sheet.name!r}; the first row is "
                    f"{there[0]!r}.",
                    hint="Replace them with --replace, or name another annotator with --annotator NAME.",
                )
            for row in there:
                del target[row]
        target.update(own)
    comments = {name: dict(own) for name, own in annotations.comments.items()}
    for name, own in new.comments.items():
        comments.setdefault(name, {}).update(own)
    return Annotations(labels=labels, final=final, comments=comments)


def read_annotations(folder: Path) -> Annotations:
    """Return the imported labels, which may be none; raises `DataError` for a broken file."""
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
    """Return every annotator's labels of the rows to decide."""
    return {
        name: {row: labels[row] for row in rows if row in labels}
        for name, labels in sorted(annotations.of(sheet).items())
    }
