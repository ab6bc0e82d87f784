"""How models that write are asked: sampling, several answers per item, and reasoning before the answer."""

from __future__ import annotations

from hashlib import blake2b
from typing import Any

from harness.errors import CapabilityError, UsageError
from harness.kinds.methods import Method, Pairing
from harness.models.capabilities import Capability
from harness.models.options import ReasoningOptions, SamplingOptions
from harness.planning.plan import Model
from harness.planning.run_config import RunConfig
from harness.prompts.answer_regex import answer_regex
from harness.specs.prompt import PromptSpec

WRITES = "generate"
CONSTRAINTS = {"choices": "their list", "regex": "a regular expression", "json_schema": "a JSON schema"}
LONGEST = 24
"""Characters of an option's value in a view."""


class AskingPlanner:
    """Plans it for one model, from its options and the run's."""

    def __init__(self, config: RunConfig, model: Model) -> None:
        self._config = config
        self._name = str(model.reference)
        options = model.options
        self._sampling = options if isinstance(options, SamplingOptions) else SamplingOptions()
        self._reasoning = options if isinstance(options, ReasoningOptions) else ReasoningOptions()
        # A chat endpoint ranks nothing, and takes every prompt as a turn.
        self._constraints = model.description.constraints
        self._in_turns = config.chat or Capability.SCORES_CONTINUATIONS not in model.description.offers

    def sampled(self, spec: PromptSpec, method: str) -> PromptSpec:
        """Return a prompt with what the user gave in place of its own: temperature, limit, stops, system turn ...

        Raises `UsageError` for a regular expression that is not valid, or could take very long.
        """
        options = self._given()
        if "stop" in options:
            # Commas part them, and a shell passes no line end.
            stops = tuple(options["stop"].replace("\\n", "\n").split(","))
            options |= {"stop": tuple(map(_plain, stops)), "chat_stop": stops}
        if "system" in options:
            options["system"] = _plain(options["system"]) + "\n\n"
        try:
            answer_regex(options.get("answer_regex", ""))
        except ValueError as error:
            raise UsageError(
                f"The option answer_regex is {options['answer_regex']!r}, but {error}."
            ) from error
        return spec.model_copy(update=options) if options and method == WRITES else spec

    def repeats(self, method: str) -> int:
        """Return how many answers an item gets."""
        return self._config.repeats if method == WRITES else 1

    def require(self, task: str, pairing: Pairing, spec: PromptSpec) -> None:
        """Raise `UsageError` for several greedy answers, which are all the same.

        Raises `CapabilityError` for a task whose answers cannot be repeated, and where the model is to reason and is
        not asked in turns, or does not write, or cannot keep to what ``--constrained`` allows.
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
        self._require_constraint(task, method, spec)

    def _require_constraint(self, task: str, method: Method, spec: PromptSpec) -> None:
        keeps, constraint = self._constraints, method.constraint(spec)
        if (
            self._config.constrained
            and keeps is not None
            and constraint is not None
            and constraint not in keeps
        ):
            raise CapabilityError(
                f"--constrained keeps the answers to {task!r} to {CONSTRAINTS[constraint]}, and {self._name} cannot do "
                "that: omit --constrained, or serve the model with vLLM (vllm:URL)"
            )

    def _require_turns(self, task: str, method: str) -> None:
        reasoning = self._reasoning
        if method != WRITES and reasoning.reasons:
            raise CapabilityError(
                f"{task!r} ranks given answers by log-likelihood, and {self._name} is to reason before it answers "
                f"({_given(reasoning)}): an answer without its reasoning has no likelihood of its own. Add --chat, and "
                "the model writes its answer; or give -o thinking=off"
            )
        if method == WRITES and reasoning.template_variables() and not self._in_turns:
            raise CapabilityError(
                f"{_given(reasoning)} is a switch of the chat template, and {task!r} is asked without it: add --chat"
            )
        if method == WRITES and reasoning.reasons and self._config.constrained:
            raise CapabilityError(
                f"--constrained allows only valid answers to {task!r}, and {self._name} is to reason before them "
                f"({_given(reasoning)}): omit one of both"
            )

    def view(self, method: str) -> dict[str, str]:
        """Return the conditions of a cell that were given."""
        if method != WRITES:
            return {}
        view = {"repeats": str(self._config.repeats)} if self._config.repeats > 1 else {}
        view |= {name: _short(value) for name, value in self._given().items()}
        return view | _reasoning_view(self._reasoning)

    def _given(self) -> dict[str, Any]:
        values = {name: getattr(self._sampling, name) for name in SamplingOptions.model_fields}
        return {name: value for name, value in values.items() if value is not None}


def _plain(text: str) -> str:
    """Return a text as a template writes it: without slots."""
    return text.replace("{", "{{").replace("}", "}}")


def _short(value: float | str) -> str:
    """Return the value of an option for a view, which heads columns: a long text by its beginning and a digest."""
    if not isinstance(value, str):
        return f"{value:g}"
    if len(value) <= LONGEST and value.isprintable():
        return value
    digest = blake2b(value.encode("utf-8", "surrogatepass"), digest_size=4).hexdigest()
    return f"{' '.join(value.split())[: LONGEST - 8]}\u2026{digest}"


def _reasoning_view(options: ReasoningOptions) -> dict[str, str]:
    return {name.removeprefix("option."): value for name, value in options.reasoning_identity().items()}


def _given(options: ReasoningOptions) -> str:
    return ", ".join(f"-o {name}={value}" for name, value in _reasoning_view(options).items())
