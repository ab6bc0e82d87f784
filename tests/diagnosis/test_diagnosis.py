from __future__ import annotations

import tempfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import scipy.stats
from hypothesis import given, settings, strategies as st
from sklearn.metrics import f1_score

from harness.analysis import diagnosis
from harness.analysis.diagnosis import Diagnosis, DiagnosisOptions
from harness.data.features import Feature
from harness.errors import HarnessError, UnknownNameError, UsageError
from harness.metrics.chunk import chunk_f1, f1_from_counts
from harness.metrics.metric import MetricContext
from harness.registry.registry import Registry
from harness.running.session import open_session
from harness.statistics import count_interval
from harness.storage.run_folder import Run
from harness.table import NamedTable
from tests.diagnosis.conftest import MakeRun, pair, question, sentence, write_run


def diagnose(
    runs: Sequence[Run], registry: Registry, options: DiagnosisOptions | None = None, **given: Any
) -> Diagnosis:
    """Diagnose runs, with the usual options where none are given."""
    return diagnosis.diagnose(runs, registry, options or DiagnosisOptions(), **given)


def _rows(found: Diagnosis, kind: str, attribute: str, language: str | None = "en") -> list[dict[str, Any]]:
    rows = found.rows(kind)
    return [own for own in rows if own["attribute"] == attribute and own["language"] == language]


def _questions(scores: str, **given: Any) -> list[Any]:
    """Return one question a digit, of 1, 2, ... words, with so many tenths of F1."""
    return [
        question(str(number), number, min(1.0, int(score) / 9), **given)
        for number, score in enumerate(scores, start=1)
    ]


def test_a_bucket_is_scored_by_the_mean_of_f1_and_exact_match(make_run: MakeRun, registry: Registry) -> None:
    run = make_run("a", {("xquad", "en"): _questions("99990099")})
    rows = _rows(diagnose([run], registry, DiagnosisOptions(examples=1)), "single", "qLen")
    assert [(own["bucket"], own["low"], own["high"], own["low_closed"], own["n"]) for own in rows] == [
        ("XS", 1, 2, True, 2),
        ("S", 2, 4, False, 2),
        ("L", 4, 6, False, 2),
        ("XL", 6, 8, False, 2),
    ]
    assert [own["value"] for own in rows] == [1, 1, 0, 1]
    assert [own["examples"] for own in rows] == [[], [], ["5"], []]
    assert {own["metric"] for own in rows} == {"mean(f1, exact_match)"}
    by_f1 = diagnose([run], registry, DiagnosisOptions(metric="f1", attributes=["qLen"]))
    assert {own["metric"] for own in by_f1.rows("single")} == {"f1"}


def test_precision_is_by_predicted_and_recall_by_gold_spans(make_run: MakeRun, registry: Registry) -> None:
    records = [
        sentence("1", "a b c", "B-PER O B-PER", "B-PER O B-LOC"),
        sentence("2", "a b c", "B-PER O O", "O O B-LOC"),
        sentence("3", "a b c", "O O B-LOC", "O B-PER B-LOC"),
    ]
    found = diagnose([make_run("a", {("wikiann", "en"): records})], registry)
    rows = {own["bucket"]: own for own in _rows(found, "single", "tag")}
    # PER: 3 predicted, 2 gold, 1 right; LOC: 1 predicted, 3 gold, 1 right.
    assert rows["PER"]["value"] == pytest.approx(2 * 1 / (3 + 2))
    assert rows["LOC"]["value"] == pytest.approx(2 * 1 / (1 + 3))
    assert (rows["PER"]["n"], rows["LOC"]["n"]) == (2, 3)


