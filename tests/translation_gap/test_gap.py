"""The gap between a text and its translation: measures, answers, pretraining."""

from __future__ import annotations

from pathlib import Path
from statistics import fmean, stdev
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from harness.errors import DataError, UnknownNameError, UsageError
from harness.metrics.classification import macro_f1
from harness.metrics.metric import MetricContext
from harness.statistics import Interval, paired_difference
from harness.storage.records import ItemRecord
from harness.storage.run_folder import Run
from harness_translation.gap.correlation import by_size, pretraining_size, rank_correlations, size_ranks
from harness_translation.gap.measure import (
    ALL,
    Estimate,
    GapOptions,
    GapValue,
    Means,
    SystemGaps,
    compute_gaps,
)
from harness_translation.gap.paper import COLUMNS, derived_rows, read_scores
from harness_translation.gap.sections import _answer, _sentence, gap_rows, system_section
from harness_translation.gap.system import CONTRASTS, FLAGGED, gap_systems
from tests.translation_gap.conftest import (
    ITEMS,
    RATES,
    MakeRun,
    Version,
    drawn,
    gaps,
    pair,
    records,
    share,
    value,
    versions,
)


def test_contrasts_are_those_of_the_paper(made: Run, make_run: MakeRun) -> None:
    found = gaps(made)
    deltas = []
    for language, seed in (("sw", 1), ("de", 2)):
        own = drawn(seed)
        zs, tt, te, bt = (share(own, variant) for variant in RATES)
        deltas.append(bt - max(zs, tt))
        for quantity, translator, expected in (
            ("delta", "mt", deltas[-1]),
            ("te_zs", "mt", te - zs),
            ("bt_tt", "mt", bt - tt),
            ("tt_zs", "mt", tt - zs),
            ("transfer_gap_bt", "mt", 0.9 - bt),
            ("transfer_gap_zs", "", 0.9 - zs),
        ):
            assert value(found, quantity, language, translator).estimate.value == pytest.approx(expected)
    mean = value(found, "delta", None)
    assert mean.languages == ("de", "sw")
    assert mean.estimate.value == pytest.approx(fmean(deltas))
    other = make_run("other", versions("sw", 5), view={"train_variant": "B-TRAIN"})
    both = compute_gaps(gap_systems([made, other]), None, GapOptions())
    assert [own.system.train for own in both] == ["ORIG", "B-TRAIN"]


def test_standard_errors_are_those_of_the_paired_cluster_formula(make_run: MakeRun) -> None:
    """The bootstrap of a plain difference estimates what the cluster-robust formula computes, both by premise."""
    own = drawn(3, items=900)
    cells = {("sw", variant, "" if variant == "zs" else "mt"): records(own[variant]) for variant in RATES}
    found = gaps(make_run("run", cells))
    premises = np.arange(900) // 3
    for quantity, less, more in (("te_zs", "zs", "te"), ("bt_tt", "tt", "bt"), ("tt_zs", "zs", "tt")):
        differences = np.array(own[more], dtype=float) - np.array(own[less], dtype=float)
        expected = paired_difference(differences, np.zeros(900, dtype=np.int64), premises)
        interval = value(found, quantity, "sw").estimate.interval
        assert expected.se is not None
        assert (interval.groups, interval.method) == (300, "paired cluster bootstrap")
        assert interval.se == pytest.approx(expected.se, rel=0.08)
        for bound in ("low", "high"):
            assert getattr(interval, bound) == pytest.approx(getattr(expected, bound), abs=0.2 * expected.se)


def test_the_better_of_zs_and_tt_is_chosen_in_every_resample(make_run: MakeRun) -> None:
    """ZS and TT tie and differ on all items: every resample has its own better one."""
    half = [number % 2 == 0 for number in range(300)]
    cells = {
        ("sw", "zs", ""): records(half, cluster=None),
        ("sw", "tt", "mt"): records([not each for each in half], cluster=None),
        ("sw", "bt", "mt"): records([True] * 300, cluster=None),
    }
    estimate = value(gaps(make_run("run", cells)), "delta", "sw").estimate
    assert estimate.value == pytest.approx(0.5)
    # 1 - max(x, 1 - x) = 1/2 - |x - 1/2| for x the share of even items in a resample: never above a half.
    interval = estimate.interval
    assert interval.method == "paired bootstrap, basic"
    assert interval.low is not None
    assert interval.low >= 0.5
    folded = np.abs(np.random.default_rng(0).binomial(300, 0.5, size=20_000) / 300 - 0.5)
    assert interval.se == pytest.approx(float(folded.std()), rel=0.1)
    assert interval.high == pytest.approx(0.5 + float(np.quantile(folded, 0.975)), abs=0.006)


