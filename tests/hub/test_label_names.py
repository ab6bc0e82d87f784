"""Integers of a ClassLabel follow the names in the features, and a map that contradicts them is an error."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import permutations
from typing import Any

import pytest

pytest.importorskip("datasets")

from datasets import ClassLabel, List, Value
from hypothesis import given, settings, strategies as st

from harness.data.resolve import HubFiles
from harness.errors import DataError
from harness_hub.dataset import class_names, label_map

NLI = ("entailment", "neutral", "contradiction")


def labels_of(
    given_map: Mapping[str, str], names: Sequence[str], column: str = "label", **fields: Any
) -> Mapping[str, str]:
    hub = HubFiles(path="org/data", split="test", label_map=given_map, **fields)
    return label_map(hub, {column: ClassLabel(names=list(names))})


@given(order=st.permutations(NLI))
@settings(max_examples=6, deadline=None)
def test_integers_without_a_map_are_their_names(order: list[str]) -> None:
    assert labels_of({}, order) == {"0": order[0], "1": order[1], "2": order[2]}


@pytest.mark.parametrize("order", list(permutations(NLI)))
def test_a_map_of_integers_agrees_with_the_names_or_is_an_error(order: tuple[str, ...]) -> None:
    given_map = dict(zip("012", NLI, strict=True))
    if order == NLI:
        assert labels_of(given_map, order) == given_map
        return
    with pytest.raises(DataError) as caught:
        labels_of(given_map, order)
    for names in (NLI, order):
        shown = ", ".join(f"{number}: {name}" for number, name in enumerate(names))
        assert shown in str(caught.value)


@pytest.mark.parametrize(
    ("given_map", "names", "expected"),
    [
        # the names are numbers, which the map begins at 1
        ({"1": "A", "2": "B", "3": "C"}, ("1", "2", "3"), {"0": "A", "1": "B", "2": "C", "3": "C"}),
        # the map is one of names
        ({"NEG": "negative", "POS": "positive"}, ("NEG", "POS"), {"0": "negative", "1": "positive"}),
        # names that are no labels say nothing of the order
        ({"0": "negative", "1": "positive"}, ("NEG", "POS"), {"0": "negative", "1": "positive"}),
        # another spelling of the same label
        ({"0": "entailment"}, ("Entailment",), {"0": "entailment"}),
        # integers that the map does not have follow the names
        ({"0": "a"}, ("a", "b"), {"0": "a", "1": "b"}),
        # numbers that are their own names, as in PAWS-X
        ({}, ("0", "1"), {}),
        ({"0": "a", "1": "b"}, (), {"0": "a", "1": "b"}),
    ],
)
def test_the_map_of_values(given_map: dict[str, str], names: Sequence[str], expected: dict[str, str]) -> None:
    found = (
        labels_of(given_map, names)
        if names
        else label_map(HubFiles(path="a/b", split="t", label_map=given_map), {})
    )
    assert {raw: label for raw, label in found.items() if raw in expected} == expected


def test_the_column_of_the_label_is_the_one_that_the_spec_names() -> None:
    swapped = {"0": "B", "1": "A"}
    assert labels_of(swapped, ("A", "B"), "genre") == swapped
    with pytest.raises(DataError):
        labels_of(swapped, ("A", "B"), "gold", columns="text=utt,label=gold")
    tags = List(ClassLabel(names=["O", "B-PER"]))
    hub = HubFiles(path="a/b", split="t", columns="tags=ner_tags", label_map={"0": "B-PER", "1": "O"})
    with pytest.raises(DataError):
        label_map(hub, {"ner_tags": tags})
    assert class_names([ClassLabel(names=["x"])]) == ["x"]
    assert class_names(Value("int64")) == ()
