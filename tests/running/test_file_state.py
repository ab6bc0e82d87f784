"""What a run says of its test files: released, changed or of no known release, and signs of damage before it starts."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from harness.reporting.overview.summary import summarise
from harness.storage.run_folder import Run

from .conftest import RunTasks

SPEC = """
task: mood
kind: sequence_classification
version: 1
description: Whether a remark is pleased.
inputs: [text]
labels: [annoyed, pleased]
metrics: [accuracy]
protocols: [in_language]
transfer: {source: en, stages: [mood], recipe: quick}
splits:
  train: {local: "mood/train-{language}.tsv", columns: [text, label]}
  test: {local: ["mood/test-{language}.tsv", "mood/parts-{language}/*.tsv"], columns: [text, label]}
languages: {en: null, de: null, sw: null}
provenance: native
"""
WORDS = {
    "en": "The remark about number {} was made",
    "de": "Die Bemerkung über {} fiel",
    "sw": "Neno kuhusu {} lilisemwa",
}
Eval = Callable[..., Run]


def _rows(code: str, label: str | None = None) -> str:
    return "".join(
        f"{WORDS[code].format(number)}\t{label or ('annoyed', 'pleased')[number % 2]}\n"
        for number in range(24)
    )


@pytest.fixture
def score(tmp_path: Path, run: RunTasks) -> Eval:
    """Score the task ``mood`` on files, of which `released` are known."""

    def scored(files: Mapping[str, str], released: Mapping[str, str]) -> Run:
        specs, data = tmp_path / "specs", tmp_path / "data"
        specs.mkdir(exist_ok=True)
        (specs / "mood.yaml").write_text(SPEC, encoding="utf-8")
        lines = [
            f"{hashlib.sha256(text.encode()).hexdigest()}  mood/{name}" for name, text in released.items()
        ]
        (specs / "SHA256SUMS").write_text("\n".join(lines), encoding="utf-8")
        for name, text in {**{f"train-{code}.tsv": _rows(code) for code in WORDS}, **files}.items():
            (data / "mood" / name).parent.mkdir(parents=True, exist_ok=True)
            (data / "mood" / name).write_text(text, encoding="utf-8")
        return run("mood", "baseline:majority", data=data, tasks_from=[specs], limit=None)

    return scored


def test_every_cell_says_whether_its_files_are_released_ones(score: Eval) -> None:
    known = {"test-en.tsv": _rows("en", "pleased"), "test-de.tsv": _rows("de")}
    finished = score(
        {**known, "test-de.tsv": known["test-en.tsv"], "test-sw.tsv": _rows("sw", "annoyed")}, known
    )
    assert {cell.language: cell.file_state for cell in finished.cells} == {
        "en": "released file",
        "de": "changed file",
        "sw": "file of no known release",
    }
    assert {cell.status for cell in finished.cells} == {"ok"}
    notes = finished.results.notes
    assert [note for note in notes if "changed file" in note and "'mood/test-en.tsv'" in note]
    # Released files have no signs of damage: nothing is said of the one label of the English file.
    assert [note.partition("]")[0] for note in notes if "have the label" in note] == ["mood [de", "mood [sw"]
    summary = summarise([finished])
    [line] = [note for note in summary.notes if note.startswith("changed file: 1 cell;")]
    assert "(mood:de)" in line
    assert "released file: 1 cell" in line


def test_released_files_alone_are_no_warning(score: Eval) -> None:
    known = {f"test-{code}.tsv": _rows(code, "pleased") for code in WORDS}
    finished = score(known, known)
    assert not any("mood [" in note or "changed" in note for note in finished.results.notes)
    assert "released file: 3 cells" in summarise([finished]).notes


def test_samples_have_no_file_state(run: RunTasks) -> None:
    finished = run("xcopa:et", "baseline:majority")
    assert [cell.file_state for cell in finished.cells] == [None]
    assert not any("file" in note for note in finished.results.notes)


@pytest.mark.parametrize("content", ["", "\n"])
def test_an_empty_file_among_several_fails_its_cell(score: Eval, content: str) -> None:
    parts = {
        "parts-en/a.tsv": _rows("en"),
        "parts-en/b.tsv": content,
        "test-de.tsv": _rows("de"),
        "test-sw.tsv": _rows("sw"),
    }
    cells = {cell.language: cell for cell in score(parts, {}).cells}
    assert {code: cell.status for code, cell in cells.items()} == {"en": "failed", "de": "ok", "sw": "ok"}
    assert "b.tsv" in cells["en"].reason
