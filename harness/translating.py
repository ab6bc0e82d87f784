"""Opens translators by the values of ``--translator``."""

from __future__ import annotations

import re
from collections.abc import Sequence

from harness.errors import UnknownNameError, UsageError
from harness.languages import LanguageTable, known_languages
from harness.registry import Registry
from harness.translators import OpenTranslator, Translator, TranslatorContext

__all__ = ["open_engine", "open_translators", "translator_names"]

_ALIAS = re.compile(r"([A-Za-z0-9][A-Za-z0-9._-]*)=(.+)")


def translator_names(given: Sequence[str]) -> dict[str, str]:
    """Return name -> reference of ``--translator`` values: ``n=hf-seq2seq:PATH`` is called ``n``, others by themselves.

    Raises `UsageError` for a name that is given twice.
    """
    named: dict[str, str] = {}
    for text in (part.strip() for value in given for part in value.split(",")):
        alias = _ALIAS.fullmatch(text)
        name, reference = (alias[1], alias[2]) if alias else (text, text)
        if not text or name in named:
            raise UsageError(
                f"The translator {text!r} is given twice." if text else "A translator has no name."
            )
        named[name] = reference
    return named


def open_translators(
    registry: Registry, given: Sequence[str], languages: LanguageTable | None = None
) -> list[OpenTranslator]:
    """Return the translators of ``--translator`` values, which the caller closes; raises `UsageError`."""
    context = TranslatorContext(registry=registry, languages=languages or known_languages())
    return [
        OpenTranslator(name=name, reference=reference, translator=open_engine(reference, context))
        for name, reference in translator_names(given).items()
    ]


def open_engine(reference: str, context: TranslatorContext) -> Translator:
    """Return the translator of ``NAME`` or ``NAME:REF``; raises `UnknownNameError`."""
    name, _, ref = reference.partition(":")
    try:
        entry = context.registry.translators.get(name)
    except UnknownNameError as error:
        raise UnknownNameError(
            "translator",
            name,
            context.registry.translators.names,
            hint="Run 'harness plugins' to see who declares what.",
        ) from error
    return entry.open(ref, context)
