"""Spec folders and documents that are broken, huge or hostile: each is reported, and the others are listed."""

from __future__ import annotations

import os
import stat
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from harness.errors import SpecError
from harness.specs import folder as spec_folder
from harness.specs.catalog import Catalog
from harness.specs.loading import MOST_LEVELS, read_yaml

from .mood_spec import PLAN, SPECS, task_text

pytestmark = pytest.mark.thorough

Package = Callable[..., Path]
Harness = Callable[..., Any]

PORTUGUESE = "extends: xnli\nlanguages: {pt: {provenance: native}}\n"
BOMB = "task: x\na: &a [x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"{chr(98 + level)}: &{chr(98 + level)} [{', '.join([f'*{chr(97 + level)}'] * 9)}]\n"
    for level in range(9)
)


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HARNESS_CACHE", str(tmp_path / "cache"))


@pytest.fixture
def specs(tmp_path: Path) -> Path:
    """A folder with one right document."""
    made = tmp_path / "specs"
    made.mkdir()
    (made / "right.yaml").write_text(task_text("right"), encoding="utf-8")
    return made


def _read(specs: Any) -> tuple[list[str], list[str]]:
    """Return the names of the documents of a folder, and what is reported about it."""
    began = time.monotonic()
    catalog = Catalog([("mine", specs)], kind_models={})
    assert time.monotonic() - began < 30
    return [entry.name for entry in catalog.entries], [str(problem) for problem in catalog.problems]


def test_every_broken_document_is_reported_and_the_others_are_listed_and_run(
    package: Package, harness: Harness, site: Path
) -> None:
    package(
        "strange",
        {
            "strange/__init__.py": SPECS,
            "strange/specs/a_right.yaml": task_text("greetings"),
            "strange/specs/syntax.yaml": "task: x\nkind: [\n",
            "strange/specs/bytes.yaml": b"task: \xff\xfe\n",
            "strange/specs/bomb.yaml": BOMB,
            "strange/specs/large.yaml": "task: x\ndescription: |\n" + "  text\n" * 400_000,
            "strange/specs/odd.yaml": "task: odd\nkind: [a]\nlicense: {b: 1}\nlanguages: [en]\nmetrics: 5\n",
            "strange/specs/prompt.yaml": "prompt: strange/default\ntasks: 5\n",
            "strange/specs/suite.yaml": "suite: strange\ntasks: 7\n",
            "strange/specs/scores.yaml": "published: strange\nsuite: xtreme_r\nscores: 5\n",
            "strange/specs/added.yaml": "extends: xnli\nlanguages: {yo: {tset: {local: a.tsv}}}\n",
        },
    )
    folder = site / "strange" / "specs"
    listed = harness("tasks", "list")
    assert listed.status == 0
    assert {"xnli", "greetings", "odd"} <= {line.split()[0] for line in listed.out.splitlines()}
    for name, fault in {
        "syntax.yaml": "\n  line 2: ",
        "bytes.yaml": "\n  is not UTF-8: ",
        "bomb.yaml": "\n  line 7: ",
        "large.yaml": "\n  has more than 2,000,000 bytes, the most that a spec may have",
    }.items():
        assert f"Warning: {folder / name} has 1 fault:{fault}" in listed.err
    assert listed.err.count("Warning: ") == 4
    planned = harness(*PLAN)
    assert planned.status == 0
    assert (
        f"{folder / 'added.yaml'} has 1 fault:\n  line 2: languages.yo.tset: unknown key 'tset'"
        in planned.err
    )
    assert harness("plan", "--tasks", "odd", *PLAN[3:]).status == 2
    checked = harness("tasks", "validate")
    assert checked.status == 2
    for name in ("syntax", "odd", "prompt", "suite", "scores", "added"):
        assert f"{folder / f'{name}.yaml'}: " in checked.err
    assert "ok  task xnli\n" in checked.out


def test_a_language_of_a_broken_fragment_is_unknown_and_the_reason_is_reported(
    package: Package, harness: Harness
) -> None:
    fragment = "extends: xnli\nlanguages: {yo: {tset: {local: a.tsv}}}\n"
    package("strange", {"strange/__init__.py": SPECS, "strange/specs/added.yaml": fragment})
    planned = harness("plan", "--tasks", "xnli:yo+de", *PLAN[3:])
    assert planned.status == 0
    assert "1 cell, 1 task, 1 language, 1 model to fit" in planned.out
    assert "Skipped: 1 cell\n" in planned.out
    assert "xnli yo" in planned.out
    assert "unknown key 'tset'" in planned.err


SPLIT = "provenance: native, test: {{local: a.tsv, reader: {}}}"
FAULTY_FRAGMENTS = {
    "an unknown code": (f"xya: {{{SPLIT.format('jsonl')}}}", "'xya'"),
    "a withdrawn code": (f"iw: {{{SPLIT.format('jsonl')}}}", "withdrawn ISO 639-1 code of Hebrew"),
    "an unknown reader": (f"yo: {{{SPLIT.format('tvs')}}}", "No reader named 'tvs'"),
    "words of no language": (
        "fa: {prompts: {default: {provenance: native, words: {tag: x}}}}",
        "the task 'xnli' has no 'fa'",
    ),
}


