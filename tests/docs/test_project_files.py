"""The project files of the repository: citation, forms for issues, checklists."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.docs.page import ROOT

FORMS = sorted((ROOT / ".github" / "ISSUE_TEMPLATE").glob("*.yml"))
TYPES = {"markdown", "input", "textarea", "dropdown", "checkboxes"}
CITATION_KEYS = {
    *("cff-version", "message", "title", "type", "license", "version", "authors", "keywords", "abstract"),
    *("date-released", "doi", "identifiers", "preferred-citation", "references", "repository-code", "url"),
}
"""The keys of the Citation File Format 1.2.0 that software has."""


def document(path: Path) -> dict[str, Any]:
    return yaml.safe_load(path.read_text(encoding="utf-8"))  # type: ignore[no-any-return]


def test_citation_is_what_the_format_asks_for() -> None:
    citation = document(ROOT / "CITATION.cff")
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert {"cff-version", "message", "title", "authors"} <= citation.keys() <= CITATION_KEYS
    assert citation["cff-version"] == "1.2.0"
    assert citation["type"] == "software"
    assert (citation["version"], citation["license"]) == (project["version"], project["license"])
    assert citation["authors"]
    for author in citation["authors"]:
        assert "name" in author or {"family-names", "given-names"} <= author.keys()
    assert all(isinstance(word, str) for word in citation["keywords"])


@pytest.mark.parametrize(
    "form", [form for form in FORMS if form.stem != "config"], ids=lambda form: form.stem
)
def test_forms_of_issues_are_whole(form: Path) -> None:
    content = document(form)
    assert {"name", "description", "body"} <= content.keys() <= {"name", "description", "labels", "body"}
    fields = [part for part in content["body"] if part["type"] != "markdown"]
    assert fields
    assert len({part["id"] for part in fields}) == len(fields)
    for part in content["body"]:
        assert part["type"] in TYPES
        assert "value" in part["attributes"] if part["type"] == "markdown" else "label" in part["attributes"]
        if part["type"] == "checkboxes":
            assert all(option["label"] for option in part["attributes"]["options"])


def test_there_is_a_form_for_bugs_tasks_and_languages() -> None:
    assert {"bug", "task", "language"} <= {form.stem for form in FORMS}


def test_the_provenances_that_are_asked_are_those_of_specs() -> None:
    import json

    schema = json.loads((ROOT / "task_specs/harness_task_specs/task.schema.json").read_text(encoding="utf-8"))
    known = schema["$defs"]["LanguageEntry"]["properties"]["provenance"]
    allowed = known.get("enum") or next(one["enum"] for one in known["anyOf"] if "enum" in one)
    form = document(ROOT / ".github" / "ISSUE_TEMPLATE" / "language.yml")
    asked = next(part for part in form["body"] if part.get("id") == "provenance")
    assert asked["attributes"]["options"] == allowed


def test_checklists_name_what_there_is() -> None:
    targets = set(
        re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), flags=re.MULTILINE)
    )
    for name in ("CONTRIBUTING.md", ".github/pull_request_template.md", "docs/project/release-checklist.md"):
        text = (ROOT / name).read_text(encoding="utf-8")
        assert set(re.findall(r"`make ([a-z-]+)`", text)) <= targets, name
        for path in re.findall(r"`((?:docs|harness|plugins|task_specs)/[\w./-]*)`", text):
            assert (ROOT / path).exists(), f"{name} names {path}"
