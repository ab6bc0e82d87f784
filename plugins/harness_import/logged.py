"""The content of a log, whatever harness wrote it: answers and scores by model, task and language.

The scores are metrics ``logged:NAME``: read from the records, never computed.
"""

from __future__ import annotations

import hashlib
import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache, partial
from pathlib import Path
from typing import Any, Final

import numpy as np

from harness import DataError, UsageError
from harness.languages import known_languages
from harness.metrics import METRICS, Metric, MetricContext, MetricResult, check_pairs
from harness.specs import MadeTask

UNDETERMINED: Final = "und"
"""The language of a task whose name and settings give none: BCP 47's code for an undetermined one."""
_UNSAFE: Final = re.compile(r"[^A-Za-z0-9_.\-]+")
_LONGEST_NAME: Final = 100
_PAIR: Final = re.compile(r"[a-z]{2,3}[_-][a-z]{2,3}")
"""Two languages, as of translation: such a task is in neither alone."""
_LONGEST_CODE: Final = 3
_LEAST_WORD: Final = 4
"""Letters of a language's name in a task's name; shorter ones are words: ``ga``, ``ewe``."""
GOLD_FIELDS: Final = frozenset(
    "label labels label_name answer answers answer_key answerkey target targets gold reference solution correct "
    "correct_answer correct_answer_num".split()
)
"""Fields of a document, in lower case, that say the right answer: they are no part of what was asked."""
PREFIX: Final = "logged:"
KIND: Final = "logged_answers"
"""The kind of tasks that no spec describes."""
KINDS: Final = frozenset({KIND}).union(*(metric.kinds for metric in METRICS))


@dataclass(frozen=True, slots=True, kw_only=True)
class LoggedItem:
    """One item with its answer."""

    id: str
    answer: str | None
    """A text, or with `choices` the 0-based position of one of them; None where none could be read."""
    gold: str | None
    """In the form of `answer`."""
    scores: Mapping[str, float]
    """By metric, as logged, the main one first."""
    fields: Mapping[str, Any] = field(default_factory=dict)
    """What was asked, without the right answer."""
    choices: tuple[str, ...] = ()
    cluster: str | None = None
    unparsed: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class LoggedCell:
    """The items of one task in one language, answered by one model."""

    harness: str
    """What wrote the log: ``lm_eval``."""
    version: str
    model: str
    task: str
    """The log's name without the language."""
    logged_name: str = ""
    """The log's name, where it has the language in it."""
    language: str
    items: Sequence[LoggedItem] = ()
    files: tuple[Path, ...]
    view: Mapping[str, str] = field(default_factory=dict)
    """What else makes the scores what they are: shots, filter."""
    protocol: str = "prompted"
    task_version: int | None = None
    parameters: int | None = None
    seed: int | None = None
    notes: tuple[str, ...] = ()

    @property
    def title(self) -> str:
        """``xnli:sw``, with the conditions of the cell."""
        view = " ".join(f"{name}={value}" for name, value in self.view.items())
        return f"{self.task}:{self.language} {view}".rstrip()


def joined(pairs: Iterable[tuple[LoggedCell, LoggedItem]]) -> list[LoggedCell]:
    """Return the cells of items that each come with their cell, which holds none."""
    cells: dict[tuple[str, ...], tuple[LoggedCell, list[LoggedItem]]] = {}
    for cell, item in pairs:
        key = (cell.model, cell.task, cell.logged_name, cell.language, cell.protocol, cell.version)
        cells.setdefault(key, (cell, []))[1].append(item)
    return [replace(cell, items=items) for cell, items in cells.values()]


def split_language(name: str, *hints: str) -> tuple[str, str]:
    """Return a task's name without its language, and the language's code by the one table; `UNDETERMINED` without one.

    ``belebele_swh_Latn`` is ``belebele`` in ``sw``. A hint is a setting that may name the language, such as the
    configuration of a data set; the end of the name is looked at after all hints.
    """
    parts = re.split(r"[_.\-/: ]+", name)
    ends = {count: "_".join(parts[-count:]) for count in (3, 2, 1) if len(parts) > count}
    for hint in filter(None, hints):
        pieces = re.split(r"[_.]", hint)
        code = _code(hint) or _code("_".join(pieces[-2:])) or _code(pieces[-1])
        if code is not None:
            count = next((count for count, end in ends.items() if _code(end) == code), 0)
            return _without_end(name, parts, count), code
    is_pair = len(parts) > 1 and all(len(part) <= _LONGEST_CODE and _code(part) for part in parts[-2:])
    for count, end in ends.items():
        code = None if is_pair else _code(end)
        if code is not None:
            return _without_end(name, parts, count), code
    return name, UNDETERMINED


