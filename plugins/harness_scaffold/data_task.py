"""A task from a table of the user's: its columns are checked, and its spec with a prompt is one YAML file."""

from __future__ import annotations

import json
import random
import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from harness import UsageError, near_names
from harness.languages import known_languages
from harness.running import Session
from harness_scaffold.language_split import Described, describe

READERS = {".csv": "csv", ".tsv": "tsv", ".jsonl": "jsonl", ".json": "json", ".parquet": "parquet"}
MOST_LABELS = 100
LETTERS = 26
"""Labels that a prompt can put behind letters."""
SEED = 0
_PLAIN = re.compile(r"[A-Za-z][A-Za-z_-]*")
_FIELD = re.compile(r"[a-z][a-z0-9_]*")
_WORDS_OF_YAML = frozenset({"yes", "no", "on", "off", "true", "false", "null", "y", "n"})


@dataclass(frozen=True, slots=True, kw_only=True)
class TableColumns:
    """Roles of the columns of a table."""

    texts: tuple[str, ...]
    label: str
    language: str | None = None
    """The column with languages; None where all rows are in `only`."""
    only: str | None = None
    identifier: str | None = None
    described: Described = field(default_factory=Described)
    """Name, script and family of a language that the harness does not know in full."""

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
    described: Mapping[str, Mapping[str, str]]
    """Code -> what the spec says of a language that the harness does not know in full."""

    @property
    def labels(self) -> list[str]:
        """The labels, sorted."""
        return sorted({label for counts in self.counts.values() for label in counts})

    def summary(self) -> str:
        """Return the rows of each language, and the accuracy of always giving the most frequent label of all."""
        total: Counter[str] = sum(self.counts.values(), Counter())
        label, most = max(total.items(), key=lambda item: (item[1], item[0]))
        languages = ", ".join(f"{code} {own.total()}" for code, own in self.counts.items())
        table = known_languages()
        plain = [
            f"{called!r} is {code} here"
            for code, called in self.languages.items()
            if called != code and table.plain_code(called)
        ]
        renamed = "; ".join(["", *plain]) if plain else ""
        return f"{total.total()} rows ({languages}), {len(total)} labels, {most / total.total():.1%} {label!r}{renamed}"


def _column_hint(column: str, found: list[str]) -> str | None:
    """Return the probable fault where a table has no such column, if one is known."""
    if column in found:
        return "Name columns without ',', '=', '{' and '}'."
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
    if name in {"csv", "tsv"}:
        _check_separator(path, name, columns)
    read = session.registry.readers.get(name).rows([path], options)
    rows = [_stripped(row.fields, columns) for row in read]
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
    described = _descriptions(languages, columns)
    codes = {called: code for code, called in languages.items()}
    counts: dict[str, Counter[str]] = {code: Counter() for code in languages}
    for row in rows:
        code = next(iter(languages)) if columns.language is None else codes[str(row[columns.language])]
        counts[str(code)][str(row[columns.label])] += 1
    table = TaskTable(path=path, rows=rows, languages=languages, counts=counts, described=described)
    if not 2 <= len(table.labels) <= MOST_LABELS:
        raise UsageError(
            f"The column {columns.label!r} of {path} has {len(table.labels)} different values; expected the labels of "
            f"a classification, 2 to {MOST_LABELS}."
        )
    _check_spellings(table, columns)
    return table


def _check_separator(path: Path, name: str, columns: TableColumns) -> None:
    """Raise `UsageError` for a header that has the columns between other separators than the file's ending says."""
    with path.open(encoding="utf-8-sig", errors="replace") as lines:
        first = next((text.rstrip("\n") for text in lines if text.strip()), "")
    used = {"csv": ",", "tsv": "\t"}[name]
    for mark in (used, ",", ";", "\t", "|"):
        names = [cell.strip().strip('"').strip() for cell in first.split(mark)]
        if mark != used and len(names) > 1 and (used not in first or {*columns.named} <= {*names}):
            raise UsageError(
                f"The columns of {path} are separated by {mark!r}: expected {used!r} in a .{name} file.",
                hint="Save it with commas as .csv, or with tabs as .tsv.",
            )


def _stripped(row: Mapping[str, Any], columns: TableColumns) -> Mapping[str, Any]:
    """Return a row without the white space around its label and language: it is no part of a name."""
    names = {columns.label, columns.language}
    return {
        name: value.strip() if name in names and isinstance(value, str) else value
        for name, value in row.items()
    }


def _check_spellings(table: TaskTable, columns: TableColumns) -> None:
    """Raise `UsageError` where labels differ in case, width, dashes or spaces alone: they mean the same."""
    spellings: dict[str, list[str]] = {}
    for label in table.labels:
        folded = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", label).casefold())
        spellings.setdefault(re.sub(r"(?<=[^\W_])[\s_-]+(?=[^\W_])", " ", folded), []).append(label)
    for labels in spellings.values():
        if len(labels) > 1:
            shown = " and ".join(
                f"{label!r} ({sum(own[label] for own in table.counts.values())})" for label in labels
            )
            raise UsageError(
                f"The column {columns.label!r} of {table.path} writes one label in several ways: {shown}.",
                hint="Write it in one way in the file.",
            )


