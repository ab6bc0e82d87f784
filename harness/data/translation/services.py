"""Translators, transliterators and word aligners: their declarations, and how they are opened by name.

A translator is identified by all that decides its output.
"""

from __future__ import annotations

import hashlib
import importlib
import importlib.util
import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any, Literal, Protocol, runtime_checkable

from harness.errors import (
    ContractError,
    DataError,
    MissingDataError,
    PluginError,
    UnknownNameError,
    UsageError,
    require_extra,
)

if TYPE_CHECKING:
    from harness.languages.table import LanguageTable
    from harness.models.adapters import AdapterEntry
    from harness.table import NamedTable

_ALIAS = re.compile(r"([A-Za-z0-9][A-Za-z0-9._-]*)=(.+)")


@dataclass(frozen=True, slots=True, kw_only=True)
class TranslatorInfo:
    """Everything that decides what a translator answers, and what a reader of its output must know."""

    id: str
    """The model or service: ``facebook/nllb-200-distilled-600M``."""
    engine: str
    """The program that runs it: ``transformers``."""
    engine_version: str
    revision: str | None = None
    """A commit or a digest of the weights."""
    decoding: Mapping[str, Any] = field(default_factory=dict)
    """Settings of the decoding: beams, length, prompt."""
    precision: str = ""
    licence: str = ""
    """SPDX identifier of the model, which its output may inherit."""
    deterministic: bool = True

    @property
    def fingerprint(self) -> str:
        """A digest of all fields: translations with the same one are interchangeable."""
        content = json.dumps(asdict(self), ensure_ascii=False, sort_keys=True, default=str)
        return hashlib.blake2b(content.encode(), digest_size=16).hexdigest()

    def to_json(self) -> dict[str, Any]:
        """Return the fields and the fingerprint as plain JSON."""
        return {**asdict(self), "fingerprint": self.fingerprint}


@dataclass(frozen=True, slots=True, kw_only=True)
class Translation:
    """One translated segment."""

    text: str
    finish: Literal["stop", "length"] = "stop"
    """``length`` where the translator was cut off at its longest output."""
    source_tokens: int | None = None
    target_tokens: int | None = None


@runtime_checkable
class Translator(Protocol):
    """An opened translator; codes are those of the harness's language table."""

    def info(self) -> TranslatorInfo:
        """Return all that decides the answers."""

    def supports(self, source: str, target: str) -> bool:
        """Whether it translates from one language into another."""

    def translate(self, segments: Sequence[str], source: str, target: str) -> list[Translation]:
        """Return one translation per segment, in order; called with few enough for one batch."""

    def close(self) -> None:
        """Free what it holds; a second call does nothing."""


@runtime_checkable
class RoutesTranslations(Protocol):
    """A translator that hands each pair of languages to another one."""

    def route(self, source: str, target: str) -> Translator:
        """Return the translator of a pair; raises `UsageError` where there is none."""


