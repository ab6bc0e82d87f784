"""The transliterators of this plugin."""

from __future__ import annotations

from harness import Transliterator
from harness_transliteration import indictrans, rules

__all__ = ["INDICTRANS", "RULES", "TRANSLITERATORS"]

RULES = Transliterator(
    name="rules",
    version=rules.VERSION,
    licence="Apache-2.0",
    languages=rules.LANGUAGES,
    transliterate=rules.transliterate,
    summary="Devanagari and Tamil as people write them in chats, by rules",
)

INDICTRANS = Transliterator(
    name="indictrans",
    version=indictrans.installed_version(),
    licence="AGPL-3.0-only",
    languages=frozenset(indictrans.CODES),
    transliterate=indictrans.transliterate,
    summary="structured perceptrons; made the released csCG treebanks (Bhat et al., 2014)",
    ready=indictrans.ready,
)

TRANSLITERATORS = (INDICTRANS, RULES)
