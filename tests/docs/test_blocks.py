"""Every block of the documentation is run, written, or checked; one that is none of these fails.

`console` blocks and those with ``file=`` are run and written by `test_pages`. Here the others are checked: shell
scripts by ``bash -n`` and their calls of harness and make against what there is, YAML against the schema of specs or
by its own reader, JSON, TOML and Python by their parsers. Text that nothing can check says so: it is ``text``.
"""

from __future__ import annotations

import json
import re
import subprocess
import tomllib
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import jsonschema
import pytest
import yaml

from tests.docs.command_line import OPTIONS, describe_fault, harness_calls, leaf_of
from tests.docs.page import DOCS, PAGES, ROOT, Block, blocks, page_name, unfenced

ALL_PAGES = [*PAGES, ROOT / "README.md", ROOT / "CONTRIBUTING.md"]
SCHEMA = ROOT / "task_specs/harness_task_specs/task.schema.json"
FOREIGN_OPTIONS = {
    "--install-completion": "harness itself",
    "--generation-config": "vllm serve",
    "--no-enable-prefix-caching": "vllm serve",
    "--reasoning-parser": "vllm serve",
    "--signal": "sbatch",
}
"""Options of no command of the harness that the text names."""


def text_of(page: Path) -> str:
    return page.read_text(encoding="utf-8")


def name_of(page: Path) -> str:
    return page_name(page) if page.is_relative_to(DOCS) else page.name


@cache
def schema() -> Mapping[str, Any]:
    return json.loads(SCHEMA.read_text(encoding="utf-8"))  # type: ignore[no-any-return]


# What is checked, by language ---------------------------------------------------------------------------


def check_shell(text: str) -> None:
    finished = subprocess.run(["bash", "-n"], input=text, capture_output=True, text=True, check=False)
    assert finished.returncode == 0, finished.stderr
    for words in harness_calls(text):
        fault = describe_fault(words)
        assert fault is None, f"harness {' '.join(words)}: {fault}"
    targets = re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), flags=re.MULTILINE)
    for line in text.splitlines():
        if line.startswith("make "):
            named = line.partition("#")[0].split()[1:]
            assert {name for name in named if "=" not in name} <= set(targets), f"{line}: no such target"


def check_yaml(text: str) -> None:
    """Check a document of ours, or a part of one: keys that specs know, with values that they take."""
    document = yaml.safe_load(text)
    assert isinstance(document, dict), "a mapping was expected"
    if {"language", "paradigms"} <= document.keys():
        return check_grammar(document)
    if {"language", "tests"} <= document.keys():
        return check_suite(text, document)
    if "jobs" in document:
        return check_workflow(document)
    whole = {"task", "training", "suite", "recipe", "prompt", "published", "extends"} & document.keys()
    if whole:
        jsonschema.validate(document, schema())
        return None
    for key, value in document.items():
        known = [one["properties"][key] for one in schema()["$defs"].values() if key in one["properties"]]
        assert known, f"no spec has the key {key!r}"
        jsonschema.validate(value, {"anyOf": known, "$defs": schema()["$defs"]})
    return None


def check_grammar(document: Mapping[str, Any]) -> None:
    from harness_vyakarana.grammar import Grammar

    Grammar.model_validate_json(json.dumps(document))


def check_workflow(document: Mapping[str, Any]) -> None:
    """Check the commands of a workflow of GitHub Actions."""
    scripts = [step["run"] for job in document["jobs"].values() for step in job["steps"] if "run" in step]
    assert scripts
    for script in scripts:
        check_shell(script)


def check_suite(text: str, document: Mapping[str, Any]) -> None:
    """Load the language as part of a suite that declares its tests."""
    from harness_checklist.folder import load_suite

    tests = {name: {"name": name, "capability": "any"} for name in document["tests"]}
    with TemporaryDirectory() as folder:
        languages = Path(folder) / "languages"
        languages.mkdir()
        (languages / f"{document['language']}.yaml").write_text(text, encoding="utf-8")
        declared = {"suite": "shown", "version": 1, "source_language": document["language"], "tests": tests}
        (Path(folder) / "suite.yaml").write_text(yaml.safe_dump(declared), encoding="utf-8")
        load_suite(Path(folder))


