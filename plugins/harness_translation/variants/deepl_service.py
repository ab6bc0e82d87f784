"""The translator ``deepl``: the API of DeepL, by its own package."""

from __future__ import annotations

import os
from collections.abc import Sequence

import deepl

from harness import UsageError
from harness.data import TranslatorContext, TranslatorInfo
from harness_translation.variants.service import Send, ServiceTranslator, read_options

KEY = "DEEPL_AUTH_KEY"
MOST_TEXTS = 50
MOST_CHARACTERS = 30_000
"""A request has at most 50 texts and 128 KiB, of up to 4 bytes per character."""
CODES = (
    "ar bg cs da de el en es et fi fr he hu id it ja ko lt lv nb nl pl pt ro ru sk sl sv th tr uk vi zh"
).split()
"""developers.deepl.com/docs/getting-started/supported-languages, November 2025."""
TARGETS = {"en": "EN-US", "pt": "PT-PT", "zh": "ZH-HANS"}


def open_deepl(ref: str, context: TranslatorContext) -> ServiceTranslator:
    """Return DeepL behind ``[?url=URL&model=NAME]``; the key is in the environment variable ``DEEPL_AUTH_KEY``."""
    name, options = read_options("deepl", ref, ("url", "model"))
    if name:
        raise UsageError(f"The translator 'deepl' takes options only, such as deepl:?url=URL, got {name!r}.")
    model = options.get("model")

    def connect() -> Send:
        key = os.environ.get(KEY, "")
        if not key:
            raise UsageError(
                "The translator 'deepl' needs a key.", hint=f"Set the environment variable {KEY}."
            )
        client = deepl.Translator(key, server_url=options.get("url"), send_platform_info=False)

        def send(texts: Sequence[str], source: str, target: str) -> list[str]:
            # An empty text is an error there; a batch has none.
            answers = client.translate_text(
                list(texts),
                source_lang=source,
                target_lang=target,
                model_type=model,
                preserve_formatting=True,
            )
            return [answer.text for answer in answers]

        return send

    return ServiceTranslator(
        TranslatorInfo(
            id="DeepL",
            engine="deepl",
            engine_version="v2",
            decoding={"model": model or "default", "preserve_formatting": True, "targets": TARGETS},
            licence="DeepL terms of service",
            deterministic=False,
        ),
        connect,
        sources={code: code.upper() for code in CODES},
        targets={code: TARGETS.get(code, code.upper()) for code in CODES},
        texts=MOST_TEXTS,
        characters=MOST_CHARACTERS,
    )
