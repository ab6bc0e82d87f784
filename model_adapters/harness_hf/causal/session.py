"""An opened decoder: its tokenizer, its network, and logits at chosen positions."""

from __future__ import annotations

import hashlib
import inspect
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
import transformers

from harness import AdapterError, UsageError
from harness.models import THINKING_SWITCHES, Markers
from harness_hf.causal.cache_rows import CacheCost, supports_rows
from harness_hf.causal.prefix import CACHE_FACTOR
from harness_hf.causal.tokens import CausalTokens
from harness_hf.inference.batching import Encoded, TokenBudget, pad_batch
from harness_hf.inference.memory import free_memory
from harness_hf.inference.session import Inputs, ModelSession
from harness_hf.inference.template import SpecialTokens
from harness_hf.loading import (
    first_line,
    open_network,
    open_tokenizer,
    placing,
    require_fitting_vocabulary,
    require_weights,
)
from harness_hf.options import CausalOptions

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
