"""Corrected gold labels: what people said of items whose inherited label they checked, as ``--gold`` names it.

A score with them is another number than the benchmark's: its cells carry the file's identity in their view, and
count the items that kept the inherited label.
"""

from __future__ import annotations

import csv
import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from harness.errors import DataError, Problem, SpecError, UsageError, near_names

VIEW: Final = "gold"
"""The condition of a cell that names its gold."""
NEEDED: Final = ("task", "language", "id", "label")
VERSION: Final = ("variant", "translator")
ANY: Final = "*"
"""As a variant or translator: all of them."""
Item = tuple[str, str, str, str, str]
"""Task, language, variant, translator and id; the own text of a task has no variant."""
Reference = str | list[str] | None
"""A label or number, the right answers of an extraction, or None: the item is not scored."""
_REFERENCES: Final = {
    "sequence_classification": str,
    "multiple_choice": str,
    "numeric_answer": str,
    "span_extraction": list,
}


@dataclass(slots=True)
class GoldCounts:
    """Counts of the changes that a corrected gold made to the items of a cell."""

    relabelled: int = 0
    """Items that the file has."""
    changed: int = 0
    """Of them: those with another label than the inherited one."""
    inherited: int = 0
    """Items that kept their label, since they are not in the file."""
    removed: int = 0
    """Items that are not scored, since the file takes them out."""

    def to_json(self) -> dict[str, int]:
        """Return the counts as results hold them."""
        counts = {"relabelled": self.relabelled, "changed": self.changed, "inherited": self.inherited}
        return {**counts, "removed": self.removed} if self.removed else counts


