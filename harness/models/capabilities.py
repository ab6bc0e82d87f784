"""Abilities of a model: one protocol per ability, with its request and answer records.

Every method keeps the order of its inputs, returns as many answers as it got requests, and answers an
empty list with an empty list. Nothing here imports a model library.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any, Literal, Protocol, runtime_checkable

from harness.models.requests import (
    AttentionOptions,
    ExposesHiddenStates,
    FloatArray,
    Generated,
    GenerateOptions,
    LikelihoodAnswer,
    LikelihoodRequest,
    MaskRequest,
    Prompt,
    TextAttention,
)
from harness.progress import Progress

Side = Literal["query", "passage"]
Constraint = Literal["choices", "regex", "json_schema"]
"""The field of `GenerateOptions` that limits a text."""


class Capability(StrEnum):
    """The abilities that methods ask for and adapters declare."""

    CLASSIFIES = "Classifies"
    CHOOSES_BEST = "ChoosesBest"
    TAGS = "Tags"
    EXTRACTS_SPANS = "ExtractsSpans"
    EMBEDS = "Embeds"
    EXPOSES_HIDDEN_STATES = "ExposesHiddenStates"
    EXPOSES_ATTENTIONS = "ExposesAttentions"
    SCORES_CONTINUATIONS = "ScoresContinuations"
    FILLS_MASKS = "FillsMasks"
    GENERATES = "Generates"
    FITS = "Fits"
    COUNTS_TOKENS = "CountsTokens"
    TRANSLATES = "Translates"
    """Is a translation model: its `Generates` obeys `GenerateOptions.languages`."""
    PREDICTS = "Predicts"
    """Has predictions already, as a submission does; the method that asks for it knows how to look them up."""


class Head(StrEnum):
    """Heads that `Fits` can train on top of a model."""

    CLASSIFICATION = "classification"
    MULTIPLE_CHOICE = "multiple_choice"
    TAGGING = "tagging"
    SPAN_EXTRACTION = "span_extraction"
    DUAL_ENCODER = "dual_encoder"
    TEXT_TO_TEXT = "text_to_text"


# Requests and answers ---------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class TextInput:
    """One text or pair of texts to classify."""

    text: str
    text_pair: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """One multiple-choice item: the model scores each of `choices` after `context`."""

    context: str
    choices: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class SpanQuestion:
    """A question whose answer is a span of `context`."""

    id: str
    question: str
    context: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SpanAnswer:
    """A span of the context: ``context[start:end] == text``; an empty text means that nothing was found."""

    text: str
    start: int
    """Offset of the first character in Unicode code points, -1 when nothing was found."""
    end: int
    score: float
    truncated: bool = False
    """Whether the model could not see all of the context or question."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EmbedOptions:
    """How texts become vectors; None leaves the choice to the adapter's own options."""

    pooling: Literal["mean", "cls", "last", "pooler"] | None = None
    layer: int | Literal["last", "xtreme_r"] | None = None
    """0 is the embedding layer, 1..L the transformer layers. ``xtreme_r`` is the layer that the paper's
    appendix C reads: the 8th of 12 and the 14th of 24 (depth / 2 + 2 in between)."""
    max_length: int | None = None
    prefixes: bool = True
    """Whether the adapter's query and passage prefixes are put before the texts."""


