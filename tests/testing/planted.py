"""A sound adapter, and the same adapter with one fault that its ref names."""

from __future__ import annotations

import hashlib
import importlib
import itertools
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from harness.errors import CapabilityError, TrainingError
from harness.models.adapters import AdapterEntry
from harness.models.capabilities import (
    HEAD_CAPABILITY,
    Adapter,
    Capability,
    Choice,
    Constraint,
    EmbedOptions,
    FitOptions,
    Head,
    HeadSpec,
    ModelDescription,
    Side,
    SpanAnswer,
    SpanQuestion,
    TextInput,
)
from harness.models.options import AdapterOptions, SamplingOptions
from harness.models.requests import (
    Ability,
    Answered,
    Call,
    FloatArray,
    Generated,
    GenerateOptions,
    LikelihoodAnswer,
    LikelihoodRequest,
    Prompt,
    SubwordCount,
    WordCoverage,
)

HEADS = (Head.CLASSIFICATION, Head.TAGGING, Head.SPAN_EXTRACTION, Head.DUAL_ENCODER)
COUNTER = itertools.count()


DECODERS = (
    "sound-decoder no-mask covers-all deaf-to-sentences impatient-generation loses-a-sentence one-twin "
    "positive-log-probability reads-masks shifts-words"
).split()
WRITERS = (
    "sound-writer sound-rejecter cuts-at-tokens deaf-to-options-in-a-stream first-options-for-all "
    "first-stop-only fixed-seed greedy ignores-choices ignores-json-schema ignores-regex ignores-stop "
    "keeps-the-stop lower-case-choice rejects-choices rejects-stop samples-at-zero "
    "samples-at-zero-by-seed silently-unconstrained unfinished-stop unseeded"
).split()
"""Write and stream texts as their options say."""
UNDECLARED = ("sound-rejecter", "silently-unconstrained")
"""Have neither `SamplingOptions` nor constraints."""
DECODER_OFFERS = (
    Capability.CHOOSES_BEST,
    Capability.EMBEDS,
    Capability.EXPOSES_HIDDEN_STATES,
    Capability.FITS,
    Capability.GENERATES,
    Capability.SCORES_CONTINUATIONS,
)
STREAMERS = (
    "sound-streamer changing-blocks deaf-streamer loses-a-block other-in-a-stream streams-for-nothing "
    "streams-twice upset-by-closing"
).split()


class PlantedOptions(SamplingOptions):
    pass


def describe(ref: str, options: AdapterOptions) -> ModelDescription:
    if ref == "heavy-describe":
        importlib.import_module("vllm")
    bare = frozenset({Capability.EMBEDS, Capability.FITS})
    after = {head: bare | {HEAD_CAPABILITY[head]} for head in HEADS}
    if ref == "missing-capability":
        bare |= {Capability.GENERATES}
    if ref == "undeclared-capability":
        bare -= {Capability.EMBEDS}
    if ref == "missing-head-capability":
        after[Head.TAGGING] |= {Capability.CHOOSES_BEST}
    if ref in DECODERS:
        bare, after = frozenset(DECODER_OFFERS), {}
    if ref in STREAMERS:
        bare, after = frozenset({Capability.EMBEDS}), {}
    if ref in WRITERS:
        bare, after = frozenset({Capability.GENERATES}), {}
    if ref == "head-without-capability":
        after[Head.TAGGING] -= {Capability.TAGS}
    declared: frozenset[Constraint] = frozenset({"choices", "regex", "json_schema"})
    return ModelDescription(
        adapter="other" if ref == "wrong-name" else "planted",
        ref=ref,
        offers=bare,
        after_fit=after,
        constraints=declared if ref in WRITERS and ref not in UNDECLARED else None,
    )


def open_planted(description: ModelDescription, options: AdapterOptions) -> Adapter:
    ref = description.ref
    if ref in STREAMERS:
        return PlantedStreamer(ref)
    if ref in WRITERS:
        return PlantedWriter(ref)
    return PlantedDecoder(ref) if ref in DECODERS else Planted(ref)


def digest(*parts: object) -> bytes:
    return hashlib.sha256(repr(parts).encode("utf-8", "surrogatepass")).digest()


def vector(*parts: object) -> FloatArray:
    values = np.frombuffer(digest(*parts), dtype=np.uint8).astype(np.float32) - 127.5
    unit: FloatArray = values / np.linalg.norm(values)
    return unit


