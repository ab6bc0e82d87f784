"""Cost of a cell's texts for a model: words, characters, bytes and sub-words, as sums over its items.

Sums, not means, so that languages and scripts add up. They depend on the items and the tokenizer alone: not on batches,
processes, or what was answered before. Fertility is tokens / words (Ács 2019, "Exploring BERT's Vocabulary"; Rust et
al. 2021, "How Good is Your Tokenizer?", section 3.3); what a word is says `harness.languages.segmentation`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from harness.data.records import Example, Prediction
from harness.errors import AdapterError, ContractError
from harness.kinds.embedding import embed_options
from harness.kinds.kind import TaskKind
from harness.kinds.methods import Pairing
from harness.languages.segmentation import character_counts, unspaced_counts, word_counts
from harness.languages.table import Language
from harness.metrics.scoring import answers_of
from harness.models.capabilities import Capability
from harness.models.requests import SubwordCount
from harness.running.answer_language import AnswerLanguages
from harness.specs.schema import TaskSpec
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
