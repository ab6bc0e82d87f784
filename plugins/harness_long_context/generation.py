"""Items of long contexts: the draws are the same in all languages, and the text fills a number of pieces."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import chain, cycle, islice
from random import Random
from typing import Any, Final

from harness_long_context.material import STOPS, UNSPACED, LanguageTexts
from harness_long_context.metrics import SEPARATOR

LENGTHS: Final = {"8k": 8_000, "32k": 32_000, "64k": 64_000, "128k": 128_000}
"""Pieces of a prompt and its answer, by name."""
ROOM: Final = 512
"""Pieces of a prompt that are left for the answer and a chat template."""
NEEDLES: Final = {
    "single": (1, 1, 1),
    "multikey": (4, 1, 1),
    "multivalue": (1, 4, 1),
    "multiquery": (2, 1, 2),
    "none": (4, 1, 0),
}
"""Numbers of keys, of values per key, and of keys that are asked for, by task; `none` asks for a further key."""
FREQUENCIES: Final = {"easy": (30, 3), "hard": (20, 10)}
"""How often the ten frequent words and all others occur, by task."""
SHORT_FREQUENCIES: Final = {"easy": (10, 1), "hard": (10, 5)}
"""The same up to 8,000 pieces."""
FREQUENT: Final = 10
DEPTHS: Final = tuple(round(100 * step / 39) for step in range(40))
"""Where needles lie, in percent of the sentences."""

Count = Callable[[str], int]
"""From a text to its pieces."""
Item = dict[str, Any]
"""A row as the spec reads it: id, context, question and answers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Needles:
    """The needles of one item in one language."""

    sentences: tuple[str, ...]
    """Keys with their values, in the order of the text."""
    depths: tuple[int, ...]
    """The place of each, in percent of the sentences."""
    question: str
    """The authors' question with the form of the answer."""
    answer: str


def make_needles(material: LanguageTexts, task: str, number: int, seed: int) -> Needles:
    """Return the needles of an item: keys, values, places and question are drawn by seed, task and number alone."""
    random = Random(f"{seed} {task} {number}")  # noqa: S311
    key_count, value_count, query_count = NEEDLES[task]
    nouns = random.sample(range(len(material.nouns)), key_count + (query_count == 0))
    keys = [key for key in nouns[:key_count] for _ in range(value_count)]
    pairs = list(zip(keys, random.sample(range(10**6, 10**7), len(keys)), strict=True))
    queries = random.sample(nouns[:key_count], query_count) or nouns[key_count:]
    answers = [str(value) for query in queries for key, value in pairs if key == query]
    random.shuffle(pairs)
    prompt = material.needle_prompt
    sentences = (
        prompt["needle_numbers"].format(key=material.nouns[key], value=value).rstrip() for key, value in pairs
    )
    return Needles(
        sentences=tuple(text + STOPS.get(material.language, ".") for text in sentences),
        depths=tuple(sorted(random.sample(DEPTHS, len(pairs)))),
        question=_question(material, [material.nouns[query] for query in queries]),
        answer=SEPARATOR.join(answers) or prompt["none"],
    )


def _question(material: LanguageTexts, nouns: list[str]) -> str:
    prompt, space = material.needle_prompt, "" if material.language in UNSPACED else " "
    template = prompt["question_single_numbers" if len(nouns) == 1 else "question_multi_numbers"]
    question = template.format(**{f"query{number}": noun for number, noun in enumerate(nouns, start=1)})
    sentences = (question, prompt["please_list"], prompt["if_no_numbers"])
    return space.join(sentences) + prompt["answer_prefix"] + space + prompt["answer_numbers"]


