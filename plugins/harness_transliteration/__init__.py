"""Words of other scripts in Latin letters: our own rules for Devanagari and Tamil; indictrans where installed."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from harness.hookspecs import hookimpl

if TYPE_CHECKING:
    from harness.data.translation.transliterators import Transliterator


@hookimpl
def harness_register_transliterators() -> Iterable[Transliterator]:
    """Return the engines."""
    from harness_transliteration.catalog import TRANSLITERATORS

    return TRANSLITERATORS
