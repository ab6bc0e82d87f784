"""Exchange with translators: all texts of a suite for one language as a flat CSV file, one row per text.

A row has its test, what it is (``part``), its id, the source text and the translation. A text that depends on the draw
has further rows with the same id, each with its condition under ``when``, written as in a language file. What is no
text (pairs, zips, balance, how answers are matched) stays as the suite has it.
"""

from __future__ import annotations

import csv
import io
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from harness import Problem, SpecError, UsageError
from harness.specs import Document, read_yaml
from harness_checklist.case import raise_faults, read_text
from harness_checklist.checking import did_you_mean
from harness_checklist.folder import language_data, plain_condition, read_language, yaml_text
from harness_checklist.suite import (
    Condition,
    LanguageSuite,
    ListedFillIn,
    PairFillIn,
    Profile,
    Suite,
    TestTemplate,
)

COLUMNS: Final = ("test", "part", "id", "form", "source", "translation", "when", "doubts")
LEFT_OUT: Final = "-"
GUIDELINES: Final = (
    "Keep every placeholder ({first_name}, {adj[0]}) as it is; put it wherever your language wants it.",
    "A fill-in must be grammatical in every text that takes it. Where it is not (gender, number, case, order of "
    "words), add a row with the same id below and say in 'when' for which fill-ins it is: {adj: [older, younger]}.",
    "An answer is copied from the context, letter for letter: give it the form that the context has.",
    "Translate naturally, not word by word; a question asks for the same thing as the English one, and no two "
    "questions of a test read the same.",
    "Use names that are common in your language, in its script; write what you are not sure of under 'doubts'.",
    f"Write {LEFT_OUT} for a text that your language has no use for.",
)
"""For translators: the first five after the guidelines of XTREME-R, appendix F, in our own words, not quoted."""
_CODE: Final = re.compile(r"[a-z]{2,3}(-[A-Za-z0-9]{1,8})*")
_NAMES: Final = ("male", "female", "last", "script", "borrowed")
_LANGUAGE_PARTS: Final = ("guideline", "language", "names", "article")
_TEST_PARTS: Final = ("context", "question", "answer", "fill")
_Row = tuple[str, str, str, str, str]
"""Part, id, form, text and condition."""


def write_sheet(suite: Suite, language: str) -> str:
    """Return the sheet for one language, filled in with its texts where the suite has them.

    Raises `UsageError` for a code that is none, and for a suite without its source language.
    """
    if not _CODE.fullmatch(language):
        raise UsageError(f"{language!r} is not a language code: expected one such as 'sv'.")
    source, target = suite.languages.get(suite.source_language), suite.languages.get(language)
    if source is None:
        raise UsageError(f"The suite {suite.name!r} has no {suite.source_language!r}, its source language.")
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(COLUMNS)
    for number, guideline in enumerate(GUIDELINES, 1):
        writer.writerow(["", "guideline", number, "", guideline, "", "", ""])
    writer.writerow(["", "language", "", "", source.language, language, "", ""])
    writer.writerows(_paired("", _language_rows(source), _language_rows(target) if target else ()))
    for name, test in source.tests.items():
        target_test = target.tests.get(name) if target else None
        writer.writerows(_paired(name, _test_rows(test), _test_rows(target_test) if target_test else ()))
    return text.getvalue()


def _language_rows(spoken: LanguageSuite) -> Iterator[_Row]:
    for key in _NAMES:
        value = getattr(spoken.names, key) or ""
        for name in (value,) if isinstance(value, str) else value:
            yield "names", key, "", name, ""
    for article in spoken.profile.articles:
        yield "article", "", "", article, ""


