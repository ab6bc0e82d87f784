"""Runs whose surroundings misbehave: no wrong number, no lost work, no foreign code."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from harness.api import evaluate
from harness.errors import UsageError

from ..conftest import Cli, InstallPlugin
from .evaluation import read_results
from .mood_spec import MOOD

SPEC = f"""\
{MOOD}languages:
  en: {{test: {{local: mood/en.jsonl, reader: jsonl}}, provenance: native}}
"""


def write_items(folder: Path, labels: str = "gbgbgb") -> Path:
    """Write a test file of the task `mood` and return it."""
    names = {"g": "good", "b": "bad"}
    file = folder / "mood" / "en.jsonl"
    file.parent.mkdir(parents=True, exist_ok=True)
    rows = [
        {"id": str(number), "text": f"text {number}", "label": names[letter]}
        for number, letter in enumerate(labels)
    ]
    file.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return file


@pytest.fixture
def mood(tmp_path: Path) -> Path:
    """A folder with the spec of a task that has test data alone."""
    folder = tmp_path / "specs"
    folder.mkdir()
    (folder / "mood.yaml").write_text(SPEC, encoding="utf-8")
    return folder


def test_a_task_with_test_data_alone_is_skipped_and_the_others_run(
    cli: Cli, mood: Path, tmp_path: Path
) -> None:
    status, _, _ = cli("tasks", "validate", mood)
    assert status == 0
    run = tmp_path / "run"
    given = ("eval", "--tasks", "mood,xnli:en", "--tasks-from", mood, "--data", "sample", "--output", run)
    status, out, err = cli(*given, "--model", "baseline:majority")
    assert status == 0, err
    assert {cell["task"] for cell in read_results(run)["cells"] if cell["status"] == "ok"} == {"xnli"}
    assert "'transfer'" in out + err


def test_without_another_task_the_sentence_says_what_to_add(cli: Cli, mood: Path, tmp_path: Path) -> None:
    write_items(tmp_path / "data")
    given = ("eval", "--tasks", "mood", "--tasks-from", mood, "--data", tmp_path / "data")
    status, _, err = cli(*given, "--model", "baseline:majority")
    assert status == 2
    assert "'transfer'" in err


def test_an_observer_cannot_change_scores(cli: Cli, install_plugin: InstallPlugin, tmp_path: Path) -> None:
    install_plugin(
        "greedy",
        """
from harness.hookspecs import hookimpl

@hookimpl
def harness_cell_finished(cell):
    cell.view["more"] = "x"
    cell.metrics["accuracy"] = cell.metrics["accuracy"].changed(value=0.999)
    cell.n = 12345
""",
    )
    run = tmp_path / "run"
    given = ("eval", "--tasks", "xnli:en", "--data", "sample", "--output", run)
    assert cli(*given, "--model", "baseline:majority")[0] == 0
    [cell] = read_results(run)["cells"]
    assert cell["n"] < 12345
    assert cell["metrics"]["accuracy"]["value"] < 0.999
    assert cell["view"] == {}


CHANGING = """
from pathlib import Path
from harness.hookspecs import hookimpl

FILE = Path({file!r})

@hookimpl
def harness_cell_finished(cell):
    {change}
"""
"""An observer that changes the second cell's file when the first is finished."""


@pytest.mark.parametrize(
    "change",
    [
        'FILE.write_text(FILE.read_text().replace("entailment", "neutral"))',
        "FILE.exists() and FILE.unlink()",
    ],
)
def test_a_file_that_changes_or_vanishes_fails_its_cell_alone(
    cli: Cli, install_plugin: InstallPlugin, tmp_path: Path, change: str
) -> None:
    data = tmp_path / "data" / "xnli"
    data.mkdir(parents=True)
    for split in ("train-en", "dev-en", "test-en", "test-sw"):
        rows = [f"premise {n}\thypothesis {n}\t{'entailment' if n % 2 else 'neutral'}" for n in range(8)]
        (data / f"{split}.tsv").write_text("\n".join(rows) + "\n", encoding="utf-8")
    install_plugin("changing", CHANGING.format(file=str(data / "test-sw.tsv"), change=change))
    run = tmp_path / "run"
    given = ("eval", "--tasks", "xnli:en+sw", "--data", data.parent, "--output", run)
    status, _, err = cli(*given, "--model", "baseline:majority")
    assert status == 1, err
    by_language = {cell["language"]: cell for cell in read_results(run)["cells"]}
    assert by_language["en"]["status"] == "ok"
    assert by_language["sw"]["status"] == "failed"
    assert "test-sw.tsv" in by_language["sw"]["reason"]
    planned = json.loads((run / "manifest.json").read_text(encoding="utf-8"))
    [split] = [one for one in planned["resolved"]["data"] if one["language"] == "sw"]
    assert by_language["sw"]["data"]["digest"] == split["digest"]


