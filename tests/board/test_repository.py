"""A results repository: file names, what joins and what is rejected, the board from it, and the template."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path, PurePosixPath
from typing import Any
from urllib.parse import unquote

import pytest
import yaml
from hypothesis import given, strategies as st
from pydantic import ValidationError
from typer.testing import CliRunner

import harness
from harness.cli.output import write_files
from harness.errors import SpecError, UsageError
from harness.storage.run_folder import Run
from harness_board.document import Board, board_rows
from harness_board.gathering import gather
from harness_board.rendering import board_page, site_pages
from harness_board.repository_checking import check_repository
from harness_board.repository_command import app
from harness_board.repository_entry import (
    LONGEST_NAME,
    RepositoryEntry,
    canonical,
    file_name,
    local_path,
)
from harness_board.repository_runs import (
    Allowed,
    RejectedRunError,
    entry_of,
    joined,
    publishable_tasks,
    read_entry,
    read_repository,
    write_entry,
)
from tests.board.conftest import HOSTILE

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "results-repository"
STRICT = Allowed()
Edit = Callable[[dict[str, Any]], None]


def _edited(run: Run, folder: Path, edit: Edit, file: str = "results.json") -> Run:
    """Return a copy of a run whose JSON was edited."""
    folder.mkdir()
    for name in ("manifest.json", "results.json"):
        content = json.loads((run.path / name).read_text(encoding="utf-8"))
        if name == file:
            edit(content)
        (folder / name).write_text(json.dumps(content), encoding="utf-8")
    return Run(folder)


# Names --------------------------------------------------------------------------------------------------


@given(st.text(min_size=1, max_size=40))
def test_any_name_becomes_one_safe_part_of_a_path_and_comes_back(name: str) -> None:
    try:
        safe = file_name(name)
    except (ValueError, UnicodeEncodeError):
        assert len(name) > 10 or not name.isprintable()
        return
    assert re.fullmatch(r"[A-Za-z0-9_%][A-Za-z0-9_.%~-]*", safe)
    assert not safe.endswith(".") and len(safe) <= LONGEST_NAME
    assert unquote(safe) == name
    assert len(PurePosixPath(safe).parts) == 1


@pytest.mark.parametrize(
    ("name", "safe"),
    [
        ("org/name", "org%2Fname"),
        ("..", "%2E%2E"),
        (".git", "%2Egit"),
        ("../../etc", "%2E.%2F..%2Fetc"),
        ("con", "%63on"),
        ("NUL.txt", "%4EUL.txt"),
        ("a%2Fb", "a%252Fb"),
        ("-rf", "%2Drf"),
        ("m@abc1234", "m%40abc1234"),
    ],
)
def test_names_that_lead_elsewhere_are_escaped(name: str, safe: str) -> None:
    assert file_name(name) == safe
    assert unquote(safe) == name


@pytest.mark.parametrize(
    ("texts", "is_local"),
    [
        (["/home/me/x", "at /data/runs/3", "~/models", r"C:\models\a", "file:/tmp/x", '"/tmp/a"'], True),
        (["org/name", "and/or", "https://example.org/a/b", "5 / 6", "Afro-Asiatic", "a:b"], False),
    ],
)
def test_local_paths_are_seen(texts: list[str], is_local: bool) -> None:
    assert [local_path(text) is not None for text in texts] == [is_local] * len(texts)


# Adding -------------------------------------------------------------------------------------------------


def test_a_file_has_what_makes_its_numbers(entry: RepositoryEntry, whole: Run) -> None:
    [run] = entry.runs
    assert (entry.model, entry.task.name, entry.task.version) == ("random", "mood", 1)
    assert (run.harness, run.created) == (whole.results.run.harness, whole.results.run.created)
    assert {score.language for score in run.scores} == {"en", "sw"}
    for score in run.scores:
        [cell] = [cell for cell in whole.cells if cell.language == score.language]
        value = cell.metrics["accuracy"]
        assert score.metrics["accuracy"].value == pytest.approx(value.value, abs=1e-6)
        assert score.metrics["accuracy"].ci == pytest.approx(value.ci, abs=1e-6)
        assert (score.n, score.size, score.items.origin) == (12, 12, "local")
        assert not score.partial and not score.unpinned
    assert str(whole.path.parent) not in entry.text()


def test_the_bytes_are_the_same_whatever_the_order(entry: RepositoryEntry, tmp_path: Path) -> None:
    path = write_entry(entry, tmp_path)
    assert path == tmp_path / "results/random/mood-v1.json"
    text = path.read_text(encoding="utf-8")
    assert read_entry(path).text() == text
    assert canonical(json.loads(text)) == text
    content = json.loads(text)
    backwards = {key: content[key] for key in reversed(content)}
    assert canonical(backwards) == text
    lines = [line for line in text.splitlines() if '"language":' in line]
    assert len(lines) == 2


def test_seeds_and_languages_and_a_newer_harness_join(evaluate: Callable[..., Run], tmp_path: Path) -> None:
    english = entry_of(evaluate(languages=["en"]), "mood", allowed=STRICT)
    both = entry_of(evaluate(seeds=[1]), "mood", allowed=STRICT)
    more = joined(english, entry_of(evaluate(), "mood", allowed=STRICT))
    assert [score.language for run in more.runs for score in run.scores] == ["en", "sw"]
    assert more.runs[0] == english.runs[0]
    assert set(more.task.languages) == {"en", "sw"}
    seeds = joined(more, both)
    assert {(score.language, score.seed) for run in seeds.runs for score in run.scores} == {
        *((code, 1) for code in ("en", "sw")),
        *((code, 42) for code in ("en", "sw")),
    }
    newer = _edited(evaluate(), tmp_path / "newer", lambda content: content["run"].update(harness="9.0.0"))
    latest = joined(seeds, entry_of(newer, "mood", allowed=STRICT))
    assert [run.harness for run in latest.runs].count("9.0.0") == 1
    assert sum(len(run.scores) for run in latest.runs) == 6
    assert joined(latest, both) == latest
    write_entry(latest, tmp_path)
    assert check_repository(tmp_path).faults == []


def test_another_value_of_the_same_score_is_rejected_or_replaced(
    entry: RepositoryEntry, whole: Run, tmp_path: Path
) -> None:
    def change(content: dict[str, Any]) -> None:
        [cell] = [cell for cell in content["cells"] if cell["language"] == "sw"]
        cell["metrics"]["accuracy"].update(value=0.75, ci=[0.4, 0.9])

    changed = entry_of(_edited(whole, tmp_path / "changed", change), "mood", allowed=STRICT)
    with pytest.raises(RejectedRunError, match="--replace"):
        joined(entry, changed)
    replaced = joined(entry, changed, replace=True)
    values = {
        score.language: score.metrics["accuracy"].value for run in replaced.runs for score in run.scores
    }
    assert values["sw"] == 0.75
    assert len(values) == sum(len(run.scores) for run in replaced.runs) == 2


def test_other_weights_and_another_task_are_rejected(entry: RepositoryEntry) -> None:
    [run] = entry.runs
    heavy = [
        entry.model_copy(update={"runs": (run.model_copy(update={"weights": mark * 64}),)}) for mark in "ab"
    ]
    with pytest.raises(RejectedRunError, match="weights"):
        joined(*heavy)
    other = entry.model_copy(update={"task": entry.task.model_copy(update={"headline": ("macro_f1",)})})
    with pytest.raises(RejectedRunError, match="headline"):
        joined(entry, other)
    model = entry.model_copy(update={"runs": (run.model_copy(update={"adapter": "hf-causal"}),)})
    with pytest.raises(RejectedRunError, match="--name"):
        joined(entry, model)


def test_sample_data_are_rejected(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HARNESS_CACHE", str(tmp_path / "cache"))
    run = harness.evaluate("xnli:en", "baseline:random", data="sample", output=tmp_path / "run")
    with pytest.raises(RejectedRunError, match="sample data"):
        publishable_tasks(run)


def _cell(**fields: Any) -> Edit:
    return lambda content: content["cells"][0].update(fields)


def _unpinned(content: dict[str, Any]) -> None:
    content["cells"][0]["data"].update(origin="hub", pinned=False)


@pytest.mark.parametrize(
    ("edit", "fix"),
    [
        (_cell(status="failed", reason="out of memory", metrics={}), "--resume"),
        (
            lambda content: content["cells"][0]["metrics"]["accuracy"].update(ci=None, ci_method=None),
            "harness score",
        ),
        (_unpinned, "--unpinned"),
        (_cell(view={"translator": "/home/me/models/nllb"}), "/home/me/models"),
        (lambda content: content["run"].update(harness=None), "harness"),
    ],
)
def test_what_is_rejected_says_why_and_what_to_do(edit: Edit, fix: str, whole: Run, tmp_path: Path) -> None:
    run = _edited(whole, tmp_path / "run", edit)
    with pytest.raises(RejectedRunError) as error:
        for task in publishable_tasks(run):
            entry_of(run, task, allowed=STRICT)
    assert fix in str(error.value)
    assert error.value.hint


def test_what_is_allowed_is_marked(evaluate: Callable[..., Run], whole: Run, tmp_path: Path) -> None:
    run = evaluate(limit=4)
    with pytest.raises(RejectedRunError, match="--partial"):
        entry_of(run, "mood", allowed=STRICT)
    partial = entry_of(run, "mood", allowed=Allowed(partial=True))
    assert all(score.partial and score.n == 4 for score in partial.runs[0].scores)
    loose = entry_of(_edited(whole, tmp_path / "run", _unpinned), "mood", allowed=Allowed(unpinned=True))
    assert sum(score.unpinned for score in loose.runs[0].scores) == 1


def test_a_name_that_is_too_long_or_reorders_text_is_rejected(whole: Run) -> None:
    for name in ("模" * 100, "safe\u202egnp.exe", " a"):
        with pytest.raises(RejectedRunError):
            entry_of(whole, "mood", name=name, allowed=STRICT)


# The board ----------------------------------------------------------------------------------------------


def test_a_board_from_files_is_the_board_of_the_runs(
    evaluate: Callable[..., Run], whole: Run, tmp_path: Path
) -> None:
    runs = [whole, evaluate("baseline:majority")]
    for run in runs:
        write_entry(entry_of(run, "mood", allowed=STRICT), tmp_path)
    of_runs, of_files = (
        sorted(board_rows(board), key=lambda row: (row["system"], row["metric"], row["language"]))
        for board in (gather(runs=runs), gather(stored=read_repository(tmp_path)))
    )
    assert len(of_runs) == len(of_files) == 6
    for ours, theirs in zip(of_files, of_runs, strict=True):
        for number in ("value", "se"):
            assert ours.pop(number) == pytest.approx(theirs.pop(number), abs=2e-6)
        assert ours == theirs


def test_the_newest_harness_counts_and_joined_means_have_the_largest_error(
    evaluate: Callable[..., Run], tmp_path: Path
) -> None:
    def newer(content: dict[str, Any]) -> None:
        content["run"].update(harness="9.0.0", created="2999-01-01T00:00:00+00:00")
        for cell in content["cells"]:
            cell["metrics"]["accuracy"].update(value=0.75, se=0.2, ci=[0.5, 0.9])
        content["tasks"] = []

    english = entry_of(evaluate(languages=["en"]), "mood", allowed=STRICT)
    later = entry_of(_edited(evaluate(), tmp_path / "newer", newer), "mood", allowed=STRICT)
    whole = joined(english, later)
    # Independent languages, and languages whose items are translations of each other.
    for is_parallel, error in ((False, 20 / 2**0.5), (True, 20.0)):
        task = whole.task.model_copy(update={"parallel": is_parallel})
        write_entry(whole.model_copy(update={"task": task}), tmp_path)
        [system] = read_repository(tmp_path).systems
        [score] = system.scores
        assert score.by_language == {"en": 75.0, "sw": 75.0}
        assert score.mean == pytest.approx(75.0)
        assert score.se == pytest.approx(error)
    assert system.run.startswith("harness 9.0.0")


def test_partial_scores_are_not_ranked_next_to_whole_ones(
    evaluate: Callable[..., Run], whole: Run, tmp_path: Path
) -> None:
    write_entry(entry_of(whole, "mood", allowed=STRICT), tmp_path)
    limited = evaluate("baseline:majority", limit=4)
    write_entry(entry_of(limited, "mood", allowed=Allowed(partial=True)), tmp_path)
    board = gather(stored=read_repository(tmp_path))
    assert {system.label: system.scores[0].is_starred for system in board.systems} == {
        "random": False,
        "majority": True,
    }


def _write_site(board: Board, folder: Path) -> int:
    return len(write_files(((name, make()) for name, make in site_pages(board).items()), folder))


def test_an_older_version_and_a_task_of_a_source_have_pages(entry: RepositoryEntry, tmp_path: Path) -> None:
    write_entry(entry, tmp_path)
    newer = entry.task.model_copy(update={"version": 2})
    write_entry(entry.model_copy(update={"model": "z", "task": newer}), tmp_path)
    sourced = entry.task.model_copy(update={"name": "lm_eval:arc_sw"})
    path = write_entry(entry.model_copy(update={"task": sourced}), tmp_path)
    assert path.name == "lm_eval%3Aarc_sw-v1.json"
    assert check_repository(tmp_path).faults == []
    board = gather(stored=read_repository(tmp_path))
    assert {column.task for column in board.tasks} == {"mood", "mood-v1", "lm_eval:arc_sw"}
    assert _write_site(board, tmp_path / "site") == 6
    assert (tmp_path / "site" / "task-lm_eval.arc_sw.html").is_file()


def test_a_prompt_that_a_newer_harness_changed_is_no_second_seed(
    entry: RepositoryEntry, tmp_path: Path
) -> None:
    def with_prompt(digest: str, harness: str, value: float, **fields: Any) -> RepositoryEntry:
        content = json.loads(entry.text())
        content["runs"][0].update(harness=harness, created=f"{harness[0]}999-01-01T00:00:00", means=[])
        for score in content["runs"][0]["scores"]:
            score.update(prompt=digest * 16, **fields)
            score["metrics"]["accuracy"] = {"value": value, "ci_method": "none"}
        return RepositoryEntry.model_validate_json(json.dumps(content))

    both = joined(with_prompt("a", "1.0.0", 0.25), with_prompt("b", "2.0.0", 0.75))
    stand_in = with_prompt("b", "3.0.0", 0.5, split="validation", stands_in=True)
    write_entry(joined(both, stand_in), tmp_path)
    [system] = read_repository(tmp_path).systems
    assert system.scores[0].by_language == {"en": 75.0, "sw": 75.0}


def test_names_from_outside_stay_text(entry: RepositoryEntry, tmp_path: Path) -> None:
    write_entry(entry.model_copy(update={"model": HOSTILE[:60]}), tmp_path)
    assert check_repository(tmp_path).faults == []
    page = board_page(gather(stored=read_repository(tmp_path)))
    assert "<img src=x" not in page
    assert "&lt;img src=x" in page


def test_a_file_at_the_place_of_another_model_makes_no_board(entry: RepositoryEntry, tmp_path: Path) -> None:
    path = write_entry(entry, tmp_path)
    path.rename(path.with_name("mood-v7.json"))
    with pytest.raises(UsageError, match="harness results check"):
        read_repository(tmp_path)
    path.with_name("mood-v7.json").write_text("{}", encoding="utf-8")
    with pytest.raises(SpecError):
        read_repository(tmp_path)


@pytest.mark.parametrize("folder", ["results", ""])
def test_no_repository_and_an_empty_one_raise(folder: str, tmp_path: Path) -> None:
    (tmp_path / folder).mkdir(exist_ok=True)
    with pytest.raises(UsageError):
        read_repository(tmp_path)


# The commands, and the template -------------------------------------------------------------------------


def test_the_commands_add_check_and_reject(whole: Run, evaluate: Callable[..., Run], tmp_path: Path) -> None:
    def run(*arguments: Any) -> tuple[int, str]:
        done = CliRunner().invoke(app, [str(argument) for argument in arguments])
        return done.exit_code, done.output

    assert run("add", whole.path, "--to", tmp_path, "--name", "org/mine") == (
        0,
        "added: results/org%2Fmine/mood-v1.json (en sw)\n",
    )
    assert run("add", whole.path, "--to", tmp_path, "--name", "org/mine")[0] == 0
    assert run("check", tmp_path) == (0, "1 file, 1 model, 1 task, 2 scores: no fault.\n")
    status, printed = run("add", evaluate(limit=2).path, "--to", tmp_path)
    assert (status, "--partial" in printed) == (1, True)
    (tmp_path / "results" / "x.txt").touch()
    status, printed = run("check", tmp_path, "--json", tmp_path / "faults.json")
    assert (status, "1 fault." in printed) == (1, True)
    assert [row["file"] for row in json.loads((tmp_path / "faults.json").read_text())] == ["results/x.txt"]
    assert run("add", whole.path, "--to", tmp_path / "none")[0] != 0


def test_the_template_is_a_repository_with_a_board(tmp_path: Path) -> None:
    report = check_repository(EXAMPLE)
    assert (report.faults, report.notes) == ([], [])
    assert report.models == {"majority", "char-ngram"}
    board = gather(stored=read_repository(EXAMPLE))
    labels = {system.label for system in board.systems}
    assert "character n-grams" in labels and len(labels) == 2
    assert _write_site(board, tmp_path) > 10


def test_the_workflows_of_the_template_may_do_little() -> None:
    workflows = {
        path.stem: yaml.safe_load(path.read_text("utf-8")) for path in EXAMPLE.glob(".github/workflows/*.yml")
    }
    assert workflows.keys() == {"check", "site"}
    for content in workflows.values():
        assert content["permissions"] == {"contents": "read"}
    assert list(workflows["check"][True]) == ["pull_request"]  # YAML 1.1 reads "on" as true
    assert workflows["site"][True]["push"] == {"branches": ["main"]}
    steps = [
        step["run"]
        for content in workflows.values()
        for job in content["jobs"].values()
        for step in job["steps"]
        if "run" in step
    ]
    assert sum(step.startswith("harness results check") for step in steps) == 2


@pytest.mark.parametrize("depth", range(5))
def test_unknown_keys_are_rejected_at_every_depth(depth: int, entry: RepositoryEntry) -> None:
    content = json.loads(entry.text())
    run = content["runs"][0]
    score = run["scores"][0]
    [content, content["task"], run, score, score["items"]][depth]["extra"] = 1
    with pytest.raises(ValidationError, match="extra"):
        RepositoryEntry.model_validate_json(json.dumps(content))
