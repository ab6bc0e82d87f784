"""The kinds of lm-eval's own tasks, ranked by likelihood or generated: their requests, answers and scores.

Requests are sent to a model; lm-eval scores the answers and aggregates the scores.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Annotated, Any, Literal

import numpy as np
from pydantic import Field

from harness import ContractError, DataError
from harness.data import Example, Prediction, Row
from harness.kinds import Method, MethodContext, ReadContext, TaskKind
from harness.metrics import Metric, MetricContext, MetricResult, check_pairs
from harness.models import (
    Capability,
    GenerateOptions,
    Generates,
    LikelihoodAnswer,
    LikelihoodRequest,
    ScoresContinuations,
)
from harness.specs import TaskSpec
from harness_lm_eval.live_task import LiveTask, aggregated, live_task
from harness_lm_eval.task_document import GENERATION, LIKELIHOOD

MAX_TOKENS = 256
"""``DEFAULT_MAX_GEN_TOKS`` of ``lm_eval/defaults.py``."""
_MAX_TOKENS_KEYS = ("max_gen_toks", "max_new_tokens", "max_tokens", "max_completion_tokens")
"""In the order in which lm-eval takes them, ``lm_eval/models/utils.py``."""
PERCENT = frozenset({"bleu", "chrf", "chrf++"})
"""Aggregations of lm-eval that go up to 100; ours are fractions."""


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
    _check_count("loglikelihood", answers, asked)
    if not all(np.isfinite(answer.total) for answer in answers):
        raise ContractError("loglikelihood() returned a log-probability that is not finite.")
    rest = iter(answers)
    # A repetition would have the same answer.
    own = {example.id: [[next(rest)] * example.repeats for _ in example.requests] for example in examples}
    return _predictions(examples, own, lambda answer: (answer.total, answer.is_greedy), context)


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
    _check_count("generate", answers, asked)
    rest = iter(answers)
    own = {
        example.id: [[next(rest) for _ in range(example.repeats)] for _ in example.requests]
        for example in examples
    }
    return _predictions(examples, own, lambda answer: answer.text, context)


def _check_count(name: str, answers: Sequence[Any], asked: Sequence[Any]) -> None:
    if len(answers) != len(asked):
        raise ContractError(f"{name}() returned {len(answers)} answers to {len(asked)} requests.")


def _predictions(
    examples: Sequence[LmEvalExample],
    answers: Mapping[str, list[list[Any]]],
    plain: Callable[[Any], Any],
    context: MethodContext,
) -> list[Prediction]:
    """Return lm-eval's predictions from the answers: for every item and request, one per repetition."""
    given = {name: [list(map(plain, repeated)) for repeated in own] for name, own in answers.items()}
    scored = _live(examples, context).score(given)
    _keep_further(context, [outcome.metrics for outcome in scored.values()])
    predictions = []
    for example in examples:
        own = [answer for repeated in answers[example.id] for answer in repeated]
        outcome = scored[example.id]
        sums = [answer.total for answer in own if isinstance(answer, LikelihoodAnswer)]
        predictions.append(
            Prediction(
                id=example.id,
                output={
                    "resps": given[example.id],
                    "filtered": outcome.filtered,
                    "metrics": outcome.metrics,
                },
                truncated=any(answer.truncated for answer in own),
                tied=len(sums) > 1 and sums.count(max(sums)) > 1,
                tokens=sum(getattr(answer, "tokens", 0) for answer in own),
            )
        )
    return predictions


def _live(examples: Sequence[LmEvalExample], context: MethodContext) -> LiveTask:
    """Return lm-eval's task; raises `DataError` where its requests changed."""
    spec = context.spec
    assert isinstance(spec, LmEvalSpec)
    live = live_task(spec.lm_eval_name(context.language.code), spec.shots)
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


def make_metric(name: str) -> Metric:
    """Return the metric of a name ``lm_eval:METRIC`` or ``lm_eval:METRIC,FILTER``."""
    return Metric(
        name=name,
        compute=partial(_compute, name),
        kinds=frozenset({LIKELIHOOD, GENERATION}),
        description=f"{result_key(name)} as lm-evaluation-harness computes it.",
        source="https://github.com/EleutherAI/lm-evaluation-harness",
    )


def result_key(name: str) -> str:
    """Return lm-eval's key of a metric: ``acc,none`` for ``lm_eval:acc``."""
    key = name.partition(":")[2]
    return key if "," in key else f"{key},none"


def _compute(
    name: str, predictions: Sequence[Any], references: Sequence[Any], context: MetricContext
) -> MetricResult:
    """Return lm-eval's aggregate; a mean also has its items. Raises `ValueError` for values outside of [-1, 1].

    As in lm-eval, documents without the metric do not count; then there is no interval.
    """
    check_pairs(predictions, references)
    key = result_key(name)
    values = [prediction["metrics"][key] for prediction in predictions if key in prediction["metrics"]]
    aggregation = context.options.get(name, "mean")
    if not values:
        raise ValueError(f"lm-eval gave no item the metric {key!r}")
    if aggregation == "mean":
        items = np.asarray(values, dtype=np.float64)
        value = float(items.mean())
    else:
        items = None
        value = aggregated(aggregation, key, values) / (100 if aggregation in PERCENT else 1)
    if not math.isfinite(value) or not -1 <= value <= 1:
        raise ValueError(f"{key!r} is {value:g}, which is no share of the items; expected at most 1")
    complete = items is not None and len(values) == len(predictions)
    return MetricResult(value=value, items=items if complete else None)


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
