"""Texts of models and data sets: control characters made visible, long ones folded."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator

from harness.reporting.markup.character import INVISIBLE
from harness.reporting.markup.element import Element, element

__all__ = ["model_text"]

SHOWN = 400
"""Characters of a text that are shown before its "show all"."""


def model_text(text: str, language: str | None = None, *, shown: int = SHOWN) -> Element:
    """Return a text of a model or data set: its own direction, its language, marks named, a long one folded."""
    if len(text) <= shown:
        return element("span", _marked(text), class_="text", dir="auto", lang=_language(language))
    cut = _border(text, shown)
    return element(
        "details",
        element(
            "summary",
            element("span", _marked(text[:cut]), "…", class_="text", dir="auto", lang=_language(language)),
            element("span", f"show all {len(text):,} characters", class_="more"),
        ),
        element("div", _marked(text), class_="text", dir="auto", lang=_language(language)),
        class_="long",
    )


def _language(code: str | None) -> str | None:
    return code if code and re.fullmatch(r"[A-Za-z]{2,3}(?:-[A-Za-z0-9]{2,8})*", code) else None


def _border(text: str, near: int) -> int:
    """Return the first place from `near` on that is not within a letter and its marks."""
    end = min(len(text), near + 20)
    while near < end and (unicodedata.category(text[near]).startswith("M") or text[near] in "\u200c\u200d"):
        near += 1
    return near


def _marked(text: str) -> Iterator[Element | str]:
    at = 0
    for found in INVISIBLE.finditer(text):
        if found.start() > at:
            yield text[at : found.start()]
        name = unicodedata.name(found[0], "control character")
        yield element("bdi", f"U+{ord(found[0]):04X}", class_="mark", title=name.lower())
        at = found.end()
    if at < len(text):
        yield text[at:]
