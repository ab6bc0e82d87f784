"""The contrast of two groups of models."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from statistics import fmean

import pytest
from hypothesis import given, strategies as st

from harness.errors import UsageError
from harness.storage.run_folder import Run
from harness_probing.reporting.progression import group_tables, relabelling_p
from tests.reporting.probing.conftest import WriteProbes, kept_details, make_cells, vyakarana_cells

Cli = Callable[..., tuple[int, str, str]]
SCORES = st.lists(st.floats(0, 1), min_size=1, max_size=4)


@given(first=SCORES, second=SCORES)
def test_p_is_that_of_all_divisions_and_symmetric(first: list[float], second: list[float]) -> None:
    p = relabelling_p(first, second)
    assert p == pytest.approx(relabelling_p(second, first))
    scores, places = [*first, *second], range(len(first) + len(second))
    sizes = []
    for chosen in itertools.combinations(places, len(first)):
        rest = [scores[place] for place in places if place not in chosen]
        sizes.append(abs(fmean(scores[place] for place in chosen) - fmean(rest)))
    seen = abs(fmean(first) - fmean(second))
    assert p == pytest.approx(sum(size >= seen - 1e-9 for size in sizes) / len(sizes))


def test_p_of_groups_that_do_not_overlap_is_the_least() -> None:
    assert relabelling_p([0.9, 0.8], [0.1, 0.2, 0.3]) == 0.1
    assert relabelling_p([0.9, 0.8], [0.1, 0.2]) == pytest.approx(2 / 6)
    assert relabelling_p([0.5], [0.5]) == 1


@pytest.fixture
def third(write_probes: WriteProbes) -> Run:
    return write_probes(*vyakarana_cells("hf:second"), model="hf:third")


def test_groups_are_compared_on_what_all_models_have(
    vyakarana: Run, other_vyakarana: Run, third: Run
) -> None:
    [table] = group_tables([vyakarana], [other_vyakarana, third])
    rows = [(row.label, tuple(map(str, row.fields))) for row in table.rows]
    assert [label for label, _ in rows[:4]] == ["original", "vyakarana_pos", "vyakarana_stdp", "Average"]
    assert len(rows) == 12, "the first model alone has GCM"
    _, fields = rows[3]
    assert (fields[0], fields[1], fields[2], fields[4]) == ("91.9", "89.4", "+2.5", "0.333")
    low, high = (float(end) for end in fields[3].split(" to "))
    assert low < 2.5 < high
    [reverse] = group_tables([other_vyakarana, third], [vyakarana])
    assert str(reverse.rows[3].fields[2]) == "-2.5"


def test_groups_that_cannot_be_compared_are_errors(vyakarana: Run, write_probes: WriteProbes) -> None:
    with pytest.raises(UsageError, match="both groups"):
        group_tables([vyakarana], [vyakarana])
    other = write_probes(*make_cells("p", {}, kept_details()["vyakarana_pos", "", "cg"]), model="hf:x")
    with pytest.raises(UsageError, match="No task"):
        group_tables([vyakarana], [other])


@pytest.mark.parametrize(
    ("name", "mark"), [("console", "+2.5"), ("latex", r"\quad Average &"), ("markdown", "| Average")]
)
def test_the_report_has_the_contrast(
    vyakarana: Run, other_vyakarana: Run, third: Run, cli: Cli, name: str, mark: str
) -> None:
    groups = ("--against", other_vyakarana.path, "--against", third.path)
    status, stdout, stderr = cli("report", vyakarana.path, "--probing", *groups, "--format", name)
    assert (status, stderr) == (0, "")
    assert mark in stdout
    status, _, stderr = cli("report", vyakarana.path, *groups)
    assert status != 0
    assert "--probing" in stderr
