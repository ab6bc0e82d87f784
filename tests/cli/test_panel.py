"""The panel in a terminal: what is seen while a command works, and that nothing of it is left."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.conftest import InstallPlugin

from .terminal import Screen, Terminal

pytestmark = pytest.mark.thorough

Open = Callable[..., Terminal]

HEAD = """
import sys
from harness.cli.live import show_progress
from harness.progress import CellOutcome, PlannedCell, PlannedFit
cells = [PlannedCell(digest=code, task="xnli", language=code) for code in ("en", "de", "sw")]
def done(code, value):
    return CellOutcome(digest=code, metric="accuracy", value=value, interval=(value - .1, value + .1), items=10)
"""


@pytest.fixture
def opened(tmp_path: Path) -> Iterator[Open]:
    """Start Python in a terminal: a script that shows progress and waits for a key at every `input()`, or a module."""
    terminals = []

    def start(*arguments: object, columns: int = 80, **environment: str) -> Terminal:
        own = {"HARNESS_CACHE": str(tmp_path / "cache"), **environment}
        terminals.append(Terminal(*arguments, columns=columns, environment=own))
        return terminals[-1]

    yield start
    for terminal in terminals:
        terminal.close()


def test_a_screen_wraps_as_terminals_do() -> None:
    screen = Screen(10)
    screen.feed("abcdefghijkl\r\nsecond")
    assert screen.lines == ["abcdefghij", "kl", "second"]
    screen.resize(6)
    assert screen.lines == ["abcdef", "ghijkl", "second"]
    screen.feed("\r\x1b[2K\x1b[1A!")
    assert screen.lines == ["abcdef", "!hijkl"]
    screen.resize(20)
    assert screen.lines == ["abcdef!hijkl"]
    with pytest.raises(AssertionError, match="unknown"):
        screen.feed("\x1b[5;5H")


def test_the_panel_shows_the_run_and_leaves_nothing(opened: Open) -> None:
    script = """
with show_progress() as progress:
    progress.plan("small", cells, [PlannedFit(digest="f", size=1.0)])
    progress.fit_started("f", "mnli (en), 504 examples")
    progress.start("mnli (en), 504 examples", 32, "steps")
    progress.advance(8)
    progress.status("accuracy 50.0 on the dev set")
    input()
    progress.finish()
    progress.fit_finished("f")
    progress.cell_started("en")
    progress.cell_finished(done("en", 0.5))
    progress.cell_started("de")
    progress.start("xnli:de", 10, "items")
    progress.advance(4)
    progress.announce("xnli: [a thing] to know")
    input()
    progress.cell_finished(CellOutcome(digest="de", failure="out of memory"))
    progress.mention("a detail of the notes")
    input()
"""
    terminal = opened("-c", HEAD + script)
    terminal.until(lambda: terminal.shows("8 of 32 steps"), "training")
    assert terminal.shows(r"^small  [━─]+  0 of 3 cells done")
    assert not terminal.shows("left"), "nothing of the cells was measured"
    assert terminal.shows(
        r"^  Fine-tuning on mnli \(en\), 504 examples: 8 of 32 steps, .*steps/s, about \d+ s"
    )
    terminal.until(lambda: terminal.shows("accuracy 50.0 on the dev set"), "the dev set")
    assert not terminal.screen.shows_cursor
    terminal.type("\n")
    terminal.until(lambda: terminal.shows("cell 2 of 3, about .* left"), "the second cell")
    terminal.until(lambda: terminal.shows(r"^  xnli:de: 4 of 10 items, .*items"), "the items")
    assert terminal.shows(r"^  xnli  en  acc 50.0 ±10.0")
    terminal.until(lambda: terminal.screen.lines[0] == "xnli: [a thing] to know", "a line above the panel")
    terminal.type("\n")
    terminal.until(lambda: terminal.shows("2 of 3 cells done, 1 failed"), "the failure")
    assert terminal.shows("^  xnli  de  failed")
    terminal.type("\n")
    assert terminal.wait() == 0
    assert terminal.screen.lines == ["xnli: [a thing] to know", "xnli:de failed: out of memory"]
    assert terminal.screen.shows_cursor


def test_what_others_write_goes_above_and_their_bars_into_it(opened: Open) -> None:
    script = """
import logging, warnings
handler = logging.StreamHandler()
logging.getLogger("library").addHandler(handler)
with show_progress() as progress:
    progress.plan("small", cells)
    progress.cell_started("en")
    for state in ("10%", "50%"):
        sys.stderr.write("\\rweights: " + state)
        sys.stderr.flush()
    input()
    sys.stderr.write("\\rweights: 100%\\n")
    logging.getLogger("library").warning("held since before")
    warnings.warn("deprecated")
    print("printed")
    sys.stderr.write("no line end")
    input()
