"""Reads YAML strictly: YAML 1.2 booleans and numbers, no dates, no tags, duplicate keys refused, lines kept."""

from __future__ import annotations

import re
from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass
from typing import Any

import yaml

from harness.errors import Problem, SpecError

__all__ = ["Document", "read_yaml"]

try:
    from yaml import CSafeLoader as _SafeLoader
except ImportError:  # a PyYAML built without libyaml is slower but reads the same
    from yaml import SafeLoader as _SafeLoader  # type: ignore[assignment]


_STANDARD = "tag:yaml.org,2002:"
_TEXT = f"{_STANDARD}str"


def _fault(message: str, node: yaml.Node) -> yaml.constructor.ConstructorError:
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
    return float(text) if node.tag.endswith("float") else int(text)


_Loader.add_constructor("tag:yaml.org,2002:int", _construct_number)
_Loader.add_constructor("tag:yaml.org,2002:float", _construct_number)


@dataclass(frozen=True, slots=True, kw_only=True)
class Document:
    """A parsed YAML file that still knows the line of every key."""

    source: str
    data: dict[str, Any]
    lines: dict[tuple[str | int, ...], int]

    def line_of(self, path: Iterable[str | int]) -> int | None:
        """Return the 1-based line of a key path, or of the longest known part of it."""
        keys = tuple(str(part) if not isinstance(part, int) else part for part in path)
        while keys:
            if keys in self.lines:
                return self.lines[keys]
            keys = keys[:-1]
        return None


def read_yaml(text: str, source: str) -> Document:
    """Return the one document of a YAML text; raises `SpecError` with the line of a syntax fault."""
    loader = _Loader(text)
    try:
        node = loader.get_single_node()
        if not isinstance(node, yaml.MappingNode):
            raise SpecError(source, [Problem(message="expected a mapping of keys to values", line=1)])
        _refuse_tags_and_loops(node, loader, ())
        data = loader.construct_document(node)
        lines: dict[tuple[str | int, ...], int] = {}
        _record_lines(node, (), lines)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line = mark.line + 1 if mark is not None else None
        raise SpecError(source, [Problem(message=str(error.problem or error), line=line)]) from error
    except yaml.YAMLError as error:
        raise SpecError(source, [Problem(message=str(error))]) from error
    finally:
        loader.dispose()
    return Document(source=source, data=data, lines=lines)


def _refuse_tags_and_loops(node: yaml.Node, loader: _Loader, ancestors: tuple[yaml.Node, ...]) -> None:
    plain = isinstance(node, yaml.ScalarNode) and not node.style
    resolve: Callable[..., str] = loader.resolve
    if node.tag != resolve(type(node), node.value, (plain, not plain)):
        raise _fault(f"tags such as {node.tag.replace(_STANDARD, '!!')!r} are not allowed", node)
    if any(node is ancestor for ancestor in ancestors):
        raise _fault("an alias stands inside what it names", node)
    inner: list[yaml.Node] = []
    if isinstance(node, yaml.MappingNode):
        inner = [item for pair in node.value for item in pair]
    elif isinstance(node, yaml.SequenceNode):
        inner = node.value
    for item in inner:
        _refuse_tags_and_loops(item, loader, (*ancestors, node))


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
