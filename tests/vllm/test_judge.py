"""A judge behind a server: its verdicts are asked once, journaled, and compared with gold."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from sklearn.metrics import cohen_kappa_score

from harness.cli.main import run_command
from harness.storage.run_folder import Run

pytestmark = pytest.mark.thorough


def test_verdicts_are_asked_once_and_compared_with_gold(
    stand_in: Any, folders: dict[str, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    server = type(stand_in)(folders["plain"], context=4096)
    server.thread.start()
    judged, items, verdicts = (str(tmp_path / name) for name in ("judged", "items", "verdicts"))
    sample = ["--data", "sample", "--tasks", "xnli:en+sw", "--output", judged]
    assert run_command(["eval", "--model", "baseline:random", *sample]) == 0
    assert run_command(["judge", "export", judged, "--output", items]) == 0
    ask = ["eval", "--tasks", "judge_xnli_correct", "--tasks-from", items, "--data", items]
    ask += ["--model", f"openai:{server.url}"]
    assert run_command([*ask, "--output", verdicts]) == 0
    asked = len(server.posted("chat/completions"))
    assert asked > 0
    assert run_command([*ask, "--reuse", verdicts, "--output", str(tmp_path / "again")]) == 0
    assert len(server.posted("chat/completions")) == asked, "nothing is asked twice"

    rows_file = tmp_path / "rows.json"
    capsys.readouterr()
    assert run_command(["judge", "report", verdicts, "--json", str(rows_file)]) == 0
    assert "openai" in capsys.readouterr().out
    rows = {row["language"]: row for row in json.loads(rows_file.read_text(encoding="utf-8"))}
    assert set(rows) == {"en", "sw"}
    run, gold_run = Run(verdicts), Run(judged)
    gold_cells = {cell.language: cell for cell in gold_run.cells}
    for cell in run.cells:
        right = {record.id: record.correct for record in gold_run.records(gold_cells[cell.language])}
        records = list(run.records(cell))
        # The stand-in writes words; a verdict is the first of them, where it is one.
        first = [record.prediction["raw"].split()[:1] for record in records]
        given = [words[0] if words and words[0] in {"yes", "no"} else "unread" for words in first]
        gold = ["yes" if right[record.id] else "no" for record in records]
        row = rows[cell.language]
        assert 0 < row["unreadable"] == given.count("unread") < len(records)
        agreeing = sum(one == other for one, other in zip(given, gold, strict=True))
        assert row["metrics"]["judge_accuracy"]["value"] == pytest.approx(agreeing / len(records))
        assert row["metrics"]["judge_kappa"]["value"] == pytest.approx(cohen_kappa_score(given, gold))
