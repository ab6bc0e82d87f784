"""GO, NO-GO or INCONCLUSIVE: tests of a drop against a margin, corrected for their number.

NO-GO: a drop of more than the margin is established by the paired t test against the margin, adjusted for all tests of
the gate, and the permutation test finds the systems different. GO: such a drop is excluded, since the largest drop that
the data allow is within the margin. The whole is GO only if all decisive tests are, which
needs no correction (an intersection-union test; Berger 1982).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from harness import Metric, Run
from harness.analysis.comparison import LanguageComparison, TaskComparison, compare_group
from harness.analysis.significance import Difference, Scores
from harness.statistics import benjamini_hochberg, beyond_margin_p, holm, largest_drop, t_interval
from harness.table import Table
from harness_gate.pairing import Pair, find_pairs
from harness_gate.policy import Policy

__all__ = ["EXIT", "Check", "Decision", "Verdict", "decide"]

Verdict = Literal["GO", "NO-GO", "INCONCLUSIVE"]
UNSHARED = "no item is common to the runs"
EXIT: Mapping[Verdict, int] = {"GO": 0, "NO-GO": 1, "INCONCLUSIVE": 3}


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


def decide(new: Run, base: Run, metrics: Table[Metric], policy: Policy) -> Decision:
    """Return the verdicts on a new run against a base run.

    Raises:
        DataError: Where records are broken, or where nothing distinguishes two cells of a run.
        UnknownNameError: For a metric of the policy that is not registered.
    """
    pairs, notes = find_pairs(base, new)
    found = [test for pair in pairs for test in _tests(pair, metrics, policy)]
    tests = tuple(_judged(_corrected(found, policy.correction), policy))
    missing = [*_missing(tests, policy)]
    verdict = _overall(tests, missing)
    outcomes: dict[str, Verdict] = {"go": "GO", "no-go": "NO-GO", "inconclusive": "INCONCLUSIVE"}
    return Decision(
        base=base.manifest.model,
        new=new.manifest.model,
        checks=tests,
        verdict=verdict,
        outcome=outcomes[policy.inconclusive] if verdict == "INCONCLUSIVE" else verdict,
        reasons=tuple(missing),
        notes=(*notes, *_unknown(tests, policy)),
        policy=policy,
        sample=any(run.results.run.data == "sample" for run in (base, new)),
    )


def _overall(tests: Sequence[Check], missing: Sequence[str]) -> Verdict:
    if any(test.verdict == "NO-GO" for test in tests):
        return "NO-GO"
    decisive = [test for test in tests if test.decisive]
    return (
        "GO"
        if decisive and not missing and all(test.verdict == "GO" for test in decisive)
        else "INCONCLUSIVE"
    )


def _missing(tests: Sequence[Check], policy: Policy) -> Iterator[str]:
    """Yield what the policy requires and the base run does not have, and a gate without any test."""
    if not tests:
        yield "The runs have nothing to compare."
    for task in policy.required.tasks:
        if all(test.task != task for test in tests):
            yield f"The policy requires the task {task!r}, which the base run does not have."
    for code in policy.required.languages:
        if all(test.language != code for test in tests):
            yield f"The policy requires the language {code!r}, which the base run does not have."


def _unknown(tests: Sequence[Check], policy: Policy) -> list[str]:
    tasks, codes = {test.task for test in tests}, {test.language for test in tests}
    named = {*policy.languages, *(code for own in policy.tasks.values() for code in own.languages)}
    return [
        *(
            f"The policy names the task {name!r}, which is not compared."
            for name in policy.tasks
            if name not in tasks
        ),
        *(
            f"The policy names the language {code!r}, which is not compared."
            for code in sorted(named - codes)
        ),
    ]


def _tests(pair: Pair, metrics: Table[Metric], policy: Policy) -> Iterator[Check]:
    """Yield the tests of one task: by metric its languages, and their mean where there are several."""
    own = policy.tasks.get(pair.task)
    metric = own.metric if own is not None else None
    compared = None if pair.group is None else compare_group(pair.group, metrics, metric=metric)
    if pair.group is not None and compared is None:
        reason = f"the metric {metric!r} does not score it"
        yield _blank(pair, None, policy, metric or "", reason)
        return
    if compared is None or not compared.languages:
        for code in pair.languages:
            reason = pair.reasons.get(code) or UNSHARED
            yield replace(
                _blank(pair, code, policy, metric or "", reason), decisive=_decides(pair, code, policy)
            )
        return
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
        if part is not None:
            test = _measured(test, part.scores[place], metric, len(part.ids), policy)
        yield replace(test, decisive=_decides(pair, code, policy))
    if len(pair.languages) > 1:
        reason = f"not all languages can be compared: {' '.join(faulty)}" if faulty else ""
        mean = _blank(pair, None, policy, metric.name, reason)
        mean = _measured(mean, compared.scores[place], metric, compared.items, policy)
        yield replace(mean, decisive=policy.decide_by == "task" or pair.task in policy.required.tasks)


def _decides(pair: Pair, code: str, policy: Policy) -> bool:
    """Return whether a single language decides: it is asked for, or there is no mean over several."""
    return policy.decide_by == "language" or code in policy.required.languages or len(pair.languages) == 1


def _blank(pair: Pair, code: str | None, policy: Policy, metric: str, reason: str) -> Check:
    margin = policy.margin_of(pair.task, code)
    return Check(task=pair.task, title=pair.title, language=code, metric=metric, margin=margin, reason=reason)


def _unequal(part: LanguageComparison) -> str:
    counts = {
        "base run does not have": part.missing[0],
        "new run does not have": part.missing[1],
        "inputs differ": part.differing,
        "gold answers differ": part.regraded,
    }
    found = [f"{name}: {count}" for name, count in counts.items() if count]
    return f"the items are not the same ({', '.join(found)})" if found else ""


def _measured(test: Check, scores: Scores, metric: Metric, n: int, policy: Policy) -> Check:
    """Return a test with its numbers; what is not known stays None."""
    own = scores.differences[1]
    assert own is not None
    sign = 1.0 if metric.higher_is_better else -1.0
    change = sign * own.value
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
    family = [(place, test.p) for place, test in enumerate(tests) if test.p is not None and not test.reason]
    p = [own for _, own in family]
    adjusted = {"holm": holm, "bh": benjamini_hochberg}[correction](p).tolist() if correction != "none" else p
    found = list(tests)
    for (place, _), value in zip(family, adjusted, strict=True):
        found[place] = replace(found[place], p_adjusted=value)
    return found


def _judged(tests: Sequence[Check], policy: Policy) -> Iterator[Check]:
    for test in tests:
        if test.reason or test.drop is None or test.p_adjusted is None:
            yield test
        elif (
            test.p_adjusted <= policy.alpha
            and test.p_permutation is not None
            and test.p_permutation <= policy.alpha
        ):
            yield replace(test, verdict="NO-GO")
        elif test.drop <= test.margin:
            yield replace(test, verdict="GO")
        else:
            allowed = f"a drop of up to {100 * test.drop:.1f} points is not excluded"
            yield replace(test, reason=allowed)
