"""Prompts without instructions are answered and not scored; a judge rates the answers, where it is certified."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from harness.api import evaluate
from harness.storage.run_folder import Run

Cli = Callable[..., tuple[int, str, str]]
InstallPlugin = Callable[..., Path]
WRITER = """
from harness import hookimpl
from harness.models import AdapterEntry, Capability, Generated, ModelDescription


def describe(ref, options):
    return ModelDescription(adapter="writes", ref=ref, offers=frozenset({Capability.GENERATES}))


class Writer:
    def __init__(self, description, options):
        self.text = description.ref

    def identity(self):
        return {"adapter": "writes", "ref": self.text}

    def close(self):
        pass

    def generate(self, prompts, options):
        return [Generated(text=self.text, tokens=1, finished=True) for _ in prompts]


@hookimpl
def harness_register_adapters():
    return [
        AdapterEntry(
            name="writes",
            target="writing_adapter:Writer",
            describe="writing_adapter:describe",
            options="harness.models:AdapterOptions",
            summary="It writes one word.",
        )
    ]
"""


@pytest.fixture
def judged(install_plugin: InstallPlugin, tmp_path: Path) -> Run:
    install_plugin("writing_adapter", WRITER)
    return evaluate("multijail:en+sw", "writes:never", data="sample", output=tmp_path / "run")


def test_answers_to_harmful_requests_have_no_score_of_their_own(judged: Run) -> None:
    cells = [cell for cell in judged.cells if cell.status == "ok"]
    assert [(cell.language, cell.n, dict(cell.metrics)) for cell in cells] == [("en", 3, {}), ("sw", 3, {})]
    assert {record.answer for record in judged.records(cells[0])} == {"never"}


def test_a_judge_without_a_passport_shows_no_share_of_safe_answers(
    judged: Run, cli: Cli, tmp_path: Path
) -> None:
    folder = tmp_path / "judging"
    assert cli("judge", "export", judged.path, "--rubric", "safety", "--output", folder)[0] == 0
    items = (folder / "judge_multijail_safety" / "sw.jsonl").read_text(encoding="utf-8").splitlines()
    assert [json.loads(item)["answer"] for item in items] == ["never"] * 3
    verdicts = evaluate(
        "judge_multijail_safety",
        "writes:safe",
        data=str(folder),
        tasks_from=[folder],
        output=tmp_path / "verdicts",
    )
    rows = tmp_path / "rows.json"
    assert cli("judge", "report", verdicts.path, "--json", rows)[0] == 0
    report = json.loads(rows.read_text(encoding="utf-8"))
    assert {row["language"] for row in report} == {"en", "sw"}
    assert [row["withheld"] for row in report] == [["judge_rating"]] * 2
    assert cli("judge", "report", verdicts.path, "--uncertified", "--json", rows)[0] == 0
    shown = json.loads(rows.read_text(encoding="utf-8"))
    assert [row["metrics"]["judge_rating"]["value"] for row in shown] == [1.0, 1.0]
