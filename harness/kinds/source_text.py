"""Texts that are written from a source: translations (NTREX) and summaries (XL-Sum, CrossSum-IN).

A text is translated out of, or into, one language that all cells share. Translation models (NLLB) get the text with
their own language codes, by the method `translate`; others get a prompt. A summary is in the language of its text or in
another one.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

from pydantic import model_validator

from harness.data.records import Prediction, Row, SourceText
from harness.kinds.kind import ReadContext, TaskKind, cluster_of, group_of, id_of, meta_of, text_of
from harness.kinds.methods import Method, MethodContext, generate_method
from harness.languages.table import known_languages
from harness.models.capabilities import Capability, Generates
from harness.models.requests import Generated, GenerateOptions
from harness.prompts.asking import generate_answers
from harness.prompts.preset import PromptItem
from harness.specs.schema import Code, TaskSpec

_FIELDS = ("source", "source_name", "target_name")
_MOST_TOKENS = 512
"""Longest translation of a translation model, which was trained on sentences."""


def _writing_kind(
    name: str, spec_model: type[TaskSpec], summary: str, *, methods: tuple[str, ...] = ("generate",)
) -> TaskKind:
    """Return a kind whose answers are texts with one reference text."""
    return TaskKind(
        name=name,
        spec_model=spec_model,
        head=None,
        methods=methods,
        example=_example,
        reference=_reference,
        summary=summary,
        prompt_item=_prompt_item,
        prompt_fields=lambda spec: _FIELDS,
        texts=_own_texts,
    )


def _own_texts(example: SourceText, spec: TaskSpec) -> tuple[str, ...]:
    """Return the text in the language of the cell: the reference where all sources share another one."""
    shared_source = getattr(spec, "source_language", None) is not None
    return (example.reference or "",) if shared_source else (example.source,)


def _language_name(spec: TaskSpec, code: str) -> str:
    """Return the English name of a language of a task: its own for it, the table's, or the code."""
    entry = spec.languages.get(code)
    if entry is not None and entry.name is not None:
        return entry.name
    return known_languages().get(code).name if code in known_languages() else code


def _example(row: Row, number: int, context: ReadContext) -> SourceText:
    reference = None if row.fields.get("target") is None else text_of(row, "target", context)
    return SourceText(
        id=id_of(row, number),
        cluster=cluster_of(row, context),
        group=group_of(row),
        meta=meta_of(row),
        source=text_of(row, "source", context),
        reference=reference,
        source_name=context.words.get("source_name", context.language),
        target_name=context.words.get("target_name", context.language),
    )


def _reference(example: SourceText) -> list[str] | None:
    return None if example.reference is None else [example.reference]


def _prompt_item(example: SourceText) -> PromptItem:
    return PromptItem(fields={name: getattr(example, name) for name in _FIELDS}, gold=example.reference)


def _predict(adapter: Generates, examples: Sequence[SourceText], context: MethodContext) -> list[Prediction]:
    """Return the text that a model writes for each item, on one line, and whether it is the source again."""
    assert context.prompter is not None
    return generate_answers(adapter, examples, context.prompter, context.prompter.options, _read)


def _written_prediction(example: SourceText, answer: Generated) -> Prediction:
    """Return the prediction for a text written without a prompt, in the form of `_predict`."""
    output, is_read = _read(example, answer.text)
    unfinished = not answer.finished
    return Prediction(
        id=example.id,
        output={**output, "raw": answer.text},
        truncated=answer.truncated,
        unparsed=not is_read and not unfinished,
        unfinished=unfinished,
        unanswered=unfinished and not is_read,
        tokens=answer.tokens,
    )


def _read(example: SourceText, text: str) -> tuple[dict[str, Any], bool]:
    written = " ".join(text.split())
    is_copy = bool(written) and written.casefold() == " ".join(example.source.split()).casefold()
    return {"text": written, "copied": is_copy}, bool(written)


class TranslationSpec(TaskSpec):
    """The spec of a translation task; its cells are named by the language that is not the shared one."""

    kind: Literal["translation"]
    source_language: Code | None = None
    """The language of all sources: each language of the task is translated into."""
    target_language: Code | None = None
    """The language of all translations: each language of the task is translated from."""

    @property
    def answer_language(self) -> str | None:
        """The language of all translations, where they share it."""
        return self.target_language

    def row_words(self, language: str) -> dict[str, str]:
        """Return the English names of the two languages."""
        source, target = self.source_language or language, self.target_language or language
        return {"source_name": _language_name(self, source), "target_name": _language_name(self, target)}

    @model_validator(mode="after")
    def _shares_one_side(self) -> TranslationSpec:
        if (self.source_language is None) == (self.target_language is None):
            raise ValueError(
                "give either 'source_language' or 'target_language': the language on one side of all translations"
            )
        return self


def _translate(
    adapter: Generates, examples: Sequence[SourceText], context: MethodContext
) -> list[Prediction]:
    """Return a translation model's output for each text; raises `CapabilityError` for a language it does not know."""
    assert isinstance(context.spec, TranslationSpec)
    language = (context.cell_language or context.language).code
    pair = (context.spec.source_language or language, context.spec.target_language or language)
    options = GenerateOptions(max_tokens=_MOST_TOKENS, languages=pair)
    answers = adapter.generate([example.source for example in examples], [options] * len(examples))
    return [_written_prediction(example, answer) for example, answer in zip(examples, answers, strict=True)]


class SummarySpec(TaskSpec):
    """The spec of a summarisation task."""

    kind: Literal["summary"]
    source_language: Code | None = None
    """The language of all texts, where it is not that of their summaries."""

    def row_words(self, language: str) -> dict[str, str]:
        """Return the English names of the languages of the text and of the summary."""
        source = self.source_language or language
        return {"source_name": _language_name(self, source), "target_name": _language_name(self, language)}


METHODS = (
    Method(
        name="translate",
        kind="translation",
        requires=Capability.TRANSLATES,
        protocols=frozenset({"prompted"}),
        predict=_translate,
    ),
    generate_method("translation", _predict),
    generate_method("summary", _predict),
)

TRANSLATION = _writing_kind(
    "translation", TranslationSpec, "a text is translated", methods=("translate", "generate")
)
SUMMARY = _writing_kind("summary", SummarySpec, "a text is summarised in its language")

KINDS = (TRANSLATION, SUMMARY)
