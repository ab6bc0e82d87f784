"""Words of other scripts in Latin letters: rules for Devanagari and Tamil; indictrans if it is installed."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from harness import hookimpl

if TYPE_CHECKING:
    from harness.data import Transliterator


@hookimpl
def harness_register_transliterators() -> Iterable[Transliterator]:
    """Return the transliterators of this plugin."""
    from harness_transliteration.indictrans import INDICTRANS
    from harness_transliteration.rules import RULES

    return [INDICTRANS, RULES]
