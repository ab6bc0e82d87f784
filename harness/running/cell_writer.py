"""Keeps what a model answered in one cell: scores it and writes its records, chunk by chunk."""

from __future__ import annotations

import hashlib
import itertools
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields, replace
from functools import cache
from operator import attrgetter
from types import TracebackType
from typing import Any, Self

from harness.data.gold import GoldCounts
from harness.data.records import Example, Prediction
from harness.metrics.metric import MetricContext
from harness.metrics.scoring import CellScorer, MetricScore, ScoreInput, answers_of
from harness.planning.plan import Cell
from harness.registry.registry import Registry
from harness.running.cell_counts import AnswerPositions, AnswerSpread, CellLedger
from harness.storage.records import ItemRecord, RecordWriter
from harness.storage.redaction import REPLACED
from harness.storage.run_folder import Run

# json.dumps makes an encoder a call where it gets options.
_ENCODER = json.JSONEncoder(ensure_ascii=False, sort_keys=True)
GOLD_FIELDS = {
    "label",
    "labels",
    "tags",
    "answers",
    "reference",
    "solution",
    "targets",
    "value",
    "languages",
    "spans",
    "cluster",
    "group",
    "meta",
}
COUNTED = ("truncated", "unparsed", "unfinished", "tied", "dropped_shots", "tokens")


class CellWriter:
    """Takes the predictions of a cell as they come; a context manager that keeps nothing of a failed cell.

    Args:
        registry: Has the metrics and kinds.
        run: Where the records go.
        cell: Its corrected labels replace the inherited ones.
        ledger: Counts what the items cost the model.
        metrics: Those that are computed, by default all of the cell's task.
    """

    def __init__(
        self,
        registry: Registry,
        run: Run,
        cell: Cell,
        ledger: CellLedger | None = None,
        metrics: Sequence[str] | None = None,
    ) -> None:
        spec, method = cell.spec, cell.pairing.method.name
        requested = [registry.metrics.get(name) for name in (spec.metrics if metrics is None else metrics)]
        prompt = cell.prompt and cell.prompt.spec
        computed = [
            metric
            for metric in requested
            if metric.scores_method(method)
            and metric.scores_prompt(prompt)
            and (metric.missing is None or metric.missing() is None)
        ]
        self._inherited: Callable[[Any], Any] = registry.kinds.get(spec.kind).reference
        self._gold = cell.gold
        self._ledger = ledger
        self._relabelled = GoldCounts()
        context = MetricContext(
            language=cell.text_language.code, labels=spec.label_names, options=spec.metric_options
        )
        self._scorer = CellScorer(computed, context, task=spec.task)
        code = cell.language.code
        self._writer = RecordWriter(
            run.records_path(spec.task, code, cell.digest),
            model=run.manifest.model_name,
            task=spec.task,
            language=code,
        )
        self._counts = dict.fromkeys(("n", *COUNTED), 0)
        self._positions = AnswerPositions()
        self._spread = AnswerSpread()
        self._replaced = self._unanswered = self._excluded = self._equal = 0
        self._reasoned: int | None = 0

    def __enter__(self) -> Self:
        """Return the writer itself."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Remove records that were not closed."""
        self._writer.discard()

    def add(self, examples: Sequence[Example], predictions: Sequence[Prediction]) -> None:
        """Score and write the next items.

        An item is truncated where the model did not see all of it: the answer says so, or the ledger finds it out.
        """
        tokens = [None] * len(examples) if self._ledger is None else self._ledger.add(examples, predictions)
        cut = [None] * len(examples) if self._ledger is None else self._ledger.cut
        predictions = [
            replace(prediction, truncated=True) if was_cut else prediction
            for prediction, was_cut in zip(predictions, cut, strict=True)
        ]
        inputs = [
            ScoreInput(
                id=example.id,
                prediction=prediction.output,
                reference=self._reference(example),
                cluster=example.cluster,
                group=example.group,
                tags=example.meta,
            )
            for example, prediction in zip(examples, predictions, strict=True)
        ]
        contributions = self._scorer.add(inputs)
        gold = [item.reference for item in inputs]
        self._positions.add(examples, predictions, gold)
        self._spread.add(predictions, gold)
        self._writer.add(_records(examples, predictions, inputs, contributions, tokens))
        self._counts["n"] += len(predictions)
        self._replaced += sum(map(_has_replaced, predictions))
        self._unanswered += sum(prediction.unanswered for prediction in predictions)
        self._equal += sum(map(_has_equal_answers, predictions))
        self._excluded += sum(prediction.excluded_shots for prediction in predictions)
        reasoned = [prediction.reasoning_tokens for prediction in predictions]
        unknown = self._reasoned is None or None in reasoned
        self._reasoned = None if unknown else (self._reasoned or 0) + sum(count or 0 for count in reasoned)
        for name in COUNTED:
            self._counts[name] += sum(map(attrgetter(name), predictions))

    def measure(self) -> Mapping[str, MetricScore]:
        """Return the scores of all items so far, of which no records are kept."""
        return self._scorer.finish().metrics

    def finish(self) -> dict[str, Any]:
        """Return the numbers of the cell for ``results.json``; its records are on disk.

        Raises `AdapterError` where the model could not read the items.
        """
        if self._ledger is not None:
            self._ledger.require_known()
        scores = self._scorer.finish()
        self._writer.close(scores.items)
        metrics = {name: value.to_json() for name, value in scores.metrics.items()}
        numbers = {**self._counts, "metrics": metrics}
        if self._unanswered:
            numbers["unanswered"] = self._unanswered
        if self._equal:
            numbers["equal_repeats"] = self._equal
        if self._excluded:
            numbers["excluded_shots"] = self._excluded
        if self._reasoned != 0:
            numbers["reasoning_tokens"] = self._reasoned
        if self._replaced:
            numbers["replaced"] = self._replaced
        if positions := self._positions.to_json():
            numbers["positions"] = positions
        if collapse := self._spread.to_json():
            numbers["collapse"] = collapse
        if majority := self._spread.majority():
            numbers["majority"] = majority
        if self._gold is not None:
            numbers["gold"] = {"name": self._gold.name, **self._relabelled.to_json()}
        if self._ledger is not None and (sums := self._ledger.to_json()):
            numbers["ledger"] = sums
        return numbers

    def _reference(self, example: Example) -> Any:
        inherited = self._inherited(example)
        if self._gold is None:
            return inherited
        return self._gold.corrected(example.id, inherited, self._relabelled)


