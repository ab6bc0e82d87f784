"""The embedded sample of the task is what the shipped suite gives: it never drifts."""

from __future__ import annotations

import json
import os
from importlib import resources
from pathlib import Path

import pytest

from harness_checklist.folder import find_suite
from harness_checklist.generation import draw_cases
from harness_checklist.readers import case_rows

CASES = 1
FOLDER = Path(str(resources.files("harness_task_specs"))) / "sample" / "multichecklist"
SUITE = find_suite("basics")


@pytest.mark.parametrize("language", sorted(SUITE.languages))
def test_the_sample_is_drawn_from_the_shipped_suite(language: str) -> None:
    rows = [
        dict(row.fields)
        for test in SUITE.tests
        for case in draw_cases(SUITE, test, language, CASES, 0).cases
        for row in case_rows(case, "sample", 1)
    ]
    made = "".join(f"{json.dumps(row, ensure_ascii=False)}\n" for row in rows)
    path = FOLDER / f"{language}.jsonl"
    if os.environ.get("HARNESS_UPDATE_GOLDEN"):
        path.parent.mkdir(exist_ok=True)
        path.write_text(made, encoding="utf-8")
    assert path.read_text(encoding="utf-8") == made