def test_the_basic_interval_covers_a_mean_delta_where_the_percentile_one_does_not() -> None:
    """The numbers of the docstring of `Means.estimate`, by simulation with normal scores of 14 languages."""
    generator = np.random.default_rng(5)
    sd, correlation = 0.0057, 0.6
    root = np.linalg.cholesky((np.full((3, 3), correlation) + np.eye(3) * (1 - correlation)) * sd**2)
    covered = {"percentile": 0, "basic": 0}
    means = Means(seeds=1, seed=0)
    for _ in range(150):
        seen = np.array([0.8, 0.8, 0.85]) + generator.standard_normal((14, 3)) @ root.T
        again = seen + generator.standard_normal((300, 14, 3)) @ root.T
        every = np.concatenate([seen[None], seen[None], again])
        delta = (every[..., 2] - np.maximum(every[..., 0], every[..., 1])).mean(axis=1)
        for name in covered:
            interval = means.estimate(delta, 100, 300, reflected=name == "basic").interval
            assert interval.low is not None
            assert interval.high is not None
            covered[name] += interval.low <= 0.05 <= interval.high
    assert covered["percentile"] < 75
    assert covered["basic"] > 110


def test_a_language_is_flagged_where_every_translator_shows_its_gap(make_run: MakeRun) -> None:
    right, poor = [True] * 57 + [False] * 3, [number % 3 > 0 for number in range(60)]
    cells: dict[Version, list[ItemRecord]] = {}
    for language, second in (("sw", right), ("de", poor)):
        cells[language, "zs", ""] = records(poor, cluster=None)
        cells[language, "te", "one"] = records(right, cluster=None)
        cells[language, "te", "two"] = records(second, cluster=None)
    run = make_run("run", cells)
    assert gaps(run).flagged == {"delta": (), "te_zs": ("sw",), "bt_tt": ()}
    assert gaps(run, k=50).flagged["te_zs"] == ()
    found = gaps(run)
    assert value(found, "te_zs", "de", "one").estimate.exceeds(2)
    assert not value(found, "te_zs", "de", "one").flagged
    both = [value(found, "te_zs", "sw", name).estimate.value for name in ("one", "two")]
    assert value(found, "te_zs", "sw", ALL).estimate.value == pytest.approx(fmean(both))


def test_versions_in_separate_runs_join(make_run: MakeRun, made: Run) -> None:
    cells: dict[Version, list[ItemRecord]] = {("en", "zs", ""): records([True] * 54 + [False] * 6)}
    cells |= {**versions("sw", 1), **versions("de", 2)}
    # The items of one version are in another order.
    runs = [
        make_run(
            variant,
            {key: own[::-1] if variant == "te" else own for key, own in cells.items() if key[1] == variant},
        )
        for variant in RATES
    ]
    together = gap_rows([gaps(made)])
    assert gap_rows([gaps(*runs)]) == gap_rows([gaps(*reversed(runs))]) == together


def test_seeds_are_averaged_and_their_spread_is_reported(make_run: MakeRun) -> None:
    found = gaps(*(make_run(f"run{seed}", versions("sw", seed), seeds=[seed]) for seed in (1, 7)))
    deltas = [share(drawn(seed), "te") - share(drawn(seed), "zs") for seed in (1, 7)]
    estimate = value(found, "te_zs", "sw").estimate
    assert estimate.value == pytest.approx(fmean(deltas))
    assert estimate.seed_sd == pytest.approx(stdev(deltas))
    assert found.system.seeds == (1, 7)


def test_items_in_another_script_are_counted_and_gaps_without_them_are_reported(make_run: MakeRun) -> None:
    native = {"premise": "यह एक वाक्य है", "hypothesis": "यह भी"}
    roman = {"premise": "यह एक वाक्य है", "hypothesis": "yeh bhi"}
    own = drawn(4)
    human = [pair(n, own["zs"][n], texts=roman if n < 20 else native) for n in range(ITEMS)]
    found = gaps(make_run("run", {**versions("hi", 4), ("hi", "zs", ""): human, **versions("de", 5)}))
    assert found.mismatched == {"hi": 20, "de": 0}
    hindi = found.find("te_zs", "hi", "mt", "matching script")
    mean = found.find("te_zs", None, "mt", "matching script")
    assert hindi is not None and mean is not None
    assert hindi.items == 40
    assert hindi.estimate.value == pytest.approx(fmean(own["te"][20:]) - fmean(own["zs"][20:]))
    groups = (hindi.estimate.interval.groups, value(found, "te_zs", "hi").estimate.interval.groups)
    assert groups == (14, 20)
    assert (mean.languages, mean.items) == (("de", "hi"), 100)
    expected = fmean([hindi.estimate.value, value(found, "te_zs", "de").estimate.value])
    assert mean.estimate.value == pytest.approx(expected)


