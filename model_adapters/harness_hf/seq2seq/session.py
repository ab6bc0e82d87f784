"""An opened sequence-to-sequence model: its tokenizer, its network, and how texts become their tokens."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
import transformers
from transformers.models.mbart50.tokenization_mbart50 import FAIRSEQ_LANGUAGE_CODES

from harness import AdapterError, CapabilityError, UsageError
from harness.languages import Language, known_languages
from harness.models import Head, Prompt
from harness_hf.fit_record import FitRecord
from harness_hf.heads import load_network
from harness_hf.inference.pieces import Encoded, SpecialTokens, pad_batch, plain_pieces, read_affixes
from harness_hf.inference.session import ModelSession
from harness_hf.loading import placing, read_tokenizer, require_fitting_vocabulary
from harness_hf.model_folder import SentenceFiles
from harness_hf.options import Seq2SeqOptions

MBART_CODES = {code[:2]: code for code in FAIRSEQ_LANGUAGE_CODES}
USUAL_LIMIT = 1024
"""Tokens that an input is cut at where neither option, fit, tokenizer nor config names a limit."""
NO_LIMIT = 1_000_000
"""Tokenizers without a limit name a number far above this one."""
KEPT_GENERATION = ("bad_words_ids", "suppress_tokens", "begin_suppress_tokens")
"""What a checkpoint's generation config forbids; its beams, penalties and lengths are not used."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Scheme:
    """How a family of models names languages."""

    name: str
    codes: Callable[[Language], tuple[str, ...]]
    """Language -> what its token may be, preferred ones first."""
    is_prefix: bool = False
    """Whether the target's token is written before the text; otherwise the tokenizer knows the languages."""

    def token(self, language: Language, vocabulary: Collection[str]) -> str | None:
        """Return the token of a language; None where the vocabulary has none."""
        return next((code for code in self.codes(language) if code and code in vocabulary), None)


MARIAN = Scheme(
    name="Marian",
    codes=lambda language: (f">>{language.code}<<", f">>{language.iso639_3}<<"),
    is_prefix=True,
)
"""For models that translate into several languages; those of one pair have no tokens of languages."""
MBART = Scheme(name="mBART", codes=lambda language: (MBART_CODES.get(language.code, ""),))
SCHEMES = (
    Scheme(name="FLORES-200 (NLLB)", codes=lambda language: (language.flores,)),
    Scheme(name="M2M100", codes=lambda language: (f"__{language.code}__",)),
    MBART,
    Scheme(name="MADLAD-400", codes=lambda language: (f"<2{language.code}>",), is_prefix=True),
)


def find_scheme(vocabulary: Collection[str], english: Language) -> Scheme | None:
    """Return the first scheme whose token for English a vocabulary has; that of Marian by any token of it."""
    match = next((scheme for scheme in SCHEMES if scheme.token(english, vocabulary)), None)
    if match is None and any(token.startswith(">>") and token.endswith("<<") for token in vocabulary):
        return MARIAN
    return match


@dataclass(frozen=True, slots=True, kw_only=True)
class Direction:
    """How a text is given to the model, for one pair of languages."""

    single: SpecialTokens
    prefix: tuple[int, ...]
    token: str = ""
    """What is written before the text."""