class Planted:
    """Answers from hashes of the requests; `ref` is the fault, or ``sound``."""

    def __init__(self, ref: str, knowledge: Sequence[str] = (), tags: Sequence[str] = ()) -> None:
        self.ref = ref
        self.knowledge = list(knowledge)
        self.tags = list(tags)
        self.closed = False
        self.opened = next(COUNTER)

    def identity(self) -> Mapping[str, str]:
        match self.ref:
            case "empty-identity":
                return {}
            case "number-in-identity":
                return {"version": 1, "knowledge": str(self.knowledge)}  # type: ignore[dict-item]
            case "unstable-identity":
                return {"opened": str(self.opened)}
            case "fit-keeps-identity":
                return {"ref": self.ref}
        return {"ref": self.ref, "knowledge": " ".join(self.knowledge)}

    def close(self) -> None:
        if self.closed and self.ref == "closes-once":
            raise RuntimeError("closed already")
        self.closed = True

    def embed(self, texts: Sequence[str], *, side: Side, options: EmbedOptions | None = None) -> FloatArray:
        if self.ref == "chokes-on-empty-text" and "" in texts:
            raise ValueError("empty text")
        rows = [vector(text, *self.seen(side)) for text in texts]
        vectors = np.stack(rows) if rows else np.zeros((0, 32), dtype=np.float32)
        return self.spoil(texts, vectors)

    def subword_counts(self, texts: Sequence[str]) -> list[SubwordCount]:
        more = 2 if self.ref == "counts-special-tokens" else 0
        more += len(texts) - 1 if self.ref == "counts-neighbours" else 0
        return [SubwordCount(tokens=len(text.split()) + more if text else 0, unknown=0) for text in texts]

    def text_room(self, texts: int, options: EmbedOptions | None = None) -> int | None:
        return 0 if self.ref == "no-room" else None

    def seen(self, side: Side) -> list[Any]:
        return self.knowledge if self.ref == "fits-in-place" else []

    def spoil(self, texts: Sequence[str], vectors: FloatArray) -> FloatArray:
        noise = np.zeros_like(vectors)
        match self.ref:
            case "wrong-count":
                return vectors[: max(len(vectors) - 1, 1)]
            case "answers-nothing-asked":
                return vectors if len(vectors) else np.ones((1, 32), dtype=np.float32)
            case "wrong-order":
                return vectors[sorted(range(len(texts)), key=lambda index: len(texts[index]))]
            case "nan":
                vectors[[index for index, text in enumerate(texts) if "Bremen" in text]] = np.nan
            case "long-vectors":
                return vectors * 2
            case "float64":
                return vectors.astype(np.float64)
            case "batch-dependent":
                noise[:] = len(texts)
            case "nondeterministic":
                noise[:] = next(COUNTER)
            case "opens-differently":
                noise[:] = self.opened
        spoilt = vectors + np.sin(noise + np.arange(32, dtype=np.float32)) * (noise != 0)
        result: FloatArray = (spoilt / np.linalg.norm(spoilt, axis=1, keepdims=True)).astype(np.float32)
        return result

    def fit(
        self, train: Sequence[Any], validation: Sequence[Any], spec: HeadSpec, options: FitOptions
    ) -> Planted:
        if not train and self.ref != "fits-on-nothing":
            raise TrainingError("There is no training example.")
        salt = next(COUNTER) if self.ref == "unseeded-fit" else options.seed
        knowledge = [digest(salt, train).hex()]
        tags = sorted({tag for example in train for tag in getattr(example, "tags", ())})
        if self.ref == "fits-in-place":
            self.knowledge = knowledge
        name = "fit.pkl" if self.ref == "pickle" else "fit.json"
        (options.directory / name).write_text(json.dumps([knowledge, tags]))
        return FITTED[spec.head](self.ref, knowledge, tags)

    def load_fit(self, directory: Path, spec: HeadSpec) -> Planted:
        knowledge, tags = json.loads(next(directory.iterdir()).read_text())
        if self.ref == "forgetful":
            knowledge = ["forgotten"]
        return FITTED[spec.head](self.ref, knowledge, tags)


