"""The kind: a sentence in one language, to be written in another (`phrases`, FLORES, WMT)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from harness import DataError
from harness.data import Example, Prediction, Row
from harness.kinds import Method, MethodContext, ReadContext, TaskKind, cluster_of, group_of, meta_of, text_of
from harness.models import Capability, Generates
from harness.prompts import PromptItem, generate_answers
from harness.specs import Code, TaskSpec

NAME = "machine_translation"


class TranslationSpec(TaskSpec):
    """The spec of a translation task; its languages are those that are translated into."""

    kind: Literal["machine_translation"]
    translate_from: Code = "en"
    """The language of the sources."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SentenceToTranslate(Example):
    """A sentence and its translation."""

    source: str
    target: str | None
    """None where the published file has none."""


def _example(row: Row, number: int, context: ReadContext) -> SentenceToTranslate:
    return SentenceToTranslate(
        id=str(row.fields.get("id", number)),
        cluster=cluster_of(row, context),
        group=group_of(row),
        meta=meta_of(row),
        source=text_of(row, "source", context),
        target=_target(row, context),
    )


def _target(row: Row, context: ReadContext) -> str | None:
    if row.fields.get("target") is None:
        return None
    target = text_of(row, "target", context)
    if not target.strip():
        raise DataError(
            f"{row.where}: the field 'target' of {context.owner!r} is empty; expected a translation."
        )
    return target


def _predict_by_generation(
    adapter: Generates, examples: Sequence[SentenceToTranslate], context: MethodContext
) -> list[Prediction]:
    assert context.prompter is not None  # the method is declared as `prompted`
    return generate_answers(adapter, examples, context.prompter, context.prompter.options, _read)


def _read(example: SentenceToTranslate, text: str) -> tuple[dict[str, Any], bool]:
    """Return the translation; an empty text is an answer that could not be read, and is scored as it is."""
    return {"text": text.strip()}, bool(text.strip())


def _prompt_item(example: SentenceToTranslate) -> PromptItem:
    return PromptItem(fields={"source": example.source}, gold=example.target)


METHODS = (
    Method(
        name="generate",
        kind=NAME,
        requires=Capability.GENERATES,
        protocols=frozenset({"prompted"}),
        predict=_predict_by_generation,
        prompted=True,
    ),
)

KIND = TaskKind(
    name=NAME,
    spec_model=TranslationSpec,
    head=None,
    methods=("generate",),
    example=_example,
    reference=lambda example: example.target,
    summary="a sentence in one language, to be written in another",
    prompt_item=_prompt_item,
    prompt_fields=lambda spec: ("source",),
)
