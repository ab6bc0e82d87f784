"""The attributes of multilingual ExplainaBoard: lengths, ratios, overlaps, scripts, tags, by kind of task."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from harness import hookimpl

if TYPE_CHECKING:
    from harness.data import Feature


@hookimpl
def harness_register_features() -> Iterable[Feature]:
    """Return the attributes, of all kinds of tasks."""
    from harness_diagnosis.catalog import FEATURES

    return FEATURES
