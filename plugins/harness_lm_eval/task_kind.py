"""The kinds of lm-eval's own tasks: ranked by likelihood, or generated."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal

from pydantic import Field

from harness import DataError
from harness.data import Example, Row
from harness.kinds import ReadContext, TaskKind
from harness.specs import TaskSpec


class LmEvalSpec(TaskSpec):
    """The spec of an lm-eval task, made from its task file."""

    output_type: Literal["multiple_choice", "loglikelihood", "generate_until"]
    shots: Annotated[int, Field(ge=0)]
    """Examples before each item."""
    task_version: str
    """``metadata.version`` of the task file."""
    further: dict[str, str] = Field(default_factory=dict)
    """``METRIC,FILTER`` -> aggregation, of metrics that are no share of the items."""

    def lm_eval_name(self, language: str) -> str:
        """Return the name in lm-eval of the task in a language."""
        source = self.source(language, "test")
        assert source is not None
        assert source.hub is not None
        return source.hub.path.partition(":")[2]

    @property
    def gap_source(self) -> str | None:
        """English, where the task has it."""
        return "en" if "en" in self.languages else None


class LikelihoodSpec(LmEvalSpec):
    """The spec of a task whose continuations are scored."""

    kind: Literal["lm_eval_likelihood"]


class GenerationSpec(LmEvalSpec):
    """The spec of a task whose answers are generated."""

    kind: Literal["lm_eval_generation"]


@dataclass(frozen=True, slots=True, kw_only=True)
class LmEvalExample(Example):
    """One document with what lm-eval asks about it."""

    requests: tuple[tuple[Any, Any], ...]
    """Context and continuation, or prompt and options of generation, in lm-eval's order."""
    repeats: int = 1
    """How often each is asked."""
    targets: Mapping[str, Any] = field(default_factory=dict)
    """``target`` and ``doc``: what the answers are scored against."""


def _example(row: Row, number: int, context: ReadContext) -> LmEvalExample:
    fields = row.fields
    try:
        requests = tuple((first, second) for first, second in fields["requests"])
        targets = {"target": fields["target"], "doc": fields["doc"]}
        return LmEvalExample(
            id=str(fields["id"]), requests=requests, repeats=int(fields["repeats"]), targets=targets
        )
    except (KeyError, TypeError, ValueError) as error:
        raise DataError(
            f"{row.where}: expected the lm-eval requests of {context.owner!r}: {error}."
        ) from error


def _reference(example: LmEvalExample) -> Mapping[str, Any]:
    return example.targets


KINDS = (
    TaskKind(
        name="lm_eval_likelihood",
        spec_model=LikelihoodSpec,
        head=None,
        methods=("rank",),
        example=_example,
        reference=_reference,
        summary="log-likelihoods of continuations, scored by lm-eval",
    ),
    TaskKind(
        name="lm_eval_generation",
        spec_model=GenerationSpec,
        head=None,
        methods=("generate",),
        example=_example,
        reference=_reference,
        summary="answers to lm-eval's prompts are generated, and scored by lm-eval",
    ),
)
