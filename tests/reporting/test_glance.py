"""The first look at a run: its rows, its mean, and how complete it is; on runs written by hand."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from harness.reporting.documents import terminal_text
from harness.reporting.overview.glance import Glance, glance
from harness.reporting.overview.glance_blocks import language_groups, strip_head, strip_of
from harness.reporting.overview.run_remarks import run_remarks
from harness.reporting.overview.summary import summarise
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


def test_a_row_has_the_weakest_languages_items_and_the_gap(write: Write) -> None:
    values = {"en": 0.9, "de": 0.7, "hi": 0.4, "sw": 0.6, "zh": 0.4}
    [task] = _glance(write(*(_cell("xnli", code, value) for code, value in values.items()))).tasks
    assert [language.code for language in task.weakest] == ["hi", "zh", "sw"]
    assert task.mean.value == pytest.approx((0.9 + 0.7 + 0.4 + 0.6 + 0.4) / 5)
    assert task.transfer_gap == pytest.approx(0.9 - (0.7 + 0.4 + 0.6 + 0.4) / 4)
    assert (task.items, task.seconds, task.source, task.chance) == (500, 7.5, "en", 0.5)


@pytest.mark.parametrize("values", [(0.9, 0.7), (0.0,) * 4, (0.35,) * 4, (1.0,) * 4])
def test_two_or_equal_languages_are_not_called_the_weakest(values: tuple[float, ...], write: Write) -> None:
    run = write(*(_cell("xnli", code, value) for code, value in zip(LANGUAGES, values, strict=False)))
    [task] = _glance(run).tasks
    assert (task.weakest, len(task.scored)) == ([], len(values))
    assert ("all equal" in terminal_text([run])) == (len(values) == 4)


@pytest.mark.parametrize(
    ("method", "words"),
    [("embed", "xnli: fine-tuned; frozen: not fine-tuned."), ("head", "xnli: fine-tuned.")],
)
def test_rows_of_one_task_are_explained(method: str, words: str, write: Write) -> None:
    codes = ("en", "de", "hi", "sw")
    trained = [_cell("xnli", code, 0.9) for code in codes]
    frozen = [_cell("xnli", code, 0.5, protocol="frozen", fit=None, method=method) for code in codes]
    assert words in " ".join(terminal_text([write(*trained, *frozen)]).split())
    assert words not in " ".join(terminal_text([write(*trained)]).split())


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
        _without("skipped", "No data of xnli", "xnli", "sw"),
        _without("skipped", STOPPED, "pawsx", "zh"),
    )
    done = _glance(run).completeness
    assert done.scored == 1
    assert done.missing == {"failed": 1, "skipped": 1, "without labels": 1, "not reached": 1}
    assert (done.cells, done.is_whole, done.tasks, done.languages) == (5, False, (1, 2), (1, 5))


@pytest.mark.parametrize(
    "reason",
    [
        "task 'xnli' has no Swahili (sw)",
        "task 'xnli' has no variant 'tt'; it has: original",
        "task 'xnli' has no test split in Swahili (sw)",
        "task 'xnli' is written in 'sw', so there is nothing to translate for 'tt'",
        "the language list of 'xtreme_r' for 'xnli' has no sw; run it with --tasks xnli:sw",
    ],
)
def test_what_a_task_never_had_is_not_missing(write: Write, reason: str) -> None:
    done = _glance(write(_cell("xnli", "en", 0.9), _without("skipped", reason, "xnli", "sw"))).completeness
    assert (done.is_whole, done.cells, done.languages, done.missing["skipped"]) == (True, 1, (1, 1), 0)


def test_baselines_of_one_name_are_different_systems(write: Write) -> None:
    runs = [write(_cell("xnli", "en", value), model="baseline:majority") for value in (0.5, 0.25, 0.75)]
    [task] = _glance(*runs).tasks
    assert task.baselines == (("majority (2)", 0.25), ("majority (3)", 0.75))


def test_a_legend_explains_only_what_is_shown(write: Write) -> None:
    cells = [_cell("xnli", code, 0.9) for code in ("en", "de", "hi", "sw")]
    plain, few = terminal_text([write(*cells)]), terminal_text([write(*cells[:2])])
    broken = terminal_text([write(*cells, _without("failed", "broken", "xnli", "tr"))])
    assert ("!: failed" in plain, "!: failed" in broken) == (False, True)
    assert "One shade per language, by family" in plain
    assert "shade" not in few


@pytest.mark.parametrize("wide", [True, False])
def test_every_shade_is_under_its_code(wide: bool, write: Write) -> None:
    own = _glance(write(*(_cell("xnli", code, 0.9) for code in LANGUAGES)))
    groups = language_groups(own.tasks)
    head, row = strip_head(groups, wide=wide).split("\n"), strip_of(own.tasks[0], groups, wide=wide)
    starts = [at for at, sign in enumerate(row) if sign != " "]
    codes = [code for group in groups for code in group]
    assert len(starts) == len(codes)
    for at, code in zip(starts, codes, strict=True):
        assert (head[-1][at : at + 2] if wide else "".join(line[at] for line in head[-2:])) == code


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
    assert [note.split()[:2] for note in notes[:2]] == [["90", "of"], ["1", "cell"]]
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


@pytest.mark.parametrize(("tied", "noted"), [(4, False), (5, True), (100, True)])
def test_ties_are_noted_from_a_twentieth_of_the_items(write: Write, tied: int, noted: bool) -> None:
    run = write(_cell("xnli", "en", 0.5, tied=tied), _cell("xnli", "de", 0.5, tied=1))
    texts = [remark.text for remark in run_remarks(run) if "equal scores" in remark.text]
    assert len(texts) == noted
    assert not noted or f"{tied} of 100 items" in texts[0]


# Prompts -------------------------------------------------------------------------------------------------


def _asked(prompt: str, value: float, code: str = "en") -> dict[str, Any]:
    fields = {
        "protocol": "prompted",
        "method": "rank",
        "view": {"prompt": prompt},
        "digest": f"{prompt:0>12}",
    }
    return _cell("xnli", code, value, **fields)


def test_the_headline_is_the_mean_of_the_prompts_with_its_spread(write: Write) -> None:
    run = write(*(_asked(name, value) for name, value in {"a": 0.6, "b": 0.4, "c": 0.35}.items()))
    own = _glance(run)
    assert len(own.tasks) == 3
    [task] = own.averaged
    assert task.mean.value == own.mean.value == pytest.approx(0.45)
    assert task.by_prompt == pytest.approx((0.6, 0.4, 0.35))
    assert task.spread == "35.0 to 60.0 by prompt"
    assert task.mean.reach is not None
    assert task.mean.reach == pytest.approx(0.02)
    assert "xnli prompted acc, mean of 3 prompts: 45.0 ±2.0 (35.0 to 60.0 by prompt" in terminal_text([run])


def test_other_conditions_than_the_prompt_are_not_averaged(write: Write) -> None:
    other = _asked("a", 0.2) | {"view": {"prompt": "a", "variant": "tt"}, "digest": "0" * 12}
    [task] = _glance(write(_asked("a", 0.6), _asked("b", 0.4), other)).averaged
    assert task.by_prompt == pytest.approx((0.6, 0.4))
