"""A task from a table of the user's: its columns are checked, and its spec with a prompt is one YAML file."""

from __future__ import annotations

import json
import random
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harness import Session, UsageError, near_names
from harness.languages.table import known_languages

__all__ = [
    "READERS",
    "TableColumns",
    "TaskTable",
    "divide",
    "read_table",
    "shared_texts",
    "spec_text",
    "training_language",
]

READERS = {".csv": "csv", ".tsv": "tsv", ".jsonl": "jsonl", ".json": "json", ".parquet": "parquet"}
MOST_LABELS = 100
SEED = 0
_PLAIN = re.compile(r"[A-Za-z][A-Za-z_-]*")
_FIELD = re.compile(r"[a-z][a-z0-9_]*")
_WORDS_OF_YAML = frozenset({"yes", "no", "on", "off", "true", "false", "null", "y", "n"})


@dataclass(frozen=True, slots=True, kw_only=True)
class TableColumns:
    """What the columns of a table are."""

    texts: tuple[str, ...]
    label: str
    language: str | None = None
    """The column with languages; None where all rows are in `only`."""
    only: str | None = None
    identifier: str | None = None

    @property
    def named(self) -> tuple[str, ...]:
        """All columns that are used."""
        given = (*self.texts, self.label, self.language, self.identifier)
        return tuple(column for column in given if column is not None)

    @property
    def fields(self) -> Mapping[str, str]:
        """Field of the task -> column."""
        taken = {"id", "label", "language"}
        own = all(_FIELD.fullmatch(text) and text not in taken for text in self.texts)
        numbered = [f"text{number}" for number in range(1, len(self.texts) + 1)]
        names = self.texts if own else ["text"] if len(self.texts) == 1 else numbered
        found = {"id": self.identifier} if self.identifier is not None else {}
        return {**found, **dict(zip(names, self.texts, strict=True)), "label": self.label}

    @property
    def inputs(self) -> list[str]:
        """The fields that a model sees."""
        return [field for field in self.fields if field not in {"id", "label"}]


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskTable:
    """The rows of one file, checked."""

    path: Path
    rows: Sequence[Mapping[str, Any]]
    languages: Mapping[str, str]
    """Code -> what the file calls the language."""
    counts: Mapping[str, Counter[str]]
    """Code -> label -> rows."""

    @property
    def labels(self) -> list[str]:
        """The labels, sorted."""
        return sorted({label for counts in self.counts.values() for label in counts})

    def summary(self) -> str:
        """Return the rows of each language, and the accuracy of always giving the most frequent label of all."""
        total: Counter[str] = sum(self.counts.values(), Counter())
        label, most = max(total.items(), key=lambda item: (item[1], item[0]))
        languages = ", ".join(f"{code} {own.total()}" for code, own in self.counts.items())
        return (
            f"{total.total()} rows ({languages}), {len(total)} labels, {most / total.total():.1%} {label!r}"
        )


def _column_hint(column: str, found: list[str]) -> str | None:
    """Return what is probably wrong where a table has no such column, if anything is known."""
    if column in found:
        return "Name columns without ',', '=', '{' and '}'."
    separator = next((mark for mark in ";\t|" if len(found) == 1 and mark in found[0]), None)
    if separator is not None:
        return (
            f"Its columns seem to be separated by {separator!r}: save it with commas, or with tabs as .tsv."
        )
    near = near_names(column, found)
    return f"Did you mean {near[0]!r}?" if near else None


def read_table(session: Session, path: Path, columns: TableColumns) -> TaskTable:
    """Return the rows of a file; raises `UsageError` for unknown columns and languages, and for empty values."""
    name = READERS.get(path.suffix.lower())
    if name is None or set("{}*:\\") & set(path.name):
        raise UsageError(
            f"The file {str(path)!r} must end in {', '.join(READERS)}, without '{{', '*' or ':'."
        )
    if not path.is_file():
        raise UsageError(f"There is no file {str(path)!r}.")
    options = {"header": "true"} if name == "tsv" else {}
    rows = [row.fields for row in session.registry.readers.get(name).rows([path], options)]
    for column in columns.named:
        if column not in rows[0] or set(",={}") & set(column):
            raise UsageError(
                f"{path} has no usable column {column!r}: it has {', '.join(map(repr, rows[0]))}.",
                hint=_column_hint(column, list(rows[0])),
            )
    for number, row in enumerate(rows, start=1):
        empty = [column for column in columns.named if row.get(column) in (None, "")]
        if empty:
            raise UsageError(f"{path}, row {number}: the column {empty[0]!r} is empty.")
    languages = _languages(path, rows, columns)
    codes = {called: code for code, called in languages.items()}
    counts: dict[str, Counter[str]] = {code: Counter() for code in languages}
    for row in rows:
        code = columns.only if columns.language is None else codes[str(row[columns.language])]
        counts[str(code)][str(row[columns.label])] += 1
    table = TaskTable(path=path, rows=rows, languages=languages, counts=counts)
    if not 2 <= len(table.labels) <= MOST_LABELS:
        raise UsageError(
            f"The column {columns.label!r} of {path} has {len(table.labels)} different values; expected the labels of "
            f"a classification, 2 to {MOST_LABELS}."
        )
    return table


def _languages(path: Path, rows: Sequence[Mapping[str, Any]], columns: TableColumns) -> dict[str, str]:
    """Return code -> name in the file; raises `UsageError` for a name that the language table does not have."""
    if columns.language is None:
        code = known_languages().get(str(columns.only)).code
        return {code: code}
    found: dict[str, str] = {}
    for called in dict.fromkeys(str(row[columns.language]) for row in rows):
        known_code = known_languages().code_of(called)
        if known_code is None:
            known = [name for language in known_languages() for name in (language.code, language.name)]
            near = near_names(called, known)
            raise UsageError(
                f"{path} has the language {called!r} in the column {columns.language!r}, which is not known by name or "
                "code.",
                hint=(f"Did you mean {near[0]!r}? " if near else "") + "Run 'harness languages' to see all.",
            )
        if known_code in found:
            raise UsageError(
                f"{path} calls the language {known_code!r} both {found[known_code]!r} and {called!r}."
            )
        found[known_code] = called
    return found


