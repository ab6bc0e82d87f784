"""Items of long contexts: needles and words of a model's own length, the same draws in all languages."""

from __future__ import annotations

import json
import re
from collections import Counter
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest

from harness import DataError, MissingDataError
from harness_long_context import generation
from harness_long_context.generation import LENGTHS, NEEDLES, make_needles, needle_item, word_item, word_items
from harness_long_context.material import LanguageTexts, read_material, split_sentences
from harness_long_context.metrics import needle_is_right, words_are_right

TEXTS = Path(__file__).parent / "texts"
CODES = ("de", "en", "ru", "zh")
SENTENCES, WORDS = 8, 12
"""Of an item of the sample."""
SAMPLE = Path(str(files("harness_task_specs"))) / "sample" / "oneruler"


def material(code: str) -> LanguageTexts:
    return read_material(TEXTS, code)


def row(code: str, task: str, number: int = 0, seed: int = 0) -> dict[str, Any]:
    texts = material(code)
    return needle_item(texts, SENTENCES, make_needles(texts, task, number, seed), number)


@pytest.mark.parametrize("code", ["de", "en", "zh"])
def test_the_sample_is_what_the_command_makes_of_the_texts(code: str) -> None:
    texts = material(code)
    for task in NEEDLES:
        lines = (SAMPLE / f"niah_{task}" / f"{code}.jsonl").read_text(encoding="utf-8").splitlines()
        assert [json.loads(line) for line in lines] == [row(code, task, number) for number in range(3)]
    for task in generation.FREQUENCIES:
        lines = (SAMPLE / f"cwe_{task}" / f"{code}.jsonl").read_text(encoding="utf-8").splitlines()
        made = [word_item(texts, task, WORDS, LENGTHS["8k"], number, 0) for number in range(3)]
        assert [json.loads(line) for line in lines] == made


@pytest.mark.parametrize("task", NEEDLES)
def test_the_draws_are_the_same_in_all_languages(task: str) -> None:
    """Numbers, their order and their places in the text do not depend on the language."""
    shown = {}
    for code in CODES:
        needles = make_needles(material(code), task, 4, 7)
        numbers = [re.findall(r"\d{7}", sentence) for sentence in needles.sentences]
        shown[code] = (numbers, needles.depths, re.findall(r"\d{7}", needles.answer))
    assert len({str(value) for value in shown.values()}) == 1
    assert row("en", task, 4, 7) != row("en", task, 4, 8)
    assert row("en", task, 4) != row("en", task, 5)


@pytest.mark.parametrize(("task", "needles", "answers"), [
    ("single", 1, 1), ("multikey", 4, 1), ("multivalue", 4, 4), ("multiquery", 2, 2), ("none", 4, 0)
])  # fmt: skip
def test_a_context_has_its_needles_and_the_answer(task: str, needles: int, answers: int) -> None:
    for code in CODES:
        made = row(code, task, 2)
        gold = made["answers"][0]["text"]
        numbers = re.findall(r"\d{7}", made["context"])
        assert len(set(numbers)) == len(numbers) == needles
        asked = re.findall(r"\d{7}", gold)
        assert len(asked) == answers
        assert set(asked) <= set(numbers)
        assert needle_is_right(gold, gold, code)
        assert not re.search(r"\d{7}", made["question"])


def test_the_question_names_the_key_of_the_answer() -> None:
    made = row("en", "multikey", 1)
    key = re.search(r'"(\w+)"', made["question"])
    assert key is not None
    assert f'The secret number of "{key[1]}" is {made["answers"][0]["text"]}.' in made["context"]
    absent = re.search(r'"(\w+)"', row("en", "none", 1)["question"])
    assert absent is not None
    assert f'of "{absent[1]}"' not in row("en", "none", 1)["context"]


def test_chinese_sentences_have_no_spaces_between_them() -> None:
    assert "。“" in row("zh", "single")["context"]
    assert (
        ". The secret" in row("en", "single")["context"] or "! The secret" in row("en", "single")["context"]
    )


def test_nouns_with_one_translation_for_two_are_no_keys() -> None:
    """German has one word for road and street."""
    assert {"road", "street"}.isdisjoint(material("en").nouns)
    assert len(material("de").nouns) == 10


