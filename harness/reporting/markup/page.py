"""The shell of a page: one file, one style, the modules and data it needs, and a policy that lets nothing else in."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections.abc import Iterable, Mapping
from functools import cache
from importlib import resources
from typing import Any

from harness.reporting.markup.element import Element, element, escape, render

__all__ = ["json_text", "page", "style"]

_UNSAFE = re.compile(r"</\s*(?:script|style)|<!--|<script|\]\]>", re.IGNORECASE)


@cache
def style() -> str:
    """Return the style that all pages share: light and dark, narrow, on paper."""
    return resources.files("harness.reporting.markup").joinpath("style.css").read_text(encoding="utf-8")


def page(
    title: str,
    *body: Element,
    language: str = "en",
    modules: Iterable[str] = (),
    styles: Iterable[str] = (),
    data: Mapping[str, Any] | None = None,
    description: str = "",
) -> str:
    """Return a page as one HTML file without network.

    Args:
        title: Plain text.
        body: Its content; a page should have one ``main`` element and one ``h1``.
        language: Of the page's own words.
        modules: Sources of ES modules of ours, written into the page in this order; their hashes are in its policy.
        styles: Style sheets that follow the shared one.
        data: A JSON value by the id of the ``application/json`` element that will hold it.
        description: One sentence for lists of pages.

    Raises:
        ValueError: for a module or style that holds a script or style tag.
    """
    scripts = [_checked(source) for source in modules]
    sheet = _checked("\n".join([style(), *styles]))
    allowed = " ".join(_hash(source) for source in scripts) or "'none'"
    policy = (
        f"default-src 'none'; script-src {allowed}; style-src {_hash(sheet)}; img-src data:; "
        "base-uri 'none'; form-action 'none'"
    )
    blocks = [
        f'<script type="application/json" id="{escape(name)}">{json_text(value)}</script>'
        for name, value in (data or {}).items()
    ]
    parts = [
        f'<!doctype html>\n<html lang="{escape(language)}">\n<head>\n<meta charset="utf-8">',
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        '<meta name="color-scheme" content="light dark">\n<meta name="referrer" content="no-referrer">',
        render(element("meta", name="description", content=description)) if description else "",
        render(element("title", title)),
        f"<style>{sheet}</style>\n</head>\n<body>",
        render(element("a", "Skip to the content", href="#main", class_="skip")),
        *(render(node) for node in body),
        *blocks,
        *(f'<script type="module">{source}</script>' for source in scripts),
        "</body>\n</html>\n",
    ]
    return "\n".join(part for part in parts if part)


def json_text(value: Any) -> str:
    """Return JSON that cannot end the element around it: ``<`` is written as an escape.

    Raises `ValueError` for NaN and infinity, which are no JSON.
    """
    text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    for character in "<\u2028\u2029\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return re.sub("[\ud800-\udfff]", lambda found: f"\\u{ord(found[0]):04x}", text)


def _checked(source: str) -> str:
    found = _UNSAFE.search(source)
    if found is not None:
        raise ValueError(f"A module or style of a page cannot hold {found[0]!r}.")
    # A parser turns CRLF into LF before it hashes.
    return source.replace("\r\n", "\n")


def _hash(source: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(source.encode()).digest()).decode()}'"
