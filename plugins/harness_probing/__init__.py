"""Layer-wise probing: linear classifiers on frozen hidden states, with controls, code lengths and intervals."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from harness.hookspecs import hookimpl

if TYPE_CHECKING:
    from harness.kinds.methods import Method


@hookimpl
def harness_register_methods() -> Iterable[Method]:
    """Return ``probe`` and ``probe_paper``, for the kinds whose items are words or sentences with a label."""
    from harness_probing.method import METHODS

    return METHODS
