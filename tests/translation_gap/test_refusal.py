"""Runs that `harness gap` rejects, and cells and items that it skips with a note."""

from __future__ import annotations

from statistics import fmean

import pytest

from harness.errors import DataError, UnknownNameError, UsageError
from harness.storage.run_folder import Run
from harness_translation.gap.system import gap_systems
from tests.translation_gap.conftest import ITEMS, MakeRun, drawn, gaps, pair, records, value, versions


def test_gold_must_be_the_source_items(make_run: MakeRun) -> None:
    cells = versions("sw", 1)
    cells["sw", "bt", "mt"][3] = pair(3, 1.0, gold="no")
    with pytest.raises(UsageError, match=r"zs and bt \(mt\).*\b1\b.*'3'"):
        gaps(make_run("run", cells))


def test_other_items_are_rejected_or_skipped(make_run: MakeRun) -> None:
    cells = versions("sw", 1)
    cells["sw", "bt", "mt"] = cells["sw", "bt", "mt"][:50]
    run = make_run("run", cells)
    with pytest.raises(UsageError, match=r"10 .*zs, 0 .*bt \(mt\), 50 .*--common"):
        gaps(run)
    own = drawn(1)
    found = gaps(run, common=True)
    assert value(found, "te_zs", "sw").items == 50
    assert value(found, "te_zs", "sw").estimate.value == pytest.approx(
        fmean(own["te"][:50]) - fmean(own["zs"][:50])
    )


def test_missing_versions_are_reported_with_the_command_that_makes_them(make_run: MakeRun) -> None:
    cells = {key: own for key, own in versions("sw", 1).items() if key[1] in {"zs", "tt"}}
    found = gaps(make_run("run", cells))
    assert value(found, "tt_zs", "sw").estimate.interval.se is not None
    assert found.find("delta", "sw", "mt") is None
    assert any(
        note.startswith("sw: ")
        and "te, bt by 'mt'" in note
        and "harness eval --tasks xnli:sw --model hf:model --variants te,bt --translator mt" in note
        for note in found.notes
    )
    assert any("transfer gap" in note and "xnli:en" in note for note in found.notes)


def test_human_text_alone_has_no_gap(make_run: MakeRun) -> None:
    run = make_run("run", {("sw", "zs", ""): records([True] * 9)})
    with pytest.raises(UsageError, match=r"--tasks xnli:sw .*--variants zs,tt,te,bt --translator NAME"):
        gaps(run)


def test_doubled_cells_are_rejected(make_run: MakeRun, made: Run) -> None:
    again = make_run("again", {("sw", "bt", "mt"): records([True] * ITEMS)})
    with pytest.raises(DataError, match=r"'xnli' in 'sw', bt \(mt\), seed 42.*run' and .*again'"):
        gaps(made, again)
    with pytest.raises(UsageError, match=str(made.path)):
        gaps(made, made)


def test_versions_of_different_fits_are_rejected(make_run: MakeRun) -> None:
    first = make_run("first", {("sw", "zs", ""): records([True] * 9)})
    second = make_run("second", {("sw", "tt", "mt"): records([True] * 9)}, cell={"fit": "other"})
    with pytest.raises(DataError, match=r"'fit42', tt \(mt\) .*'other'"):
        gaps(first, second)


def test_incomplete_records_are_rejected(make_run: MakeRun) -> None:
    cells = versions("sw", 1)
    with pytest.raises(UsageError, match=r"'f1' .*accuracy"):
        gaps(make_run("metric", cells), metric="f1")
    doubled = {**cells, ("sw", "te", "mt"): [*cells["sw", "te", "mt"], pair(0, 1.0)]}
    with pytest.raises(DataError, match="'0'"):
        gaps(make_run("doubled", doubled))
    with pytest.raises(DataError, match="'te'"):
        gaps(make_run("unnamed", {("sw", "te", ""): records([True] * 9)}))


def test_unknown_names_are_rejected(made: Run) -> None:
    with pytest.raises(UnknownNameError) as error:
        gap_systems([made], tasks=["xnl"])
    assert (error.value.name, list(error.value.near)) == ("xnl", ["xnli"])
    with pytest.raises(UnknownNameError) as error:
        gap_systems([made], languages=["fr"])
    assert error.value.name == "fr"
    (system,) = gap_systems([made], languages=["sw"])
    assert set(system.cells) == {"en", "sw"}


def test_seeds_that_a_version_does_not_have_are_skipped_with_a_note(make_run: MakeRun) -> None:
    first = make_run("one", versions("sw", 1), seeds=[1])
    more = make_run("two", {("sw", "zs", ""): records([True] * ITEMS)}, seeds=[2])
    found = gaps(first, more)
    assert found.system.seeds == (1,)
    assert any("seeds" in note and note.endswith(": 2.") for note in found.notes)
    only = {("sw", "te", "mt"): records([True] * ITEMS)}
    with pytest.raises(DataError, match="seed"):
        gaps(more, make_run("three", only, seeds=[3]))
