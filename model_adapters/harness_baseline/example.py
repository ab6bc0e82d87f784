"""Training examples, checked once before a baseline learns from them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from harness import TrainingError, near_names
from harness.data import (
    ClassificationExample,
    Example,
    MultipleChoiceExample,
    RetrievalPair,
    SpanExample,
    TaggedSentence,
)
from harness.models import Head, HeadSpec, TextInput

EXAMPLE_TYPE: dict[Head, type[Example]] = {
    Head.CLASSIFICATION: ClassificationExample,
    Head.MULTIPLE_CHOICE: MultipleChoiceExample,
    Head.TAGGING: TaggedSentence,
    Head.SPAN_EXTRACTION: SpanExample,
    Head.DUAL_ENCODER: RetrievalPair,
}
"""What each head learns from."""


def checked_examples(train: Sequence[Any], spec: HeadSpec) -> Sequence[Any]:
    """Return the examples; raises `TrainingError` that names the first one that cannot be learnt from."""
    record = EXAMPLE_TYPE[spec.head]
    if not train:
        raise TrainingError(
            f"There is no training example for the head {spec.head.value!r}.",
            hint="Give the task a training split, or raise --train-limit.",
        )
    for example in train:
        if not isinstance(example, record):
            type_name = type(example).__name__
            raise TrainingError(
                f"The head {spec.head.value!r} learns from {record.__name__}, not from {type_name}."
            )
        fault = _fault(example, spec)
        if fault:
            raise TrainingError(f"The training example {example.id!r} {fault}.")
    return train


def label_names(examples: Sequence[Any], spec: HeadSpec) -> tuple[str, ...]:
    """Return the labels that a head gives: those of the spec or else of the examples, and always the examples' tags."""
    match spec.head:
        case Head.CLASSIFICATION:
            return spec.labels or tuple(sorted({example.label for example in examples}))
        case Head.TAGGING:
            return tuple(sorted({tag for sentence in examples for tag in sentence.tags}))
        case _:
            return ()


def text_input_of(example: ClassificationExample, spec: HeadSpec) -> TextInput:
    """Return the one or two input texts of an example in the order of the spec."""
    texts = [example.inputs[name] for name in spec.inputs or tuple(example.inputs)]
    return TextInput(text=texts[0], text_pair=texts[1] if len(texts) > 1 else None)


def _fault(example: Example, spec: HeadSpec) -> str | None:
    """Return the fault of a training example, or None."""
    match example:
        case ClassificationExample():
            return _classification_fault(example, spec)
        case MultipleChoiceExample(label=None):
            return "has no label"
        case MultipleChoiceExample(label=int(label), choices=choices) if not 0 <= label < len(choices):
            return f"has the label {label}, but {len(choices)} choices"
        case TaggedSentence():
            return _tagging_fault(example, spec)
        case SpanExample():
            return _span_fault(example)
        case _:
            return None


def _classification_fault(example: ClassificationExample, spec: HeadSpec) -> str | None:
    if example.label is None:
        return "has no label"
    names = spec.inputs or tuple(example.inputs)
    if not 1 <= len(names) <= 2:
        return f"has {len(names)} input fields, expected one or two"
    missing = [name for name in names if name not in example.inputs]
    if missing:
        return f"has no input field {missing[0]!r}, only {sorted(example.inputs)}"
    return _unknown_label(example.label, spec)


def _unknown_label(label: str, spec: HeadSpec) -> str | None:
    if not spec.labels or label in spec.labels:
        return None
    near = near_names(label, spec.labels)
    return f"has the label {label!r}, expected one of {', '.join(spec.labels)}" + (
        f" (did you mean {near[0]!r}?)" if near else ""
    )


def _tagging_fault(example: TaggedSentence, spec: HeadSpec) -> str | None:
    if example.tags is None:
        return "has no tags"
    if len(example.tags) != len(example.tokens):
        return f"has {len(example.tokens)} tokens, but {len(example.tags)} tags"
    faults = (_unknown_label(tag, spec) for tag in example.tags)
    return next((fault for fault in faults if fault), None)


def _span_fault(example: SpanExample) -> str | None:
    if not example.answers:
        return "has no answer"
    for answer in example.answers:
        span = example.context[max(answer.start, 0) : max(answer.start, 0) + len(answer.text)]
        if answer.start < 0 or not answer.text or span != answer.text:
            return f"has the answer {answer.text!r} at {answer.start}, where its context has {span!r}"
    return None
