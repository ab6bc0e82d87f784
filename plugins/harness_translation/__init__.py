"""Translation as an axis of evaluation: whether a benchmark's translations, not the model, cause a low score.

The measures are those of "Translation Errors Significantly Impact Low-Resource Languages in Cross-Lingual Learning"
(Agrawal et al., EACL 2024).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from harness.hookspecs import hookimpl

if TYPE_CHECKING:
    from harness.aligners import Aligner

__all__ = ["harness_register_aligners"]


@hookimpl
def harness_register_aligners() -> Iterable[Aligner]:
    """Return the word aligners that need no model of ours."""
    from harness_translation.aligner_catalog import ALIGNERS

    return ALIGNERS
