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


def evaluate_majority(
    cli: Cli, run: Path, tasks: str, *further: object, data: object = "sample"
) -> tuple[int, str, str]:
    """Evaluate the baseline of the commonest label, and return how the command ended."""
    given = ("--tasks", tasks, "--data", data, "--model", "baseline:majority")
    return cli("eval", *given, "--output", run, *further)


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
    assert cli("tasks", "validate", mood)[0] == 0
    run = tmp_path / "run"
    status, out, err = evaluate_majority(cli, run, "mood,xnli:en", "--tasks-from", mood)
    assert status == 0, err
    assert {cell["task"] for cell in read_results(run)["cells"] if cell["status"] == "ok"} == {"xnli"}
    assert "'transfer'" in out + err
    # Without another task it says what to add.
    write_items(tmp_path / "data")
    alone = evaluate_majority(cli, tmp_path / "b", "mood", "--tasks-from", mood, data=tmp_path / "data")
    assert alone[0] == 2
    assert "'transfer'" in alone[2]


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
    assert evaluate_majority(cli, run, "xnli:en")[0] == 0
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
    status, _, err = evaluate_majority(cli, run, "xnli:en+sw", data=data.parent)
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
    assert evaluate_majority(cli, run, "xnli:en")[0] == 0
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
    assert evaluate_majority(cli, run, "xnli:en+sw")[0] == 0
    return run


def _without(parent: Any, key: Any) -> None:
    del parent[key]


def _of_another_type(parent: Any, key: Any) -> None:
    parent[key] = 3 if isinstance(parent[key], str) else "x"


PLACES: dict[str, list[list[Any]]] = {
    "manifest.json": [
        *(["config"], ["tasks"], ["tasks", "xnli"], ["cells"], ["versions"], ["resolved"], ["model"]),
    ],
    "results.json": [
        *(["cells"], ["tasks"], ["suites"], ["run"], ["model"], ["tasks", 0, "value"]),
        *(["cells", 0, name] for name in ("metrics", "status", "language")),
    ],
}


@pytest.mark.parametrize("harm", [_without, _of_another_type])
@pytest.mark.parametrize(
    ("file", "place"), [(file, place) for file, places in PLACES.items() for place in places]
)
def test_a_damaged_run_folder_is_an_error_of_that_folder(
    cli: Cli, finished: Path, harm: Any, file: str, place: list[Any]
) -> None:
    content = parent = json.loads((finished / file).read_text(encoding="utf-8"))
    for key in place[:-1]:
        parent = parent[key]
    harm(parent, place[-1])
    (finished / file).write_text(json.dumps(content), encoding="utf-8")
    for name in ("report", "score", "compare", "diagnose", "eval --resume"):
        command = (*name.split(), finished, *([finished] if name == "compare" else []))
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
    tasks = "xnli" if "languages" in settings else "xnli:en+sw"
    run = evaluate(tasks, "baseline:majority", data="sample", output=tmp_path / "run", **settings)
    assert len(run.cells) == cells


@pytest.mark.parametrize(
    "settings",
    [{"limit": "ten"}, {"seeds": "x"}, {"model": object()}, {"options": 3}],
    ids=lambda given: next(iter(given)),
)
def test_other_values_are_usage_errors(settings: dict[str, Any], tmp_path: Path) -> None:
    given: dict[str, Any] = {"model": "baseline:majority", "data": "sample", "output": tmp_path / "run"}
    [name] = settings
    with pytest.raises(UsageError, match=name):
        evaluate("xnli:en", **{**given, **settings})
