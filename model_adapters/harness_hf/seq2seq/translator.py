"""The translator ``hf-seq2seq``: NLLB, M2M100, mBART-50 and MADLAD, through the adapter of these models."""

from __future__ import annotations

from collections.abc import Sequence

from harness import AdapterError, UsageError
from harness.data import Translation, TranslatorContext, TranslatorInfo
from harness.languages import Language
from harness.models import GenerateOptions, parse_options
from harness_hf.fit_record import folder_identity, library_versions
from harness_hf.loading import read_tokenizer
from harness_hf.model_folder import read_config, resolve_folder
from harness_hf.options import Seq2SeqOptions
from harness_hf.seq2seq.adapter import Seq2Seq
from harness_hf.seq2seq.direction import SCHEMES, find_scheme
from harness_hf.seq2seq.session import Seq2SeqSession

MOST_TOKENS = 512
"""Longest output; NLLB was trained on sentences."""


class Seq2SeqTranslator:
    """Translates between all languages whose codes the model knows; it is opened at the first segment."""

    def __init__(self, ref: str, options: Seq2SeqOptions, context: TranslatorContext) -> None:
        model = read_config(ref, options)
        self._ref = ref
        self._options = options
        self._languages = context.languages
        self._folder = resolve_folder(ref, options, model.revision)
        self._revision = model.revision
        self._open: Seq2Seq | None = None
        self._vocabulary = self._read_vocabulary()
        self._scheme = find_scheme(self._vocabulary, context.languages.get("en"))
        if self._scheme is None:
            raise AdapterError(
                f"The model {ref!r} has no language tokens that are known here; expected one of "
                f"{', '.join(repr(scheme.codes(context.languages.get('en'))[0]) for scheme in SCHEMES)}.",
                hint="Take an NLLB, M2M100, mBART-50 or MADLAD checkpoint, or write a translator plugin.",
            )
        self._identity = self._describe()

    def info(self) -> TranslatorInfo:
        """Return digests, versions and the settings of the decoding, which is greedy."""
        return self._identity

    def supports(self, source: str, target: str) -> bool:
        """Whether the vocabulary has tokens for both languages (MADLAD: for the target)."""
        assert self._scheme is not None
        codes = (target,) if self._scheme.is_prefix else (source, target)
        return all(code in self._languages and bool(self._token(code)) for code in codes)

    def translate(self, segments: Sequence[str], source: str, target: str) -> list[Translation]:
        """Return the translations; a segment longer than the model's input is cut, which counts as truncated."""
        options = GenerateOptions(max_tokens=MOST_TOKENS, languages=(source, target))
        answers = self._opened().generate(segments, [options] * len(segments))
        return [
            Translation(
                text=answer.text.strip(),
                finish="stop" if answer.finished and not answer.truncated else "length",
                target_tokens=answer.tokens,
            )
            for answer in answers
        ]

    def close(self) -> None:
        """Free the model; a second call does nothing."""
        if self._open is not None:
            self._open.close()
        self._open = None

    def _token(self, code: str) -> str:
        assert self._scheme is not None
        language: Language = self._languages.get(code)
        return self._scheme.token(language, self._vocabulary) or ""

    def _opened(self) -> Seq2Seq:
        if self._open is None:
            self._open = Seq2Seq(Seq2SeqSession(ref=self._ref, folder=self._folder, options=self._options))
        return self._open

    def _read_vocabulary(self) -> frozenset[str]:
        """Return the tokens of the vocabulary, those of languages among them."""
        safe = self._options.model_copy(update={"trust_remote_code": False})
        tokenizer = read_tokenizer(self._folder, self._ref, safe)
        names = getattr(tokenizer, "lang_code_to_token", None) or {}
        return frozenset(tokenizer.get_vocab()) | frozenset(names.values())

    def _describe(self) -> TranslatorInfo:
        versions = library_versions()
        return TranslatorInfo(
            id=self._ref,
            engine="transformers",
            engine_version=versions.get("transformers", ""),
            revision=self._revision,
            decoding={
                "strategy": "greedy",
                "max_tokens": MOST_TOKENS,
                "max_length": self._options.max_length,
                **folder_identity(self._folder),
            },
            precision=self._options.dtype,
        )


def open_translator(ref: str, context: TranslatorContext) -> Seq2SeqTranslator:
    """Return the translator of a model folder or hub id; ``PATH?dtype=float16&device=cuda`` passes options on.

    Raises `UsageError` for a model or option that is not there, `AdapterError` for one that is no translator.
    """
    path, _, query = ref.partition("?")
    if not path:
        raise UsageError(
            "The translator 'hf-seq2seq' needs a model.",
            hint="Such as: hf-seq2seq:facebook/nllb-200-distilled-600M",
        )
    fields = dict(field.partition("=")[::2] for field in query.split("&") if field)
    entry = context.adapters.get("hf-seq2seq")
    options = parse_options(entry, fields)
    assert isinstance(options, Seq2SeqOptions)
    return Seq2SeqTranslator(path, options, context)
