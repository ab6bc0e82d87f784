"""What the gate prints and writes: the screen, JSON rows, JUnit XML, Markdown, and the exit status."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from xml.etree import ElementTree

import pytest

from harness.cli.output import printable
from harness.reporting.render.console import print_blocks
from tests.comparison.conftest import MakeRun

from .conftest import Decide, answers

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
