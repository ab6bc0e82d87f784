"""A tiny builder of HTML and SVG in which everything is text unless it is an `Element`.

Nothing here takes ready-made markup: names are checked, texts and attributes are escaped when an element is
rendered, attributes that run code are rejected, and control characters are made visible.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from harness.reporting.markup.character import visible

__all__ = ["Attribute", "Child", "Element", "element", "escape", "fragment", "render"]

Attribute = str | int | float | bool | None
VOID = frozenset({"area", "br", "col", "hr", "img", "input", "link", "meta", "source", "wbr"})
RAW = frozenset({"script", "style"})
"""Their content is not text in HTML: only `harness.reporting.markup.page` writes them."""
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9]*(?:-[A-Za-z0-9]+)*")
_ATTRIBUTE = re.compile(r"[A-Za-z][A-Za-z0-9]*(?:-[A-Za-z0-9]+)*")
_SCHEME = re.compile(r"\s*([A-Za-z][A-Za-z0-9+.\-]*)\s*:")
_ADDRESSES = frozenset(
    {"action", "formaction", "href", "src", "poster", "background", "ping", "cite", "data"}
)
_SCHEMES = frozenset({"http", "https", "mailto"})
_REJECTED = frozenset({"style", "srcdoc", "srcset", "http-equiv", "is"})
_ESCAPES = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "'": "&#39;"})


@dataclass(frozen=True, slots=True)
class Element:
    """One element; an empty tag means its children alone."""

    tag: str
    attributes: tuple[tuple[str, str], ...]
    children: tuple[Element | str, ...]


Child = Element | str | int | float | None | Iterable["Child"]


def element(tag: str, /, *children: Child, **attributes: Attribute) -> Element:
    """Return an element.

    Args:
        tag: Its name.
        children: Elements, texts and numbers, or iterables of these; None is skipped.
        attributes: By name, where ``_`` means ``-`` and a ``_`` at the end is dropped (``class_``,
            ``aria_label``); None and False leave an attribute out, True gives it no value.

    Raises:
        ValueError: for a name that is none, for an element or attribute that could run code, and for an address
            that is no page: our own mistake, never that of a user's text.
    """
    if not _NAME.fullmatch(tag) or tag.lower() in RAW:
        raise ValueError(f"An element cannot be called {tag!r}.")
    checked = tuple(
        (name, value)
        for key, given in attributes.items()
        if (pair := _attribute(key.rstrip("_").replace("_", "-"), given)) is not None
        for name, value in (pair,)
    )
    return Element(tag, checked, tuple(_flat(children)))


def fragment(*children: Child) -> Element:
    """Return elements without one around them."""
    return Element("", (), tuple(_flat(children)))


def _attribute(name: str, given: Attribute) -> tuple[str, str] | None:
    if not _ATTRIBUTE.fullmatch(name) or name.lower().startswith("on") or name.lower() in _REJECTED:
        raise ValueError(f"An attribute cannot be called {name!r}.")
    if given is None or given is False:
        return None
    value = "" if given is True else str(given)
    scheme = _SCHEME.match(visible(value)) if name.lower() in _ADDRESSES else None
    if scheme and scheme[1].lower() not in _SCHEMES:
        is_image = name.lower() == "src" and value.startswith("data:image/")
        if not is_image:
            raise ValueError(f"The attribute {name!r} cannot lead to {value[:60]!r}.")
    return name, value


def _flat(children: Iterable[Child]) -> Iterator[Element | str]:
    for child in children:
        if child is None:
            continue
        if isinstance(child, Element | str):
            yield child
        elif isinstance(child, int | float):
            yield str(child)
        else:
            yield from _flat(child)


def escape(text: str) -> str:
    """Return a text as HTML that shows it, control characters as visible marks."""
    return visible(text).translate(_ESCAPES)


def render(root: Element) -> str:
    """Return the HTML of an element."""
    parts: list[str] = []
    _write(root, parts)
    return "".join(parts)


def _write(node: Element, parts: list[str]) -> None:
    if node.tag:
        parts.append(f"<{node.tag}")
        parts += (f' {name}="{escape(value)}"' if value else f" {name}" for name, value in node.attributes)
        parts.append(">")
        if node.tag in VOID:
            return
    for child in node.children:
        if isinstance(child, str):
            parts.append(escape(child))
        else:
            _write(child, parts)
    if node.tag:
        parts.append(f"</{node.tag}>")