@dataclass(frozen=True, slots=True, kw_only=True)
class CellGold:
    """The corrected labels of one cell."""

    name: str
    """Identity of the file: its stem and a digest of what it says."""
    labels: Mapping[str, Reference]
    """By item id."""

    def corrected(self, identifier: str, inherited: Any, counts: GoldCounts) -> Any:
        """Return the reference of an item, None where it is taken out, and count it."""
        if identifier not in self.labels:
            counts.inherited += 1
            return inherited
        label = self.labels[identifier]
        if label is None:
            counts.removed += 1
            return None
        counts.relabelled += 1
        counts.changed += label != inherited
        return label

    def check_known(self, ids: Iterable[str], title: str) -> None:
        """Raise `DataError` for labels of items that a cell does not have."""
        unknown = sorted(set(self.labels).difference(ids))
        if unknown:
            items = "an item" if len(unknown) == 1 else f"{len(unknown)} items"
            raise DataError(
                f"The gold {self.name!r} labels {items} that {title} does not have, first the id {unknown[0]!r}.",
                hint="It may have been made for another version of the data.",
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class GoldFile:
    """All labels of a file."""

    path: Path
    name: str
    labels: Mapping[Item, Reference]
    lines: Mapping[Item, int] = field(default_factory=dict)

    @property
    def tasks(self) -> frozenset[str]:
        """The tasks that it labels items of."""
        return frozenset(item[0] for item in self.labels)

    def of(self, task: str, language: str, view: Mapping[str, str]) -> CellGold:
        """Return the labels of a cell, which may be none."""
        version = [view.get(name, "") for name in VERSION]
        labels: dict[str, Reference] = {}
        for (of_task, code, variant, translator, identifier), label in self.labels.items():
            fits = all(
                pattern in (ANY, value) for pattern, value in zip((variant, translator), version, strict=True)
            )
            if (of_task, code) == (task, language) and fits:
                labels[identifier] = label
        return CellGold(name=self.name, labels=labels)

    def check_labels(self, task: str, kind: str, allowed: Sequence[str]) -> None:
        """Raise `UsageError` for labels of another type than the kind has, `SpecError` for unknown labels."""
        labels = {item: label for item, label in self.labels.items() if item[0] == task and label is not None}
        expected = _REFERENCES.get(kind)
        if labels and (expected is None or not all(isinstance(label, expected) for label in labels.values())):
            raise UsageError(
                f"The gold {str(self.path)!r} labels items of {task!r}, whose kind {kind!r} has no labels of items."
            )
        problems = [
            Problem(message=_no_label(str(label), allowed), line=self.lines.get(item))
            for item, label in labels.items()
            if allowed and label not in allowed
        ]
        if problems:
            raise SpecError(self.path, problems)


def gold_note(task: str, name: str, labels: Mapping[str, int]) -> str:
    """Return the note of every report on a task that is scored with a corrected gold.

    Args:
        task: The task.
        name: Identity of the gold.
        labels: By language: the items that it labels.
    """
    counts = ", ".join(f"{code} {count}" for code, count in labels.items())
    return (
        f"{task}: scored with the corrected labels of {name} (items: {counts}), so that scores are not the "
        "benchmark's; all other items keep the inherited label"
    )


def _no_label(label: str, allowed: Sequence[str]) -> str:
    near = near_names(label, allowed)
    meant = f"; did you mean {near[0]!r}?" if near else ""
    return f"unknown label {label!r}; expected one of {', '.join(allowed)}{meant}"


def read_gold(path: Path) -> GoldFile:
    """Return the labels of a ``.jsonl``, ``.csv`` or ``.tsv`` file.

    A row has a task, a language, an id and a label; ``variant`` and ``translator`` say in which version of the text
    people saw the item, ``*`` in all. Raises `UsageError` where it cannot be read, `SpecError` with all its faults.
    """
    try:
        text = path.read_text(encoding="utf-8-sig")
    except OSError as error:
        raise UsageError(f"The gold {str(path)!r} cannot be read: {error.strerror}.") from error
    except UnicodeDecodeError as error:
        raise UsageError(f"The gold {str(path)!r} is not UTF-8: {error}.") from error
    problems: list[Problem] = []
    labels: dict[Item, Reference] = {}
    lines: dict[Item, int] = {}
    for line, row in _rows(path, text, problems):
        fault = _fault(row)
        if fault is not None:
            problems.append(Problem(message=fault, line=line))
            continue
        item = (row["task"], row["language"], *(str(row.get(name) or "") for name in VERSION), row["id"])
        if item in lines:
            title = f"{row['task']}:{row['language']}"
            message = f"the item {row['id']!r} of {title} occurs twice, first on line {lines[item]}"
            problems.append(Problem(message=message, line=line))
            continue
        labels[item], lines[item] = row["label"], line
    if not labels and not problems:
        problems.append(Problem(message="holds no labels"))
    if problems:
        raise SpecError(path, problems)
    content = json.dumps(sorted([*item, label] for item, label in labels.items()), ensure_ascii=True)
    digest = hashlib.sha256(content.encode()).hexdigest()[:8]
    return GoldFile(path=path, name=f"{path.stem}-{digest}", labels=labels, lines=lines)


def _fault(row: Any) -> str | None:
    if not isinstance(row, Mapping):
        return f"expected an object with {', '.join(NEEDED)}"
    missing = [name for name in NEEDED if not isinstance(row.get(name), str) or not row[name]]
    return f"expected the text {' and '.join(map(repr, missing))}, found none" if missing else None


def _rows(path: Path, text: str, problems: list[Problem]) -> Iterator[tuple[int, Any]]:
    if path.suffix in {".csv", ".tsv"}:
        reader = csv.DictReader(text.splitlines(), delimiter="," if path.suffix == ".csv" else "\t")
        for row in reader:
            yield reader.line_num, row
    elif path.suffix == ".jsonl":
        for number, line in enumerate(text.split("\n"), start=1):
            if not line.strip():
                continue
            try:
                yield number, json.loads(line)
            except ValueError as error:
                problems.append(Problem(message=f"is no JSON: {error}", line=number))
    else:
        raise UsageError(
            f"The gold {str(path)!r} is of no known kind: expected .jsonl, .csv or .tsv.",
            hint="'harness annotate report DIR --write-gold FILE.jsonl' writes one.",
        )
