"""Translation as an axis of evaluation: whether a benchmark's translations, not the model, cause a low score.

The measures are those of "Translation Errors Significantly Impact Low-Resource Languages in Cross-Lingual Learning"
(Agrawal et al., EACL 2024).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from harness.data.translation.translators import TranslatorEntry
from harness.hookspecs import hookimpl

if TYPE_CHECKING:
    from harness.data.translation.aligners import Aligner

__all__ = ["harness_register_aligners", "harness_register_translators"]


@hookimpl
def harness_register_aligners() -> Iterable[Aligner]:
    """Return the word aligners that need no model of ours."""
    from harness_translation.aligner_catalog import ALIGNERS

    return ALIGNERS


@hookimpl
def harness_register_translators() -> list[TranslatorEntry]:
    """Return the translators that need no model of their own."""
    return [
        TranslatorEntry(
            name="file",
            target="harness_translation.existing:open_file",
            summary="Translations that exist already: tab-separated or JSON lines, by text or row by row.",
            examples=("file:translations.jsonl", "file:translations/"),
            light=True,
        ),
        TranslatorEntry(
            name="llm",
            target="harness_translation.prompted:open_prompted",
            summary="A prompted model behind any adapter that writes text.",
            examples=("llm:vllm:http://localhost:8000", "llm:hf-causal:models/smollm2"),
        ),
        TranslatorEntry(
            name="route",
            target="harness_translation.routing:open_routes",
            summary="Another translator for every pair of languages, from a YAML table.",
            examples=("route:routes.yaml",),
        ),
        TranslatorEntry(
            name="identity",
            target="harness_translation.plain:open_identity",
            summary="The text itself: what a run costs and scores without any change of the text.",
            examples=("identity",),
            light=True,
        ),
        TranslatorEntry(
            name="reverse",
            target="harness_translation.plain:open_reverse",
            summary="The words of a text in reverse order, for tests.",
            examples=("reverse",),
            light=True,
        ),
    ]
