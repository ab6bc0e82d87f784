"""The right choice: ``doc_to_target`` as a column, and a map from its values to labels."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from harness_lm_eval.choice import Choices
from harness_lm_eval.expression import (
    Call,
    Field,
    Items,
    Literal,
    Node,
    Sum,
    UnsupportedError,
    split_template,
)

__all__ = ["answer_path", "read_target"]


def read_target(value: Any, choices: Choices, names: Sequence[str]) -> tuple[str, dict[str, str]]:
    """Return the column of the label and the map from its values to the names of choices; raises `UnsupportedError`."""
    if isinstance(value, int):
        raise UnsupportedError(
            f"the constant {value}: our items need a column that says which choice is right"
        )
    node = _expression(value)
    if isinstance(node, Call) and node.name == "index" and isinstance(node.target, Items):
        return _looked_up(node, names)
    field, offset = _shifted(node)
    column = _column(field)
    values = {str(index + offset): name for index, name in enumerate(names)}
    if offset == 0 and choices.literal:
        texts = choices.texts()
        if any(text.strip().isdigit() for text in texts):
            raise UnsupportedError(
                f"{column!r}: the choices are numbers, so that its values could be choices or their indices"
            )
        values |= {text.strip(): name for text, name in zip(texts, names, strict=True)}
    return column, values


def _expression(value: Any) -> Node:
    if not isinstance(value, str):
        raise UnsupportedError(f"expected a field or an expression, found {value!r}")
    if value.isidentifier():
        return Field((value,))
    pieces = [piece for piece in split_template(value) if not isinstance(piece, str) or piece.strip()]
    if len(pieces) != 1 or isinstance(pieces[0], str):
        raise UnsupportedError(f"{value!r}: expected one field or one expression {{{{...}}}}")
    return pieces[0]


def _looked_up(node: Call, names: Sequence[str]) -> tuple[str, dict[str, str]]:
    assert isinstance(node.target, Items)
    keys = [item.value for item in node.target.items if isinstance(item, Literal)]
    if len(keys) != len(node.target.items) or len(node.arguments) != 1:
        raise UnsupportedError("'index' of anything but a list of texts and one field")
    if len(keys) != len(names):
        raise UnsupportedError(f"a list of {len(keys)} values for {len(names)} choices")
    return _column(node.arguments[0]), {str(key).strip(): name for key, name in zip(keys, names, strict=True)}


def _shifted(node: Node) -> tuple[Node, int]:
    """Return the field of ``field``, ``field - 1`` or ``field|int - 1``, and what is taken away."""
    if not isinstance(node, Sum):
        return node, 0
    match node.rest:
        case (("-", Literal(int() as offset)),):
            return node.first, offset
    raise UnsupportedError("arithmetic other than 'field - NUMBER'")


def _column(node: Node) -> str:
    if (
        isinstance(node, Call)
        and not node.arguments
        and node.name in {"int", "strip", "trim", "lstrip", "rstrip"}
    ):
        return _column(node.target)
    if isinstance(node, Field) and not node.filters and len(node.path) == 1:
        return str(node.path[0])
    if isinstance(node, Field):
        raise UnsupportedError(
            f"{'.'.join(map(str, node.path))!r}: a value inside a field; only whole fields are labels"
        )
    raise UnsupportedError(
        "an expression that is no field; supported are 'field', 'field - 1' and ['a', 'b'].index(field)"
    )


def answer_path(value: Any) -> tuple[str, str, str]:
    """Return where the gold answers of a generation task are, and the white space before and after them.

    The place is ``answer`` or ``answers.text.0``. Raises `UnsupportedError`.
    """
    node = _expression(value)
    if isinstance(node, Field) and not node.filters:
        start, _, end = str(value).partition("{{")
        before, after = (start, end.rpartition("}}")[2]) if end else ("", "")
        return ".".join(map(str, node.path)), before, after
    raise UnsupportedError(
        "an expression that is no field: the gold answer of what is generated must be a field"
    )
