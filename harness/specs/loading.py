"""Reads YAML strictly: YAML 1.2 booleans and numbers, no dates, no tags, no duplicate keys, lines kept."""

from __future__ import annotations

import re
from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import yaml

from harness.errors import Problem, SpecError

try:
    from yaml import CSafeLoader as _SafeLoader
except ImportError:  # a PyYAML built without libyaml is slower but reads the same
    from yaml import SafeLoader as _SafeLoader  # type: ignore[assignment]


MOST_LEVELS = 100
"""Of mappings and lists inside each other. libyaml's composer recurses in C: a deep text would end the process."""
MOST_VALUES = 200_000
"""In one document, with the values behind an alias counted wherever it is used: a few lines can mean millions."""
MOST_CHARACTERS = 2_000_000
"""Of all texts in one document, counted like the values. A file has no more bytes: only aliases exceed it."""

_TOO_DEEP = f"mappings and lists are nested more than {MOST_LEVELS} levels deep"
_STANDARD = "tag:yaml.org,2002:"
_TEXT = f"{_STANDARD}str"
_OPENINGS = ("[", "{", "- ", "? ")
_SAFE_OPENINGS = 1000


def _fault(message: str, node: Any) -> yaml.constructor.ConstructorError:
    return yaml.constructor.ConstructorError(None, None, message, node.start_mark)


class _Loader(_SafeLoader):
    """YAML 1.1 reads the language code ``no`` as False, ``1e-4`` as text, and keeps the last of two equal keys."""

    yaml_implicit_resolvers: dict[str, list[tuple[str, re.Pattern[str]]]] = {}  # noqa: RUF012

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, Any]:
        """Return the mapping, its keys as text; raises at the second of two equal keys."""
        first: dict[str, int] = {}
        for key_node, _ in node.value:
            if not isinstance(key_node, yaml.ScalarNode):
                raise _fault("expected a text as key, found a list or a mapping", key_node)
            if key_node.value in first:
                earlier = first[key_node.value]
                raise _fault(f"the key {key_node.value!r} is given twice (first on line {earlier})", key_node)
            first[key_node.value] = key_node.start_mark.line + 1
            key_node.tag = _TEXT
        return super().construct_mapping(node, deep=deep)


_Loader.add_implicit_resolver("tag:yaml.org,2002:bool", re.compile(r"^(?:true|false)$"), list("tf"))
_Loader.add_implicit_resolver("tag:yaml.org,2002:null", re.compile(r"^(?:~|null|)$"), ["~", "n", ""])
_Loader.add_implicit_resolver("tag:yaml.org,2002:int", re.compile(r"^[-+]?[0-9]+$"), list("-+0123456789"))
_Loader.add_implicit_resolver(
    "tag:yaml.org,2002:float",
    re.compile(r"^[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?$"),
    list("-+.0123456789"),
)


def _construct_number(loader: _Loader, node: yaml.ScalarNode) -> int | float:
    text = loader.construct_scalar(node)
    assert isinstance(text, str)
    try:
        return float(text) if node.tag.endswith("float") else int(text)
    except ValueError as error:
        raise _fault(f"expected a number of fewer digits, found one of {len(text):,}", node) from error


_Loader.add_constructor("tag:yaml.org,2002:int", _construct_number)
_Loader.add_constructor("tag:yaml.org,2002:float", _construct_number)


@dataclass(frozen=True, slots=True, kw_only=True)
class Document:
    """A parsed YAML file that knows the line of every key."""

    source: str
    data: dict[str, Any]
    text: str
    """What was read. It is parsed again where a line is asked for: most documents have no fault to report."""

    def texts(self, key: str) -> list[str]:
        """Return the texts of a list, without validating it; other values are skipped."""
        values = self.data.get(key)
        return [item for item in values if isinstance(item, str)] if isinstance(values, list) else []

    def line_of(self, path: Iterable[str | int]) -> int | None:
        """Return the 1-based line of a key path, or of the longest known part of it."""
        lines = _lines(self.text)
        keys = tuple(str(key) if not isinstance(key, int) else key for key in path)
        while keys:
            if keys in lines:
                return lines[keys]
            keys = keys[:-1]
        return None


def read_yaml(text: str, source: str) -> Document:
    """Return the one document of a YAML text; raises `SpecError` with the line of a syntax fault."""
    try:
        _check_depth(text)
        data = _parsed(text, source)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        # A text that ends too early is at fault behind its last line.
        line = min(mark.line + 1, max(1, len(text.splitlines()))) if mark is not None else None
        raise SpecError(source, [Problem(message=str(error.problem or error), line=line)]) from error
    except yaml.YAMLError as error:
        raise SpecError(source, [Problem(message=str(error))]) from error
    return Document(source=source, data=data, text=text)