def test_the_script_of_texts_that_old_records_do_not_keep_is_unknown(make_run: MakeRun) -> None:
    import pyarrow.parquet as pq

    run = make_run("run", versions("hi", 4))
    expected = gaps(run)
    for path in (run.path / "records").rglob("*.parquet"):
        pq.write_table(pq.read_table(path).drop_columns(["inputs"]), path)
    found = gaps(run)
    assert (list(expected.mismatched), list(found.mismatched)) == (["hi"], [])
    assert value(found, "delta", "hi") == value(expected, "delta", "hi")


def test_items_that_are_not_parallel_are_drawn_by_language(make_run: MakeRun) -> None:
    cells = {("en", "zs", ""): records([True] * 40 + [False] * 5), **versions("sw", 1)}
    found = gaps(make_run("run", cells, spec={"parallel": False}))
    expected = 40 / 45 - share(drawn(1), "zs")
    assert value(found, "transfer_gap_zs", "sw", "").estimate.value == pytest.approx(expected)
    for is_parallel, groups in ((False, 40), (True, 20)):
        cells = {**versions("sw", 1), **versions("de", 2)}
        mean = value(gaps(make_run(f"{is_parallel}", cells, spec={"parallel": is_parallel})), "te_zs", None)
        assert mean.estimate.interval.groups == groups


def test_runs_and_printed_scores_give_the_same_numbers(made: Run, tmp_path: Path) -> None:
    """One way to the numbers is bootstrapped arrays, the other exact fractions of what is printed."""
    found = gaps(made)
    lines = ["\t".join(COLUMNS)]
    for own in found.values:
        if own.quantity in RATES and own.translator != ALL and own.language is not None:
            by = own.translator
            exact = f"{own.estimate.value * ITEMS:.0f}"
            head = ["1", "xnli", "accuracy", "m", "ORIG", "test", own.quantity.upper(), by, own.language]
            lines.append("\t".join([*head, exact]))
    path = tmp_path / "scores.tsv"
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    compared = 0
    for row in derived_rows(read_scores(path)):
        language = None if row.lang == "avg" else row.lang
        same = found.find(row.quantity.removeprefix("mean_"), language, row.translator)
        if same is not None and not row.quantity.startswith("mean_with"):
            assert same.estimate.value * ITEMS == pytest.approx(float(row.value))
            compared += 1
    assert compared > 30


def test_the_source_counts_on_the_items_that_the_language_has(make_run: MakeRun) -> None:
    """The paper's Table 4: English on the 4,918 questions that Hindi has."""
    cells: dict[Version, list[ItemRecord]] = {
        ("en", "zs", ""): records([True] * 30 + [False] * 30),
        ("sw", "zs", ""): records([True] * 24 + [False] * 16),
        ("sw", "tt", "mt"): records([True] * 40),
    }
    found = gaps(make_run("run", cells))
    assert value(found, "transfer_gap_zs", "sw", "").estimate.value == pytest.approx(30 / 40 - 24 / 40)
    assert value(found, "source", "sw", "").estimate.value == pytest.approx(30 / 40)
    assert "en@sw" in repr(system_section(found, k=2).blocks)


def test_contexts_that_stay_make_contrasts_unfair(make_run: MakeRun) -> None:
    kind = {"kind": "span_extraction"}
    cells: dict[Version, list[ItemRecord]] = {
        ("hi", "zs", ""): records([True] * 30, gold=["उत्तर"]),
        ("hi", "tt", "mt"): records([True] * 30, gold=["answer"]),
        ("hi", "bt", "mt"): records([True] * 30, gold=["answer"]),
        ("hi", "te", "mt"): records([True] * 30, gold=["उत्तर"]),
    }
    found = gaps(make_run("run", cells, spec=kind))
    unfair = {own.quantity for own in found.values if own.unfair}
    assert unfair == {"delta", "tt_zs"}
    cells["hi", "te", "mt"] = records([True] * 30, gold=["answer"])
    with pytest.raises(UsageError, match=r"'xnli' in 'hi' .* zs and te \(mt\).*\b30\b"):
        gaps(make_run("wrong", cells, spec=kind))


def test_rank_correlations_are_scipys() -> None:
    from scipy.stats import spearmanr

    generator = np.random.default_rng(0)
    sizes, values = generator.random(12), np.round(generator.random((20, 12)), 1)
    expected = [spearmanr(sizes, row).statistic for row in values]
    assert rank_correlations(sizes, values) == pytest.approx(expected)
    assert np.isnan(rank_correlations(sizes, np.zeros((1, 12)))).all()