def divide(table: TaskTable, columns: TableColumns, share: float) -> tuple[list[Any], list[Any]]:
    """Return the rows to train on and to test on: `share` of each language and label, drawn by a fixed seed.

    Rows with equal texts, or of one id, stay on the same side.
    """
    groups: dict[str, list[Mapping[str, Any]]] = {}
    for row in table.rows:
        same = [row[columns.identifier]] if columns.identifier else [row[text] for text in columns.texts]
        groups.setdefault(json.dumps(same, default=str), []).append(row)
    strata: dict[tuple[str, str], list[list[Mapping[str, Any]]]] = {}
    for group in groups.values():
        first = group[0]
        language = "" if columns.language is None or columns.identifier else str(first[columns.language])
        strata.setdefault((language, str(first[columns.label])), []).append(group)
    train: list[Any] = []
    test: list[Any] = []
    draw = random.Random(SEED)  # noqa: S311  a reproducible draw
    for key in sorted(strata):
        drawn = draw.sample(strata[key], len(strata[key]))
        cut = round(len(drawn) * share)
        test += [row for group in drawn[:cut] for row in group]
        train += [row for group in drawn[cut:] for row in group]
    if not train or not test:
        raise UsageError(f"{table.path} has too few rows for a test share of {share:g}.")
    return train, test


def shared_texts(test: TaskTable, train: TaskTable, columns: TableColumns) -> int:
    """Return how many test rows have the texts of a row to train on."""
    known = {tuple(str(row[text]) for text in columns.texts) for row in train.rows}
    return sum(tuple(str(row[text]) for text in columns.texts) in known for row in test.rows)


def training_language(table: TaskTable) -> str:
    """Return English where there are rows in it, else the language with the most rows."""
    if "en" in table.counts:
        return "en"
    return max(table.counts, key=lambda code: table.counts[code].total())


def spec_text(
    name: str, table: TaskTable, columns: TableColumns, files: Mapping[str, str], source: str | None
) -> str:
    """Return the YAML of a task and of its prompt.

    Args:
        name: The task's name.
        table: Its test items.
        columns: What its columns are.
        files: Split -> file below the data folder.
        source: The language of the training data; None without them.
    """
    labels, inputs = table.labels, columns.inputs
    fields = ", ".join(f"{field}: {_scalar(column)}" for field, column in columns.fields.items())
    same_names = all(code == called for code, called in table.languages.items())
    value = "{language}" if same_names else "{called}"
    lines = [f"task: {name}", "kind: sequence_classification", "version: 1"]
    lines += [f"inputs: [{', '.join(inputs)}]", f"labels: [{', '.join(map(_scalar, labels))}]"]
    lines += ["metrics: [accuracy]"]
    if columns.identifier is not None:
        ids = [
            {str(row[columns.identifier]) for row in table.rows if _is_in(row, columns, called)}
            for called in table.languages.values()
        ]
        lines += (
            ["parallel: true                 # an id is the same item in every language"]
            if all(own == ids[0] for own in ids)
            else []
        )
    if source is not None:
        lines.append(f"transfer: {{source: {source}, stages: [{name}], recipe: xtreme_r}}")
    lines.append("splits:")
    for split, file in files.items():
        lines += [f"  {split}:", f"    local: {_scalar(file)}"]
        lines += ['    options: {header: "true"}'] if file.endswith(".tsv") else []
        lines.append(f"    columns: {{{fields}}}")
        lines += [f'    where: {{{_scalar(columns.language)}: "{value}"}}'] if columns.language else []
    lines.append("languages:")
    for code, called in table.languages.items():
        own = "{}" if same_names else f"{{codes: {{called: {_scalar(called)}}}}}"
        lines.append(f"  {_scalar(code)}: {own}")
    return "\n".join([*lines, "---", *_prompt(name, inputs, labels, columns.label)]) + "\n"


def _is_in(row: Mapping[str, Any], columns: TableColumns, called: str) -> bool:
    return columns.language is None or str(row[columns.language]) == called


def _prompt(name: str, inputs: Sequence[str], labels: Sequence[str], asked: str) -> list[str]:
    """Return the lines of a prompt: the texts, the word for the label, and the labels ranked after it."""
    shown = [f"{{{field}|strip}}" for field in inputs]
    if len(inputs) > 1:
        shown = [f"{field.capitalize()}: {text}" for field, text in zip(inputs, shown, strict=True)]
    item = "\\n".join([*shown, "{asked}:"])
    words = ", ".join(f"{_scalar(f'label.{label}')}: {_scalar(label)}" for label in labels)
    return [
        f"prompt: {name}/default        # words for a language of their own: docs/prompts.md",
        f"tasks: [{name}]",
        "kind: sequence_classification",
        "formulation: cloze",
        "description: The text, and the labels ranked after it.",
        "source: this file",
        f'item: "{item}"',
        'choice: " {label}"',
        "literals:",
        f"  mul: {{provenance: native, words: {{asked: {_scalar(asked.capitalize())}, {words}}}}}",
    ]


def _scalar(text: str) -> str:
    """Return a text as YAML, quoted where it would be read as something else."""
    plain = _PLAIN.fullmatch(text) and text.lower() not in _WORDS_OF_YAML
    return text if plain else json.dumps(text, ensure_ascii=False)
