"""Signs of a fault that need no expectation: in the text of an item, and in the wrong answers to it.

A copy of the source text, a text that another item has too, and one in another script are listed without any answer.
The other signs only change what is expected of the share of faulty items among those that have them.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from harness.languages import known_languages, script_of_texts, text_scripts
from harness_suspects.answers import TaskAnswers
from harness_suspects.deviation import Families, Floats

LEAST_WORDS = 4
"""Words of a text that is no copy by chance."""
FAR = 5.0
"""Robust standard deviations from which a length is unusual, of the logarithm of its ratio to the source's."""
LEAST_SPREAD = 0.05
LEAST_ITEMS = 20
LEAST_NUMBER = 10
"""Smaller ones are written in words, or are the zeros of a time."""
AGREED = 0.75
"""Share of the wrong answers that are the same."""
RARE = 0.2
"""Share of the answers to the item in other languages that may be that one."""
SIGN_LETTERS = 3
"""Letters that a sign of Han, kana or Hangul counts for, as mixed texts are looked at."""
_WORD = re.compile(r"\w+")
_NUMBER = re.compile(r"\d{2,}")
_THOUSANDS = re.compile(r"(?<=\d)[\s.,'’٬](?=\d{3}(?!\d))")
SAME = "same answer"
IF_FAULTY = 0.7
"""How often the wrong systems are assumed to agree on a faulty item: those that read what is there do."""
LISTED = frozenset({"not translated", "text of another item", "other script"})
"""Those of a text that is wrong by itself."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ItemSign:
    """One sign of an item in a language."""

    name: str
    sentence: str


Signs = Mapping[tuple[int, int], list[ItemSign]]
"""By the numbers of language and item."""


def find_signs(answers: TaskAnswers, families: Families) -> Signs:
    """Return all signs of all items; systems of a family have one answer."""
    signs: dict[tuple[int, int], list[ItemSign]] = {}
    for look in (_copies, _repeats, _scripts, _lengths, _numbers):
        for key, sign in look(answers):
            signs.setdefault(key, []).append(sign)
    for key, sign in _agreements(answers, families):
        signs.setdefault(key, []).append(sign)
    return signs


def sign_codes(signs: Signs, shape: tuple[int, int]) -> npt.NDArray[np.int64]:
    """Return 1 for the items with a sign in their text, else 0; shape (languages, items)."""
    codes = np.zeros(shape, dtype=np.int64)
    for key, item_signs in signs.items():
        codes[key] = any(sign.name != SAME for sign in item_signs)
    return codes


def agreement_evidence(answers: TaskAnswers, families: Families, signs: Signs) -> Floats:
    """Return log likelihood ratios of a fault from whether the wrong families agree; shape (languages, items).

    Where items are harmless they agree as often as all items do that several families get wrong.
    """
    wrong = _wrong_answers(answers, families)
    several, agree = (np.zeros(answers.right.shape[1:], dtype=bool) for _ in range(2))
    for key, counts in wrong.items():
        several[key] = counts.total() > 1
        agree[key] = any(sign.name == SAME for sign in signs.get(key, ()))
    rate = (agree.sum() + 1) / (several.sum() + 2)
    ratios = np.where(agree, np.log(IF_FAULTY / rate), np.log((1 - IF_FAULTY) / (1 - rate)))
    evidence: Floats = np.where(several, ratios, 0.0)
    return evidence


def _wrong_answers(answers: TaskAnswers, families: Families) -> dict[tuple[int, int], Counter[str]]:
    """Return the wrong answers to every item, one per family: that of most of its wrong systems."""
    wrong: dict[tuple[int, int], Counter[str]] = {}
    for family in families:
        by_item: dict[tuple[int, int], Counter[str]] = {}
        for system in family:
            for language, item in np.argwhere(answers.right[system] == 0).tolist():
                answer = answers.said.get((system, language, item), "")
                by_item.setdefault((language, item), Counter())[answer] += 1
        for key, counts in by_item.items():
            wrong.setdefault(key, Counter())[counts.most_common(1)[0][0]] += 1
    return wrong


def _copies(answers: TaskAnswers) -> Iterator[tuple[tuple[int, int], ItemSign]]:
    source = answers.languages.index(answers.source)
    base = answers.source.partition("-")[0]
    for (language, item), item_texts in answers.items.items():
        if language == source or answers.languages[language].partition("-")[0] == base:
            continue
        original = answers.items.get((source, item))
        for name, text in item_texts.fields.items() if original else ():
            equal = original is not None and _normal(text) == _normal(original.fields.get(name, ""))
            if equal and len(_WORD.findall(text)) >= LEAST_WORDS:
                sentence = f"{name} is that in {answers.source}"
                yield (language, item), ItemSign(name="not translated", sentence=sentence)


def _repeats(answers: TaskAnswers) -> Iterator[tuple[tuple[int, int], ItemSign]]:
    source, plain = answers.languages.index(answers.source), _plain(answers)
    owners: dict[tuple[int, str], list[int]] = {}
    for (language, item), text in plain.items():
        owners.setdefault((language, text), []).append(item)
    for (language, text), items in owners.items():
        originals = {plain.get((source, item)) for item in items}
        if (
            len(items) > 1
            and language != source
            and len(originals) > 1
            and len(_WORD.findall(text)) >= LEAST_WORDS
        ):
            for item in items:
                twin = next(answers.ids[name] for name in items if name != item)
                yield (
                    (language, item),
                    ItemSign(name="text of another item", sentence=f"item {twin!r} has the same text"),
                )


def _scripts(answers: TaskAnswers) -> Iterator[tuple[tuple[int, int], ItemSign]]:
    table = known_languages()
    for language, code in enumerate(answers.languages):
        keys = [key for key in answers.items if key[0] == language]
        scripts = text_scripts([answers.items[key].text for key in keys], sign=SIGN_LETTERS)
        usual = Counter(scripts).most_common(1)[0][0] if scripts else None
        expected = script_of_texts(table.get(code)) if code in table else usual
        for key, script in zip(keys, scripts, strict=True):
            if script not in {None, "Zyyy", usual, expected}:
                yield key, ItemSign(name="other script", sentence=f"most letters are {script}, not {usual}")


def _lengths(answers: TaskAnswers) -> Iterator[tuple[tuple[int, int], ItemSign]]:
    source = answers.languages.index(answers.source)
    for language in range(len(answers.languages)):
        keys = [key for key in answers.items if key[0] == language and (source, key[1]) in answers.items]
        if language == source or len(keys) < LEAST_ITEMS:
            continue
        ratios = np.array(
            [
                math.log((1 + len(answers.items[key].text)) / (1 + len(answers.items[(source, key[1])].text)))
                for key in keys
            ]
        )
        centre = float(np.median(ratios))
        spread = max(1.4826 * float(np.median(np.abs(ratios - centre))), LEAST_SPREAD)
        for key, ratio in zip(keys, ratios.tolist(), strict=True):
            if abs(ratio - centre) > FAR * spread:
                times = math.exp(ratio - centre)
                yield key, ItemSign(name="length", sentence=f"the text is {times:.1f} times as long as usual")


def _numbers(answers: TaskAnswers) -> Iterator[tuple[tuple[int, int], ItemSign]]:
    """Yield the items that miss a number which the source and most languages have."""
    numbers_of: dict[tuple[int, int], set[int]] = {}
    for key, texts in answers.items.items():
        numbers_of[key] = {
            int(digits)
            for digits in _NUMBER.findall(_THOUSANDS.sub("", texts.text))
            if len(digits) < 20 and int(digits) >= LEAST_NUMBER
        }
    source = answers.languages.index(answers.source)
    for (language, item), numbers in numbers_of.items():
        for number in numbers_of.get((source, item), set()) - numbers:
            agree = [
                number in numbers_of[(code, item)]
                for code in range(len(answers.languages))
                if code not in {language, source} and (code, item) in numbers_of
            ]
            if agree and sum(agree) > AGREED * len(agree):
                yield (language, item), ItemSign(name="number", sentence=f"the number {number} is missing")


def _agreements(answers: TaskAnswers, families: Families) -> Iterator[tuple[tuple[int, int], ItemSign]]:
    """Yield the items to which wrong families give the same answer, one that other languages hardly get."""
    by_item: dict[int, Counter[str]] = {}
    by_place: dict[tuple[int, int], Counter[str]] = {}
    for (_, language, item), answer in answers.said.items():
        by_item.setdefault(item, Counter())[answer] += 1
        by_place.setdefault((language, item), Counter())[answer] += 1
    for (language, item), counts in _wrong_answers(answers, families).items():
        answer, count = counts.most_common(1)[0]
        here = by_place.get((language, item), Counter())
        elsewhere = by_item[item].total() - here.total()
        is_rare = by_item[item][answer] - here[answer] <= RARE * elsewhere
        if count > 1 and count >= AGREED * counts.total() and is_rare:
            sentence = f"{count} of {counts.total()} wrong systems answer {answer!r}"
            yield (language, item), ItemSign(name=SAME, sentence=sentence)


def _plain(answers: TaskAnswers) -> dict[tuple[int, int], str]:
    return {key: _normal(item.text) for key, item in answers.items.items()}


def _normal(text: str) -> str:
    return " ".join(text.casefold().split())
