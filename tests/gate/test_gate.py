"""The gate between two runs: policy, verdict, output."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest
from scipy import stats
from statsmodels.stats.multitest import multipletests

from harness.cli.output import printable
from harness.errors import SpecError, UsageError
from harness.registry.registry import Registry
from harness.reporting.render.console import print_blocks
from harness.storage.records import ItemRecord
from harness.storage.run_folder import Run
from harness.table import NamedTable
from harness_gate.verdict import Policy, decide, read_policy
from tests.comparison.conftest import LABELS, MakeRun, item, labelled

from .conftest import Decide, answers, by_language


def _pair(
    make_run: MakeRun, base: list[ItemRecord], new: list[ItemRecord], **further: Any
) -> tuple[Run, Run]:
    return make_run("new", [("xnli", "de", new, further)]), make_run("base", [("xnli", "de", base, {})])


def test_equal_answers_to_many_items_are_go(make_run: MakeRun, gate: Decide) -> None:
    new, base = _pair(make_run, answers(150, 50), answers(150, 50))
    decision = gate(new, base)
    [check] = decision.checks
    assert (decision.verdict, check.verdict, decision.exit_code) == ("GO", "GO", 0)
    assert (check.change, check.low, check.high) == (0.0, None, None)
    assert check.drop == pytest.approx(stats.binomtest(0, 200).proportion_ci(0.95, method="wilson").high)


def test_equal_answers_to_few_items_are_inconclusive(make_run: MakeRun, gate: Decide) -> None:
    new, base = _pair(make_run, answers(15, 5), answers(15, 5))
    decision = gate(new, base)
    assert (decision.verdict, decision.exit_code) == ("INCONCLUSIVE", 3)
    assert gate(new, base, margin=17.0).verdict == "GO"
    assert gate(new, base, margin=16.0).verdict == "INCONCLUSIVE"


def test_a_run_is_never_worse_than_itself(sample_run: Run, trained_sample_run: Run, gate: Decide) -> None:
    for run in (sample_run, trained_sample_run):
        decision = gate(run, run)
        assert {check.verdict for check in decision.checks} <= {"GO", "INCONCLUSIVE"}
        assert {check.change for check in decision.checks} == {0.0}
        assert decision.sample


def test_random_answers_are_worse_than_those_of_a_trained_model(
    sample_run: Run, trained_sample_run: Run, gate: Decide
) -> None:
    decision = gate(sample_run, trained_sample_run)
    worse = {check.task for check in decision.checks if check.verdict == "NO-GO"}
    assert (decision.verdict, decision.exit_code) == ("NO-GO", 1)
    assert worse == {"udpos", "tatoeba", "xquad"}
    assert gate(trained_sample_run, sample_run).verdict != "NO-GO"


def test_p_and_the_interval_are_those_of_the_paired_t_test(make_run: MakeRun, gate: Decide) -> None:
    old, changed = answers(200, 100, seed=1), answers(170, 130, seed=2)
    new, base = _pair(make_run, old, changed)
    [check] = gate(new, base, margin=1.0).checks
    right = [np.array([each.prediction["label"] == "a" for each in own], float) for own in (old, changed)]
    differences = right[1] - right[0]
    test = stats.ttest_1samp(differences, -0.01, alternative="less")
    interval = stats.ttest_1samp(differences, 0.0).confidence_interval(0.95)
    assert check.p == pytest.approx(2 * test.pvalue)
    assert (check.low, check.high) == pytest.approx((interval.low, interval.high))
    assert check.drop == pytest.approx(-interval.low)
    assert (check.base, check.new, check.change) == pytest.approx((2 / 3, 170 / 300, -0.1))


@pytest.mark.parametrize(
    ("margin", "verdict"), [(1.0, "NO-GO"), (5.0, "NO-GO"), (10.0, "INCONCLUSIVE"), (15.0, "GO")]
)
def test_the_margin_decides(make_run: MakeRun, gate: Decide, margin: float, verdict: str) -> None:
    """A fixed tenth of 1,000 answers is lost: the 95 % interval of the drop is 8.1 to 11.9."""
    lost = labelled("a" * 700 + "b" * 300, "a" * 1000)
    new, base = _pair(make_run, labelled("a" * 800 + "b" * 200, "a" * 1000), lost)
    assert gate(new, base, margin=margin).verdict == verdict


@pytest.mark.parametrize(("name", "method"), [("holm", "holm"), ("bh", "fdr_bh")])
def test_the_correction_is_that_of_statsmodels(
    make_run: MakeRun, gate: Decide, name: str, method: str
) -> None:
    codes = ["de", "en", "sw", "tr", "hi"]
    base = make_run("base", [("xnli", code, answers(80, 20, seed=1), {}) for code in codes])
    new = make_run(
        "new",
        [
            ("xnli", code, answers(80 - 6 * place, 20 + 6 * place, seed=place), {})
            for place, code in enumerate(codes)
        ],
    )
    checks = gate(new, base, correction=name).checks
    assert len(checks) == len(codes) + 1
    p = [check.p for check in checks]
    assert [check.p_adjusted for check in checks] == pytest.approx(multipletests(p, method=method)[1])
    plain = gate(new, base, correction="none").checks
    assert [check.p_adjusted for check in plain] == p


def test_few_losses_are_no_proof(make_run: MakeRun, gate: Decide) -> None:
    """All of five answers are lost: no permutation test of five items is significant."""
    new, base = _pair(make_run, answers(5, 0), answers(0, 5))
    [check] = gate(new, base).checks
    assert check.verdict == "INCONCLUSIVE"
    assert check.p_permutation == pytest.approx(2 * 0.5**5)
    new, base = (
        make_run("n", [("xnli", "de", answers(0, 9), {})]),
        make_run("b", [("xnli", "de", answers(9, 0), {})]),
    )
    assert gate(new, base).verdict == "NO-GO"


def test_a_gain_that_the_permutation_test_establishes_is_go(make_run: MakeRun, gate: Decide) -> None:
    new, base = _pair(make_run, answers(10, 30, seed=1), answers(40, 0))
    assert gate(new, base).verdict == "GO"


def test_items_of_a_cluster_are_one_draw(make_run: MakeRun, gate: Decide) -> None:
    letters = "a" * 200
    records = [item(str(n), letter, "a", cluster=f"c{n // 100}") for n, letter in enumerate(letters)]
    new, base = _pair(make_run, records, records)
    [check] = gate(new, base).checks
    assert (check.n, check.draws, check.verdict) == (200, 2, "INCONCLUSIVE")


def test_what_cannot_be_compared_is_inconclusive_with_its_reason(make_run: MakeRun, gate: Decide) -> None:
    good, other = answers(200, 0), [item(f"x{n}", "a", "a") for n in range(200)]
    half = good[:150]
    regraded = [item(str(n), "a", "b" if n == 0 else "a") for n in range(200)]
    base = make_run("base", [("xnli", code, good, {}) for code in ("de", "en", "sw", "tr", "hi", "ur", "zh")])
    failed = {"status": "failed", "reason": "out of memory"}
    new = make_run(
        "new",
        [
            ("xnli", "de", good, {}),
            ("xnli", "en", half, {}),
            ("xnli", "sw", other, {}),
            ("xnli", "tr", [], failed),
            ("xnli", "ur", regraded, {}),
            ("xnli", "zh", good, {"version": 2}),
        ],
    )
    decision = gate(new, base)
    found = by_language(decision)
    assert decision.verdict == "INCONCLUSIVE"
    assert {code: check.verdict for code, check in found.items() if code is not None} == {
        "de": "GO",
        **dict.fromkeys(("en", "sw", "tr", "hi", "ur", "zh"), "INCONCLUSIVE"),
    }
    assert "new run does not have: 50" in found["en"].reason
    assert found["sw"].reason == "no item is common to the runs"
    assert "out of memory" in found["tr"].reason
    assert "does not have it" in found["hi"].reason
    assert "gold answers differ: 1" in found["ur"].reason
    assert "version" in found["zh"].reason
    assert found[None].verdict == "INCONCLUSIVE"
    assert "en sw tr hi ur zh" in found[None].reason


def test_a_drop_in_other_languages_is_found_although_one_is_missing(make_run: MakeRun, gate: Decide) -> None:
    base = make_run("base", [("xnli", code, answers(200, 0), {}) for code in ("de", "en")])
    new = make_run("new", [("xnli", "de", answers(100, 100), {})])
    assert gate(new, base).verdict == "NO-GO"


def test_other_conditions_are_never_compared(make_run: MakeRun, gate: Decide) -> None:
    new, base = _pair(make_run, answers(200, 0), answers(200, 0), protocol="prompted", view={"shots": "2"})
    [check] = gate(new, base).checks
    assert check.verdict == "INCONCLUSIVE"
    assert "prompted, seed=42, shots=2" in check.reason


def test_seeds_are_paired_with_each_other(make_run: MakeRun, gate: Decide) -> None:
    cells = [("xnli", "de", answers(200, 0), {"seed": seed}) for seed in (1, 2)]
    worse = [("xnli", "de", answers(200, 0), {"seed": 1}), ("xnli", "de", answers(100, 100), {"seed": 2})]
    decision = gate(make_run("new", worse), make_run("base", cells))
    assert {check.title: check.verdict for check in decision.checks} == {
        "xnli (seed=1)": "GO",
        "xnli (seed=2)": "NO-GO",
    }


def test_nothing_finished_is_inconclusive(make_run: MakeRun, gate: Decide) -> None:
    new, base = _pair(make_run, answers(200, 0), [], status="failed", reason="no memory")
    [check] = gate(new, base).checks
    assert (check.verdict, check.reason) == ("INCONCLUSIVE", "failed in the new run: no memory")
    assert gate(base, new).verdict == "INCONCLUSIVE"


def test_a_whole_is_go_by_its_tasks_or_by_every_language(make_run: MakeRun, gate: Decide) -> None:
    """Each of three languages has too few items, their mean has enough."""
    runs = [
        make_run(name, [("xnli", code, answers(120, 0), {}) for code in ("de", "en", "sw")]) for name in "nb"
    ]
    decision = gate(*runs)
    found = by_language(decision)
    assert decision.verdict == "GO"
    assert (found[None].verdict, found["de"].verdict) == ("GO", "INCONCLUSIVE")
    assert gate(*runs, decide_by="language").verdict == "INCONCLUSIVE"
    assert gate(*runs, required={"languages": ("sw",)}).verdict == "INCONCLUSIVE"
    assert gate(*runs, required={"languages": ("sw",)}, languages={"sw": 5.0}).verdict == "GO"


def test_what_the_policy_requires_must_be_there(make_run: MakeRun, gate: Decide) -> None:
    new, base = _pair(make_run, answers(200, 0), answers(200, 0))
    decision = gate(new, base, required={"tasks": ("xquad",), "languages": ("de", "yo")})
    assert decision.verdict == "INCONCLUSIVE"
    assert ["'xquad'" in decision.reasons[0], "'yo'" in decision.reasons[1]] == [True, True]


@pytest.mark.parametrize(("taken", "code"), [("inconclusive", 3), ("go", 0), ("no-go", 1)])
def test_the_policy_says_what_an_inconclusive_whole_is(
    make_run: MakeRun, gate: Decide, taken: str, code: int
) -> None:
    new, base = _pair(make_run, answers(15, 5), answers(15, 5))
    decision = gate(new, base, inconclusive=taken)
    assert (decision.verdict, decision.exit_code) == ("INCONCLUSIVE", code)


def test_a_metric_of_the_policy_decides(make_run: MakeRun, gate: Decide) -> None:
    specs = {"xnli": {**LABELS, "metrics": ["accuracy", "macro_f1"]}}
    runs = [make_run(name, [("xnli", "de", answers(150, 50), {})], specs=specs) for name in "nb"]
    [check] = gate(*runs, tasks={"xnli": {"metric": "macro_f1"}}).checks
    assert (check.metric, check.verdict) == ("macro_f1", "GO")
    [check] = gate(*runs, tasks={"xnli": {"metric": "f1"}}).checks
    assert (check.verdict, "'f1'" in check.reason) == ("INCONCLUSIVE", True)


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


Cli = Callable[..., tuple[int, str, str]]
GOLDEN = Path(__file__).parent / "golden"
WIDTHS = (80, 120)


def _runs(make_run: MakeRun) -> tuple[str, str]:
    codes = ("de", "en", "sw", "tr")
    base = make_run("base", [("xnli", code, answers(150, 50), {}) for code in codes], model="hf:old <b>")
    worse = {"de": answers(150, 50), "en": answers(90, 110), "sw": answers(149, 51, seed=1)}
    cells = [
        ("xnli", code, worse.get(code, []), {} if code in worse else {"status": "failed"}) for code in codes
    ]
    new = make_run("new", cells, model='hf:new & "quoted" \x1b[31m')
    return str(new.path), str(base.path)


@pytest.mark.parametrize("width", WIDTHS)
def test_the_screen_is_that_of_the_golden_file(make_run: MakeRun, gate: Decide, width: int) -> None:
    from harness.storage.run_folder import Run
    from harness_gate.report import decision_blocks

    new, base = _runs(make_run)
    decision = gate(Run(Path(new)), Run(Path(base)))
    text = printable(print_blocks(decision_blocks(decision, details=False), width=width))
    file = GOLDEN / f"gate-{width}.txt"
    if os.environ.get("HARNESS_UPDATE_GOLDEN"):
        file.parent.mkdir(exist_ok=True)
        file.write_text(text, encoding="utf-8")
    assert text == file.read_text(encoding="utf-8")
    assert max(map(len, text.splitlines()[1:])) <= width


def test_many_tests_fit_a_screen(make_run: MakeRun, cli: Cli) -> None:
    codes = [f"a{letter}" for letter in "abcdefghijklmnopqrstuvwxyz"]
    runs = [str(make_run(name, [("xnli", code, answers(4, 1), {}) for code in codes]).path) for name in "nb"]
    status, out, _ = cli("gate", runs[0], "--against", runs[1])
    assert status == 3
    assert len(out.splitlines()) < 30
    whole = cli("gate", runs[0], "--against", runs[1], "--details")[1]
    assert all(f"xnli {code} " in whole for code in codes)


def test_files_hold_what_was_decided(make_run: MakeRun, cli: Cli, tmp_path: Path) -> None:
    new, base = _runs(make_run)
    files = {name: tmp_path / f"out.{name}" for name in ("json", "junit", "markdown")}
    options = [part for name, path in files.items() for part in (f"--{name}", str(path))]
    status, out, _ = cli("gate", new, "--against", base, *options)
    assert status == 1
    assert out.splitlines()[-1].startswith("NO-GO: ")
    rows = json.loads(files["json"].read_text(encoding="utf-8"))
    assert (rows[0]["verdict"], rows[0]["exit_code"]) == ("NO-GO", 1)
    verdicts = {row["language"]: row["verdict"] for row in rows[1:]}
    assert verdicts == {
        "de": "GO",
        "en": "NO-GO",
        "sw": verdicts["sw"],
        "tr": "INCONCLUSIVE",
        None: "INCONCLUSIVE",
    }
    assert next(row for row in rows[1:] if row["language"] == "en")["change"] == pytest.approx(-0.3)
    markdown = files["markdown"].read_text(encoding="utf-8")
    assert "\x1b" not in markdown
    assert "old \\<b\\>" in markdown
    assert markdown.count("| xnli ") == 5


def test_junit_is_well_formed_and_its_counts_are_right(make_run: MakeRun, cli: Cli, tmp_path: Path) -> None:
    new, base = _runs(make_run)
    file = tmp_path / "junit.xml"
    cli("gate", new, "--against", base, "--junit", str(file))
    root = ElementTree.parse(file).getroot()
    assert root.tag == "testsuites"
    assert [suite.get("name") for suite in root] == ["xnli", "overall"]
    for suite in root:
        assert suite.tag == "testsuite"
        cases = list(suite)
        assert int(suite.attrib["tests"]) == len(cases)
        assert int(suite.attrib["failures"]) == sum(case.find("failure") is not None for case in cases)
        assert int(suite.attrib["skipped"]) == sum(case.find("skipped") is not None for case in cases)
        assert all(case.tag == "testcase" and case.get("name") and case.get("classname") for case in cases)
    assert root.keys() == ["name", "tests", "failures", "errors", "time"]
    for name in ("tests", "failures"):
        assert int(root.attrib[name]) == sum(int(suite.attrib[name]) for suite in root)
    [failed] = [case for case in root[0] if case.find("failure") is not None]
    assert failed.get("name") == "en accuracy"
    assert root[1][0].find("failure") is not None


def test_junit_escapes_names_of_strangers(make_run: MakeRun, gate: Decide) -> None:
    from harness_gate.report import junit_text

    reason = 'it said <oops> & "\x1b[31m"\x00'
    base = make_run("base", [("xnli", "de", answers(200, 0), {})])
    new = make_run("new", [("xnli", "de", [], {"status": "failed", "reason": reason})])
    text = junit_text(gate(new, base))
    skipped = ElementTree.fromstring(text).find(".//skipped")
    assert skipped is not None
    assert '<oops> & "⟦U+001B⟧[31m"⟦U+0000⟧' in skipped.attrib["message"]


def test_wrong_usage_has_status_2(make_run: MakeRun, cli: Cli, tmp_path: Path) -> None:
    new, base = _runs(make_run)
    assert cli("gate", new)[0] == 2
    assert cli("gate", new, "--against", base, "--policy", str(tmp_path / "none.yaml"))[0] == 2
    assert cli("gate", new, "--against", base, "--junit", str(tmp_path / "no" / "x.xml"))[0] == 2


def test_an_error_that_grows_is_a_loss(make_run: MakeRun, registry: Registry) -> None:
    new, base = _pair(make_run, answers(100, 100), answers(190, 10))
    error = replace(registry.metrics.get("accuracy"), higher_is_better=False)
    decision = decide(new, base, NamedTable("metric", [("core", "accuracy", error)]), Policy())
    [check] = decision.checks
    assert check.change == pytest.approx(-0.45)
    assert (check.verdict, decision.exit_code) == ("NO-GO", 1)
