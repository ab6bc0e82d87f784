"""A pair of languages as a translation model is asked for it: codes of its family, special tokens, first tokens."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Any

from transformers.models.mbart50.tokenization_mbart50 import FAIRSEQ_LANGUAGE_CODES

from harness import CapabilityError
from harness.languages import Language, known_languages
from harness_hf.inference.pieces import SpecialTokens, read_affixes

MBART_CODES = {code[:2]: code for code in FAIRSEQ_LANGUAGE_CODES}


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


def find_direction(
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
