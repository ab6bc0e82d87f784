"""What is wrong with the texts of items: another language's, labels in them, broken characters, a machine's remarks."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations
from typing import Any

from harness import BitextExample, Finding, Note, SpanExample, TaskSpec
from harness.languages.table import Language
from harness_audit.data import item_inputs
from harness_audit.overlap import LEAST_TOKENS, item_text, text_tokens
from harness_audit.split import AuditedSplit, named_ids

__all__ = [
    "character_notes",
    "copy_results",
    "cut_word_findings",
    "leak_findings",
    "remark_notes",
    "repeat_notes",
    "untranslated_results",
]

REPEATS = 5
"""Different texts of the source language that must share one translation to be noted."""
LEAST_LETTERS = 3
"""Letters of the shortest label that is looked for in texts."""
SHOWN = 60
_BROKEN = {
    "U+FFFD in the place of a character": re.compile("\ufffd"),
    "UTF-8 read as another encoding": re.compile(
        "[\u00c2\u00c3\u00d0\u00d1][\u0080-\u00bf]|\u00e2\u20ac|\u00e2\u0080"
    ),
    "HTML": re.compile(r"&(?:#\d+|#x[0-9a-f]+|[a-z]{2,8});|</?(?:br|p|b|i|span|div)\s*/?>", re.IGNORECASE),
}
_REMARK = re.compile(
    r"as an ai (?:language )?model|\bi(?:'m| am) sorry,? (?:but )?i (?:can(?:no|')t|am unable|am not able)"
    r"|\bi (?:can(?:no|')t|am unable to) (?:assist|help|translate|fulfil)"
    r"|\bhere(?:'s| is) the translat|\bsure[,!] here|\btranslated text:"
)


def copy_results(spec: TaskSpec, tests: Sequence[AuditedSplit], source: str) -> Iterator[Finding | Note]:
    """Yield languages with each other's texts, of the same item where the task is parallel; most of them is a fault.

    Texts of fewer than eight tokens may be equal; those of a parallel task's source language are compared elsewhere.
    """
    texts = [(split, _keys(split, spec.pairs(split.language))) for split in tests]
    for (first, own), (second, theirs) in combinations(texts, 2):
        pair = (first.language, second.language)
        parallel = all(map(spec.pairs, pair))
        if first.axes != second.axes or len({code.partition("-")[0] for code in pair}) == 1:
            continue
        if parallel and source in pair:
            continue
        same = [own[key] for key in own.keys() & theirs.keys()]
        size = min(len(own), len(theirs))
        sentence = f"{len(same):,} of {size:,} with the text of {'the same' if parallel else 'an'} item"
        if 2 * len(same) > size:
            yield Finding(
                task=spec.task,
                languages=pair,
                check="copied",
                expected=f"items of the {first.title} split of each language in that language",
                found=f"{sentence} in the other ({_named(first, same)})",
            )
        elif same and parallel:
            sentence = (
                f"of the items of the {first.title} split {sentence} in the other ({_named(first, same)})"
            )
            yield Note(task=spec.task, languages=pair, check="copied", text=sentence)


def _keys(split: AuditedSplit, parallel: bool) -> Mapping[int, str]:
    """Return the ids of items by a hash of their text, and of their id where the task is parallel."""
    found = {}
    for example in split.examples:
        tokens = text_tokens(_whole(example))
        if len(tokens) >= LEAST_TOKENS:
            found[hash((example.id if parallel else "", *tokens))] = example.id
    return found


def _whole(example: Any) -> str:
    """Return all text of an item, of two sentences both."""
    return f"{item_text(example)} {getattr(example, 'target', '')}"


def _named(split: AuditedSplit, ids: Sequence[str]) -> str:
    known = {*ids}
    return named_ids([example.id for example in split.examples if example.id in known])


def leak_findings(spec: TaskSpec, split: AuditedSplit, references: Sequence[Any]) -> Iterator[Finding]:
    """Yield a split of which most items have the name of their own label in the text, and of no other label."""
    labels = [label for label in spec.label_names if sum(map(str.isalpha, label)) >= LEAST_LETTERS]
    if not spec.label_names or len(labels) < len(spec.label_names) or not isinstance(references[0], str):
        return
    if getattr(split.examples[0], "choices", ()):
        return
    names = {label: re.compile(rf"\b{re.escape(label.casefold())}\b") for label in labels}
    items = []
    for example, gold in zip(split.examples, references, strict=True):
        text = item_text(example).casefold()
        if [label for label, name in names.items() if name.search(text)] == [gold]:
            items.append(example.id)
    if 2 * len(items) > len(references):
        yield Finding(
            task=spec.task,
            languages=(split.language,),
            check="label in text",
            expected=f"texts of the {split.title} split that do not name the label",
            found=f"{len(items):,} of {len(references):,} with the name of their label ({named_ids(items)})",
        )


def cut_word_findings(spec: TaskSpec, split: AuditedSplit, language: Language) -> Iterator[Finding]:
    """Yield a split of which most answers begin within a word, as they do where an offset was counted wrongly."""
    if language.segmentation != "space":
        return
    spans = {
        example.id: (example.context, example.answers[0].start)
        for example in split.examples
        if isinstance(example, SpanExample) and example.answers
    }
    items = [name for name, (text, start) in spans.items() if start and text[start - 1 : start + 1].isalnum()]
    if 2 * len(items) > len(spans):
        yield Finding(
            task=spec.task,
            languages=(split.language,),
            check="answers",
            expected=f"answers of the {split.title} split that begin where a word does",
            found=f"{len(items):,} of {len(spans):,} that begin within one ({named_ids(items)})",
        )


def untranslated_results(spec: TaskSpec, split: AuditedSplit) -> Iterator[Finding | Note]:
    """Yield pairs of sentences whose two sides are equal; most of them is a fault."""
    pairs = {
        example.id: (text_tokens(example.query), text_tokens(example.target))
        for example in split.examples
        if isinstance(example, BitextExample)
    }
    long = {name: pair for name, pair in pairs.items() if max(map(len, pair)) >= LEAST_TOKENS // 2}
    items = [name for name, (query, target) in long.items() if query == target]
    sentence = f"{len(items):,} of {len(long):,} with two equal sentences ({named_ids(items)})"
    if 2 * len(items) > len(long):
        yield Finding(
            task=spec.task,
            languages=(split.language,),
            check="not translated",
            expected=f"pairs of the {split.title} split in two languages",
            found=sentence,
        )
    elif items:
        sentence = f"not translated: of the pairs of the {split.title} split {sentence}"
        yield Note(task=spec.task, languages=(split.language,), check="not translated", text=sentence)


def character_notes(spec: TaskSpec, split: AuditedSplit) -> Iterator[Note]:
    """Yield how many items have characters that a wrong conversion leaves behind."""
    for name, pattern in _BROKEN.items():
        items = [example.id for example in split.examples if pattern.search(_whole(example))]
        if items:
            sentence = (
                f"{len(items):,} of {len(split.examples):,} items of the {split.title} split have {name}"
            )
            yield Note(
                task=spec.task,
                languages=(split.language,),
                check="characters",
                text=f"{sentence} ({named_ids(items)})",
            )


def remark_notes(spec: TaskSpec, split: AuditedSplit, source: str) -> Iterator[Note]:
    """Yield items of a translated language with what machines write in English for a translation, or around it."""
    if not spec.pairs(split.language) or split.language == source or split.language.partition("-")[0] == "en":
        return
    items, shown = [], ""
    for example in split.examples:
        for text in item_inputs(example):
            if _REMARK.search(text.casefold().replace("\u2019", "'")):
                items.append(example.id)
                shown = shown or text[:SHOWN]
                break
    if items:
        sentence = f"{len(items):,} of {len(split.examples):,} items of the {split.title} split have a machine's remark"
        yield Note(
            task=spec.task,
            languages=(split.language,),
            check="remark",
            text=f"{sentence} for a text ({shown!r}; {named_ids(items)})",
        )


def repeat_notes(spec: TaskSpec, tests: Sequence[AuditedSplit], source: str) -> Iterator[Note]:
    """Yield a text that is the translation of several different ones, such as a message that nothing was translated."""
    originals = {
        split.axes: {example.id: item_inputs(example) for example in split.examples}
        for split in tests
        if split.language == source
    }
    for split in tests:
        theirs = originals.get(split.axes)
        if theirs is None or split.language == source or not spec.pairs(split.language):
            continue
        meanings: dict[str, dict[str, str]] = {}
        for example in split.examples:
            for text, original in zip(item_inputs(example), theirs.get(example.id, ()), strict=False):
                if len(text_tokens(text)) >= LEAST_TOKENS // 2:
                    meanings.setdefault(text, {}).setdefault(" ".join(text_tokens(original)), example.id)
        several = {text: own for text, own in meanings.items() if len(own) >= REPEATS}
        for text, own in sorted(several.items(), key=lambda item: -len(item[1]))[:1]:
            count = f"{len(own):,} different ones in {source}"
            sentence = f"one text of the {split.title} split is the translation of {count}"
            yield Note(
                task=spec.task,
                languages=(split.language,),
                check="repeated",
                text=f"{sentence} ({text[:SHOWN]!r}; {named_ids(list(own.values()))})",
            )
