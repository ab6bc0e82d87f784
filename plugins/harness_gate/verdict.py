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
from typing import Annotated, Any, Literal

from pydantic import Field

from harness import NamedTable, Run, distinguishing
from harness.analysis import (
    LanguageComparison,
    Scores,
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
    pairs, notes = _pairs(base, new, policy)
    tests = _judged([test for pair in pairs for test in _tests(pair, metrics)], policy)
    required = _not_tested(tests, policy.required.tasks, policy.required.languages)
    missing = [] if tests else ["The runs have nothing to compare."]
    missing += [f"The policy requires the {name}, which the base run does not have." for name in required]
    codes = {*policy.languages, *(code for task in policy.tasks.values() for code in task.languages)}
    unknown = _not_tested(tests, policy.tasks, sorted(codes))
    verdict: Verdict = "INCONCLUSIVE"
    if any(test.verdict == "NO-GO" for test in tests):
        verdict = "NO-GO"
    elif {test.verdict for test in tests if test.decisive} == {"GO"} and not missing:
        verdict = "GO"
    outcomes: dict[str, Verdict] = {"go": "GO", "no-go": "NO-GO", "inconclusive": "INCONCLUSIVE"}
    return Decision(
        base=base.manifest.model_name,
        new=new.manifest.model_name,
        checks=tuple(tests),
        verdict=verdict,
        outcome=outcomes[policy.inconclusive] if verdict == "INCONCLUSIVE" else verdict,
        reasons=tuple(missing),
        notes=(
            *notes,
            *run_difference_notes([base, new]),
            *(f"The policy names the {name}, which is not compared." for name in unknown),
        ),
        policy=policy,
        sample=any(run.results.run.data == "sample" for run in (base, new)),
    )


def _not_tested(tests: Sequence[Check], tasks: Iterable[str], codes: Iterable[str]) -> list[str]:
    """Return those of the tasks and languages that no test is about."""
    tested, languages = {test.task for test in tests}, {test.language for test in tests}
    names = [f"task {task!r}" for task in tasks if task not in tested]
    return names + [f"language {code!r}" for code in codes if code not in languages]


# Pairs --------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class _Pair:
    """One task under one protocol, seed and view, in two runs."""

    task: str
    title: str
    """The task with what distinguishes it from the other pairs of the gate."""
    group: SystemGroup | None
    """The systems of the base run and of the new one; None where one of them finished nothing of it."""
    reasons: Mapping[str, str]
    """By language that one of the runs finished, or that the base run planned and has data of: why it cannot be
    compared; empty where it can."""
    policy: Policy

    def check(self, code: str | None, metric: str, reason: str) -> Check:
        """Return the test of a language, or of the mean, without its numbers."""
        policy, required = self.policy, self.policy.required
        if code is None:
            decisive = policy.decide_by == "task" or self.task in required.tasks
        else:
            # There may be no mean over several languages.
            decisive = policy.decide_by == "language" or code in required.languages or len(self.reasons) == 1
        return Check(
            task=self.task,
            title=self.title,
            language=code,
            metric=metric,
            margin=policy.margin_of(self.task, code),
            decisive=decisive,
            reason=reason,
        )


def _pairs(base: Run, new: Run, policy: Policy) -> tuple[list[_Pair], list[str]]:
    """Return every task of the base run with its counterpart, and notes on what only the new run has."""
    (old, old_groups), (other, new_groups) = _read(base), _read(new)
    keys = [key for key, cells in old.items() if any(cell.status != "skipped" for cell in cells.values())]
    extra = sorted({key[0] for key in new_groups} - {key[0] for key in keys})
    notes = [f"Not compared, as the base run does not have them: {', '.join(extra)}."] if extra else []
    pairs = []
    for key in keys:
        peers = [_conditions(peer) for peer in keys if peer[0] == key[0]]
        marks = ", ".join(distinguishing(_conditions(key), peers))
        group, counterpart = old_groups.get(key), new_groups.get(key)
        if group is not None:
            systems = None if counterpart is None else (*group.systems, *counterpart.systems)
            group = None if systems is None else replace(group, systems=systems)
        reasons = _reasons(old[key], other.get(key, {}))
        others = [", ".join(_conditions(peer)) for peer in other if peer[0] == key[0]]
        if key not in other and others:
            reasons = dict.fromkeys(reasons, f"the new run has it only with {' and with '.join(others)}")
        title = f"{key[0]} ({marks})" if marks else key[0]
        pairs.append(_Pair(task=key[0], title=title, group=group, reasons=reasons, policy=policy))
    return pairs, notes


def _read(run: Run) -> tuple[dict[Key, dict[str, CellResult]], dict[Key, SystemGroup]]:
    """Return the cells of a run by their conditions and language, and every system of what it finished by itself."""
    cells: dict[Key, dict[str, CellResult]] = {}
    for cell in run.cells:
        cells.setdefault(_key(cell), {})[cell.language] = cell
    has_any = any(cell.status == "ok" for cell in run.cells)
    return cells, {
        _key(system.cell): replace(group, systems=(system,), protocols=())
        for group in (group_systems([run], least=1) if has_any else [])
        for system in group.systems
    }


def _key(cell: CellResult) -> Key:
    return cell.task, cell.protocol, cell.seed, json.dumps(cell.view, sort_keys=True)


def _conditions(key: Key) -> list[str]:
    view = [f"{name}={value}" for name, value in json.loads(key[3]).items()]
    return [str(key[1]), f"seed={key[2]}", *view]


def _reasons(old: Mapping[str, CellResult], new: Mapping[str, CellResult]) -> dict[str, str]:
    """Return by language why its two cells cannot be compared, without those that both runs skipped."""
    pairs = {code: (old.get(code), new.get(code)) for code in dict.fromkeys([*old, *new])}
    return {
        code: _reason(*cells)
        for code, cells in pairs.items()
        if any(cell is not None and cell.status != "skipped" for cell in cells)
    }


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


# Tests --------------------------------------------------------------------------------------------------


def _tests(pair: _Pair, metrics: NamedTable[Metric]) -> Iterator[Check]:
    """Yield the tests of one task: by metric its languages, and their mean where there are several."""
    task_policy = pair.policy.tasks.get(pair.task, TaskPolicy())
    compared = None if pair.group is None else compare_group(pair.group, metrics, metric=task_policy.metric)
    name = task_policy.metric or ""
    if pair.group is not None and compared is None:
        yield replace(pair.check(None, name, f"the metric {name!r} does not score it"), decisive=False)
    elif compared is None or not compared.languages:
        for code, reason in pair.reasons.items():
            yield pair.check(code, name, reason or UNSHARED)
    else:
        for place, scores in enumerate(compared.scores):
            yield from _metric_tests(pair, compared, place, metrics.get(scores.metric))


def _metric_tests(pair: _Pair, compared: TaskComparison, place: int, metric: Metric) -> Iterator[Check]:
    by_language = {language.language: language for language in compared.languages}
    faulty = []
    for code, cell_reason in pair.reasons.items():
        language = by_language.get(code)
        reason = cell_reason or (UNSHARED if language is None else _unequal(language))
        faulty += [code] if reason else []
        test = pair.check(code, metric.name, reason)
        if language is not None:
            test = _measured(test, language.scores[place], metric, len(language.ids), pair.policy)
        yield test
    if len(pair.reasons) > 1:
        reason = f"not all languages can be compared: {' '.join(faulty)}" if faulty else ""
        mean = pair.check(None, metric.name, reason)
        yield _measured(mean, compared.scores[place], metric, compared.items, pair.policy)


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
    difference = scores.differences[1]
    assert difference is not None
    se, groups = difference.se, difference.groups
    change = difference.value if not metric.higher_is_better else -difference.value
    test = replace(test, n=n, base=scores.values[0], new=scores.values[1], change=change, draws=groups)
    if difference.p is None or groups is None or groups < 2:
        untested = (
            f"{metric.name} has no paired test" if difference.p is None else "all items are one cluster"
        )
        return replace(test, reason=test.reason or untested)
    level = 1 - policy.alpha
    # Without an error, all draws differ by the same, mostly by nothing.
    p, low, high = 1.0 if change >= -test.margin else difference.p, None, None
    if se:
        p = beyond_margin_p(change, se, groups, test.margin)
        low, high = t_interval(change, se, groups, level=level)
    drop = largest_drop(change, se, groups, level=level)
    if low is not None and change > 0 and difference.p <= policy.alpha:
        drop = -low  # a gain that is established: it needs no draws to show that losses are rare
    return replace(test, p=p, p_permutation=difference.p, low=low, high=high, drop=drop)


def _judged(tests: Sequence[Check], policy: Policy) -> list[Check]:
    """Return the tests with their verdicts, their p adjusted for the number of all of them."""
    levels = [None if test.reason else test.p for test in tests]
    if policy.correction != "none":
        levels = adjusted(levels, holm if policy.correction == "holm" else benjamini_hochberg)
    judged = []
    for test, level in zip(tests, levels, strict=True):
        fields: dict[str, Any] = {"p_adjusted": level}
        if not test.reason and test.drop is not None and level is not None and test.p_permutation is not None:
            if max(level, test.p_permutation) <= policy.alpha:
                fields["verdict"] = "NO-GO"
            elif test.drop <= test.margin:
                fields["verdict"] = "GO"
            else:
                fields["reason"] = f"a drop of up to {100 * test.drop:.1f} points is not excluded"
        judged.append(replace(test, **fields))
    return judged
