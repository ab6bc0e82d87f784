"""How families of translation models name languages: ``eng_Latn``, ``__en__``, ``en_XX``, ``<2en>``, ``>>eng<<``."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass

from transformers.models.mbart50.tokenization_mbart50 import FAIRSEQ_LANGUAGE_CODES

from harness.languages import Language

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