class TranslatorContext(Protocol):
    """Inputs that the factory of a translator may need besides its reference; the registry has them."""

    @property
    def adapters(self) -> NamedTable[AdapterEntry]:
        """Model adapters, for translators that prompt a model."""

    @property
    def translators(self) -> NamedTable[TranslatorEntry]:
        """Translators, for those that pass texts on to others."""

    @property
    def languages(self) -> LanguageTable:
        """Languages of the table and of the session's documents."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TranslatorEntry:
    """The declaration of a translator; `target` names ``module:callable``, called with (ref, context)."""

    name: str
    """The part before the colon of ``--translator``: ``hf-seq2seq``."""
    target: str
    summary: str
    examples: tuple[str, ...] = ()
    """Values of ``--translator`` that a user can try."""
    extra: str | None = None
    """The extra that installs what it needs."""
    light: bool = False
    """Whether opening it loads no model, so that a plan asks it for its pairs; others are asked when a run begins."""

    def open(self, ref: str, context: TranslatorContext) -> Translator:
        """Return the translator; raises `MissingExtraError`, or what its factory raises."""
        module_name, _, attribute = self.target.partition(":")
        with require_extra(f"The translator {self.name!r}", self.extra, self.target):
            factory = getattr(importlib.import_module(module_name), attribute)
            opened = factory(ref, context)
        if not isinstance(opened, Translator):
            raise _incomplete(f"translator {self.name!r}", opened, ("info", "supports", "translate", "close"))
        return opened


def _incomplete(declared: str, opened: object, methods: Sequence[str]) -> ContractError:
    missing = " and ".join(f"{name}()" for name in methods if not hasattr(opened, name))
    return ContractError(f"The {declared} opened an object without {missing}.")


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenTranslator:
    """A translator under the name that views and tables show."""

    name: str
    reference: str
    """What the user wrote: ``hf-seq2seq:facebook/nllb-200-distilled-600M``."""
    translator: Translator

    def of_pair(self, source: str, target: str) -> Translator:
        """Return the translator of a pair: itself, or one that it routes the pair to; raises `UsageError`."""
        translator = self.translator
        while isinstance(translator, RoutesTranslations):
            translator = translator.route(source, target)
        if not translator.supports(source, target):
            raise UsageError(
                f"The translator {self.name!r} ({self.reference}) does not translate {source} into {target}.",
                hint="Give another one with --translator, or a routing table: --translator route:FILE.yaml",
            )
        return translator


def translator_names(given: Sequence[str]) -> dict[str, str]:
    """Return name -> reference of ``--translator`` values: ``n=hf-seq2seq:PATH`` is called ``n``, others by themselves.

    Raises `UsageError` for a name that is given twice.
    """
    references: dict[str, str] = {}
    for text in (piece.strip() for value in given for piece in value.split(",")):
        alias = _ALIAS.fullmatch(text)
        name, reference = (alias[1], alias[2]) if alias else (text, text)
        if not text or name in references:
            raise UsageError(
                f"The translator {text!r} is given twice." if text else "A translator has no name."
            )
        references[name] = reference
    return references


def open_translator(context: TranslatorContext, name: str, reference: str) -> OpenTranslator:
    """Return the translator of a value of ``--translator`` under its name; the caller closes it."""
    return OpenTranslator(name=name, reference=reference, translator=open_engine(reference, context))


def open_engine(reference: str, context: TranslatorContext) -> Translator:
    """Return the translator of ``NAME`` or ``NAME:REF``; raises `UnknownNameError`."""
    return _entry_of(context, reference).open(reference.partition(":")[2], context)


def _entry_of(context: TranslatorContext, reference: str) -> TranslatorEntry:
    name = reference.partition(":")[0]
    try:
        return context.translators.get(name)
    except UnknownNameError as error:
        hint = (
            "Run 'harness plugins' to see which packages are installed, and what is wrong with broken ones."
        )
        raise UnknownNameError("translator", name, context.translators.names, hint=hint) from error


class PairCheck:
    """Finds missing translators and language pairs before a run.

    Only translators that are light to open are asked for their pairs; the others are asked when the run begins.
    """

    def __init__(self, context: TranslatorContext) -> None:
        self._context = context
        self._open: dict[str, Translator] = {}

    def named(self, given: Sequence[str], why: str) -> dict[str, str]:
        """Return name -> reference of the translators; raises `UsageError` where there is none or an unknown one."""
        references = translator_names(given)
        if not references:
            raise UsageError(
                f"{why} needs a translator.",
                hint="Such as: --translator hf-seq2seq:facebook/nllb-200-distilled-600M",
            )
        for reference in references.values():
            _entry_of(self._context, reference)
        return references

    def require_pair(self, name: str, reference: str, steps: Iterable[tuple[str, str]]) -> None:
        """Raise `MissingDataError` for the first step that a light translator does not have."""
        if not _entry_of(self._context, reference).light:
            return
        if reference not in self._open:
            self._open[reference] = open_engine(reference, self._context)
        for source, target in steps:
            if not self._open[reference].supports(source, target):
                raise MissingDataError(
                    f"the translator {name!r} ({reference}) does not translate {source!r} into {target!r}"
                )


@dataclass(frozen=True, slots=True, kw_only=True)
class Transliterator:
    """A named way to write words of another script in Latin letters.

    `transliterate` gets words of one language, with the language's code, and returns as many words in the same order.
    A word's answer depends on nothing but the word and the language. What it has no rule for comes back as it was:
    ASCII, digits and punctuation always do, except that a danda becomes a full stop; letters of a script that it does
    not know stay, so that a caller can count them. It never answers a word that is not empty with an empty one.
    """

    name: str
    version: str
    """Written into what is made with it, next to the name."""
    licence: str
    """SPDX identifier of the engine's licence; who stores its output has to know it."""
    languages: frozenset[str] | None
    """Codes of the languages it knows; None for any."""
    transliterate: Callable[[Sequence[str], str], list[str]]
    summary: str
    ready: Callable[[], None] | None = None
    """Called before it is used; raises `HarnessError` where it cannot be used here, and says how it can be."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WordPair:
    """The words of a sentence and of its translation."""

    source: tuple[str, ...]
    target: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Link:
    """Two words that translate each other."""

    source: int
    """Number of the word in the source sentence, from 0."""
    target: int
    probability: float = 1.0
    """How sure the aligner is, in [0, 1]; 1 where it does not say."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Alignment:
    """The links between the words of a pair, in the aligner's own order: the first link of a word may matter."""

    links: tuple[Link, ...]
    source_words: tuple[str, ...] | None = None
    """The words that the aligner saw, where it splits texts itself; None where it took those it was given."""
    target_words: tuple[str, ...] | None = None


