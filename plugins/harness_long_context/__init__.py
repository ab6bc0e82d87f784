"""Long contexts: needles and frequent words in 26 languages, as ONERULER has them, as long as a model's window."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from harness import hookimpl

if TYPE_CHECKING:
    from harness.metrics import Metric


@hookimpl
def harness_register_metrics() -> Iterable[Metric]:
    """Return the accuracies of needles and of frequent words."""
    from harness_long_context.metrics import METRICS

    return METRICS
