"""Shared tasks of SemEval in many languages: several labels per text (2025), and graded pairs of texts (2024)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from harness import hookimpl

if TYPE_CHECKING:
    from harness.data import Reader
    from harness.kinds import Method, TaskKind
    from harness.metrics import Metric


@hookimpl
def harness_register_kinds() -> Iterable[TaskKind]:
    """Return the kinds of texts with several labels and of graded pairs."""
    from harness_semeval import multilabel, relatedness

    return [multilabel.KIND, relatedness.KIND]


@hookimpl
def harness_register_methods() -> Iterable[Method]:
    """Return how heads, prompts and embeddings serve the two kinds."""
    from harness_semeval import frozen, multilabel, relatedness

    return [*multilabel.METHODS, *frozen.METHODS, *relatedness.METHODS]


@hookimpl
def harness_register_metrics() -> Iterable[Metric]:
    """Return the F1 over several labels, and the rank correlation."""
    from harness_semeval.metrics import METRICS

    return METRICS


@hookimpl
def harness_register_readers() -> Iterable[Reader]:
    """Return the reader of SemRel2024."""
    from harness_semeval.relatedness import SEMREL

    return [SEMREL]
