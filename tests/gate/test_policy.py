"""Policies: all faults at once with their lines, and the margin that applies."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.errors import SpecError, UsageError
from harness_gate.verdict import Policy, read_policy

POLICY = """\
margin: 1
alpha: 0.1
correction: bh
languages: {sw: 3, no: 2.5}
tasks:
  xnli: {margin: 4, languages: {sw: 6}}
  xquad: {metric: f1}
required: {tasks: [xnli], languages: [en]}
"""


def test_margins_of_a_file_go_from_the_general_to_the_special(tmp_path: Path) -> None:
    file = tmp_path / "gate.yaml"
    file.write_text(POLICY, encoding="utf-8")
    policy = read_policy(file)
    assert (policy.alpha, policy.correction, policy.required.languages) == (0.1, "bh", ("en",))
    found = {
        (task, code): round(100 * policy.margin_of(task, code), 6)
        for task in ("xnli", "xquad", "mlqa")
        for code in (None, "sw", "no", "de")
    }
    assert [found["xnli", code] for code in (None, "sw", "no", "de")] == [4, 6, 4, 4]
    assert [found["xquad", code] for code in (None, "sw", "no", "de")] == [1, 3, 2.5, 1]
    assert [found["mlqa", code] for code in (None, "sw")] == [1, 3]


def test_without_a_file_the_defaults_hold() -> None:
    assert read_policy(None) == Policy()
    assert Policy().margin_of("xnli", "sw") == pytest.approx(0.02)


def test_all_faults_are_reported_with_their_lines(tmp_path: Path) -> None:
    file = tmp_path / "gate.yaml"
    file.write_text("margin: 0\ncorection: holm\nalpha: 0.7\nlanguages: {English: 1}\ninconclusive: maybe\n")
    with pytest.raises(SpecError) as raised:
        read_policy(file)
    problems = {problem.line: problem.message for problem in raised.value.problems}
    assert sorted(line for line in problems if line is not None) == [1, 2, 3, 4, 5]
    assert "correction" in problems[2]


def test_a_file_that_cannot_be_read_is_wrong_usage(tmp_path: Path) -> None:
    with pytest.raises(UsageError):
        read_policy(tmp_path / "none.yaml")
    (tmp_path / "bytes.yaml").write_bytes(b"\xff\xfe")
    with pytest.raises(UsageError):
        read_policy(tmp_path / "bytes.yaml")