def _parsed(text: str, source: str) -> dict[str, Any]:
    loader = _Loader(text)
    try:
        node = loader.get_single_node()
        if not isinstance(node, yaml.MappingNode):
            line = 1 if node is None else node.start_mark.line + 1
            raise SpecError(source, [Problem(message="expected a mapping of keys to values", line=line)])
        _check_nodes(node, loader)
        data: dict[str, Any] = loader.construct_document(node)
    finally:
        loader.dispose()
    return data


def _check_depth(text: str) -> None:
    """Raise `yaml.MarkedYAMLError` where a text may be too deep for the composer; `_check_nodes` does the rest."""
    # Indented mappings need a long line for each level; only these go deep within few characters.
    if sum(text.count(opening) for opening in _OPENINGS) < _SAFE_OPENINGS:
        return
    depth = 0
    for event in yaml.parse(text, Loader=_Loader):
        depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
        if depth > MOST_LEVELS:
            raise _fault(_TOO_DEEP, event)


@dataclass(slots=True)
class _Size:
    """Size of a node with all aliases written out."""

    values: int
    characters: int
    levels: int = 0
    """Of mappings and lists below it."""


def _check_nodes(root: yaml.Node, loader: _Loader) -> None:
    """Raise `yaml.MarkedYAMLError` for tags and for what is too large; each node is visited once, as it is written."""
    sizes: dict[int, _Size | None] = {}
    total = _Size(0, 0)

    def walk(node: yaml.Node, level: int, outer: yaml.Node) -> _Size:
        size = sizes.get(id(node))
        if size is None:
            if id(node) in sizes:
                raise _fault("an alias is inside what it names", node)
            size = sizes[id(node)] = measured(node, level)
        else:
            # An alias has no line of its own: the list or mapping that has it is named.
            add(size.values, size.characters, outer)
        if level + size.levels > MOST_LEVELS:
            raise _fault(_TOO_DEEP, outer)
        return size

    def measured(node: yaml.Node, level: int) -> _Size:
        sizes[id(node)] = None
        if level > MOST_LEVELS:
            raise _fault(_TOO_DEEP, node)
        before = _Size(total.values, total.characters)
        is_text = isinstance(node, yaml.ScalarNode)
        add(1, len(node.value) if is_text else 0, node)
        plain = isinstance(node, yaml.ScalarNode) and not node.style
        resolve: Callable[..., str] = loader.resolve
        if node.tag != resolve(type(node), node.value, (plain, not plain)):
            raise _fault(f"tags such as {node.tag.replace(_STANDARD, '!!')!r} are not allowed", node)
        inner: list[yaml.Node] = [] if is_text else node.value
        if isinstance(node, yaml.MappingNode):
            inner = [item for pair in node.value for item in pair]
        levels = 1 + max([walk(item, level + 1, node).levels for item in inner], default=-1)
        return _Size(total.values - before.values, total.characters - before.characters, levels)

    def add(values: int, characters: int, node: yaml.Node) -> None:
        total.values += values
        total.characters += characters
        if total.values > MOST_VALUES:
            raise _fault(f"it means more than {MOST_VALUES:,} values", node)
        if total.characters > MOST_CHARACTERS:
            raise _fault(f"it means more than {MOST_CHARACTERS:,} characters of text", node)

    walk(root, 0, root)


@lru_cache(maxsize=16)
def _lines(text: str) -> dict[tuple[str | int, ...], int]:
    """Return the 1-based line of every key path of a text that was read before."""
    loader = _Loader(text)
    try:
        node = loader.get_single_node()
    finally:
        loader.dispose()
    lines: dict[tuple[str | int, ...], int] = {}
    if node is not None:
        _record_lines(node, (), lines)
    return lines


def _record_lines(
    node: yaml.Node, path: tuple[str | int, ...], lines: dict[tuple[str | int, ...], int]
) -> None:
    if isinstance(node, yaml.MappingNode):
        for key_node, value_node in node.value:
            key_path = (*path, str(key_node.value))
            lines[key_path] = key_node.start_mark.line + 1
            _record_lines(value_node, key_path, lines)
    elif isinstance(node, yaml.SequenceNode):
        for index, item in enumerate(node.value):
            lines[(*path, index)] = item.start_mark.line + 1
            _record_lines(item, (*path, index), lines)
