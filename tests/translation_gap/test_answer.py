"""The answer of a gap: what the flags and intervals that were computed say, in words."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from harness.statistics import Interval
from harness.storage.records import ItemRecord
from harness_translation.gap.answer import _answer, _sentence
from harness_translation.gap.formula import CONTRASTS, FLAGGED
from harness_translation.gap.means import Estimate
from harness_translation.gap.measure import ALL, GapValue, SystemGaps
from harness_translation.gap.sections import system_section
from tests.translation_gap.conftest import MakeRun, Version, gaps, records


def _value(low: float | None, high: float | None, *, flagged: bool, value: float = 0.1667) -> GapValue:
    interval = Interval(se=0.05, low=low, high=high, method="bootstrap")
    given: dict[str, Any] = {
        "quantity": "bt_tt", "translator": "*", "language": "de", "languages": ("de",), "subset": "all", "items": 24,
    }  # fmt: skip
    return GapValue(**given, estimate=Estimate(value=value, interval=interval), flagged=flagged)


@pytest.mark.parametrize(
    ("low", "high", "flagged", "expected"),
    [
        (0.042, 0.333, True, "yes"),
        (0.042, 0.333, False, "undecided"),
        (-0.01, 0.333, True, "undecided"),
        (-0.1, 0.2, False, "no evidence"),
        (-0.3, -0.1, False, "no"),
        (None, None, True, "undecided"),
    ],
)
def test_the_answer_needs_the_flag_and_the_interval(
    low: float | None, high: float | None, flagged: bool, expected: str
) -> None:
    assert _answer(_value(low, high, flagged=flagged)) == expected


def test_the_sentence_has_the_gap_and_its_interval() -> None:
    assert _sentence(_value(0.042, 0.333, flagged=True), "de") == "German: yes, +16.7 points (4.2 to 33.3)."


def _mixed(make_run: MakeRun, name: str, present: dict[str, dict[str, str]]) -> SystemGaps:
    """Return the gaps of a run in which each translator has some versions of each language."""
    right = {"zs": 20, "tt": 25, "te": 45, "bt": 55}
    source: dict[Version, list[ItemRecord]] = {
        (code, "zs", ""): records([number < right["zs"] for number in range(60)], cluster=None)
        for code in present
    }
    for code, by_translator in present.items():
        for translator, variants in by_translator.items():
            for variant in variants.split():
                more = right[variant] + (translator == "g") * 2
                own = records([number < more for number in range(60)], cluster=None)
                source[code, variant, translator] = own
    return gaps(make_run(name, source))


def _text(found: SystemGaps) -> str:
    return repr(system_section(found, k=2).blocks)


def test_no_verdict_is_by_a_translator_without_the_contrast(make_run: MakeRun) -> None:
    found = _mixed(make_run, "run", {"hi": {"g": "tt", "r": "tt te bt"}})
    assert {value.quantity for value in found.values if value.translator == ALL} >= {"tt", "tt_zs"}
    assert not [
        value for value in found.values if value.translator == ALL and value.quantity in {"bt", "bt_tt"}
    ]
    assert not any(value.flagged for value in found.values)
    text = _text(found)
    assert "every one of" not in text
    assert "by r alone +50.0 points" in text
    assert "hi (r)" in text
    complete = _mixed(make_run, "all", {"hi": {"g": "tt te bt", "r": "tt te bt"}})
    assert complete.flagged["bt_tt"] == ("hi",)
    assert "every one of g, r" in _text(complete)
    crossed = _mixed(make_run, "crossed", {"hi": {"g": "tt bt"}, "sw": {"r": "tt bt"}})
    assert "every one of" not in _text(crossed)


_VERSIONS = st.sets(st.sampled_from(["tt", "te", "bt"])).map(lambda names: " ".join(sorted(names)))
_LANGUAGE = st.dictionaries(st.sampled_from(["g", "r", "a"]), _VERSIONS.filter(bool), min_size=1)


@pytest.mark.thorough
@settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.fixed_dictionaries({"hi": _LANGUAGE, "sw": _LANGUAGE}))
def test_a_row_of_all_translators_is_over_one_set(
    tmp_path_factory: pytest.TempPathFactory, make_run: MakeRun, present: dict[str, dict[str, str]]
) -> None:
    found = _mixed(make_run, tmp_path_factory.mktemp("run").name, present)
    for code, by_translator in present.items():
        row = {
            value.quantity: value.estimate.value
            for value in found.values
            if value.language == code and value.translator in {ALL, ""} and value.subset == "all"
        }
        for quantity in set(CONTRASTS) - {"delta"}:
            less, more = CONTRASTS[quantity]
            if quantity in row:
                assert row[quantity] == pytest.approx(row[more] - row[less])
        for quantity in FLAGGED:
            needed = set(CONTRASTS[quantity]) - {"zs"}
            every = all(
                needed <= set(by_translator.get(name, "").split()) for name in found.system.translators
            )
            judged = any(
                value.flagged
                for value in found.values
                if (value.quantity, value.language) == (quantity, code)
            )
            assert (quantity in row) == every
            assert judged <= every
