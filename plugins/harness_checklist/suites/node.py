"""Reads YAML strictly as nodes with line and column, and collects all faults in one pass.

As `harness.specs.loading` it knows no tags and no doubled keys, and ``no`` is a text; a template needs columns too.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from typing import Any

import yaml

from harness import Problem, SpecError, near_names
from harness_checklist.suites.suite import Place

__all__ = ["Reader"]

try:
    from yaml import CSafeLoader as _SafeLoader
except ImportError:  # a PyYAML built without libyaml is slower but reads the same
    from yaml import SafeLoader as _SafeLoader  # type: ignore[assignment]

_NUMBER = re.compile(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?")
_NULLS = frozenset({"", "~", "null"})
_FLAGS = {"true": True, "false": False}
_KINDS = {yaml.ScalarNode: "a text", yaml.SequenceNode: "a list", yaml.MappingNode: "a mapping"}


class _Composer(_SafeLoader):
    """Gives nodes an empty tag, so that every other one was written in the file."""

    def resolve(self, kind: Any, value: Any, implicit: Any) -> str:
        return ""

    def descend_resolver(self, current_node: Any, current_index: Any) -> None:
        """Nothing is resolved by its path."""

    def ascend_resolver(self) -> None:
        """Nothing is resolved by its path."""


class Reader:
    """Reads the nodes of one file and keeps its faults; a faulty node reads as an empty value of its kind."""

    def __init__(self, source: str) -> None:
        self.source = source
        self.problems: list[Problem] = []

    def compose(self, text: str) -> yaml.Node | None:
        """Return the root of the one document of a text; None where it cannot be parsed."""
        composer = _Composer(text)
        try:
            root: yaml.Node | None = composer.get_single_node()
        except yaml.MarkedYAMLError as error:
            mark = error.problem_mark or error.context_mark
            line, column = (None, 0) if mark is None else (mark.line + 1, mark.column + 1)
            key = f"column {column}" if column else ""
            self.problems.append(Problem(message=str(error.problem or error), line=line, key=key))
            return None
        except yaml.YAMLError as error:
            self.problems.append(Problem(message=str(error)))
            return None
        finally:
            composer.dispose()
        if root is None:
            self.problems.append(Problem(message="the file is empty: expected a mapping of keys to values"))
        return root

    def place(self, node: yaml.Node) -> Place:
        """Return where a node begins."""
        mark = node.start_mark
        return Place(path=self.source, line=mark.line + 1, column=mark.column + 1)

    def text_place(self, node: yaml.Node) -> Place:
        """Return where the text of a node begins: after its quote; of a text of several lines, the line alone."""
        start, end, style = node.start_mark, node.end_mark, _style(node)
        if style in ("|", ">") or start.line != end.line:
            return Place(path=self.source, line=start.line + 1)
        return Place(path=self.source, line=start.line + 1, column=start.column + (2 if style else 1))

    def fault(self, message: str, node: yaml.Node | None, key: str = "") -> None:
        """Note a fault at a node."""
        line = node.start_mark.line + 1 if node is not None else None
        self.problems.append(Problem(message=message, line=line, key=key))

    def fault_at(self, message: str, place: Place | None, key: str = "") -> None:
        """Note a fault at a place, its column with it."""
        line, column = (None, None) if place is None else (place.line, place.column)
        self.problems.append(Problem(message=message, line=line, key=f"column {column}" if column else key))

    def finish(self) -> None:
        """Raise `SpecError` with all faults in the order of their lines, where there are any."""
        if self.problems:
            ordered = sorted(dict.fromkeys(self.problems), key=lambda problem: problem.line or 0)
            raise SpecError(self.source, ordered)

    def mapping(
        self, node: yaml.Node, key: str, known: Collection[str] | None = None, needed: Iterable[str] = ()
    ) -> dict[str, yaml.Node]:
        """Return the nodes of a mapping by key; notes doubled keys and, where `known` is given, unknown ones."""
        if not self._is(node, yaml.MappingNode, key):
            return {}
        found: dict[str, yaml.Node] = {}
        for key_node, value in node.value:
            if not isinstance(key_node, yaml.ScalarNode) or key_node.tag:
                self.fault("expected a text as key", key_node, key)
                continue
            name = key_node.value
            if name in found:
                earlier = found[name].start_mark.line + 1
                self.fault(f"the key {name!r} is given twice (first on line {earlier})", key_node, key)
            elif known is not None and name not in known:
                near = near_names(name, known)
                self.fault(
                    f"unknown key {name!r}" + (f"; did you mean {near[0]!r}?" if near else ""), key_node, key
                )
            else:
                found[name] = value
        for name in needed:
            if name not in found:
                self.fault(f"the key {name!r} is missing", node, key)
        return found

    def sequence(self, node: yaml.Node, key: str) -> list[yaml.Node]:
        """Return the nodes of a list."""
        return node.value if self._is(node, yaml.SequenceNode, key) else []

    def text(self, node: yaml.Node, key: str) -> str:
        """Return a text; what YAML reads as a number, a truth value or nothing must be quoted to be one."""
        if not self._is(node, yaml.ScalarNode, key):
            return ""
        value: str = node.value
        if _style(node) is None and (value in _NULLS or value in _FLAGS or _NUMBER.fullmatch(value)):
            quoted = f', write "{value}" for the text' if value else ""
            self.fault(f"expected a text, found {value or 'nothing'}{quoted}", node, key)
        return value

    def texts(self, node: yaml.Node, key: str) -> tuple[str, ...]:
        """Return a list of texts; one text is a list of it."""
        if isinstance(node, yaml.ScalarNode):
            return (self.text(node, key),)
        return tuple([self.text(item, key) for item in self.sequence(node, key)])

    def flag(self, node: yaml.Node, key: str) -> bool:
        """Return ``true`` or ``false``."""
        if not isinstance(node, yaml.ScalarNode) or _style(node) is not None or node.value not in _FLAGS:
            self.fault("expected true or false", node, key)
            return False
        return _FLAGS[node.value]

    def count(self, node: yaml.Node, key: str) -> int:
        """Return a whole number from 1."""
        plain = isinstance(node, yaml.ScalarNode) and _style(node) is None
        if not plain or not re.fullmatch("[1-9][0-9]{0,8}", node.value):
            self.fault("expected a whole number from 1", node, key)
            return 1
        return int(node.value)

    def choice(self, node: yaml.Node, key: str, known: Collection[str]) -> str:
        """Return a text that is one of those known; the first of them where it is not."""
        value = self.text(node, key)
        if value in known:
            return value
        self.fault(f"expected {' or '.join(map(repr, known))}, found {value!r}", node, key)
        return next(iter(known))

    def _is(self, node: yaml.Node, kind: type[yaml.Node], key: str) -> bool:
        if node.tag:
            self.fault(f"tags such as {node.tag!r} are not allowed", node, key)
            return False
        if not isinstance(node, kind):
            self.fault(f"expected {_KINDS[kind]}, found {_KINDS[type(node)]}", node, key)
            return False
        return True


def _style(node: yaml.Node) -> str | None:
    """Return the quote or block sign of a text, None for a plain one."""
    style: str | None = getattr(node, "style", None)
    return style or None
