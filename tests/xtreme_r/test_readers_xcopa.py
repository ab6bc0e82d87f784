from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from harness.data.readers.structured import JSONL
from harness.errors import DataError, UsageError
from harness_xtreme_r.readers.xcopa_aligned import XCOPA_ALIGNED
from tests.builders import released_data

WRONG = {"sw": (37, 6), "id": (4, 5), "it": (4, 5), "ht": (0, 0), "ta": (0, 0)}
"""Items of test and validation whose published question is not the Estonian one's."""


def item(index: int, question: str = "cause", label: Any = 0, premise: str = "p") -> dict[str, Any]:
    named = {"premise": premise, "choice1": "a", "choice2": "b", "question": question}
    return {**named, "label": label, "idx": index, "changed": False}


@pytest.fixture
def saved(tmp_path: Path) -> Callable[..., list[Path]]:
    def save(*files: list[Any]) -> list[Path]:
        paths = [tmp_path / name for name in ("test.sw.jsonl", "test.et.jsonl", "third.jsonl")[: len(files)]]
        for path, records in zip(paths, files, strict=True):
            lines = [record if isinstance(record, str) else json.dumps(record) for record in records]
            path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
        return paths

    return save


def test_questions_come_from_the_aligned_file_and_the_rest_from_the_first(
    saved: Callable[..., list[Path]],
) -> None:
    own = [item(2, "effect", 1, "two"), item(0, "cause", 0, "zero")]
    aligned = [item(0, "cause", 0, "null"), item(2, "cause", 1, "kaks")]
    paths = saved(own, aligned)
    rows = list(XCOPA_ALIGNED.read(paths, {}))
    assert [row.fields for row in rows] == [item(2, "cause", 1, "two"), item(0, "cause", 0, "zero")]
    assert [row.where for row in rows] == [f"{paths[0]}:1", f"{paths[0]}:2"]


def test_columns_name_the_items_as_the_released_file_does(saved: Callable[..., list[Path]]) -> None:
    paths = saved([item(4, "effect", 1)], [item(4, "cause", 1)])
    options = {"columns": "id=idx,question=question,label=label"}
    assert [row.fields for row in XCOPA_ALIGNED.read(paths, options)] == [
        {"id": 4, "question": "cause", "label": 1}
    ]


@pytest.mark.parametrize(
    ("own", "aligned", "message"),
    [
        ([item(0)], [item(0, label=1)], r"sw.jsonl:1: expected the label 1 of .*et.jsonl:1, found 0"),
        ([item(0, label=None)], [item(0)], "expected the label 0 of .* found None"),
        ([item(0), item(1)], [item(0)], r"et.jsonl: expected the item with 'idx' 1 of .*sw.jsonl:2"),
        (
            [item(0)],
            [item(3), item(0), item(4)],
            r"sw.jsonl: expected the item with 'idx' 3 .*\(2 are",
        ),
        ([item(0), item(0)], [item(0)], r"sw.jsonl:2: the 'idx' 0 was already used at .*sw.jsonl:1"),
        ([{"premise": "p"}], [item(0)], r"sw.jsonl:1: expected a number 'idx', found None among 'premise'"),
        ([item(0)], [item(0, "why")], r"et.jsonl:1: expected the 'question' cause or effect, found 'why'"),
        ([item(0), '{"idx":'], [item(0)], r"sw.jsonl:2: expected JSON"),
    ],
)
def test_rejects_files_that_are_not_aligned(
    own: list[Any], aligned: list[Any], message: str, saved: Callable[..., list[Path]]
) -> None:
    with pytest.raises(DataError, match=message):
        list(XCOPA_ALIGNED.read(saved(own, aligned), {}))


@pytest.mark.parametrize("count", [1, 3])
def test_two_files_are_needed(count: int, saved: Callable[..., list[Path]]) -> None:
    with pytest.raises(UsageError, match=f"'xcopa_aligned'.* found {count}"):
        list(XCOPA_ALIGNED.read(saved(*[[item(0)]] * count), {}))


@pytest.mark.parametrize("language", WRONG)
def test_published_questions_that_are_wrong(language: str) -> None:
    root = released_data()
    folder = root / "xcopa" / "data"
    found = []
    for split in ("test", "val"):
        own, aligned = (folder / code / f"{split}.{code}.jsonl" for code in (language, "et"))
        released = list(JSONL.read([own], {}))
        repaired = list(XCOPA_ALIGNED.read([own, aligned], {}))
        assert [row.line for row in repaired] == [row.line for row in released]
        found.append(
            sum(
                old.fields["question"] != new.fields["question"]
                for old, new in zip(released, repaired, strict=True)
            )
        )
    assert tuple(found) == WRONG[language]
