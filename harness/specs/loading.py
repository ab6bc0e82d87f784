"""Reads YAML strictly: YAML 1.2 booleans and numbers, no dates, no tags, duplicate keys refused, lines kept."""

from __future__ import annotations

import re
from collections.abc import Hashable, Iterable
from dataclasses import dataclass
from typing import Any

import yaml

from harness.errors import Problem, SpecError

__all__ = ["Document", "read_yaml"]

try:
    from yaml import CSafeLoader as _SafeLoader
except ImportError:  # a PyYAML built without libyaml is slower but reads the same
    from yaml import SafeLoader as _SafeLoader  # type: ignore[assignment]


class _Loader(_SafeLoader):
    """YAML 1.1 reads the language code ``no`` as False, ``1e-4`` as text, and keeps the last of two equal keys."""

    yaml_implicit_resolvers: dict[str, list[tuple[str, re.Pattern[str]]]] = {}  # noqa: RUF012

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, Any]:
        """Return the mapping; raises at the second of two equal keys."""
        seen: set[Hashable] = set()
        for key_node, _ in node.value:
            key = self.construct_object(key_node, deep=True)
            if key in seen:
                line = key_node.start_mark.line + 1
                raise yaml.constructor.ConstructorError(
                    None, None, f"the key {key!r} is given twice (again on line {line})", key_node.start_mark
                )
            seen.add(key)
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
