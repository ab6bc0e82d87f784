"""What a command prints while it works where there is no terminal."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from harness.cli.live import UPDATE_EVERY, LineProgress, NotebookProgress, show_in_program, show_progress
from harness.cli.panel import tally_lines
from harness.cli.tally import TimeLeft, duration, time_left_text
from harness.metrics.metric import metric_name
from harness.progress import CellOutcome, PlannedCell, PlannedFit
from harness.storage.run_folder import Run
from tests.conftest import Cli

EVAL = (
    "eval",
    "--tasks",
    "xnli,xquad",
    "--model",
    "baseline:char-ngram",
    "--data",
    "sample",
    "--recipe",
    "quick",
)


def planned(task: str, *languages: str, condition: str = "") -> list[PlannedCell]:
    return [
        PlannedCell(digest=f"{task}-{code}{condition}", task=task, language=code, condition=condition)
        for code in languages
    ]


def ended(cell: PlannedCell, value: float | None = None, failure: str = "") -> CellOutcome:
    metric = "" if value is None else "accuracy"
    return CellOutcome(digest=cell.digest, metric=metric, value=value, items=10, failure=failure)


def progress_of(cells: list[PlannedCell], **options: Any) -> LineProgress:
    progress = LineProgress()
    progress.plan("hf:small", cells, **options)
    return progress


def printed(capsys: pytest.CaptureFixture[str]) -> list[str]:
    """The lines on stderr, with every time as 0.0 s."""
    return re.sub(r"\d+\.\d s\b", "0.0 s", capsys.readouterr().err).splitlines()


def test_a_task_gets_one_line_when_its_last_cell_ended(capsys: pytest.CaptureFixture[str]) -> None:
    cells = planned("xnli", "en", "de", "sw") + planned("pawsx", "en")
    progress = progress_of(cells)
    for cell, value in zip(cells, (0.5, 0.25, 0.75, 0.125), strict=True):
        progress.cell_started(cell.digest)
        progress.start(cell.task, 10, "items")
        progress.advance(10)
        progress.finish()
        progress.cell_finished(ended(cell, value))
    assert printed(capsys) == [
        "xnli: 3 cells in 0.0 s, acc 50.0 (25.0 de to 75.0 sw)",
        "pawsx: 1 cell in 0.0 s, acc 12.5",
    ]
    progress.plan("baseline:majority", planned("xnli", "en"))
    assert printed(capsys) == ["baseline:majority: 1 cell"]


@pytest.mark.parametrize(
    ("cells", "values", "mean"),
    [
        # Seeds are averaged within a language first.
        ("en en de", (0.2, 0.4, 0.9), "acc 60.0 (20.0 en to 90.0 de)"),
        # There is no mean over cells of different conditions.
        ("en/frozen en/prompted de/prompted", (0.25, 0.5, 0.75), "acc 25.0 en to 75.0 de"),
    ],
)
def test_the_mean_of_a_task(
    capsys: pytest.CaptureFixture[str], cells: str, values: tuple[float, ...], mean: str
) -> None:
    progress, parts = LineProgress(), [cell.partition("/") for cell in cells.split()]
    plan = [
        PlannedCell(digest=str(number), task="xnli", language=code, condition=condition)
        for number, (code, _, condition) in enumerate(parts)
    ]
    progress.plan("hf:small", plan)
    for cell, value in zip(plan, values, strict=True):
        progress.cell_finished(ended(cell, value))
    assert printed(capsys) == [f"xnli: 3 cells in 0.0 s, {mean}"]


def test_a_failure_is_printed_at_once_and_its_reason_once_a_task(capsys: pytest.CaptureFixture[str]) -> None:
    cells = planned("xnli", "en", "de", "sw", "hi")
    progress = progress_of(cells)
    progress.cell_finished(ended(cells[0], failure="out of [memory]"))
    assert printed(capsys) == ["xnli:en failed: out of [memory]"]
    progress.cell_finished(ended(cells[1], failure="out of [memory]"))
    assert printed(capsys) == []
    progress.cell_finished(ended(cells[2], failure="another"))
    progress.cell_finished(ended(cells[3], 0.5))
    assert printed(capsys) == [
        "xnli:sw failed: another",
        "xnli: 4 cells in 0.0 s, 3 failed, acc 50.0",
    ]


def test_cells_of_an_earlier_attempt_count_for_the_mean_and_print_nothing(
    capsys: pytest.CaptureFixture[str],
) -> None:
    cells = planned("xnli", "en", "de") + planned("pawsx", "en")
    progress = progress_of(cells, done=[ended(cells[0], 0.2), ended(cells[2], 0.5)])
    progress.cell_finished(ended(cells[1], 0.4))
    assert printed(capsys) == ["xnli: 2 cells in 0.0 s, acc 30.0 (20.0 en to 40.0 de)"]


def test_long_work_prints_a_line_now_and_then(capsys: pytest.CaptureFixture[str]) -> None:
    now = [0.0]
    cells = planned("xnli", "en", "de")
    progress = LineProgress(clock=lambda: now[0])
    progress.plan("hf:small", cells, [PlannedFit(digest="f", size=1.0)])
    progress.fit_started("f", "mnli (en)")
    progress.start("mnli (en)", 100, "steps", done=20)
    progress.status("accuracy 50.0 on the dev set")
    for _ in range(50):
        now[0] += 0.5
        progress.advance(1)
    progress.finish()
    progress.fit_finished("f")
    progress.cell_started(cells[0].digest)
    progress.start("xnli:en", 10, "items")
    for _ in range(8):
        now[0] += 2
        progress.advance(1)
    assert capsys.readouterr().err.splitlines() == [
        "Fine-tuning on mnli (en).",
        "0 of 2 cells done; Fine-tuning on mnli (en): 40 of 100 steps, 2.0 steps/s, about 30 s; "
        "accuracy 50.0 on the dev set",
        "0 of 2 cells done; Fine-tuning on mnli (en): 60 of 100 steps, 2.0 steps/s, about 20 s; "
        "accuracy 50.0 on the dev set",
        # 25 s have passed, so the next lines are due at 30 s and 40 s.
        "cell 1 of 2, about 35 s left; xnli:en: 3 of 10 items, 2.0 s per item",
        "cell 1 of 2, about 25 s left; xnli:en: 8 of 10 items, 2.0 s per item",
    ]


def test_work_outside_a_run_prints_a_line_when_it_is_done(capsys: pytest.CaptureFixture[str]) -> None:
    with show_progress() as progress:
        progress.start("deepl [en]->sw", 1200, "segments")
        progress.advance(1200)
        progress.finish()
        progress.finish()
        progress.start("sentences of a file", 0, "sentences")
        progress.advance(7)
        progress.finish()
        progress.start("not done", 10, "segments")
        progress.advance(9)
        progress.finish()
        progress.announce("lm_eval:heart:en [is] no emoji")
        progress.mention("a detail")
    with show_in_program() as progress:
        progress.announce("shown by a notebook alone")
    assert printed(capsys) == [
        "deepl [en]->sw: 1,200 segments in 0.0 s",
        "sentences of a file: 7 sentences in 0.0 s",
        "lm_eval:heart:en [is] no emoji",
    ]


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        *((0.2, "1 s"), (2.4, "2 s"), (7.6, "10 s"), (57.4, "55 s"), (57.6, "1 min"), (250, "4 min")),
        *((3569, "59 min"), (3571, "1 h"), (7800, "2 h 10 min"), (35_000, "9 h 40 min"), (90_000, "25 h")),
    ],
)
def test_durations_are_rough(seconds: float, text: str) -> None:
    assert duration(seconds) == text


def test_trainings_that_nothing_is_known_of_are_named() -> None:
    assert time_left_text(TimeLeft(seconds=240, fits=0)) == "about 4 min"
    assert time_left_text(TimeLeft(seconds=240, fits=2)) == "about 4 min and 2 trainings"
    assert time_left_text(None) == ""


def test_a_run_prints_a_line_for_every_fit_and_task(cli: Cli) -> None:
    status, _, err = cli(*EVAL, "--output", "run")
    assert status == 0
    run = Run(Path("run"))
    # A slow machine also names the opening of the model.
    lines = [line for line in err.splitlines() if not line.startswith(("  ", "Opening "))]
    assert [line.partition(":")[0] for line in lines[1:]] == [
        "Fine-tuning on mnli (en), 504 examples, seed 42, recipe quick.",
        "xnli",
        "Fine-tuning on squad (en), 180 examples, seed 42, recipe quick.",
        "xquad",
    ]
    seen = set()
    for score in run.results.tasks:
        line = next(line for line in lines if line.startswith(f"{score.task}: "))
        cells = [cell for cell in run.cells if cell.task == score.task and cell.status == "ok"]
        assert line.startswith(f"{score.task}: {len(cells)} cells in ")
        if score.metric == run.manifest.tasks[score.task].headline[0]:
            assert f" {metric_name(score.metric)} {100 * score.value:.1f} (" in line
            seen.add(score.task)
    assert seen == {"xnli", "xquad"}


def test_verbose_prints_cells_and_is_no_setting_of_the_run(cli: Cli) -> None:
    assert cli(*EVAL, "--languages", "de,en", "--verbose", "--output", "run")[0] == 0
    status, _, err = cli("eval", "--resume", "run", "--verbose")
    assert status == 0
    assert "verbose" not in Path("run/manifest.json").read_text(encoding="utf-8")
    status, _, err = cli(*EVAL, "--languages", "de,en", "--verbose", "--output", "again")
    assert status == 0
    cells = {(cell.task, cell.language): cell for cell in Run(Path("again")).cells if cell.status == "ok"}
    assert len(cells) == 4
    for (task, language), cell in cells.items():
        shown = [line for line in err.splitlines() if line.startswith(f"{task}:{language}: ")]
        assert len(shown) == 1
        assert shown[0].endswith(f", {cell.n} items")
    assert "Reusing the fit" in err
    assert "Reusing the fit" not in cli(*EVAL, "--languages", "de,en", "--output", "third")[2]


def test_a_notebook_shows_one_text_that_changes() -> None:
    shown: list[str] = []
    now = [0.0]
    progress = NotebookProgress(shown.append, clock=lambda: now[0])
    cells = planned("xnli", "en", "de")
    progress.announce("Data of 2016.")
    progress.plan("hf:small", cells)
    for cell, outcome in zip(cells, (ended(cells[0], 0.5), ended(cells[1], failure="no file")), strict=True):
        progress.cell_started(cell.digest)
        progress.start(cell.task, 10, "items")
        for _ in range(10):
            now[0] += UPDATE_EVERY / 5
            progress.advance(1)
        progress.finish()
        progress.cell_finished(outcome)
    progress.close()
    assert len(shown) < 10
    assert all(text.startswith("Data of 2016.\n") for text in shown[1:])
    assert any("small  " in text and "xnli  en  acc 50.0" in text for text in shown)
    assert shown[-1].splitlines() == [
        "Data of 2016.",
        "xnli:de failed: no file",
        "2 of 2 cells done, 1 failed",
    ]


def test_work_without_units_is_named_and_has_its_time(capsys: pytest.CaptureFixture[str]) -> None:
    """Opening a model is named after a second, once; no line is without a number."""
    now = [0.0]
    progress = LineProgress(clock=lambda: now[0])
    progress.plan("m", [PlannedCell(digest="1", task="xnli", language="en", items=60)])
    progress.start("Opening hf:m", 0, "")
    for _ in range(80):
        now[0] += 0.5
        progress.tick()
    first, *lines = capsys.readouterr().err.splitlines()
    assert first == "Opening hf:m."
    assert len(lines) == 3
    assert all("so far" in line for line in lines)


def test_finished_units_show_what_follows_them(capsys: pytest.CaptureFixture[str]) -> None:
    """A step at 60 of 60 that does not end, and a status after the last cell, have a time that grows."""
    now = [0.0]
    progress = LineProgress(clock=lambda: now[0])
    progress.plan("m", [PlannedCell(digest="1", task="xnli", language="en", items=60)])
    progress.cell_started("1")
    progress.start("xnli:en", 60, "items")
    now[0] = 5.0
    progress.advance(60)
    tally: Any = progress.tally
    assert not tally.is_over
    for _ in range(80):
        now[0] += 1
        progress.tick()
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == len(set(lines)) >= 7
    progress.cell_finished(CellOutcome(digest="1", items=60))
    assert tally.is_over
    progress.status("computing the intervals of means")
    assert all("━" not in line.plain for line in tally_lines(progress.tally, 100, 0.0))
    capsys.readouterr()
    for _ in range(40):
        now[0] += 1
        progress.tick()
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == len(set(lines)) >= 3
