"""``harness gap`` as a command."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from typer.testing import CliRunner

from harness.errors import HarnessError
from harness_translation.gap.command import app
from harness_translation.gap.paper import COLUMNS
from tests.reporting.html.conftest import check_page
from tests.translation_gap.conftest import MakeRun, pair


def run_command(*arguments: object) -> str:
    result = CliRunner().invoke(app, [str(each) for each in arguments], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result.output


def rows(path: Path) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(path.read_text(encoding="utf-8"))
    return found


def write_scores(folder: Path, scores: dict[str, str]) -> Path:
    """Write a table of printed scores: those of Swahili and Hindi by variant."""
    lines = [("ZS", "", "en", "90")]
    for variant, values in scores.items():
        translator = "" if variant == "ZS" else "g"
        lines += [
            (variant, translator, code, value)
            for code, value in zip(("sw", "hi"), values.split(), strict=False)
        ]
    body = ["\t".join(["1", "xnli", "acc", "m", "ORIG", "test", *line]) for line in lines]
    (folder / "scores.tsv").write_text("\n".join(["\t".join(COLUMNS), *body]) + "\n", encoding="utf-8")
    return folder / "scores.tsv"


@pytest.fixture
def folder(make_run: MakeRun) -> Path:
    rates = {"zs": 3, "tt": 4, "te": 6, "bt": 9}
    cells = {("en", "zs", ""): [pair(number, 1.0) for number in range(60)]}
    for language in ("sw", "de"):
        for variant, rate in rates.items():
            name = "" if variant == "zs" else "[mt]"
            cells[language, variant, name] = [pair(n, float(n % rate > 0)) for n in range(60)]
    return make_run("run", cells).path


def test_a_run_gives_a_table_rows_a_page_and_a_drawing(folder: Path, tmp_path: Path) -> None:
    output = run_command(folder, "--json", tmp_path / "gaps.json", "--output", tmp_path / "gaps.html")
    assert "mean of 2: de sw" in output
    assert "Caution: BT" in output
    assert "beyond 2 standard errors for every translator (one translator, [mt]" in output
    own = [
        row
        for row in rows(tmp_path / "gaps.json")
        if (row["quantity"], row["language"], row["translator"]) == ("te_zs", "sw", "[mt]")
    ]
    assert len(own) == 1
    assert own[0]["value"] == pytest.approx(10 / 60)
    assert own[0]["ci_low"] < own[0]["value"] < own[0]["ci_high"]
    assert (own[0]["n"], own[0]["clusters"], own[0]["pretraining_size"]) == (60, 20, 1.6)
    page = (tmp_path / "gaps.html").read_text(encoding="utf-8")
    check_page(page)
    assert "<figure" in page
    assert "Contrasts, [mt]" in page
    drawing = ElementTree.fromstring((tmp_path / "gaps.svg").read_text(encoding="utf-8"))
    assert drawing.tag == "{http://www.w3.org/2000/svg}svg"


def test_a_row_of_means_is_of_the_same_languages(make_run: MakeRun, tmp_path: Path) -> None:
    """A translator with one of two languages is not compared with the human text of both."""
    cells = {
        ("sw", "zs", ""): [pair(n, float(n % 2)) for n in range(60)],
        ("de", "zs", ""): [pair(n, 1.0) for n in range(60)],
        ("sw", "tt", "mt"): [pair(n, float(n % 3 > 0)) for n in range(60)],
    }
    run = make_run("run", cells)
    output = run_command(run.path, "--output", tmp_path / "gaps.html")
    means = [line.split() for line in output.splitlines() if line.strip().startswith("mean of")]
    assert means[0][:6] == ["mean", "of", "1:", "sw", "-", "66.7"]
    assert "mean of 1: sw" in (tmp_path / "gaps.html").read_text(encoding="utf-8")


def test_a_table_of_scores_gives_rows_in_its_unit(tmp_path: Path) -> None:
    scores = write_scores(tmp_path, {"ZS": "70.1", "TT": "71.0", "BT": "80.2"})
    files = ("--json", tmp_path / "d.json", "--output", tmp_path / "d.html")
    assert "Table 1: xnli test acc, m, ORIG, g" in run_command("--from-scores", scores, *files)
    [own] = [row for row in rows(tmp_path / "d.json") if (row["quantity"], row["lang"]) == ("delta", "sw")]
    keys = "table task model train translator lang quantity value printed".split()
    assert list(own)[: len(keys)] == keys
    assert [own[key] for key in keys] == ["1", "xnli", "m", "ORIG", "g", "sw", "delta", 9.2, None]
    assert (tmp_path / "d.svg").is_file()


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        ([], "neither"),
        (["run", "--from-scores", "x.tsv"], "both"),
        (["run", "--k", "-1"], r"--k .*-1"),
        (["nowhere"], "'nowhere'"),
    ],
)
def test_wrong_usage_is_an_error(arguments: list[str], named: str) -> None:
    with pytest.raises(HarnessError, match=named):
        CliRunner().invoke(app, arguments, catch_exceptions=False)


def _latex_rows(text: str) -> list[list[str]]:
    return [
        [field.strip() for field in line.removesuffix(r" \\").split("&")]
        for line in text.splitlines()
        if line.endswith(r"\\")
    ]


def test_latex_has_languages_as_columns(folder: Path, tmp_path: Path) -> None:
    """The orientation of Tables 1, 2 and 9 to 16: a row per version, the mean of target languages last."""
    path = tmp_path / "gaps.tex"
    run_command(folder, "--format", "latex", "--output", path)
    head, *body = _latex_rows(path.read_text(encoding="utf-8"))
    assert head == ["", "en", "de", "sw", "avg"]
    assert [row[0] for row in body] == [
        "ZS",
        *(f"{name}-{{[}}mt{{]}}" for name in ("TT", "TE", "BT", "delta")),
    ]
    assert body[0] == ["ZS", "100.0", "66.7", "66.7", "66.7"]
    assert body[2][1:] == ["--", "83.3", "83.3", "83.3"]
    assert "tabular" in run_command(folder, "--format", "latex")


def test_the_table_of_a_paper_comes_back(tmp_path: Path) -> None:
    path = write_scores(tmp_path, {"ZS": "70.1 60.2", "TT": "71.0 60.0", "BT": "80.2 70.4"})
    rows = _latex_rows(run_command("--from-scores", path, "--format", "latex"))
    assert rows == [
        ["", "en", "sw", "hi", "avg"],
        ["ZS", "90.0", "70.1", "60.2", "65.2"],
        ["TT-g", "--", "71.0", "60.0", "65.5"],
        ["BT-g", "--", "80.2", "70.4", "75.3"],
        ["delta-g", "--", "9.2", "10.2", "9.7"],
    ]


def test_figure_1_has_two_curves_and_the_line_of_english(folder: Path, tmp_path: Path) -> None:
    run_command(folder, "--output", tmp_path / "gaps.html")
    drawing = ElementTree.fromstring((tmp_path / "gaps-curves.svg").read_text(encoding="utf-8"))
    space = "{http://www.w3.org/2000/svg}"
    curves = [path for path in drawing.iter(f"{space}path") if path.find(f"{space}title") is not None]
    kinds = sorted(str(path.attrib["class"]) for path in curves)
    assert kinds == ["curve s0", "curve s1", "curve s6 dashed"]
    texts = [text.text for text in drawing.iter(f"{space}text")]
    assert {"de", "sw", "human text (TT)", "machine text (BT)"} <= set(texts)
    assert texts[0] is not None and "xnli" in texts[0]
    assert any("100.0" in str(text) for text in texts)
    check_page((tmp_path / "gaps.html").read_text(encoding="utf-8"))