class PlantedDecoder(Planted):
    def choose(self, items: Sequence[Choice]) -> list[tuple[float, ...]]:
        return [tuple(float(vector(item.context, choice)[0]) for choice in item.choices) for item in items]

    def layer_count(self) -> int:
        return 3

    def hidden_states(
        self,
        sentences: Sequence[Sequence[str | None]],
        layers: Sequence[int],
        *,
        sentence_vector: bool = False,
    ) -> Iterator[tuple[int, FloatArray]]:
        for index in reversed(range(len(sentences))):
            words: list[Any] = list(sentences[index])
            if self.ref == "loses-a-sentence" and len(words) == 2:
                continue
            if self.ref == "no-mask" and None in words:
                raise CapabilityError("It masks nothing.")
            seen = ["same"] if self.ref == "deaf-to-sentences" else [tuple(words)]
            read = [*(seen if sentence_vector else []), *words]
            if self.ref == "shifts-words" and sentence_vector:
                read = [*words, *seen]
            if self.ref == "reads-masks":
                read = ["b" if word is None else word for word in read]
            rows = [[vector(layer, word, self.drawn) for word in read] for layer in layers]
            states = np.array(rows, dtype=np.float32).reshape(len(layers), len(read), 32)
            states[:, [word == "\u200b" for word in read]] = 0
            yield index, states

    drawn = 0

    def word_coverage(self, sentences: Sequence[Sequence[str | None]]) -> list[WordCoverage]:
        if self.ref == "covers-all":
            return [WordCoverage() for _ in sentences]
        return [
            WordCoverage(empty=tuple(number for number, word in enumerate(words) if word == "\u200b"))
            for words in sentences
        ]

    def untrained(self, seed: int) -> PlantedDecoder:
        twin = type(self)(self.ref)
        twin.drawn = 1 if self.ref == "one-twin" else seed
        return twin

    def identity(self) -> Mapping[str, str]:
        return {**super().identity(), **({"drawn": str(self.drawn)} if self.drawn else {})}

    def loglikelihood(self, requests: Sequence[LikelihoodRequest]) -> list[LikelihoodAnswer]:
        sign = 1 if self.ref == "positive-log-probability" else -1
        return [
            LikelihoodAnswer(
                token_logprobs=(sign * abs(float(vector(item)[0])),),
                is_greedy=False,
                byte_length=len(item.continuation.encode()),
            )
            for item in requests
        ]

    def generate(self, prompts: Sequence[Prompt], options: Sequence[GenerateOptions]) -> list[Generated]:
        texts = [write(prompt, item) for prompt, item in zip(prompts, options, strict=True)]
        return texts[:1] if self.ref == "impatient-generation" else texts


def write(prompt: Prompt, options: GenerateOptions) -> Generated:
    """Return a soundly written text: letters of a hash of the prompt, and of the seed where it is sampled."""
    if options.choices or options.regex or options.json_schema:
        whole = '{ "answer": 42 }' if options.json_schema else "42"
        return Generated(text=(options.choices or (whole,))[0], tokens=1, finished=True)
    drawn = digest(prompt, options.seed if options.temperature else None).hex()
    text = drawn[: options.max_tokens]
    ends = [text.index(stop) for stop in options.stop if stop in text]
    text = text[: min(ends)] if ends else text
    return Generated(text=text, tokens=len(text), finished=bool(ends))