def _find_direction(
    tokenizer: Any, ref: str, languages: tuple[str, str], *, start: int, default: Direction
) -> Direction:
    """Return how a model translates from the first into the second language; the tokenizer stays as it is.

    Args:
        tokenizer: The model's.
        ref: The model, for errors.
        languages: Codes of the harness.
        start: The token that the decoder begins with.
        default: How the model reads a text without codes: Marian's models of one pair.

    Raises:
        CapabilityError: For a language that the model does not know.
    """
    codes = getattr(tokenizer, "lang_code_to_token", None) or {}
    vocabulary = frozenset(tokenizer.get_vocab()) | frozenset(codes.values())
    scheme = find_scheme(vocabulary, known_languages().get("en"))
    if scheme is None:
        _require_own_pair(tokenizer, ref, languages)
        return default
    tokens = [
        scheme.token(known_languages().get(code), vocabulary) if code in known_languages() else None
        for code in languages
    ]
    for code, token in list(zip(languages, tokens, strict=True))[scheme.is_prefix :]:
        if token is None:
            raise CapabilityError(
                f"The model {ref!r} has no code of {scheme.name} for the language {code!r}."
            )
    if scheme.is_prefix:
        return Direction(single=default.single, prefix=default.prefix, token=f"{tokens[1]} ")
    names = {token: code for code, token in dict(codes).items()}
    before, tokenizer.src_lang = tokenizer.src_lang, names.get(tokens[0], tokens[0])
    try:
        single = read_affixes(tokenizer, ref)
    finally:
        tokenizer.src_lang = before
    target = int(tokenizer.convert_tokens_to_ids(tokens[1]))
    # The first mBART has the source's code after the text, and its decoder begins with the target's (Liu et al. 2020).
    is_start = scheme is MBART and not single.before
    return Direction(single=single, prefix=(target,) if is_start else (start, target))


