"""Pages that show what was measured: means as printed, ranks that the errors allow, colours that mean something."""

from __future__ import annotations

import re
from html import unescape
from pathlib import Path

import numpy as np
import pytest

from harness.reporting.html.heatmap import error_heatmap
from harness.reporting.html.report import render_html
from harness.reporting.markup.element import render
from harness.reporting.markup.heatmap import HeatRow, heatmap, levels
from harness.reporting.matrix import Matrix
from harness.reporting.score import Score
from harness.running.manifest import published_documents
from harness.running.session import open_session
from harness.statistics import (
    clustered_mean,
    independent_mean,
    mean_of_codes,
    stratified_mean,
    tied_with_best,
    wilson,
)
from harness.storage.run_folder import Run
from harness_board.document import Board, System, TaskColumn
from harness_board.document import Score as BoardScore
from harness_board.gathering import gather
from harness_board.rendering import board_page
from harness_board.standing import Field, ranks, standing

from ..conftest import Cli

DESCRIPTION = re.compile(r"<desc[^>]*>([^<]*)</desc>")


@pytest.fixture
def sample_run(cli: Cli, tmp_path: Path) -> Run:
    """A run of two tasks on the sample, with what was published on their suite."""
    given = ("--tasks", "udpos,xcopa", "--model", "baseline:majority", "--data", "sample")
    status, _, err = cli("eval", *given, "--output", tmp_path / "run")
    assert status == 0, err
    run = Run(tmp_path / "run")
    run.manifest["published"] = published_documents(open_session().catalog, [{"suite": "xtreme_r"}])
    return run


def test_item_8_a_published_mean_is_the_printed_one_and_says_what_is_missing(sample_run: Run) -> None:
    strips = [unescape(text) for text in DESCRIPTION.findall(render_html([sample_run])) if "mean" in text]
    [udpos] = [text for text in strips if "of 38 languages" in text]
    # Table 4 of XTREME-R prints 70.9; of its 38 languages only Bulgarian (85.2) could be read.
    assert "published mBERT: mean 70.9 (1 of 38 languages)" in udpos.split("; ")
    assert "baseline:majority: mean 0.0 (9 of 38 languages)" in udpos.split("; ")
    [xcopa] = [text for text in strips if "of 11 languages" in text]
    assert "published mBERT: mean 56.1" in xcopa.split("; ")


