"""The main table: the paper's averages, differences and their intervals, tasks with several inputs, missing cells."""

from __future__ import annotations

import csv
import math
from collections.abc import Iterator, Mapping
from typing import Any

import pytest
from hypothesis import given, strategies as st

from harness.reporting.overview.means import Estimate
from harness.storage.run_folder import Run
from harness_probing.reporting.probe import Probe, read_probes
from harness_probing.reporting.progression import (
    Progression,
    average,
    difference_table,
    progressions,
    score_table,
)
from tests.builders import released_data
from tests.reporting.probing.conftest import WriteProbes, kept_details, make_cells

Row = Mapping[str, str]
TREEBANKS = {"HDTB": "original", "CG-HDTB": "cg", "csCG-HDTB": "cscg", "CG-TTB": "cg", "csCG-TTB": "cscg"}
ROUNDING = 0.5e-4 + 1e-9
"""Averages are rounded to four digits."""


@pytest.fixture(scope="session")
def published_rows() -> list[Row]:
    """Tables 4 and 5 of Patil et al. (2021), next to the folder that HARNESS_TEST_DATA names."""
    root = released_data()
    path = root.parent / "golden" / "vyakarana" / "tables_4_5.tsv"
    if not path.is_file():
        pytest.skip(f"{path.name} is not there")
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file, delimiter="\t"))


def _published_probe(row: Row) -> Probe:
    number = int(row["best_layer_number"])
    last = {"layer": 12, "weighted_f1": {"value": float(row["last_layer"]), "se": None, "ci": None}}
    best = {"layer": number, "weighted_f1": {"value": float(row["best_layer"]), "se": None, "ci": None}}
    return Probe(
        model=row["model"],
        task=row["task"],
        view="",
        treebank=TREEBANKS[row["treebank"]],
        language="hi" if row["table"] == "4" else "ta",
        method="probe_paper",
        stands_in=False,
        details={"settings": {"seeds": [42]}, "problem": {"headline": {**best, "chosen_on": "test"}, "last": last}},
        groups={},
    )  # fmt: skip


@pytest.mark.parametrize("table", ["4", "5"])
def test_all_averages_of_the_paper_follow_from_its_cells(published_rows: list[Row], table: str) -> None:
    own = [row for row in published_rows if row["table"] == table]
    probes = [_published_probe(row) for row in own if row["task"] != "Average"]
    found = {one.model: one for one in progressions(probes) if one.title == "Average"}
    printed = [row for row in own if row["task"] == "Average"]
    assert len(printed) == {"4": 15, "5": 10}[table]
    for row in printed:
        scores, treebank = found[row["model"]].scores, TREEBANKS[row["treebank"]]
        for which, column in (("last", "last_layer"), ("best", "best_layer")):
            assert scores[treebank, which].value == pytest.approx(float(row[column]), abs=ROUNDING)  # type: ignore[index]


def test_the_papers_table_is_shown_as_it_is_printed(published_rows: list[Row]) -> None:
    probes = [
        _published_probe(row) for row in published_rows if row["table"] == "4" and row["task"] != "Average"
    ]
    shown = score_table(progressions(probes), probes, "Table 4")
    rows = [row for row in shown.rows if row.fields]
    assert rows[0].label == "POS"
    assert rows[0].fields == ("93.3", "94.1 (8)", "88.9", "89.3 (11)", "75.4", "77.4 (7)")
    assert rows[4].label == "Average"
    assert rows[4].fields == ("69.5", "71.0", "63.1", "64.6", "56.0", "59.7")


@pytest.fixture
def of_run(vyakarana: Run) -> dict[str, Progression]:
    probes, notes = read_probes([vyakarana])
    assert notes == ()
    return {one.title: one for one in progressions(probes)}


def test_scores_are_those_of_the_engine(of_run: dict[str, Progression]) -> None:
    details = kept_details()
    for title, (task, inputs) in {
        "vyakarana_pos": ("vyakarana_pos", ""),
        "vyakarana_gcm inputs=case_only": ("vyakarana_gcm", "case_only"),
    }.items():
        for treebank in ("original", "cg", "cscg"):
            problem = details[task, inputs, treebank]["problem"]
            best = of_run[title].scores[treebank, "best"]
            assert best.value == problem["headline"]["weighted_f1"]["value"]
            assert best.interval == tuple(problem["headline"]["weighted_f1"]["ci"])
            assert of_run[title].scores[treebank, "last"].value == problem["last"]["weighted_f1"]["value"]