@runtime_checkable
class AlignsWords(Protocol):
    """An opened aligner."""

    def align(self, pairs: Sequence[WordPair]) -> list[Alignment]:
        """Return one alignment per pair, in order; that of a pair does not depend on the others."""

    def identity(self) -> dict[str, str]:
        """Return the identity of its links: engine, weights digest, settings."""

    def close(self) -> None:
        """Free what it holds; a second call does nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Aligner:
    """The declaration of one aligner; ``--aligner NAME:REF`` opens it.

    `target` names ``module:callable``, which is imported only then, is called with what follows the colon, and returns
    an `AlignsWords`. It raises `HarnessError` where the reference is of no use to it.
    """

    name: str
    target: str
    licence: str
    """SPDX identifier of the engine's licence."""
    summary: str
    reference: str
    """What follows the colon, for messages: ``ADAPTER:MODEL``, ``FILE``."""
    needs: tuple[str, ...] = ()
    """Import names of the packages that it needs besides ours."""
    install: str = ""
    """The command that installs them."""

    def open(self, reference: str) -> AlignsWords:
        """Return the opened aligner; raises `UsageError` without a reference and `PluginError` without its packages."""
        if not reference:
            raise UsageError(
                f"The aligner {self.name!r} needs a name: --aligner {self.name}:{self.reference}."
            )
        missing = [name for name in self.needs if importlib.util.find_spec(name) is None]
        if missing:
            raise PluginError(
                f"The aligner {self.name!r} needs the package {missing[0]!r}, which is not installed.",
                hint=f"Run: {self.install}, or use another one: --aligner own:hf:MODEL.",
            )
        module, _, attribute = self.target.partition(":")
        opened: Any = getattr(importlib.import_module(module), attribute)(reference)
        if not isinstance(opened, AlignsWords):
            raise _incomplete(f"aligner {self.name!r}", opened, ("align", "identity", "close"))
        return opened


def check_alignments(name: str, pairs: Sequence[WordPair], found: Sequence[Alignment]) -> None:
    """Raise where alignments do not fit the pairs that they answer.

    Raises:
        ContractError: For another number of alignments, or a probability outside of [0, 1].
        DataError: Where the aligner's words differ from those it was given, or a link names a word that is not there.
    """
    if len(found) != len(pairs):
        raise ContractError(f"The aligner {name!r} gave {len(found)} alignments for {len(pairs)} pairs.")
    for pair, alignment in zip(pairs, found, strict=True):
        sides = ((pair.source, alignment.source_words), (pair.target, alignment.target_words))
        for expected, actual in sides:
            if actual is not None and actual != expected:
                raise DataError(
                    f"The aligner {name!r} has other words than the model: {len(actual)} for "
                    f"{' '.join(expected)!r}, which has {len(expected)} here, {_first_difference(expected, actual)}.",
                    hint="Give it the words as they are here (--words space splits at spaces only).",
                )
        for link in alignment.links:
            if not (0 <= link.source < len(pair.source) and 0 <= link.target < len(pair.target)):
                raise DataError(
                    f"The aligner {name!r} links the words {link.source}-{link.target} of a pair that has "
                    f"{len(pair.source)} and {len(pair.target)} words: {' '.join(pair.source)!r} and "
                    f"{' '.join(pair.target)!r}.",
                    hint="Words are numbered from 0; align the words as they are here (see --words).",
                )
            if not 0 <= link.probability <= 1 + 1e-6:
                raise ContractError(
                    f"The aligner {name!r} gave the probability {link.probability}; expected 0 to 1."
                )


def _first_difference(own: Sequence[str], other: Sequence[str]) -> str:
    for expected, actual in zip(own, other, strict=False):
        if expected != actual:
            return f"the first that differs is {actual!r} for {expected!r}"
    return "one ends before the other"
