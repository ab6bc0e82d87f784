"""How models that write are asked: sampling, several answers per item, and reasoning before the answer."""

from __future__ import annotations

from hashlib import blake2b
from typing import Any

from harness.errors import CapabilityError, UsageError
from harness.kinds.methods import Pairing
from harness.models.capabilities import Capability
from harness.models.options import ReasoningOptions, SamplingOptions
from harness.planning.plan import PlanRequest
from harness.prompts.answer_regex import answer_regex
from harness.specs.prompt import PromptSpec

WRITES = "generate"
CONSTRAINTS = {"choices": "their list", "regex": "a regular expression", "json_schema": "a JSON schema"}
LONGEST = 24
"""Characters of an option's value in a view."""


def sampled_prompt(request: PlanRequest, spec: PromptSpec, method: str) -> PromptSpec:
    """Return a prompt with what the user gave in place of its own: temperature, limit, stops, system turn ...

    Raises `UsageError` for a regular expression that is not valid, or could take very long.
    """
    options = _sampling_options(request)
    if "stop" in options:
        # Commas part them, and a shell passes no line end.
        stops = tuple(options["stop"].replace("\\n", "\n").split(","))
        options |= {"stop": tuple(map(_plain, stops)), "chat_stop": stops}
    if "system" in options:
        options["system"] = _plain(options["system"]) + "\n\n"
    try:
        answer_regex(options.get("answer_regex", ""))
    except ValueError as error:
        raise UsageError(f"The option answer_regex is {options['answer_regex']!r}, but {error}.") from error
    return spec.model_copy(update=options) if options and method == WRITES else spec


def repeats(request: PlanRequest, method: str) -> int:
    """Return how many answers an item gets."""
    return request.config.repeats if method == WRITES else 1


def require_askable(request: PlanRequest, task: str, pairing: Pairing, spec: PromptSpec) -> None:
    """Raise `UsageError` for several greedy answers, which are all the same.

    Raises `CapabilityError` for a task whose answers cannot be repeated, and where the model is to reason and is
    not asked in turns, or does not write, or cannot keep to what ``--constrained`` allows.
    """
    method = pairing.method
    if repeats(request, method.name) > 1:
        if spec.temperature == 0:
            raise UsageError(
                f"--repeats {request.config.repeats} needs sampled answers: at temperature 0 all answers to an item "
                "are the same.",
                hint="Give a temperature, such as -o temperature=0.7.",
            )
        if not method.repeatable:
            raise CapabilityError(
                f"--repeats needs answers that are right or wrong as a whole, and those of {task!r} have parts"
            )
    _require_turns(request, task, method.name)
    supported, constraint = request.model.description.constraints, method.constraint(spec)
    if not request.config.constrained or supported is None or constraint is None:
        return
    if constraint not in supported:
        raise CapabilityError(
            f"--constrained keeps the answers to {task!r} to {CONSTRAINTS[constraint]}, and "
            f"{request.model.reference} cannot do that: omit --constrained, or serve the model with vLLM (vllm:URL)"
        )


def _require_turns(request: PlanRequest, task: str, method: str) -> None:
    reasoning, name = _reasoning(request), str(request.model.reference)
    if method != WRITES:
        if reasoning.reasons:
            raise CapabilityError(
                f"{task!r} ranks given answers by log-likelihood, and {name} is to reason before it answers "
                f"({_given(reasoning)}): an answer without its reasoning has no likelihood of its own. Add --chat, and "
                "the model writes its answer; or give -o thinking=off"
            )
        return
    # A chat endpoint ranks nothing, and takes every prompt as a turn.
    offers = request.model.description.offers
    in_turns = request.config.chat or Capability.SCORES_CONTINUATIONS not in offers
    if reasoning.template_variables() and not in_turns:
        raise CapabilityError(
            f"{_given(reasoning)} is a switch of the chat template, and {task!r} is asked without it: add --chat"
        )
    if reasoning.reasons and request.config.constrained:
        raise CapabilityError(
            f"--constrained allows only valid answers to {task!r}, and {name} is to reason before them "
            f"({_given(reasoning)}): omit one of both"
        )


def asking_view(request: PlanRequest, method: str) -> dict[str, str]:
    """Return the conditions of a cell that were given."""
    if method != WRITES:
        return {}
    count = repeats(request, method)
    view = {"repeats": str(count)} if count > 1 else {}
    view |= {name: _short(value) for name, value in _sampling_options(request).items()}
    return view | _reasoning_view(_reasoning(request))


def _sampling_options(request: PlanRequest) -> dict[str, Any]:
    options = request.model.options
    values = {name: getattr(options, name, None) for name in SamplingOptions.model_fields}
    is_sampled = isinstance(options, SamplingOptions)
    return {name: value for name, value in values.items() if is_sampled and value is not None}


def _reasoning(request: PlanRequest) -> ReasoningOptions:
    options = request.model.options
    return options if isinstance(options, ReasoningOptions) else ReasoningOptions()


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