def test_gaps_that_grow_as_data_shrink_correlate(make_run: MakeRun) -> None:
    cells: dict[Version, list[ItemRecord]] = {}
    for number, language in enumerate(["vi", "de", "ar", "hi", "ur", "sw"]):
        cells[language, "zs", ""] = records(
            [place % 60 >= 5 * number for place in range(ITEMS)], cluster=None
        )
        cells[language, "te", "mt"] = records([True] * ITEMS, cluster=None)
    found = [own for own in gaps(make_run("run", cells)).correlations if own.quantity == "te_zs"]
    own = next(each for each in found if each.translator == "mt")
    assert own.rho == pytest.approx(-1)
    assert own.p == pytest.approx(2 / 720, abs=0.003)
    assert own.languages == ("vi", "de", "ar", "hi", "ur", "sw")


def test_macro_f1_is_shown_with_accuracy(made: Run) -> None:
    """All gold labels are 'yes': the F1 of 'yes' is 2a / (1 + a), of 'no', which is only predicted, 0."""
    found = gaps(made)
    for (code, condition), score in found.f1.items():
        if code == "sw":
            accuracy = share(drawn(1), condition.variant)
            assert score == pytest.approx(accuracy / (1 + accuracy))
        [(_, cell)] = found.system.cells[code][condition].values()
        answers = [record for record in made.records(cell) if record.reference is not None]
        sides = [record.prediction for record in answers], [record.reference for record in answers]
        assert score == macro_f1(*sides, MetricContext(language=code, labels=("no", "yes"))).value
    rows = [row for row in gap_rows([found]) if row["metric"] == "macro_f1"]
    assert {(row["language"], row["quantity"]) for row in rows} >= {("sw", "bt"), ("en", "zs")}
    assert "Macro-F1" in _text(found)


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
    gap = _value(low, high, flagged=flagged)
    assert _answer(gap) == expected
    if expected == "yes":
        assert _sentence(gap, "de") == "German: yes, +16.7 points (4.2 to 33.3)."


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
    command = "harness eval --tasks xnli:sw --model hf:model --variants te,bt --translator mt"
    assert any(note.startswith("sw: ") and command in note for note in found.notes)
    assert any("transfer gap" in note and "xnli:en" in note for note in found.notes)
    human = make_run("human", {("sw", "zs", ""): records([True] * 9)})
    with pytest.raises(UsageError, match=r"--tasks xnli:sw .*--variants zs,tt,te,bt --translator NAME"):
        gaps(human)


def test_cells_that_do_not_go_together_are_rejected(make_run: MakeRun, made: Run) -> None:
    again = make_run("again", {("sw", "bt", "mt"): records([True] * ITEMS)})
    with pytest.raises(DataError, match=r"'xnli' in 'sw', bt \(mt\), seed 42.*run' and .*again'"):
        gaps(made, again)
    with pytest.raises(UsageError, match=str(made.path)):
        gaps(made, made)
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
    cells["sw", "bt", "mt"][3] = pair(3, 1.0, gold="no")
    with pytest.raises(UsageError, match=r"zs and bt \(mt\).*\b1\b.*'3'"):
        gaps(make_run("gold", cells))


def test_unknown_names_are_rejected(made: Run) -> None:
    for options, name, near in (({"tasks": ["xnl"]}, "xnl", ["xnli"]), ({"languages": ["fr"]}, "fr", [])):
        with pytest.raises(UnknownNameError) as error:
            gap_systems([made], **options)
        assert (error.value.name, [*error.value.near]) == (name, near)
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


XNLI = "ar bg de el es fr hi ru sw th tr ur vi zh".split()


def test_languages_are_ordered_by_their_size_in_cc100() -> None:
    assert " ".join(by_size(XNLI)) == "ru vi th de bg fr es el zh ar tr hi ur sw"


def test_a_language_outside_of_cc100_is_behind_all_others_by_its_articles() -> None:
    assert by_size(["qu", "wo", "om", "ht", "yo", "en"]) == ["en", "om", "ht", "yo", "qu", "wo"]
    size = pretraining_size("qu")
    assert size is not None
    assert (size.value, size.unit) == (0.02, "M articles")
    assert "Table 7" in size.source
    assert pretraining_size("tlh") is None
    assert by_size(["tlh", "wo"]) == ["wo", "tlh"]


def test_equal_sizes_share_a_rank() -> None:
    assert size_ranks(["sw", "zh", "el", "ru"]) == [1.0, 2.5, 2.5, 4.0]
