"""Vectors of texts from a network's hidden states, and the methods of adapters whose models write."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file

from harness import AdapterError, CapabilityError, UsageError, near_names
from harness.models import (
    Call,
    EmbedOptions,
    FloatArray,
    Generated,
    GenerateOptions,
    LikelihoodAnswer,
    LikelihoodRequest,
    Prompt,
    Side,
)
from harness_hf.inference.pieces import Encoded, SubwordCounting, subword_ids
from harness_hf.inference.session import CHUNK, Inputs, ModelSession, Parts, Procedure
from harness_hf.inference.word_vectors import WordVectors, pool, read_layer, resolve_layer
from harness_hf.model_folder import DenseModule, Pooling

VectorModule = Callable[[torch.Tensor], torch.Tensor]


def unit_rows(vectors: torch.Tensor) -> torch.Tensor:
    """Return the vectors divided by their lengths."""
    return torch.nn.functional.normalize(vectors, dim=-1)


def open_dense(folder: Path, module: DenseModule, device: torch.device) -> VectorModule:
    """Return a linear layer and its activation, in float32; raises `AdapterError` for weights that do not fit."""
    file = folder / module.folder / "model.safetensors"
    if not file.is_file():
        raise AdapterError(
            f"The model folder {str(folder)!r} has no '{module.folder}/{file.name}'; weights are read from "
            "safetensors files only.",
            hint="Load it with sentence-transformers and call save_pretrained, or pass -o pooling=mean.",
        )
    try:
        weights = load_file(file)
    except (SafetensorError, OSError) as error:
        raise AdapterError(f"The file {str(file)!r} is not a safetensors file.") from error
    weight, bias = weights.get("linear.weight"), weights.get("linear.bias")
    if weight is None or weight.shape[0] != module.width or set(weights) - {"linear.weight", "linear.bias"}:
        raise AdapterError(
            f"The file {str(file)!r} does not hold one linear layer of {module.width} outputs, "
            "as its config.json says."
        )
    placed = weight.to(device, torch.float32)
    added = None if bias is None else bias.to(device, torch.float32)
    activation = getattr(torch.nn, module.activation)()
    return lambda vectors: activation(torch.nn.functional.linear(vectors.to(device), placed, added))


@dataclass(frozen=True, slots=True, kw_only=True)
class EmbedPlan:
    """How a text becomes a vector, decided from the request, the options and the folder."""

    pooling: tuple[Pooling, ...]
    """Ways of pooling, whose vectors are joined."""
    layer: int
    limit: int
    """Pieces a text is cut at, special pieces included."""
    prefix: str
    pools_prefix: bool = True
    modules: tuple[DenseModule | None, ...] = ()
    """What follows pooling; None divides a vector by its length."""
    dimensions: int | None = None
    """How many of the first numbers of a vector are kept."""

    def width(self, states: int) -> int:
        """Return the length of a vector that is made of states of this length."""
        dense = [module.width for module in self.modules if module is not None]
        length = dense[-1] if dense else states * len(self.pooling)
        return min(length, self.dimensions or length)


class TextVectors(SubwordCounting, WordVectors):
    """Reads an opened model's hidden states; adapters of bare models inherit `embed` and `hidden_states`."""

    _session: ModelSession

    def embed(self, texts: Sequence[str], *, side: Side, options: EmbedOptions | None = None) -> FloatArray:
        """Return float32 vectors of shape (texts, dimension) with unit rows."""
        call = Call(ability="embed", arguments={"side": side, "options": options})
        width = self.plan(side, options or EmbedOptions()).width(self._session.width)
        return self._rows(call, texts, CHUNK, width)

    def procedure(self, call: Call) -> Procedure:
        """Return how a call's requests are answered: here those of `embed`."""
        if call.ability != "embed":
            return super().procedure(call)
        session = self._session
        plan = self.plan(call.arguments["side"], call.arguments.get("options") or EmbedOptions())
        if "pooler" in plan.pooling and plan.layer != session.depth:
            raise UsageError(
                f"Pooling 'pooler' reads the last layer, {session.depth}; layer {plan.layer} was asked for."
            )
        skipped = 0 if plan.pools_prefix else self._prefix_size(plan.prefix)
        modules = [_open_module(session, module) for module in plan.modules]

        def forward(inputs: Inputs) -> FloatArray:
            vectors = self._pooled(inputs, plan, skipped)
            for module in modules:
                vectors = module(vectors)
            unit: FloatArray = unit_rows(vectors[:, : plan.dimensions]).cpu().numpy()
            return unit

        def prepare(texts: Sequence[str]) -> list[Encoded]:
            return session.encode([session.cased(plan.prefix + text) for text in texts], None, plan.limit)

        return row_procedure(session, call, prepare, forward, "vectors")

    def _pooled(self, inputs: Inputs, plan: EmbedPlan, skipped: int) -> torch.Tensor:
        session = self._session
        if plan.pooling == ("pooler",):
            pooled: torch.Tensor = session.backbone(**inputs).pooler_output.float()
            return pooled
        states = read_layer(session.backbone, inputs, plan.layer, session.depth)
        mask = inputs["attention_mask"].to(states.device)
        return torch.cat([pool(states, mask, way, skipped) for way in plan.pooling], dim=-1)

    def plan(self, side: Side, options: EmbedOptions) -> EmbedPlan:
        """Return how a text of `side` becomes a vector; raises `UsageError` for what the model does not have.

        What follows pooling in the model folder was trained on its own pooling of the last layer, so it is used with
        that only.
        """
        session, files = self._session, self._session.sentence_files
        own_limit = session.options.max_length or files.max_length
        layer = resolve_layer(
            session.options.layer if options.layer is None else options.layer, session.depth
        )
        pooling = self._pooling(options.pooling)
        is_own = pooling == files.pooling and layer == session.depth
        return EmbedPlan(
            pooling=pooling,
            layer=layer,
            limit=session.length_limit(options.max_length or own_limit),
            prefix=self._prefix(side) if options.prefixes else "",
            pools_prefix=files.pools_prompt,
            modules=files.modules if is_own else (),
            dimensions=files.dimensions if is_own else None,
        )

    def text_room(self, texts: int, options: EmbedOptions | None = None) -> int | None:
        """Return how many pieces a query has room for after its prefix; see `CutsTexts`."""
        plan = self.plan("query", options or EmbedOptions())
        # A piece may hold the end of the prefix and the beginning of a text, so a word follows it.
        alone, prefixed = subword_ids(self._session, ["a", plan.prefix + "a"])
        return plan.limit - self._session.whole_text.size - len(prefixed) + len(alone)

    def _prefix_size(self, prefix: str) -> int:
        """Return how many pieces of a text belong to its prefix, the special ones before it included."""
        if not prefix:
            return 0
        (ids,) = subword_ids(self._session, [self._session.cased(prefix)])
        return len(self._session.whole_text.before) + len(ids)

    def _pooling(self, requested: Pooling | None) -> tuple[Pooling, ...]:
        """Return the pooling of the request, the options or the model folder, where it is possible."""
        files = self._session.sentence_files
        pooling = requested or self._session.options.pooling
        if self.reads_left_to_right and pooling in ("cls", "pooler"):
            # The first token of a decoder has seen nothing of the text.
            raise UsageError(
                f"Pooling {pooling!r} is for encoders; {self._session.ref!r} is a decoder.",
                hint="Use mean or last.",
            )
        if pooling is not None:
            return (self._require_pooler(pooling),)
        if files.unsupported:
            raise AdapterError(
                f"The model {self._session.ref!r} asks for {files.unsupported} to embed, "
                "which this adapter does not have.",
                hint="Pass -o pooling=mean (or cls, last, pooler).",
            )
        return files.pooling or ("mean",)

    def _require_pooler(self, pooling: Pooling) -> Pooling:
        """Return `pooling`; raises `UsageError` for 'pooler' where its weights are not trained."""
        if pooling == "pooler" and not self._session.has_pooler:
            raise UsageError(
                f"{self._session.ref!r} has no trained pooler weights, which pooling 'pooler' needs.",
                hint="Pass -o pooling=mean or -o pooling=cls.",
            )
        return pooling

    def _prefix(self, side: Literal["query", "passage"]) -> str:
        options, files = self._session.options, self._session.sentence_files
        prefix = options.query_prefix if side == "query" else options.passage_prefix
        prompt = options.query_prompt if side == "query" else options.passage_prompt
        if prompt is None:
            return files.prefix(side) if prefix is None else prefix
        if prompt not in files.prompts:
            near = near_names(prompt, files.prompts)
            prompts = f"Known: {', '.join(sorted(files.prompts)) or 'none'}."
            raise UsageError(
                f"The model {self._session.ref!r} has no prompt named {prompt!r}.",
                hint=f"Did you mean {near[0]!r}? {prompts}" if near else prompts,
            )
        return files.prompts[prompt]


