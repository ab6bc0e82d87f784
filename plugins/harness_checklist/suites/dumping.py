"""Writes a suite as a folder for `harness_checklist.suites.loading.load_suite`."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from harness import UsageError
from harness.storage import write_atomically
from harness_checklist.suites.suite import (
    Condition,
    FillIn,
    Form,
    LanguageSuite,
    Names,
    PairFillIn,
    Profile,
    Suite,
    TestTemplate,
)

try:
    from yaml import CSafeDumper as _SafeDumper
except ImportError:  # a PyYAML built without libyaml is slower but writes the same
    from yaml import SafeDumper as _SafeDumper  # type: ignore[assignment]

_PLAIN = re.compile(r"[^\W\d_](?:[\w'’()/.-]|[ ](?=[\w('’]))*")
_WORDS = frozenset({"true", "false", "null", "yes", "no", "on", "off", "y", "n"})
"""Words that some YAML readers do not read as texts."""


class _Dumper(_SafeDumper):
    """Writes a text plainly where every reader takes it for this text, else in double quotes."""

    def ignore_aliases(self, data: Any) -> bool:
        """Write everything out: a person reads these files."""
        return True


def _represent_text(dumper: _Dumper, text: str) -> yaml.ScalarNode:
    plain = _PLAIN.fullmatch(text) and text.lower() not in _WORDS
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=None if plain else '"')


_Dumper.add_representer(str, _represent_text)


def yaml_text(data: Mapping[str, Any], *, flow: bool | None = None) -> str:
    """Return a mapping as YAML, every text on one line; with `flow` all of it in one line."""
    text: str = yaml.dump(
        data, Dumper=_Dumper, allow_unicode=True, sort_keys=False, width=2**30, default_flow_style=flow
    )
    return text


def dump_suite(suite: Suite, folder: Path) -> None:
    """Write suite.yaml and languages/xx.yaml into a folder.

    Reading it gives the same suite up to places. Raises `StorageError`, and `UsageError` for a folder that holds
    other languages than the suite.
    """
    (folder / "languages").mkdir(parents=True, exist_ok=True)
    foreign = sorted({path.stem for path in (folder / "languages").glob("*.yaml")} - suite.languages.keys())
    if foreign:
        raise UsageError(
            f"{str(folder)!r} holds languages that are not in suite {suite.name!r}: {', '.join(foreign)}.",
            hint="Choose another folder, or remove them.",
        )
    for code, spoken in suite.languages.items():
        lender = suite.languages.get(spoken.names.borrowed or "")
        data = language_data(spoken)
        if (
            lender is not None
            and lender.names.model_copy(update={"borrowed": lender.language}) == spoken.names
        ):
            data["names"] = {"from": lender.language}
        write_atomically(folder / "languages" / f"{code}.yaml", yaml_text(data))
    head = {"suite": suite.name, **suite.model_dump(mode="json", exclude={"name", "languages", "tests"})}
    tests = {name: test.model_dump(exclude={"id"}) for name, test in suite.tests.items()}
    write_atomically(folder / "suite.yaml", yaml_text({**head, "tests": tests}))


def language_data(spoken: LanguageSuite) -> dict[str, Any]:
    """Return one language in the shape of its file."""
    data: dict[str, Any] = {"language": spoken.language}
    if spoken.names != Names():
        data["names"] = spoken.names.model_dump(mode="json", exclude_defaults=True)
    if spoken.profile != Profile():
        data["normalise"] = spoken.profile.model_dump(mode="json", exclude_defaults=True)
    data["tests"] = tests = {}
    dumped: dict[str, dict[str, FillIn]] = {}
    for name, test in spoken.tests.items():
        same = next(
            (earlier for earlier, fills in dumped.items() if test.fills and fills == test.fills), None
        )
        tests[name] = _test(test, same)
        if same is None:
            dumped[name] = test.fills
    return data


def _test(test: TestTemplate, same: str | None) -> dict[str, Any]:
    data: dict[str, Any] = test.model_dump(mode="json", include={"names", "balance"}, exclude_defaults=True)
    data["contexts"] = [
        {"text": context.text, **_when(context.when)} if context.when else context.text
        for context in test.contexts
    ]
    data["questions"] = [
        {"ask": question.ask, "answer": question.answer, **_when(question.when)}
        for question in test.questions
    ]
    if test.fills:
        data["fill"] = {"use": same} if same else {name: _fill(fill) for name, fill in test.fills.items()}
    if test.zips:
        data["zip"] = [list(members) for members in test.zips]
    return data


def plain_condition(when: Condition) -> dict[str, list[str]]:
    """Return a condition with its ids in order."""
    return {key: sorted(ids) for key, ids in when.items()}


def _when(when: Condition) -> dict[str, Any]:
    return {"when": plain_condition(when)} if when else {}


def _fill(fill: FillIn) -> dict[str, Any]:
    if isinstance(fill, PairFillIn):
        return {
            "pairs": list(fill.of),
            **fill.model_dump(include={"named", "ordered"}, exclude_defaults=True),
        }
    return {
        name: _texts(forms[0]) if len(forms) == 1 and not forms[0].when else [_form(form) for form in forms]
        for name, forms in fill.values.items()
    }


def _texts(form: Form) -> str | list[str]:
    return form.texts[0] if len(form.texts) == 1 else list(form.texts)


def _form(form: Form) -> dict[str, Any]:
    return {"form": _texts(form), **_when(form.when)}