def test_bare_tags_are_scored_as_by_scikit_learn(make_run: MakeRun, registry: Registry) -> None:
    pairs = [
        ("NOUN VERB NOUN ADJ", "NOUN VERB VERB ADJ"),
        ("ADJ NOUN", "NOUN NOUN"),
        ("VERB VERB", "VERB ADJ"),
    ]
    records = [sentence(str(number), own[1].lower(), *own) for number, own in enumerate(pairs)]
    found = diagnose([make_run("a", {("udpos", "en"): records})], registry)
    rows = {own["bucket"]: own["value"] for own in _rows(found, "single", "tag")}
    predicted, gold = (" ".join(own[side] for own in pairs).split() for side in (0, 1))
    labels = ["NOUN", "VERB", "ADJ"]
    expected = f1_score(gold, predicted, labels=labels, average=None)
    assert [rows[name] for name in labels] == pytest.approx(expected.tolist())
    confusion = {(own["gold"], own["predicted"]): own["n"] for own in found.rows("confusion")}
    assert confusion["VERB", "NOUN"] == 1
    assert sum(confusion.values()) == 8


def _two(make_run: MakeRun, *scores: str, **given: Any) -> list[Run]:
    return [
        make_run(f"{len(own)}/{name}", {("xquad", "en"): _questions(own, **given)}, model=f"m:{name}")
        for name, own in zip("ab", scores, strict=True)
    ]


def test_two_runs_are_compared_bucket_by_bucket(make_run: MakeRun, registry: Registry) -> None:
    runs = _two(make_run, "0" * 60 + "9" * 60, "9" * 60 + "9" * 59 + "0")
    options = DiagnosisOptions(attributes=["qLen"], examples=2)
    found = diagnose(runs, registry, options)
    assert found == diagnose(runs, registry, options)
    first, _, _, last = _rows(found, "pairwise", "qLen")
    assert (first["systems"], first["values"], first["difference"]) == (["a", "b"], [0, 1], -1)
    assert (first["wins"], first["losses"], first["ties"]) == (0, 30, 0)
    assert first["q"] <= 0.01
    assert first["significant"]
    assert last["difference"] == pytest.approx(1 / 30)
    assert (last["p"], last["significant"], last["examples"]) == (1, False, ["120"])
    turned = diagnose(runs[::-1], registry, DiagnosisOptions(attributes=["qLen"]))
    assert _rows(turned, "pairwise", "qLen")[0]["difference"] == 1
    small = _rows(diagnose(_two(make_run, "0" * 116, "9" * 116), registry), "pairwise", "qLen")
    assert {own["n"] for own in small} == {29}
    assert all(own["q"] < 0.05 and not own["significant"] for own in small)


def test_clusters_are_one_draw(make_run: MakeRun, registry: Registry) -> None:
    """The same answers, in five contexts instead of 120: far fewer swaps, so that p is larger."""
    scores = ("09" * 60, "99" * 60)
    alone = _rows(diagnose(_two(make_run, *scores), registry), "pairwise", "qLen")
    clustered = [
        make_run(name, {("xquad", "en"): [
            question(str(n), n, int(score) / 9, cluster=f"c{n % 5}") for n, score in enumerate(own, start=1)
        ]})
        for name, own in zip("cd", scores, strict=True)
    ]  # fmt: skip
    together = _rows(diagnose(clustered, registry), "pairwise", "qLen")
    assert [own["p"] for own in together] == [2 / 2**5] * 4
    assert all(one["p"] < other["p"] for one, other in zip(alone, together, strict=True))