assert handler.stream is sys.__stderr__ is sys.stderr
assert sys.stdout is sys.__stdout__
"""
    terminal = opened("-W", "default", "-c", HEAD + script)
    terminal.until(lambda: terminal.shows("^  weights: 50%"), "the bar of another")
    assert terminal.screen.lines[0].startswith("small"), "its bar is within the panel"
    terminal.type("\n")
    terminal.until(lambda: terminal.shows("^printed"), "lines of others")
    terminal.type("\n")
    assert terminal.wait() == 0, terminal.screen.lines
    shown = terminal.screen.lines
    assert [shown[0], shown[-2], shown[-1]] == ["held since before", "printed", "no line end"]
    assert any("UserWarning: deprecated" in line for line in shown)
    assert not any(word in line for line in shown for word in ("weights", "small", "cell"))


@pytest.mark.parametrize(("before", "after"), [(120, 44), (80, 50), (60, 100)])
def test_another_width_leaves_nothing_behind(opened: Open, before: int, after: int) -> None:
    script = """
with show_progress() as progress:
    progress.announce("before")
    progress.plan("hf:" + 30 * "long", cells)
    progress.cell_started("en")
    progress.cell_finished(done("en", 0.5))
    progress.cell_started("de")
    progress.start("a long title of what is done now, longer than a narrow window", 10, "items")
    input()
    progress.announce("after")
    progress.advance(5)
    input()
"""
    terminal = opened("-c", HEAD + script, columns=before)
    terminal.until(lambda: terminal.shows("acc 50.0"), "the panel")
    terminal.resize(after)
    terminal.type("\n")
    terminal.until(lambda: terminal.shows("^after"), "the line above")
    terminal.until(lambda: len(terminal.screen.lines) == 5, "the panel alone below both lines")
    assert terminal.screen.lines[:2] == ["before", "after"]
    assert all(len(line) < after for line in terminal.screen.lines)
    terminal.type("\n")
    assert terminal.wait() == 0
    assert terminal.screen.lines == ["before", "after"]


def test_work_outside_a_run_has_a_line_of_its_own(opened: Open) -> None:
    script = """
with show_progress() as progress:
    progress.start("deepl en->sw", 10, "segments")
    progress.advance(4)
    input()
    progress.finish()
    print("a table")
    progress.start("deepl sw->en", 10, "segments")
    progress.status("a second line")
    progress.finish()
    print("its last row")
    progress.start("deepl en->de", 10, "segments")
    progress.finish()
"""
    terminal = opened("-c", HEAD + script)
    terminal.until(
        lambda: terminal.shows(r"^deepl en->sw: 4 of 10 segments, .*segments/s, about"), "the work"
    )
    terminal.type("\n")
    assert terminal.wait() == 0
    assert terminal.screen.lines == ["a table", "its last row"]


EVAL = ("-m", "harness", "eval", "--tasks", "xnli", "--languages", "en,de,sw", "--data", "sample")


def test_a_run_ends_with_its_plan_and_its_summary(opened: Open, tmp_path: Path) -> None:
    run = ("--model", "baseline:majority", "--with-baselines", "--output", tmp_path / "run")
    terminal = opened(*EVAL, *run)
    terminal.until(lambda: terminal.shows(r"3 of 3 cells done|cell \d of 3"), "the counter of cells")
    terminal.until(lambda: terminal.shows(r"^  xnli  \w\w  acc \d"), "the last scores")
    assert terminal.wait() == 0
    shown = terminal.screen.lines
    assert terminal.screen.shows_cursor
    assert shown[0].startswith("majority (baseline): 3 cells")
    assert "harness report" in "".join(shown[1:])
    assert not any(re.search(r"cells done|cell \d of 3|items/s|━━|^Fine-tuning", line) for line in shown)


def test_ctrl_c_leaves_the_terminal_clean(
    opened: Open, tmp_path: Path, install_plugin: InstallPlugin
) -> None:
    source = (Path(__file__).parent / "slow_adapter.py").read_text(encoding="utf-8")
    slow = install_plugin("slow_adapter", source)
    run = tmp_path / "run"
    terminal = opened(*EVAL, "--model", "slow:model", "--output", run, PYTHONPATH=str(slow))
    terminal.until(lambda: terminal.shows(r"^  xnli:\w\w.*: \d+ of \d+ items"), "the first cell")
    terminal.type("\x03")
    terminal.until(lambda: terminal.shows("Press Ctrl-C again"), "the answer to Ctrl-C")
    assert terminal.wait() == 130
    shown = terminal.screen.lines
    assert terminal.screen.shows_cursor
    assert "".join(shown).endswith(f"Resume it with: harness eval --resume {run}")
    assert "Stopping after what is under way. Press Ctrl-C again to stop at once." in shown
    assert not any(re.search(r"cells? done|cell \d of 3|items/s|━━", line) for line in shown)
