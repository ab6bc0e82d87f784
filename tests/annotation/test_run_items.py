"""Items that are taken from the records of runs, whose texts may be translations."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from harness.api import evaluate
from harness.errors import UsageError
from harness.storage.run_folder import Run
from harness_translation.annotation.export import ExportRequest, default_instructions, export_sheets
from harness_translation.annotation.item import read_run_texts
from harness_translation.annotation.key import read_key


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    """A run whose German items are marked as a machine translation."""
    monkeypatch.setenv("HARNESS_CACHE", str(tmp_path / "cache"))
    made = evaluate(
        ["xnli:hi+de", "xcopa:zh", "xquad:de"],
        "baseline:majority",
        data="sample",
        train_limit=20,
        output=tmp_path / "run",
    )
    results = json.loads((made.path / "results.json").read_text(encoding="utf-8"))
    for cell in results["cells"]:
        if (cell["task"], cell["language"]) == ("xnli", "de"):
            cell["view"] = {"prompt": "other", "translator": "nllb", "variant": "tt"}
    (made.path / "results.json").write_text(json.dumps(results), encoding="utf-8")
    return Run(made.path)


def test_texts_of_a_run_are_those_of_its_views(run: Run, tmp_path: Path) -> None:
    texts = read_run_texts([run, run], ["xnli"], None, [])
    shown = {str(text): (len(text.items), text.parallel, text.provenance) for text in texts}
    assert shown == {
        "xnli:hi original": (24, True, "human-translated"),
        "xnli:de tt (nllb)": (24, True, ""),
    }
    (machine,) = read_run_texts([run], ["xnli"], None, ["tt"])
    assert machine.view == {"variant": "tt", "translator": "nllb"}
    assert set(machine.items[0].fields) == {"premise", "hypothesis"}
    request = ExportRequest(runs=(run.path,), tasks=("xnli",), size=12, seed=3)
    key = export_sheets(request, tmp_path / "sheets")
    assert read_key(tmp_path / "sheets") == key
    assert len({one.id for sheet in key.sheets for one in sheet.rows}) == 24


def test_choices_are_shown_with_their_texts(run: Run, tmp_path: Path) -> None:
    key = export_sheets(ExportRequest(runs=(run.path,), tasks=("xcopa",), size=2), tmp_path / "sheets")
    (sheet,) = key.sheets
    item = sheet.rows[0]
    assert set(item.choices) == set(sheet.labels) == {"choice1", "choice2"}
    text = (tmp_path / "sheets/sheets/annotator-1" / f"{sheet.name}.csv").read_text(encoding="utf-8-sig")
    assert all(choice in text for choice in item.choices.values())
    assert key.instructions["xcopa"] == default_instructions(sheet.labels, choices=True)


def test_a_run_without_the_requested_items_is_an_error(run: Run) -> None:
    with pytest.raises(UsageError, match="original, tt"):
        read_run_texts([run], ["xnli"], None, ["bt"])
    with pytest.raises(UsageError, match=r"'xquad' .*'span_extraction'"):
        read_run_texts([run], ["xquad"], None, [])
