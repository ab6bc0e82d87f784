"""Kinds whose answers are tags: of all tokens of a sentence, of some of its words, or of spans in raw text.

Token tagging is UD-POS, and WikiANN in token mode. In word labelling some words carry a label, such as their
grammatical case (Vyakarana). In text marking tagged spans are found in raw text, without gold tokens (UD-POS and
WikiANN in span mode). Gold spans come with the rows as ``[start, end, tag]``, or are made of the tokens and tags of a
tagged sentence, so that the files of token tagging serve both kinds. With a flat tag set (POS) every token is one span.
With BIO tags every entity is one, by the lenient rule of chunk F1: ``I-LOC`` begins an entity where none of its type is
open.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Annotated, Any, Literal

from pydantic import Field, model_validator

from harness.data.alignment import detokenise, locate
from harness.data.records import LabelledWords, MarkedText, Prediction, Row, TaggedSentence, TaggedSpan
from harness.errors import ContractError, DataError
from harness.kinds.kind import (
    ReadContext,
    TaskKind,
    cluster_of,
    group_of,
    id_of,
    known_label,
    meta_of,
    text_of,
)
from harness.kinds.methods import MethodContext, generate_method, head_method
from harness.languages.character import (
    ZERO_WIDTH_JOINER,
    is_blank,
    is_extender,
    is_unspaced,
    is_wordlike,
    splits_combination,
)
from harness.metrics.chunk import chunks
from harness.models.capabilities import Capability, Constraint, Generates, Head, Tags
from harness.models.requests import GenerateOptions
from harness.prompts.asking import generate_answers
from harness.prompts.preset import PromptItem
from harness.prompts.tagged import entity_text, read_entities, read_spans, read_tagged, span_text, tagged_text
from harness.specs.documents import PromptSpec
from harness.specs.schema import TaskSpec

_TOKENS_A_WORD = 16
"""Generated tokens that one word with its tag may take; scripts outside a vocabulary need several per character."""
_NO_TAG = "O"
"""The tag of the tokens of an answer that could not be read: no part-of-speech tag, and outside of every entity."""


class TokenTaggingSpec(TaskSpec):
    """The spec of a token tagging task."""

    kind: Literal["token_tagging"]
    labels: Annotated[tuple[str, ...], Field(min_length=2)]


def _sentence_example(row: Row, number: int, context: ReadContext) -> TaggedSentence:
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


def _gold_tags(example: TaggedSentence) -> list[str] | None:
    return None if example.tags is None else list(example.tags)


def _ask_tags(adapter: Tags, sentences: Sequence[tuple[str, Sequence[str]]]) -> Sequence[Sequence[str]]:
    """Return the tags of sentences, each with its title; raises `ContractError` where their numbers are wrong."""
    tagged = adapter.tag([tokens for _, tokens in sentences])
    if len(tagged) != len(sentences):
        raise ContractError(f"tag() returned {len(tagged)} sentences; expected {len(sentences)}.")
    for (title, tokens), tags in zip(sentences, tagged, strict=True):
        if len(tags) != len(tokens):
            raise ContractError(f"tag() returned {len(tags)} tags for the {len(tokens)} {title}.")
    return tagged


def _tag_sentences(
    adapter: Tags, examples: Sequence[TaggedSentence], context: MethodContext
) -> list[Prediction]:
    sentences = [(f"tokens of sentence {example.id!r}", example.tokens) for example in examples]
    tagged = _ask_tags(adapter, sentences)
    return [
        Prediction(id=example.id, output=list(tags)) for example, tags in zip(examples, tagged, strict=True)
    ]


def _sentence_item(example: TaggedSentence) -> PromptItem:
    """Return the tokens, and the gold in the two forms that prompts ask for: ``word_TAG``, and ``PER: name $$``."""
    fields = {"tokens": " ".join(example.tokens)}
    if example.tags is None:
        return PromptItem(fields=fields)
    fields["tagged"] = tagged_text(example.tokens, example.tags)
    fields["entities"] = entity_text(example.tokens, example.tags)
    return PromptItem(fields=fields, gold=fields["tagged"])


def _write_tags(
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
        return ([_NO_TAG] * len(example.tokens), False) if tags is None else (tags, True)

    def options(example: TaggedSentence) -> GenerateOptions:
        choice = "|".join(map(re.escape, labels))
        words = " ".join(f"{re.escape(token)}_({choice})" for token in example.tokens)
        base = prompter.options(example, regex=None if by_entity else f" ?{words}")
        return replace(base, max_tokens=max(base.max_tokens, _TOKENS_A_WORD * len(example.tokens)))

    return generate_answers(adapter, examples, prompter, options, read)


def _constraint(spec: PromptSpec) -> Constraint | None:
    """Return the constraint on answers; None for entities, which may be any words of the sentence."""
    return None if spec.parser == "entities" else "regex"


class WordLabellingSpec(TaskSpec):
    """The spec of a word labelling task."""

    kind: Literal["word_labelling"]
    labels: Annotated[tuple[str, ...], Field(min_length=2)]


def _words_example(row: Row, number: int, context: ReadContext) -> LabelledWords:
    tokens = tuple(str(token) for token in row.fields.get("tokens") or ())
    if not tokens:
        raise DataError(f"{row.where}: expected a sentence with tokens, found none.")
    raw_labels = row.fields.get("labels")
    if raw_labels is None:
        targets, labels = _given_targets(row, len(tokens)), None
    else:
        if len(raw_labels) != len(tokens):
            raise DataError(
                f"{row.where}: the sentence has {len(tokens)} tokens and {len(raw_labels)} labels; expected one a "
                "token, null for words without."
            )
        targets = tuple(position for position, label in enumerate(raw_labels) if label is not None)
        labels = tuple(
            known_label(str(raw_labels[position]), context, where=f"{row.where}: unknown label")
            for position in targets
        )
    return LabelledWords(
        id=id_of(row, number),
        cluster=cluster_of(row, context),
        group=group_of(row),
        meta=meta_of(row),
        tokens=tokens,
        targets=targets,
        labels=labels,
    )


def _given_targets(row: Row, size: int) -> tuple[int, ...]:
    """Return the positions whose labels an unlabelled file asks for; raises `DataError` where it does not say."""
    raw_targets = row.fields.get("targets")
    if not isinstance(raw_targets, list | tuple) or not all(
        type(position) is int for position in raw_targets
    ):
        raise DataError(
            f"{row.where}: expected 'labels', or 'targets' with the positions of the words to be labelled, found "
            f"{raw_targets!r}."
        )
    targets = tuple(raw_targets)
    if sorted(set(targets)) != list(targets) or (targets and not 0 <= targets[0] <= targets[-1] < size):
        raise DataError(
            f"{row.where}: expected 'targets' rising from 0 to {size - 1}, found {', '.join(map(str, targets))}."
        )
    return targets


def _gold_labels(example: Any) -> list[str] | None:
    return None if example.labels is None else list(example.labels)


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


def _text_example(row: Row, number: int, context: ReadContext) -> MarkedText:
    if "tokens" in row.fields:
        return _of_tokens(row, _sentence_example(row, number, context), context)
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


def _gold_spans(example: MarkedText) -> list[list[Any]] | None:
    return None if example.spans is None else [_plain(span) for span in example.spans]


# The tagger's answers ---------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Pretoken:
    """A piece of a text, ``text[start:end]`` in Unicode code points."""

    start: int
    end: int
    unspaced: bool
    """Whether it is one character of a script without spaces, so a word may continue in the next one."""


def pretokens(text: str) -> list[Pretoken]:
    """Return the pre-tokens of a text, by a rule that knows neither its language nor its gold tokens.

    A maximal run of letters and numbers is one. In scripts that put no space between words (Han, Hiragana,
    Katakana, Thai, Lao, Khmer, Myanmar) every letter is one. Every other character that is not white space is one.
    Marks and format characters (joiners, direction marks) stay with what they follow; where they follow nothing,
    they begin the run of letters that comes next, and format characters with no such run are skipped. A symbol
    that follows a zero width joiner stays with the symbol before it (emoji).

    Source: categories of the Unicode Character Database; the attachment of marks and formats is rule WB4 of Unicode
    Standard Annex 29. XTREME-R (Ruder et al., 2021, section 3) asks for full text and prescribes no such rule.
    """
    tokens: list[Pretoken] = []
    start, is_run, unspaced = -1, False, False
    for position, character in enumerate(text):
        if is_blank(character):
            _close(tokens, text, start, position, unspaced)
            start = -1
        elif is_extender(character):
            if start < 0:
                start, is_run, unspaced = position, True, False
        elif is_unspaced(character) or not is_wordlike(character):
            is_joined = start >= 0 and text[position - 1] == ZERO_WIDTH_JOINER
            if is_joined and not (is_run or unspaced or is_unspaced(character)):
                continue
            _close(tokens, text, start, position, unspaced)
            start, is_run, unspaced = position, False, is_unspaced(character)
        elif start < 0 or not is_run:
            _close(tokens, text, start, position, unspaced)
            start, is_run, unspaced = position, True, False
    _close(tokens, text, start, len(text), unspaced)
    return tokens


def _close(found: list[Pretoken], text: str, start: int, end: int, unspaced: bool) -> None:
    if start >= 0 and not _is_invisible(text[start:end]):
        found.append(Pretoken(start=start, end=end, unspaced=unspaced))


def _is_invisible(piece: str) -> bool:
    """Return whether a piece holds format characters only."""
    return all(is_extender(character) and not character.isprintable() for character in piece)


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


def _mark_texts(adapter: Tags, examples: Sequence[MarkedText], context: MethodContext) -> list[Prediction]:
    assert isinstance(context.spec, TextMarkingSpec)
    pieces = [pretokens(example.text) for example in examples]
    # A text without a visible character has nothing to tag.
    filled = [index for index, tokens in enumerate(pieces) if tokens]
    sentences = [
        (
            f"pre-tokens of text {examples[index].id!r}",
            [examples[index].text[piece.start : piece.end] for piece in pieces[index]],
        )
        for index in filled
    ]
    spans: list[list[TaggedSpan]] = [[] for _ in examples]
    for index, tags in zip(filled, _ask_tags(adapter, sentences), strict=True):
        spans[index] = spans_of_pretokens(pieces[index], tags, context.spec.scheme)
    return [
        Prediction(id=example.id, output={"spans": [_plain(span) for span in text_spans]})
        for example, text_spans in zip(examples, spans, strict=True)
    ]


def _text_item(example: MarkedText) -> PromptItem:
    """Return the text, and the gold as ``PER: name $$ LOC: name``."""
    if example.spans is None:
        return PromptItem(fields={"text": example.text})
    entities = span_text([(span.tag, example.text[span.start : span.end]) for span in example.spans])
    return PromptItem(fields={"text": example.text, "entities": entities}, gold=entities)


def _write_spans(
    adapter: Generates, examples: Sequence[MarkedText], context: MethodContext
) -> list[Prediction]:
    assert context.prompter is not None
    types = _span_tags(context.spec.label_names)

    def read(example: MarkedText, text: str) -> tuple[dict[str, Any], bool]:
        spans = read_spans(text, example.text, types)
        return {"spans": [list(span) for span in spans or []]}, spans is not None

    return generate_answers(adapter, examples, context.prompter, context.prompter.options, read)


METHODS = (
    head_method("token_tagging", Capability.TAGS, _tag_sentences),
    generate_method("token_tagging", _write_tags, repeatable=False, constraint=_constraint),
    head_method("text_marking", Capability.TAGS, _mark_texts),
    generate_method("text_marking", _write_spans, repeatable=False),
)

TOKEN_TAGGING = TaskKind(
    name="token_tagging",
    spec_model=TokenTaggingSpec,
    head=Head.TAGGING,
    methods=("head", "generate", "probe"),
    example=_sentence_example,
    reference=_gold_tags,
    summary="every token of a sentence gets a tag",
    prompt_item=_sentence_item,
    prompt_fields=lambda spec: ("tokens", "tagged", "entities"),
    texts=lambda example, spec: (" ".join(example.tokens),),
)

WORD_LABELLING = TaskKind(
    name="word_labelling",
    spec_model=WordLabellingSpec,
    head=None,
    methods=("probe",),
    example=_words_example,
    reference=_gold_labels,
    summary="some words of a sentence get a label",
    texts=lambda example, spec: (" ".join(example.tokens),),
)

TEXT_MARKING = TaskKind(
    name="text_marking",
    spec_model=TextMarkingSpec,
    head=Head.TAGGING,
    methods=("head", "generate"),
    example=_text_example,
    reference=_gold_spans,
    summary="tagged spans are found in raw text, without gold tokens",
    prompt_item=_text_item,
    prompt_fields=lambda spec: ("text", "entities"),
    texts=lambda example, spec: (example.text,),
)

KINDS = (TOKEN_TAGGING, WORD_LABELLING, TEXT_MARKING)
