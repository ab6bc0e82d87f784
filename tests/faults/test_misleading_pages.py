"""Pages that show what was measured: means as printed, ranks that the errors allow, colours that mean something."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

from harness.analysis.significance import Difference
from harness.reporting.blocks.number import Score, heat_class, levels
from harness.reporting.comparison.comparison import _coloured
from harness.reporting.documents import html_text
from harness.reporting.overview.glance import glance
from harness.reporting.overview.matrix import Matrix
from harness.reporting.overview.overview import task_chart
from harness.reporting.overview.summary import read_material
from harness.reporting.overview.summary_blocks import error_table, system_table
from harness.reporting.render.page import html_blocks
from harness.running.manifest import published_documents
from harness.running.session import open_session
from harness.statistics import (
    clustered_mean,
    independent_mean,
    mean_of_codes,
    stratified_mean,
    wilson,
)
from harness.storage.results import SuiteSummary
from harness.storage.run_folder import Run
from harness_board.document import Board, Score as BoardScore, System, TaskColumn
from harness_board.rendering import standing

from ..conftest import Cli

DESCRIPTION = re.compile(r"<desc[^>]*>([^<]*)</desc>")


@pytest.fixture
def sample_run(cli: Cli, tmp_path: Path) -> Run:
    """A run of two tasks on the sample, with what was published on their suite."""
    given = ("--tasks", "udpos,xcopa", "--model", "baseline:majority", "--data", "sample")
    status, _, err = cli("eval", *given, "--output", tmp_path / "run")
    assert status == 0, err
    run = Run(tmp_path / "run")
    published = published_documents(open_session().catalog, [SuiteSummary(suite="xtreme_r")])
    run.manifest = run.manifest.changed(published=published)
    return run


def test_a_published_mean_is_the_printed_one_and_says_what_is_missing(sample_run: Run) -> None:
    material = read_material([sample_run])
    chart = task_chart(material, glance([sample_run], material.summary).tasks)
    udpos, xcopa = ({mark.label: mark.value for mark in row.marks} for row in chart.rows)
    # Table 4 of XTREME-R prints 70.9; of its 38 languages only Bulgarian (85.2) could be read.
    assert udpos["mBERT"] == pytest.approx(70.9)
    # Table 16 prints all eleven, whose mean is 56.1: the mean is over the eight of the run.
    assert xcopa["mBERT"] == pytest.approx(57.35)
    table = system_table(material)
    assert table is not None
    rows = {str(row.label): [str(field) for field in row.fields] for row in table.rows}
    assert rows["published mBERT"][0] == "70.9~"
    assert rows["languages"] == ["9 of 38", "8 of 11"]


def test_means_of_items_that_are_all_right_or_all_wrong_have_bounds() -> None:
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


def test_bounds_of_constant_means_hold_as_often_as_they_say() -> None:
    draws = np.random.default_rng(1)
    for p, count, languages in ((0.02, 12, 5), (0.002, 60, 3), (0.995, 40, 4)):
        seen = draws.binomial(count, p, size=(4000, languages)) / count
        constant = [shares for shares in seen if set(shares) <= {0.0, 1.0}]
        assert constant
        missed = 0
        for shares in constant:
            parts = [clustered_mean(np.full(count, share), [None] * count) for share in shares]
            bounds = independent_mean(parts, float(shares.mean()))
            assert bounds.low is not None and bounds.high is not None
            missed += not bounds.low <= p <= bounds.high
        assert missed / len(seen) <= 0.05


def _classes(html: str, text: str) -> set[str]:
    """Return the colours of the fields with a text."""
    return set(re.findall(rf'<td class="n ([a-z]+\d?)"[^>]*>{re.escape(text)}[~*]?<', html))


def _page(*fields: Score) -> str:
    """Return error rates in one language as a page shows them."""
    columns = tuple(f"test {number}" for number in range(len(fields)))
    matrix = Matrix(title="T", corner="c", columns=columns, rows=(("en", fields),), heat=True)
    return str(html_blocks([error_table(matrix)]))


def _levels(values: list[float | None], reach: float | None = 6.0) -> list[float | None]:
    ends = [None if value is None or reach is None else (value - reach, value + reach) for value in values]
    return levels([Score(value, interval) for value, interval in zip(values, ends, strict=True)])


def test_no_colour_differs_inside_the_noise() -> None:
    mean = (54.0 + 49.0 + 52.0 + 46.0) / 4
    assert _levels([54.0, 49.0, 52.0, 46.0, 81.0, None]) == [mean, mean, mean, mean, 81.0, None]
    # The best of a band is measurably better than the first of the next one.
    assert _levels([90.0, 80.0, 70.0]) == [90.0, 80.0, 70.0]
    assert _levels([90.0, 83.0, 76.0]) == [86.5, 86.5, 76.0]
    # Where no interval is known, a score is coloured as it is.
    assert _levels([54.0, 52.0], None) == [54.0, 52.0]
    unsure = [Score(value=value, interval=(value - 0.06, value + 0.06)) for value in (0.54, 0.5, 0.81)]
    html = _page(*unsure)
    assert [_classes(html, text) for text in ("54.0", "50.0", "81.0")] == [{"e4"}, {"e4"}, {"e7"}]
    # A difference that may be 0 has the colour of 0.
    found = [Difference(value=v, low=v - 0.04, high=v + 0.04) for v in (0.03, 0.12, -0.12)]
    assert [_coloured(own).shade for own in found] == ["d4", "d7", "d1"]


def test_scores_at_chance_have_the_first_colour(sample_run: Run) -> None:
    html = html_text([sample_run])
    scores = html[html.index('id="scores"') : html.index('id="languages"')]
    fields = re.findall(r'<td class="n (\w+)">50\.0', scores)
    assert len(fields) >= 8
    assert set(fields) == {"h0"}
    assert "chance, or 0 where it is not known" in html


def test_a_score_has_one_colour_whatever_else_its_column_holds() -> None:
    pages = [_page(Score(value=0.429), Score(value=other)) for other in (0.431, 0.99, 0.03)]
    assert [_classes(html, "42.9") for html in pages] == [{"e3"}] * 3
    assert all('class="key e8"' in html for html in pages)
    assert heat_class(42.9, 0.0, 100.0) == "h3"
    # Error rates have colours of their own.
    html = _page(Score(value=0.95, interval=(0.9, 1.0)), Score(value=0.05, interval=(0.0, 0.1)))
    assert [_classes(html, text) for text in ("95.0", "5.0")] == [{"e8"}, {"e0"}]
    assert not re.search(r"class=\"[^\"]*\bh\d", html)


@pytest.mark.parametrize(
    ("name", "text"),
    [("xquad.tsv", "model\ten\tde\nA\t80\t70\n"), ("scores.tsv", "model\txquad\nA\t75\n")],
)
def test_a_file_of_a_task_with_two_scores_names_the_metric(
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


def test_systems_without_an_overall_score_keep_their_order() -> None:
    task = TaskColumn(task="a", metrics=("f1",), headline=("f1",), languages=("en", "sw"))
    other = TaskColumn(task="b", metrics=("f1",), headline=("f1",), languages=("en", "sw"))
    scores = [BoardScore(task="a", metric="f1", mean=mean, is_whole=False) for mean in (40.0, 50.0)]
    systems = tuple(
        System(label=label, origin="run", scores=(score,)) for label, score in zip("xy", scores, strict=True)
    )
    board = Board(title="T", tasks=(task, other), systems=systems, languages={})
    # Scores over fewer languages are not comparable; the script keeps this order too.
    assert [row[0] for row in standing(board).rows] == ["x", "y"]
