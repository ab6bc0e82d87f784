"""Items that were not translated: the English text under another name."""

from __future__ import annotations

from collections.abc import Sequence

from tests.audit import bench
from tests.audit.conftest import Audit, remarks

Data = dict[str, Sequence[tuple[str, str]]]


def sentences(audit: Audit) -> list[str]:
    return list(map(str, bench.found_by(audit(), "not translated")))


def test_a_file_with_the_english_items_is_a_fault(audit: Audit, data: Data) -> None:
    data["test-de"] = remarks("en")
    assert sentences(audit) == [
        "mood [de]: expected items of the test split in their own language, found 40 of 40 with the text of the same "
        "item in en (items '1', '2', '3', ...)."
    ]


def test_a_few_english_items_are_noted(audit: Audit, data: Data) -> None:
    data["test-de"] = [*remarks("en")[:2], *remarks("de")[2:]]
    assert sentences(audit) == [
        "mood [de]: not translated: of the items of the test split 2 of 40 with the text of the same item in en "
        "(items '1', '2')."
    ]


def test_names_numbers_and_short_texts_may_be_equal(audit: Audit, data: Data) -> None:
    for code in ("en", "de"):
        data[f"test-{code}"] = [(f"Albert Einstein, Ulm {number}", str(number % 2)) for number in range(40)]
    assert sentences(audit) == []
