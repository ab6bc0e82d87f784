"""A translator's sheet: the texts of a suite in its source language, with columns for another language.

One row per text; further columns hold variants, each with its condition. The same layout holds a
language that is translated already, so that it can be revised.
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from harness_checklist.lint.linter import LintReport, lint_suite
from harness_checklist.sheets.reading import read_sheet
from harness_checklist.sheets.row import COLUMNS, LEFT_OUT, Row, condition_text, listed, quoted
from harness_checklist.shipped import find_suite
from harness_checklist.suites.dumping import dump_suite
from harness_checklist.suites.suite import (
    Condition,
    Form,
    LanguageSuite,
    ListedFillIn,
    PairFillIn,
    Suite,
    TestTemplate,
)

__all__ = ["GUIDELINES", "SheetImport", "import_sheet", "write_sheet"]

GUIDELINES: Final = (
    "1. Keep every placeholder ({first_name}, {adj[0]}) as it is; put it wherever your language wants it.",
    "2. A fill-in must be grammatical in every text that takes it. Where it is not (gender, number, case, order of "
    "words), add a variant in the next columns and say in 'when' for which fill-ins it is: adj=older,younger.",
    "3. An answer is copied from the context, letter for letter: give it the form that the context has.",
    "4. Translate naturally, not word by word; a question asks for the same thing as the English one, and no two "
    "questions of a test read the same.",
    "5. Use names that are common in your language, in its script; write what you are not sure of under 'doubts'.",
)
"""For translators: after the five guidelines of XTREME-R, appendix F, in our own words, not quoted."""
NOTES: Final = (
    f"Write '{LEFT_OUT}' for a text that your language has no use for, and \"\" for an empty one.",
    "Names and articles are separated by semicolons. Rows of 'setting' and 'pair' need no translation.",
    "A variant: 'variant 2' with its condition in 'when 2', and so on; give the first text its 'when', too.",
)
VARIANTS: Final = 3
"""Columns for variants in a sheet that is not filled in yet."""


def write_sheet(suite: Suite, language: str, *, delimiter: str = "\t") -> str:
    """Return the sheet for one language, filled in with its texts where the suite has them."""
    source = suite.languages[suite.source_language]
    target = suite.languages.get(language)
    rows = [Row(part="language", source=suite.source_language, texts=(language,))]
    rows += _names(source, target)
    rows += _profile(source, target)
    for declared in suite.tests:
        if declared.id in source.tests:
            own = None if target is None else target.tests.get(declared.id)
            rows += _test(declared.id, source.tests[declared.id], own)
    width = max([VARIANTS, *(len(row.texts) for row in rows)])
    text = io.StringIO()
    writer = csv.writer(text, delimiter=delimiter, lineterminator="\n")
    title = f"# {suite.name} version {suite.version}: from {suite.source_language} to {language}"
    for line in (title, *(f"# {line}" for line in (*GUIDELINES, *NOTES))):
        writer.writerow([line])
    writer.writerow(
        [*COLUMNS, *(name for n in range(2, width + 1) for name in (f"variant {n}", f"when {n}")), "doubts"]
    )
    for row in rows:
        writer.writerow(row.cells(width))
    return text.getvalue()


def _names(source: LanguageSuite, target: LanguageSuite | None) -> Iterator[Row]:
    names = None if target is None else target.names
    for key in ("script", "borrowed"):
        value = "" if names is None else (getattr(names, key) or "")
        original = getattr(source.names, key) or ""
        yield Row(part="names", id=key, source=original, texts=(quoted(value) if value else "",))
    for key in ("male", "female", "last"):
        own = () if names is None else getattr(names, key)
        yield Row(part="names", id=key, source=listed(getattr(source.names, key)[:20]), texts=(listed(own),))


def _profile(source: LanguageSuite, target: LanguageSuite | None) -> Iterator[Row]:
    for key in ("articles", "match", "strip", "casefold"):
        values = [
            "" if language is None else _setting(getattr(language.profile, key))
            for language in (source, target)
        ]
        yield Row(part="normalise", id=key, source=values[0], texts=(values[1],))


def _setting(value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, tuple):
        return listed(value)
    return (
        json.dumps(value, ensure_ascii=False)
        if value in ("", None) or str(value).strip() != value
        else str(value)
    )


def _test(name: str, source: TestTemplate, target: TestTemplate | None) -> Iterator[Row]:
    shaped = target or source
    zips = listed(tuple("+".join(members) for members in shaped.zips))
    settings = {"names": shaped.names, "balance": shaped.balance or "", "zip": zips}
    for key, value in settings.items():
        yield Row(test=name, part="setting", id=key, texts=(value,))
    yield from _contexts(name, source, target)
    yield from _questions(name, source, target)
    slots = dict.fromkeys((*source.fills, *(() if target is None else target.fills)))
    for slot in slots:
        own = None if target is None else target.fills.get(slot)
        original = source.fills.get(slot)
        shape = own if target is not None else original
        if isinstance(shape, PairFillIn):
            yield from _pair(name, slot, shape)
        elif isinstance(shape, ListedFillIn):
            listed_source = original if isinstance(original, ListedFillIn) else None
            yield from _fill(name, slot, listed_source, own if isinstance(own, ListedFillIn) else None)


def _pair(test: str, slot: str, pair: PairFillIn) -> Iterator[Row]:
    settings = {"of": listed(pair.of), "named": pair.named or "", "ordered": "yes" if pair.ordered else "no"}
    for key, value in settings.items():
        yield Row(test=test, part=f"pair {slot}", id=key, texts=(value,))


def _contexts(test: str, source: TestTemplate, target: TestTemplate | None) -> Iterator[Row]:
    originals = [context.text for context in source.contexts]
    if target is None:
        for number, original in enumerate(originals, start=1):
            yield Row(test=test, part="context", id=str(number), source=original)
        return
    for number, context in enumerate(target.contexts, start=1):
        yield Row(
            test=test,
            part="context",
            id=str(number),
            source=originals[number - 1] if len(originals) == len(target.contexts) else "",
            texts=(quoted(context.text),),
            whens=(condition_text(context.when),),
        )


def _questions(test: str, source: TestTemplate, target: TestTemplate | None) -> Iterator[Row]:
    originals = [(question.ask, question.answer) for question in source.questions]
    own: Sequence[tuple[str, str, Condition]] = (
        [("", "", {})] * len(originals)
        if target is None
        else [(quoted(question.ask), quoted(question.answer), question.when) for question in target.questions]
    )
    aligned = len(originals) == len(own)
    for number, (ask, answer, when) in enumerate(own, start=1):
        asked, answered = originals[number - 1] if aligned else ("", "")
        yield Row(
            test=test,
            part="question",
            id=str(number),
            source=asked,
            texts=(ask,),
            whens=(condition_text(when),),
        )
        yield Row(test=test, part="answer", id=str(number), source=answered, texts=(answer,))


def _fill(test: str, slot: str, source: ListedFillIn | None, target: ListedFillIn | None) -> Iterator[Row]:
    originals = _forms(source)
    own = _forms(target)
    for entry in dict.fromkeys((*own, *originals)):
        forms = own.get(entry, ())
        if target is not None and not forms:
            yield Row(
                test=test,
                part=f"fill {slot}",
                id=entry,
                form="1",
                source=originals[entry][0].texts[0],
                texts=(LEFT_OUT,),
            )
            continue
        shown = originals.get(entry, ())
        first = shown[0].texts if shown else ()
        for number in range(max([len(first) if target is None else 0, *(len(form.texts) for form in forms)])):
            yield Row(
                test=test,
                part=f"fill {slot}",
                id=entry,
                form=str(number + 1),
                source=first[number] if number < len(first) else "",
                texts=tuple(_cell(form, number) for form in forms),
                whens=tuple(condition_text(form.when) if number == 0 else "" for form in forms),
            )


def _cell(form: Form, number: int) -> str:
    return quoted(form.texts[number]) if number < len(form.texts) else LEFT_OUT


def _forms(fill: ListedFillIn | None) -> Mapping[str, tuple[Form, ...]]:
    entries: Iterable[tuple[str, tuple[Form, ...]]] = (
        () if fill is None else ((entry.id, entry.forms) for entry in fill.entries)
    )
    return dict(entries)


# The way back ---------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class SheetImport:
    """A sheet that was imported: the suite with its language, and what the lint says about the language."""

    suite: Suite
    language: str
    report: LintReport


def import_sheet(path: Path, suite: str, output: Path) -> SheetImport:
    """Add the language of a filled-in sheet to a suite, write the suite to a folder, and lint the language.

    Args:
        path: A sheet of `write_sheet`, ``.tsv`` or ``.csv``.
        suite: The suite that it was made from: name or folder.
        output: The folder to write; the given suite is left as it is unless it is this folder.

    Raises `SpecError` with all faults of the sheet, each with its line and column.
    """
    base = find_suite(suite)
    language = read_sheet(path, base)
    made = replace(base, languages={**base.languages, language.language: language})
    dump_suite(made, output)
    report = lint_suite(made, languages=[language.language])
    return SheetImport(suite=made, language=language.language, report=report)
