"""The summary of a whole suite in a pseudo-terminal of 80 columns: at most 45 lines, the headline last."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from harness.languages.table import known_languages
from harness.planning.run_config import RunConfig, data_options
from harness.running.manifest import published_documents, suite_summaries, task_summaries
from harness.running.session import open_session, prepare
from harness.scores.aggregation import aggregate_suites
from harness.storage.results import TaskSummary
from tests.builders import make_shown_cell, scored, write_run

from .terminal import Terminal

ESCAPES = re.compile(r"\x1b\[[0-9;]*m")
LINES, COLUMNS = 45, 80


@pytest.fixture(scope="module")
def suite_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """XTREME-R in all its languages, with what makes a summary long; a baseline lies next to it."""
    session = open_session()
    config = RunConfig(tasks=("xtreme_r",), model="baseline:majority", data=data_options(["sample"]))
    plan = prepare(config, session).plan
    suites = suite_summaries(plan)
    manifest = {
        "suites": [suite.to_json() for suite in suites],
        "published": published_documents(session.catalog, suites),
        "config": {"limit": 100},
    }
    specs = {
        task: spec.changed(languages={code: _place(code) for code in suites[0].languages[task]})
        for task, spec in task_summaries(plan).items()
    }
    folder = tmp_path_factory.mktemp("suite") / "run"
    for path, model, level in (
        (folder, "hf:/models/mine", 0.4),
        (folder / "baselines/b", "baseline:majority", 0.1),
    ):
        cells = list(_cells(specs, level))
        rows = scored(cells, known := {task: spec.to_json() for task, spec in specs.items()})
        write_run(
            path,
            cells,
            known,
            manifest={**manifest, "model": model},
            suites=[row.to_json() for row in aggregate_suites(rows, suites)],
        )
    return folder


def _place(code: str) -> tuple[str, str]:
    language = known_languages().get(code)
    return language.family, language.script


def _cells(specs: Mapping[str, TaskSummary], level: float) -> Iterator[dict[str, Any]]:
    """Yield a score for every language, some with a remark; the last two languages of each task have no data."""
    for task, spec in specs.items():
        *codes, first, last = spec.languages
        for place, code in enumerate(codes):
            value = level + (place * 37 % 50) / 100
            score = {"value": value, "se": 0.02, "ci": [value - 0.04, value + 0.04]}
            fields = {"stands_in": place % 3 == 0, "truncated": 7, "unparsed": 3, "replaced": 1, "tied": 2}
            metrics = dict.fromkeys(spec.headline, score)
            yield make_shown_cell(task, code, metrics, n=1000, seconds=12.0, **fields)
        missing = {"status": "skipped", "n": 0, "metrics": {}}
        for code, way in (
            (first, "run with --data hub (x, y, test)."),
            (last, f"give the folder that has it with --data ('harness tasks show {task}' has the paths)."),
        ):
            reason = f"No data of {task!r}: looked for x in y. Put it there, or {way}"
            yield {"task": task, "language": code, "reason": reason, **missing}


def _in_terminal(width: int, *arguments: object, colour: bool) -> list[str]:
    """Return the lines that the command prints in a terminal of this width."""
    settings = {} if colour else {"NO_COLOR": "1"}
    terminal = Terminal("-m", "harness", *arguments, columns=width, environment=settings)
    try:
        assert terminal.wait() == 0
        return terminal.output.splitlines()
    finally:
        terminal.close()


def test_a_suite_fits_one_screen(suite_run: Path) -> None:
    printed = _in_terminal(COLUMNS, "report", suite_run, "--brief", colour=False)
    assert not [line for line in printed if "38;5;" in line]
    lines = [ESCAPES.sub("", line) for line in printed]
    assert len(lines) < LINES, "harness eval adds the line of the folder"
    assert max(map(len, lines)) <= COLUMNS
    assert not [line for line in lines if line.endswith(" ")]
    assert len({line.split()[0] for line in lines[2:12]}) == 10
    assert lines[-1].startswith("xtreme_r: ")
    assert any(line.startswith("published") for line in lines)
    assert any("harness report RUN --notes" in line for line in lines)


@pytest.mark.thorough
def test_shades_have_colours_in_a_terminal_only(suite_run: Path) -> None:
    lines = _in_terminal(COLUMNS, "report", suite_run, "--brief", colour=True)
    shaded = [line for line in lines if "·" in ESCAPES.sub("", line) and "chance or 0" not in line]
    assert shaded
    assert all("\x1b[38;5;" in line for line in shaded)
    details = _in_terminal(200, "report", suite_run, colour=True)
    [german] = [line for line in details if ESCAPES.sub("", line).startswith("   de ")][:1]
    assert len(re.findall(r"\x1b\[[0-9;]*38;5;\d+m", german)) >= 5, "a colour per score"
