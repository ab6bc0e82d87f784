"""GO, NO-GO or INCONCLUSIVE: tests of a drop against a margin on cells that answer the same question.

NO-GO: a drop of more than the margin is established by the paired t test against the margin, adjusted for all tests of
the gate, and the permutation test finds the systems different. GO: such a drop is excluded, since the largest drop that
the data allow is within the margin. The whole is GO only if all decisive tests are, which
needs no correction (an intersection-union test; Berger 1982).

A policy (``--policy FILE``, or the defaults) says what a gate accepts.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field

from harness import NamedTable, Run, distinguishing
from harness.analysis import (
    Difference,
    LanguageComparison,
    Scores,
    System,
    SystemGroup,
    TaskComparison,
    compare_group,
    group_systems,
    run_difference_notes,
)
from harness.metrics import Metric
from harness.specs import Code, SpecModel, read_model
from harness.statistics import adjusted, benjamini_hochberg, beyond_margin_p, holm, largest_drop, t_interval
from harness.storage import CellResult

Points = Annotated[float, Field(gt=0, le=100)]
Key = tuple[str, str | None, int | None, str]
"""Task, protocol, seed, and the whole view as JSON: the same in both runs where cells are compared."""
Verdict = Literal["GO", "NO-GO", "INCONCLUSIVE"]
UNSHARED = "no item is common to the runs"
EXIT: Mapping[Verdict, int] = {"GO": 0, "NO-GO": 1, "INCONCLUSIVE": 3}
UNREADABLE = 4
"""The exit status where a damaged run leaves nothing to decide on: a pipeline must not take it for NO-GO."""


class TaskPolicy(SpecModel):
    """What differs for one task."""

    margin: Points | None = None
    metric: str | None = None
    """The metric that decides; by default the headline metrics of the task, each by itself."""
    languages: dict[Code, Points] = Field(default={})
    """Margins of its languages."""


class Required(SpecModel):
    """What both runs must have finished, and what must be GO by itself for the whole to be GO."""

    tasks: tuple[str, ...] = ()
    languages: tuple[Code, ...] = ()
    """In every task that the base run has in this language."""


class Policy(SpecModel):
    """A policy; every key is optional."""

    margin: Points = 2.0
    """The drop that is accepted, in points of a score from 0 to 100."""
    alpha: Annotated[float, Field(gt=0, lt=0.5)] = 0.05
    """Two-sided, as for all intervals and tests of the project."""
    correction: Literal["holm", "bh", "none"] = "holm"
    """For the number of tests: Holm (1979), Benjamini and Hochberg (1995), or none."""
    decide_by: Literal["task", "language"] = "task"
    """Whether GO needs the mean over languages of every task to be GO, or every single language."""
    inconclusive: Literal["inconclusive", "go", "no-go"] = "inconclusive"
    """What an inconclusive whole counts as."""
    languages: dict[Code, Points] = Field(default={})
    """Margins by language, in all tasks that say nothing else."""
    tasks: dict[str, TaskPolicy] = Field(default={})
    required: Required = Required()

    def margin_of(self, task: str, language: str | None) -> float:
        """Return the accepted drop as a fraction; the language is None for the mean of a task."""
        own, code = self.tasks.get(task, TaskPolicy()), language or ""
        margins = (own.languages.get(code), own.margin, self.languages.get(code), self.margin)
        return next(margin for margin in margins if margin is not None) / 100


def read_policy(path: Path | None) -> Policy:
    """Return the policy of a file, or the default one; raises `UsageError`, and `SpecError` with all its faults."""
    return Policy() if path is None else read_model(Policy, path, "policy")


@dataclass(frozen=True, slots=True, kw_only=True)
class Pair:
    """One task under one protocol, seed and view, in two runs."""

    task: str
    title: str
    """The task with what distinguishes it from the other pairs of the gate."""
    group: SystemGroup | None
    """The systems of the base run and of the new one; None where one of them finished nothing of it."""
    languages: tuple[str, ...]
    """All that one of the runs finished or the base run planned, as far as its data are there."""
    reasons: Mapping[str, str]
    """By language: why it cannot be compared."""


@dataclass(frozen=True, slots=True)
class _Side:
    cells: Mapping[Key, Mapping[str, CellResult]]
    systems: Mapping[Key, tuple[SystemGroup, System]]


def find_pairs(base: Run, new: Run) -> tuple[list[Pair], list[str]]:
    """Return every task of the base run with its counterpart, and notes on what only the new run has.

    Raises:
        DataError: Where nothing distinguishes two cells of a run.
    """
    old, other = _read(base), _read(new)
    keys = [
        key for key, cells in old.cells.items() if any(cell.status != "skipped" for cell in cells.values())
    ]
    extra = sorted({key[0] for key in other.systems} - {key[0] for key in keys})
    notes = [f"Not compared, as the base run does not have them: {', '.join(extra)}."] if extra else []
    return [_pair(key, keys, old, other) for key in keys], notes


def _read(run: Run) -> _Side:
    cells: dict[Key, dict[str, CellResult]] = {}
    for cell in run.cells:
        cells.setdefault(_key(cell), {})[cell.language] = cell
    has_any = any(cell.status == "ok" for cell in run.cells)
    systems = {
        _key(next(iter(system.cells.values()))): (group, system)
        for group in (group_systems([run], least=1) if has_any else [])
        for system in group.systems
    }
    return _Side(cells, systems)


def _key(cell: CellResult) -> Key:
    return cell.task, cell.protocol, cell.seed, json.dumps(cell.view, sort_keys=True)


def _pair(key: Key, keys: list[Key], old: _Side, other: _Side) -> Pair:
    ours, theirs = old.cells[key], other.cells.get(key, {})
    languages = [
        code
        for code in dict.fromkeys([*ours, *theirs])
        if any(code in side and side[code].status != "skipped" for side in (ours, theirs))
    ]
    reasons = {code: reason for code in languages if (reason := _reason(ours.get(code), theirs.get(code)))}
    others = [", ".join(_conditions(own)) for own in other.cells if own[0] == key[0]]
    if not theirs and others:
        reasons = dict.fromkeys(languages, f"the new run has it only with {' and with '.join(others)}")
    group = None
    if key in old.systems and key in other.systems:
        declared, first = old.systems[key]
        systems = (first, other.systems[key][1])
        group = SystemGroup(task=declared.task, view=declared.view, systems=systems)
    title = _title(key, keys)
    return Pair(task=key[0], title=title, group=group, languages=tuple(languages), reasons=reasons)


def _title(key: Key, keys: list[Key]) -> str:
    """Return ``xnli (seed=2)``: the task with the conditions that differ among the pairs of this task."""
    parts = distinguishing(_conditions(key), [_conditions(other) for other in keys if other[0] == key[0]])
    return f"{key[0]} ({', '.join(parts)})" if parts else key[0]


def _conditions(key: Key) -> list[str]:
    view = [f"{name}={value}" for name, value in json.loads(key[3]).items()]
    return [str(key[1]), f"seed={key[2]}", *view]


def _reason(old: CellResult | None, new: CellResult | None) -> str:
    """Return why two cells cannot be compared; empty where they can."""
    for cell, where in ((old, "base run"), (new, "new run")):
        if cell is None:
            return f"the {where} does not have it"
        if cell.status != "ok":
            return f"{cell.status} in the {where}: {cell.reason or 'no reason was recorded'}"
    assert old is not None
    assert new is not None
    if old.version != new.version:
        return f"the task has version {old.version} in the base run and {new.version} in the new one"
    if (old.split, old.stands_in) != (new.split, new.stands_in):
        return f"the base run has the split {old.split!r}, the new one {new.split!r}"
    if old.pool and new.pool and old.pool.get("digest") != new.pool.get("digest"):
        return "the candidates that were searched are not the same"
    return ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """One language of a task, or the mean over its languages; all numbers are fractions."""

    task: str
    title: str
    language: str | None
    """None for the mean over languages."""
    metric: str = ""
    margin: float
    decisive: bool = False
    """Whether it has to be GO for the whole to be GO."""
    n: int = 0
    draws: int | None = None
    base: float | None = None
    new: float | None = None
    change: float | None = None
    """Better is positive, for error rates too."""
    low: float | None = None
    high: float | None = None
    drop: float | None = None
    """The largest drop that is not excluded."""
    p: float | None = None
    """Of a drop of more than the margin."""
    p_permutation: float | None = None
    """Of any difference."""
    p_adjusted: float | None = None
    verdict: Verdict = "INCONCLUSIVE"
    reason: str = ""
    """Why it is inconclusive."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """The whole gate."""

    base: str
    new: str
    checks: tuple[Check, ...]
    verdict: Verdict
    outcome: Verdict
    """The verdict, with what the policy says of an inconclusive one."""
    reasons: tuple[str, ...]
    notes: tuple[str, ...]
    policy: Policy
    sample: bool

    @property
    def exit_code(self) -> int:
        """The status of the command."""
        return EXIT[self.outcome]


def decide(new: Run, base: Run, metrics: NamedTable[Metric], policy: Policy) -> Decision:
    """Return the verdicts on a new run against a base run.

    Raises:
        DataError: Where records are broken, or where nothing distinguishes two cells of a run.
        UnknownNameError: For a metric of the policy that is not registered.
    """
    pairs, notes = find_pairs(base, new)
    tests = _corrected([test for pair in pairs for test in _tests(pair, metrics, policy)], policy.correction)
    tests = [_judged(test, policy) for test in tests]
    missing = [*_missing(tests, policy)]
    verdict = _overall(tests, missing)
    outcomes: dict[str, Verdict] = {"go": "GO", "no-go": "NO-GO", "inconclusive": "INCONCLUSIVE"}
    return Decision(
        base=base.manifest.model_name,
        new=new.manifest.model_name,
        checks=tuple(tests),
        verdict=verdict,
        outcome=outcomes[policy.inconclusive] if verdict == "INCONCLUSIVE" else verdict,
        reasons=tuple(missing),
        notes=(*notes, *run_difference_notes([base, new]), *_unknown(tests, policy)),
        policy=policy,
        sample=any(run.results.run.data == "sample" for run in (base, new)),
    )


def _overall(tests: Sequence[Check], missing: Sequence[str]) -> Verdict:
    if any(test.verdict == "NO-GO" for test in tests):
        return "NO-GO"
    decisive = [test.verdict for test in tests if test.decisive]
    return "GO" if set(decisive) == {"GO"} and not missing else "INCONCLUSIVE"


def _missing(tests: Sequence[Check], policy: Policy) -> Iterator[str]:
    """Yield requirements of the policy that the base run does not meet, and a gate without any test."""
    if not tests:
        yield "The runs have nothing to compare."
    for name in _not_tested(tests, policy.required.tasks, policy.required.languages):
        yield f"The policy requires the {name}, which the base run does not have."


def _unknown(tests: Sequence[Check], policy: Policy) -> list[str]:
    """Return a note on every task and language that has a margin of its own and no test."""
    codes = {*policy.languages, *(code for task in policy.tasks.values() for code in task.languages)}
    names = _not_tested(tests, policy.tasks, sorted(codes))
    return [f"The policy names the {name}, which is not compared." for name in names]


def _not_tested(tests: Sequence[Check], tasks: Iterable[str], codes: Iterable[str]) -> list[str]:
    """Return those of the tasks and languages that no test is about."""
    tested, languages = {test.task for test in tests}, {test.language for test in tests}
    names = [f"task {task!r}" for task in tasks if task not in tested]
    return names + [f"language {code!r}" for code in codes if code not in languages]


def _tests(pair: Pair, metrics: NamedTable[Metric], policy: Policy) -> Iterator[Check]:
    """Yield the tests of one task: by metric its languages, and their mean where there are several."""
    metric = policy.tasks[pair.task].metric if pair.task in policy.tasks else None
    compared = None if pair.group is None else compare_group(pair.group, metrics, metric=metric)
    if pair.group is not None and compared is None:
        yield _blank(pair, None, policy, metric or "", f"the metric {metric!r} does not score it")
    elif compared is None or not compared.languages:
        for code in pair.languages:
            yield _blank(pair, code, policy, metric or "", pair.reasons.get(code) or UNSHARED)
    else:
        for place, scores in enumerate(compared.scores):
            yield from _metric_tests(pair, compared, place, metrics.get(scores.metric), policy)


def _metric_tests(
    pair: Pair, compared: TaskComparison, place: int, metric: Metric, policy: Policy
) -> Iterator[Check]:
    by_code = {part.language: part for part in compared.languages}
    faulty = []
    for code in pair.languages:
        part = by_code.get(code)
        reason = pair.reasons.get(code) or (UNSHARED if part is None else _unequal(part))
        test = _blank(pair, code, policy, metric.name, reason)
        if reason:
            faulty.append(code)
        yield test if part is None else _measured(test, part.scores[place], metric, len(part.ids), policy)
    if len(pair.languages) > 1:
        reason = f"not all languages can be compared: {' '.join(faulty)}" if faulty else ""
        mean = _blank(pair, None, policy, metric.name, reason)
        mean = replace(mean, decisive=policy.decide_by == "task" or pair.task in policy.required.tasks)
        yield _measured(mean, compared.scores[place], metric, compared.items, policy)


def _decides(pair: Pair, code: str, policy: Policy) -> bool:
    """Return whether a single language decides: it is asked for, or there is no mean over several."""
    return policy.decide_by == "language" or code in policy.required.languages or len(pair.languages) == 1


def _blank(pair: Pair, code: str | None, policy: Policy, metric: str, reason: str) -> Check:
    return Check(
        task=pair.task,
        title=pair.title,
        language=code,
        metric=metric,
        margin=policy.margin_of(pair.task, code),
        decisive=code is not None and _decides(pair, code, policy),
        reason=reason,
    )


def _unequal(part: LanguageComparison) -> str:
    counts = {
        "base run does not have": part.missing[0],
        "new run does not have": part.missing[1],
        "inputs differ": part.differing,
        "gold answers differ": part.regraded,
    }
    reasons = [f"{name}: {count}" for name, count in counts.items() if count]
    return f"the items are not the same ({', '.join(reasons)})" if reasons else ""


def _measured(test: Check, scores: Scores, metric: Metric, n: int, policy: Policy) -> Check:
    """Return a test with its numbers; what is not known stays None."""
    own = scores.differences[1]
    assert own is not None
    sign = 1.0 if metric.higher_is_better else -1.0
    change = -sign * own.value
    test = replace(test, n=n, base=scores.values[0], new=scores.values[1], change=change, draws=own.groups)
    if own.p is None or own.groups is None or own.groups < 2:
        untested = "all items are one cluster" if own.p is not None else f"{metric.name} has no paired test"
        return replace(test, reason=test.reason or untested)
    level = 1 - policy.alpha
    low, high = t_interval(change, own.se, own.groups, level=level) if own.se else (None, None)
    drop = largest_drop(change, own.se, own.groups, level=level)
    if low is not None and change > 0 and own.p <= policy.alpha:
        drop = -low  # a gain that is established: it needs no draws to show that losses are rare
    return replace(test, p=_p(own, change, test.margin), p_permutation=own.p, low=low, high=high, drop=drop)


def _p(own: Difference, change: float, margin: float) -> float | None:
    """Return p of a drop of more than the margin."""
    if own.se and own.groups is not None:
        return beyond_margin_p(change, own.se, own.groups, margin)
    # All draws differ by the same, mostly by nothing.
    return 1.0 if change >= -margin else own.p


def _corrected(tests: Sequence[Check], correction: str) -> list[Check]:
    """Return the tests with their p adjusted for the number of all of them."""
    family = [None if test.reason else test.p for test in tests]
    correct = {"holm": holm, "bh": benjamini_hochberg}.get(correction)
    levels = adjusted(family, correct) if correct else family
    return [replace(test, p_adjusted=level) for test, level in zip(tests, levels, strict=True)]


def _judged(test: Check, policy: Policy) -> Check:
    if test.reason or test.drop is None or test.p_adjusted is None or test.p_permutation is None:
        return test
    if max(test.p_adjusted, test.p_permutation) <= policy.alpha:
        return replace(test, verdict="NO-GO")
    if test.drop <= test.margin:
        return replace(test, verdict="GO")
    return replace(test, reason=f"a drop of up to {100 * test.drop:.1f} points is not excluded")
