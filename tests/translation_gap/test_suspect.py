"""Items that models get right in the source language and in machine-made text, but not in the human text."""

from __future__ import annotations

from typing import Any

import pytest

from harness.errors import UsageError
from harness.storage.records import ItemRecord
from harness.storage.run_folder import Run
from harness_translation.gap.suspect import SuspectList, find_suspects
from harness_translation.gap.suspect_report import suspect_page, suspect_rows
from harness_translation.gap.system import gap_systems
from tests.translation_gap.conftest import MakeRun, Version, pair

TEXTS = {"zs": "usiku", "te": "asubuhi", "bt": "morning", "tt": "night", "en": "the morning"}


def answered(version: str, right: str, **given: Any) -> list[ItemRecord]:
    """Return records from a text of 1 (right) and 0."""
    texts = {"premise": TEXTS[version], "hypothesis": "<b>markup</b>"}
    return [pair(number, float(each), texts=texts, **given) for number, each in enumerate(right)]


def cells(zs: str, te: str, bt: str, tt: str, en: str = "11111") -> dict[Version, list[ItemRecord]]:
    return {
        ("en", "zs", ""): answered("en", en),
        ("sw", "zs", ""): answered("zs", zs),
        ("sw", "te", "mt"): answered("te", te),
        ("sw", "bt", "mt"): answered("bt", bt),
        ("sw", "tt", "mt"): answered("tt", tt),
    }


def suspects(*runs: Run, top: int = 50, common: bool = False) -> SuspectList:
    (found,) = find_suspects(gap_systems(runs), None, top=top, common=common)
    return found


def test_suspicion_is_the_mean_vote_and_ties_go_by_tt(make_run: MakeRun) -> None:
    # Item 0: human text right. 1 and 4: all machine text right, and 4 has TT wrong too. 2: half of it. 3: none of it.
    run = make_run("run", cells(zs="10000", te="11101", bt="11001", tt="11110"))
    found = suspects(run)
    assert [(own.id, own.suspicion) for own in found.suspects] == [("4", 1.0), ("1", 1.0), ("2", 0.5)]
    assert (found.items, found.suspected) == (5, 3)
    assert [own.id for own in suspects(run, top=1).suspects] == ["4"]


def test_an_item_that_is_wrong_in_the_source_is_not_suspected(make_run: MakeRun) -> None:
    run = make_run("run", cells(zs="00000", te="11111", bt="11111", tt="00000", en="01111"))
    assert "0" not in {own.id for own in suspects(run).suspects}


def test_votes_are_over_models_and_seeds(make_run: MakeRun) -> None:
    first = make_run("first", cells(zs="00111", te="11111", bt="11111", tt="00111"), seeds=[1, 2])
    second = make_run(
        "second", cells(zs="01111", te="11111", bt="11111", tt="00111"), model="hf:other", seeds=[1]
    )
    found = suspects(first, second)
    assert len(found.voters) == 3
    ranked = [(own.id, own.suspicion, own.votes) for own in found.suspects]
    assert ranked == [("0", 1.0, 3), ("1", pytest.approx(2 / 3), 2)]


def test_all_versions_are_shown_side_by_side(make_run: MakeRun) -> None:
    found = suspects(make_run("run", cells(zs="01111", te="11111", bt="11111", tt="01111")))
    (row,) = suspect_rows([found])
    shown = {own["version"]: (own["texts"][0], own["score"], own["answers"]) for own in row["versions"]}
    assert shown == {
        "source": ("the morning", 1.0, {'"yes"': 1}),
        "zs": ("usiku", 0.0, {'"no"': 1}),
        "bt (mt)": ("morning", 1.0, {'"yes"': 1}),
        "te (mt)": ("asubuhi", 1.0, {'"yes"': 1}),
        "tt (mt)": ("night", 0.0, {'"no"': 1}),
    }
    assert (row["gold"], row["rank"], row["voters"], row["tt_wrong"]) == ('"yes"', 1, 1, 1.0)
    assert "&lt;b&gt;markup&lt;/b&gt;" in suspect_page([found])


def test_without_machine_text_only_the_source_counts_and_a_note_says_so(make_run: MakeRun) -> None:
    both = cells(zs="01111", te="11111", bt="11111", tt="11111")
    found = suspects(make_run("run", {key: own for key, own in both.items() if key[1] == "zs"}))
    assert [own.id for own in found.suspects] == ["0"]
    assert found.suspects[0].tt_wrong is None
    assert "neither TE nor BT" in found.notes[0]


def test_other_items_of_a_further_model_are_rejected_or_skipped(make_run: MakeRun) -> None:
    first = make_run("first", cells(zs="00111", te="11111", bt="11111", tt="11111"))
    short = {key: own[1:] for key, own in cells(zs="10111", te="11111", bt="11111", tt="11111").items()}
    second = make_run("second", short, model="hf:other")
    with pytest.raises(UsageError, match=r"\b1 .*\b0 .*--common"):
        suspects(first, second)
    with pytest.raises(UsageError, match=r"\b0 .*\b1 "):
        suspects(second, first)
    assert [own.id for own in suspects(first, second, common=True).suspects] == ["1"]


def test_the_source_is_needed(make_run: MakeRun) -> None:
    own = cells(zs="00111", te="11111", bt="11111", tt="11111")
    del own["en", "zs", ""]
    with pytest.raises(UsageError, match=r"harness eval --tasks xnli:en .*--variants zs"):
        suspects(make_run("run", own))
