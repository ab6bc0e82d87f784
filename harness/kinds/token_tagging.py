"""Token tagging: every token of a sentence gets a tag (UD-POS, WikiANN in token mode)."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Annotated, Literal

from pydantic import Field

from harness.data.records import Prediction, Row, TaggedSentence
from harness.errors import ContractError, DataError
from harness.kinds.kind import ReadContext, TaskKind, cluster_of, group_of, id_of, known_label, meta_of
from harness.kinds.methods import MethodContext, generate_method, head_method
from harness.models.capabilities import Capability, Constraint, Generates, Head, Tags
from harness.models.requests import GenerateOptions
from harness.prompts.asking import generate_answers
from harness.prompts.preset import PromptItem
from harness.prompts.tagged import entity_text, read_entities, read_tagged, tagged_text
from harness.specs.prompt import PromptSpec
from harness.specs.schema import TaskSpec

TOKENS_A_WORD = 16
"""Generated tokens that one word with its tag may take; scripts outside a vocabulary need several per character."""


class TokenTaggingSpec(TaskSpec):
    """The spec of a token tagging task."""

    kind: Literal["token_tagging"]
    labels: Annotated[tuple[str, ...], Field(min_length=2)]


def _example(row: Row, number: int, context: ReadContext) -> TaggedSentence:
    tokens = tuple(str(token) for token in row.fields.get("tokens") or ())
    raw_tags = row.fields.get("tags")
    if not tokens:
        raise DataError(f"{row.where}: expected a sentence with tokens, found none.")
    if raw_tags is not None and len(raw_tags) != len(tokens):
        raise DataError(f"{row.where}: the sentence has {len(tokens)} tokens and {len(raw_tags)} tags.")
    tags = (
        None
        if raw_tags is None
        else tuple(_tag(str(tag), row, at, context) for at, tag in enumerate(raw_tags))
    )
    sentence_id = row.fields.get("sent_id")
    text = row.fields.get("text")
    return TaggedSentence(
        id=id_of(row, number),
        cluster=cluster_of(row, context),
        group=group_of(row),
        tokens=tokens,
        tags=tags,
        text=text if isinstance(text, str) else None,
        meta={**({"sent_id": str(sentence_id)} if sentence_id else {}), **meta_of(row)},
    )


def _tag(raw: str, row: Row, at: int, context: ReadContext) -> str:
    where = f"{row.where}: token {at + 1}, {row.fields['tokens'][at]!r}: unknown tag"
    return known_label(raw, context, where=where)


def _reference(example: TaggedSentence) -> list[str] | None:
    return None if example.tags is None else list(example.tags)


def _predict_with_head(
    adapter: Tags, examples: Sequence[TaggedSentence], context: MethodContext
) -> list[Prediction]:
    tagged = adapter.tag([example.tokens for example in examples])
    if len(tagged) != len(examples):
        raise ContractError(f"tag() returned {len(tagged)} sentences; expected {len(examples)}.")
    for example, tags in zip(examples, tagged, strict=True):
        if len(tags) != len(example.tokens):
            raise ContractError(
                f"tag() returned {len(tags)} tags for the {len(example.tokens)} tokens of sentence {example.id!r}."
            )
    return [
        Prediction(id=example.id, output=list(tags)) for example, tags in zip(examples, tagged, strict=True)
    ]


def _prompt_item(example: TaggedSentence) -> PromptItem:
    """Return the tokens, and the gold in the two forms that prompts ask for: ``word_TAG``, and ``PER: name $$``."""
    fields = {"tokens": " ".join(example.tokens)}
    if example.tags is None:
        return PromptItem(fields=fields)
    fields["tagged"] = tagged_text(example.tokens, example.tags)
    fields["entities"] = entity_text(example.tokens, example.tags)
    return PromptItem(fields=fields, gold=fields["tagged"])


NO_TAG = "O"
"""The tag of the tokens of an answer that could not be read: no part-of-speech tag, and outside of every entity."""


def _predict_by_generation(
    adapter: Generates, examples: Sequence[TaggedSentence], context: MethodContext
) -> list[Prediction]:
    assert context.prompter is not None
    prompter, labels = context.prompter, context.spec.label_names
    types = sorted({label[2:] for label in labels if label[:2] in {"B-", "I-"}})
    by_entity = _constraint(prompter.prompt.spec) is None

    def read(example: TaggedSentence, text: str) -> tuple[list[str], bool]:
        tags = (
            read_entities(text, example.tokens, types)
            if by_entity
            else read_tagged(text, example.tokens, labels)
        )
        return ([NO_TAG] * len(example.tokens), False) if tags is None else (tags, True)

    def options(example: TaggedSentence) -> GenerateOptions:
        choice = "|".join(map(re.escape, labels))
        words = " ".join(f"{re.escape(token)}_({choice})" for token in example.tokens)
        base = prompter.options(example, regex=None if by_entity else f" ?{words}")
        return replace(base, max_tokens=max(base.max_tokens, TOKENS_A_WORD * len(example.tokens)))

    return generate_answers(adapter, examples, prompter, options, read)


def _constraint(spec: PromptSpec) -> Constraint | None:
    """Return the constraint on answers; None for entities, which may be any words of the sentence."""
    return None if spec.parser == "entities" else "regex"


METHODS = (
    head_method("token_tagging", Capability.TAGS, _predict_with_head),
    generate_method("token_tagging", _predict_by_generation, repeatable=False, constraint=_constraint),
)

KIND = TaskKind(
    name="token_tagging",
    spec_model=TokenTaggingSpec,
    head=Head.TAGGING,
    methods=("head", "generate", "probe"),
    example=_example,
    reference=_reference,
    summary="every token of a sentence gets a tag",
    prompt_item=_prompt_item,
    prompt_fields=lambda spec: ("tokens", "tagged", "entities"),
    texts=lambda example, spec: (" ".join(example.tokens),),
)
