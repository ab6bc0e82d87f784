"""A decision as blocks of a report, as rows, and as JUnit XML."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import Any, Literal
from xml.etree.ElementTree import Element, SubElement, indent, tostring

from harness import grouped
from harness.cli import printable
from harness.metrics import metric_name
from harness.reporting import (
    SAMPLE_WARNING,
    Block,
    Field,
    Note,
    Notes,
    Table as ReportTable,
    counted,
    p_text,
    percent,
    rows_of,
    signed,
)
from harness_gate.verdict import Check, Decision, Verdict

SHOWN = 12
"""Rows of the table without --details: the whole stays within a screen."""
ORDER: tuple[Verdict, ...] = ("NO-GO", "INCONCLUSIVE", "GO")
NAMED = 6
"""Tests that a sentence names."""
CORRECTIONS = {"holm": "Holm", "bh": "Benjamini-Hochberg", "none": "no correction"}
LEGEND = (
    "Scores x100 on the items of both runs; mean: over the languages of the task; change: positive is better. Largest "
    "drop: what the items do not exclude. GO: it is within the margin. NO-GO: a drop of more than the margin is "
    "established. p: of such a drop, corrected for the number of tests."
)
UNDECIDED = (
    "a drop of more than the margin is neither established nor excluded; "
    "more items or a larger margin would decide"
)
STYLES: dict[Verdict, Literal["", "good", "bad"]] = {"GO": "good", "NO-GO": "bad", "INCONCLUSIVE": ""}


def decision_blocks(decision: Decision, *, details: bool) -> list[Block]:
    """Return the table of tests, the worst first, the reasons and, at the end, the verdict on the whole."""
    # The worst tests, and those that decide, come first.
    ordered = sorted(
        decision.checks, key=lambda test: (ORDER.index(test.verdict), not test.decisive, test.change or 0.0)
    )
    shown = ordered if details else ordered[:SHOWN]
    hidden = _tallied([check.verdict for check in ordered[len(shown) :]])
    left_out = [f"Not shown: {hidden}; all with --details."] if hidden else []
    return [
        *([Note(SAMPLE_WARNING, "warning")] if decision.sample else []),
        Note(f"{decision.new} against {decision.base}", "heading"),
        *([_table(shown)] if shown else []),
        Notes([*decision.reasons, *_reasons(shown), *left_out, *decision.notes]),
        Note(LEGEND, "note"),
        Note(headline(decision), "heading"),
    ]


def headline(decision: Decision) -> str:
    """Return the verdict on the whole in one line, with what it rests on."""
    counts = _tallied([check.verdict for check in decision.checks]) or "nothing"
    taken = "" if decision.outcome == decision.verdict else f", which the policy takes as {decision.outcome}"
    policy, tests = decision.policy, counted(len(decision.checks), "test")
    margins = sorted({100 * check.margin for check in decision.checks} or {policy.margin})
    margin = " to ".join(f"{end:g}" for end in dict.fromkeys((margins[0], margins[-1])))
    rule = f"margin {margin} points, alpha {policy.alpha:g}, {CORRECTIONS[policy.correction]}"
    return f"{decision.verdict}{taken}: {counts} of {tests} ({rule})"


def _tallied(verdicts: Sequence[Verdict]) -> str:
    return ", ".join(f"{verdicts.count(name)} {name}" for name in ORDER if name in verdicts)


def _name(check: Check) -> str:
    return f"{check.title} {check.language or 'mean'}"


def _drop_text(check: Check) -> str:
    return percent(None if check.drop is None else max(0.0, check.drop))


COLUMNS: Mapping[str, Callable[[Check], str | Field]] = {
    "": lambda check: metric_name(check.metric),
    "base": lambda check: percent(check.base),
    "new": lambda check: percent(check.new),
    "change": lambda check: signed(check.change),
    "largest\ndrop": _drop_text,
    "margin": lambda check: percent(check.margin),
    "p": lambda check: p_text(check.p_adjusted),
    "verdict": lambda check: Field(text=check.verdict, style=STYLES[check.verdict]),
}


def _table(checks: Sequence[Check], *, is_narrow: bool = False) -> ReportTable:
    """Return the tests; the margins are a column only where they differ, and p is skipped where space is short."""
    skipped = {"margin"} if len({check.margin for check in checks}) == 1 else set()
    heads = tuple(head for head in COLUMNS if head not in skipped and not (is_narrow and head == "p"))
    return ReportTable(
        title="Tests, the worst first",
        untitled=True,
        corner="task",
        heads=heads,
        rows=rows_of((_name(check), *(COLUMNS[head](check) for head in heads)) for check in checks),
        words=frozenset({0, len(heads) - 1}),
        folding=True,
        narrow=None if is_narrow else _table(checks, is_narrow=True),
    )


def _reasons(checks: Sequence[Check]) -> Iterator[str]:
    """Yield one sentence for every reason why tests are inconclusive, with the tests."""

    def reason_of(check: Check) -> str:
        wide = check.drop is not None and check.drop > check.margin and check.p_adjusted is not None
        return UNDECIDED if wide else check.reason

    undecided = (check for check in checks if check.verdict == "INCONCLUSIVE" and check.reason)
    for reason, found in grouped((reason_of(check), _name(check)) for check in undecided).items():
        names = list(dict.fromkeys(found))
        more = f" and {len(names) - NAMED} more" if len(names) > NAMED else ""
        yield f"{', '.join(names[:NAMED])}{more}: {reason}."


def decision_rows(decision: Decision) -> list[dict[str, Any]]:
    """Return one row for the whole (its task is None), then one per test; scores and margins are fractions."""
    whole = {
        "task": None,
        "base_run": decision.base,
        "new_run": decision.new,
        **{name: getattr(decision, name) for name in ("verdict", "outcome", "exit_code", "sample")},
        "reasons": list(decision.reasons),
        "notes": list(decision.notes),
        "policy": decision.policy.model_dump(mode="json"),
    }
    return [whole, *map(asdict, decision.checks)]


def junit_text(decision: Decision) -> str:
    """Return the decision as JUnit XML, as GitLab, Jenkins and the reporters of GitHub read it.

    A test that is NO-GO is a failure and one that is INCONCLUSIVE is skipped, each with its numbers; the whole is a
    test of its own, in the suite ``overall``.
    """
    suites = grouped(
        (check.title, (f"{check.language or 'mean'} {check.metric}".strip(), check.verdict, _sentence(check)))
        for check in decision.checks
    )
    suites["overall"] = [("gate", decision.outcome, headline(decision))]
    whole = _counts("harness gate", [case for cases in suites.values() for case in cases])
    del whole["skipped"]  # Jenkins' schema has it for suites alone
    root = Element("testsuites", whole)
    for title, cases in suites.items():
        suite = SubElement(root, "testsuite", _counts(title, cases))
        for name, verdict, sentence in cases:
            about = {"name": printable(name), "classname": printable(title), "time": "0"}
            case, text = SubElement(suite, "testcase", about), printable(sentence)
            if verdict == "NO-GO":
                SubElement(case, "failure", {"message": text, "type": verdict}).text = text
            elif verdict == "INCONCLUSIVE":
                SubElement(case, "skipped", {"message": text})
            else:
                SubElement(case, "system-out").text = text
    indent(root)
    return '<?xml version="1.0" encoding="utf-8"?>\n' + tostring(root, encoding="unicode") + "\n"


def _counts(name: str, cases: Sequence[tuple[str, Verdict, str]]) -> dict[str, str]:
    verdicts = [verdict for _, verdict, _ in cases]
    return {
        "name": printable(name),
        "tests": str(len(cases)),
        "failures": str(verdicts.count("NO-GO")),
        "errors": "0",
        "skipped": str(verdicts.count("INCONCLUSIVE")),
        "time": "0",
    }


def _sentence(check: Check) -> str:
    numbers = ""
    if check.change is not None:
        numbers = (
            f"{metric_name(check.metric)} {percent(check.base)} to {percent(check.new)} ({signed(check.change)}) "
            f"on {check.n} items; margin {percent(check.margin)}, largest drop not excluded "
            f"{_drop_text(check)}, p {p_text(check.p_adjusted)}"
        )
    return "; ".join(part for part in (numbers, check.reason) if part)
