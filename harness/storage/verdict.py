"""What a record says for a person: the answer as one text, and whether it is right."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

__all__ = ["answer_text", "is_correct"]

_RIGHT = {"exact_match": 1.0, "mlqa_exact_match": 1.0, "example_error": 0.0}
"""Metric of texts -> its score of a right item; the first that a record has decides."""


def answer_text(prediction: Any, inputs: str = "{}") -> str | None:
    """Return an answer as a person reads it; None where the model gave none.

    It is the label, the choice, the text of a span, the id of the first candidate, the tags with spaces between, or the
    marked stretches of a text as ``words (TAG)``. Any other answer is its JSON.

    Args:
        prediction: What the record keeps.
        inputs: The fields of the item as JSON, for answers that are places in a text.
    """
    if isinstance(prediction, Mapping):
        for name in ("label", "text", "candidate"):
            if name in prediction:
                return None if prediction[name] is None else str(prediction[name])
        if isinstance(prediction.get("candidates"), Sequence):
            return next((str(name) for name in prediction["candidates"]), None)
        if isinstance(prediction.get("spans"), Sequence):
            return _marked(prediction["spans"], inputs)
    if prediction is None or isinstance(prediction, str):
        return prediction
    if isinstance(prediction, list) and all(isinstance(part, str) for part in prediction):
        return " ".join(prediction)
    return json.dumps(prediction, ensure_ascii=False, default=dict)


def is_correct(prediction: Any, reference: Any, scores: Mapping[str, Any]) -> bool | None:
    """Return whether an answer is right; None without a gold answer, and where items are only more or less right.

    Labels, choices, translations, tags and marked spans are right if they equal the gold answer; the text of a span if
    an exact-match metric says so. Rankings, and answers of other shapes, have no such verdict.
    """
    if reference is None:
        return None
    if isinstance(prediction, Mapping):
        for name in ("label", "candidate"):
            if name in prediction:
                return bool(prediction[name] == reference)
        if "spans" in prediction:
            return _places(prediction["spans"]) == _places(reference)
        return next((scores[name] == right for name, right in _RIGHT.items() if name in scores), None)
    return prediction == reference if isinstance(prediction, list) else None


def _marked(spans: Sequence[Sequence[Any]], inputs: str) -> str:
    text = json.loads(inputs).get("text")
    shown = []
    for start, end, tag in spans:
        place = text[start:end] if isinstance(text, str) else f"{start}-{end}"
        shown.append(f"{place} ({tag})")
    return "; ".join(shown)


def _places(spans: Sequence[Sequence[Any]]) -> set[tuple[Any, ...]]:
    return {tuple(span) for span in spans}