def check_json(text: str) -> None:
    """Check an object, or the lines of one."""
    json.loads(f"{{{text}}}" if text.startswith('"') else text)


def check_toml(text: str) -> None:
    assert tomllib.loads(text)


def check_python(text: str) -> None:
    compile(text, "block", "exec")


CHECKS: Mapping[str, Callable[[str], None]] = {
    "sh": check_shell,
    "yaml": check_yaml,
    "json": check_json,
    "toml": check_toml,
    "python": check_python,
    "text": lambda text: None,
}


def check(block: Block) -> None:
    """Raise where a block is not what it says."""
    if block.language == "console":
        return
    text = "\n".join(block.lines)
    if "file" in block.attributes:
        if block.language in {"python", "toml", "json"}:
            lines = block.lines if block.attributes["file"].endswith(".jsonl") else (text,)
            for line in lines:
                CHECKS[block.language](line)
        return
    assert block.language in CHECKS, f"```{block.language} is checked by nothing; use one of {sorted(CHECKS)}"
    CHECKS[block.language](text)


@pytest.mark.parametrize("page", ALL_PAGES, ids=name_of)
def test_every_block_is_checked(page: Path) -> None:
    for block in blocks(page):
        try:
            check(block)
        except Exception as error:
            raise AssertionError(f"{page.name}:{block.line}: {error}") from error


@pytest.mark.parametrize("page", PAGES, ids=page_name)
def test_code_is_fenced(page: Path) -> None:
    """Code that is merely indented has no language, so that nothing can check it."""
    assert list(unfenced(page)) == []


@pytest.mark.parametrize("page", PAGES, ids=page_name)
def test_lists_and_tables_begin_after_a_blank_line(page: Path) -> None:
    """GitHub takes them without one, the site's Markdown makes them part of the paragraph."""
    text = re.sub(r"^( *)```.*?^ *```", "\n", text_of(page), flags=re.MULTILINE | re.DOTALL)
    glued = re.findall(r"^(?![-*|#>\s]|\d+\.).+\n(?:[-*] |\||1\. ).*$", text, flags=re.MULTILINE)
    assert glued == []


# What the text says in passing --------------------------------------------------------------------------


def prose(page: Path) -> str:
    return re.sub(r"^( *)```.*?^ *```", "", text_of(page), flags=re.MULTILINE | re.DOTALL)


def inline_code(page: Path) -> list[str]:
    return [" ".join(span.split()) for span in re.findall(r"(?<!`)`([^`]+)`(?!`)", prose(page))]


@pytest.mark.parametrize("page", ALL_PAGES, ids=name_of)
def test_commands_in_the_text_exist(page: Path) -> None:
    """A command may be named without its arguments; its name and its options must exist."""
    for span in inline_code(page):
        words = span.split()
        if words[:1] == ["harness"] and words[1:] and re.fullmatch(r"[a-z]+", words[1]):
            assert leaf_of(words[1:]) or any(leaf_of([words[1], word]) for word in named_after(words[1])), (
                span
            )
        if words and (words[0] == "harness" or words[0].startswith("--")):
            options = {word.partition("=")[0] for word in words if word.startswith("--")}
            assert options <= OPTIONS | FOREIGN_OPTIONS.keys(), f"{span}: no command has {options - OPTIONS}"
        if words[:1] == ["make"] and len(words) > 1:
            check_shell(" ".join(words))


def named_after(word: str) -> list[str]:
    from tests.docs.command_line import LEAVES

    return [name.partition(" ")[2] for name in LEAVES if name.startswith(f"{word} ")]


def test_indented_commands_of_the_readme_are_parsed() -> None:
    for page in ("README.md", "CONTRIBUTING.md"):
        lines = re.findall(r"^    ((?:harness|make|pip) .+)$", (ROOT / page).read_text("utf-8"), re.MULTILINE)
        assert lines
        for line in lines:
            check_shell(line)