@lru_cache(maxsize=1024)
def language_code(text: str, where: str) -> str:
    """Return the code of a language that a log names; raises `DataError` for what is none."""
    code = text if text == UNDETERMINED else known_languages().code_of(text)
    if code is None:
        raise DataError(
            f"{where}: {text!r} is no language.", hint="Run 'harness languages' to see all codes."
        )
    return code


@lru_cache(maxsize=1024)
def _code(text: str) -> str | None:
    table = known_languages().listed
    code = table.code_of(text)
    is_word = code is not None and len(text) < _LEAST_WORD and table.get(code).name.lower() == text.lower()
    return None if is_word or _PAIR.fullmatch(text) else code


def _without_end(name: str, parts: Sequence[str], count: int) -> str:
    """Return a name without its last parts and what is before them."""
    before = r"[_.\-/: ]+"
    end = "".join(before + re.escape(part) for part in parts[len(parts) - count :])
    return re.sub(f"{end}$", "", name)


def safe_name(name: str) -> str:
    """Return a name that is safe in paths and the same for no other name: a changed one ends in a digest of it."""
    plain = _plain_name(name)
    return plain if plain == name else _with_digest(plain, name)


def folder_names(models: Sequence[str]) -> dict[str, str]:
    """Return the folder of every model; only those that would be equal end in a digest."""
    plain = {model: _plain_name(model) for model in models}
    counts = Counter(name.casefold() for name in plain.values())
    return {
        model: name if counts[name.casefold()] == 1 else _with_digest(name, model)
        for model, name in plain.items()
    }


def _with_digest(plain: str, name: str) -> str:
    return f"{plain}-{hashlib.sha256(name.encode()).hexdigest()[:6]}"


def _plain_name(name: str) -> str:
    return _UNSAFE.sub("-", name).strip(".-_")[:_LONGEST_NAME] or "unnamed"


def plain_scores(scores: Mapping[str, Any]) -> dict[str, float]:
    """Return the scores that are finite numbers; a truth value is 1 or 0."""
    return {
        name: float(value)
        for name, value in scores.items()
        if isinstance(value, bool | int | float) and math.isfinite(value)
    }


def without_gold(document: Mapping[str, Any]) -> dict[str, Any]:
    """Return a document without the fields that say its right answer."""
    return {key: value for key, value in document.items() if key.lower() not in GOLD_FIELDS}


def texts_of(value: Any) -> Iterator[str]:
    """Yield all texts in a value, those inside of lists and objects too."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping | list | tuple):
        for member in value.values() if isinstance(value, Mapping) else value:
            yield from texts_of(member)


def choice_position(text: Any, choices: Sequence[str]) -> str | None:
    """Return the 0-based position of a choice that is named by its text or its letter; another answer as it is."""
    letters = [chr(ord("A") + number) for number in range(len(choices))]
    named = [names.index(text) for names in (list(choices), letters) if text in names]
    return str(named[0]) if named else None if text is None else str(text)


def asked_choices(choices: Sequence[str]) -> dict[str, list[str]]:
    """Return the choices as a field of what was asked; none where there are none."""
    return {"choices": list(choices)} if choices else {}


class LoggedTasks:
    """The source of tasks ``logged:NAME``, which have answers and no prompts: none can be run."""

    def names(self, pattern: str) -> Sequence[str]:
        """Raise `UsageError`: a log holds answers, not what would be asked."""
        raise UsageError(
            f"The task 'logged:{pattern}' cannot be run: tasks of this name exist in imported runs alone.",
            hint="Run the task in the harness that logged it, and read the log with 'harness import'.",
        )

    def document(self, name: str, shots: int) -> MadeTask:
        """Raise `UsageError` as `names` does."""
        raise UsageError(f"The task 'logged:{name}' cannot be run.")


SOURCE: Final = LoggedTasks()


def make_metric(name: str) -> Metric:
    """Return the metric of a name ``logged:METRIC``: the mean over items of what the log says."""
    return Metric(
        name=name,
        compute=partial(_compute, name.removeprefix(PREFIX)),
        kinds=KINDS,
        description=f"{name.removeprefix(PREFIX)} as the log has it.",
        source="the log that was imported",
        by_item=True,
    )


def _compute(
    name: str, predictions: Sequence[Any], references: Sequence[Any], context: MetricContext
) -> MetricResult:
    """Return the mean of what was logged; raises `ValueError` for a prediction without it."""
    check_pairs(predictions, references)
    try:
        items = np.array([prediction["logged"][name] for prediction in predictions], dtype=np.float64)
    except (KeyError, TypeError) as error:
        raise ValueError(
            f"no log gave these answers the score {name!r}; it is of imported answers alone"
        ) from error
    return MetricResult(value=float(items.mean()), items=items)
