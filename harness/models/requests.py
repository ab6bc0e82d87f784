"""Requests to a model and its answers: generation, continuations, hidden states, attention and subwords, as streams.

A written answer may begin with reasoning; the marks around it show where the answer begins.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeVar, runtime_checkable

import numpy as np
import numpy.typing as npt

from harness.errors import AdapterError, CapabilityError

if TYPE_CHECKING:
    from harness.models.capabilities import Adapter, EmbedOptions

_REJECTS = re.compile(r"\broles?\b|\bsystem\b|rejects the conversation", re.IGNORECASE)
"""``System role not supported`` (Gemma 1 and 2), ``Conversation roles must alternate`` (Mistral 0.1 and 0.2)."""
Result = TypeVar("Result")
_TURN = ("<|end|>", "<|start|>assistant")
"""Marks that harmony writes between its channels."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LikelihoodRequest:
    """A continuation to score after a context."""

    context: str
    continuation: str


@dataclass(frozen=True, slots=True, kw_only=True)
class MaskRequest:
    """A form to score in its place: the text is ``before + form + after``, its spaces included."""

    before: str
    form: str
    after: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class LikelihoodAnswer:
    """Log-probabilities (natural logarithm) of one continuation, or of one form in its place."""

    token_logprobs: tuple[float, ...]
    """One number per token that belongs to the continuation, a token that straddles the boundary included."""
    is_greedy: bool
    """Whether every token is the likeliest one."""
    byte_length: int
    """UTF-8 bytes of the continuation."""
    truncated: bool = False
    """Whether tokens of the context were cut off from the left."""
    straddles: bool = False
    """Whether a token holds the end of the context and the beginning of the continuation."""

    @property
    def total(self) -> float:
        """The sum of the token log-probabilities."""
        return float(sum(self.token_logprobs))


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """One message of a conversation."""

    role: Literal["system", "user", "assistant"]
    text: str


