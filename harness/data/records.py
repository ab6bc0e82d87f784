"""The records that flow through the harness: rows, examples, predictions, pools; and the draw that a limit makes."""

from __future__ import annotations

import hashlib
import heapq
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from hashlib import blake2b
from typing import Any, TypeVar

from harness.errors import DataError

_Item = TypeVar("_Item")
LIMIT_SEED = 0
"""Which items a limit keeps never depends on the training seed, so that seeds are compared on the same items."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One record as a reader found it, before a kind has given it meaning."""

    fields: Mapping[str, Any]
    path: str
    line: int
    """1-based line in the file, or the 1-based number of the record where a format has no lines."""

    @property
    def where(self) -> str:
        """Return ``file:line`` for messages."""
        return f"{self.path}:{self.line}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Example:
    """Fields of all items: an identity, and attributes for statistics and diagnosis."""

    id: str
    """Unique within a task, language and split; for parallel tasks the same in every language."""
    cluster: str | None = None
    """Items that share it are resampled together; None means that the item is its own cluster."""
    group: str | None = None
    """A subset that is also scored by itself, such as the test of a checklist or a candidate language."""
    meta: Mapping[str, str] = field(default_factory=dict)
    """Further attributes by name (genre, gender variant)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClassificationExample(Example):
    """A text or a pair of texts with one label."""

    inputs: Mapping[str, str]
    """The input fields in the order of the spec."""
    label: str | None
    """None where the published file has no labels."""
    labels: tuple[str, ...] = ()
    """All labels of the task."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MultipleChoiceExample(Example):
    """A premise with several choices, one of which is right."""

    context: str
    choices: tuple[str, ...]
    label: int | None
    names: tuple[str, ...] = ()
    """The names of the choices, which predictions and references use."""
    inputs: Mapping[str, str] = field(default_factory=dict)
    """The fields that the context was made of, as the file has them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """A gold answer: ``context[start : start + len(text)] == text``."""

    text: str
    start: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SpanExample(Example):
    """A question about a context; `answers` is empty where the published file has no answers."""

    question: str
    context: str
    answers: tuple[Answer, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class TaggedSentence(Example):
    """A tokenised sentence; `tags` is None where the published file has no tags."""

    tokens: tuple[str, ...]
    tags: tuple[str, ...] | None
    text: str | None = None
    """The raw text, where the treebank has it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelledWords(Example):
    """A sentence of which some words carry a label, such as those with a grammatical case."""

    tokens: tuple[str, ...]
    targets: tuple[int, ...]
    """0-based positions of the words with a label, rising."""
    labels: tuple[str, ...] | None
    """The gold label of every target; None where the published file has no labels."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FormChoice(Example):
    """A sentence with a gap, ``before + form + after``, and the forms of one word that may fill it."""

    before: str
    """All that precedes the form, up to the space before it included."""
    right: str
    wrong: tuple[str, ...]
    after: str = ""
    """All that follows the form; empty where it is not known."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BitextExample(Example):
    """A sentence (the query) and its translation (the target)."""

    query: str
    target: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RankedQuery(Example):
    """A query for which the candidates of a pool are ranked."""

    query: str
    targets: tuple[str, ...]
    """Ids of the right candidates; empty where the published file has no answers."""
    languages: tuple[str, ...] = ()
    """The language of every target, in their order."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """One text of the pool that queries are matched with."""

    id: str
    text: str
    language: str
    answers: tuple[str, ...] = ()
    """Ids of the queries that it answers, where the pool's file says so and not the queries'."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RetrievalPair(Example):
    """A query and the passage that answers it: what a dual encoder is trained on."""

    query: str
    passage: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TaggedSpan:
    """A tagged stretch of a text, ``text[start:end]`` in Unicode code points."""

    start: int
    end: int
    tag: str


@dataclass(frozen=True, slots=True, kw_only=True)
class MarkedText(Example):
    """A raw text whose tagged spans are to be found; `spans` is None where the published file has no spans."""

    text: str
    spans: tuple[TaggedSpan, ...] | None


@dataclass(frozen=True, slots=True, kw_only=True)
class NumericQuestion(Example):
    """A question whose answer is a number."""

    question: str
    solution: str
    """The steps and the answer in words, of exemplars; empty for items without."""
    value: str | None
    """The number in plain digits, ``2125`` or ``0.5``; None where the published file has no answers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceText(Example):
    """A text and what is to be written from it: its translation, or its summary."""

    source: str
    reference: str | None
    """None where the published file has no references."""
    source_name: str
    """The English name of the source's language."""
    target_name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TextPair(Example):
    """A text and what a model must write for it: what a text-to-text model is trained on."""

    source: str
    target: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Prediction:
    """Answer of a model to one item, as plain JSON values.

    ``output`` by kind: classification ``{"label": str, "scores": [float, ...]}``; spans ``{"text": str, "start":
    int, "end": int, "score": float}``; tags and labels of words ``[str, ...]``; bitext ``{"candidate": str,
    "similarity": float, "texts": {id: str}}`` (the top candidate, and its text); multiple choice ``{"label": str,
    "scores": [float, ...]}`` (the name of the choice field); ranked retrieval ``{"candidates": [str, ...],
    "further": [str, ...], "texts": {id: str}}`` (ids, best first, at most 20 and those after them; the texts of the
    first one and of a right one); marked text ``{"spans": [[start, end, tag], ...]}``; form preference ``{"label":
    str or None, "forms": [str, ...], "scores": [float or None, ...], "tokens": [int, ...]}``; numeric answers
    ``{"text": str, "value": str or None}`` (as written, and in plain digits); translations and summaries ``{"text":
    str, "copied": bool}``.
    """

    id: str
    output: Any
    truncated: bool = False
    unparsed: bool = False
    tied: bool = False
    """Whether equal scores decide: those of the best choices, or of candidates at the cut-off of a ranking."""
    dropped_shots: int = 0
    """Shots that were dropped, since the prompt would have been too long."""
    excluded_shots: int = 0
    """Shots that were replaced, since they have the text of the item, or of its translation."""
    unfinished: bool = False
    """Whether the answer was cut at the token limit, before or inside it; then it is not `unparsed` as well."""
    unanswered: bool = False
    """Whether an unfinished answer could not be read."""
    tokens: int = 0
    """Tokens that were generated."""
    reasoning: str | None = None
    """What the model wrote before its answer."""
    reasoning_tokens: int | None = 0
    """How many of `tokens` are of the reasoning; None where a server does not say."""
    prompt_tokens: int | None = None
    """Tokens of its prompt, of a method that asks with prompts; None where the adapter does not count them."""


