"""Translation as an axis of evaluation: whether a low score is caused by the translations or by the model.

The measures are those of "Translation Errors Significantly Impact Low-Resource Languages in Cross-Lingual Learning"
(Agrawal et al., EACL 2024).
"""

from __future__ import annotations

from collections.abc import Iterable

from harness import hookimpl
from harness.data import Aligner, TranslatorEntry

__all__ = ["harness_register_aligners", "harness_register_translators"]


@hookimpl
def harness_register_aligners() -> Iterable[Aligner]:
    """Return the word aligners of this plugin."""
    return [
        Aligner(
            name="file",
            target="harness_translation.overlap.aligner_file:open_file",
            licence="Apache-2.0",
            summary="Existing links: lines of SOURCE ||| TARGET ||| 0-0 1-2:0.87 (Pharaoh).",
            reference="FILE",
        ),
    ]


@hookimpl
def harness_register_translators() -> list[TranslatorEntry]:
    """Return the translators of this plugin."""
    return [
        TranslatorEntry(
            name="file",
            target="harness_translation.variants.translators:open_file",
            summary="Translations that exist already: tab-separated or JSON lines, by text or row by row.",
            examples=("file:translations.jsonl", "file:translations/"),
            light=True,
        ),
        TranslatorEntry(
            name="google-cloud",
            target="harness_translation.variants.google_service:open_google",
            summary="Google Cloud Translation, version 3, by its package.",
            examples=("google-cloud:PROJECT", "google-cloud:PROJECT?model=general/translation-llm"),
            extra="translate-apis",
        ),
        TranslatorEntry(
            name="deepl",
            target="harness_translation.variants.deepl_service:open_deepl",
            summary="DeepL, by its package; the key is in DEEPL_AUTH_KEY.",
            examples=("deepl",),
            extra="translate-apis",
        ),
        TranslatorEntry(
            name="released",
            target="harness_translation.variants.translators:open_released",
            summary="Published translations of training sets (XTREME's), with their own answer spans.",
            examples=("released",),
            light=True,
        ),
        TranslatorEntry(
            name="llm",
            target="harness_translation.variants.translators:open_prompted",
            summary="A prompted model behind any adapter that writes text.",
            examples=("llm:vllm:http://localhost:8000", "llm:hf-causal:models/smollm2"),
        ),
        TranslatorEntry(
            name="route",
            target="harness_translation.variants.translators:open_routes",
            summary="One translator per pair of languages, from a YAML table.",
            examples=("route:routes.yaml",),
        ),
        TranslatorEntry(
            name="identity",
            target="harness_translation.variants.translators:open_identity",
            summary="Returns the text unchanged: the cost and score of a run without translation.",
            examples=("identity",),
            light=True,
        ),
        TranslatorEntry(
            name="reverse",
            target="harness_translation.variants.translators:open_reverse",
            summary="The words of a text in reverse order, for tests.",
            examples=("reverse",),
            light=True,
        ),
    ]
