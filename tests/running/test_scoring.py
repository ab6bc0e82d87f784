"""A cell that is scored chunk by chunk has the scores that it has as a whole."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings, strategies as st

from harness.errors import HarnessError
from harness.metrics.metric import GroupScore, Metric, MetricContext, MetricResult
from harness.metrics.scoring import CellScorer, CellScores, ScoreInput, score_cell
from harness.running.session import open_session
from harness.statistics import ClusterCodes, clustered_mean, count_interval, seed_of

METRICS = [
    metric
    for metric in open_session().registry.metrics
    if (metric.missing is None or metric.missing() is None) and "judgement" not in metric.kinds
]
"""All but those of judgements, whose items come in pairs; `tests/judge` has these."""
LABELS = ("a", "b", "c")
TAGS = ("O", "B-PER", "I-PER", "I-LOC", "NOUN", "SCONJ")
WORDS = st.lists(st.sampled_from(["the", "cat", "sat", "down", "die", "Katze"]), max_size=4).map(" ".join)
NUMBERS = st.floats(min_value=-9, max_value=-0.1)


@st.composite
def _ranked(draw: st.DrawFn) -> tuple[Any, Any]:
    scores = draw(st.lists(NUMBERS, min_size=3, max_size=3))
    lengths = st.lists(st.integers(1, 9), min_size=3, max_size=3)
    prediction = {
        "label": LABELS[scores.index(max(scores))],
        "scores": scores,
        "tokens": draw(lengths),
        "characters": draw(lengths),
        "bytes": draw(lengths),
        "unconditional": draw(st.lists(NUMBERS, min_size=3, max_size=3)),
    }
    return prediction, draw(st.sampled_from(LABELS))


@st.composite
def _tagged(draw: st.DrawFn) -> tuple[Any, Any]:
    tag = st.sampled_from(TAGS)
    size = draw(st.integers(0, 5))
    side = st.lists(tag, min_size=size, max_size=size)
    return draw(side), draw(side)


@st.composite
def _queried(draw: st.DrawFn) -> tuple[Any, Any]:
    ids = st.lists(st.sampled_from([f"c{number}" for number in range(30)]), min_size=1, unique=True)
    targets = draw(ids)
    languages = draw(st.lists(st.sampled_from(["de", "sw"]), min_size=len(targets), max_size=len(targets)))
    ranking = draw(ids)
    prediction = {"candidates": ranking[:20], "further": ranking[20:]}
    return prediction, {"targets": targets, "languages": languages}


_SPAN = st.tuples(st.integers(0, 5), st.integers(6, 9), st.sampled_from(["PER", "LOC"])).map(list)
_MARKS = st.lists(_SPAN, max_size=4, unique_by=tuple)
PAIRS: dict[str, st.SearchStrategy[tuple[Any, Any]]] = {
    "sequence_classification": _ranked(),
    "multiple_choice": _ranked(),
    "form_preference": _ranked().map(lambda pair: ({**pair[0], "forms": list(LABELS)}, pair[1])),
    "numeric_answer": st.tuples(
        st.builds(lambda value: {"text": value, "value": value}, st.sampled_from(["3", "2.5", "1/3", None])),
        st.sampled_from(["3", "2.5"]),
    ),
    **dict.fromkeys(
        ("translation", "summary"),
        st.tuples(
            st.builds(lambda text, copied: {"text": text, "copied": copied}, WORDS, st.booleans()),
            st.lists(WORDS.filter(bool), min_size=1, max_size=1),
        ),
    ),
    "span_extraction": st.tuples(
        st.one_of(st.none(), st.builds(lambda text: {"text": text}, WORDS)),
        st.lists(WORDS, min_size=1, max_size=3),
    ),
    "token_tagging": _tagged(),
    "word_labelling": _tagged(),
    "text_marking": st.tuples(st.builds(lambda spans: {"spans": spans}, _MARKS), _MARKS),
    "bitext_retrieval": st.tuples(
        st.builds(lambda name: {"candidate": name}, st.sampled_from("abc")), st.sampled_from("abc")
    ),
    "ranked_retrieval": _queried(),
    "multilabel_classification": st.tuples(
        st.builds(lambda labels: {"labels": sorted(labels)}, st.sets(st.sampled_from(LABELS))),
        st.builds(
            lambda labels: {"labels": sorted(labels), "annotated": list(LABELS)},
            st.sets(st.sampled_from(LABELS)),
        ),
    ),
    "text_pair_similarity": st.tuples(
        st.builds(lambda grade: {"grade": grade}, st.sampled_from([0.0, 0.25, 1.0])),
        st.sampled_from([0.0, 0.5, 1.0]),
    ),
    "instruction_following": st.tuples(
        st.builds(lambda text: {"answers": [text]}, WORDS),
        st.just(
            [{"prompt": "Write.", "instructions": [["punctuation:no_comma", {}], ["startend:quotation", {}]]}]
        ),
    ),
}
CONTEXT = MetricContext(language="de", labels=LABELS)
TAGGED = replace(CONTEXT, labels=TAGS)


def _inputs(pairs: Sequence[tuple[Any, Any]], clusters: Sequence[str | None]) -> list[ScoreInput]:
    return [
        ScoreInput(id=str(number), prediction=prediction, reference=reference, cluster=cluster)
        for number, ((prediction, reference), cluster) in enumerate(zip(pairs, clusters, strict=True))
    ]


def _by_chunks(
    metrics: Sequence[Metric], items: Sequence[ScoreInput], size: int, context: MetricContext = CONTEXT
) -> tuple[CellScores, dict[str, list[Any]]]:
    scorer = CellScorer(metrics, context)
    contributions: dict[str, list[Any]] = {}
    for start in range(0, len(items), size):
        for name, values in scorer.add(items[start : start + size]).items():
            contributions.setdefault(name, []).extend(values)
    return scorer.finish(), contributions


def test_there_are_examples_for_the_kinds_of_all_metrics() -> None:
    assert {kind for metric in METRICS for kind in metric.kinds} <= set(PAIRS)
    of_cases = {"pass_rate", "case_error", "case_floor", "corrected_error", "example_error"}
    of_instructions = {
        f"{subject}_level_{manner}_acc" for subject in ("prompt", "inst") for manner in ("strict", "loose")
    } | {"ifeval_mean_acc"}
    assert {metric.name for metric in METRICS if not metric.by_item} == {
        "one_target_map_at_20",
        "spearman",
    } | of_cases | of_instructions


@pytest.mark.thorough
@pytest.mark.parametrize("metric", METRICS, ids=lambda metric: metric.name)
@settings(max_examples=25)
@given(data=st.data())
def test_the_size_of_chunks_changes_nothing(metric: Metric, data: st.DataObject) -> None:
    kind = data.draw(st.sampled_from(sorted(metric.kinds)))
    pairs = data.draw(st.lists(PAIRS[kind], min_size=1, max_size=12))
    cluster = st.one_of(st.none(), st.sampled_from("xyz"))
    clusters = data.draw(st.lists(cluster, min_size=len(pairs), max_size=len(pairs)))
    items = _inputs(pairs, clusters)
    context = TAGGED if kind in {"token_tagging", "word_labelling"} else CONTEXT
    whole = replace(context, clusters=clusters, groups=[None] * len(pairs), tags=[{}] * len(pairs))
    result = metric.compute([pair[0] for pair in pairs], [pair[1] for pair in pairs], whole)
    scores, contributions = _by_chunks([metric], items, data.draw(st.integers(1, 12)), context)
    own = scores.metrics[metric.name]
    assert (own.value, own.groups) == (result.value, result.groups)
    rows = result.counts if result.items is None else result.items
    assert rows is not None
    assert {**contributions, **scores.items} == {metric.name: rows.tolist()}
    assert (metric.name in scores.items) == (not metric.by_item)
    if result.bounds is not None:
        for name in ("se", "low", "high", "method"):
            assert getattr(own.interval, name) == getattr(result.bounds, name)
    elif result.items is not None:
        assert own.interval == clustered_mean(result.items, clusters)
    else:
        assert result.counts is not None
        assert metric.from_counts is not None
        codes = _codes(clusters)
        seed = seed_of("", "de", metric.name)
        assert own.interval == count_interval(result.counts, codes, metric.from_counts, seed=seed)
    assert score_cell([metric], items, context) == CellScores(
        metrics=scores.metrics, items={metric.name: rows.tolist()}
    )


def _codes(clusters: Sequence[str | None]) -> npt.NDArray[np.int64]:
    numbered = ClusterCodes()
    numbered.add(clusters)
    return numbered.codes()


def _tagging(number: int, **fields: Any) -> list[ScoreInput]:
    tags = [["B-PER", "O"], ["O", "B-LOC"], ["B-PER", "I-PER"]]
    return [
        ScoreInput(id=str(index), prediction=tags[index * 5 % 7 % 3], reference=tags[index % 3], **fields)
        for index in range(number)
    ]


def test_a_set_level_metric_gets_a_bootstrap_interval_whose_seed_is_kept() -> None:
    [metric] = [metric for metric in METRICS if metric.name == "chunk_f1"]
    items = _tagging(60)
    plain = score_cell([metric], items, CONTEXT, task="ner").metrics["chunk_f1"].to_json()
    assert plain["ci"][0] < plain["value"] < plain["ci"][1]
    assert plain["se"] > 0
    assert (plain["ci_method"], plain["clusters"], plain["draws"]) == ("bootstrap", 60, 1_000)
    assert plain["seed"] == seed_of("ner", "de", "chunk_f1")
    other = score_cell([metric], items, CONTEXT, task="pos").metrics["chunk_f1"].to_json()
    assert (other["value"], other["seed"] != plain["seed"]) == (plain["value"], True)
    # The items of five clusters of twelve go together: other draws, and another method.
    clustered = [replace(item, cluster=str(index // 12)) for index, item in enumerate(items)]
    found = score_cell([metric], clustered, CONTEXT, task="ner").metrics["chunk_f1"].to_json()
    assert (found["ci_method"], found["clusters"]) == ("cluster bootstrap", 5)
    whole = score_cell([metric], _tagging(60, cluster="c"), CONTEXT).metrics["chunk_f1"].to_json()
    assert {name: whole[name] for name in ("se", "ci", "ci_method")} == {
        "se": None,
        "ci": None,
        "ci_method": "one cluster",
    }


def test_counts_are_kept_as_four_bytes_each() -> None:
    [metric] = [metric for metric in METRICS if metric.name == "chunk_f1"]
    scorer = CellScorer([metric], CONTEXT)
    for _ in range(3):
        scorer.add(_tagging(60))
    assert sum(part.nbytes for part in scorer._rows["chunk_f1"]) == 180 * 3 * 4


@given(st.lists(st.one_of(st.none(), st.text(max_size=2)), max_size=30), st.integers(1, 7))
def test_clusters_are_numbered_by_first_appearance(clusters: list[str | None], size: int) -> None:
    numbered = ClusterCodes()
    for start in range(0, len(clusters), size):
        numbered.add(clusters[start : start + size])
    codes: dict[object, int] = {}
    keys = [("alone", index) if key is None else key for index, key in enumerate(clusters)]
    assert numbered.codes().tolist() == [codes.setdefault(key, len(codes)) for key in keys]


# What metrics of others may do --------------------------------------------------------------------------


def _metric(compute: Any, **fields: Any) -> Metric:
    given = {"kinds": frozenset({"sequence_classification"}), "description": "d", "source": "s"}
    return Metric(name="own", compute=compute, **{**given, **fields})


def _relative(predictions: Sequence[Any], references: Sequence[Any], context: MetricContext) -> MetricResult:
    """Give each item the share of the items that are not longer: it depends on all of them."""
    lengths = np.array([len(prediction) for prediction in predictions])
    items = np.array([float((lengths <= own).mean()) for own in lengths])
    return MetricResult(value=float(items.mean()), items=items)


ITEMS = [ScoreInput(id=f"i{number}", prediction="x" * number, reference="x") for number in range(1, 8)]


def test_a_metric_that_says_nothing_of_itself_gets_all_predictions_at_once() -> None:
    whole = _relative([item.prediction for item in ITEMS], ["x"] * 7, CONTEXT)
    scores, contributions = _by_chunks([_metric(_relative)], ITEMS, 2)
    assert contributions == {}
    assert whole.items is not None
    assert scores.items == {"own": whole.items.tolist()}
    assert scores.metrics["own"].value == whole.value
    # Declared wrongly it would get another value, which the test of all metrics above is there to find.
    assert _by_chunks([_metric(_relative, by_item=True)], ITEMS, 2)[0].metrics["own"].value != whole.value


GROUPED = {"token_accuracy", "chunk_f1", "weighted_f1", "label_accuracy"}


@settings(max_examples=25)
@given(
    size=st.integers(1, 9),
    rows=st.lists(st.tuples(_tagged(), st.sampled_from([None, "x", "y"])), min_size=1, max_size=12),
)
def test_groups_are_scored_by_themselves(size: int, rows: Sequence[tuple[Any, str | None]]) -> None:
    """The score of a group is what its items alone get, of means of items and of counts, however they are cut."""
    metrics = [metric for metric in METRICS if metric.name in GROUPED]
    assert len(metrics) == len(GROUPED)
    plain = _inputs([pair for pair, _ in rows], [None] * len(rows))
    items = [replace(item, group=group) for item, (_, group) in zip(plain, rows, strict=True)]
    scorer = CellScorer(metrics, TAGGED)
    for start in range(0, len(items), size):
        scorer.add(items[start : start + size])
    found = scorer.finish().metrics
    names = {group for _, group in rows} - {None}
    for metric in metrics:
        assert found[metric.name].groups.keys() == names
        for name in names:
            own = [replace(item, group=None) for item in items if item.group == name]
            alone = score_cell([metric], own, TAGGED).metrics[metric.name]
            score = found[metric.name].groups[str(name)]
            assert score.n == len(own)
            assert score.value == pytest.approx(alone.value)


@pytest.mark.parametrize("size", [1, 2, 5])
def test_repeated_answers_reach_metrics_over_whole_cells(size: int) -> None:
    """Each answer to an item is an item of such a metric, next to metrics that take items one by one."""
    by_name = {metric.name: metric for metric in METRICS if metric.name in {"accuracy", "macro_f1"}}
    metrics = [replace(metric, by_item=name == "accuracy") for name, metric in by_name.items()]
    answers = ["aab", "bbc", "cab", "aaa", "cbb"]
    gold = "abcaa"
    repeated = [
        ScoreInput(
            id=labels, prediction={"repeats": [{"label": label} for label in labels]}, reference=reference
        )
        for labels, reference in zip(answers, gold, strict=True)
    ]
    flat = [
        ScoreInput(id=f"{labels} {number}", prediction=label, reference=reference)
        for labels, reference in zip(answers, gold, strict=True)
        for number, label in enumerate(labels)
    ]
    scores = _by_chunks(metrics, repeated, size)[0].metrics
    expected = score_cell(metrics, flat, CONTEXT).metrics
    assert {name: scores[name].value for name in expected} == pytest.approx(
        {name: score.value for name, score in expected.items()}
    )
    assert scores["pass@3"].value == pytest.approx(4 / 5)


def test_predictions_are_kept_only_for_such_metrics() -> None:
    for by_item, count in ((True, 0), (False, 7)):
        scorer = CellScorer([_metric(_relative, by_item=by_item)], CONTEXT)
        scorer.add(ITEMS)
        assert len(scorer._packed) == count
    assert json.loads(scorer._packed[2]) == ["xxx", "x", None, None, {}]


@pytest.mark.parametrize(
    ("result", "reason"),
    [
        (MetricResult(value=0.5), "it gives neither items nor counts with 'from_counts'"),
        (MetricResult(value=0.5, counts=np.ones((7, 2))), "it gives neither items nor counts"),
        (MetricResult(value=0.5, items=np.ones(7)), r"its value is 0\.5, and that of its items 1"),
        (
            MetricResult(value=1.0, items=np.ones(7), groups={"de": GroupScore(value=1.0, n=7)}),
            "it gives groups",
        ),
    ],
)
def test_what_cannot_be_scored_by_chunks_is_rejected(result: MetricResult, reason: str) -> None:
    metric = _metric(lambda *_: result, by_item=True)
    with pytest.raises(HarnessError, match=rf"'own' is declared with by_item=True, but {reason}"):
        CellScorer([metric], CONTEXT).add(ITEMS)
    assert score_cell([replace(metric, by_item=False)], ITEMS, CONTEXT).metrics["own"].value == result.value


def test_an_error_in_a_later_chunk_names_the_item_that_it_counts_from() -> None:
    [accuracy] = [metric for metric in METRICS if metric.name == "accuracy"]
    good = [ScoreInput(id=f"i{number}", prediction="a", reference="a") for number in range(4)]
    bad = replace(good[3], prediction=3)
    with pytest.raises(HarnessError, match=r"cannot score these predictions: Item 3: .* \(int\)\.$"):
        score_cell([accuracy], [*good[:3], bad], CONTEXT)
    scorer = CellScorer([accuracy], CONTEXT)
    scorer.add(good[:2])
    with pytest.raises(HarnessError, match=r"Item 1: .* \(int\) \(counted from 0 at the item 'i2'\)\.$"):
        scorer.add([good[2], bad])


def test_unlabelled_items_are_not_scored() -> None:
    unlabelled = [replace(item, reference=None) for item in ITEMS]
    assert score_cell(METRICS, unlabelled, CONTEXT) == CellScores(metrics={})
    assert CellScorer(METRICS, CONTEXT).finish() == CellScores(metrics={})