@settings(max_examples=15, deadline=None)
@given(st.lists(st.sampled_from([0, 3, 6, 9]), min_size=20, max_size=20))
def test_p_is_that_of_scipy_where_all_swaps_are_taken(scores: list[int]) -> None:
    """Ten questions in two buckets; the p of each is over the swaps of its own items."""
    registry = open_session().registry
    first, second = scores[:10], scores[10:]
    with tempfile.TemporaryDirectory() as name:
        runs = []
        for key, own in (("a", first), ("b", second)):
            records = [question(str(n), 1 + n // 5, score / 9) for n, score in enumerate(own)]
            runs.append(write_run(Path(name) / key, {("xquad", "en"): records}))
        found = diagnose(runs, registry, DiagnosisOptions(attributes=["qLen"]))
    for number, row in enumerate(_rows(found, "pairwise", "qLen")):
        # In eighteenths, the mean of F1 and exact match is a whole number, so that nothing is rounded.
        units = [
            [score + 9 * (score == 9) for score in own[5 * number : 5 * number + 5]]
            for own in (first, second)
        ]
        differences = np.array(units[0]) - np.array(units[1])
        assert row["difference"] == pytest.approx(differences.sum() / 18 / 5)
        result = scipy.stats.permutation_test(
            (differences,), np.sum, permutation_type="samples", n_resamples=10_000, vectorized=True
        )
        assert row["p"] == pytest.approx(result.pvalue)


def test_intervals_of_f1_are_those_of_the_cluster_bootstrap(make_run: MakeRun, registry: Registry) -> None:
    records = [
        sentence(
            str(n), "a b c", "B-PER O B-LOC" if n % 3 else "O O O", "B-PER O O" if n % 2 else "O O B-LOC"
        )
        for n in range(60)
    ]
    found = diagnose([make_run("a", {("wikiann", "en"): records})], registry)
    rows = {own["bucket"]: own for own in _rows(found, "single", "tag")}
    for tag, other in (("PER", "LOC"), ("LOC", "PER")):
        sides = [
            [["O" if label == f"B-{other}" else label for label in tags] for tags in side]
            for side in ([own.prediction for own in records], [own.reference for own in records])
        ]
        counts = chunk_f1(sides[0], sides[1], MetricContext(language="en")).counts
        assert counts is not None
        expected = count_interval(counts, np.arange(60), f1_from_counts, seed=1)
        assert rows[tag]["ci_method"] == "bootstrap"
        assert rows[tag]["se"] == pytest.approx(expected.se, rel=0.15)
        assert rows[tag]["ci"] == pytest.approx([expected.low, expected.high], abs=0.03)


def test_languages_together_have_buckets_by_name_or_common_edges(
    make_run: MakeRun, registry: Registry
) -> None:
    english = [question(str(n), n, 1.0) for n in range(1, 5)]
    hindi = [question(str(n), 10 * n, 0.0) for n in range(1, 5)]
    run = make_run("a", {("xquad", "en"): english, ("xquad", "hi"): hindi})
    by_language = diagnose([run], registry)
    rows = _rows(by_language, "single", "qLen", None)
    assert [(own["bucket"], own["low"], own["n"], own["value"]) for own in rows] == [
        (name, None, 2, 0.5) for name in ("XS", "S", "L", "XL")
    ]
    languages = _rows(by_language, "single", "language", None)
    assert [(own["bucket"], own["value"]) for own in languages] == [("en", 1), ("hi", 0)]
    assert _rows(by_language, "single", "language", "en") == []
    pooled = diagnose([run], registry, DiagnosisOptions(edges="pooled"))
    rows = _rows(pooled, "single", "qLen", None)
    assert [(own["low"], own["high"], own["value"]) for own in rows] == [
        (1, 2, 1),
        (2, 4, 1),
        (4, 20, 0),
        (20, 40, 0),
    ]


def test_translations_of_an_item_are_one_draw(make_run: MakeRun, registry: Registry) -> None:
    runs = [
        make_run(name, {("xquad", code): _questions(score * 8) for code in ("en", "hi")})
        for name, score in (("a", "0"), ("b", "9"))
    ]
    found = diagnose(runs, registry, DiagnosisOptions(attributes=["qLen"]))
    rows = _rows(found, "pairwise", "qLen", None)
    assert [own["n"] for own in rows] == [4] * 4
    # Two questions a bucket, in two languages: 2 of the 2^2 swaps are as extreme, not 2 of 2^4.
    assert [own["p"] for own in rows] == [0.5] * 4


def test_printed_edges_keep_buckets_that_are_empty(make_run: MakeRun, registry: Registry) -> None:
    run = make_run("a", {("xquad", "en"): _questions("90909")})
    found = diagnose([run], registry, DiagnosisOptions(edges="paper", attributes=["qLen", "aLen/cLen"]))
    rows = _rows(found, "single", "qLen")
    assert [(own["high"], own["n"]) for own in rows] == [(8, 5), (11, 0), (16, 0), (None, 0)]
    assert rows[1]["value"] is rows[1]["ci"] is None


@pytest.mark.parametrize("scores", ["9" * 40, "0" * 40, "90"])
def test_all_right_all_wrong_and_two_items(make_run: MakeRun, registry: Registry, scores: str) -> None:
    runs = _two(make_run, scores, scores)
    rows = _rows(diagnose(runs[:1], registry), "single", "qLen")
    assert all(own["value"] in (0, 1) for own in rows)
    pairs = _rows(diagnose(runs, registry), "pairwise", "qLen")
    assert {own["difference"] for own in pairs} == {0}
    assert all(own["p"] in (None, 1) for own in pairs)


def test_a_single_cluster_has_no_interval(make_run: MakeRun, registry: Registry) -> None:
    runs = _two(make_run, "90" * 10, "99" * 10, cluster="c")
    single = _rows(diagnose(runs[:1], registry), "single", "qLen")
    assert {(own["ci"], own["ci_method"]) for own in single} == {(None, "one cluster")}
    pairs = _rows(diagnose(runs, registry), "pairwise", "qLen")
    assert {(own["ci"], own["p"], own["q"]) for own in pairs} == {(None, None, None)}


@pytest.mark.parametrize(
    ("second", "expected_text"),
    [
        ({"cell": {"version": 2}}, "they are of version 1 and 2 of 'xquad'"),
        ({"cell": {"method": "generate"}}, "their methods are head and generate"),
        ({"run": {"data": "sample"}}, "they are on the data 'local' and 'sample'"),
    ],
)
def test_runs_that_differ_raise_or_are_reported(
    make_run: MakeRun, registry: Registry, second: dict[str, Any], expected_text: str
) -> None:
    cells = {("xquad", "en"): _questions("90909")}
    runs = [make_run("a", cells), make_run("b", cells, **second)]
    with pytest.raises(UsageError, match=expected_text):
        diagnose(runs, registry, DiagnosisOptions(strict=True))
    found = diagnose(runs, registry)
    assert expected_text in " ".join(found.notes)


def test_items_that_differ_raise_or_are_skipped(make_run: MakeRun, registry: Registry) -> None:
    first, second = _questions("90909"), _questions("99999")[:3]
    second[0] = question("1", 7, 1.0)
    runs = [make_run("a", {("xquad", "en"): first}), make_run("b", {("xquad", "en"): second[::-1]})]
    expected_text = "of 5, 2 only the first run has, 1 were asked something else"
    with pytest.raises(UsageError, match=expected_text):
        diagnose(runs, registry, DiagnosisOptions(strict=True))
    found = diagnose(runs, registry)
    rows = _rows(found, "pairwise", "qLen")
    assert [(own["n"], own["values"]) for own in rows] == [(1, [0, 1]), (1, [1, 1])]
    nothing = [runs[0], make_run("c", {("xquad", "en"): [question("z", 1, 1.0)]})]
    with pytest.raises(UsageError, match="No item of 'xquad' in 'en' is common"):
        diagnose(nothing, registry)


def test_runs_without_what_is_needed(make_run: MakeRun, registry: Registry) -> None:
    import pyarrow.parquet as pq

    run = make_run("a", {("xquad", "en"): _questions("90")})
    for options, named in (
        (DiagnosisOptions(attributes=["qlen"]), "'qlen'.*'qLen'"),
        (DiagnosisOptions(edges="poled"), "'poled'"),
        (DiagnosisOptions(metric="accuracy"), "'xquad'.*'accuracy'"),
    ):
        with pytest.raises(UnknownNameError, match=named):
            diagnose([run], registry, options)
    with pytest.raises(UsageError, match="xquad: "):
        diagnose([make_run("one", {("xquad", "en"): _questions("9")})], registry)
    [path] = (run.path / "records").rglob("*.parquet")
    pq.write_table(pq.read_table(path).drop_columns(["inputs"]), path)
    with pytest.raises(UsageError, match="older version"):
        diagnose([run], registry)
    path.unlink()
    with pytest.raises(UsageError, match="'xquad' in 'en'"):
        diagnose([run], registry)


def test_calibration_and_confusion(make_run: MakeRun, registry: Registry) -> None:
    outputs = [[0.8, 0.1, 0.1], [0.8, 0.1, 0.1], [0.1, 0.55, 0.35]]
    labels = ["contradiction", "contradiction", "entailment"]
    golds = ["contradiction", "neutral", "entailment"]
    records = [
        pair(str(n), "a " * (n + 1), "b", own, gold, output={"label": own, "scores": scores})
        for n, (scores, own, gold) in enumerate(zip(outputs, labels, golds, strict=True))
    ]
    found = diagnose([make_run("a", {("xnli", "en"): records})], registry)
    bins = {own["bin"]: own for own in found.rows("calibration") if own["n"]}
    assert set(bins) == {5, 7}
    assert (bins[7]["n"], bins[7]["accuracy"]) == (2, 0.5)
    assert bins[7]["confidence"] == pytest.approx(0.8)
    # |1 - 0.55| / 3 + 2 |0.5 - 0.8| / 3
    assert bins[5]["ece"] == pytest.approx((0.45 + 2 * 0.3) / 3)
    counts = {(own["gold"], own["predicted"]): own["n"] for own in found.rows("confusion")}
    assert counts["neutral", "contradiction"] == 1
    assert len(counts) == 9


@pytest.mark.parametrize("attribute", ["qLen", "qLen/cLen", "language", "script"])
def test_buckets_add_up_to_the_whole(make_run: MakeRun, registry: Registry, attribute: str) -> None:
    english, hindi = _questions("0918273645" * 5), _questions("5" * 20)
    hindi[3] = question("4", 9, 0.5, tags={})
    run = make_run("a", {("xquad", "en"): english, ("xquad", "hi"): hindi})
    rows = _rows(diagnose([run], registry), "single", attribute, None)
    scores = [sum(own.scores.values()) / 2 for own in (*english, *hindi)]
    assert sum(own["n"] for own in rows) == 70
    assert sum(own["n"] * own["value"] for own in rows) == pytest.approx(sum(scores))


def test_attributes_with_too_few_values_raise(make_run: MakeRun, registry: Registry) -> None:
    broken = Feature(name="broken", title="t", compute=lambda items, context: ["a"], continuous=False)
    given: Any = SimpleNamespace(
        features=NamedTable("attribute", [("mine", "broken", broken)]), metrics=registry.metrics
    )
    run = make_run("a", {("xquad", "en"): _questions("909")})
    with pytest.raises(HarnessError, match="'broken' gave 1 values for 3 items"):
        diagnose([run], given)


def test_items_without_gold_and_constant_attributes_are_reported(
    make_run: MakeRun, registry: Registry
) -> None:
    bare = [replace(own, reference=None, scores={}) for own in _questions("909")]
    cells = {("xquad", "en"): _questions("909"), ("xquad", "hi"): bare}
    runs = [make_run("a", cells), make_run("b", cells)]
    for chosen in (runs[:1], runs):
        found = diagnose(chosen, registry)
        assert "xquad hi: no item has a gold answer." in found.notes
        assert "same value: BLEU_AQ" in " ".join(found.notes)
        assert _rows(found, "single", "aLen") == []


def test_data_alone(make_run: MakeRun, registry: Registry) -> None:
    run = make_run("a", {("xquad", "en"): _questions("9" * 40), ("xquad", "hi"): _questions("0" * 3)})
    found = diagnose([run], registry, DiagnosisOptions(), data_only=True)
    [row] = _rows(found, "data", "qLen")
    assert (row["n"], row["mean"], row["quartiles"]) == (40, 20.5, [10.75, 20.5, 30.25])
    assert len(row["histogram"]) == 20
    assert sum(own[2] for own in row["histogram"]) == 40
    [row] = _rows(found, "data", "qLen", "hi")
    assert row["histogram"] == [[1, 1, 1], [2, 2, 1], [3, 3, 1]]
    [row] = _rows(found, "data", "script", "hi")
    assert (row["mean"], row["histogram"]) == (None, [["Deva", 3]])
