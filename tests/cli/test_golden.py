"""What the commands print, as it was looked at and approved; times and digests are masked.

After a change that is meant: ``HARNESS_UPDATE_GOLDEN=1 python -m pytest tests/cli/test_golden.py``, and read the diff.
The model guesses from hashes of the items, so that its scores are the same on every machine.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from harness.api import evaluate
from harness.reporting.documents import terminal_text
from harness.reporting.formats import FORMATS
from harness.storage.run_folder import Run
from tests.conftest import Cli

Compare = Callable[[str, str], None]

GOLDEN = Path(__file__).with_name("golden")
UPDATE = "HARNESS_UPDATE_GOLDEN"
MASKS = (
    (re.compile(r"\b[0-9a-f]{64}\b"), "0" * 64),
    (re.compile(r"(?<=fit )[0-9a-f]{8}(?=:)"), "#" * 8),
    (re.compile(r"\b[0-9a-f]{16}\b"), "#" * 16),
    (re.compile(r'(?<="digest": ")[0-9a-f]{12}(?=")'), "#" * 12),
    (re.compile(r" *\b\d[\d,.]* s\b"), " # s"),
    (re.compile(r'(?<="seconds": )[\d.]+'), "0"),
    (re.compile(r'(?<="created": ")[^"]*'), "#"),
    (re.compile(r'(?<="harness": ")[^"]*'), "#"),
)
FILE_ROW = re.compile(r"^file .*?\n\n", re.MULTILINE | re.DOTALL)
SECONDS_ROW = re.compile(r"^[ |*]*seconds\b.*$", re.MULTILINE)


def _masked(text: str) -> str:
    for pattern, mask in MASKS:
        text = pattern.sub(mask, text)
    text = SECONDS_ROW.sub(lambda match: re.sub(r"\d", "#", match[0]), text)
    return "".join(line.rstrip() + "\n" for line in text.splitlines())


@pytest.fixture
def compare() -> Compare:
    def compared(text: str, name: str) -> None:
        path, found = GOLDEN / name, _masked(text)
        if os.environ.get(UPDATE):
            path.parent.mkdir(exist_ok=True)
            path.write_text(found, encoding="utf-8")
        assert found == path.read_text(encoding="utf-8"), (
            f"{name} differs; if that is meant, run with {UPDATE}=1"
        )

    return compared


@pytest.fixture(scope="module")
def small_run(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Run]:
    """One task in three languages, one of which is skipped."""
    folder = tmp_path_factory.mktemp("golden")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HARNESS_CACHE", str(folder / "cache"))
        yield evaluate(
            "xnli",
            "baseline:random",
            languages=["en", "hi", "th"],
            data="sample",
            recipe="quick",
            seeds=(1, 2),
            limit=9,
            output=folder / "run",
        )


@pytest.mark.parametrize("width", [80, 120, 200])
def test_the_summary(compare: Compare, sample_run: Run, width: int) -> None:
    text = terminal_text([sample_run], width=width, details=False)
    assert max(len(line) for line in text.splitlines()) <= width
    assert not [line for line in text.splitlines() if line.endswith(" ")]
    compare(text, f"summary-{width}.txt")


@pytest.mark.parametrize("width", [80, 100])
def test_the_tables_by_language(compare: Compare, sample_run: Run, width: int) -> None:
    text = terminal_text([sample_run], width=width)
    assert max(len(line) for line in text.splitlines()) <= width
    assert text.endswith(terminal_text([sample_run], width=width, details=False))
    compare(text, f"details-{width}.txt")


def test_languages_by_script(cli: Cli, sample_run: Run) -> None:
    status, out, _ = cli("report", sample_run.path, "--by", "script")
    groups = [line.split()[0] for line in out.splitlines() if line.startswith((" Latn", " Deva", " Hans"))]
    assert (status, groups) == (0, ["Latn", "Deva", "Hans", "Latn", "Deva", "Hans"])


def test_all_notes(cli: Cli, compare: Compare, sample_run: Run) -> None:
    status, out, _ = cli("report", sample_run.path, "--notes")
    assert status == 0
    compare(out, "notes.txt")


@pytest.mark.parametrize("width", range(44, 130, 3))
def test_nothing_is_cut_and_intervals_take_one_more_table_at_most(
    sample_run: Run, monkeypatch: pytest.MonkeyPatch, width: int
) -> None:
    def text() -> str:
        return terminal_text([sample_run], width=width).partition("Scores x100")[0]

    usual = text()
    monkeypatch.setattr("harness.reporting.render.console.MORE_TABLES", -99)
    plain = text()
    assert "…" not in usual
    assert "±" not in plain
    most, least = (
        sum(line.strip().startswith("language ") for line in tables.splitlines()) for tables in (usual, plain)
    )
    assert least <= most <= least + ("±" in usual)


def test_the_summary_is_what_the_command_prints(cli: Cli, sample_run: Run) -> None:
    status, out, err = cli("report", sample_run.path)
    assert (status, err) == (0, "")
    assert out == terminal_text([sample_run], width=100)
    status, out, err = cli("report", sample_run.path, "--brief")
    assert (status, err) == (0, "")
    assert out == terminal_text([sample_run], width=100, details=False)


# The HTML page is tested by what it holds (tests/reporting/html): its charts change with every module.
@pytest.mark.parametrize(
    "name", [item.name for item in FORMATS if item.write is None and item.name != "html"]
)
def test_reports(compare: Compare, small_run: Run, name: str) -> None:
    report = next(item for item in FORMATS if item.name == name)
    compare(report.render([small_run]), f"report-{name}{report.suffix}")


@pytest.mark.parametrize("name", [item.name for item in FORMATS if item.write is None])
def test_the_command_writes_the_same_report(cli: Cli, small_run: Run, name: str) -> None:
    report = next(item for item in FORMATS if item.name == name)
    status, out, _ = cli("report", small_run.path, "--format", name)
    assert (status, out) == (0, report.render([small_run]))
    assert cli("report", small_run.path, "--format", name, "--output", "report") == (0, "", "")
    assert Path("report").read_text(encoding="utf-8") == out


@pytest.mark.parametrize(
    ("name", "command"),
    [
        ("tasks-list", "tasks list"),
        ("tasks-show", "tasks show xnli"),
        ("tasks-show-axis", "tasks show mlqa_cross"),
        ("tasks-show-pool", "tasks show lareqa"),
        ("tasks-show-variant", "tasks show xcopa"),
        ("languages", "languages"),
        ("language", "languages sw"),
        ("models", "models"),
        ("model", "models baseline:char-ngram"),
        ("model-options", "models baseline"),
        ("plan", "plan --tasks xnli:de+sw+th,tatoeba:de --model baseline:random --data sample --seeds 1,2"),
        (
            "plan-details",
            "plan --tasks xnli:de+sw+th,tatoeba:de --model baseline:random --data sample --seeds 1,2 --details",
        ),
        (
            "plan-variants",
            "plan --tasks xnli:en+sw --model baseline:random --data sample --variants zs,tt,bt --translator r=reverse"
            " --train-variant b-train --details",
        ),
        ("lock", "lock xnli:de+sw+th,tatoeba:de --data sample"),
        ("help", "--help"),
    ],
)
def test_commands(cli: Cli, compare: Compare, name: str, command: str) -> None:
    status, out, err = cli(*command.split())
    assert (status, err) == (0, "")
    compare(FILE_ROW.sub("file         #\n\n", out), f"{name}.txt")


def test_a_merged_run(cli: Cli, compare: Compare, small_run: Run, sample_run: Run) -> None:
    german = Path("german")
    arguments = "--tasks xnli:de --model baseline:random --data sample --recipe quick --seeds 1,2 --limit 9"
    assert cli("eval", *arguments.split(), "--output", german)[0] == 0
    status, out, err = cli("merge", small_run.path, german, "--output", "merged")
    assert (status, err) == (0, "")
    compare(out, "merge.txt")
    status, out, err = cli("merge", small_run.path, sample_run.path, "--output", "other")
    assert (status, out) == (2, "")
    assert "cannot be merged: they differ in the setting 'limit': 9 and null." in err