# Fitting ----------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class HeadSpec:
    """Specification of the training: the head and the names it needs."""

    head: Head
    labels: tuple[str, ...] = ()
    """Label names in the order of the head's outputs; empty where the head has no labels."""
    inputs: tuple[str, ...] = ()
    """Names of the input fields, in the order they are given to the model."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingSettings:
    """The numbers of one training stage, resolved from a recipe; recorded in the fit digest."""

    learning_rate: float
    epochs: float
    batch_size: int
    """Effective batch: examples per optimiser step over all devices and accumulation steps."""
    max_length: int = 128
    stride: int = 128
    max_query_length: int = 64
    max_answer_length: int = 30
    n_best: int = 20
    warmup_steps: int = 0
    warmup_share: float = 0.0
    weight_decay: float = 0.0
    adam_epsilon: float = 1e-8
    max_grad_norm: float = 1.0
    eval_steps: int | None = None
    """Steps between evaluations on the dev set; None evaluates once an epoch."""
    select_best: bool = True
    """Whether the checkpoint that is best on the dev set is kept, rather than the last one."""
    validation_limit: int | None = None
    """At most so many items of the dev set choose the checkpoint, drawn by a seed."""
    freeze_embeddings: bool = False
    max_steps: int | None = None
    group_by_length: bool = False
    """Whether a batch holds examples of like length: less padding, another order than a plain shuffle."""
    pooling: Literal["pooler", "mean", "cls"] = "pooler"
    """How a dual encoder makes one vector of a text; ``pooler`` is the published one."""
    max_target_length: int = 128
    """Tokens that the target of a text pair is cut at, its end token included."""
    lr_schedule: Literal["linear", "constant"] = "linear"
    """The learning rate after the warm-up: it falls to zero, or stays as it is."""
    optimizer: Literal["adamw", "adafactor"] = "adamw"
    lora_rank: int | None = None
    """Rank of the matrices that are trained next to frozen weights (LoRA); None trains the weights themselves."""
    lora_alpha: int = 16
    """Alpha of LoRA: ``lora_alpha / lora_rank`` multiplies the product that the matrices add."""
    lora_dropout: float = 0.0
    lora_targets: tuple[str, ...] = ()
    """Last parts of the names of the layers that get such matrices; none means all linear layers."""
    quantize: Literal["nf4"] | None = None
    """How the frozen weights are stored (QLoRA); None keeps them as they are."""

    def identity(self) -> dict[str, Any]:
        """Return the settings as digests on disk have them: those of LoRA only where it is used."""
        omitted = LORA_SETTINGS if self.lora_rank is None else frozenset[str]()
        return {name: value for name, value in asdict(self).items() if name not in omitted}


LORA_SETTINGS = frozenset({"lora_rank", "lora_alpha", "lora_dropout", "lora_targets", "quantize"})


@dataclass(frozen=True, slots=True, kw_only=True)
class FitOptions:
    """Where and how one training stage runs."""

    directory: Path
    """A folder that belongs to this stage: the fitted model is saved into it. It is empty, or holds what an
    interrupted training of the same stage left there, from which it may be gone on."""
    settings: TrainingSettings
    seed: int
    describe: str = ""
    """Name of the training, for progress lines: ``mnli (en), 9,888 examples``."""
    stopping: Callable[[], bool] = lambda: False
    """Whether the user wants the run to stop: training then saves where it is, and raises `KeyboardInterrupt`."""
    progress: Progress = field(default_factory=Progress)
    """Shows the steps of training; silent in all processes but the main one."""


# Protocols --------------------------------------------------------------------------------------------


@runtime_checkable
class Adapter(Protocol):
    """An opened model."""

    def identity(self) -> Mapping[str, str]:
        """Return the values that determine the answers: weights digest or revision, options, versions."""

    def close(self) -> None:
        """Free the model; a second call does nothing."""


@runtime_checkable
class Classifies(Protocol):
    """Scores labels of texts."""

    def classify(self, inputs: Sequence[TextInput], labels: Sequence[str]) -> FloatArray:
        """Return scores of shape (inputs, labels); higher is likelier."""


@runtime_checkable
class ChoosesBest(Protocol):
    """Scores the choices of multiple-choice items."""

    def choose(self, items: Sequence[Choice]) -> list[tuple[float, ...]]:
        """Return one tuple of scores per item, in the order of its choices."""


@runtime_checkable
class Tags(Protocol):
    """Tags the tokens of sentences."""

    def tag(self, sentences: Sequence[Sequence[str]]) -> list[list[str]]:
        """Return one tag for every token of every sentence."""


@runtime_checkable
class ExtractsSpans(Protocol):
    """Answers questions with spans of their contexts."""

    def extract_spans(self, items: Sequence[SpanQuestion]) -> list[SpanAnswer]:
        """Return the best span of every item, with offsets in Unicode code points."""


@runtime_checkable
class Embeds(Protocol):
    """Turns texts into vectors."""

    def embed(self, texts: Sequence[str], *, side: Side, options: EmbedOptions | None = None) -> FloatArray:
        """Return float32 vectors of shape (texts, dimension) with unit rows."""


@runtime_checkable
class ExposesAttentions(Protocol):
    """Streams how much attention the pieces of texts get, and where these pieces are."""

    def attentions(
        self, inputs: Sequence[TextInput], options: AttentionOptions | None = None
    ) -> Iterator[tuple[int, TextAttention]]:
        """Yield (index of the input, its pieces' scores), in any order; memory is linear in the length of a text.

        Scores are weights of a softmax, or means and maxima of such: in [0, 1].
        """


@runtime_checkable
class ScoresContinuations(Protocol):
    """Gives log-probabilities of continuations."""

    def loglikelihood(self, requests: Sequence[LikelihoodRequest]) -> list[LikelihoodAnswer]:
        """Return per-token log-probabilities of every continuation."""


@runtime_checkable
class FillsMasks(Protocol):
    """Gives log-probabilities of forms in the place of masks, as a masked language model does."""

    def fill_masks(self, requests: Sequence[MaskRequest]) -> list[LikelihoodAnswer]:
        """Return the log-probability of every piece of a form where all of its pieces are masked at once.

        An answer has no token where the vocabulary cannot write the form (an unknown piece, or none).
        """


@runtime_checkable
class Generates(Protocol):
    """Writes text."""

    def generate(self, prompts: Sequence[Prompt], options: Sequence[GenerateOptions]) -> list[Generated]:
        """Return one text per prompt; raises `CapabilityError` for a constraint or conversation it cannot do."""


@runtime_checkable
class CountsTokens(Protocol):
    """Says how long prompts are, so that shots can be dropped before a prompt is cut."""

    def token_counts(self, prompts: Sequence[Prompt]) -> list[int]:
        """Return how many tokens every prompt has, special tokens and chat template included."""

    def context_length(self) -> int | None:
        """Return how many tokens prompt and answer may have together, None where there is no limit."""


@runtime_checkable
class Fits(Protocol):
    """Can be fine-tuned; what `fit` returns has the head's capability.

    In a run of several processes the leading one fits alone and the others load the result, unless the adapter has an
    attribute ``fits_together`` that is true: then `fit` is called in all of them with the same arguments.
    """

    def fit(
        self, train: Sequence[Any], validation: Sequence[Any], spec: HeadSpec, options: FitOptions
    ) -> Adapter:
        """Train on examples of the head's record type, save into ``options.directory``, return the fitted model.

        An empty `validation` means that the last checkpoint is kept. Raises `TrainingError`.
        """

    def load_fit(self, directory: Path, spec: HeadSpec) -> Adapter:
        """Return the fitted model that `fit` saved into `directory`."""


HEAD_CAPABILITY: Mapping[Head, Capability] = {
    Head.CLASSIFICATION: Capability.CLASSIFIES,
    Head.MULTIPLE_CHOICE: Capability.CHOOSES_BEST,
    Head.TAGGING: Capability.TAGS,
    Head.SPAN_EXTRACTION: Capability.EXTRACTS_SPANS,
    Head.DUAL_ENCODER: Capability.EMBEDS,
    Head.TEXT_TO_TEXT: Capability.GENERATES,
}


def capability_protocols() -> Mapping[Capability, type]:
    """Return the runtime-checkable protocol of every capability that has one."""
    return {
        Capability.CLASSIFIES: Classifies,
        Capability.CHOOSES_BEST: ChoosesBest,
        Capability.TAGS: Tags,
        Capability.EXTRACTS_SPANS: ExtractsSpans,
        Capability.EMBEDS: Embeds,
        Capability.EXPOSES_HIDDEN_STATES: ExposesHiddenStates,
        Capability.EXPOSES_ATTENTIONS: ExposesAttentions,
        Capability.SCORES_CONTINUATIONS: ScoresContinuations,
        Capability.FILLS_MASKS: FillsMasks,
        Capability.GENERATES: Generates,
        Capability.COUNTS_TOKENS: CountsTokens,
        Capability.FITS: Fits,
    }


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelDescription:
    """Findings of `describe` about a model without loading it."""

    adapter: str
    """Name of the adapter that opens it: ``hf-encoder``."""
    ref: str
    """Path, hub id or name, as the user wrote it after the colon."""
    offers: frozenset[Capability]
    """Capabilities of the model as it stands."""
    after_fit: Mapping[Head, frozenset[Capability]] = field(default_factory=dict)
    """Its capabilities once a head has been fitted, by head."""
    labels: tuple[str, ...] = ()
    """Label names of an already fine-tuned checkpoint."""
    revision: str | None = None
    parameters: int | None = None
    layers: int | None = None
    fits_on_request: bool = False
    """Whether it is fine-tuned only where the user names a protocol that does so: by default it is used as it is."""
    constraints: frozenset[Constraint] | None = None
    """Constraints that ``--constrained`` may set; None where only an attempt shows them, as at any server."""
    note: str = ""
    """Why something is not offered, for messages."""
    fault: str = ""
    """Why it cannot be opened, such as missing files, with what to do; a plan raises it."""
    metadata: Mapping[str, str] = field(default_factory=dict)
