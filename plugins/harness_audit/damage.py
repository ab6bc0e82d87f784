"""Signs of damaged data that cost next to nothing, so that a run looks for them before its first cell.

A sign is a note and never a fault: data may be so by design. The rule: a file that was cut, shifted, shuffled, doubled,
or filled with another column or language is still a file of its format, and shows in what is the same or different too
often over its items.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from itertools import pairwise
from statistics import StatisticsError, correlation
from typing import TYPE_CHECKING, Any

from harness.checks import Finding, Note
from harness.data import BitextExample, SourceText
from harness.languages import LEAST_DETECTED, Language, LanguageTable, other_language
from harness.specs import TaskSpec
from harness_audit.data import script_results
from harness_audit.split import AuditedSplit, item_text

if TYPE_CHECKING:
    from harness.planning import CheckedItems

LEAST_ITEMS = 20
"""Items of the smallest split in which something can be too frequent."""
LONGEST_SENTENCE = 1_000
"""Tokens from which a sentence is taken for several: those of treebanks have fewer than 500."""
MOST_REPEATED = 0.3
"""Share of items whose text may be that of an earlier one."""
FEWEST_TEXTS = 0.1
"""Share of different texts that an input field must have, of as many items."""
WINDOW = 100
"""Pairs over which the two sides of a bitext must agree: a shift begins somewhere."""
LEAST_CORRELATION = 0.5
"""Of the logarithms of lengths (cf. Gale and Church, 1993)."""
LEAST_NUMBERS = 0.5
"""Share of pairs with numbers on both sides that have one in common."""
LONGEST_WORD = 20
"""Characters from which a word that is alone in a field is an address or a key."""
_WORD = re.compile(r"[!-~]+")
_NUMBER = re.compile(r"\d+")


def item_remarks(items: CheckedItems) -> Iterator[str]:
    """Yield the sentences about items that a run shows before its first cell."""
    split = AuditedSplit(
        owner=items.spec.task,
        language=items.language,
        split="test",
        axes=items.axes,
        found=items.found,
        examples=items.examples,
    )
    # A few romanised texts are common, so that only the fault is worth a remark.
    scripts = [result for result in script_results(split, items.languages) if isinstance(result, Finding)]
    notes = damage_notes(items.spec, split, items.references, items.languages)
    yield from map(str, (*scripts, *notes))


def damage_notes(
    spec: TaskSpec, split: AuditedSplit, references: Sequence[Any], languages: LanguageTable
) -> Iterator[Note]:
    """Yield the signs of damage in the items of a split, each with a count of the items that show it."""
    of = f"the {split.title} split"
    signs = [*_sentences(split, of)]
    if len(split.examples) >= LEAST_ITEMS:
        signs += [*_repeats(spec, split, references, of)]
        signs += [*_language(split, languages.get(split.language), of), *_alignment(split, of)]
    yield from (split.note("damage", sign) for sign in signs)


def _sentences(split: AuditedSplit, of: str) -> Iterator[str]:
    """Yield signs in the tokens of sentences: several sentences in one, and tokens that stand twice."""
    sentences = [getattr(example, "tokens", ()) for example in split.examples]
    longest = max(map(len, sentences))
    if longest > LONGEST_SENTENCE:
        yield f"a sentence of {of} has {longest:,} tokens; blank lines between sentences may be missing"
    doubled = sum(map(_is_doubled, sentences))
    if 2 * doubled > len(sentences):
        yield f"tokens stand twice in {doubled:,} of {len(sentences):,} items of {of}"


def _repeats(spec: TaskSpec, split: AuditedSplit, references: Sequence[Any], of: str) -> Iterator[str]:
    """Yield signs of repetition: a label, text or field text that too many items share; and texts without a letter."""
    texts = [item_text(example) for example in split.examples]
    size = len(texts)
    if isinstance(references[0], str) and len(set(references)) == 1:
        yield f"all {size:,} items of {of} have the label {references[0]!r}"
    repeated = size - len(set(texts))
    if any(texts) and repeated > MOST_REPEATED * size:
        yield f"{repeated:,} of {size:,} items of {of} repeat the text of an earlier one"
    for name in (getattr(split.examples[0], "inputs", None) or {}).keys() - spec.input_phrases.keys():
        values = [str(example.inputs.get(name)) for example in split.examples]
        if len(set(values)) < FEWEST_TEXTS * size:
            yield f"the field {name!r} has {len(set(values)):,} different texts in {size:,} items of {of}"
        words = sum(len(value) >= LONGEST_WORD and _WORD.fullmatch(value) is not None for value in values)
        if 2 * words > size:
            yield f"the field {name!r} is a long word alone, such as an address, in {words:,} of {size:,} items of {of}"
    bare = sum(bool(text) and not any(map(str.isalpha, text)) for text in texts)
    if 2 * bare > size:
        yield f"{bare:,} of {size:,} items of {of} have no letter"


def _is_doubled(tokens: Sequence[str]) -> bool:
    """Return whether every token of a sentence stands twice, or the sentence does, or one token fills it."""
    if len(tokens) < 4:
        return False
    half = len(tokens) // 2
    same = sum(first == second for first, second in pairwise(tokens))
    return same >= half or tokens[:half] == tokens[half:]


def _language(split: AuditedSplit, language: Language, of: str) -> Iterator[str]:
    """Yield that most items have no text in their language, where the detector is installed (`other_language`)."""
    detected = other_language(
        [texts for example in split.examples if (texts := _long_texts(example))], language
    )
    if detected is not None and detected[2] >= LEAST_ITEMS:
        yield f"{detected[1]} of {detected[2]} items of {of} are in {detected[0]!r} by language detection"


def _long_texts(example: Any) -> list[str]:
    """Return the texts of an item, each by itself; none where one is too short for the detector."""
    names = ("question", "context", "query", "target", "source", "reference")
    fields = () if getattr(example, "inputs", None) else (getattr(example, name, None) for name in names)
    texts = [text for text in fields if isinstance(text, str)] or [item_text(example)]
    return texts if min(map(len, texts)) >= LEAST_DETECTED else []


def _alignment(split: AuditedSplit, of: str) -> Iterator[str]:
    """Yield that the two sides of a bitext, or of translations, do not agree in lengths or in numbers.

    Of 170 published bitexts every window correlates at 0.62 or more, and at 0.56 or less once a side is shifted by a
    line; numbers agree in 86 % of pairs and in 24 %.
    """
    pairs = [(example.id, *sides) for example in split.examples if (sides := _sides(example))]
    for start in range(0, max(1, len(pairs) - WINDOW + 1), WINDOW):
        window = pairs[start : start + WINDOW]
        value = _correlation(window)
        if value is not None and value < LEAST_CORRELATION:
            yield (
                f"over {len(window)} pairs of {of} from item {window[0][0]!r} on, the lengths of the two sides "
                f"correlate at {value:.2f}; a side may be shifted or shuffled"
            )
            break
    numbers = [(_numbers(first), _numbers(second)) for _, first, second in pairs]
    common = [bool(first & second) for first, second in numbers if first and second]
    if len(common) >= LEAST_ITEMS and sum(common) < LEAST_NUMBERS * len(common):
        yield (
            f"{sum(common):,} of {len(common):,} pairs of {of} with numbers on both sides have one in common; a side "
            "may be shifted or shuffled"
        )


def _sides(example: Any) -> tuple[str, str] | None:
    """Return a sentence and its translation; None for items of other kinds."""
    if isinstance(example, BitextExample):
        return example.query, example.target
    return (
        (example.source, example.reference) if isinstance(example, SourceText) and example.reference else None
    )


def _numbers(text: str) -> set[int]:
    """Return the numbers of a text in digits of any script; those that Python reads as decimal have a value."""
    return {int(number) for number in _NUMBER.findall(text) if len(number) < 20}


def _correlation(pairs: Sequence[tuple[str, str, str]]) -> float | None:
    """Return Pearson's correlation of the logarithms of lengths; None for few pairs, or lengths that are all equal."""
    logs = [[math.log(1 + len(text)) for text in side] for side in list(zip(*pairs, strict=True))[1:]]
    with suppress(StatisticsError):
        return correlation(*logs) if len(pairs) >= LEAST_ITEMS else None
    return None
