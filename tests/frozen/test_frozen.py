"""A changed number is noticed, an unchanged run has the frozen digests, and times are not compared."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.frozen.__main__ import collect, compare, frozen_digests
from tests.frozen.commands import OUTPUTS, RUNS
from tests.frozen.normal_text import normal_text, outline

NAMES = ["runs/budget", "report/budget/csv"]


@pytest.mark.thorough
def test_only_a_planted_change_is_noticed(tmp_path: Path) -> None:
    assert compare(collect(tmp_path, NAMES), NAMES) == []
    path = tmp_path / "runs" / "budget" / "results.json"
    results = json.loads(path.read_text(encoding="utf-8"))
    results["cells"][0]["metrics"]["accuracy"]["value"] += 1e-4
    path.write_text(json.dumps(results), encoding="utf-8")
    changed = compare(collect(tmp_path, NAMES), NAMES)
    assert changed == ["report/budget/csv/file.csv", "runs/budget/xnli/results.json"]


def test_every_command_and_run_is_frozen() -> None:
    frozen = frozen_digests()
    assert set(OUTPUTS) <= set(frozen)
    assert {f"runs/{name}/results.json" for name in RUNS} <= set(frozen)


@pytest.mark.parametrize(
    ("name", "text", "expected"),
    [
        ("gap/rows", "0.12345678901234 took 2.5 s", "0.123456789 took SECONDS\n"),
        ("report/encoder/console", "0.123456 and 61.25 at 127.0.0.1:8000", "0.1235 and 61.25 at HOST\n"),
        ("gap/page.html", "<p><b>2026-01-02T03:04:05+00:00</b></p>", "<p>\n<b>TIME</b>\n</p>\n"),
        ("gap/rows.json", '{"seconds": 1, "p": 0.5}', '{\n "p": 0.5\n}\n'),
        ("gap/rows", "fit 0123456789abcdef of 1234567890 items", "fit DIGEST of 1234567890 items\n"),
    ],
)
def test_times_digests_and_last_digits_are_dropped(name: str, text: str, expected: str) -> None:
    assert normal_text(name, text) == expected


def test_an_outline_has_the_texts_of_a_page() -> None:
    page = '<style>p {}</style><div id="a"><p class="b">One <b>two</b><br> three</p></div>'
    assert outline(page) == "p.b: One\nb: two\np.b: three\n"
