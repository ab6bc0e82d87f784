"""Texts that are written from a source: what the kinds of translations and summaries share."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from harness.data.records import Prediction, Row, SourceText
from harness.kinds.kind import ReadContext, TaskKind, cluster_of, group_of, id_of, meta_of, text_of
from harness.kinds.methods import MethodContext
from harness.languages.table import known_languages
from harness.models.capabilities import Generates
from harness.models.requests import Generated
from harness.prompts.asking import generate_answers
from harness.prompts.preset import PromptItem
from harness.specs.schema import TaskSpec

FIELDS = ("source", "source_name", "target_name")


def writing_kind(
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
        prompt_fields=lambda spec: FIELDS,
        texts=_own_texts,
    )


def _own_texts(example: SourceText, spec: TaskSpec) -> tuple[str, ...]:
    """Return the text in the language of the cell: the reference where all sources share another one."""
    shared_source = getattr(spec, "source_language", None) is not None
    return (example.reference or "",) if shared_source else (example.source,)


def language_name(spec: TaskSpec, code: str) -> str:
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
    return PromptItem(fields={name: getattr(example, name) for name in FIELDS}, gold=example.reference)


def predict(adapter: Generates, examples: Sequence[SourceText], context: MethodContext) -> list[Prediction]:
    """Return the text that a model writes for each item, on one line, and whether it is the source again."""
    assert context.prompter is not None
    return generate_answers(adapter, examples, context.prompter, context.prompter.options, _read)


def written_prediction(example: SourceText, answer: Generated) -> Prediction:
    """Return the prediction for a text written without a prompt, in the form of `predict`."""
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
