"""A board shows the errors of checklists by language and test, and the cases that fail."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.api import evaluate
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