def is_tied(scores: Sequence[float]) -> bool:
    """Return whether several choices have the best score, to a millionth: the first of them is taken, by its place."""
    best = max(scores)
    return sum(best - score < 5e-7 for score in scores) > 1


class CandidatePool:
    """All candidates of a task, in the order of the files."""

    def __init__(
        self,
        candidates: Sequence[Candidate],
        *,
        owner: str,
        languages: Sequence[str] = (),
        missing: Sequence[str] = (),
    ) -> None:
        """Keep the candidates; raises `DataError` where there are none or an id repeats.

        Args:
            candidates: In the order in which ties are broken.
            owner: The task, for messages.
            languages: Those whose files were read, where every language adds its own.
            missing: Languages whose files were not found: scores are then those of a smaller pool.
        """
        self.candidates = candidates
        self.owner = owner
        self.languages = tuple(languages)
        self.missing = tuple(missing)
        if not candidates:
            raise DataError(f"The candidate pool of {owner!r} is empty.")
        self.row_of: dict[str, int] = {}
        for row, candidate in enumerate(candidates):
            if self.row_of.setdefault(candidate.id, row) != row:
                raise DataError(
                    f"The candidate id {candidate.id!r} of {owner!r} occurs twice in its pool, as candidates "
                    f"{self.row_of[candidate.id] + 1} and {row + 1}; ids must be unique."
                )

    def __len__(self) -> int:
        return len(self.candidates)

    @cached_property
    def answering(self) -> Mapping[str, tuple[Candidate, ...]]:
        """Query id -> the candidates whose rows say that they answer it."""
        by_query: dict[str, list[Candidate]] = {}
        for candidate in self.candidates:
            for query in candidate.answers:
                by_query.setdefault(query, []).append(candidate)
        return {query: tuple(answers) for query, answers in by_query.items()}

    @cached_property
    def digest(self) -> str:
        """A digest of all ids and texts."""
        state = hashlib.blake2b(digest_size=16)
        for candidate in self.candidates:
            state.update(f"{candidate.id}\0{candidate.text}\0".encode())
        return state.hexdigest()


def draw(ids: Sequence[str], limit: int | None, *, seed: int, task: str, language: str | None) -> list[int]:
    """Return the indices of the items that are kept, in their original order: min(limit, len(ids)) of them.

    Every item gets a key, the BLAKE2b digest of (seed, task, language, id), and the smallest keys are kept.
    So the choice depends on nothing else: it does not change when the file is reordered, and a smaller limit
    takes a subset of what a larger one takes. For a parallel task pass ``language=None``, so that the same
    items are taken in every language and variant. All items are kept when `limit` is None.

    Raises `ValueError` for a negative limit, or for ids that are not unique.
    """
    if limit is None:
        return list(range(len(ids)))
    if len(set(ids)) != len(ids):
        raise ValueError(f"The ids of the items of {task!r} must be unique.")
    return [index for index, _ in draw_items(ids, limit, str, seed=seed, task=task, language=language)]


def draw_items(
    items: Iterable[_Item],
    limit: int,
    identify: Callable[[_Item], str],
    *,
    seed: int,
    task: str,
    language: str | None,
) -> list[tuple[int, _Item]]:
    """Return the indices and items that `draw` keeps, in their order; holds no more than `limit` items at a time.

    Goes through all items, whose ids must be unique (not checked). Raises `ValueError` for a negative limit.
    """
    if limit < 0:
        raise ValueError(f"The limit must not be negative, found {limit}.")
    stream = iter(items)
    keyed = (
        (_draw_key(seed, task, language, identify(item)), index, item) for index, item in enumerate(stream)
    )
    smallest = heapq.nsmallest(limit, keyed)
    for _ in stream:  # A limit of 0 takes nothing, but the checks of the items must see them all.
        pass
    return sorted(((index, item) for _, index, item in smallest), key=lambda pair: pair[0])


def _draw_key(seed: int, task: str, language: str | None, identifier: str) -> bytes:
    # JSON keeps the parts apart, so that no id can imitate another task's.
    identity = json.dumps([seed, task, language or "", identifier])
    return blake2b(identity.encode("ascii"), digest_size=16).digest()
