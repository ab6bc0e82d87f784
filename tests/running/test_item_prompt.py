"""What ``harness report RUN --item ID`` shows of a run: the prompt is the one that the model was asked."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from harness.errors import MissingDataError, UnknownNameError
from harness.prompts.prompter import Rendering
from harness.reporting.weakness.item_sheet import item_sheets
from harness.running.item_prompt import RecordedPrompts
from harness.storage.run_folder import Run

from .conftest import Cli, RunTasks

pytestmark = pytest.mark.usefixtures("calls")


@pytest.fixture
def finished(run: RunTasks) -> Run:
    return run("xnli:en+sw", "asks:writes", prompt="letters", shots=1, options={"says": "A|B|I do not know"})


def test_every_prompt_is_the_one_that_was_asked(finished: Run, calls: list[Any]) -> None:
    asked = {request[0] for name, request in calls if name == "write"}
    shown = set()
    for cell in finished.cells:
        for record in finished.records(cell):
            [sheet] = item_sheets([finished], record.id, languages=[cell.language])
            assert isinstance(sheet.prompt, Rendering)
            shown.add(sheet.prompt.context)
            assert sheet.row()["answer"] == record.answer
    assert shown == asked
    assert len(shown) == sum(cell.n for cell in finished.cells)


def test_an_item_that_changed_has_no_prompt(finished: Run) -> None:
    [cell, *_] = finished.cells
    record = next(iter(finished.records(cell)))
    prompts = RecordedPrompts(finished)
    assert prompts.render(cell, record).item == record.id
    with pytest.raises(MissingDataError):
        prompts.render(cell, replace(record, inputs_digest="0" * 16))


def test_the_command(finished: Run, cli: Cli, tmp_path: Path) -> None:
    record = next(iter(finished.records(finished.cells[0])))
    file = tmp_path / "item.json"
    status, out, _ = cli("report", finished.path, "--item", record.id, "--json", file)
    assert status == 0
    rows = json.loads(file.read_text(encoding="utf-8"))
    assert [(row["language"], row["id"]) for row in rows] == [("en", record.id), ("sw", record.id)]
    assert str(rows[0]["prompt"]["context"]).splitlines()[-1] in out
    with pytest.raises(UnknownNameError):
        item_sheets([finished], "no such item")
    assert cli("report", finished.path, "--tasks", "xnli")[0] == 2