def _open_module(session: ModelSession, module: DenseModule | None) -> VectorModule:
    return unit_rows if module is None else open_dense(session.folder, module, session.device)


def row_procedure(
    session: ModelSession,
    call: Call,
    prepare: Callable[[Sequence[Any]], Sequence[Encoded]],
    forward: Callable[[Inputs], FloatArray],
    values_name: str,
) -> Procedure:
    """Return a procedure whose requests are one sequence each, answered by one row of what `forward` returns."""

    def answer(encoded: Sequence[Encoded]) -> Iterator[tuple[list[int], list[FloatArray]]]:
        for rows, values in session.run(encoded, forward, ability=call.ability, stopping=call.stopping):
            session.require_finite(values, values_name)
            yield rows, list(values)

    return Procedure(prepare=prepare, answer=answer)


class TextWriter(TextVectors):
    """Base of adapters that score continuations and write texts."""

    def loglikelihood(self, requests: Sequence[LikelihoodRequest]) -> list[LikelihoodAnswer]:
        """Return per-token log-probabilities of every continuation."""
        return self._answers(Call(ability="loglikelihood"), requests, CHUNK)

    def generate(self, prompts: Sequence[Prompt], options: Sequence[GenerateOptions]) -> list[Generated]:
        """Return one text per prompt: greedy, or sampled by the request's own seed.

        A text ends at the end token, at a stop string or at ``max_tokens``. Beams, penalties and lengths of the
        checkpoint's generation config are not used. Of `choices` the likeliest is returned, the first at ties.
        Raises `CapabilityError` for another constraint, and for a conversation where there is no chat template.
        """
        if len(prompts) != len(options):
            raise UsageError(
                f"There are {len(prompts)} prompts and {len(options)} options; one each is expected."
            )
        return self._answers(Call(ability="generate"), list(zip(prompts, options, strict=True)), CHUNK)


