from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from harness.data.records import LabelledWords, Row
from harness.errors import DataError
from harness.kinds.kind import ReadContext, read_examples
from harness.kinds.tagging import WORD_LABELLING as KIND
from harness.running.session import open_session

CONTEXT = ReadContext(owner="mine", language="hi", split="test", labels=("Acc", "Nom"), cluster="source")


def read(*fields: dict[str, Any]) -> Sequence[LabelledWords]:
    rows = [
        Row(fields={"source": "s", **own}, path="f.conllu", line=n) for n, own in enumerate(fields, start=1)
    ]
    return read_examples(KIND, rows, CONTEXT)


def test_the_words_with_a_label_are_the_targets() -> None:
    [example] = read(
        {
            "id": "s1-org2",
            "tokens": ["राम", "ने", "आम", "खाया"],
            "labels": ["Acc", None, "Nom", None],
            "group": "org2",
            "meta": {"variant": "org2"},
        }
    )
    assert example == LabelledWords(
        id="s1-org2",
        cluster="s",
        group="org2",
        meta={"variant": "org2"},
        tokens=("राम", "ने", "आम", "खाया"),
        targets=(0, 2),
        labels=("Acc", "Nom"),
    )
    assert KIND.reference(example) == ["Acc", "Nom"]


def test_an_unlabelled_file_says_which_words_are_asked_for() -> None:
    [example] = read({"tokens": ["a", "b"], "targets": [1]})
    assert (example.id, example.targets, example.labels) == ("1", (1,), None)
    assert KIND.reference(example) is None


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"tokens": [], "labels": []}, r"f\.conllu:1: expected a sentence with tokens, found none"),
        ({"tokens": ["a", "b"], "labels": ["Nom"]}, "the sentence has 2 tokens and 1 labels"),
        ({"tokens": ["a"], "labels": ["Nomm"]}, "'Nomm'.* Acc, Nom .*'Nom'?"),
        ({"tokens": ["a"]}, "expected 'labels', or 'targets' with the positions .*, found None"),
        ({"tokens": ["a"], "targets": ["0"]}, r"expected 'labels', or 'targets' .*, found \['0'\]"),
        ({"tokens": ["a"], "targets": [1]}, "expected 'targets' rising from 0 to 0, found 1"),
        ({"tokens": ["a", "b"], "targets": [1, 0]}, "expected 'targets' rising from 0 to 1, found 1, 0"),
        (
            {"tokens": ["a"], "labels": ["Nom"], "meta": "org1"},
            "expected the field 'meta' as attributes by name",
        ),
    ],
)
def test_faults_name_file_and_line(fields: dict[str, Any], message: str) -> None:
    with pytest.raises(DataError, match=message):
        read(fields)


@pytest.mark.parametrize(
    ("kind", "fields"),
    [
        ("sequence_classification", {"sentence": "a", "label": "Nom"}),
        ("token_tagging", {"tokens": ["a"], "tags": ["Nom"]}),
        ("word_labelling", {"tokens": ["a"], "labels": ["Nom"]}),
    ],
)
def test_kinds_take_the_group_and_the_attributes_of_a_row(kind: str, fields: dict[str, Any]) -> None:
    row = Row(fields={**fields, "group": "org1", "meta": {"attractors": 2}}, path="f", line=1)
    context = ReadContext(owner="m", language="hi", split="test", inputs=("sentence",), labels=("Acc", "Nom"))
    [example] = read_examples(open_session().registry.kinds.get(kind), [row], context)
    assert (example.group, dict(example.meta)) == ("org1", {"attractors": "2"})
