"""The cases of a generated suite."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

__all__ = ["Case", "CaseExample"]


@dataclass(frozen=True, slots=True, kw_only=True)
class CaseExample:
    """A question about a context, with the one answer that passes."""

    id: str
    """The id of its case, ``/``, and its 1-based number in it."""
    context: str
    question: str
    answer: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """Contexts x questions of one draw of fill-ins: it passes where every example does (CheckList's MFT).

    As JSON, one line of a ``.jsonl`` file: ``{"id", "test", "language", "capability", "type", "fills": {slot: id},
    "examples": [{"id", "context", "question", "answer"}]}``.
    """

    id: str
    """The id of its test, ``-``, and a digest of `fills`: the same draw has it in every file, whatever n and seed."""
    test: str
    language: str
    examples: tuple[CaseExample, ...]
    """Empty where no variant of the templates applies to the draw: such a case counts as failed."""
    capability: str = ""
    type: str = "MFT"
    fills: Mapping[str, str] = field(default_factory=dict)
    """Slot -> the id of its fill-in; the id of a name is the name."""
