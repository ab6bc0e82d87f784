from __future__ import annotations

import itertools
import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, strategies as st

from harness.analysis.items import BUCKET_NAMES, OTHER_BUCKET, assign, equal_count, frequent_values
from harness.data.features import Bucket
from harness.errors import DataError
from harness_diagnosis.catalog import printed_edges

finite = st.floats(-1e6, 1e6).map(lambda value: round(value, 1))


@given(st.lists(finite, min_size=1, max_size=60))
def test_every_value_lies_in_one_bucket_and_equal_ones_in_the_same(values: list[float]) -> None:
    found = np.array(values)
    buckets = equal_count(found)
    codes = assign(found, buckets)
    assert (codes >= 0).all()
    assert len(set(codes.tolist())) == len(buckets) <= 4
    assert [bucket.name for bucket in buckets] == list(BUCKET_NAMES[: len(buckets)])
    assert [bucket.low_closed for bucket in buckets] == [True, *[False] * (len(buckets) - 1)]
    assert (np.diff(codes[np.argsort(found)]) >= 0).all()


@given(st.permutations(range(40)))
def test_without_ties_all_buckets_are_equal(values: list[int]) -> None:
    found = np.array(values, dtype=np.float64)
    assert np.bincount(assign(found, equal_count(found))).tolist() == [10] * 4


def test_ties_go_before_equal_counts() -> None:
    # As in the paper: eLen 1 | 2 | (2, 4] | > 4, and eDen with three buckets.
    found = np.repeat([1.0, 2, 3, 4, 5, 9], [40, 30, 8, 7, 8, 7])
    assert [bucket.interval for bucket in equal_count(found)] == ["1", "(1, 2]", "(2, 4]", "(4, 9]"]
    assert [bucket.name for bucket in equal_count(np.repeat([0.0, 1.0], [90, 10]))] == ["XS", "S"]
    assert [bucket.interval for bucket in equal_count(np.ones(5))] == ["1"]
    assert equal_count(np.array([np.nan])) == ()


def test_values_without_number_lie_nowhere() -> None:
    found = np.array([1.0, np.nan, 2.0])
    assert assign(found, equal_count(found)).tolist() == [0, -1, 1]


def test_rare_names_are_other() -> None:
    values = ["b", "a", "b", None, "c", "a", "d"]
    buckets = frequent_values(values, 2)
    assert [bucket.name for bucket in buckets] == ["a", "b", OTHER_BUCKET]
    assert assign(values, buckets).tolist() == [1, 0, 1, -1, 2, 0, 2]
    assert assign(["z"], frequent_values(["a"])).tolist() == [-1]


def test_overlapping_intervals_raise() -> None:
    buckets = [Bucket(name="XS", low=0, high=2, low_closed=True), Bucket(name="S", low=1, high=3)]
    with pytest.raises(DataError, match=r"The bucket 'S' \(1, 3\] overlaps another one"):
        assign(np.array([1.5]), buckets)


@pytest.mark.parametrize("language", ["en", "zh", "hi", "el", "ru", "tr", "ar", "vi"])
@pytest.mark.parametrize("attribute", ["aLen", "qLen", "cLen", "BLEU_AQ", "BLEU_QC"])
def test_printed_edges_follow_each_other(language: str, attribute: str) -> None:
    buckets = printed_edges(attribute)("xquad", language)
    assert buckets is not None
    assert [bucket.name for bucket in buckets] == list(BUCKET_NAMES)
    for before, after in itertools.pairwise(buckets):
        assert before.high == after.low
    assert (assign(np.array([0.0, 1e9]), buckets) == [0, 3]).all()


def test_printed_edges_of_entities() -> None:
    buckets = printed_edges("eLen")("wikiann", "en")
    assert buckets is not None
    assert assign(np.array([1.0, 2, 3, 4, 5, 5000]), buckets).tolist() == [0, 1, 2, 2, 3, 3]
    assert printed_edges("eLen")("wikiann", "sw") is None
    assert printed_edges("tLen")("wikiann", "en") is None


def test_the_printed_context_edges_are_ours_on_the_real_questions(data_root: Path) -> None:
    """With tokens split at spaces the rule gives the edges that Table 25 prints for English contexts, to the token."""
    content = json.loads((data_root / "xquad" / "xquad.en.json").read_text(encoding="utf-8"))
    texts = [
        part["context"] for entry in content["data"] for part in entry["paragraphs"] for _ in part["qas"]
    ]
    lengths = np.array([len(text.split()) for text in texts], dtype=np.float64)
    assert len(lengths) == 1190
    shown = [bucket.interval for bucket in equal_count(lengths)]
    assert shown == ["[25, 91]", "(91, 111]", "(111, 156]", "(156, 509]"]