def test_differences_take_the_treebanks_as_independent(of_run: dict[str, Progression]) -> None:
    details = kept_details()
    earlier, later = (
        details["vyakarana_pos", "", treebank]["problem"]["headline"]["weighted_f1"]
        for treebank in ("original", "cg")
    )
    step = of_run["vyakarana_pos"].steps["cg", "best"]
    assert step.value == pytest.approx(later["value"] - earlier["value"])
    assert step.interval is not None
    low = math.hypot(later["value"] - later["ci"][0], earlier["ci"][1] - earlier["value"])
    assert step.interval.low == pytest.approx(step.value - low)


def test_a_task_with_several_inputs_counts_once(of_run: dict[str, Progression]) -> None:
    def value(title: str) -> float:
        return of_run[title].scores["cscg", "best"].value

    gcm = (value("vyakarana_gcm inputs=full") + value("vyakarana_gcm inputs=case_only")) / 2
    expected = (value("vyakarana_pos") + value("vyakarana_stdp") + gcm) / 3
    assert value("Average") == pytest.approx(expected)
    assert of_run["Average"].tasks == {"original": 3, "cg": 3, "cscg": 3}


def _without(task: str, treebank: str) -> Iterator[dict[str, Any]]:
    for (name, inputs, bank), details in kept_details("hf:second").items():
        if (name, bank) != (task, treebank):
            view = {"inputs": inputs, "treebank": bank} if inputs else {"treebank": bank}
            yield from make_cells(name, view, details)


def test_an_average_over_fewer_tasks_is_marked_and_never_compared(write_probes: WriteProbes) -> None:
    probes, _ = read_probes([write_probes(*_without("vyakarana_stdp", "original"), model="hf:second")])
    found = progressions(probes)
    shown = score_table(found, probes, "T")
    average_row = shown.rows[-1]
    assert average_row.label == "Average"
    assert [str(field).endswith("~") or "~±" in str(field) for field in average_row.fields] == [True] * 2 + [
        False
    ] * 4
    assert any(note.startswith("~ an average over fewer tasks") for note in shown.notes)
    last = found[-1]
    pos = next(one for one in found if one.title == "vyakarana_pos")
    assert last.steps["cg", "best"].value == pytest.approx(pos.steps["cg", "best"].value), "POS has both"
    [stdp] = [row for row in shown.rows if row.label == "vyakarana_stdp"]
    assert stdp.fields[:2] == ("-", "-")


def test_one_treebank_has_no_differences(write_probes: WriteProbes) -> None:
    details = kept_details()["vyakarana_pos", "", "original"]
    probes, _ = read_probes([write_probes(*make_cells("udpos", {}, details))])
    found = progressions(probes)
    assert difference_table(found, "T") is None
    assert [row.label for row in score_table(found, probes, "T").rows] == ["udpos"], "no average of one task"


def test_a_stand_in_for_test_is_marked(write_probes: WriteProbes) -> None:
    details = kept_details()["vyakarana_pos", "", "cg"]
    probes, _ = read_probes([write_probes(*make_cells("p", {"treebank": "cg"}, details, stands_in=True))])
    shown = score_table(progressions(probes), probes, "T")
    assert "*" in str(shown.rows[0].fields[0])
    assert any(note.startswith("* scored on another split") for note in shown.notes)


ESTIMATES = st.floats(0, 1).flatmap(
    lambda value: st.builds(
        lambda down, up: Estimate(value=value, se=(down + up) / 4, interval=(value - down, value + up)),
        st.floats(0, 0.5),
        st.floats(0, 0.5),
    )
)


@given(st.lists(ESTIMATES, min_size=1, max_size=6))
def test_an_average_lies_within_its_interval(estimates: list[Estimate]) -> None:
    found = average(estimates)
    values = [own.value for own in estimates]
    assert min(values) - 1e-12 <= found.value <= max(values) + 1e-12
    assert found.interval is not None
    assert found.interval[0] - 1e-12 <= found.value <= found.interval[1] + 1e-12


def test_an_average_with_an_unknown_interval_has_none() -> None:
    known = Estimate(value=0.5, se=0.1, interval=(0.3, 0.7))
    found = average([known, Estimate(value=0.7)])
    assert found.value == pytest.approx(0.6)
    assert (found.interval, found.se) == (None, None)
    with pytest.raises(ValueError, match="no scores"):
        average([])