def _require_own_pair(tokenizer: Any, ref: str, languages: tuple[str, str]) -> None:
    """Raise `CapabilityError` unless a model of one pair translates this one; a group such as ``ROMANCE`` may."""
    pair = getattr(tokenizer, "source_lang", None), getattr(tokenizer, "target_lang", None)
    codes = {name for language in known_languages() for name in (language.code, language.iso639_3)}
    for code, declared in zip(languages, pair, strict=True):
        language: Language | None = known_languages().get(code) if code in known_languages() else None
        names = {code} if language is None else {language.code, language.iso639_3}
        if declared is None or (declared in codes and declared not in names):
            raise CapabilityError(
                f"The model {ref!r} translates from {pair[0]!r} into {pair[1]!r}, not from {languages[0]!r} "
                f"into {languages[1]!r}."
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """The tokens of one encoder input."""

    encoded: Encoded
    truncated: bool
    prefix: tuple[int, ...]
    """What the decoder reads before the first token of the answer."""


class Seq2SeqSession(ModelSession):
    """Owns the tokenizer and the network of one sequence-to-sequence model folder."""

    options: Seq2SeqOptions
    adapter = "hf-seq2seq"
    answer_options = (
        "truncation_side",
        "score_eos",
        "source_language",
        "target_language",
        "mixed_precision",
        "train_batch_tokens",
        "train_parts",
    )
    block_factor = 32

    def __init__(
        self, *, ref: str, folder: Path, options: Seq2SeqOptions, record: FitRecord | None = None
    ) -> None:
        tokenizer = _load_tokenizer(folder, ref, options)
        network, _ = load_network(folder, ref, Head.TEXT_TO_TEXT, options, placing(options, folder))
        require_fitting_vocabulary(ref, tokenizer, network)
        self.source_limit = _position_limit(network.config, "encoder")
        """The most tokens of an input, None for relative positions."""
        self.target_limit = _position_limit(network.config, "decoder")
        """The most tokens that the decoder reads, None for relative positions."""
        super().__init__(ref=ref, folder=folder, options=options, tokenizer=tokenizer, network=network)
        self.record = record
        self.single = read_affixes(tokenizer, ref)
        self.target_affixes = read_affixes(tokenizer, ref, "text_target")
        self.ends = _end_tokens(network, self.tokenizer)
        self.prefix = (_start_token(network, ref), *self.target_affixes.before)
        """What the decoder reads before the first token of an answer."""
        self._own = Direction(single=self.single, prefix=self.prefix)
        self._directions: dict[tuple[str, str], Direction] = {}
        self.vocabulary = int(network.get_output_embeddings().weight.shape[0])
        network.generation_config = _greedy(network.generation_config, self.prefix[0], self.ends, self.pad_id)

    def _measure(self, network: Any) -> tuple[int, int, SentenceFiles]:
        """Return the layers of the encoder, and its positions; files for vectors are not read."""
        encoder = getattr(network.config, "encoder", None) or network.config
        depth = int(getattr(encoder, "encoder_layers", None) or encoder.num_hidden_layers)
        return depth, self.source_limit or NO_LIMIT, SentenceFiles()

    @property
    def backbone(self) -> Any:
        """The encoder of the network."""
        return self.network.get_encoder()

    @property
    def pad_id(self) -> int:
        """The token that batches are padded with."""
        return int(self.tokenizer.pad_token_id)

    def own_identity(self) -> Mapping[str, str]:
        """Return whether the model has been fitted."""
        return {"head": Head.TEXT_TO_TEXT.value if self.record is not None else "none"}

    def length_limit(self, requested: int | None = None) -> int:
        """Return at how many tokens an input is cut.

        The first that is given: `requested`, the option, what a fit was trained with, the tokenizer's limit, the
        position limit, 1,024; never more than the network has positions for.
        """
        fitted = self.record.max_length if self.record is not None else None
        declared = int(self.tokenizer.model_max_length)
        usual = declared if declared < NO_LIMIT else self.source_limit or USUAL_LIMIT
        return self.within_positions(requested or self.options.max_length or fitted or usual)

    def within_positions(self, length: int) -> int:
        """Return `length`, or the encoder's number of positions where that is smaller."""
        return min(length, self.source_limit or length)

    def source_tokens(self, texts: Sequence[str]) -> list[list[int]]:
        """Return the tokens of encoder inputs, special tokens included, uncut."""
        return [list(self.single.wrap(ids).input_ids) for ids in plain_pieces(self.tokenizer, texts)]

    def target_tokens(self, texts: Sequence[str]) -> list[list[int]]:
        """Return the tokens of decoder outputs without special tokens."""
        return plain_pieces(self.tokenizer, texts, "text_target")

    def direction(self, languages: tuple[str, str] | None) -> Direction:
        """Return how texts of one language are translated into another one; None is the tokenizer's own pair.

        Raises `CapabilityError` for a language that the model does not know.
        """
        if languages is None:
            return self._own
        if languages not in self._directions:
            with self.tokenizing:
                self._directions[languages] = _find_direction(
                    self.tokenizer, self.ref, languages, start=self.prefix[0], default=self._own
                )
        return self._directions[languages]

    def sources(self, texts: Sequence[str], limit: int, direction: Direction | None = None) -> list[Source]:
        """Return encoder inputs, cut to `limit` tokens at the side that the option says."""
        direction = direction or self._own
        room = limit - direction.single.size
        if room < 1:
            raise UsageError(f"An input of {limit} tokens has no room for a text next to its special tokens.")
        return [
            self._source(
                direction.single.wrap(self._cut(ids, room)).input_ids,
                truncated=len(ids) > room,
                prefix=direction.prefix,
            )
            for ids in plain_pieces(self.tokenizer, [f"{direction.token}{text}" for text in texts])
        ]

    def prompt_sources(
        self, prompts: Sequence[Prompt], limit: int, direction: Direction | None = None
    ) -> list[Source]:
        """Return the encoder inputs of texts and conversations; raises `CapabilityError` without a template."""
        texts = iter(self.sources([text for text in prompts if isinstance(text, str)], limit, direction))
        return [
            next(texts)
            if isinstance(prompt, str)
            else self._source(
                self._cut(ids := self.chat_tokens(prompt), limit),
                truncated=len(ids) > limit,
                prefix=self.prefix,
            )
            for prompt in prompts
        ]

    def chat_tokens(self, conversation: Prompt) -> list[int]:
        """Return the tokens of a conversation, written by the chat template."""
        # The template writes the special tokens itself.
        return plain_pieces(self.tokenizer, [self.render(conversation)])[0]

    def encode(self, texts: Sequence[str], pairs: Sequence[str] | None, max_length: int) -> list[Encoded]:
        """Return the tokens of encoder inputs, cut as `sources` are."""
        assert pairs is None
        return [source.encoded for source in self.sources(texts, max_length)]

    def pad(self, batch: Sequence[Encoded]) -> dict[str, torch.Tensor]:
        """Return ids and mask of shape (rows, longest), padded on the right, on the device."""
        padded = pad_batch(batch, self.pad_id, ("input_ids", "attention_mask"))
        return {name: tensor.to(self.device) for name, tensor in padded.items()}

    def _cut(self, ids: list[int], room: int) -> list[int]:
        if len(ids) <= room:
            return ids
        return ids[-room:] if self.options.truncation_side == "left" else ids[:room]

    def _source(self, ids: Sequence[int], *, truncated: bool, prefix: tuple[int, ...]) -> Source:
        # An encoder needs something to read, and not every tokenizer ends an empty text with a token.
        return Source(encoded=Encoded(ids or [self.pad_id]), truncated=truncated, prefix=prefix)


def _load_tokenizer(folder: Path, ref: str, options: Seq2SeqOptions) -> Any:
    """Return the tokenizer, fast or not, with its languages set; raises `AdapterError` or `UsageError`."""
    tokenizer = read_tokenizer(folder, ref, options)
    if tokenizer.pad_token_id is None:
        raise AdapterError(f"The tokenizer of {ref!r} has no padding token.")
    if getattr(tokenizer, "lang_code_to_token", None) and tokenizer.tgt_lang is None:
        tokenizer.tgt_lang = tokenizer.src_lang  # M2M100 writes no target without one
    languages = (("src_lang", options.source_language), ("tgt_lang", options.target_language))
    for name, code in languages:
        if code is None:
            continue
        if not hasattr(tokenizer, name):
            raise UsageError(
                f"The tokenizer of {ref!r} knows no languages, so {code!r} cannot be set.",
                hint="Omit -o source_language and -o target_language.",
            )
        try:
            setattr(tokenizer, name, code)
            has_code = tokenizer.convert_tokens_to_ids(code) != tokenizer.unk_token_id
        except (KeyError, ValueError, TypeError):
            has_code = False
        if not has_code and f"__{code}__" not in tokenizer.get_vocab():
            raise UsageError(f"The tokenizer of {ref!r} has no language {code!r}.")
    return tokenizer


def _start_token(network: Any, ref: str) -> int:
    for owner in (network.generation_config, network.config):
        start = getattr(owner, "decoder_start_token_id", None)
        if start is None:
            start = getattr(owner, "bos_token_id", None)
        if start is not None:
            return int(start)
    raise AdapterError(
        f"The config.json of {ref!r} names no decoder_start_token_id, which the decoder begins with."
    )


def _end_tokens(network: Any, tokenizer: Any) -> tuple[int, ...]:
    for owner in (network.generation_config, network.config, tokenizer):
        ends = getattr(owner, "eos_token_id", None)
        if ends is not None:
            return tuple(ends) if isinstance(ends, list | tuple) else (int(ends),)
    return ()


def _position_limit(config: Any, side: str) -> int | None:
    section = getattr(config, side, None)
    for owner, name in (
        (config, f"max_{side}_position_embeddings"),
        (section, "max_position_embeddings"),
        (config, "max_position_embeddings"),
    ):
        limit = getattr(owner, name, None)
        if limit is not None:
            return int(limit)
    return None


def _greedy(checkpoint_config: Any, start: int, ends: tuple[int, ...], pad: int) -> Any:
    """Return a generation config that takes the likeliest token, and keeps what the checkpoint forbids."""
    restrictions = {
        name: value
        for name in KEPT_GENERATION
        if (value := getattr(checkpoint_config, name, None)) is not None
    }
    make: Any = transformers.GenerationConfig  # untyped
    return make(
        decoder_start_token_id=start,
        eos_token_id=list(ends) or None,
        pad_token_id=pad,
        num_beams=1,
        do_sample=False,
        **restrictions,
    )
