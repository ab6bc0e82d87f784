"""Tokens of decoders: prompts, conversations, and continuations with their boundary."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from harness import AdapterError
from harness.models import Prompt
from harness_hf.inference.template import read_affixes


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
        if not texts:
            return []
        encoded = self._tokenizer(
            list(texts), add_special_tokens=False, return_attention_mask=False, verbose=False
        )
        room = None if limit is None else max(1, limit - len(self.after))
        sequences = ([*self._with_special(ids)[:room], *self.after] for ids in encoded["input_ids"])
        return [self._with_start(ids) for ids in sequences]

    def encode_prompts(self, prompts: Sequence[Prompt]) -> list[list[int]]:
        """Return the tokens of texts and conversations; raises `CapabilityError` without a chat template."""
        rendered = [self._render(prompt) for prompt in prompts]
        if not rendered:
            return []
        encoded = self._tokenizer(
            rendered, add_special_tokens=False, return_attention_mask=False, verbose=False
        )
        return [
            self._with_start(self._with_special(ids) if isinstance(prompt, str) else ids)
            for prompt, ids in zip(prompts, encoded["input_ids"], strict=True)
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