def _languages(path: Path, rows: Sequence[Mapping[str, Any]], columns: TableColumns) -> dict[str, str]:
    """Return code -> name in the file; raises `UsageError` for names that the language table does not have.

    A name that it does not have is a code of its own where the user describes a language.
    """
    column = columns.language
    called = [str(columns.only)] if column is None else list(dict.fromkeys(str(row[column]) for row in rows))
    table = known_languages()
    codes = {name: table.code_of(name) for name in called}
    unknown = [name for name, code in codes.items() if code is None]
    if unknown and (columns.described.name is None or len(unknown) > 1):
        every = [name for language in table for name in (language.code, language.name)]
        near = {name: near_names(name, every) for name in unknown}
        meant = "; ".join(f"{name!r}: did you mean {names[0]!r}?" for name, names in near.items() if names)
        shown = f"{'language' if len(unknown) == 1 else 'languages'} {', '.join(map(repr, unknown))}"
        source = "" if column is None else f" in the column {column!r}"
        raise UsageError(
            f"{path} has the {shown}{source}, not known by name or code.",
            hint=f"{meant} To add one, write its ISO 639-3 code in the file, and give --language-name NAME "
            "--script Latn --family FAMILY.".lstrip(),
        )
    found: dict[str, str] = {}
    for name, known_code in codes.items():
        code = known_code or name
        if code in found:
            raise UsageError(f"{path} calls the language {code!r} both {found[code]!r} and {name!r}.")
        found[code] = name
    return found


def _descriptions(codes: Iterable[str], columns: TableColumns) -> dict[str, dict[str, str]]:
    """Return the descriptions that the spec needs; the user's is of the only language that needs one."""
    table, option = known_languages(), "--language-name"
    is_described = columns.described != Described()
    subject = [code for code in codes if code not in table or not table.get(code).is_whole]
    if is_described and not subject:
        subject = [code for code in codes if code not in table.listed] or [*codes]
    if is_described and len(subject) > 1:
        raise UsageError(
            f"{option} describes one language, not {', '.join(subject)}; write the others in the spec."
        )
    descriptions = {code: describe(code, columns.described, option=option) for code in subject}
    return {code: keys for code, keys in descriptions.items() if keys}


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
    name: str,
    table: TaskTable,
    columns: TableColumns,
    files: Mapping[str, str],
    source: str | None,
    card: Mapping[str, str] | None = None,
) -> str:
    """Return the YAML of a task and of its prompt.

    Args:
        name: The task's name.
        table: Its test items.
        columns: What its columns are.
        files: Split -> file below the data folder.
        source: The language of the training data; None without them.
        card: Description, citation, license and provenance, where the files are those of a package.
    """
    labels, inputs = table.labels, columns.inputs
    fields = ", ".join(f"{field}: {_scalar(column)}" for field, column in columns.fields.items())
    same_names = all(code == called for code, called in table.languages.items())
    value = "{language}" if same_names else "{called}"
    lines = [f"task: {name}", "kind: sequence_classification", "version: 1"]
    if card is not None:
        lines += [f"{key}: {_scalar(card[key])}" for key in ("description", "citation", "license")]
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
        if card is None:
            indent = "    "
            lines += [f"  {split}:", f"    local: {_scalar(file)}"]
        else:
            indent = "      "
            lines += [f"  {split}:", "    hub:", f'      path: "{name}:data"', f"      split: {split}"]
            lines.append("      reader: jsonl")
        lines += [f'{indent}options: {{header: "true"}}'] if file.endswith(".tsv") else []
        lines.append(f"{indent}columns: {{{fields}}}")
        lines += [f'{indent}where: {{{_scalar(columns.language)}: "{value}"}}'] if columns.language else []
    lines.append("languages:")
    for code, called in table.languages.items():
        keys = [f"{key}: {_scalar(value)}" for key, value in table.described.get(code, {}).items()]
        keys += [] if same_names else [f"codes: {{called: {_scalar(called)}}}"]
        keys += [] if card is None else [f"provenance: {card['provenance']}"]
        lines.append(f"  {_scalar(code)}: {{{', '.join(keys)}}}")
    prompts = _prompts(name, inputs, labels, columns.label)
    return "\n".join([*lines, *(line for prompt in prompts for line in ("---", *prompt))]) + "\n"


def _is_in(row: Mapping[str, Any], columns: TableColumns, called: str) -> bool:
    return columns.language is None or str(row[columns.language]) == called


def _prompts(name: str, inputs: Sequence[str], labels: Sequence[str], asked: str) -> Iterator[list[str]]:
    """Yield the lines of two prompts: the labels are ranked after the text, and listed before a model writes one."""
    shown = [f"{{{field}|strip}}" for field in inputs]
    if len(inputs) > 1:
        shown = [f"{field.capitalize()}: {text}" for field, text in zip(inputs, shown, strict=True)]
    words = ", ".join(f"{_scalar(f'label.{label}')}: {_scalar(label)}" for label in labels)
    comment = "        # words for a language of their own: docs/prompts.md"
    named = ", ".join(labels).replace("{", "{{").replace("}", "}}")
    presets = [
        ("default", "cloze", "The text, and the labels ranked after it.", [], "label"),
        ("letters", "letters", "The text, and the labels behind letters.", ["{choices}"], "letter"),
        ("listed", "hybrid", "The text, and the list of the labels.", [named], "label"),
    ]
    del presets[1 if len(labels) > LETTERS else 2]
    for preset, formulation, description, listed, choice in presets:
        item = "\n".join([*shown, *listed, "{asked}:"])
        yield [
            f"prompt: {name}/{preset}{comment}",
            f"tasks: [{name}]",
            "kind: sequence_classification",
            f"formulation: {formulation}",
            f"description: {description}",
            "source: this file",
            f"item: {json.dumps(item, ensure_ascii=False)}",
            f'choice: " {{{choice}}}"',
            "literals:",
            f"  mul: {{provenance: native, words: {{asked: {_scalar(asked.capitalize())}, {words}}}}}",
        ]
        comment = ""


def _scalar(text: str) -> str:
    """Return a text as YAML, quoted where it would be read as something else."""
    plain = _PLAIN.fullmatch(text) and text.lower() not in _WORDS_OF_YAML
    return text if plain else json.dumps(text, ensure_ascii=False)
