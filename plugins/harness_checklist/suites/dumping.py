"""Writes a suite as a folder for `harness_checklist.suites.loading.load_suite`: readable YAML, names as JSON."""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from harness import UsageError
from harness.storage.files import write_atomically
from harness_checklist.suites.profile import Profile
from harness_checklist.suites.suite import (
    Condition,
    ContextTemplate,
    Entry,
    FillIn,
    Form,
    LanguageSuite,
    Names,
    PairFillIn,
    QuestionTemplate,
    Suite,
    TestTemplate,
)

__all__ = ["dump_language", "dump_suite", "scalar"]

WIDTH = 110
FEW_NAMES = 24
"""The file of a language holds up to so many names, first and last; longer lists go to names.json."""
_PLAIN = re.compile(r"[^\W\d_](?:[\w'’()/.-]|[ ](?=[\w('’]))*")
_WORDS = frozenset({"true", "false", "null", "yes", "no", "on", "off", "y", "n"})
"""Words that some YAML readers do not read as texts."""


def scalar(text: str) -> str:
    """Return a text as YAML: plain where every reader takes it for this text, else in double quotes."""
    if _PLAIN.fullmatch(text) and text.lower() not in _WORDS:
        return text
    return "".join([_escaped(char) for char in json.dumps(text, ensure_ascii=False)])


def _escaped(char: str) -> str:
    """Return an invisible character as an escape; joiners are part of the spelling and stay."""
    if char in "\u200c\u200d" or unicodedata.category(char) not in ("Cc", "Cf", "Cs", "Zl", "Zp", "Cn", "Co"):
        return char
    return f"\\U{ord(char):08x}" if ord(char) > 0xFFFF else f"\\u{ord(char):04x}"


def dump_suite(suite: Suite, folder: Path) -> None:
    """Write suite.yaml, languages/xx.yaml and, where there are many names, names.json into a folder.

    Reading it gives the same suite up to places. Raises `StorageError`, and `UsageError` for a folder that holds
    other languages than the suite.
    """
    (folder / "languages").mkdir(parents=True, exist_ok=True)
    others = sorted({path.stem for path in (folder / "languages").glob("*.yaml")} - suite.languages.keys())
    if others:
        raise UsageError(
            f"{str(folder)!r} holds languages that are not in suite {suite.name!r}: {', '.join(others)}.",
            hint="Choose another folder, or remove them.",
        )
    filed = _filed_names(suite)
    for code, spoken in suite.languages.items():
        write_atomically(folder / "languages" / f"{code}.yaml", dump_language(spoken, filed))
    if filed:
        write_atomically(folder / "names.json", _names_json(filed))
    write_atomically(folder / "suite.yaml", _suite_yaml(suite))


def _suite_yaml(suite: Suite) -> str:
    keys = {"suite": scalar(suite.name), "version": str(suite.version)}
    keys |= {key: scalar(getattr(suite, key)) for key in ("description", "license", "citation")}
    lines = [f"{key}: {value}" for key, value in keys.items()]
    lines += [f"source_language: {scalar(suite.source_language)}", "tests:"]
    for test in suite.tests:
        lines.append(f"  {test.id}:")
        texts = {key: getattr(test, key) for key in ("name", "title", "capability", "type", "description")}
        lines += [f"    {key}: {scalar(text)}" for key, text in texts.items() if text or key != "description"]
    return "\n".join(lines) + "\n"


def _filed_names(suite: Suite) -> dict[str, Names]:
    """Return what names.json has to hold: long lists, and those that other languages borrow."""
    filed = {}
    for code, spoken in suite.languages.items():
        names = spoken.names
        if names.borrowed is None and len(names.male) + len(names.female) + len(names.last) > FEW_NAMES:
            filed[code] = names
    for spoken in suite.languages.values():
        lender = spoken.names.borrowed
        if lender is not None and lender not in filed and lender not in suite.languages:
            filed[lender] = spoken.names
    return filed


def _names_json(filed: Mapping[str, Names]) -> str:
    entries = []
    for code, names in sorted(filed.items()):
        lists = {"script": names.script, "male": names.male, "female": names.female, "last": names.last}
        parts = [
            f"  {json.dumps(key)}: {json.dumps(value, ensure_ascii=False)}" for key, value in lists.items()
        ]
        entries.append(f" {json.dumps(code)}: {{\n" + ",\n".join(parts) + "\n }")
    return "{\n" + ",\n".join(entries) + "\n}\n"


def dump_language(spoken: LanguageSuite, filed: Mapping[str, Names] | None = None) -> str:
    """Return the YAML of one language; names that `filed` holds are not repeated in it."""
    lines = [f"language: {scalar(spoken.language)}"]
    lines += _names(spoken, filed or {})
    if spoken.profile != Profile():
        lines.append(f"normalise: {_profile(spoken.profile)}")
    lines.append("tests:")
    dumped: dict[str, Mapping[str, FillIn]] = {}
    for name, test in spoken.tests.items():
        same = [other for other, fills in dumped.items() if test.fills and fills == test.fills]
        lines += [f"  {name}:", *_test(test, same[0] if same else None)]
        if not same:
            dumped[name] = test.fills
    return "\n".join(lines) + "\n"


