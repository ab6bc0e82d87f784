"""How models that write are asked: sampling, several answers per item, and reasoning before the answer."""

from __future__ import annotations

from harness.errors import CapabilityError, UsageError
from harness.kinds.methods import Pairing
from harness.models.capabilities import Capability
from harness.models.options import ReasoningOptions, SamplingOptions
from harness.planning.plan import Model
from harness.planning.run_config import RunConfig
from harness.specs.prompt import PromptSpec

__all__ = ["AskingPlanner"]

WRITES = "generate"


class AskingPlanner:
    """Plans it for one model, from its options and the run's."""

    def __init__(self, config: RunConfig, model: Model) -> None:
        self._config = config
        self._name = str(model.reference)
        options = model.options
        self._sampling = options if isinstance(options, SamplingOptions) else SamplingOptions()
        self._reasoning = options if isinstance(options, ReasoningOptions) else ReasoningOptions()
        # A chat endpoint ranks nothing, and takes every prompt as a turn.
        self._in_turns = config.chat or Capability.SCORES_CONTINUATIONS not in model.description.offers

    def sampled(self, spec: PromptSpec, method: str) -> PromptSpec:
        """Return a prompt with the temperature and the share of tokens that the user gave."""
        given = {
            name: value
            for name in SamplingOptions.model_fields
            if (value := getattr(self._sampling, name)) is not None
        }
        return spec.model_copy(update=given) if given and method == WRITES else spec

    def repeats(self, method: str) -> int:
        """Return how many answers an item gets."""
        return self._config.repeats if method == WRITES else 1

    def require(self, task: str, pairing: Pairing, spec: PromptSpec) -> None:
        """Raise `UsageError` for several greedy answers, which are all the same.

        Raises `CapabilityError` for a task whose answers cannot be repeated, and where the model is to reason and is
        not asked in turns, or does not write.
        """
        method = pairing.method
        if self.repeats(method.name) > 1:
            if spec.temperature == 0:
                raise UsageError(
                    f"--repeats {self._config.repeats} needs sampled answers: at temperature 0 all answers to an item "
                    "are the same.",
                    hint="Give a temperature, such as -o temperature=0.7.",
                )
            if not method.repeatable:
                raise CapabilityError(
                    f"--repeats needs answers that are right or wrong as a whole, and those of {task!r} have parts"
                )
        self._require_turns(task, method.name)

    def _require_turns(self, task: str, method: str) -> None:
        own = self._reasoning
        if method != WRITES and own.reasons:
            raise CapabilityError(
                f"{task!r} ranks given answers by log-likelihood, and {self._name} is to reason before it answers "
                f"({_given(own)}): an answer without its reasoning has no likelihood of its own. Add --chat, and the "
                "model writes its answer; or give -o thinking=off"
            )
        if method == WRITES and own.template_variables() and not self._in_turns:
            raise CapabilityError(
                f"{_given(own)} is a switch of the chat template, and {task!r} is asked without it: add --chat"
            )
        if method == WRITES and own.reasons and self._config.constrained:
            raise CapabilityError(
                f"--constrained allows only valid answers to {task!r}, and {self._name} is to reason before them "
                f"({_given(own)}): omit one of both"
            )

    def view(self, method: str) -> dict[str, str]:
        """Return the conditions of a cell that were given."""
        if method != WRITES:
            return {}
        view = {"repeats": str(self._config.repeats)} if self._config.repeats > 1 else {}
        for name in SamplingOptions.model_fields:
            if (value := getattr(self._sampling, name)) is not None:
                view[name] = f"{value:g}"
        return view | _reasoning_view(self._reasoning)


def _reasoning_view(options: ReasoningOptions) -> dict[str, str]:
    return {name.removeprefix("option."): value for name, value in options.reasoning_identity().items()}


def _given(options: ReasoningOptions) -> str:
    return ", ".join(f"-o {name}={value}" for name, value in _reasoning_view(options).items())