@pytest.mark.parametrize(
    ("text", "sentences"),
    [
        ("One.  Two!\nThree", ["One.", "Two!", "Three"]),
        ("It costs 1.50 now. “Yes.” She left.", ["It costs 1.50 now.", "“Yes.”", "She left."]),
        ("一。“二！”三", ["一。", "“二！”", "三"]),
        ("एक। दो", ["एक।", "दो"]),
    ],
)
def test_sentences_end_at_the_marks_of_all_scripts(text: str, sentences: list[str]) -> None:
    assert split_sentences(text) == sentences


def pieces(text: str) -> int:
    return len(text.split())


@pytest.mark.parametrize("code", ["de", "en", "ru"])
def test_prompts_fill_their_length_and_not_more(code: str) -> None:
    texts = material(code)
    made = {task: [make_needles(texts, task, number, 0) for number in range(4)] for task in NEEDLES}
    needles_of_all = [needles for items in made.values() for needles in items]
    sizes = generation.needle_sizes(texts, needles_of_all, {"short": 900, "long": 2000}, pieces)
    for name, length in (("short", 900), ("long", 2000)):
        counts = []
        for task in NEEDLES:
            for number, needles in enumerate(made[task]):
                item = needle_item(texts, sizes[name], needles, number)
                counts.append(pieces(item["context"] + item["question"]))
        longest = max(map(pieces, texts.sentences))
        assert length - generation.ROOM - longest - 5 <= max(counts) <= length - generation.ROOM + 5
    assert sizes["short"] < sizes["long"]


def test_a_short_book_is_repeated() -> None:
    texts = material("en")
    item = needle_item(texts, 45, make_needles(texts, "single", 0, 0), 0)
    assert item["context"].count("The market by the harbour") == 3


@pytest.mark.parametrize(("task", "length", "frequent", "rare"), [
    ("easy", 8_000, 10, 1), ("hard", 8_000, 10, 5), ("easy", 32_000, 30, 3), ("hard", 32_000, 20, 10)
])  # fmt: skip
def test_ten_words_are_more_frequent(task: str, length: int, frequent: int, rare: int) -> None:
    for item in word_items(material("en"), task, length, range(2), 0, pieces):
        counts = Counter(re.findall(r"\d+\. (\w+)", item["context"]))
        gold = item["answers"][0]["text"]
        assert {word for word, count in counts.items() if count == frequent} == set(gold.split(", "))
        assert set(counts.values()) == {frequent, rare}
        assert len(counts) == 20  # neither articles nor words with digits
        assert words_are_right(gold, gold, "en")
        assert "seven7" not in counts


def test_lists_of_words_are_cut_to_the_length() -> None:
    def count(text: str) -> int:
        return 30 * len(text.split())

    items = list(word_items(material("en"), "easy", 8_000, range(5), 0, count))
    counts = [count(item["context"] + item["question"]) for item in items]
    assert max(counts) <= 8_000 - generation.ROOM
    assert min(counts) > 7_000


def test_a_list_that_the_authors_show_twice_is_shown_once() -> None:
    texts = material("en")
    twice = LanguageTexts(
        language="en",
        sentences=texts.sentences,
        nouns=texts.nouns,
        needle_prompt=texts.needle_prompt,
        word_prompt="Here:\n{context}\n\n" + texts.word_prompt,
        words=texts.words,
    )
    [item] = word_items(twice, "easy", 8_000, range(1), 0, pieces)
    assert item["context"].count(" 7. ") == 1


def test_missing_texts_are_named(tmp_path: Path) -> None:
    with pytest.raises(MissingDataError, match="no book below"):
        read_material(tmp_path, "en")
    (tmp_path / "books" / "en").mkdir(parents=True)
    (tmp_path / "books" / "en" / "a.txt").write_text("One. Two.", encoding="utf-8")
    with pytest.raises(MissingDataError, match="is missing"):
        read_material(tmp_path, "en")
    (tmp_path / "vocab").mkdir()
    (tmp_path / generation_nouns()).write_text("en\napple\n", encoding="utf-8")
    (tmp_path / "prompt" / "en").mkdir(parents=True)
    (tmp_path / "prompt" / "en" / "niah.txt").write_text("{", encoding="utf-8")
    with pytest.raises(DataError, match="no JSON"):
        read_material(tmp_path, "en")


def generation_nouns() -> str:
    from harness_long_context.material import NOUNS

    return NOUNS