def _records(
    examples: Sequence[Any],
    predictions: Sequence[Prediction],
    inputs: Sequence[ScoreInput],
    contributions: Mapping[str, Sequence[Any]],
    tokens: Sequence[int | None],
) -> list[ItemRecord]:
    """Return the records of a chunk; contributions are those of its labelled items only."""
    counter = itertools.count()
    labelled = [None if item.reference is None else next(counter) for item in inputs]
    texts = [inputs_text(example) for example in examples]
    return [
        ItemRecord(
            id=example.id,
            inputs_digest=_digest(text),
            prediction=prediction.output,
            reference=item.reference,
            scores={}
            if position is None
            else {name: values[position] for name, values in contributions.items()},
            cluster=example.cluster,
            group=example.group,
            tags=example.meta,
            flags=_flags(prediction),
            inputs=text,
            tokens=count,
            reasoning=prediction.reasoning,
        )
        for example, prediction, item, position, text, count in zip(
            examples, predictions, inputs, labelled, texts, tokens, strict=True
        )
    ]


def _flags(prediction: Prediction) -> dict[str, bool]:
    flags = {"truncated": prediction.truncated, "unparsed": prediction.unparsed}
    flags |= {name: True for name in ("unfinished", "unanswered") if getattr(prediction, name)}
    return {**flags, "replaced": True} if _has_replaced(prediction) else flags


def _has_equal_answers(prediction: Prediction) -> bool:
    """Return whether a model that was asked several times for an item wrote the same each time."""
    answers = answers_of(prediction.output)
    return len(answers) > 1 and all(answer == answers[0] for answer in answers)


def _has_replaced(prediction: Prediction) -> bool:
    """Return whether the text that a model wrote has U+FFFD in place of what was no character."""
    output = prediction.output
    if type(output) is not dict and not isinstance(output, Mapping):
        return isinstance(output, str) and REPLACED in output
    raw, text = output.get("raw"), output.get("text")
    return (isinstance(raw, str) and REPLACED in raw) or (isinstance(text, str) and REPLACED in text)


def inputs_text(example: Any) -> str:
    """Return an item as JSON, without the fields that would give its gold answer away."""
    content = {name: _plain_field(getattr(example, name)) for name in _input_names(example.__class__)}
    return _ENCODER.encode(content)


@cache
def _input_names(kind: Any) -> tuple[str, ...]:
    return tuple(field.name for field in fields(kind) if field.name not in GOLD_FIELDS)


def inputs_digest(example: Example) -> str:
    """Return the digest by which records name what an item is."""
    return _digest(inputs_text(example))


def _plain_field(value: Any) -> Any:
    """Return a field as JSON takes it; those of examples that stay are texts, and sequences or mappings of texts."""
    return dict(value) if isinstance(value, Mapping) else value


def _digest(text: str) -> str:
    return hashlib.blake2b(text.encode(), digest_size=8).hexdigest()