def test_item_8_means_of_items_that_are_all_right_or_all_wrong_have_bounds() -> None:
    wrong, codes = np.zeros(40), np.arange(40)
    paragraphs = mean_of_codes(wrong, codes // 4)  # ten paragraphs of four questions
    assert (paragraphs.low, paragraphs.high) == pytest.approx(wilson(0, 10))
    # Four languages of the same ten items are no more than ten draws; of ten items each, as sure as their parts allow.
    parallel = stratified_mean(wrong, codes // 10, codes % 10)
    assert (parallel.low, parallel.high) == pytest.approx(wilson(0, 10))
    alone = clustered_mean(np.zeros(10), [None] * 10)
    reach = wilson(0, 10)[1]
    apart = independent_mean([alone] * 4, 0.0)
    assert apart.low == 0.0
    assert apart.high == pytest.approx(reach / 2)
    half = independent_mean([alone, clustered_mean(np.ones(10), [None] * 10)], 0.5)
    assert (half.low, half.high) == pytest.approx((0.5 - reach / 2, 0.5 + reach / 2))
    # What is all the same and neither right nor wrong says nothing of its spread.
    assert mean_of_codes(np.full(40, 0.3), codes).low is None


def test_item_8_bounds_of_constant_means_hold_as_often_as_they_say() -> None:
    draws = np.random.default_rng(1)
    for p, count, languages in ((0.02, 12, 5), (0.002, 60, 3), (0.995, 40, 4)):
        seen = draws.binomial(count, p, size=(4000, languages)) / count
        constant = [own for own in seen if set(own) <= {0.0, 1.0}]
        missed = 0
        for own in constant:
            parts = [clustered_mean(np.full(count, value), [None] * count) for value in own]
            found = independent_mean(parts, float(own.mean()))
            assert found.low is not None
            assert found.high is not None
            missed += not found.low <= p <= found.high
        assert constant
        assert missed / len(seen) <= 0.05


def test_item_8_one_unknown_error_leaves_the_ranks_of_others_their_intervals() -> None:
    totals = [Field(value=50.0 + place % 7 / 10, se=2.0) for place in range(499)]
    totals.append(Field(value=100.0))
    found = ranks(totals)
    assert found[499] == {"rank": "1", "range": "1–500", "group": "A"}
    assert {one["range"] for one in found[:499]} == {"1–500"}
    assert {one["group"] for one in found} == {"A"}
    # Without any error there is nothing to say but the order.
    assert {one["range"] for one in ranks([Field(value=50.0), Field(value=60.0)])} == {""}


def test_item_8_a_score_without_spread_is_as_sure_as_its_interval() -> None:
    sure, all_right = Field(value=60.0, se=1.0), Field(value=100.0, se=0.0, interval=(56.6, 100.0))
    assert [one["range"] for one in ranks([sure, all_right])] == ["1–2", "1–2"]
    assert [one["range"] for one in ranks([sure, Field(value=100.0, se=0.0, interval=(99.0, 100.0))])] == [
        "2–2",
        "1–1",
    ]


def test_item_8_tied_with_the_best_where_no_test_says_otherwise() -> None:
    assert tied_with_best([0.9, 0.8, 0.7], [None, None, 0.001]) == [True, True, False]


def _classes(html: str, text: str) -> set[str]:
    """Return the colours of the fields with a text."""
    return set(re.findall(rf'<td class="n ([a-z]+\d?)"[^>]*>{re.escape(text)}[~*]?<', html))


def test_item_8_a_score_has_one_colour_whatever_else_its_column_holds() -> None:
    rows = [("narrow", (42.9, 43.1)), ("wide", (42.9, 99.0)), ("low", (3.0, 42.9))]
    found = [render(heatmap(name, ["a", "b"], [HeatRow(label="en", values=values)])) for name, values in rows]
    assert [_classes(html, "42.9") for html in found] == [{"h3"}] * 3
    assert all('class="key h8"' in html for html in found)


def test_item_8_no_colour_differs_inside_the_noise() -> None:
    scores, reaches = [54.0, 49.0, 52.0, 46.0, 81.0, None], [6.0, 6.0, 6.0, 6.0, 4.0, None]
    mean = (54.0 + 49.0 + 52.0 + 46.0) / 4
    assert levels(scores, reaches) == [mean, mean, mean, mean, 81.0, None]
    # The best of a band is measurably better than the first of the next one.
    assert levels([90.0, 80.0, 70.0], [6.0, 6.0, 6.0]) == [90.0, 80.0, 70.0]
    assert levels([90.0, 83.0, 76.0], [6.0, 6.0, 6.0]) == [86.5, 86.5, 76.0]
    # Where no interval is known, a score is coloured as it is.
    assert levels([54.0, 52.0], [None, None]) == [54.0, 52.0]
    # A difference that may be 0 has the colour of 0.
    row = HeatRow(label="en", values=(3.0, 12.0, -12.0), reaches=(4.0, 4.0, 4.0))
    html = render(heatmap("Differences", ["a", "b", "c"], [row], ramp="difference"))
    assert [_classes(html, text) for text in ("3.0", "12.0", "-12.0")] == [{"d4"}, {"d7"}, {"d1"}]


def test_item_8_scores_at_chance_have_the_first_colour(sample_run: Run) -> None:
    html = render_html([sample_run])
    fields = re.findall(r'<td class="n (\w+)" title="xcopa [^"]*">50\.0', html)
    assert len(fields) >= 8
    assert set(fields) == {"h0"}
    assert "chance, or 0 where it is not known" in html


def test_item_8_error_rates_and_gaps_have_colours_of_their_own() -> None:
    rows = (("en", (Score(value=0.95, interval=(0.9, 1.0)), Score(value=0.05, interval=(0.0, 0.1)))),)
    html = render(error_heatmap(Matrix(title="T", corner="c", columns=("a", "b"), rows=rows, heat=True)))
    assert [_classes(html, text) for text in ("95.0", "5.0")] == [{"e8"}, {"e0"}]
    assert not re.search(r"class=\"[^\"]*\bh\d", html)


def test_item_8_the_board_colours_from_chance_to_100() -> None:
    board = gather(published="xtreme_r", catalog=open_session().catalog)
    html = board_page(board)
    columns = {column.id: column.low for column in standing(board.content()).columns}
    assert (columns["t:xcopa"], columns["t:xquad"]) == (50.0, 0.0)
    # Table 4: mBERT has 56.1 in XCOPA, where guessing has 50.
    assert _classes(html, "56.1") == {"h1"}
    assert 'id="legend-score"' in html
    assert 'class="key e8"' in html


@pytest.mark.parametrize(
    ("name", "text"),
    [("xquad.tsv", "model\ten\tde\nA\t80\t70\n"), ("scores.tsv", "model\txquad\nA\t75\n")],
)
def test_item_8_a_file_of_a_task_with_two_scores_names_the_metric(
    name: str, text: str, tmp_path: Path, cli: Cli
) -> None:
    (tmp_path / name).write_text(text, encoding="utf-8")
    given = ("board", "--from-scores", tmp_path / name, "-o", tmp_path / "board.html")
    status, _, err = cli(*given)
    assert status != 0
    assert "xquad_f1 or xquad_em" in err
    assert not (tmp_path / "board.html").exists()
    (tmp_path / "xquad_f1.tsv").write_text("model\ten\tde\nA\t80\t70\n", encoding="utf-8")
    (tmp_path / "mlqa_em.tsv").write_text("model\ten\nA\t40\n", encoding="utf-8")
    named = ("--from-scores", tmp_path / "xquad_f1.tsv", "--from-scores", tmp_path / "mlqa_em.tsv")
    assert cli("board", *named, "-o", tmp_path / "board.html")[0] == 0


def test_item_8_systems_without_an_overall_score_keep_their_order() -> None:
    task = TaskColumn(task="a", metrics=("f1",), headline=("f1",), languages=("en", "sw"))
    other = TaskColumn(task="b", metrics=("f1",), headline=("f1",), languages=("en", "sw"))
    scores = [BoardScore(task="a", metric="f1", mean=50.0, is_whole=whole) for whole in (False, True)]
    systems = tuple(
        System(label=label, origin="run", scores=(score,)) for label, score in zip("xy", scores, strict=True)
    )
    board = Board(title="T", tasks=(task, other), systems=systems, languages={})
    # The script, which sorts by the value alone, leaves them as they are.
    assert [row.label for row in standing(board.content()).rows] == ["x", "y"]
