"""A safe reading of the few Jinja expressions that task files need; everything else is rejected, nothing is executed.

Taken: ``{{field}}``, ``.strip()``, ``|trim``, ``[:-1]``, ``+`` and ``~`` between texts, lists, ``|join(' ')``, and for
targets ``['a', 'b'].index(field)``, ``field - 1`` and ``field|int``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

__all__ = [
    "Call",
    "Field",
    "Items",
    "Literal",
    "Node",
    "Part",
    "Sum",
    "UnsupportedError",
    "parse_expression",
    "split_template",
    "template_parts",
    "text_parts",
]

_TAG = re.compile(r"\{\{(.*?)\}\}|\{%.*?%\}|\{#.*?#\}", re.DOTALL)
_TOKEN = re.compile(
    r"""\s*(?:(?P<string>'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*")|(?P<number>\d+)|(?P<name>[A-Za-z_]\w*)"""
    r"""|(?P<mark>[-+~.,|:()\[\]]))""",
    re.DOTALL,
)
_ESCAPE = re.compile(r"\\(.)", re.DOTALL)
_ESCAPED = {"n": "\n", "t": "\t", "r": "\r", "\\": "\\", "'": "'", '"': '"'}
_RESERVED = frozenset("if else elif for in is not and or true false none True False None".split())
_DEEPEST = 40


class UnsupportedError(Exception):
    """A part of a task file that cannot be imported; the message names it."""


@dataclass(frozen=True, slots=True)
class Literal:
    """A text or a whole number."""

    value: str | int


@dataclass(frozen=True, slots=True)
class Field:
    """A field of the item, or a value inside it: ``answers.text[0]``."""

    path: tuple[str | int, ...]
    filters: tuple[str, ...] = ()
    """Names of our template filters."""


@dataclass(frozen=True, slots=True)
class Items:
    """A list."""

    items: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Sum:
    """Values joined by ``+``, ``~`` or ``-``."""

    first: Node
    rest: tuple[tuple[str, Node], ...]


@dataclass(frozen=True, slots=True)
class Call:
    """A method or a filter applied to a value."""

    target: Node
    name: str
    arguments: tuple[Node, ...]


Node = Literal | Field | Items | Sum | Call
Part = str | Field
"""A piece of a text: words, or a field of the item."""


def split_template(template: str) -> Iterator[str | Node]:
    """Yield the literal texts and the expressions of a template; raises `UnsupportedError` for other Jinja."""
    end = 0
    for match in _TAG.finditer(template):
        yield template[end : match.start()]
        inner = match.group(1)
        if match.group().startswith("{%"):
            raise UnsupportedError(
                f"the Jinja statement {match.group()!r}: only expressions {{{{...}}}} are supported"
            )
        if match.group().startswith("{#"):
            raise UnsupportedError(f"the Jinja comment {match.group()!r}: remove it")
        if inner.startswith("-") or inner.endswith("-"):
            raise UnsupportedError(f"the whitespace control of {match.group()!r}")
        yield parse_expression(inner)
        end = match.end()
    rest = template[end:]
    for mark in ("{{", "{%", "{#"):
        if mark in rest:
            raise UnsupportedError(f"{mark!r} is never closed in {template!r}")
    yield rest


def template_parts(template: str) -> list[Part]:
    """Return a template as words and fields; raises `UnsupportedError`."""
    parts: list[Part] = []
    for piece in split_template(template):
        parts += [piece] if isinstance(piece, str) else text_parts(piece)
    return joined(parts)


def joined(parts: Sequence[Part]) -> list[Part]:
    """Return the same text with adjacent words joined and empty ones dropped."""
    made: list[Part] = []
    for part in parts:
        if isinstance(part, str) and made and isinstance(made[-1], str):
            made[-1] += part
        elif part != "":
            made.append(part)
    return made


def text_parts(node: Node) -> list[Part]:
    """Return what an expression renders to, as words and fields; raises `UnsupportedError` for other values."""
    match node:
        case Literal(value):
            return [str(value)]
        case Field(path):
            if len(path) > 1:
                raise UnsupportedError(f"{_shown(path)}: a value inside a field; only whole fields are texts")
            return [node]
        case Sum(first, rest):
            if any(mark == "-" for mark, _ in rest) or not _is_text([first, *(item for _, item in rest)]):
                raise UnsupportedError("arithmetic inside a text")
            return [part for item in (first, *(item for _, item in rest)) for part in text_parts(item)]
        case Call():
            return _called(node)
        case Items():
            raise UnsupportedError("a list where a text is expected")


def _is_text(nodes: Sequence[Node]) -> bool:
    """Return whether a sum is one of texts: one of numbers alone would be arithmetic."""
    return not any(isinstance(node, Literal) and isinstance(node.value, int) for node in nodes)


def _called(node: Call) -> list[Part]:
    target = node.target
    if node.name in {"strip", "trim"} and not node.arguments and isinstance(target, Field):
        return [_filtered(target, "strip")]
    if node.name == "drop_last" and isinstance(target, Field):
        return [_filtered(target, "drop_last")]
    if node.name == "join" and isinstance(target, Items):
        between = node.arguments[0] if node.arguments else Literal("")
        if not isinstance(between, Literal) or len(node.arguments) > 1:
            raise UnsupportedError("'join' with anything but one text")
        parts: list[Part] = []
        for index, item in enumerate(target.items):
            parts += [*([str(between.value)] if index else []), *text_parts(item)]
        return parts
    raise UnsupportedError(f"{node.name!r}, for which templates have no filter (they have strip and [:-1])")


def _filtered(field: Field, name: str) -> Field:
    if len(field.path) > 1:
        raise UnsupportedError(f"{_shown(field.path)}: a value inside a field; only whole fields are texts")
    return Field(field.path, (*field.filters, name))


def _shown(path: Sequence[str | int]) -> str:
    return repr(".".join(map(str, path)))


def parse_expression(text: str) -> Node:
    """Return the tree of an expression; raises `UnsupportedError` for anything outside of this small grammar."""
    return _Parser(text).whole()


class _Parser:
    """Recursive descent over the tokens of one expression."""

    def __init__(self, text: str) -> None:
        self._text = text.strip()
        self._tokens = self._scanned()
        self._at = 0
        self._depth = 0

    def _scanned(self) -> list[tuple[str, str]]:
        tokens = []
        place = 0
        while place < len(self._text):
            match = _TOKEN.match(self._text, place)
            if match is None or match.lastgroup is None:
                raise UnsupportedError(f"{self._text[place:].strip()[:1]!r} in the expression {self._text!r}")
            tokens.append((match.lastgroup, match.group(match.lastgroup)))
            place = match.end()
        return tokens

    def whole(self) -> Node:
        if not self._tokens:
            raise UnsupportedError("an empty expression")
        node = self._sum()
        if self._at < len(self._tokens):
            raise self._unexpected()
        return node

    def _unexpected(self) -> UnsupportedError:
        if self._at >= len(self._tokens):
            return UnsupportedError(f"the expression {self._text!r}, which ends too early")
        return UnsupportedError(f"{self._tokens[self._at][1]!r} in the expression {self._text!r}")

    def _peek(self, mark: str) -> bool:
        return self._at < len(self._tokens) and self._tokens[self._at] == ("mark", mark)

    def _take(self, mark: str) -> bool:
        found = self._peek(mark)
        self._at += found
        return found

    def _expect(self, mark: str) -> None:
        if not self._take(mark):
            raise self._unexpected()

    def _next(self, sort: str) -> str:
        if self._at >= len(self._tokens) or self._tokens[self._at][0] != sort:
            raise self._unexpected()
        self._at += 1
        return self._tokens[self._at - 1][1]

    def _sum(self) -> Node:
        self._depth += 1
        if self._depth > _DEEPEST:
            raise UnsupportedError(f"an expression nested more than {_DEEPEST} deep")
        first = self._value()
        rest = []
        while any(self._peek(mark) for mark in "+-~"):
            mark = self._next("mark")
            rest.append((mark, self._value()))
        self._depth -= 1
        return Sum(first, tuple(rest)) if rest else first

    def _value(self) -> Node:
        node = self._atom()
        while True:
            if self._take("."):
                name = self._next("name")
                node = Call(node, name, self._arguments()) if self._peek("(") else _inside(node, name)
            elif self._take("|"):
                name = self._next("name")
                node = Call(node, name, self._arguments() if self._peek("(") else ())
            elif self._take("["):
                node = self._subscripted(node)
            else:
                return node

    def _subscripted(self, node: Node) -> Node:
        if self._take(":"):
            self._expect("-")
            if self._next("number") != "1":
                raise self._unexpected()
            self._expect("]")
            return Call(node, "drop_last", ())
        sort = self._tokens[self._at][0] if self._at < len(self._tokens) else ""
        key: str | int = int(self._next("number")) if sort == "number" else _unquoted(self._next("string"))
        self._expect("]")
        return _inside(node, key)

    def _arguments(self) -> tuple[Node, ...]:
        self._expect("(")
        return self._listed(")")

    def _listed(self, end: str) -> tuple[Node, ...]:
        items: list[Node] = []
        while not self._take(end):
            items.append(self._sum())
            if not self._take(","):
                self._expect(end)
                break
        return tuple(items)

    def _atom(self) -> Node:
        if self._take("("):
            node = self._sum()
            self._expect(")")
            return node
        if self._take("["):
            return Items(self._listed("]"))
        sort, text = self._tokens[self._at] if self._at < len(self._tokens) else ("", "")
        if sort == "string":
            return Literal(_unquoted(self._next("string")))
        if sort == "number":
            return Literal(int(self._next("number")))
        if sort != "name" or text in _RESERVED:
            raise self._unexpected()
        return Field((self._next("name"),))


def _inside(node: Node, key: str | int) -> Node:
    if not isinstance(node, Field) or node.filters:
        raise UnsupportedError(f"[{key!r}] after anything but a field")
    return Field((*node.path, key))


def _unquoted(token: str) -> str:
    def escaped(match: re.Match[str]) -> str:
        if match.group(1) not in _ESCAPED:
            raise UnsupportedError(f"the escape {match.group()!r}")
        return _ESCAPED[match.group(1)]

    return _ESCAPE.sub(escaped, token[1:-1])