def _test_rows(test: TestTemplate) -> Iterator[_Row]:
    for number, context in enumerate(test.contexts, 1):
        yield "context", str(number), "", context.text, _cell(context.when)
    for number, question in enumerate(test.questions, 1):
        yield "question", str(number), "", question.ask, _cell(question.when)
        yield "answer", str(number), "", question.answer, ""
    for slot, fill in test.fills.items():
        for entry in fill.entries if isinstance(fill, ListedFillIn) else ():
            for form in entry.forms:
                for number, text in enumerate(form.texts, 1):
                    when = _cell(form.when) if number == 1 else ""
                    yield f"fill {slot}", entry.id, str(number), text, when


def _cell(when: Condition) -> str:
    return yaml_text(plain_condition(when), flow=True).strip() if when else ""


def _paired(test: str, source_rows: Iterable[_Row], target_rows: Iterable[_Row]) -> Iterator[list[str]]:
    """Yield the rows of a test with both texts; without a target those of the source, to be filled in."""
    source, target = list(source_rows), list(target_rows)
    if not target:
        yield from ([test, part, id_, form, text, "", "", ""] for part, id_, form, text, _ in source)
        return
    texts = {row[:3]: row[3] for row in reversed(source)}
    counts = [Counter(row[0] for row in rows) for rows in (source, target)]
    for part, id_, form, text, when in target:
        # Contexts and questions have numbers alone: these match where both languages have equally many.
        matched = part.startswith("fill") or (id_.isdigit() and counts[0][part] == counts[1][part])
        yield [test, part, id_, form, texts.get((part, id_, form), "") if matched else "", text, when, ""]
    have = {row[:2] for row in target}
    for part, id_, form, text, _ in source:
        if part.startswith("fill") and (part, id_) not in have:
            yield [test, part, id_, form, text, LEFT_OUT, "", ""]


# The way back ---------------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class _SheetDocument(Document):
    """A filled-in sheet in the shape of a language file."""

    lines: dict[tuple[str | int, ...], int]

    def line_of(self, path: Any) -> int | None:
        """Return the line of a key path, or of the longest known part of it."""
        keys = tuple(path)
        while keys and keys not in self.lines:
            keys = keys[:-1]
        return self.lines.get(keys)


def read_sheet(path: Path, suite: Suite) -> LanguageSuite:
    """Return the language of a filled-in sheet; a test with nothing filled in is skipped.

    Raises `SpecError` with all faults of the sheet, each with its line; `MissingDataError`, `DataError`.
    """
    reader = _SheetReader(str(path), suite)
    try:
        reader.read(read_text(path))
    except csv.Error as error:
        reader.fault(f"the quotation marks of this row are broken ({error})")
    raise_faults(path, reader.problems)
    document = reader.document()
    return read_language(document, suite, document.data["language"], lambda code: suite.languages[code].names)


