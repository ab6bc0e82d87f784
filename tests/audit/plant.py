"""A fault that is planted in a shipped task, and the list of a file's faults."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from tests.audit.bench import Bench

Spoil = Callable[[Bench], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Plant:
    """One planted fault, and what the audit must report of it."""

    fault: str
    seen: str
    """Where it was seen; empty where it is invented."""
    task: str
    check: str
    language: str | None
    spoil: Spoil
    note: bool = False
    """Whether it may be intended, so that it is a note and no fault."""


class PlantList(list[Plant]):
    """Faults in the order in which they are declared."""

    def planted(
        self,
        task: str,
        fault: str,
        check: str,
        language: str | None = None,
        *,
        seen: str = "",
        note: bool = False,
    ) -> Callable[[Spoil], Spoil]:
        """Return what adds a function that plants a fault."""

        def add(spoil: Spoil) -> Spoil:
            self.append(
                Plant(
                    fault=fault, seen=seen, task=task, check=check, language=language, spoil=spoil, note=note
                )
            )
            return spoil

        return add
