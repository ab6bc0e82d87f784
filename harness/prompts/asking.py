"""Asks a model: ranks the choices of items, or lets it write; drops shots where a prompt is too long."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from harness.data.records import Prediction, is_tied
from harness.errors import AdapterError, ContractError
from harness.metrics.scoring import joined_answers
from harness.models.capabilities import CountsTokens, Generates, ScoresContinuations
from harness.models.requests import (
    Generated,
    GenerateOptions,
    LikelihoodAnswer,
    LikelihoodRequest,
    Prompt,
    separate_reasoning,
    within_stops,
)
from harness.prompts.parsing import answer_regex
from harness.prompts.preset import ChoicePrompt
from harness.prompts.prompter import Prompter


def rank_choices(
    adapter: ScoresContinuations, examples: Sequence[Any], prompter: Prompter
) -> list[Prediction]:
    """Return for each item the choice whose continuation is likeliest, with all that other views need.

    An output has ``label`` (the name of the choice with the largest sum; the first of equals), and by choice
    ``scores`` (sums of log-probabilities, natural logarithm), ``tokens``, ``characters`` and ``bytes`` of the
    continuations, ``greedy``, and ``unconditional`` (sums without the item) where the prompt asks for it.
    """
    shots = _fitting_shots(
        adapter,
        examples,
        prompter,
        lambda example, count: [
            (ranking := prompter.ranking(example, count)).context + max(ranking.continuations, key=len)
        ],
        reserve=0,
    )
    rankings = [prompter.ranking(example, count) for example, count in zip(examples, shots, strict=True)]
    requests = [
        LikelihoodRequest(context=ranking.context, continuation=text)
        for ranking in rankings
        for text in ranking.continuations
    ]
    answers = _likelihoods(adapter, requests)
    alone = _unconditional(adapter, rankings)
    lengths = _prompt_lengths(adapter, [ranking.context for ranking in rankings])
    predictions = []
    start = 0
    for example, ranking, count, length in zip(examples, rankings, shots, lengths, strict=True):
        end = start + len(ranking.continuations)
        names = prompter.item(example).choices
        item_answers = answers[start:end]
        output = _ranked(names, ranking, item_answers, alone)
        predictions.append(
            Prediction(
                id=example.id,
                output=output,
                truncated=any(answer.truncated for answer in item_answers),
                tied=is_tied(output["scores"]),
                dropped_shots=min(prompter.shots, len(prompter.pool)) - count,
                excluded_shots=prompter.excluded_shots(example),
                prompt_tokens=length,
            )
        )
        start = end
    return predictions


def _ranked(
    names: Sequence[str],
    item: ChoicePrompt,
    answers: Sequence[LikelihoodAnswer],
    alone: dict[tuple[str, str], float],
) -> dict[str, Any]:
    sums = [answer.total for answer in answers]
    output: dict[str, Any] = {
        "label": names[int(np.argmax(sums))],
        "scores": [round(value, 6) for value in sums],
        "tokens": [len(answer.token_logprobs) for answer in answers],
        "characters": [len(text) for text in item.continuations],
        "bytes": [answer.byte_length for answer in answers],
        "greedy": [answer.is_greedy for answer in answers],
    }
    if item.unconditional is not None:
        output["unconditional"] = [round(alone[item.unconditional, text], 6) for text in item.continuations]
    return output


def _unconditional(
    adapter: ScoresContinuations, asked: Sequence[ChoicePrompt]
) -> dict[tuple[str, str], float]:
    """Return the sums of all choices without their items, each asked once."""
    pairs = dict.fromkeys(
        (item.unconditional, text)
        for item in asked
        if item.unconditional is not None
        for text in item.continuations
    )
    requests = [LikelihoodRequest(context=context, continuation=text) for context, text in pairs]
    return {pair: answer.total for pair, answer in zip(pairs, _likelihoods(adapter, requests), strict=True)}


def _likelihoods(
    adapter: ScoresContinuations, requests: Sequence[LikelihoodRequest]
) -> list[LikelihoodAnswer]:
    answers = adapter.loglikelihood(requests)
    if len(answers) != len(requests):
        raise ContractError(f"loglikelihood() returned {len(answers)} answers to {len(requests)} requests.")
    if not all(np.isfinite(answer.total) for answer in answers):
        raise ContractError("loglikelihood() returned a log-probability that is not finite.")
    return answers


def generate_answers(
    adapter: Generates,
    examples: Sequence[Any],
    prompter: Prompter,
    options: Callable[[Any], GenerateOptions],
    read: Callable[[Any, str], tuple[Any, bool]],
    *,
    whole: bool = True,
) -> list[Prediction]:
    """Return the answer of a model to each item, as `read` understands it; the reasoning before it is kept apart.

    Args:
        adapter: The model.
        examples: The items.
        prompter: Builds their prompts.
        options: Example -> how its answer is generated.
        read: Example and text -> the output, and whether the text could be read.
        whole: Whether an answer is read to its end, so that one that was cut at the token limit is unfinished even
            where something could be read; otherwise it is where nothing could.
    """
    shots = _fitting_shots(
        adapter,
        examples,
        prompter,
        lambda example, count: [prompter.generation(example, count)],
        reserve=prompter.prompt.spec.max_tokens,
    )
    prompts = [prompter.generation(example, count) for example, count in zip(examples, shots, strict=True)]
    answers = _written(adapter, examples, prompts, prompter, options)
    lengths = _prompt_lengths(adapter, prompts)
    pattern = prompter.prompt.spec.answer_regex
    find = (lambda text: text) if pattern is None else answer_regex(pattern).find

    def reading(example: Any, answer: Generated) -> Prediction:
        # Adapters and servers may ignore stop strings: what follows one is no part of the answer.
        text, is_stopped = within_stops(answer.text, prompter.stop)
        finished = replace(answer, finished=answer.finished or is_stopped)
        return _reading(finished, *read(example, find(text) or ""), whole=whole)

    predictions = []
    for example, item_answers, count, length in zip(examples, answers, shots, lengths, strict=True):
        prediction = _joined(example.id, [reading(example, answer) for answer in item_answers])
        dropped = min(prompter.shots, len(prompter.pool)) - count
        excluded = prompter.excluded_shots(example)
        predictions.append(
            replace(prediction, dropped_shots=dropped, excluded_shots=excluded, prompt_tokens=length)
        )
    return predictions


def _written(
    adapter: Generates,
    examples: Sequence[Any],
    prompts: Sequence[Prompt],
    prompter: Prompter,
    options: Callable[[Any], GenerateOptions],
) -> list[list[Generated]]:
    """Return the answers to every item, as many as the run asks for."""
    repeats = range(prompter.repeats)
    seeded_options = [
        replace(item_options, seed=prompter.seed_of(example, number)) if number else item_options
        for example in examples
        for item_options in [options(example)]
        for number in repeats
    ]
    answers = adapter.generate([prompt for prompt in prompts for _ in repeats], seeded_options)
    if len(answers) != len(seeded_options) or not all(isinstance(answer, Generated) for answer in answers):
        raise ContractError(f"generate() returned {len(answers)} answers to {len(seeded_options)} prompts.")
    markers = prompter.prompt.spec.reasoning_markers
    separated = [separate_reasoning(answer, markers) for answer in answers]
    size = len(repeats)
    return [separated[start : start + size] for start in range(0, len(separated), size)]


def _reading(answer: Generated, output: Any, is_read: bool, *, whole: bool) -> Prediction:
    """Return one answer as it was read; cut, it is unfinished and not unparsed."""
    unfinished = not answer.finished and (whole or not is_read)
    return Prediction(
        id="",
        output={**output, "raw": answer.text} if isinstance(output, dict) else output,
        truncated=answer.truncated,
        unparsed=not is_read and not unfinished,
        unfinished=unfinished,
        unanswered=unfinished and not is_read,
        tokens=answer.tokens,
        reasoning=answer.reasoning,
        reasoning_tokens=answer.reasoning_tokens,
    )


def _joined(identifier: str, readings: Sequence[Prediction]) -> Prediction:
    """Return the prediction of an item: its answer, or its answers with the majority's first.

    Of several answers, one that was cut or unfinished marks the item; unparsed, or unanswered, it is where half of
    them are.
    """
    if len(readings) == 1:
        return replace(readings[0], id=identifier)
    outputs = [
        reading.output if reading.reasoning is None else {**reading.output, "reasoning": reading.reasoning}
        for reading in readings
    ]
    output, chosen = joined_answers(outputs)
    reasoning_tokens = [reading.reasoning_tokens for reading in readings]
    return Prediction(
        id=identifier,
        output=output,
        truncated=any(reading.truncated for reading in readings),
        unparsed=2 * sum(reading.unparsed for reading in readings) >= len(readings),
        unfinished=any(reading.unfinished for reading in readings),
        unanswered=2 * sum(reading.unanswered for reading in readings) >= len(readings),
        tokens=sum(reading.tokens for reading in readings),
        reasoning=readings[chosen].reasoning,
        reasoning_tokens=None if None in reasoning_tokens else sum(count or 0 for count in reasoning_tokens),
    )


def _prompt_lengths(adapter: Any, prompts: Sequence[Prompt]) -> Sequence[int | None]:
    """Return the tokens of every prompt; None for all where the adapter or its server does not count them."""
    if not isinstance(adapter, CountsTokens):
        return [None] * len(prompts)
    try:
        return adapter.token_counts(prompts)
    except AdapterError:
        return [None] * len(prompts)


def _fitting_shots(
    adapter: Any,
    examples: Sequence[Any],
    prompter: Prompter,
    build: Callable[[Any, int], list[Any]],
    *,
    reserve: int,
) -> list[int]:
    """Return how many shots every item keeps: they are dropped one by one until its prompt fits."""
    counts = [min(prompter.shots, len(prompter.pool))] * len(examples)
    limit = adapter.context_length() if isinstance(adapter, CountsTokens) else None
    if limit is None or not prompter.shots:
        return counts
    checked = list(range(len(examples)))
    while checked:
        lengths = adapter.token_counts([build(examples[index], counts[index])[0] for index in checked])
        checked = [
            index
            for index, length in zip(checked, lengths, strict=True)
            if length + reserve > limit and counts[index] > 0
        ]
        for index in checked:
            counts[index] -= 1
    return counts
