"""The first look at a run: its rows, its mean, and how complete it is; on runs written by hand."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from harness.reporting.catalog import terminal_text
from harness.reporting.glance import Glance, glance
from harness.reporting.strips import language_groups, strip_head, strip_of
from harness.reporting.summary import summarise
from harness.reporting.system_name import short_name
from harness.storage.results import STOPPED
from harness.storage.run_folder import Run
from tests.builders import make_shown_cell, write_run

LANGUAGES = {
    "de": ["Indo-European", "Latn"],
    "en": ["Indo-European", "Latn"],
    "hi": ["Indo-European", "Deva"],
    "sw": ["Niger-Congo", "Latn"],
    "tr": ["Turkic", "Latn"],
    "zh": ["Sino-Tibetan", "Hans"],
}
SPEC = {
    "kind": "sequence_classification",
    "metrics": ["accuracy"],
    "headline": ["accuracy"],
    "source": "en",
    "languages": LANGUAGES,
}
Write = Callable[..., Run]


def _cell(task: str, code: str, value: float | None, **fields: Any) -> dict[str, Any]:
    half = fields.pop("half", 0.02)
    score = {} if value is None else {"accuracy": {"value": value, "ci": [value - half, value + half]}}
    return make_shown_cell(task, code, score, **{"n": 100, "seconds": 1.5, **fields})


def _without(status: str, reason: str, task: str, code: str) -> dict[str, Any]:
    return _cell(task, code, None, status=status, reason=reason, n=0, seconds=0.0)


@pytest.fixture
def write(tmp_path: Path) -> Write:
    numbers = iter(range(9))

    def written(*cells: dict[str, Any], specs: Mapping[str, Any] | None = None, **manifest: Any) -> Run:
        known = specs or {cell["task"]: {**SPEC, "chance": 0.5} for cell in cells}
        own = {"model": "hf:/models/mine", **manifest}
        return write_run(tmp_path / f"run-{next(numbers)}", cells, known, run={"data": "local"}, manifest=own)

    return written


def _glance(*runs: Run) -> Glance:
    return glance(runs, summarise(runs))


@pytest.mark.parametrize(
    ("model", "name"),
    [
        ("hf:/models/e5-small", "e5-small"),
        ("hf:/models/e5-small/", "e5-small"),
        ("hf:./e5", "e5"),
        ("hf:FacebookAI/xlm-roberta-base", "FacebookAI/xlm-roberta-base"),
        ("baseline:char-ngram", "char-ngram"),
        ("vllm:http://localhost:8000/v1", "http://localhost:8000/v1"),
        ("hf-encoder:a/b/c", "c"),
        (r"hf:C:\models\e5", "e5"),
        ("plain", "plain"),
    ],
)
def test_local_models_are_named_without_their_folders(model: str, name: str) -> None:
    assert short_name(model) == name


def test_a_row_has_the_weakest_languages_items_and_the_gap(write: Write) -> None:
    values = {"en": 0.9, "de": 0.7, "hi": 0.4, "sw": 0.6, "zh": 0.4}
    [task] = _glance(write(*(_cell("xnli", code, value) for code, value in values.items()))).tasks
    assert [language.code for language in task.weakest] == ["hi", "zh", "sw"]
    assert task.mean.value == pytest.approx((0.9 + 0.7 + 0.4 + 0.6 + 0.4) / 5)
    assert task.transfer_gap == pytest.approx(0.9 - (0.7 + 0.4 + 0.6 + 0.4) / 4)
    assert (task.items, task.seconds, task.source, task.chance) == (500, 7.5, "en", 0.5)


def test_two_languages_are_not_called_the_weakest(write: Write) -> None:
    [task] = _glance(write(_cell("xnli", "en", 0.9), _cell("xnli", "de", 0.7))).tasks
    assert (task.weakest, len(task.scored)) == ([], 2)


def test_the_mean_counts_a_task_once_and_adds_the_intervals(write: Write) -> None:
    run = write(
        _cell("xnli", "en", 0.9),
        _cell("xnli", "en", 0.1, protocol="frozen", fit=None, method="embed"),
        _cell("pawsx", "en", 0.5),
    )
    own = _glance(run)
    reaches = [task.mean.reach for task in own.averaged if task.mean.reach is not None]
    assert [task.column.task for task in own.tasks] == ["xnli", "xnli", "pawsx"]
    assert own.mean.value == pytest.approx((0.9 + 0.5) / 2)
    assert own.mean.interval is not None
    assert own.mean.reach == pytest.approx(math.sqrt(sum(reach**2 for reach in reaches)) / 2)


def test_completeness_counts_every_cell_once(write: Write) -> None:
    run = write(
        _cell("xnli", "en", 0.9),
        _cell("xnli", "de", None),
        _without("failed", "out of memory", "xnli", "hi"),
        _without("skipped", "task 'xnli' has no Swahili (sw)", "xnli", "sw"),
        _without("skipped", STOPPED, "pawsx", "zh"),
    )
    done = _glance(run).completeness
    assert (done.scored, done.unlabelled, done.failed, done.skipped, done.stopped) == (1, 1, 1, 1, 1)
    assert (done.cells, done.is_whole, done.tasks, done.languages) == (5, False, (1, 2), (1, 5))


def test_baselines_of_one_name_are_different_systems(write: Write) -> None:
    runs = [write(_cell("xnli", "en", value), model="baseline:majority") for value in (0.5, 0.25, 0.75)]
    [task] = _glance(*runs).tasks
    assert task.baselines == (("majority (2)", 0.25), ("majority (3)", 0.75))


# Strips --------------------------------------------------------------------------------------------------


def test_strips_are_in_the_order_of_families_in_every_row(write: Write) -> None:
    first = {"tr": 0.5, "en": 1.0, "de": 0.8, "sw": 0.62, "zh": 0.71}
    run = write(
        *(_cell("xnli", code, value) for code, value in first.items()),
        _without("failed", "broken", "pawsx", "de"),
        _cell("pawsx", "hi", 0.95),
    )
    own = _glance(run)
    groups = language_groups(own.tasks)
    assert groups == [["de", "en", "hi"], ["sw", "zh", "tr"]]
    assert strip_head(groups) == "deh szt\neni whr"
    # From a chance of 50 to 100 in fifths: 80 is in the fourth, 100 in the last, 62 in the second, 71 in the third.
    assert strip_of(own.tasks[0], groups) == "▓█  ░▒·"
    assert strip_of(own.tasks[1], groups) == "! █    "


def test_a_shade_differs_only_where_scores_do(write: Write) -> None:
    cells = [_cell("xnli", code, value, half=0.3) for code, value in (("de", 0.55), ("en", 0.95))]
    [task] = _glance(write(*cells)).tasks
    assert strip_of(task, [["de", "en"]]) == "▒▒"


# The terminal ---------------------------------------------------------------------------------------------


def test_the_overall_score_is_the_last_line(write: Write) -> None:
    run = write(_cell("xnli", "en", 0.9), _cell("pawsx", "en", 0.5))
    majority = write(_cell("xnli", "en", 0.5), _cell("pawsx", "en", 0.3), model="baseline:majority")
    last = terminal_text([run, majority], details=False).splitlines()[-1]
    assert last.startswith("Mean of 2 tasks: 70.0 ")
    assert last.endswith(" (majority 40.0)")


def test_a_stopped_run_says_how_to_continue(write: Write) -> None:
    run = write(
        _cell("xnli", "en", 0.9), *(_without("skipped", STOPPED, "xnli", code) for code in ("de", "hi"))
    )
    lines = terminal_text([run], width=400, details=False).splitlines()
    assert f"STOPPED: 2 cells not run. Continue: harness eval --resume {run.path}" in lines
    assert "Partial: 1 of 3 cells scored, 1 of 1 task, 1 of 3 languages" in lines
    assert not any(line.startswith("Skipped") for line in lines)


def test_at_most_five_notes_the_weightiest_first(write: Write) -> None:
    fields = {"stands_in": True, "truncated": 3, "unparsed": 90, "replaced": 2, "dropped_shots": 4, "tied": 5}
    run = write(_cell("xnli", "en", 0.9, **fields), _cell("xnli", "de", None), config={"limit": 100})
    lines = terminal_text([run], details=False).splitlines()
    notes = [line for line in lines if line.startswith("  ")][1:]
    assert len(notes) == 5
    assert [note.split()[1:3] for note in notes[:2]] == [["cell", "unreadable:"], ["cell", "without"]]
    assert "(*)" in notes[2]
    assert notes[-1].startswith("  and 4 more: harness report RUN --notes")


def test_there_is_no_gap_from_answers_that_could_not_be_read(write: Write) -> None:
    for unparsed, gap in ((50, pytest.approx(0.4)), (51, None)):
        run = write(_cell("xnli", "en", 0.9), _cell("xnli", "de", 0.5, unparsed=unparsed))
        assert _glance(run).tasks[0].transfer_gap == gap


def test_a_single_score_is_short(write: Write) -> None:
    lines = terminal_text([write(_cell("xnli", "de", 0.5))], details=False).splitlines()
    assert len(lines) <= 8
    assert not any("·" in line for line in lines)


def test_a_shared_protocol_is_in_the_title_alone(write: Write) -> None:
    prompted = {"protocol": "prompted", "method": "rank", "view": {"shots": "1"}, "fit": None}
    run = write(*(_cell(task, "en", 0.5, **prompted) for task in ("xnli", "pawsx")))
    title, *rows = terminal_text([run], details=False).splitlines()
    assert title == "mine on local data, prompted shots=1"
    assert not any("prompted" in row for row in rows)