class PlantedWriter:
    """Writes and nothing else, in a list and in a stream."""

    def __init__(self, ref: str) -> None:
        self.ref = ref

    def identity(self) -> Mapping[str, str]:
        return {"ref": self.ref}

    def close(self) -> None:
        pass

    def generate(self, prompts: Sequence[Prompt], options: Sequence[GenerateOptions]) -> list[Generated]:
        if self.ref == "first-options-for-all":
            options = list(options[:1]) * len(options)
        return [self.write(prompt, item) for prompt, item in zip(prompts, options, strict=True)]

    def block_characters(self, ability: Ability) -> int | None:
        return 100

    def stream(self, call: Call, blocks: Sequence[Sequence[Any]]) -> Iterator[Answered]:
        first = 0
        for block in blocks:
            if call.stopping():
                return
            prompts, options = map(list, zip(*block, strict=True))
            if self.ref == "deaf-to-options-in-a-stream":
                options = [GenerateOptions(max_tokens=item.max_tokens) for item in options]
            yield Answered(indices=range(first, first + len(block)), answers=self.generate(prompts, options))
            first += len(block)

    def write(self, prompt: Prompt, options: GenerateOptions) -> Generated:
        sound = write(prompt, options)
        plain = write(prompt, GenerateOptions(max_tokens=options.max_tokens))
        constrained = options.choices or options.regex or options.json_schema
        match self.ref:
            case "sound-rejecter" if constrained or options.stop or options.temperature:
                raise CapabilityError("It writes greedy text, and knows no constraint and no stop string.")
            case "rejects-choices" if options.choices:
                raise CapabilityError("It cannot choose.")
            case "rejects-stop" if options.stop:
                raise CapabilityError("It knows no stop string.")
            case "ignores-choices" if options.choices:
                return plain
            case "ignores-regex" if options.regex:
                return plain
            case "ignores-json-schema" if options.json_schema:
                return plain
            case "silently-unconstrained" if constrained:
                return plain
            case "lower-case-choice" if options.choices:
                return replace(sound, text=sound.text.lower())
            case "ignores-stop" if options.stop:
                return plain
            case "keeps-the-stop" if options.stop:
                end = min(plain.text.index(stop) + len(stop) for stop in options.stop)
                return replace(sound, text=plain.text[:end])
            case "cuts-at-tokens" if options.stop:  # of four letters each, the first one always written
                return replace(sound, text=plain.text[: max(4, len(sound.text) // 4 * 4)])
            case "first-stop-only":
                return write(prompt, replace(options, stop=options.stop[:1]))
            case "unfinished-stop" if options.stop:
                return replace(sound, finished=False)
            case "greedy":
                return write(prompt, replace(options, temperature=0.0))
            case "fixed-seed":
                return write(prompt, replace(options, seed=1))
            case "samples-at-zero-by-seed":
                return write(prompt, replace(options, temperature=options.temperature or 1.0))
            case "samples-at-zero" if not constrained and options.temperature == 0:
                return write(prompt, replace(options, temperature=1.0, seed=next(COUNTER)))
            case "unseeded" if options.temperature:
                return write(prompt, replace(options, seed=next(COUNTER)))
        return sound


class PlantedStreamer:
    """Embeds and nothing else, in a stream of one answer a block."""

    def __init__(self, ref: str) -> None:
        self.ref = ref
        self.upset = 0.0

    def identity(self) -> Mapping[str, str]:
        return {"ref": self.ref}

    def close(self) -> None:
        pass

    def embed(self, texts: Sequence[str], *, side: Side, options: EmbedOptions | None = None) -> FloatArray:
        rows = [vector(text, self.upset) for text in texts]
        self.upset = 0.0
        return np.stack(rows) if rows else np.zeros((0, 32), dtype=np.float32)

    def block_characters(self, ability: Ability) -> int | None:
        return next(COUNTER) + 1 if self.ref == "changing-blocks" else 100

    def stream(self, call: Call, blocks: Sequence[Sequence[str]]) -> Iterator[Answered]:
        if self.ref == "streams-for-nothing" and not blocks:
            yield Answered(indices=[0], answers=[vector("")])
        first = 0
        for number, block in enumerate(blocks):
            if call.stopping() and self.ref != "deaf-streamer":
                return
            rows = list(self.embed(block, side="query"))
            if self.ref == "other-in-a-stream":
                rows = [vector(text, "other") for text in block]
            try:
                if not (self.ref == "loses-a-block" and number == 1):
                    yield Answered(indices=range(first, first + len(block)), answers=rows)
            except GeneratorExit:
                self.upset += self.ref == "upset-by-closing"
                raise
            if self.ref == "streams-twice" and number == 1:
                yield Answered(indices=[first], answers=rows[:1])
            first += len(block)


class PlantedClassifier(Planted):
    def classify(self, inputs: Sequence[TextInput], labels: Sequence[str]) -> FloatArray:
        asked = sorted(labels) if self.ref == "ignores-label-order" else labels
        scores = [[float(vector(item, label, self.knowledge)[0]) for label in asked] for item in inputs]
        return np.array(scores, dtype=np.float32).reshape(len(inputs), len(labels))


class PlantedTagger(Planted):
    def tag(self, sentences: Sequence[Sequence[str]]) -> list[list[str]]:
        if self.ref == "unknown-tag":
            return [["FOREIGN"] * len(sentence) for sentence in sentences]
        tagged = [[self.tag_of(token) for token in sentence] for sentence in sentences]
        return [tags[:-1] for tags in tagged] if self.ref == "loses-a-tag" else tagged

    def tag_of(self, token: str) -> str:
        return self.tags[digest(token, self.knowledge)[0] % len(self.tags)]


class PlantedExtractor(Planted):
    def extract_spans(self, items: Sequence[SpanQuestion]) -> list[SpanAnswer]:
        return [self.span_of(item) for item in items]

    def span_of(self, item: SpanQuestion) -> SpanAnswer:
        context = item.context.rstrip()
        first = len(context) - len(context.lstrip())
        if self.ref == "trims-letters" and first:
            first += 1
        if first >= len(context):
            return SpanAnswer(text="", start=-1, end=-1, score=0.0)
        start = first + digest(item, self.knowledge)[0] % (len(context) - first)
        text = context[start : start + 3]
        shift = 1 if self.ref == "shifted-span" else 0
        return SpanAnswer(text=text, start=start + shift, end=start + len(text) + shift, score=1.0)


class PlantedDualEncoder(Planted):
    def seen(self, side: Side) -> list[Any]:
        if self.ref == "forgets-passages" and side == "passage":
            return [self.opened]
        return [side, self.knowledge]


FITTED: dict[Head, type[Planted]] = {
    Head.CLASSIFICATION: PlantedClassifier,
    Head.TAGGING: PlantedTagger,
    Head.SPAN_EXTRACTION: PlantedExtractor,
    Head.DUAL_ENCODER: PlantedDualEncoder,
}

PLANTED = AdapterEntry(
    name="planted",
    target="planted:open_planted",
    describe="planted:describe",
    options="planted:PlantedOptions",
    summary="For testing the contract.",
)

REJECTING = replace(PLANTED, options="harness.models.options:AdapterOptions")
"""The same adapter without options of sampling."""
