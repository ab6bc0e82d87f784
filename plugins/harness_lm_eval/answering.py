"""Sends lm-eval's requests to a model, and lets lm-eval score the answers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from harness import (
    Capability,
    ContractError,
    DataError,
    GenerateOptions,
    Generates,
    LikelihoodRequest,
    Method,
    MethodContext,
    Prediction,
    ScoresContinuations,
)
from harness_lm_eval.live_task import LiveTask, aggregated, live_task
from harness_lm_eval.task_document import GENERATION, LIKELIHOOD
from harness_lm_eval.task_kind import LmEvalExample, LmEvalSpec

__all__ = ["METHODS", "generate_options", "likelihood_request"]

MAX_TOKENS = 256
"""``DEFAULT_MAX_GEN_TOKS`` of ``lm_eval/defaults.py``."""
_MAX_TOKENS_KEYS = ("max_gen_toks", "max_new_tokens", "max_tokens", "max_completion_tokens")
"""In the order in which lm-eval takes them, ``lm_eval/models/utils.py``."""


def generate_options(given: Mapping[str, Any], repetition: int) -> GenerateOptions:
    """Return the options of a request as ``normalize_gen_kwargs`` of lm-eval reads them (``lm_eval/models/utils.py``).

    With ``do_sample: false`` an answer is greedy, whatever the temperature; a repetition has a seed of its own.
    """
    until = given.get("until") or []
    stop = tuple(text for text in ([until] if isinstance(until, str) else until) if text)
    limit = next((given[key] for key in _MAX_TOKENS_KEYS if given.get(key) is not None), MAX_TOKENS)
    return GenerateOptions(
        max_tokens=int(limit),
        stop=stop,
        temperature=0.0 if given.get("do_sample") is False else float(given.get("temperature", 0.0)),
        top_p=float(given.get("top_p", 1.0)),
        seed=repetition,
    )


def likelihood_request(before: str, text: str) -> LikelihoodRequest:
    """Return the request of a context and a continuation as ``TemplateLM._encode_pair`` of lm-eval reads them.

    White space at the end of the context is scored with the continuation (``lm_eval/api/model.py``).
    """
    kept = before.rstrip()
    return LikelihoodRequest(context=kept, continuation=before[len(kept) :] + text)


def _rank(
    adapter: ScoresContinuations, examples: Sequence[LmEvalExample], context: MethodContext
) -> list[Prediction]:
    asked = [likelihood_request(before, text) for example in examples for before, text in example.requests]
    answers = adapter.loglikelihood(asked)
    if len(answers) != len(asked):
        raise ContractError(f"loglikelihood() returned {len(answers)} answers to {len(asked)} requests.")
    if not all(np.isfinite(answer.total) for answer in answers):
        raise ContractError("loglikelihood() returned a log-probability that is not finite.")
    given: dict[str, list[list[Any]]] = {}
    truncated: dict[str, bool] = {}
    rest = iter(answers)
    for example in examples:
        own = [next(rest) for _ in example.requests]
        given[example.id] = [[(answer.total, answer.is_greedy)] * example.repeats for answer in own]
        truncated[example.id] = any(answer.truncated for answer in own)
    return _predictions(examples, given, truncated, dict.fromkeys(given, 0), context)


def _generate(
    adapter: Generates, examples: Sequence[LmEvalExample], context: MethodContext
) -> list[Prediction]:
    asked = [
        (prompt, generate_options(options, repetition))
        for example in examples
        for prompt, options in example.requests
        for repetition in range(example.repeats)
    ]
    answers = adapter.generate([prompt for prompt, _ in asked], [options for _, options in asked])
    if len(answers) != len(asked):
        raise ContractError(f"generate() returned {len(answers)} answers to {len(asked)} prompts.")
    given: dict[str, list[list[Any]]] = {}
    truncated: dict[str, bool] = {}
    tokens: dict[str, int] = {}
    rest = iter(answers)
    for example in examples:
        own = [[next(rest) for _ in range(example.repeats)] for _ in example.requests]
        given[example.id] = [[answer.text for answer in repeated] for repeated in own]
        truncated[example.id] = any(answer.truncated for repeated in own for answer in repeated)
        tokens[example.id] = sum(answer.tokens for repeated in own for answer in repeated)
    return _predictions(examples, given, truncated, tokens, context)


def _predictions(
    examples: Sequence[LmEvalExample],
    given: Mapping[str, list[list[Any]]],
    truncated: Mapping[str, bool],
    tokens: Mapping[str, int],
    context: MethodContext,
) -> list[Prediction]:
    live = _live(examples, context)
    scored = live.score(given)
    _keep_further(context, [outcome.metrics for outcome in scored.values()])
    return [
        Prediction(
            id=example.id,
            output={
                "resps": given[example.id],
                "filtered": scored[example.id].filtered,
                "metrics": scored[example.id].metrics,
            },
            truncated=truncated[example.id],
            tokens=tokens[example.id],
        )
        for example in examples
    ]


def _live(examples: Sequence[LmEvalExample], context: MethodContext) -> LiveTask:
    """Return lm-eval's task; raises `DataError` where its requests changed."""
    spec = context.spec
    assert isinstance(spec, LmEvalSpec)
    live = live_task(spec.lm_eval_name, spec.shots)
    for example in examples:
        asked = [instance.args[0] for instance in live.asked.get(example.id, ())]
        if asked != [request[0] for request in example.requests]:
            raise DataError(f"The data or prompts of {spec.task!r} changed during the run.")
    return live


def _keep_further(context: MethodContext, metrics: Sequence[Mapping[str, Any]]) -> None:
    """Keep lm-eval's aggregates that are no share of the items, over all items so far, in the cell's details."""
    spec = context.spec
    assert isinstance(spec, LmEvalSpec)
    kept: dict[str, list[Any]] = context.cache.setdefault(f"lm_eval {context.digest}", {})
    values_by_key: dict[str, float] = {}
    for key, aggregation in spec.further.items():
        values = kept.setdefault(key, [])
        values += [own[key] for own in metrics if key in own]
        if values and aggregation != "bypass":
            values_by_key[key] = aggregated(aggregation, key, values)
    if values_by_key:
        context.details["lm_eval"] = values_by_key


METHODS = (
    Method(
        name="rank",
        kind=LIKELIHOOD,
        requires=Capability.SCORES_CONTINUATIONS,
        protocols=frozenset({"prompted"}),
        predict=_rank,
    ),
    Method(
        name="generate",
        kind=GENERATION,
        requires=Capability.GENERATES,
        protocols=frozenset({"prompted"}),
        predict=_generate,
    ),
)
