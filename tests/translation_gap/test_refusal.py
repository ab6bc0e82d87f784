"""What `harness gap` refuses of runs, and what it leaves out and tells."""

from __future__ import annotations

from statistics import fmean

import pytest

from harness.errors import DataError, UnknownNameError, UsageError
from harness.storage.run_folder import Run
from harness_translation.gap_system import gap_systems
from tests.translation_gap.conftest import ITEMS, MakeRun, drawn, gaps, pair, records, value, versions


def test_gold_must_be_the_source_items(make_run: MakeRun) -> None:
    cells = versions("sw", 1)
    cells["sw", "bt", "mt"][3] = pair(3, 1.0, gold="no")
    with pytest.raises(UsageError, match=r"zs and bt \(mt\): 1 items differ, the first is '3'"):
        gaps(make_run("run", cells))


def test_other_items_are_refused_or_left_out(make_run: MakeRun) -> None:
    cells = versions("sw", 1)
    cells["sw", "bt", "mt"] = cells["sw", "bt", "mt"][:50]
    run = make_run("run", cells)
    with pytest.raises(UsageError, match=r"10 only in zs, 0 only in bt \(mt\), 50 in both.*--common"):
        gaps(run)
    own = drawn(1)
    found = gaps(run, common=True)
    assert value(found, "te_zs", "sw").items == 50
    assert value(found, "te_zs", "sw").estimate.value == pytest.approx(
        fmean(own["te"][:50]) - fmean(own["zs"][:50])
    )


def test_lacking_versions_are_told_with_the_command_that_makes_them(make_run: MakeRun) -> None:
    cells = {key: own for key, own in versions("sw", 1).items() if key[1] in {"zs", "tt"}}
    found = gaps(make_run("run", cells))
    assert value(found, "tt_zs", "sw").estimate.interval.se is not None
    assert found.find("delta", "sw", "mt") is None
    assert any(
        "sw: no cells of te, bt by 'mt'" in note
        and "harness eval --tasks xnli:sw --model hf:model --variants te,bt --translator mt" in note
        for note in found.notes
    )
    assert any("no transfer gap" in note and "xnli:en" in note for note in found.notes)


def test_human_text_alone_has_no_gap(make_run: MakeRun) -> None:
    run = make_run("run", {("sw", "zs", ""): records([True] * 9)})
    with pytest.raises(UsageError, match=r"--tasks xnli:sw .*--variants zs,tt,te,bt --translator NAME"):
        gaps(run)


def test_doubled_cells_are_refused(make_run: MakeRun, made: Run) -> None:
    again = make_run("again", {("sw", "bt", "mt"): records([True] * ITEMS)})
    with pytest.raises(
        DataError, match=r"'xnli' in 'sw', bt \(mt\), seed 42, is in both .*run' and .*again'"
    ):
        gaps(made, again)
    with pytest.raises(UsageError, match="named twice"):
        gaps(made, made)


def test_versions_of_different_fits_are_refused(make_run: MakeRun) -> None:
    first = make_run("first", {("sw", "zs", ""): records([True] * 9)})
    second = make_run("second", {("sw", "tt", "mt"): records([True] * 9)}, cell={"fit": "other"})
    with pytest.raises(DataError, match=r"answered by the fit 'fit42', tt \(mt\) .* by 'other'"):
        gaps(first, second)


def test_what_records_lack_is_told(make_run: MakeRun) -> None:
    cells = versions("sw", 1)
    with pytest.raises(UsageError, match=r"metric 'f1' has no score for every item.*accuracy"):
        gaps(make_run("metric", cells), metric="f1")
    doubled = {**cells, ("sw", "te", "mt"): [*cells["sw", "te", "mt"], pair(0, 1.0)]}
    with pytest.raises(DataError, match="hold the id '0' more than once"):
        gaps(make_run("doubled", doubled))
    with pytest.raises(DataError, match="names no translator"):
        gaps(make_run("nobody", {("sw", "te", ""): records([True] * 9)}))


def test_names_that_no_run_has_are_refused(made: Run) -> None:
    with pytest.raises(UnknownNameError, match=r"'xnl'.*'xnli'"):
        gap_systems([made], tasks=["xnl"])
    with pytest.raises(UnknownNameError, match="'fr'"):
        gap_systems([made], languages=["fr"])
    (system,) = gap_systems([made], languages=["sw"])
    assert set(system.cells) == {"en", "sw"}


def test_seeds_that_a_version_lacks_are_left_out_and_told(make_run: MakeRun) -> None:
    first = make_run("one", versions("sw", 1), seeds=[1])
    more = make_run("two", {("sw", "zs", ""): records([True] * ITEMS)}, seeds=[2])
    found = gaps(first, more)
    assert found.system.seeds == (1,)
    assert any("left out: 2" in note for note in found.notes)
    only = {("sw", "te", "mt"): records([True] * ITEMS)}
    with pytest.raises(DataError, match="No seed is common"):
        gaps(more, make_run("three", only, seeds=[3]))
