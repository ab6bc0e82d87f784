"""A fit of a baseline: its training examples, checked once, and its state, in memory and on disk.

A folder holds ``weights.safetensors``, where there are weights, and ``harness_fit.json``, which is written last:
a folder without it is an unfinished fit.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
from pydantic import BaseModel, ConfigDict, Field

from harness import AdapterError, TrainingError, near_names
from harness.data import (
    ClassificationExample,
    Example,
    MultipleChoiceExample,
    RetrievalPair,
    SpanExample,
    TaggedSentence,
)
from harness.models import FloatArray, Head, HeadSpec, TextInput
from harness.storage import write_atomically

EXAMPLE_TYPE: dict[Head, type[Example]] = {
    Head.CLASSIFICATION: ClassificationExample,
    Head.MULTIPLE_CHOICE: MultipleChoiceExample,
    Head.TAGGING: TaggedSentence,
    Head.SPAN_EXTRACTION: SpanExample,
    Head.DUAL_ENCODER: RetrievalPair,
}
"""What each head learns from."""
ALGORITHM = "2"
"""Version of the features and of the training; a fit of another version is not read."""
_JSON = "harness_fit.json"
_WEIGHTS = "weights.safetensors"


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


@dataclass(frozen=True, slots=True, kw_only=True)
class Weights:
    """A linear model."""

    coefficients: FloatArray
    """Shape (columns, outputs); most rows are zero."""
    intercepts: FloatArray
    """Shape (outputs,)."""


class FitState(BaseModel):
    """A fitted head: names and numbers, no code; all but the weights is the content of ``harness_fit.json``."""

    model_config = ConfigDict(frozen=True, extra="forbid", arbitrary_types_allowed=True)

    algorithm: str = ALGORITHM
    ref: str
    head: Head
    labels: tuple[str, ...] = ()
    """Labels or tags in the order of the outputs."""
    seed: int
    shares: tuple[float, ...] = ()
    """Relative frequencies of the labels, or of the positions of right choices."""
    options: dict[str, int] = {}
    """Options of the adapter; only a saved state has them."""
    weights: str | None = None
    """SHA-256 of the file of weights."""
    kind: Literal["baseline"] = "baseline"
    linear: Weights | None = Field(default=None, exclude=True)

    @classmethod
    def of(cls, linear: Weights | None = None, **fields: Any) -> FitState:
        """Return a state with the digest of its weights."""
        digest = hashlib.sha256(_packed(linear)).hexdigest() if linear else None
        return cls(**fields, weights=digest, linear=linear)

    def digest(self) -> str:
        """Return the SHA-256 of everything that the answers depend on, next to the options."""
        content = self.model_copy(update={"options": {}})
        return hashlib.sha256(content.model_dump_json().encode()).hexdigest()


def save_state(state: FitState, directory: Path, options: Mapping[str, int]) -> None:
    """Write the fit into `directory`, ``harness_fit.json`` last; raises `AdapterError`."""
    try:
        directory.mkdir(parents=True, exist_ok=True)
        if state.linear:
            (directory / _WEIGHTS).write_bytes(_packed(state.linear))
        content = state.model_copy(update={"options": dict(options)})
        write_atomically(directory / _JSON, content.model_dump_json(indent=2).encode())
    except OSError as error:
        raise AdapterError(
            f"The fit of the baseline cannot be written to {str(directory)!r}: {error}."
        ) from error


def load_state(directory: Path, ref: str, spec: HeadSpec, options: Mapping[str, int]) -> FitState:
    """Return the fit that `save_state` wrote; raises `AdapterError` when it is damaged or belongs to another model."""
    try:
        content = FitState.model_validate_json((directory / _JSON).read_text(encoding="utf-8"))
        packed = (directory / _WEIGHTS).read_bytes() if content.weights else b""
    except (OSError, ValueError) as error:
        raise _fit_error(directory, f"cannot be read: {str(error).splitlines()[0]}") from error
    requirements: dict[str, Any] = {
        "algorithm": ALGORITHM,
        "ref": ref,
        "head": spec.head,
        "options": dict(options),
    }
    if spec.labels:
        requirements["labels"] = spec.labels
    for name, expected in requirements.items():
        stored = getattr(content, name)
        if name == "labels" and spec.head is Head.TAGGING:
            if not set(stored) <= set(expected):
                raise _fit_error(directory, f"has the tags {stored!r}, but the task has {expected!r}")
        elif stored != expected:
            raise _fit_error(directory, f"has {name} {stored!r}, expected {expected!r}")
    if content.weights and hashlib.sha256(packed).hexdigest() != content.weights:
        raise _fit_error(directory, f"is damaged: {_WEIGHTS} is not what {_JSON} was written for")
    return content.model_copy(update={"linear": _unpacked(packed)}) if content.weights else content


def _packed(weights: Weights) -> bytes:
    """Return the content of the file of weights: the rows that are not zero, and which these are."""
    from safetensors.numpy import save

    rows = np.flatnonzero(weights.coefficients.any(axis=1))
    return save(
        {
            "columns": np.array([len(weights.coefficients)]),
            "rows": rows,
            "values": np.ascontiguousarray(weights.coefficients[rows]),
            "intercepts": weights.intercepts,
        }
    )


def _unpacked(content: bytes) -> Weights:
    from safetensors.numpy import load

    arrays = load(content)
    coefficients = np.zeros((int(arrays["columns"][0]), len(arrays["intercepts"])), dtype=np.float32)
    coefficients[arrays["rows"]] = arrays["values"]
    return Weights(coefficients=coefficients, intercepts=arrays["intercepts"])


def _fit_error(directory: Path, reason: str) -> AdapterError:
    return AdapterError(
        f"The saved fit in {str(directory)!r} {reason}.", hint="Delete that folder to have it fitted again."
    )
