"""Opens translators by the values of ``--translator``."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from harness.data.translation.translators import (
    OpenTranslator,
    Translator,
    TranslatorContext,
    TranslatorEntry,
)
from harness.errors import MissingDataError, UnknownNameError, UsageError

_ALIAS = re.compile(r"([A-Za-z0-9][A-Za-z0-9._-]*)=(.+)")


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
    return _entry(context, reference).open(reference.partition(":")[2], context)


def _entry(context: TranslatorContext, reference: str) -> TranslatorEntry:
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
            _entry(self._context, reference)
        return references

    def require_pair(self, name: str, reference: str, steps: Iterable[tuple[str, str]]) -> None:
        """Raise `MissingDataError` for the first step that a light translator does not have."""
        if not _entry(self._context, reference).light:
            return
        if reference not in self._open:
            self._open[reference] = open_engine(reference, self._context)
        for source, target in steps:
            if not self._open[reference].supports(source, target):
                raise MissingDataError(
                    f"the translator {name!r} ({reference}) does not translate {source!r} into {target!r}"
                )
