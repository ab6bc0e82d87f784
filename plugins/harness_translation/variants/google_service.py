"""The translator ``google-cloud``: the Cloud Translation API, version 3, by its own package."""

from __future__ import annotations

from collections.abc import Sequence

from google.api_core.client_options import ClientOptions
from google.auth.credentials import AnonymousCredentials
from google.cloud import translate_v3

from harness import UsageError
from harness.data import TranslatorContext, TranslatorInfo
from harness_translation.variants.service import Send, ServiceTranslator, read_options

MOST_TEXTS = 1_024
MOST_CHARACTERS = 30_000
"""A request has at most 1,024 texts and 30,000 code points."""
CODES = {"zh": "zh-CN", "he": "iw", "jv": "jw", "no": "nb"}
"""Codes of the service that are not those of the language table."""
PLAIN = "text/plain"
"""HTML, the service's default, would come back with escaped characters."""


def open_google(ref: str, context: TranslatorContext) -> ServiceTranslator:
    """Return the service of a project: ``PROJECT[?location=global&model=general/nmt&url=URL]``.

    Credentials are those that Google's packages find (``GOOGLE_APPLICATION_CREDENTIALS``); a server on ``http://`` gets
    none. Raises `UsageError` without a project.
    """
    project, options = read_options("google-cloud", ref, ("location", "model", "url"))
    if not project:
        raise UsageError("The translator 'google-cloud' needs a project: --translator google-cloud:PROJECT")
    url, model = options.get("url"), options.get("model", "general/nmt")
    parent = f"projects/{project}/locations/{options.get('location', 'global')}"

    def connect() -> Send:
        plain = url is not None and url.startswith("http://")
        client = translate_v3.TranslationServiceClient(
            transport="rest",
            credentials=AnonymousCredentials() if plain else None,
            client_options=None if url is None else ClientOptions(api_endpoint=url),
        )

        def send(texts: Sequence[str], source: str, target: str) -> list[str]:
            answer = client.translate_text(
                request={
                    "parent": parent,
                    "contents": list(texts),
                    "mime_type": PLAIN,
                    "source_language_code": source,
                    "target_language_code": target,
                    "model": f"{parent}/models/{model}",
                }
            )
            return [translation.translated_text for translation in answer.translations]

        return send

    codes = {language.code: CODES.get(language.code, language.code) for language in context.languages}
    return ServiceTranslator(
        TranslatorInfo(
            id=f"Google Cloud Translation, {model}",
            engine="google-cloud-translate",
            engine_version="v3",
            decoding={"model": model, "mime_type": PLAIN},
            licence="Google Cloud terms of service",
            deterministic=False,
        ),
        connect,
        sources=codes,
        targets=codes,
        texts=MOST_TEXTS,
        characters=MOST_CHARACTERS,
    )
