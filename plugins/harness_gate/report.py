"""A decision as blocks of a report, as rows, and as JUnit XML."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import fields, replace
from typing import Any, Literal
from xml.etree.ElementTree import Element, SubElement, indent, tostring

from harness import Notes, TableRow
from harness import Table as ReportTable
from harness.cli.output import printable
from harness.reporting.column import METRIC_SHORT
from harness.reporting.console import SAMPLE_WARNING
from harness.reporting.model import Block, Field, Note
from harness.reporting.number import p_text, percent, signed
from harness.reporting.remark import counted
from harness_gate.verdict import Check, Decision, Verdict

__all__ = ["decision_blocks", "decision_rows", "junit_text"]

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
    ordered = sorted(decision.checks, key=_rank)
    shown = ordered if details else ordered[:SHOWN]
    hidden = [check.verdict for check in ordered[len(shown) :]]
    return [
        *([Note(SAMPLE_WARNING, "warning")] if decision.sample else []),
        Note(f"{decision.new} against {decision.base}", "heading"),
        *([_table(shown)] if shown else []),
        Notes(
            [
                *decision.reasons,
                *_reasons(shown),
                *([f"Not shown: {_tallied(hidden)}; all with --details."] if hidden else []),
                *decision.notes,
            ]
        ),
        Note(LEGEND, "note"),
        Note(headline(decision), "heading"),
    ]


def headline(decision: Decision) -> str:
    """Return the verdict on the whole in one line, with what it rests on."""
    verdicts = [check.verdict for check in decision.checks]
    counts = _tallied(verdicts)
    taken = "" if decision.outcome == decision.verdict else f", which the policy takes as {decision.outcome}"
    policy = decision.policy
    tests = counted(len(verdicts), "test")
    margins = sorted({100 * check.margin for check in decision.checks} or {policy.margin})
    margin = " to ".join(f"{end:g}" for end in dict.fromkeys((margins[0], margins[-1])))
    rule = f"margin {margin} points, alpha {policy.alpha:g}, {CORRECTIONS[policy.correction]}"
    return f"{decision.verdict}{taken}: {counts or 'nothing'} of {tests} ({rule})"


def _tallied(verdicts: Sequence[Verdict]) -> str:
    return ", ".join(f"{verdicts.count(name)} {name}" for name in ORDER if name in verdicts)


def _rank(check: Check) -> tuple[int, bool, float]:
    """Return what the worst tests, and those that decide, are first by."""
    change = 0.0 if check.change is None else check.change
    return ORDER.index(check.verdict), not check.decisive, change


def _name(check: Check) -> str:
    return f"{check.title} {check.language or 'mean'}"


def _table(checks: Sequence[Check]) -> ReportTable:
    """Return the tests; the margins are a column only where they differ, and p is skipped where space is short."""
    heads = ("", "base", "new", "change", "largest\ndrop", "margin", "p", "verdict")
    skipped = {heads.index("margin")} if len({check.margin for check in checks}) == 1 else set()
    wide = _columns(checks, heads, skipped)
    return replace(wide, narrow=_columns(checks, heads, {*skipped, heads.index("p")}))


def _columns(checks: Sequence[Check], heads: Sequence[str], skipped: Collection[int]) -> ReportTable:
    kept = [place for place in range(len(heads)) if place not in skipped]
    return ReportTable(
        title="Tests, the worst first",
        untitled=True,
        corner="task",
        heads=tuple(heads[place] for place in kept),
        rows=tuple(
            TableRow(label=_name(check), fields=tuple(_fields(check)[place] for place in kept))
            for check in checks
        ),
        words=frozenset({0, len(kept) - 1}),
        folding=True,
    )


def _fields(check: Check) -> tuple[str | Field, ...]:
    return (
        METRIC_SHORT.get(check.metric, check.metric),
        percent(check.base),
        percent(check.new),
        signed(check.change),
        percent(None if check.drop is None else max(0.0, check.drop)),
        percent(check.margin),
        p_text(check.p_adjusted),
        Field(text=check.verdict, style=STYLES[check.verdict]),
    )


def _reasons(checks: Sequence[Check]) -> Iterator[str]:
    """Yield one sentence for every reason why tests are inconclusive, with the tests."""
    groups: dict[str, list[str]] = {}
    for check in checks:
        if check.verdict == "INCONCLUSIVE" and check.reason:
            wide = check.drop is not None and check.drop > check.margin and check.p_adjusted is not None
            reason = UNDECIDED if wide else check.reason
            groups.setdefault(reason, []).append(_name(check))
    for reason, found in groups.items():
        names = list(dict.fromkeys(found))
        more = f" and {len(names) - NAMED} more" if len(names) > NAMED else ""
        yield f"{', '.join(names[:NAMED])}{more}: {reason}."


def decision_rows(decision: Decision) -> list[dict[str, Any]]:
    """Return one row for the whole (its task is None), then one per test; scores and margins are fractions."""
    whole = {
        "task": None,
        "base_run": decision.base,
        "new_run": decision.new,
        "verdict": decision.verdict,
        "outcome": decision.outcome,
        "exit_code": decision.exit_code,
        "sample": decision.sample,
        "reasons": list(decision.reasons),
        "notes": list(decision.notes),
        "policy": decision.policy.model_dump(mode="json"),
    }
    names = [field.name for field in fields(Check)]
    return [whole, *({name: getattr(check, name) for name in names} for check in decision.checks)]


def junit_text(decision: Decision) -> str:
    """Return the decision as JUnit XML, as GitLab, Jenkins and the reporters of GitHub read it.

    A test that is NO-GO is a failure and one that is INCONCLUSIVE is skipped, each with its numbers; the whole is a
    test of its own, in the suite ``overall``.
    """
    suites: dict[str, list[tuple[str, Verdict, str]]] = {}
    for check in decision.checks:
        name = f"{check.language or 'mean'} {check.metric}".strip()
        suites.setdefault(check.title, []).append((name, check.verdict, _sentence(check)))
    suites["overall"] = [("gate", decision.outcome, headline(decision))]
    whole = _counts("harness gate", [case for cases in suites.values() for case in cases])
    del whole["skipped"]  # Jenkins' schema has it for suites alone
    root = Element("testsuites", whole)
    for title, cases in suites.items():
        suite = SubElement(root, "testsuite", _counts(title, cases))
        for name, verdict, sentence in cases:
            case = SubElement(
                suite, "testcase", {"name": printable(name), "classname": printable(title), "time": "0"}
            )
            if verdict == "NO-GO":
                failure = SubElement(case, "failure", {"message": printable(sentence), "type": verdict})
                failure.text = printable(sentence)
            elif verdict == "INCONCLUSIVE":
                SubElement(case, "skipped", {"message": printable(sentence)})
            else:
                SubElement(case, "system-out").text = printable(sentence)
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
            f"{check.metric} {percent(check.base)} to {percent(check.new)} ({signed(check.change)}) "
            f"on {check.n} items; margin {percent(check.margin)}, largest drop not excluded "
            f"{percent(None if check.drop is None else max(0.0, check.drop))}, p {p_text(check.p_adjusted)}"
        )
    return "; ".join(part for part in (numbers, check.reason) if part)
