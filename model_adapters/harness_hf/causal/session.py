"""An opened decoder: its tokenizer and tokens, its network, and logits at chosen positions."""

from __future__ import annotations

import hashlib
import inspect
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
import transformers

from harness import AdapterError, UsageError
from harness.models import THINKING_SWITCHES, Markers, Prompt
from harness_hf.causal.prefix import CACHE_FACTOR, CacheCost, supports_rows
from harness_hf.inference.pieces import (
    Encoded,
    SpecialTokens,
    TokenBudget,
    free_memory,
    pad_batch,
    plain_pieces,
    read_affixes,
)
from harness_hf.inference.session import Inputs, ModelSession
from harness_hf.loading import (
    first_line,
    open_network,
    open_tokenizer,
    placing,
    require_fitting_vocabulary,
    require_weights,
)
from harness_hf.options import CausalOptions


@dataclass(frozen=True, slots=True)
class PromptTokens:
    """A prompt as the model reads it."""

    ids: list[int]
    truncated: bool
    """Whether tokens were cut off from the left."""


@dataclass(frozen=True, slots=True)
class ScoredTokens:
    """A context and its continuation as the model reads them."""

    ids: list[int]
    start: int
    """Index of the continuation's first token, at least 1."""
    truncated: bool
    straddles: bool


class CausalTokens:
    """Turns texts and conversations into tokens.

    A text starts with special tokens exactly where the tokenizer's own configuration puts them, and never
    twice; those that it would put after a text are omitted where the model continues the text.
    """

    def __init__(self, *, ref: str, tokenizer: Any, limit: int, render: Callable[[Prompt], str]) -> None:
        self._ref = ref
        self._tokenizer = tokenizer
        self._limit = limit
        self._render = render
        affixes = read_affixes(tokenizer, ref)
        self.before = list(affixes.before)
        self.after = list(affixes.after)
        # Special tokens are put in here. The step that adds them also trims spaces off the offsets, which
        # would hide a token that holds the end of a context.
        tokenizer.backend_tokenizer.post_processor = None

    def encode(self, texts: Sequence[str], limit: int | None = None) -> list[list[int]]:
        """Return the tokens of texts that nothing continues, at least one each, their ends cut above `limit`.

        They end with the special tokens that the tokenizer puts after a text: embedding models read the last.
        """
        room = None if limit is None else max(1, limit - len(self.after))
        sequences = (
            [*self._with_special(ids)[:room], *self.after] for ids in plain_pieces(self._tokenizer, texts)
        )
        return [self._with_start(ids) for ids in sequences]

    def encode_prompts(self, prompts: Sequence[Prompt]) -> list[list[int]]:
        """Return the tokens of texts and conversations; raises `CapabilityError` without a chat template."""
        rendered = [self._render(prompt) for prompt in prompts]
        return [
            self._with_start(self._with_special(ids) if isinstance(prompt, str) else ids)
            for prompt, ids in zip(prompts, plain_pieces(self._tokenizer, rendered), strict=True)
        ]

    def cut_prompt(self, ids: list[int], max_tokens: int) -> PromptTokens:
        """Return a prompt that leaves room for `max_tokens`; raises `AdapterError` where there is no room."""
        room = self._limit - max_tokens
        if room < 1:
            raise AdapterError(
                f"The model {self._ref!r} takes {self._limit} tokens, so it cannot write {max_tokens} after "
                "a prompt.",
                hint="Ask for fewer tokens.",
            )
        return PromptTokens(self._keep_end(ids, room), len(ids) > room)

    def encode_requests(self, contexts: Sequence[Prompt], continuations: Sequence[str]) -> list[ScoredTokens]:
        """Return the tokens of contexts and continuations, tokenised together as the model would read them.

        A token that holds the end of the context and the beginning of the continuation belongs to the
        continuation. A continuation without a context is scored after the beginning-of-text token,
        or the end-of-text token where the tokenizer has no other. Contexts are cut from the left to the
        context window. Raises `AdapterError` for a continuation without tokens, or longer than the window.
        """
        if not contexts:
            return []
        rendered = [self._render(context) for context in contexts]
        texts = [before + after for before, after in zip(rendered, continuations, strict=True)]
        encoded = self._tokenizer(
            texts,
            add_special_tokens=False,
            return_attention_mask=False,
            return_offsets_mapping=True,
            verbose=False,
        )
        rows = zip(encoded["input_ids"], encoded["offset_mapping"], strict=True)
        return [
            self._scored(ids, offsets, contexts[row], len(rendered[row]), continuations[row])
            for row, (ids, offsets) in enumerate(rows)
        ]

    def _scored(
        self,
        ids: list[int],
        offsets: Sequence[tuple[int, int]],
        context: Prompt,
        boundary: int,
        continuation: str,
    ) -> ScoredTokens:
        start = len(ids)
        while start and offsets[start - 1][1] > boundary:
            start -= 1
        count = len(ids) - start
        if not count:
            raise AdapterError(
                f"The continuation {continuation!r} has no tokens for {self._ref!r}, so it has no probability.",
                hint="Give every choice a text that the tokenizer keeps.",
            )
        straddles = offsets[start][0] < boundary
        sequence = self._with_special(ids) if isinstance(context, str) else list(ids)
        if len(sequence) == count:
            sequence = [self._start_token(), *sequence]
        # The last token is predicted, never read.
        room = self._limit + 1
        if count > room - 1:
            raise AdapterError(
                f"The continuation {continuation[:40]!r}... has {count} tokens, more than the {self._limit} "
                f"that {self._ref!r} takes."
            )
        tail = self._keep_end(sequence, room, least=count)
        return ScoredTokens(tail, len(tail) - count, len(sequence) > room, straddles)

    def _with_special(self, ids: list[int]) -> list[int]:
        """Return the tokens with the special ones before them, unless the text itself begins with those."""
        size = len(self.before)
        return list(ids) if ids[:size] == self.before else [*self.before, *ids]

    def _with_start(self, ids: list[int]) -> list[int]:
        return ids or [self._start_token()]

    def _start_token(self) -> int:
        for token in (self._tokenizer.bos_token_id, self._tokenizer.eos_token_id):
            if token is not None:
                return int(token)
        raise AdapterError(
            f"The tokenizer of {self._ref!r} has no beginning-of-text or end-of-text token to begin an empty "
            "context with.",
            hint="Give a context, or name the token in tokenizer_config.json.",
        )

    def _keep_end(self, ids: list[int], room: int, least: int = 1) -> list[int]:
        """Return at most `room` tokens from the end, behind the special ones where both fit."""
        if len(ids) <= room:
            return ids
        size = len(self.before)
        if size and ids[:size] == self.before and room - size >= least:
            return [*self.before, *ids[len(ids) - (room - size) :]]
        return ids[len(ids) - room :]


