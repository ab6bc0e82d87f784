"""The tasks of a suite as a table: XTREME-R's Table 2."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

from harness.reporting.overview.paper_tables import suite_overview
from harness.running.session import open_session
from tests.conftest import Cli

TABLE_2 = {
    "xnli": ("392,702", "2,490", "5,010", "translations", "15"),
    "xcopa": ("33,410+400", "100", "500", "translations", "11"),
    "udpos": ("21,253", "3,974", "47–20,436", "independent", "38"),
    "wikiann": ("20,000", "10,000", "100–10,000", "independent", "48"),
    "xquad": ("87,599", "10,570", "1,190", "translations", "11"),
    "mlqa": ("87,599", "10,570", "4,517–11,590", "translations", "7"),
    "tydiqa": ("3,696", "634", "113–921", "independent", "9"),
    "lareqa": ("87,599", "10,570", "1,190", "translations", "11"),
    "tatoeba": ("87,599", "10,570", "205–1,000", "independent", "41"),
}
"""As printed, but for the languages that the result tables have, and the sizes of the files of WikiANN, TyDiQA and
Tatoeba."""


def test_table_2_of_xtreme_r() -> None:
    rows = {row["task"]: row for row in suite_overview(open_session().catalog, "xtreme_r")}
    columns = ("train", "dev", "test", "test sets", "languages")
    assert {task: tuple(rows[task][name] for name in columns) for task in TABLE_2} == TABLE_2
    assert [row["domain"] for row in rows.values()] == [
        *["misc"] * 3,
        *["Wikipedia"] * 4,
        "news",
        "Wikipedia",
        "misc",
    ]
    assert rows["mlqa"]["metric"] == "F1 / EM"


@pytest.mark.parametrize("suite", ["xtreme", "llm_core", "vyakarana", "african"])
def test_other_suites_say_what_is_not_known(suite: str) -> None:
    rows = suite_overview(open_session().catalog, suite)
    assert all(all(row.values()) for row in rows)


def test_the_command_writes_files(cli: Cli, tmp_path: Path) -> None:
    asked = ("tasks", "list", "--suite", "xtreme_r")
    assert "Wikipedia" in cli(*asked)[1]
    for name in ("t.tex", "t.md", "t.csv"):
        assert cli(*asked, "--output", tmp_path / name)[0] == 0
    with (tmp_path / "t.csv").open(encoding="utf-8", newline="") as file:
        assert len(list(csv.DictReader(file))) == 10
    assert r"\toprule" in (tmp_path / "t.tex").read_text(encoding="utf-8")
    assert cli("tasks", "list", "--format", "latex")[0] == 2
