"""Every fault of the list is found where it was planted, and the page has the table of what is reported."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

from harness.checks.task_audit import Finding
from tests.audit.bench import Bench, Plant, found_by
from tests.audit.plants import PLANTS

QUICK = {
    "inverted_file",
    "inverted_map",
    "duplicate",
    "substring",
    "lenient",
    "empty_template",
    "same_word",
}
"""A fault of each sort, which is planted in every run of the tests."""
PAGE = Path(__file__).parents[2] / "docs" / "audit-a-task.md"
HEAD = "| planted in a shipped task | seen in | reported |\n|---|---|---|\n"


def sentence(plant: Plant, folder: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Return what is reported of a fault; fails where nothing is, or where a fault becomes a note."""
    languages = tuple(dict.fromkeys(("en", "de", plant.language or "en")))
    bench = Bench(folder=folder, task=plant.task, monkeypatch=monkeypatch, languages=languages)
    plant.spoil(bench)
    found = found_by(bench.audit(), plant.check, plant.language)
    assert found, f"{plant.fault}: nothing is reported"
    assert isinstance(found[0], Finding) is not plant.note
    text = re.sub(r"\b([0-9a-f]{8})[0-9a-f]{56}\b", r"\1...", str(found[0]).replace(f"{folder}{os.sep}", ""))
    return f"{'note' if plant.note else 'fault'}: {text}"


@pytest.mark.parametrize(
    "plant",
    [
        pytest.param(
            plant,
            id=plant.spoil.__name__,
            marks=[] if plant.spoil.__name__ in QUICK else pytest.mark.thorough,
        )
        for plant in PLANTS
    ],
)
def test_a_planted_fault_is_reported_as_the_page_says(
    plant: Plant, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    line = f"| {plant.task}: {plant.fault} | {plant.seen} | {sentence(plant, tmp_path, monkeypatch)} |\n"
    text = PAGE.read_text(encoding="utf-8")
    if os.environ.get("HARNESS_UPDATE_GOLDEN") == "1":
        before, after = text.split(HEAD)
        rows = {own.split(" | ")[0]: own for own in [*re.findall(r"\|.*\n", after), line]}
        ordered = [rows.get(f"| {own.task}: {own.fault}", "") for own in PLANTS]
        PAGE.write_text(before + HEAD + "".join(ordered) + re.sub(r"\|.*\n", "", after), encoding="utf-8")
        return
    assert line in text, f"the line is missing in {PAGE.name}; update the table with HARNESS_UPDATE_GOLDEN=1"


def test_the_page_has_no_other_rows() -> None:
    rows = re.findall(
        r"^\| (.*?) \| .*\|$", PAGE.read_text(encoding="utf-8").split(HEAD)[1], flags=re.MULTILINE
    )
    assert rows == [f"{plant.task}: {plant.fault}" for plant in PLANTS]


@pytest.mark.thorough
@pytest.mark.parametrize("task", sorted({plant.task for plant in PLANTS}))
def test_a_copy_without_a_fault_has_no_finding(
    task: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    report = Bench(folder=tmp_path, task=task, monkeypatch=monkeypatch).audit()
    assert [str(item) for item in report.findings] == []
