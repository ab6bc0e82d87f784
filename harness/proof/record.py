"""What the proof of a task finds: sentences that say what was expected and what was found."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from harness.data.sources import FoundData
from harness.prompts.preview import Rendering

__all__ = ["Finding", "Note", "ProvedSplit", "TaskProof", "named_ids"]

NAMED = 3
"""Items that a sentence names."""


def named_ids(ids: Sequence[str]) -> str:
    """Return the first ids of items, as a sentence names them: their own, or their number in the file."""
    more = ", ..." if len(ids) > NAMED else ""
    return f"{'items' if len(ids) > 1 else 'item'} {', '.join(map(repr, ids[:NAMED]))}{more}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One expectation that the data, prompts or metrics of a task do not meet."""

    task: str
    languages: tuple[str, ...]
    """Those that it was found in; empty where it is about the whole task."""
    check: str
    """The name of the check: ``gold``, ``constant``, ``overlap``."""
    expected: str
    found: str

    def __str__(self) -> str:
        """Return the sentence."""
        where = f" [{' '.join(self.languages)}]" if self.languages else ""
        end = "" if self.found.endswith(("?", "!")) else "."
        return f"{self.task}{where}: expected {self.expected}, found {self.found}{end}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Note:
    """Something that was counted and is no fault, such as items with a placeholder."""

    task: str
    languages: tuple[str, ...]
    check: str
    told: str

    def __str__(self) -> str:
        """Return the sentence."""
        where = f" [{' '.join(self.languages)}]" if self.languages else ""
        return f"{self.task}{where}: {self.told}."


@dataclass(frozen=True, slots=True, kw_only=True)
class ProvedSplit:
    """The examples of one split in one language, under one value of every axis."""

    owner: str
    language: str
    split: str
    axes: tuple[str, ...]
    """The values of the task's axes."""
    found: FoundData
    examples: Sequence[Any]
    candidates: Sequence[str] = ()
    """The ids of the pool that the examples are joined with, for kinds that rank one."""

    @property
    def origin(self) -> str:
        """``local``, ``hub`` or ``sample``."""
        return self.found.files.origin

    @property
    def title(self) -> str:
        """Return ``test``, or ``test, one x two`` with axes."""
        return self.split + "".join(f", {value}" for value in self.axes)


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskProof:
    """All that was found of one task."""

    task: str
    languages: tuple[str, ...] = ()
    """Those whose test items were read."""
    items: int = 0
    findings: Sequence[Finding] = field(default_factory=tuple)
    notes: Sequence[Note] = field(default_factory=tuple)
    skipped: Sequence[str] = field(default_factory=tuple)
    """What was not proved, each with the reason."""
    prompts: Sequence[Rendering] = field(default_factory=tuple)
    """One item of every language as every preset presents it."""

    @property
    def is_empty(self) -> bool:
        """Whether no test item was found, so that nothing was proved."""
        return not self.items

    def told(self) -> str:
        """Return one line: how much was proved, and how many faults were found."""
        count = len(self.findings)
        none = "nothing to prove: no test item was found" if self.is_empty else "no fault"
        faults = none if not count else _counted(count, "fault")
        size = f"{_counted(len(self.languages), 'language')}, {_counted(self.items, 'item')}"
        return f"{self.task}: {size}, {faults}"

    def to_json(self) -> dict[str, Any]:
        """Return what ``--json`` writes of it."""
        return {
            "languages": list(self.languages),
            "items": self.items,
            "findings": [
                {
                    "check": item.check,
                    "languages": list(item.languages),
                    "expected": item.expected,
                    "found": item.found,
                }
                for item in self.findings
            ],
            "notes": [
                {"check": item.check, "languages": list(item.languages), "told": item.told}
                for item in self.notes
            ],
            "skipped": list(self.skipped),
            "prompts": [rendering.to_json() for rendering in self.prompts],
        }

    def prompt_lines(self, *, whole: bool = False) -> Iterator[str]:
        """Yield one line a language under the first preset, or, `whole`, all that a model sees under every one."""
        if whole:
            for rendering in self.prompts:
                yield f"  language {rendering.language}"
                yield from (f"    {line}" for line in rendering.lines())
            return
        names = list(dict.fromkeys(rendering.prompt.prompt for rendering in self.prompts))
        if names:
            further = f"; also {', '.join(names[1:])} (see --prompts)" if names[1:] else ""
            yield f"  prompt   {names[0]}{further}"
        for rendering in self.prompts:
            if rendering.prompt.prompt == names[0]:
                yield f"    {rendering.line()}"


def _counted(count: int, noun: str) -> str:
    return f"{count:,} {noun}{'' if count == 1 else 's'}"