@pytest.mark.parametrize(("entry", "printed"), FAULTY_FRAGMENTS.values(), ids=FAULTY_FRAGMENTS)
def test_a_fragment_of_a_plugin_that_cannot_be_used_stops_no_command(
    package: Package, harness: Harness, entry: str, printed: str
) -> None:
    fragment = f"extends: xnli\nlanguages:\n  {entry}\n"
    package("strange", {"strange/__init__.py": SPECS, "strange/specs/added.yaml": fragment})
    package("zz_fine", {"zz_fine/__init__.py": SPECS, "zz_fine/specs/pt.yaml": PORTUGUESE})
    planned = harness("plan", "--tasks", "xnli:de+pt", *PLAN[3:])
    assert planned.status == 0
    assert planned.err.startswith("Warning: ")
    assert planned.err.count("strange/specs/added.yaml has 1 fault:\n  line 3: ") == 1
    assert printed in planned.err
    assert "Skipped: 1 cell\n" in planned.out, "pt has no items, and stays"
    assert "task 'xnli' has no" not in planned.out


def test_published_scores_that_are_broken_stop_no_other(specs: Path) -> None:
    (specs / "scores.yaml").write_text("published: x\nsuite: s\nscores: 5\n", encoding="utf-8")
    catalog = Catalog([("mine", specs)], kind_models={})
    assert catalog.published_for("s") == []
    assert "scores.yaml has" in str(catalog.problems[0])


def test_files_that_cannot_be_read(specs: Path) -> None:
    (specs / "dangling.yaml").symlink_to(specs / "nowhere")
    (specs / "loop.yaml").symlink_to(specs / "loop.yaml")
    (specs / "device.yaml").symlink_to("/dev/zero")
    (specs / "folder.yaml").mkdir()
    os.mkfifo(specs / "pipe.yaml")
    names, printed = _read(specs)
    assert names == ["right"]
    faults = {line.split(" ", 1)[0].rpartition("/")[2]: line.rpartition(": ")[2] for line in printed}
    assert faults == {
        "dangling.yaml": "No such file or directory",
        "device.yaml": "it is no regular file",
        "loop.yaml": "Too many levels of symbolic links",
        "pipe.yaml": "it is no regular file",
    }


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_folder_and_a_file_without_permission(specs: Path) -> None:
    (specs / "right.yaml").chmod(0)
    assert "cannot be read: Permission denied" in _read(specs)[1][0]
    specs.chmod(0)
    assert "cannot be read: Permission denied" in _read(specs)[1][0]
    specs.chmod(stat.S_IRWXU)


class Strange:
    """A folder in a package whose loader fails."""

    name = "strange"

    def iterdir(self) -> Iterator[Any]:
        raise RuntimeError("no")

    def __str__(self) -> str:
        return "strange"


def test_folders_that_cannot_be_listed(specs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def rejected(path: Path) -> Iterator[Any]:
        raise PermissionError(13, "Permission denied", str(path))

    folders: list[tuple[Any, str]] = [
        (specs / "right.yaml", "cannot be read: Not a directory"),
        (specs / "none", "cannot be read: No such file or directory"),
        (Strange(), "cannot be read: RuntimeError: no"),
    ]
    for folder, fault in folders:
        names, [printed] = _read(folder)
        assert names == []
        assert printed.startswith(f"The folder {str(folder)!r} of the plugin 'mine' {fault}")
    monkeypatch.setattr("harness.specs.folder.os.scandir", rejected)
    assert "cannot be read: Permission denied" in _read(specs)[1][0]


def test_a_folder_with_too_many_files(specs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spec_folder, "MOST_ENTRIES", 20)
    for number in range(4):
        (specs / f"inner{number}").mkdir()
        for name in range(4):
            (specs / f"inner{number}" / f"{name}.txt").write_text("", encoding="utf-8")
    names, [printed] = _read(specs)
    assert names == []
    assert f"The folder {str(specs)!r} of the plugin 'mine' holds more than 20 files" in printed


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("a: " + "[" * 200_000, "line 1: mappings and lists are nested more than 100"),
        ("a:\n" + "- " * 100_000 + "x", "line 2: mappings and lists are nested more than 100"),
        ("{a: " * 200 + "1", "line 1: did not find expected ',' or '}'"),
        ("{a: " * 200 + "1" + "}" * 200, "line 1: mappings and lists are nested more than 100"),
        ("a: " + "9" * 5000, "line 1: expected a number of fewer digits, found one of 5,000"),
        (BOMB, "more than 200,000 values"),
        ("a: &a [*a]", "line 1: an alias is inside what it names"),
        ("a: !!python/object/apply:os.system [ls]", "line 1: tags such as"),
        ("a: \x00", "control characters are not allowed"),
    ],
    ids=["lists", "dashes", "open", "braces", "digits", "bomb", "loop", "tag", "zero"],
)
def test_hostile_yaml_ends_in_a_sentence(text: str, fault: str) -> None:
    began = time.monotonic()
    with pytest.raises(SpecError) as caught:
        read_yaml(text, "x.yaml")
    assert time.monotonic() - began < 20
    assert fault.lower() in str(caught.value).lower()


def test_usual_depth_and_aliases_are_fine() -> None:
    depth = MOST_LEVELS - 2
    text = "a: " + "[" * depth + "1" + "]" * depth + "\nb: &b {c: 1}\nd: [*b, *b]\n"
    assert read_yaml(text, "x").data["d"] == [{"c": 1}, {"c": 1}]
    many = "a: [" + ", ".join("[1]" for _ in range(3000)) + "]\n"
    assert len(read_yaml(many, "x").data["a"]) == 3000


def test_a_broken_fragment_that_the_user_gave_is_an_error(harness: Harness, specs: Path) -> None:
    (specs / "added.yaml").write_text("extends: right\nlanguages: {de: {tset: 1}}\n", encoding="utf-8")
    planned = harness("plan", "--tasks", "right", "--tasks-from", specs, *PLAN[3:])
    assert planned.status == 2
    assert f"Error: {specs / 'added.yaml'} has" in planned.err
    assert "unknown key 'tset'" in planned.err