TRAINING_OPTIONS = ("mixed_precision", "train_batch_tokens", "train_parts")
"""Options that change what fine-tuning makes, and no answer of the bare model."""

LOGITS_AT_ONCE = 2**25
"""Numbers of one block of logits: 128 MiB in float32, 134 positions of a vocabulary of 250,000."""


class CausalSession(ModelSession):
    """Owns the tokenizer and the network of a decoder."""

    options: CausalOptions
    adapter = "hf-causal"
    answer_options = ("pooling",)
    block_factor = 32
    """Larger than for encoders: the more prompts there are, the more beginnings are shared and rows are refilled."""
    block_device = "cuda"
    """A CPU's batches are small, but a prompt with its examples is as long as on a GPU."""

    def __init__(self, *, ref: str, folder: Path, options: CausalOptions, network: Any = None) -> None:
        """Open the folder; a `network` that is open already is used as it is."""
        tokenizer = open_tokenizer(
            folder, ref, options, reason="the boundary of a continuation needs offsets"
        )
        self._template = _read_template(options.chat_template)
        _require_variables(ref, options, self._template or tokenizer.chat_template)
        if network is None:
            network, information = open_network(
                transformers.AutoModelForCausalLM, folder, ref, options, placing(options, folder)
            )
            require_weights(ref, sorted(information["missing_keys"]))
        require_fitting_vocabulary(ref, tokenizer, network, added=False)
        super().__init__(ref=ref, folder=folder, options=options, tokenizer=tokenizer, network=network)
        self.window = self.length_limit()
        """The most tokens that the model reads at once."""
        self.tokens = CausalTokens(
            ref=ref,
            tokenizer=tokenizer,
            limit=self.window,
            render=lambda prompt: self.render(prompt, self._template, options.template_variables()),
        )
        self.single = SpecialTokens.around(self.tokens.before)
        # The layers of a cache lie on the devices of theirs; all of them take an index from the CPU.
        self.index_device = torch.device("cpu") if options.device_map else self.device
        self.pad_id = padding_token(tokenizer, network)
        self._takes_positions = "position_ids" in inspect.signature(network.forward).parameters
        self._hidden: dict[tuple[Markers, ...], frozenset[int]] = {}
        self._characters: dict[tuple[Markers, ...], dict[int, frozenset[str]]] = {}
        cache = self._probe()
        self.caches_rows = supports_rows(cache)
        # Texts with recurrent states are run as a whole at every step, so their tokens are what fills a batch.
        self.row_cost, self.cache_budget = CacheCost(((None, 1),)), self.budget
        if self.caches_rows:
            self.row_cost = CacheCost.measure(cache)
            cached = self.row_cost.row(1)
            self.budget = TokenBudget(ref, self.batch_tokens(CACHE_FACTOR * cached))
            room = (options.batch_tokens or 0) * cached or free_memory(self.device)
            self.cache_budget = TokenBudget(ref, room, "bytes of cache")

    def own_identity(self) -> Mapping[str, str]:
        """Return the digest of the chat template that was set, and training options that were."""
        usual = type(self.options).model_fields
        changed = {
            f"option.{name}": str(value)
            for name in TRAINING_OPTIONS
            if (value := getattr(self.options, name)) != usual[name].default
        }
        return {
            "chat_template": hashlib.sha256((self._template or "").encode()).hexdigest(),
            **changed,
            **self.options.reasoning_identity(),
        }

    def encode(self, texts: Sequence[str], pairs: Sequence[str] | None, max_length: int) -> list[Encoded]:
        """Return the tokens of texts, the ends cut off above `max_length`."""
        assert pairs is None
        return [Encoded(ids) for ids in self.tokens.encode(texts, max_length)]

    @property
    def whole_text(self) -> SpecialTokens:
        """The special tokens around a text that becomes a vector."""
        return SpecialTokens.around(self.tokens.before, self.tokens.after)

    def pad(self, batch: Sequence[Encoded]) -> Inputs:
        """Return the model inputs of a batch, padded on the right to its longest sequence."""
        return pad_batch(batch, self.pad_id, self._inputs)

    def end_tokens(self) -> frozenset[int]:
        """Return the tokens that end a text: those of the generation config and of the tokenizer."""
        declared = self.network.generation_config.eos_token_id
        several = declared if isinstance(declared, list) else [declared]
        return frozenset(int(token) for token in (*several, self.tokenizer.eos_token_id) if token is not None)

    def decode_marked(self, ids: Sequence[int], markers: Sequence[Markers]) -> str:
        """Return the text of tokens; special ones are omitted, except those that the marks of reasoning consist of."""
        with self.tokenizing:
            hidden = self._hidden_tokens(tuple(markers))
            visible = [token for token in ids if token not in hidden]
            text = self.tokenizer.decode(
                visible, skip_special_tokens=False, clean_up_tokenization_spaces=False
            )
        return str(text)

    def may_end_with(self, token: int, ends: Collection[str], markers: Sequence[Markers]) -> bool:
        """Return whether one of the characters `ends` may become the end of a text by its newest token.

        The token's own text decides, which is decoded once per token. A part of a character may complete any,
        and a space may be written before any token.
        """
        characters = self._characters.setdefault(tuple(markers), {})
        if token not in characters:
            characters[token] = frozenset(self.decode_marked([token], markers)) | {" "}
        return "\ufffd" in characters[token] or not characters[token].isdisjoint(ends)

    def notices(self) -> list[str]:
        """Return the sentences of every session, and one where texts that are written found too little memory."""
        shortages = self.cache_budget.notices() if self.cache_budget is not self.budget else []
        return [*super().notices(), *shortages]

    def _hidden_tokens(self, markers: tuple[Markers, ...]) -> frozenset[int]:
        if markers not in self._hidden:
            marks = [mark for marker in markers for mark in (marker.start, marker.end)]
            self._hidden[markers] = frozenset(
                number
                for number, token in self.tokenizer.added_tokens_decoder.items()
                if token.special and not any(token.content in mark for mark in marks)
            )
        return self._hidden[markers]

    def forward(
        self,
        inputs: Mapping[str, torch.Tensor],
        rows: Sequence[int],
        columns: Sequence[int],
        *,
        past: Any = None,
        keep_cache: bool = False,
    ) -> tuple[Iterator[tuple[int, torch.Tensor]], Any]:
        """Run the network once; return its logits at the positions (rows, columns), and its cache.

        The logits come as (number of the first position, float32 block of shape (positions, vocabulary)), at
        most `LOGITS_AT_ONCE` numbers each. They are what the network itself computes: its own output layer is
        given the chosen positions only, so scaling and capping after it are the model's.
        """
        model_inputs = {name: tensor.to(self.device) for name, tensor in inputs.items()}
        if not self._takes_positions:
            model_inputs.pop("position_ids", None)
        if past is not None:
            model_inputs["past_key_values"] = past
        chosen: list[torch.Tensor] = []
        at_once = max(1, LOGITS_AT_ONCE // int(self.network.config.get_text_config().vocab_size))
        index = (
            torch.tensor(rows, device=self.index_device),
            torch.tensor(columns, device=self.index_device),
        )

        def choose(module: Any, arguments: tuple[torch.Tensor, ...]) -> tuple[torch.Tensor, ...]:
            states = arguments[0]
            chosen.append(states[index] if rows else states.reshape(-1, states.shape[-1])[:0])
            return (chosen[0][None, :at_once],)

        output = self._with_head(choose, model_inputs, keep_cache)
        first = output.logits[0]
        cache = output.get("past_key_values")
        return self._blocks(first, chosen[0], at_once, model_inputs["input_ids"][:1, :1]), cache

    def _blocks(
        self, first: torch.Tensor, states: torch.Tensor, at_once: int, token: torch.Tensor
    ) -> Iterator[tuple[int, torch.Tensor]]:
        """Yield the logits of the first positions, then those of the others.

        These come through a run over a single token whose output layer is given the waiting states instead.
        """
        yield 0, first.float()
        del first
        for start in range(at_once, len(states), at_once):
            block = states[None, start : start + at_once]
            output = self._with_head(lambda *_, block=block: (block,), {"input_ids": token}, False)
            yield start, output.logits[0].float()

    def _with_head(self, change: Callable[..., Any], inputs: Mapping[str, Any], keep_cache: bool) -> Any:
        """Run the network with `change` applied to what its output layer is given."""
        hook = self.network.get_output_embeddings().register_forward_pre_hook(change)
        try:
            return self.network(**inputs, use_cache=keep_cache, return_dict=True)
        finally:
            hook.remove()

    def _probe(self) -> Any:
        """Return the cache of one token; raises `AdapterError` for an output layer of another shape."""
        if self.network.get_output_embeddings() is None:
            raise AdapterError(f"The model {self.ref!r} has no output layer, so it gives no probabilities.")
        token = {"input_ids": torch.tensor([[self.pad_id]])}
        try:
            with torch.inference_mode():
                blocks, cache = self.forward(token, [0, 0], [0, 0], keep_cache=True)
                shapes = [tuple(block.shape) for _, block in blocks]
        except Exception as error:
            raise AdapterError(f"The model {self.ref!r} cannot be run: {first_line(error)}") from error
        if [len(shape) for shape in shapes] != [2] * len(shapes) or sum(shape[0] for shape in shapes) != 2:
            raise AdapterError(f"The output layer of {self.ref!r} is not one that this adapter knows.")
        return cache


def padding_token(tokenizer: Any, network: Any) -> int:
    """Return the token that pads batches: the padding token, or another where the network has no row for it."""
    names = (tokenizer.pad_token_id, tokenizer.eos_token_id, tokenizer.bos_token_id, 0)
    size = int(network.config.get_text_config().vocab_size)
    return next(int(token) for token in names if token is not None and token < size)


def _require_variables(ref: str, options: CausalOptions, template: Any) -> None:
    """Raise `UsageError` where the chat template reads none of the variables that the options for reasoning set."""
    texts = template.values() if isinstance(template, Mapping) else [template or ""]
    variables = options.template_variables()
    for option, names in {"thinking": THINKING_SWITCHES, "reasoning_effort": ("reasoning_effort",)}.items():
        if names[0] in variables and not any(name in text for name in names for text in texts):
            raise UsageError(
                f"The chat template of {ref!r} has no {' or '.join(names)}, so -o {option}={getattr(options, option)} "
                "would change nothing.",
                hint=f"Omit -o {option}, or give a template that reads it with -o chat_template=FILE.",
            )


def _read_template(file: Path | None) -> str | None:
    """Return the chat template in a file; raises `UsageError` where it cannot be read."""
    if file is None:
        return None
    try:
        return file.expanduser().read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"The chat template {str(file)!r} cannot be read: {error}.") from error