Turns = tuple[Turn, ...]
Prompt = str | Turns
"""A text to continue, or a conversation that the model's chat template turns into one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Generated:
    """Answer of a model to one prompt."""

    text: str
    """The answer: without the prompt, the reasoning, the stop string and special tokens."""
    tokens: int
    """How many tokens were generated, the reasoning and the end token included."""
    finished: bool
    """Whether it ended by itself or at a stop string, rather than at the token limit."""
    truncated: bool = False
    """Whether tokens of the prompt were cut off from the left."""
    reasoning: str | None = None
    """Text that the model wrote before its answer; None where it did not reason."""
    reasoning_tokens: int | None = 0
    """How many of the tokens are of the reasoning, its marks included; None where a server does not say."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GenerateOptions:
    """How text is generated for one request."""

    max_tokens: int = 64
    stop: tuple[str, ...] = ()
    temperature: float = 0.0
    """0 is greedy; sampling depends on `seed` alone, not on the batch."""
    top_p: float = 1.0
    seed: int = 0
    choices: tuple[str, ...] | None = None
    regex: str | None = None
    json_schema: Mapping[str, Any] | None = None
    reasoning_markers: tuple[str, str] | None = None
    """The marks before and after the reasoning that the prompt asks for, besides those that are known.

    `stop` and `max_tokens` are about the answer alone; how long the reasoning may be is an option of the adapter.
    """
    languages: tuple[str, str] | None = None
    """Codes of the languages of prompt and answer, for models that only translate: the prompt is the text alone."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AttentionOptions:
    """How the attention of all layers and heads becomes one score per piece."""

    over: Literal["max", "mean"] = "max"
    """How layers and heads are joined: the largest weight of any of them, or their mean."""
    row: Literal["first", "mean"] = "first"
    """Whose attention is read: that of the first position (the classification token), or of all positions on average,
    without padding."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SegmentAttention:
    """The pieces of one text in their order, without special pieces: where each is, and its score."""

    starts: tuple[int, ...]
    """Offset of every piece's first character in the text, in Unicode code points."""
    ends: tuple[int, ...]
    scores: tuple[float, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class TextAttention:
    """The attention that the pieces of a text, or of a pair of texts, get."""

    segments: tuple[SegmentAttention, ...]
    """One for the text; a second one for the other text of a pair."""
    truncated: bool = False
    """Whether the model could not see all of the input."""


FloatArray = npt.NDArray[np.float32]


@runtime_checkable
class ExposesHiddenStates(Protocol):
    """Streams the hidden states of tokenised sentences."""

    def layer_count(self) -> int:
        """Return how many layers there are, the embedding layer included."""

    def hidden_states(
        self,
        sentences: Sequence[Sequence[str | None]],
        layers: Sequence[int],
        *,
        sentence_vector: bool = False,
    ) -> Iterator[tuple[int, FloatArray]]:
        """Yield (index of the sentence, vectors of shape (layers, words, dimension)), in any order.

        A word's vector is that of its first piece; a word without a piece gets zeros. None is a masked word, whose
        piece is the mask token: raises `CapabilityError` where the tokenizer has no mask token. With
        `sentence_vector` one more vector precedes those of the words: that of the first special token, or of the last
        piece in models that read from left to right.
        """


@dataclass(frozen=True, slots=True, kw_only=True)
class WordCoverage:
    """Which parts of a sentence its hidden states do not show."""

    empty: tuple[int, ...] = ()
    """Numbers of the words that have no piece."""
    cut: tuple[int, ...] = ()
    """Numbers of the words that alone are longer than the model reads, and lose their last pieces."""
    windows: int = 1
    """In how many parts the model reads the sentence."""


@runtime_checkable
class CoversWords(Protocol):
    """Reports which parts of sentences their hidden states do not show; an adapter that exposes these may have it."""

    def word_coverage(self, sentences: Sequence[Sequence[str | None]]) -> list[WordCoverage]:
        """Return one record per sentence; runs the tokenizer only."""


@runtime_checkable
class HasUntrained(Protocol):
    """Can return itself with random weights; an adapter that exposes hidden states may have it."""

    def untrained(self, seed: int) -> Adapter:
        """Return a model of the same architecture and tokenizer, its weights drawn by `seed`.

        Its `identity` differs from those of the trained model and of other seeds. Raises `CapabilityError` where
        the model is divided over several devices.
        """


@dataclass(frozen=True, slots=True, kw_only=True)
class SubwordCount:
    """The sub-words of one text."""

    tokens: int
    """Without special tokens, templates, prefixes and padding, before anything is cut."""
    unknown: int | None = None
    """How many of them are the unknown token; None where the adapter does not know."""


@runtime_checkable
class CountsSubwords(Protocol):
    """Counts the sub-words of texts by themselves, as fertility does (Ács 2019; Rust et al. 2021, section 3.3)."""

    def subword_counts(self, texts: Sequence[str]) -> list[SubwordCount]:
        """Return one count per text; runs the tokenizer only. An empty text has no token."""


@runtime_checkable
class CutsTexts(Protocol):
    """Reports how long a text may be that `classify`, `choose` or `embed` reads whole: their answers do not show it.

    Where such an adapter tags, it splits long sentences between words and cuts none.
    """

    def text_room(self, texts: int, options: EmbedOptions | None = None) -> int | None:
        """Return how many sub-words, as `CountsSubwords` counts them, a sequence of so many texts may have.

        Args:
            texts: 1, or 2 for a pair.
            options: How the one text is embedded as a query; None where a head reads the sequence.

        Returns:
            The most sub-words of all texts together that are not cut; None where there is no limit.
        """


Ability = Literal[
    "classify", "choose", "tag", "extract_spans", "embed", "loglikelihood", "generate", "fill_masks"
]
"""The methods of capabilities whose answers are kept and shared: one answer per request, whatever the batch."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """Ability and arguments of a call, without the requests."""

    ability: Ability
    arguments: Mapping[str, Any] = field(default_factory=dict)
    """Arguments that all requests share: ``labels`` of `classify`; ``side`` and ``options`` of `embed`."""
    stopping: Callable[[], bool] = lambda: False
    """Whether the user wants the run to stop: no further batch starts, those under way are answered."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Answered:
    """Some requests with their answers."""

    indices: Sequence[int]
    """Numbers of the requests, counted through all blocks from 0."""
    answers: Sequence[Any]
    """As the capability's method returns them, one per request: a row of its array, or an item of its list."""


@runtime_checkable
class Streams(Protocol):
    """Gives answers as they come, rather than all at the end of a call."""

    def block_characters(self, ability: Ability) -> int | None:
        """Return how many characters of text make a block, a few batches' worth; None takes all in one block.

        The number depends on options only, never on how many processes there are or what memory is left: blocks, and
        so the batches within them, are the same for any number of processes.
        """

    def stream(self, call: Call, blocks: Sequence[Sequence[Any]]) -> Iterator[Answered]:
        """Yield the answers of all requests of all blocks, every one once, in any order.

        The requests of `generate` are pairs of a prompt and its options. Batches never cross the border of a block.
        The generator may be closed before its end.
        """


@dataclass(frozen=True, slots=True, kw_only=True)
class DevScore:
    """Score of a fitted model on its dev set while it was trained."""

    metric: str
    value: float
    """Of the checkpoint that was kept, as a fraction."""


@runtime_checkable
class HasDevScore(Protocol):
    """Keeps what its dev set scored when it was fitted."""

    def dev_score(self) -> DevScore | None:
        """Return the score of the checkpoint that was kept; None where no dev set was measured."""


@runtime_checkable
class HasTrainingLoss(Protocol):
    """Keeps the losses of its training, so that reports say where it has learned nothing."""

    def training_loss(self) -> Mapping[str, float] | None:
        """Return its mean losses at the ``first`` and ``last`` steps, and how many ``steps``; None where unmeasured."""


@runtime_checkable
class HasNotices(Protocol):
    """Has notes on how its answers were made."""

    def notices(self) -> Sequence[str]:
        """Return sentences for the run's notes, in order, such as that batches were made smaller to save memory."""


class SystemTurns:
    """Gives conversations to a chat template as it takes them, also to one without a system role.

    Where rendering shows that it rejects the system turn, or drops it in silence, the system text is put before the
    text of the first user turn, once.
    """

    def __init__(self, model: str) -> None:
        self._model = model
        self._moves: bool | None = None
        """Whether the template has no system role; None before the first conversation with one."""

    def send(
        self, turns: Turns, write: Callable[[Turns], Result], render: Callable[[Turns], object] | None
    ) -> Result:
        """Return the result of `write` for a conversation; raises as it does.

        `render` returns what the template makes of one, None where nothing shows that.
        """
        if len(turns) < 2 or (turns[0].role, turns[1].role) != ("system", "user"):
            return write(turns)
        moved = (Turn(role="user", text=f"{turns[0].text}\n\n{turns[1].text}"), *turns[2:])
        if self._moves is None and render is not None:
            self._moves = False
            with suppress(AdapterError, CapabilityError):  # a template that rejects the turn is seen below
                self._moves = render(turns) == render(turns[1:])
        if self._moves:
            return write(moved)
        try:
            return write(turns)
        except (AdapterError, CapabilityError) as error:
            if not _REJECTS.search(error.message):
                raise
            try:
                answer = write(moved)
            except (AdapterError, CapabilityError):
                raise error from None
        self._moves = True
        return answer

    def notices(self) -> list[str]:
        """Return a sentence where system texts were moved."""
        if not self._moves:
            return []
        return [
            f"The chat template of {self._model!r} has no system role: the system text is before the first user turn."
        ]


@dataclass(frozen=True, slots=True)
class Markers:
    """The marks before and after the reasoning."""

    start: str
    end: str


KNOWN_MARKERS = (
    Markers("<think>", "</think>"),
    Markers("[THINK]", "[/THINK]"),
    Markers("<|channel|>analysis<|message|>", "<|channel|>final<|message|>"),
)
"""Of Qwen3, DeepSeek-R1, SmolLM3 and most others; of Magistral; of gpt-oss (OpenAI's harmony format)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SplitText:
    """A text in its two parts."""

    reasoning: str | None
    """None where the model did not reason."""
    answer: str
    closed: bool = True
    """Whether the reasoning ended; an open one has no answer."""


def split_reasoning(text: str, markers: Sequence[Markers], *, opened: bool = False) -> SplitText:
    """Return the reasoning and the answer of what a model wrote.

    The text begins with a start mark, or holds an end mark whose start the chat template wrote. Without either it is
    all answer, unless the prompt `opened` the reasoning and the text was cut before its end.
    """
    begun = text.lstrip()
    for marks in markers:
        if begun.startswith(marks.start):
            return _after_start(begun.removeprefix(marks.start), marks)
    for marks in markers:
        if marks.end in text:
            return _after_start(text.replace(marks.start, "", 1), marks)
    if opened:
        return SplitText(reasoning=text.strip(), answer="", closed=False)
    return SplitText(reasoning=None, answer=text)


def _after_start(text: str, markers: Markers) -> SplitText:
    """Return the parts of a text within the reasoning; a second block of reasoning directly after it belongs to it."""
    blocks = []
    while True:
        reasoning, end, text = text.partition(markers.end)
        blocks.append(_without_turn(reasoning))
        text = text.lstrip()
        if not end or not text.startswith(markers.start):
            break
        text = text.removeprefix(markers.start)
    return SplitText(reasoning="\n".join(filter(None, blocks)), answer=text, closed=bool(end))


def _without_turn(text: str) -> str:
    text = text.strip()
    for mark in reversed(_TURN):
        text = text.removesuffix(mark).rstrip()
    return text


def separate_reasoning(answer: Generated, own: tuple[str, str] | None) -> Generated:
    """Return an answer without reasoning in its text, where the adapter did not separate it itself.

    Args:
        answer: Of any adapter.
        own: The marks of the prompt, besides the known ones.
    """
    if answer.reasoning is not None:
        return answer
    markers = KNOWN_MARKERS if own is None else (Markers(*own), *KNOWN_MARKERS)
    split = split_reasoning(answer.text, markers)
    if split.reasoning is None:
        return answer
    return replace(answer, text=split.answer, reasoning=split.reasoning, reasoning_tokens=None)


def before_stop(text: str, stops: Sequence[str], *, blank_from: int = 0) -> tuple[str, bool]:
    """Return the text before the first stop string, and whether there is one; blank ones are sought from a place on."""
    starts = [text.find(stop, 0 if stop.strip() else blank_from) for stop in stops if stop]
    positions = [start for start in starts if start >= 0]
    return (text[: min(positions)], True) if positions else (text, False)


def within_stops(text: str, stops: Sequence[str]) -> tuple[str, bool]:
    """Return the answer in a text whose writer ignored its stop strings, and whether there is such a string.

    Line ends before the answer do not end it.
    """
    return before_stop(text, stops, blank_from=len(text) - len(text.lstrip()))