def needle_text(material: LanguageTexts, size: int, needles: Needles) -> str:
    """Return the first `size` sentences of the book, which is repeated where it is shorter, with the needles."""
    sentences = list(islice(cycle(material.sentences), size))
    for depth, needle in reversed(list(zip(needles.depths, needles.sentences, strict=True))):
        sentences.insert(size * depth // 100, needle)
    return material.joined(sentences)


def needle_item(material: LanguageTexts, size: int, needles: Needles, number: int) -> Item:
    """Return the row of an item whose text has so many sentences of the book."""
    before, after = material.needle_prompt["task"].split("{context}")
    return _item(
        number, before + needle_text(material, size, needles) + after, needles.question, needles.answer
    )


def _item(number: int, context: str, question: str, answer: str) -> Item:
    # The answer is no span of the context, where numbers are apart or missing.
    return {
        "id": str(number),
        "context": context,
        "question": question,
        "answers": [{"text": answer, "start": -1}],
    }


def largest_size(pieces: Callable[[int], int], limit: int, most: int) -> int:
    """Return the largest size up to `most` with no more pieces than the limit; `pieces` grows with the size."""
    high = 1
    while high < most and pieces(high) <= limit:
        high *= 2
    return bisect_right(range(min(high, most) + 1), limit, key=pieces) - 1


def needle_sizes(
    material: LanguageTexts, needles: Iterable[Needles], lengths: Mapping[str, int], count: Count
) -> dict[str, int]:
    """Return by length how many sentences of the book fit next to the longest of the needles with their question."""
    frame = max(
        count(material.needle_prompt["task"] + item.question + material.joined(item.sentences))
        for item in needles
    )

    def pieces(size: int) -> int:
        return count(material.joined(list(islice(cycle(material.sentences), size))))

    return {
        name: largest_size(pieces, length - ROOM - frame, most=length) for name, length in lengths.items()
    }


def word_item(material: LanguageTexts, task: str, size: int, length: int, number: int, seed: int) -> Item:
    """Return the row of an item with `size` different words, ten of which are the frequent ones."""
    frequent, rare = (SHORT_FREQUENCIES if length <= LENGTHS["8k"] else FREQUENCIES)[task]
    random = Random(f"{seed} {task} {number}")  # noqa: S311
    drawn = random.sample(material.words, size)
    words = drawn[:FREQUENT] * frequent + drawn[FREQUENT:] * rare
    random.shuffle(words)
    listed = " ".join(f"{number_in_list}. {word}" for number_in_list, word in enumerate(words, start=1))
    before, _, after = material.word_prompt.rpartition("{context}")
    tag, _, question = after.partition("\n")
    # In Vietnamese the list is also before the authors' list.
    context = before.replace("{context}", "") + listed + tag + "\n"
    return _item(number, context, question, SEPARATOR.join(drawn[:FREQUENT]))


def word_items(
    material: LanguageTexts, task: str, length: int, numbers: range, seed: int, count: Count
) -> Iterator[Item]:
    """Yield the items of frequent words: as many words as fit into the first one, or fewer where another needs it."""

    def pieces(size: int, number: int = 0) -> int:
        row = word_item(material, task, size, length, number, seed)
        return count(row["context"] + row["question"])

    limit = length - ROOM
    most = largest_size(pieces, limit, most=len(material.words))
    for number in numbers:
        size = most
        while pieces(size, number) > limit:
            size -= 1 + size // 50
        yield word_item(material, task, size, length, number, seed)


def language_files(
    material: LanguageTexts, lengths: Mapping[str, int], numbers: range, seed: int, count: Count
) -> Iterator[tuple[str, str, int | None, list[Item]]]:
    """Yield length, task, sentences of the book and items of every file; no frequent words without a dictionary."""
    needles = {task: [make_needles(material, task, number, seed) for number in numbers] for task in NEEDLES}
    sizes = needle_sizes(material, chain.from_iterable(needles.values()), lengths, count)
    for name, length in lengths.items():
        for task, drawn in needles.items():
            rows = [needle_item(material, sizes[name], item, number) for number, item in enumerate(drawn)]
            yield name, f"niah_{task}", sizes[name], rows
        for task in FREQUENCIES if material.words else ():
            yield name, f"cwe_{task}", None, list(word_items(material, task, length, numbers, seed, count))
