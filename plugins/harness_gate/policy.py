"""What a gate accepts: ``--policy FILE``, or the defaults."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field

from harness import UsageError
from harness.specs import Code, SpecModel, read_yaml, validate_document

Points = Annotated[float, Field(gt=0, le=100)]


class TaskPolicy(SpecModel):
    """What differs for one task."""

    margin: Points | None = None
    metric: str | None = None
    """The metric that decides; by default the headline metrics of the task, each by itself."""
    languages: dict[Code, Points] = Field(default={})
    """Margins of its languages."""


class Required(SpecModel):
    """What both runs must have finished, and what must be GO by itself for the whole to be GO."""

    tasks: tuple[str, ...] = ()
    languages: tuple[Code, ...] = ()
    """In every task that the base run has in this language."""


class Policy(SpecModel):
    """A policy; every key is optional."""

    margin: Points = 2.0
    """The drop that is accepted, in points of a score from 0 to 100."""
    alpha: Annotated[float, Field(gt=0, lt=0.5)] = 0.05
    """Two-sided, as for all intervals and tests of the project."""
    correction: Literal["holm", "bh", "none"] = "holm"
    """For the number of tests: Holm (1979), Benjamini and Hochberg (1995), or none."""
    decide_by: Literal["task", "language"] = "task"
    """Whether GO needs the mean over languages of every task to be GO, or every single language."""
    inconclusive: Literal["inconclusive", "go", "no-go"] = "inconclusive"
    """What an inconclusive whole counts as."""
    languages: dict[Code, Points] = Field(default={})
    """Margins by language, in all tasks that say nothing else."""
    tasks: dict[str, TaskPolicy] = Field(default={})
    required: Required = Required()

    def margin_of(self, task: str, language: str | None) -> float:
        """Return the accepted drop as a fraction; the language is None for the mean of a task."""
        own, code = self.tasks.get(task, TaskPolicy()), language or ""
        margins = (own.languages.get(code), own.margin, self.languages.get(code), self.margin)
        return next(margin for margin in margins if margin is not None) / 100


def read_policy(path: Path | None) -> Policy:
    """Return the policy of a file, or the default one; raises `UsageError`, and `SpecError` with all its faults."""
    if path is None:
        return Policy()
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
        raise UsageError(f"The policy {str(path)!r} cannot be read: {reason}.") from error
    return validate_document(Policy, read_yaml(text, str(path)))