def _names(spoken: LanguageSuite, filed: Mapping[str, Names]) -> list[str]:
    names = spoken.names
    if names == Names():
        return []
    if names == filed.get(spoken.language):
        return ["names: file"]
    lender = filed.get(names.borrowed) if names.borrowed is not None else None
    if lender is not None and _lists(lender) == _lists(names):
        return [f"names: {{from: {scalar(str(names.borrowed))}}}"]
    lines = ["names:"]
    if names.borrowed is not None:
        lines.append(f"  borrowed: {scalar(names.borrowed)}")
    if names.script:
        lines.append(f"  script: {scalar(names.script)}")
    for key in ("male", "female", "last"):
        found: Sequence[str] = getattr(names, key)
        if found:
            lines += _flow(f"  {key}: ", [scalar(name) for name in found])
    return lines


def _lists(names: Names) -> tuple[object, ...]:
    return (names.script, names.male, names.female, names.last)


def _profile(profile: Profile) -> str:
    parts = [f"articles: [{', '.join(map(scalar, profile.articles))}]"]
    parts += [f"match: {profile.match}", f"strip: {scalar(profile.strip)}"]
    if profile.casefold:
        parts.append("casefold: true")
    return "{" + ", ".join(parts) + "}"


def _test(test: TestTemplate, same: str | None) -> Iterator[str]:
    if test.names != "any":
        yield f"    names: {test.names}"
    if test.balance is not None:
        yield f"    balance: {scalar(test.balance)}"
    yield "    contexts:"
    for context in test.contexts:
        yield from _context(context)
    yield "    questions:"
    for question in test.questions:
        yield from _question(question)
    if same is not None:
        yield f"    fill: {{use: {scalar(same)}}}"
    elif test.fills:
        yield "    fill:"
        for name, fill in test.fills.items():
            yield from _fill(name, fill)
    if test.zips:
        zips = ", ".join(f"[{', '.join(map(scalar, members))}]" for members in test.zips)
        yield f"    zip: [{zips}]"


def _context(context: ContextTemplate) -> Iterator[str]:
    text = scalar(context.text)
    if context.when:
        yield from _keyed("      ", [f"text: {text}", f"when: {_when(context.when)}"])
    else:
        yield f"      - {text}"


def _question(question: QuestionTemplate) -> Iterator[str]:
    parts = [f"ask: {scalar(question.ask)}", f"answer: {scalar(question.answer)}"]
    yield from _keyed("      ", [*parts, f"when: {_when(question.when)}"] if question.when else parts)


def _keyed(indent: str, parts: Sequence[str]) -> Iterator[str]:
    """Yield a mapping in a list: on one line where it fits, else one line per key."""
    line = f"{indent}- {{{', '.join(parts)}}}"
    if len(line) <= WIDTH:
        yield line
    else:
        for number, part in enumerate(parts):
            yield f"{indent}{'  ' if number else '- '}{part}"


def _when(when: Condition) -> str:
    conditions = [f"{scalar(key)}: [{', '.join(map(scalar, sorted(ids)))}]" for key, ids in when.items()]
    return "{" + ", ".join(conditions) + "}"


def _fill(name: str, fill: FillIn) -> Iterator[str]:
    if isinstance(fill, PairFillIn):
        named = "" if fill.named is None else f", named: {scalar(fill.named)}"
        ordered = "" if fill.ordered else ", ordered: false"
        yield f"      {scalar(name)}: {{pairs: [{', '.join(map(scalar, fill.of))}]{named}{ordered}}}"
        return
    items = [f"{scalar(entry.id)}: {_forms(entry)}" for entry in fill.entries]
    line = f"      {scalar(name)}: {{{', '.join(items)}}}"
    if len(line) <= WIDTH:
        yield line
        return
    yield f"      {scalar(name)}:"
    for entry in fill.entries:
        yield from _entry(entry)


def _entry(entry: Entry) -> Iterator[str]:
    line = f"        {scalar(entry.id)}: {_forms(entry)}"
    if len(line) <= WIDTH or not _varied(entry):
        yield line
    else:
        yield f"        {scalar(entry.id)}:"
        for form in entry.forms:
            yield f"          - {_form(form)}"


def _varied(entry: Entry) -> bool:
    return len(entry.forms) > 1 or bool(entry.forms[0].when)


def _forms(entry: Entry) -> str:
    if not _varied(entry):
        return _texts(entry.forms[0].texts)
    return f"[{', '.join(_form(form) for form in entry.forms)}]"


def _form(form: Form) -> str:
    when = f", when: {_when(form.when)}" if form.when else ""
    return f"{{form: {_texts(form.texts)}{when}}}"


def _texts(texts: Sequence[str]) -> str:
    return scalar(texts[0]) if len(texts) == 1 else f"[{', '.join(map(scalar, texts))}]"


def _flow(head: str, items: Iterable[str]) -> Iterator[str]:
    """Yield a list in brackets, in as many lines as needed."""
    line = f"{head}["
    separator = ""
    for item in items:
        if len(line) + len(item) + 3 > WIDTH and separator:
            yield line + ","
            line, separator = " " * len(head) + " ", ""
        line += separator + item
        separator = ", "
    yield line + "]"
