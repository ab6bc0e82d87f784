"""GO, NO-GO or INCONCLUSIVE: tests of a drop against a margin, corrected for their number.

NO-GO: a drop of more than the margin is established by the paired t test against the margin, adjusted for all tests of
the gate, and the permutation test finds the systems different. GO: such a drop is excluded, since the largest drop that
the data allow is within the margin. The whole is GO only if all decisive tests are, which
needs no correction (an intersection-union test; Berger 1982).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from harness import NamedTable, Run
from harness.analysis import (
    Difference,
    LanguageComparison,
    Scores,
    TaskComparison,
    compare_group,
    run_difference_notes,
)
from harness.metrics import Metric
from harness.statistics import benjamini_hochberg, beyond_margin_p, holm, largest_drop, t_interval
from harness_gate.pairing import Pair, find_pairs
from harness_gate.policy import Policy

Verdict = Literal["GO", "NO-GO", "INCONCLUSIVE"]
UNSHARED = "no item is common to the runs"
EXIT: Mapping[Verdict, int] = {"GO": 0, "NO-GO": 1, "INCONCLUSIVE": 3}
UNREADABLE = 4
"""The exit status where a damaged run leaves nothing to decide on: a pipeline must not take it for NO-GO."""


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
    """Yield what the policy requires and the base run does not have, and a gate without any test."""
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
    corrected = list(tests)
    family = {at: test.p for at, test in enumerate(tests) if test.p is not None and not test.reason}
    p = list(family.values())
    adjusted = {"holm": holm, "bh": benjamini_hochberg}[correction](p).tolist() if correction != "none" else p
    for at, value in zip(family, adjusted, strict=True):
        corrected[at] = replace(tests[at], p_adjusted=value)
    return corrected


def _judged(test: Check, policy: Policy) -> Check:
    if test.reason or test.drop is None or test.p_adjusted is None or test.p_permutation is None:
        return test
    if max(test.p_adjusted, test.p_permutation) <= policy.alpha:
        return replace(test, verdict="NO-GO")
    if test.drop <= test.margin:
        return replace(test, verdict="GO")
    return replace(test, reason=f"a drop of up to {100 * test.drop:.1f} points is not excluded")