class _SheetReader:
    """Collects the rows of a sheet as the data of a language file."""

    def __init__(self, path: str, suite: Suite) -> None:
        self.path = path
        self.suite = suite
        self.line = 1
        self.problems: list[Problem] = []
        self.language = ""
        self.names: dict[str, Any] = {}
        self.articles: list[str] = []
        self.tests: dict[str, dict[str, Any]] = {}
        self.asked: dict[tuple[str, str], dict[str, Any]] = {}
        """Test and id of a question -> the question with its answer, whichever row is first."""
        self.lines: dict[tuple[str | int, ...], int] = {}

    def fault(self, message: str) -> None:
        self.problems.append(Problem(message=message, line=self.line))

    def read(self, text: str) -> None:
        reader = csv.DictReader(io.StringIO(text, newline=""), strict=True)
        missing = [name for name in COLUMNS[:7] if name not in (reader.fieldnames or ())]
        if missing:
            self.fault(f"the columns {', '.join(missing)} are missing; expected {', '.join(COLUMNS)}")
            return
        rows = []
        for row in reader:
            self.line = reader.line_num
            rows.append((reader.line_num, {key: value or "" for key, value in row.items()}))
        filled = {row["test"] for _, row in rows if row["test"] and row["translation"].strip(f" {LEFT_OUT}")}
        for self.line, row in rows:
            part, _, slot = row["part"].strip().partition(" ")
            if part not in (*_LANGUAGE_PARTS, *_TEST_PARTS):
                self.fault(f"unknown part {part!r}{did_you_mean(part, (*_LANGUAGE_PARTS, *_TEST_PARTS))}")
            elif part in _LANGUAGE_PARTS:
                self._language_row(part, row["id"], row["translation"])
            elif row["test"] not in self.suite.tests:
                meant = did_you_mean(row["test"], self.suite.tests)
                self.fault(f"the suite has no test {row['test']!r}{meant}")
            elif row["test"] in filled:
                self._test_row(part, slot, row)
        self.line = 1
        if not _CODE.fullmatch(self.language):
            self.fault(f"{self.language!r} is no language code: expected one in the row 'language'")
        if not filled:
            self.fault("no test is translated: fill in the column 'translation'")

    def _language_row(self, part: str, id_: str, text: str) -> None:
        if part == "language":
            self.language = text.strip()
        elif part == "article" and text:
            self.articles.append(text)
        elif part == "names" and text:
            self.lines.setdefault(("names", id_), self.line)
            if id_ in ("script", "borrowed"):
                self.names[id_] = text
            else:
                self.names.setdefault(id_, []).append(text)

    def _test_row(self, part: str, slot: str, row: dict[str, str]) -> None:
        name, id_, text = row["test"], row["id"], row["translation"]
        if not text:
            self.fault(f"the {part} {id_!r} is not translated: {row['source']!r}")
        if text in ("", LEFT_OUT):
            return
        test = self.tests.setdefault(name, {"contexts": [], "questions": [], "fill": {}})
        self.lines.setdefault(("tests", name), self.line)
        when = self._condition(row["when"])
        if part == "context":
            self.lines["tests", name, "contexts", len(test["contexts"])] = self.line
            test["contexts"].append({"text": text, **when})
        elif part == "fill":
            forms = test["fill"].setdefault(slot, {}).setdefault(id_, [])
            self.lines.setdefault(("tests", name, "fill", slot), self.line)
            if row["form"] in ("", "1") or not forms:
                self.lines["tests", name, "fill", slot, id_, len(forms)] = self.line
                forms.append({"form": [], **when})
            elif when:
                self.fault("only the first form of a fill-in can have a condition")
            forms[-1]["form"].append(text)
        else:
            key = "ask" if part == "question" else "answer"
            question = self.asked.get((name, id_), {key: ""})
            if key in question:
                self.lines["tests", name, "questions", len(test["questions"])] = self.line
                question = self.asked[name, id_] = {}
                test["questions"].append(question)
            question |= {key: text, **when}

    def _condition(self, cell: str) -> dict[str, Any]:
        try:
            return {"when": read_yaml(cell, self.path).data} if cell.strip() else {}
        except SpecError:
            self.fault(f"{cell!r} is no condition: expected one such as {{adj: [older, younger]}}")
            return {}

    def document(self) -> _SheetDocument:
        """Return the document of the sheet; all but its texts comes from the language itself or the source language."""
        target = self.suite.languages.get(self.language)
        profile = target.profile if target is not None else Profile()
        shaped = {} if target is None else dict(target.tests)
        shaped = {**self.suite.languages[self.suite.source_language].tests, **shaped}
        tests = {}
        for name, texts in self.tests.items():
            pairs = {slot: fill for slot, fill in shaped[name].fills.items() if isinstance(fill, PairFillIn)}
            bare = shaped[name].model_copy(update={"contexts": (), "questions": (), "fills": pairs})
            shape = language_data(LanguageSuite(language=self.language, tests={name: bare}))["tests"][name]
            tests[name] = {**shape, **texts, "fill": {**texts["fill"], **shape.get("fill", {})}}
        data = {
            "language": self.language,
            "names": self.names,
            "normalise": {**profile.model_dump(mode="json"), "articles": self.articles},
            "tests": tests,
        }
        return _SheetDocument(source=self.path, data=data, text="", lines=self.lines)
