"""Texts as token ids, from the model's own tokenizer in this process or from the server."""

from __future__ import annotations

import string
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Protocol

from harness import AdapterError, MissingExtraError
from harness_vllm.answers import Tokens, read_answer
from harness_vllm.client import StatusError
from harness_vllm.session import Endpoints

PROBE = f"The harness compares: कखग, Привет, 123 été. {' '.join(string.printable)}"
"""A text that different tokenizers split differently."""
REMEMBERED = 4096
"""Contexts whose tokens are kept, so that the server is not asked again for every choice."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Boundary:
    """The tokens of a context and its continuation, tokenised together."""

    ids: tuple[int, ...]
    start: int
    """Index of the first token that belongs to the continuation; never 0."""
    straddles: bool
    truncated: bool = False


class Tokenizer(Protocol):
    """Turns texts into token ids."""

    remote: bool
    """Whether every text costs a request."""
    prefix: tuple[int, ...]
    """The tokens before every text: the BOS token, where the tokenizer puts one."""

    unknown: int | None
    """The unknown token; None where it is not known."""

    def pieces(self, text: str) -> tuple[int, ...]:
        """Return the ids of a text alone; none for an empty one."""

    def encode(self, text: str) -> tuple[int, ...]:
        """Return the ids of a text after the `prefix`; never empty."""

    def split(self, context: str, continuation: str) -> Boundary:
        """Return the ids of both texts together, and where the continuation begins."""


class _PrefixedTokenizer:
    """Base of tokenizers that put the `prefix` before every text, unless the text itself begins with it."""

    prefix: tuple[int, ...]

    def pieces(self, text: str) -> tuple[int, ...]:
        """Return the ids of a text alone."""
        raise NotImplementedError

    def encode(self, text: str) -> tuple[int, ...]:
        """Return the ids of a text; raises `AdapterError` where it has none and no token begins a text."""
        return self._with_prefix(self.pieces(text)) or (self._start_token(),)

    def _start_token(self) -> int:
        raise NotImplementedError

    def _with_prefix(self, ids: Sequence[int]) -> tuple[int, ...]:
        has_prefix = tuple(ids[: len(self.prefix)]) == self.prefix
        return tuple(ids) if has_prefix else (*self.prefix, *ids)

    def _boundary(self, ids: Sequence[int], first: int, continuation: str, *, straddles: bool) -> Boundary:
        """Return the ids of a context and a continuation that begins at the id with the number `first`."""
        if first == len(ids):
            raise AdapterError(
                f"The continuation {continuation!r} has no token of its own, so it cannot be scored."
            )
        sequence = self._with_prefix(ids)
        if first == 0 and len(sequence) == len(ids):
            sequence = (self._start_token(), *sequence)
        return Boundary(ids=sequence, start=len(sequence) - len(ids) + first, straddles=straddles)


class LocalTokenizer(_PrefixedTokenizer):
    """The tokenizer in a model folder, run in this process."""

    remote = False

    def __init__(self, source: str, *, trust_remote_code: bool = False, revision: str | None = None) -> None:
        tokenizer = _load(source, trust_remote_code=trust_remote_code, revision=revision)
        with_special = list(tokenizer("a").input_ids)
        without = list(tokenizer("a", add_special_tokens=False).input_ids)
        self.prefix = _prefix(with_special, without)
        self._backend: Any = tokenizer.backend_tokenizer
        self._backend.no_truncation()
        self._backend.no_padding()
        # Special tokens are put in here. The step that adds them also trims spaces off the offsets, which would
        # hide a token that holds the end of a context.
        self._backend.post_processor = None
        self._source = source
        self.unknown: int | None = tokenizer.unk_token_id
        bos = tokenizer.bos_token_id
        self._first: int | None = bos if bos is not None else tokenizer.eos_token_id

    def pieces(self, text: str) -> tuple[int, ...]:
        """Return the ids of a text alone."""
        return tuple(self._backend.encode(text, add_special_tokens=False).ids)

    def split(self, context: str, continuation: str) -> Boundary:
        """Return the ids; a token belongs to the continuation if it ends after the last character of the context."""
        encoded = self._backend.encode(context + continuation, add_special_tokens=False)
        ids, offsets = encoded.ids, encoded.offsets
        edge, first = len(context), len(ids)
        while first and offsets[first - 1][1] > edge:
            first -= 1
        straddles = first < len(ids) and offsets[first][0] < edge
        return self._boundary(ids, first, continuation, straddles=straddles)

    def _start_token(self) -> int:
        if self._first is None:
            raise AdapterError(
                f"The tokenizer of {self._source!r} has neither a BOS nor an EOS token, so nothing can be scored "
                "after an empty context."
            )
        return self._first


class ServerTokenizer(_PrefixedTokenizer):
    """vLLM's ``/tokenize``, for servers whose tokenizer is not on this machine.

    The server gives no offsets, so the continuation begins where the ids of both texts together leave those of
    the context alone.
    """

    remote = True
    unknown: int | None = None

    def __init__(self, client: Endpoints, model: str) -> None:
        self._client = client
        self._model = model
        self.prefix = _prefix(self._ask("a", special=True), self._ask("a"))
        self._contexts: dict[str, tuple[int, ...]] = {}

    def pieces(self, text: str) -> tuple[int, ...]:
        """Return the ids of a text alone."""
        return tuple(self._ask(text))

    def split(self, context: str, continuation: str) -> Boundary:
        """Return the ids; the continuation begins at the first token that the context alone does not have."""
        alone = self._contexts.get(context)
        if alone is None:
            if len(self._contexts) >= REMEMBERED:
                self._contexts.clear()
            alone = self._contexts.setdefault(context, tuple(self._ask(context)))
        ids = self._ask(context + continuation)
        first = 0
        while first < min(len(alone), len(ids)) and alone[first] == ids[first]:
            first += 1
        return self._boundary(ids, first, continuation, straddles=first < len(alone))

    def _ask(self, text: str, *, special: bool = False) -> list[int]:
        if not text:
            return []
        payload: Mapping[str, Any] = {"model": self._model, "prompt": text, "add_special_tokens": special}
        try:
            answer = self._client.post_root("/tokenize", payload)
        except StatusError as error:
            if error.status not in (404, 405):
                raise
            raise AdapterError(
                f"The server at {self._client.address} does not tokenise text.",
                hint="Name the folder of the model's tokenizer: -o tokenizer=FOLDER",
            ) from error
        return token_ids(answer, self._client)

    def _start_token(self) -> int:
        raise AdapterError(
            "The tokenizer of the server puts no BOS token before texts, and its EOS token is not known here, so "
            "nothing can be scored after an empty context.",
            hint="Name the folder of the model's tokenizer: -o tokenizer=FOLDER",
        )


def token_ids(answer: Any, client: Endpoints) -> list[int]:
    """Return the ids in an answer of ``/tokenize``; raises `AdapterError` for anything else."""
    url = client.address.url(client.address.root + "/tokenize")
    hint = "Name the folder of the model's tokenizer: -o tokenizer=FOLDER"
    return read_answer(Tokens, answer, url, hint=hint).tokens


def open_tokenizer(
    source: str | None, client: Endpoints, model: str, *, trust_remote_code: bool, revision: str | None
) -> Tokenizer:
    """Return the tokenizer of a folder, where there is one, after comparing it with the server's; else the server's."""
    if source is None:
        return ServerTokenizer(client, model)
    local = LocalTokenizer(source, trust_remote_code=trust_remote_code, revision=revision)
    try:
        answer = client.post_root("/tokenize", {"model": model, "prompt": PROBE, "add_special_tokens": False})
    except StatusError:
        return local  # a server of another kind, without this route
    if tuple(token_ids(answer, client)) != local.encode(PROBE)[len(local.prefix) :]:
        raise AdapterError(
            f"The tokenizer in {source!r} is not that of the model {model!r} at the server.",
            hint="Name the folder of the model's own tokenizer: -o tokenizer=FOLDER",
        )
    return local


def cut_continuation(split: Boundary, limit: int | None, prefix: int, continuation: str) -> Boundary:
    """Return the tokens within `limit`, context cut from the left after the first `prefix` tokens.

    Raises `AdapterError` where the continuation alone is too long.
    """
    if limit is None or len(split.ids) <= limit:
        return split
    scored = len(split.ids) - split.start
    if scored >= limit:
        raise AdapterError(
            f"The continuation {continuation[:60]!r}... has {scored} tokens, and the server takes prompts of "
            f"{limit} tokens."
        )
    keep = prefix if limit - prefix >= scored else 0
    ids = (*split.ids[:keep], *split.ids[len(split.ids) - limit + keep :])
    return replace(split, ids=ids, start=limit - scored, truncated=True)


def cut_prompt(ids: tuple[int, ...], limit: int | None, prefix: int) -> tuple[tuple[int, ...], bool]:
    """Return the ids within `limit`, cut from the left after the first `prefix` ones, and whether they were cut."""
    if limit is None or len(ids) <= limit:
        return ids, False
    keep = prefix if limit > prefix else 0
    return (*ids[:keep], *ids[len(ids) - limit + keep :]), True


def _load(source: str, *, trust_remote_code: bool, revision: str | None) -> Any:
    try:
        from transformers import AutoTokenizer
    except ModuleNotFoundError as error:
        raise MissingExtraError("The adapter 'vllm'", "vllm", str(error.name)) from error
    try:
        tokenizer = AutoTokenizer.from_pretrained(
            source, trust_remote_code=trust_remote_code, revision=revision, local_files_only=True
        )
    except Exception as error:
        raise AdapterError(
            f"The tokenizer in {source!r} cannot be opened: {type(error).__name__}: {error}."
        ) from error
    if not tokenizer.is_fast:
        raise AdapterError(
            f"The tokenizer in {str(Path(source))!r} has no tokenizer.json, so it cannot map tokens to text."
        )
    return tokenizer


def _prefix(with_special: Sequence[int], without: Sequence[int]) -> tuple[int, ...]:
    """Return the tokens that a tokenizer puts before a text."""
    for first in range(len(with_special) - len(without) + 1):
        if list(with_special[first : first + len(without)]) == list(without):
            return tuple(with_special[:first])
    return ()
