"""Texts that are written in Latin letters although their language has others."""

from __future__ import annotations

import re

_TOKEN = re.compile(r"[^\W_]+")
_LATIN = re.compile(r"[a-z0-9]+")


def is_romanised(text: str) -> bool:
    """Whether all tokens are of the letters a to z and digits, and one has a letter; punctuation does not count.

    The rule of the released code of "Translation Errors Significantly Impact Low-Resource Languages" (EACL 2024).
    Ask it of texts in languages of another script only.
    """
    tokens = _TOKEN.findall(text.casefold())
    return all(_LATIN.fullmatch(token) for token in tokens) and any(not token.isdigit() for token in tokens)
