"""The result of checking a task on its data: findings, notes, and what was skipped."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from harness.prompts.prompter import Rendering


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One expectation that the data, prompts or metrics of a task do not meet."""

    task: str
    languages: tuple[str, ...]
    """The languages with the fault; empty where it is about the whole task."""
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
    text: str

    def __str__(self) -> str:
        """Return the sentence."""
        where = f" [{' '.join(self.languages)}]" if self.languages else ""
        return f"{self.task}{where}: {self.text}."


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskAudit:
    """All that checks found of one task."""

    task: str
    languages: tuple[str, ...] = ()
    """The languages whose test items were read."""
    items: int = 0
    findings: Sequence[Finding] = ()
    notes: Sequence[Note] = ()
    skipped: Sequence[str] = ()
    """What was not checked, each with the reason."""
    prompts: Sequence[Rendering] = ()
    """One item of every language as every preset presents it."""

    @property
    def is_empty(self) -> bool:
        """Whether no test item was found, so that nothing was checked."""
        return not self.items

    def summary(self) -> str:
        """Return one line: how much was checked, and how many faults were found."""
        count = len(self.findings)
        none = "nothing to check: no test item was found" if self.is_empty else "no fault"
        faults = none if not count else _counted(count, "fault")
        size = f"{_counted(len(self.languages), 'language')}, {_counted(self.items, 'item')}"
        return f"{self.task}: {size}, {faults}"

    def to_json(self) -> dict[str, Any]:
        """Return its row for ``--json``."""
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
                {"check": item.check, "languages": list(item.languages), "told": item.text}
                for item in self.notes
            ],
            "skipped": list(self.skipped),
            "prompts": [rendering.to_json() for rendering in self.prompts],
        }

    def prompt_lines(self, *, whole: bool = False) -> Iterator[str]:
        """Yield one line per language under the first preset; with `whole`, all that a model sees under every one."""
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


def join_audits(task: str, audits: Iterable[TaskAudit]) -> TaskAudit:
    """Return the audits of one task by several checks as one; items are counted once."""
    audits = list(audits)
    return TaskAudit(
        task=task,
        languages=tuple(dict.fromkeys(code for audit in audits for code in audit.languages)),
        items=max((audit.items for audit in audits), default=0),
        findings=[finding for audit in audits for finding in audit.findings],
        notes=[note for audit in audits for note in audit.notes],
        skipped=[reason for audit in audits for reason in audit.skipped],
        prompts=[rendering for audit in audits for rendering in audit.prompts],
    )


def _counted(count: int, noun: str) -> str:
    return f"{count:,} {noun}{'' if count == 1 else 's'}"