@pytest.mark.parametrize(
    ("known", "needed"),
    [({"allow_code": True}, ["--allow-code"]), ({"options": {"trust_remote_code": "true"}}, [])],
)
def test_a_resumed_run_folder_cannot_allow_code(
    cli: Cli, tmp_path: Path, known: dict[str, Any], needed: list[str]
) -> None:
    run = tmp_path / "run"
    given = ("eval", "--tasks", "xnli:en", "--data", "sample", "--output", run)
    assert cli(*given, "--model", "baseline:majority")[0] == 0
    manifest = json.loads((run / "manifest.json").read_text(encoding="utf-8"))
    manifest["config"] |= known
    (run / "manifest.json").write_text(json.dumps(manifest), encoding="utf-8")
    status, _, err = cli("eval", "--resume", run)
    assert status == 2
    assert "again" in err
    if needed:
        assert cli("eval", "--resume", run, *needed)[0] == 0


@pytest.fixture
def finished(cli: Cli, tmp_path: Path) -> Path:
    """A finished run of a baseline on sample items."""
    run = tmp_path / "run"
    given = ("eval", "--tasks", "xnli:en+sw", "--data", "sample", "--output", run)
    assert cli(*given, "--model", "baseline:majority")[0] == 0
    return run


def _without(content: Any, *place: Any) -> None:
    for key in place[:-1]:
        content = content[key]
    del content[place[-1]]


def _of_another_type(content: Any, *place: Any) -> None:
    for key in place[:-1]:
        content = content[key]
    content[place[-1]] = "x" if not isinstance(content[place[-1]], str) else 3


PLACES: dict[str, list[tuple[Any, ...]]] = {
    "manifest.json": [
        ("config",),
        ("tasks",),
        ("tasks", "xnli"),
        ("cells",),
        ("versions",),
        ("resolved",),
        ("model",),
    ],
    "results.json": [
        ("cells",),
        ("tasks",),
        ("suites",),
        ("run",),
        ("model",),
        ("cells", 0, "metrics"),
        ("cells", 0, "status"),
        ("cells", 0, "language"),
        ("tasks", 0, "value"),
    ],
}


@pytest.mark.parametrize("harm", [_without, _of_another_type])
@pytest.mark.parametrize(
    ("file", "place"), [(file, place) for file, places in PLACES.items() for place in places]
)
def test_a_damaged_run_folder_is_an_error_of_that_folder(
    cli: Cli, finished: Path, harm: Any, file: str, place: tuple[Any, ...]
) -> None:
    content = json.loads((finished / file).read_text(encoding="utf-8"))
    harm(content, *place)
    (finished / file).write_text(json.dumps(content), encoding="utf-8")
    commands = [
        ("report", finished),
        ("score", finished),
        ("compare", finished, finished),
        ("diagnose", finished),
        ("eval", "--resume", finished),
    ]
    for command in commands:
        status, out, err = cli(*command)
        assert "fault of the harness" not in out + err, (command, err)
        assert status in {0, 1, 2}


@pytest.mark.parametrize(
    ("settings", "cells"),
    [({"seeds": 1}, 2), ({"limit": "10"}, 2), ({"languages": "sw,en"}, 2), ({"languages": "sw"}, 1)],
)
def test_python_settings_are_read_as_a_user_means_them(
    tmp_path: Path, settings: dict[str, Any], cells: int
) -> None:
    run = evaluate(
        "xnli:en+sw" if "languages" not in settings else "xnli",
        "baseline:majority",
        data="sample",
        output=tmp_path / "run",
        **settings,
    )
    assert len(run.cells) == cells


@pytest.mark.parametrize(
    ("settings", "name"),
    [
        ({"limit": "ten"}, "limit"),
        ({"seeds": "x"}, "seeds"),
        ({"model": object()}, "model"),
        ({"options": 3}, "options"),
    ],
)
def test_other_values_are_usage_errors(settings: dict[str, Any], name: str, tmp_path: Path) -> None:
    given: dict[str, Any] = {
        "model": "baseline:majority",
        "data": "sample",
        "output": tmp_path / "run",
        **settings,
    }
    with pytest.raises(UsageError, match=name):
        evaluate("xnli:en", **given)
