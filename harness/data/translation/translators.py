"""The declaration of a translator: opened by name, and identified by all that decides its output."""

from __future__ import annotations

import hashlib
import importlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any, Literal, Protocol, runtime_checkable

from harness.errors import ContractError, UsageError, require_extra

if TYPE_CHECKING:
    from harness.languages.table import LanguageTable
    from harness.models.adapters import AdapterEntry
    from harness.table import NamedTable


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
            missing = [n for n in ("info", "supports", "translate", "close") if not hasattr(opened, n)]
            raise ContractError(
                f"The translator {self.name!r} opened an object without {' and '.join(f'{n}()' for n in missing)}."
            )
        return opened


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