def check_writing(options: GenerateOptions, session: ModelSession) -> None:
    """Raise `CapabilityError` for a constraint that no adapter here can keep, `UsageError` for senseless options."""
    for name, constraint in (("regular expression", options.regex), ("JSON schema", options.json_schema)):
        if constraint is not None:
            raise CapabilityError(
                f"The adapter {session.adapter!r} cannot constrain the text of {session.ref!r} by a {name}.",
                hint="The adapter 'vllm' can: serve the model and give it as 'vllm:...'.",
            )
    if options.choices is not None and not options.choices:
        raise UsageError("The list of choices is empty; expected at least one.")
    if options.max_tokens < 1:
        raise UsageError(f"max_tokens must be at least 1, got {options.max_tokens}.")
    if not (math.isfinite(options.temperature) and options.temperature >= 0):
        raise UsageError(f"temperature must be at least 0 (greedy), got {options.temperature}.")
    if not 0 < options.top_p <= 1:
        raise UsageError(f"top_p must be greater than 0 and at most 1, got {options.top_p}.")
    if "" in options.stop:
        raise UsageError("A stop string is empty; expected at least one character.")


def choose_likeliest(
    owners: Sequence[int],
    prompts: int,
    scored: Iterable[tuple[Sequence[int], Sequence[float]]],
    answer: Callable[[int], Generated],
) -> Iterator[tuple[list[int], list[Generated]]]:
    """Yield (numbers of prompts, the likeliest of their choices, the first at ties) as choices are scored.

    Args:
        owners: The number of the prompt that each choice is one of.
        prompts: The number of all prompts.
        scored: Numbers of choices with their log-probabilities.
        answer: From the number of a choice to what is returned for it.
    """
    pending = Parts(owners, prompts)
    choices_of: dict[int, list[int]] = {}
    for number, owner in enumerate(owners):
        choices_of.setdefault(owner, []).append(number)
    totals: dict[int, float] = {}
    for numbers, values in scored:
        totals.update(zip(numbers, values, strict=True))
        complete = pending.finish(numbers)
        yield complete, [answer(max(choices_of[owner], key=totals.__getitem__)) for owner in complete]
