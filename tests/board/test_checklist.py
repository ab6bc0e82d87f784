"""A board shows the errors of checklists by language and test, and the cases that fail."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.api import evaluate
from harness.errors import UsageError
from harness_board.gathering import gather
from harness_board.rendering import board_page, part_page


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    folder = tmp_path_factory.mktemp("checklist")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HARNESS_CACHE", str(folder / "cache"))
        run = evaluate(
            "multichecklist,xquad",
            "baseline:random",
            data="sample",
            languages=("en", "hi"),
            output=Path(folder / "run"),
        )
    board = gather(runs=[run])
    return {
        "whole": board_page(board),
        "task": part_page(board, task="multichecklist"),
        "other": part_page(board, task="xquad"),
        "language": part_page(board, language="hi"),
    }


@pytest.mark.parametrize("place", ["whole", "task"])
def test_errors_and_failing_cases_stand_on_the_board_and_on_the_tasks_page(
    page: dict[str, str], place: str
) -> None:
    assert "multichecklist error rate (" in page[place]
    assert "animal vs vehicles" in page[place]
    assert "Failing test cases" in page[place]
    assert page[place].count("answered") > 10


@pytest.mark.parametrize("place", ["other", "language"])
def test_other_pages_do_without_them(page: dict[str, str], place: str) -> None:
    assert "Failing test cases" not in page[place]


def test_a_checklist_joins_runs_of_other_tasks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HARNESS_CACHE", str(tmp_path / "cache"))
    xnli, xcopa, checklist = (
        evaluate(
            task, "baseline:random", data="sample", limit=limit, output=tmp_path / task.partition(":")[0]
        )
        for task, limit in (("xnli:en", 4), ("xcopa:it", None), ("multichecklist:en", None))
    )
    board = gather(runs=[xnli, checklist])
    assert {column.task for column in board.tasks} == {"xnli", "multichecklist"}
    assert list(board.checklists) == ["multichecklist"]
    with pytest.raises(UsageError, match=r"\(xnli\) has no task in common with the others"):
        gather(runs=[xnli, xcopa, checklist])
