"""Metrics that another program computes: modules of Hugging Face's `evaluate`, and commands (COMET, MetricX).

Modules of evaluate are named ``evaluate:NAME``, ``evaluate:NAME@REVISION`` or ``evaluate:FOLDER``, the folder as seen
from where the command is run. Such a module is a program that runs with the user's rights, so it is loaded only where
the command was given ``--allow-code``. What it gets, by kind:

- sequence_classification, multiple_choice: the positions of labels in the task's list; -1 for no answer;
- span_extraction: texts (empty for no answer); as reference the list of gold texts, or where the module takes one
  text the first of them;
- token_tagging: lists of tags.

Its first number is the score; it must be a fraction, or the task's ``metric_options`` say ``NAME: percent``. Options
``NAME.KEY`` are passed to the module as ``KEY``; a module that takes ``lang`` gets the language without script and
country, unless an option names it.

Metrics of commands are named ``command:NAME``. `harness.analysis.metric_process` asks the program, once per answer; the
scores are kept with the answers, so nothing is run here.
"""

from __future__ import annotations

import hashlib
import importlib.util
import inspect
import math
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from importlib.metadata import version
from inspect import signature
from numbers import Real
from pathlib import Path
from typing import Any

from harness.errors import HarnessError, MissingExtraError, UsageError
from harness.languages.table import known_languages, library_code
from harness.metrics.metric import (
    Metric,
    MetricContext,
    MetricResult,
    answer_texts,
    check_pairs,
    field_of,
    item_metric,
)

FAMILY = "evaluate"
KINDS = frozenset({"sequence_classification", "multiple_choice", "span_extraction", "token_tagging"})
NO_ANSWER = -1
COMMAND = "command"
COMMAND_KINDS = frozenset({"translation", "summary"})
COMMAND_SCORES = "command_scores"
"""The key of an answer with its scores, by the name of the metric."""


def evaluate_family(*, allow_code: bool) -> Callable[[str], Metric]:
    """Return the factory of metrics named ``evaluate:...``; a module is loaded only where code is allowed."""
    modules: dict[str, Any] = {}

    def module_of(name: str) -> Any:
        if not allow_code:
            raise UsageError(
                f"The metric {name!r} is a program, which runs only with --allow-code.",
                hint="Read it first, or take the metric out of the spec.",
            )
        if name not in modules:
            modules[name] = _load(name)
        return modules[name]

    def metric(name: str) -> Metric:
        load = partial(module_of, name)

        def signature(_: MetricContext) -> str:
            source = Path(inspect.getfile(type(load()))).read_bytes()
            return f"evaluate {version('evaluate')}, module {hashlib.sha256(source).hexdigest()[:12]}"

        return Metric(
            name=name,
            compute=partial(_compute, name, load),
            kinds=KINDS,
            description=f"The first number of the module {name.partition(':')[2]!r} of Hugging Face's evaluate.",
            source="https://huggingface.co/docs/evaluate",
            ready=load,
            signature=signature,
        )

    return metric


def _load(name: str) -> Any:
    """Return the module of a metric; raises `HarnessError` where it cannot be found or its program fails."""
    if importlib.util.find_spec("evaluate") is None:
        raise MissingExtraError(f"The metric {name!r}", "evaluate", "evaluate")
    import evaluate

    location = name.partition(":")[2]
    path, at, revision = location.rpartition("@")
    if Path(location).exists() or not at:
        path, revision = location, ""
    try:
        return evaluate.load(path, revision=revision or None, keep_in_memory=True)
    except Exception as error:
        reason = " ".join(str(error).split()).rstrip(".")
        raise HarnessError(
            f"The module of the metric {name!r} cannot be loaded: {type(error).__name__}: {reason}.",
            hint="Give a folder with a program of the same name, or a name that the Hub knows.",
        ) from error


def _compute(
    name: str,
    load: Callable[[], Any],
    predictions: Sequence[Any],
    references: Sequence[Any],
    context: MetricContext,
) -> MetricResult:
    check_pairs(predictions, references)
    module = load()
    answers, gold = _columns(module, predictions, references, context.labels)
    options = {
        key.removeprefix(f"{name}."): value
        for key, value in context.options.items()
        if key.startswith(f"{name}.")
    }
    if "lang" in signature(getattr(module, "_compute", module.compute)).parameters:
        plain = {language.code for language in known_languages() if "-" not in language.code}
        code = library_code(context.language, plain)
        options = options if code is None else {"lang": code, **options}
    try:
        result = module.compute(predictions=answers, references=gold, **options)
    except Exception as error:
        reason = " ".join(str(error).split())
        raise ValueError(f"the module raised {type(error).__name__}: {reason}") from error
    return MetricResult(value=_first_number(result, percent=context.options.get(name) == "percent"))


def _first_number(result: Any, *, percent: bool) -> float:
    values = list(result.values()) if isinstance(result, Mapping) else []
    numbers = [float(value) for value in values if type(value) is not bool and isinstance(value, Real)]
    if not numbers:
        raise ValueError(f"expected a mapping with a number from the module, found {result!r}")
    value = numbers[0] / 100 if percent else numbers[0]
    if not math.isfinite(value) or not 0 <= value <= 1:
        raise ValueError(
            f"expected a {'percentage' if percent else 'fraction'} from the module, found {numbers[0]:g}; "
            "a module that gives percentages needs 'NAME: percent' under 'metric_options'"
        )
    return value


def _columns(
    module: Any, predictions: Sequence[Any], references: Sequence[Any], labels: Sequence[str]
) -> tuple[list[Any], list[Any]]:
    """Return predictions and references as the module gets them; raises `ValueError` for unknown labels."""
    if isinstance(references[0], str):
        answers = [field_of(prediction, "label", index) for index, prediction in enumerate(predictions)]
        positions = [NO_ANSWER if answer is None else _position(answer, labels) for answer in answers]
        return positions, [_position(reference, labels) for reference in references]
    if isinstance(predictions[0], list):
        return [list(tags) for tags in predictions], [list(tags) for tags in references]
    takes_lists = _takes_lists(module)
    return answer_texts(predictions), [list(gold) if takes_lists else gold[0] for gold in references]


def _position(label: Any, labels: Sequence[str]) -> int:
    if label not in labels:
        raise ValueError(f"unknown label {label!r}; expected one of {', '.join(labels)}")
    return list(labels).index(label)


def _takes_lists(module: Any) -> bool:
    """Return whether one reading of the module's references is more than a single value."""
    features = module.features if isinstance(module.features, list) else [module.features]
    return any(not hasattr(feature["references"], "dtype") for feature in features)


def command_metric(name: str) -> Metric:
    """Return the metric of a name ``command:NAME``; its signature is the option of a task with its whole name."""
    command = name.partition(":")[2]

    def score(prediction: Any, reference: Any, index: int, context: MetricContext) -> float:
        scores = prediction.get(COMMAND_SCORES, {}) if isinstance(prediction, Mapping) else {}
        if command not in scores:
            raise ValueError(
                f"some have no score yet; run 'harness score RUN --metric {command}=COMMAND' again"
            )
        return float(scores[command])

    def require_command() -> None:
        raise UsageError(
            f"The metric {name!r} is computed by a program of yours, after the run.",
            hint=f"Give its command: harness score RUN --metric {command}='python comet_driver.py'",
        )

    return Metric(
        name=name,
        compute=item_metric(score),
        kinds=COMMAND_KINDS,
        description=f"Mean of the scores of a program that a user named {command!r}.",
        source="the program's own; its signature is in the results",
        by_item=True,
        ready=require_command,
        signature=lambda context: str(context.options.get(name, "")),
    )
