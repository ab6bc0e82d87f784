"""Text marking: tagged spans are found in raw text, without gold tokens (UD-POS and WikiANN in span mode).

Gold spans come with the rows as ``[start, end, tag]``, or are made of the tokens and tags of a tagged sentence, so
that the files of token tagging serve both kinds. With a flat tag set (POS) every token is one span. With BIO tags
every entity is one, by the lenient rule of chunk F1: ``I-LOC`` begins an entity where none of its type is open.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Annotated, Any, Literal

from pydantic import Field, model_validator

from harness.data.alignment import detokenise, locate
from harness.data.records import MarkedText, Prediction, Row, TaggedSentence, TaggedSpan
from harness.errors import ContractError, DataError
from harness.kinds import token_tagging
from harness.kinds.kind import ReadContext, TaskKind, cluster_of, id_of, known_label, text_of
from harness.kinds.methods import MethodContext, generate_method, head_method
from harness.kinds.pretoken import Pretoken, pretokens
from harness.languages.character import splits_combination
from harness.metrics.chunk import chunks
from harness.models.capabilities import Capability, Generates, Head, Tags
from harness.prompts.asking import generate_answers
from harness.prompts.preset import PromptItem
from harness.prompts.tagged import read_spans, span_text
from harness.specs.schema import TaskSpec


class TextMarkingSpec(TaskSpec):
    """The spec of a text marking task."""

    kind: Literal["text_marking"]
    labels: Annotated[tuple[str, ...], Field(min_length=2)]
    """The tags that the tagger gives to pre-tokens: those of the training stages."""
    scheme: Literal["bio", "flat"]
    """``bio``: labels are O, B-TYPE and I-TYPE, and spans have types; ``flat``: spans have labels."""

    @model_validator(mode="after")
    def _labels_keep_the_scheme(self) -> TextMarkingSpec:
        if self.scheme == "bio" and not _is_bio(self.labels):
            raise ValueError(
                "the scheme 'bio' needs the label 'O', and all others must look like 'B-PER' and 'I-PER'"
            )
        if self.scheme == "flat" and _is_bio(self.labels):
            raise ValueError("these labels are BIO tags, so 'scheme' must be 'bio'")
        return self


def _is_bio(labels: Sequence[str]) -> bool:
    inside = [label for label in labels if label != "O"]
    return "O" in labels and all(label.startswith(("B-", "I-")) and len(label) > 2 for label in inside)


def _span_tags(labels: Sequence[str]) -> tuple[str, ...]:
    """Return the tags that spans may have."""
    if not _is_bio(labels):
        return tuple(labels)
    return tuple(dict.fromkeys(label[2:] for label in labels if label != "O"))


# Rows -------------------------------------------------------------------------------------------------


def _example(row: Row, number: int, context: ReadContext) -> MarkedText:
    if "tokens" in row.fields:
        return _of_tokens(row, token_tagging.KIND.example(row, number, context), context)
    identifier = id_of(row, number)
    text = text_of(row, "text", context)
    if not text:
        raise DataError(f"{row.where}: item {identifier!r}: expected a text, found an empty one.")
    raw_spans = row.fields.get("spans")
    return MarkedText(
        id=identifier,
        cluster=cluster_of(row, context),
        text=text,
        spans=None
        if raw_spans is None
        else _given_spans(raw_spans, text, f"{row.where}: item {identifier!r}", context),
    )


def _of_tokens(row: Row, sentence: Any, context: ReadContext) -> MarkedText:
    """Return the raw text of a tagged sentence, with the spans that its tags make.

    A token is where its file has it, also in the middle of a combined character: these are published boundaries.
    """
    assert isinstance(sentence, TaggedSentence)
    try:
        if sentence.text is None:
            text, offsets = detokenise(sentence.tokens, context.language)
        else:
            text, offsets = sentence.text, locate(sentence.tokens, sentence.text)
    except ValueError as error:
        raise DataError(
            f"{row.where}: item {sentence.id!r}: the tokens do not make its text: {error}.",
            hint="Words of multi-word tokens do not; read CoNLL-U with the option 'tokens: fused'.",
        ) from error
    return MarkedText(
        id=sentence.id,
        cluster=sentence.cluster,
        meta=sentence.meta,
        text=text,
        spans=None if sentence.tags is None else _spans_of_tokens(sentence.tags, offsets, context.labels),
    )


def _spans_of_tokens(
    tags: Sequence[str], offsets: Sequence[tuple[int, int]], labels: Sequence[str]
) -> tuple[TaggedSpan, ...]:
    if not _is_bio(labels):
        return tuple(
            TaggedSpan(start=start, end=end, tag=tag) for tag, (start, end) in zip(tags, offsets, strict=True)
        )
    return tuple(
        TaggedSpan(start=offsets[first][0], end=offsets[last][1], tag=kind)
        for kind, first, last in chunks(tags)
    )


def _given_spans(given: Any, text: str, item: str, context: ReadContext) -> tuple[TaggedSpan, ...]:
    if not isinstance(given, list | tuple):
        raise DataError(f"{item}: expected 'spans' to be a list of [start, end, tag], found {given!r}.")
    spans = sorted((_given_span(span, text, item, context) for span in given), key=lambda span: span.start)
    for before, span in pairwise(spans):
        if span.start < before.end:
            raise DataError(
                f"{item}: expected spans that do not overlap, found {_plain(before)} and {_plain(span)}."
            )
    return tuple(spans)


def _given_span(given: Any, text: str, item: str, context: ReadContext) -> TaggedSpan:
    if not isinstance(given, list | tuple) or len(given) != 3:
        raise DataError(f"{item}: expected a span as [start, end, tag], found {given!r}.")
    start, end, raw = given
    if type(start) is not int or type(end) is not int or not 0 <= start < end <= len(text):
        raise DataError(
            f"{item}: expected a span with 0 <= start < end <= {len(text)}, the length of its text in characters, "
            f"found {list(given)!r}."
        )
    for offset in (start, end):
        if splits_combination(text, offset):
            raise DataError(
                f"{item}: the offset {offset} of the span {list(given)!r} lies inside the combined character "
                f"{text[offset - 1 : offset + 1]!r}.",
                hint="Offsets count Unicode code points of the text as the file has it.",
            )
    allowed = _span_tags(context.labels)
    tag = known_label(str(raw), context, where=f"{item}: unknown tag of a span", labels=allowed)
    return TaggedSpan(start=start, end=end, tag=tag)


def _plain(span: TaggedSpan) -> list[Any]:
    return [span.start, span.end, span.tag]


def _reference(example: MarkedText) -> list[list[Any]] | None:
    return None if example.spans is None else [_plain(span) for span in example.spans]


# The tagger's answers ---------------------------------------------------------------------------------


def spans_of_pretokens(pieces: Sequence[Pretoken], tags: Sequence[str], scheme: str) -> list[TaggedSpan]:
    """Return the spans that the tags of a text's pre-tokens make.

    ``bio``: an entity goes from its first pre-token to its last one. ``flat``: every pre-token is a span, but
    neighbours in scripts without spaces are one where they have the same tag, because a word has several there.
    """
    if scheme == "bio":
        return [
            TaggedSpan(start=pieces[first].start, end=pieces[last].end, tag=kind)
            for kind, first, last in chunks(tags)
        ]
    spans: list[TaggedSpan] = []
    before: Pretoken | None = None
    for piece, tag in zip(pieces, tags, strict=True):
        start = piece.start
        is_one_word = before is not None and before.unspaced and piece.unspaced and before.end == start
        if is_one_word and spans[-1].tag == tag:
            start = spans.pop().start
        spans.append(TaggedSpan(start=start, end=piece.end, tag=tag))
        before = piece
    return spans


def _predict_with_head(
    adapter: Tags, examples: Sequence[MarkedText], context: MethodContext
) -> list[Prediction]:
    assert isinstance(context.spec, TextMarkingSpec)
    pieces = [pretokens(example.text) for example in examples]
    # A text without a visible character has nothing to tag.
    filled = [index for index, tokens in enumerate(pieces) if tokens]
    tagged = adapter.tag(
        [[examples[index].text[piece.start : piece.end] for piece in pieces[index]] for index in filled]
    )
    if len(tagged) != len(filled):
        raise ContractError(f"tag() returned {len(tagged)} sentences; expected {len(filled)}.")
    spans: list[list[TaggedSpan]] = [[] for _ in examples]
    for index, tags in zip(filled, tagged, strict=True):
        if len(tags) != len(pieces[index]):
            raise ContractError(
                f"tag() returned {len(tags)} tags for the {len(pieces[index])} pre-tokens of text "
                f"{examples[index].id!r}."
            )
        spans[index] = spans_of_pretokens(pieces[index], tags, context.spec.scheme)
    return [
        Prediction(id=example.id, output={"spans": [_plain(span) for span in text_spans]})
        for example, text_spans in zip(examples, spans, strict=True)
    ]


def _prompt_item(example: MarkedText) -> PromptItem:
    """Return the text, and the gold as ``PER: name $$ LOC: name``."""
    if example.spans is None:
        return PromptItem(fields={"text": example.text})
    entities = span_text([(span.tag, example.text[span.start : span.end]) for span in example.spans])
    return PromptItem(fields={"text": example.text, "entities": entities}, gold=entities)


def _predict_by_generation(
    adapter: Generates, examples: Sequence[MarkedText], context: MethodContext
) -> list[Prediction]:
    assert context.prompter is not None
    types = _span_tags(context.spec.label_names)

    def read(example: MarkedText, text: str) -> tuple[dict[str, Any], bool]:
        spans = read_spans(text, example.text, types)
        return {"spans": [list(span) for span in spans or []]}, spans is not None

    return generate_answers(adapter, examples, context.prompter, context.prompter.options, read)


METHODS = (
    head_method("text_marking", Capability.TAGS, _predict_with_head),
    generate_method("text_marking", _predict_by_generation, repeatable=False),
)

KIND = TaskKind(
    name="text_marking",
    spec_model=TextMarkingSpec,
    head=Head.TAGGING,
    methods=("head", "generate"),
    example=_example,
    reference=_reference,
    summary="tagged spans are found in raw text, without gold tokens",
    prompt_item=_prompt_item,
    prompt_fields=lambda spec: ("text", "entities"),
    texts=lambda example, spec: (example.text,),
)
