"""Shared code of adapters whose models write: two methods, the checks of options, and the best choice."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence

from harness import CapabilityError, UsageError
from harness.models import Call, Generated, GenerateOptions, LikelihoodAnswer, LikelihoodRequest, Prompt
from harness_hf.inference.answer_stream import Parts
from harness_hf.inference.session import CHUNK, ModelSession
from harness_hf.inference.text_vectors import TextVectors


class TextWriter(TextVectors):
    """Base of adapters that score continuations and write texts."""

    def loglikelihood(self, requests: Sequence[LikelihoodRequest]) -> list[LikelihoodAnswer]:
        """Return per-token log-probabilities of every continuation."""
        return self._answers(Call(ability="loglikelihood"), requests, CHUNK)

    def generate(self, prompts: Sequence[Prompt], options: Sequence[GenerateOptions]) -> list[Generated]:
        """Return one text per prompt: greedy, or sampled by the request's own seed.

        A text ends at the end token, at a stop string or at ``max_tokens``. Beams, penalties and lengths of the
        checkpoint's generation config are not used. Of `choices` the likeliest is returned, the first at ties.
        Raises `CapabilityError` for another constraint, and for a conversation where there is no chat template.
        """
        if len(prompts) != len(options):
            raise UsageError(
                f"There are {len(prompts)} prompts and {len(options)} options; one each is expected."
            )
        return self._answers(Call(ability="generate"), list(zip(prompts, options, strict=True)), CHUNK)


def check_writing(options: GenerateOptions, session: ModelSession) -> None:
    """Raise `CapabilityError` for a constraint that no adapter here can keep, `UsageError` for senseless options."""
    for name, constraint in (("regular expression", options.regex), ("JSON schema", options.json_schema)):
        if constraint is not None:
            raise CapabilityError(
                f"The adapter {session.adapter!r} cannot constrain the text of {session.ref!r} by a {name}.",
                hint="The adapter 'vllm' can: serve the model and give it as 'vllm:...'.",
            )
    if options.choices is not None and not options.choices:
        raise UsageError("The list of choices is empty; expected at least one.")
    if options.max_tokens < 1:
        raise UsageError(f"max_tokens must be at least 1, got {options.max_tokens}.")
    if not (math.isfinite(options.temperature) and options.temperature >= 0):
        raise UsageError(f"temperature must be at least 0 (greedy), got {options.temperature}.")
    if not 0 < options.top_p <= 1:
        raise UsageError(f"top_p must be greater than 0 and at most 1, got {options.top_p}.")
    if "" in options.stop:
        raise UsageError("A stop string is empty; expected at least one character.")


def choose_likeliest(
    owners: Sequence[int],
    prompts: int,
    scored: Iterable[tuple[Sequence[int], Sequence[float]]],
    answer: Callable[[int], Generated],
) -> Iterator[tuple[list[int], list[Generated]]]:
    """Yield (numbers of prompts, the likeliest of their choices, the first at ties) as choices are scored.

    Args:
        owners: The number of the prompt that each choice is one of.
        prompts: The number of all prompts.
        scored: Numbers of choices with their log-probabilities.
        answer: From the number of a choice to what is returned for it.
    """
    pending = Parts(owners, prompts)
    choices_of: dict[int, list[int]] = {}
    for number, owner in enumerate(owners):
        choices_of.setdefault(owner, []).append(number)
    totals: dict[int, float] = {}
    for numbers, values in scored:
        totals.update(zip(numbers, values, strict=True))
        complete = pending.finish(numbers)
        yield complete, [answer(max(choices_of[owner], key=totals.__getitem__)) for owner in complete]
