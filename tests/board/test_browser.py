"""The page in Chromium, from a file, under its own policy: every control, every address, no request, no fault."""

from __future__ import annotations

import csv
import io
import re
import time
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from benchmarks.results_repository import write_repository
from harness import UsageError
from harness.cli import write_files
from harness.reporting.render.page import style
from harness_board.document import Board, Score, System, TaskColumn
from harness_board.gathering import gather
from harness_board.rendering import board_page, board_style, script, site_pages, standing
from harness_board.repository_runs import read_repository
from tests.board.conftest import HOSTILE
from tests.board.sound_page import violations

Open = Callable[..., Any]
SHOWN = "[...harnessBoard.shown().ranked, ...harnessBoard.shown().partial]"


def _names(page: Any) -> list[str]:
    """Return the systems of the table, without the line that parts them."""
    found = page.locator("#board-rows th.name")
    return [str(text).split("\n")[0] for text in found.all_inner_texts()]


def _texts(page: Any, places: str) -> list[str]:
    return [str(text) for text in page.locator(places).all_inner_texts()]


def _until(page: Any, condition: str) -> None:
    """Wait for a condition; the page's policy does not let the driver poll it inside the page."""
    end = time.monotonic() + 60
    while not page.evaluate(condition):
        assert time.monotonic() < end, condition
        page.wait_for_timeout(20)


@pytest.fixture(scope="module")
def page_text(published: Board) -> str:
    return board_page(published)


def _synthetic(systems: int, languages: int = 50) -> Board:
    """Return a board of many systems whose scores overlap."""
    codes = tuple(f"l{number}" for number in range(languages))
    tasks = tuple(
        TaskColumn(task=f"t{number}", metrics=("m",), headline=("m",), languages=codes, source="l0")
        for number in range(2)
    )
    made = []
    for number in range(systems):
        values = {code: 40 + (number * 7 + place) % 50 for place, code in enumerate(codes)}
        mean = sum(values.values()) / len(values)
        scores = (
            Score(task=task.task, metric="m", mean=mean, se=1.0, by_language=dict(values)) for task in tasks
        )
        made.append(System(label=f"system {number}", origin="run", scores=tuple(scores)))
    about = {code: {"name": f"Language {code}", "family": "f", "script": "Latn"} for code in codes}
    return Board(title="Many", tasks=tasks, systems=tuple(made), languages=about)


def test_the_code_of_a_page_is_small() -> None:
    assert len((script() + style() + board_style()).encode()) < 100_000


# What is there without a script, and what the script makes of it ------------------------------------------


def test_a_page_is_readable_without_its_script(page_text: str, open_page: Open) -> None:
    page = open_page(page_text, java_script_enabled=False)
    assert _names(page)[:3] == ["XLM-R Large", "mBERT", "mT5-XXL"]  # 64.6°: not comparable
    assert _texts(page, "#board-rows tr:first-child td")[:2] == ["65.3", "79.2"]
    assert "without ranks" in page.inner_text("#plain")
    assert not page.locator("#controls, #tabs, #words").first.is_visible()


@pytest.mark.parametrize("language", [None, "sw"])
def test_the_script_keeps_the_order_and_the_scores_that_python_wrote(
    language: str | None, published: Board, hostile: Board, open_page: Open
) -> None:
    for board in (published, hostile):
        rows = standing(board, language=language).rows
        page = open_page(board_page(board), f"#/language/{language}" if language else "")
        shown = page.evaluate(
            f"{SHOWN}.map(({{system, total}}) => "
            "[system.label, total.value, total.star ? '°' : total.whole ? '' : '~'])"
        )
        assert [label for label, _, _ in shown] == [row[0] for row in rows]
        known = [f"{value:.1f}{sign}" if value is not None else "-" for _, value, sign in shown]
        assert known == [row[2] for row in rows]


# Tabs, chips and the history ------------------------------------------------------------------------------


def _tab(page: Any) -> str:
    return str(page.inner_text('[role="tab"][aria-selected="true"]'))


def test_tabs_switch_with_the_mouse_and_the_keyboard(page_text: str, open_page: Open) -> None:
    page = open_page(page_text)
    assert _texts(page, '[role="tab"]') == ["Overall", "By language", "By task", "By family", "Compare two"]
    page.click('[data-tab="family"]')
    assert _tab(page) == "By family"
    assert "Niger-Congo" in page.inner_text("#board-head")
    assert page.get_attribute("#panel", "aria-labelledby") == "tab-family"
    page.keyboard.press("ArrowLeft")
    assert _tab(page) == "By task"
    assert "bg" in _texts(page, "#board-head th")
    page.keyboard.press("End")
    assert _tab(page) == "Compare two"
    page.keyboard.press("ArrowRight")
    assert _tab(page) == "Overall"
    assert page.evaluate("document.activeElement.id") == "tab-overall"
    assert page.locator('[role="tab"][tabindex="0"]').count() == 1


def test_chips_show_filters_and_remove_them(page_text: str, open_page: Open) -> None:
    page = open_page(page_text)
    assert page.locator("#chips-active button").count() == 0
    page.fill("#search", "xlm")
    _until(page, f"{SHOWN}.length === 1")
    assert "1 of 7 systems" in page.inner_text("#count")
    page.select_option("[data-scope]", "family:Niger-Congo")
    page.click('[data-switch="ci"]')
    assert _texts(page, "#chips-active button") == [
        "“xlm” ×",
        "family: Niger-Congo ×",
        "no intervals ×",
        "remove all",
    ]
    page.click('[data-drop="family"]')
    assert "family" not in page.url and "q=xlm" in page.url
    assert page.input_value("[data-scope]") == ""
    page.click('#chips-active [data-drop*=","]')
    assert page.input_value("#search") == ""
    assert len(_names(page)) == 7


def test_back_undoes_one_filter_at_a_time_and_a_reload_keeps_them(page_text: str, open_page: Open) -> None:
    page = open_page(page_text)
    page.click('[data-agg="gap"]')
    page.locator("#search").press_sequentially("mb", delay=80)
    _until(page, "location.hash.includes('q=mb')")
    page.reload()
    _until(page, "window.harnessBoard !== undefined")
    assert page.input_value("#search") == "mb"
    assert page.get_attribute('[data-agg="gap"]', "aria-pressed") == "true"
    page.go_back()
    _until(page, "!location.hash.includes('q=')")
    assert page.input_value("#search") == "", "letters typed one after another are one step"
    assert page.get_attribute('[data-agg="gap"]', "aria-pressed") == "true"
    page.go_back()
    _until(page, "document.querySelector('[data-agg=\"average\"]').getAttribute('aria-pressed') === 'true'")
    page.go_forward()
    _until(page, "document.querySelector('[data-agg=\"gap\"]').getAttribute('aria-pressed') === 'true'")


def test_an_address_restores_the_view(page_text: str, open_page: Open) -> None:
    page = open_page(page_text, "#/task/xquad?sort=l%3Ahi&dir=a&metric=f1")
    assert page.input_value('[data-key="metric"]') == "f1"
    known = [row for row in _texts(page, "#board-rows tr") if "XLM-R" in row]
    assert "55.0" in known[0]
    page.click('[data-tab="language"]')
    page.click('.picker a[href*="/sw"]')
    _until(page, "location.hash.includes('/language/sw')")
    _until(page, "document.querySelector('.picker [aria-current]').textContent.startsWith('Swahili')")
    assert "72.7" in page.inner_text("#board-rows")
    page.evaluate("location.hash = '#/task/<b>'")
    _until(page, "document.getElementById('basis').textContent.includes('is not on this board')")


# The table ------------------------------------------------------------------------------------------------


def test_rank_intervals(hostile: Board, open_page: Open) -> None:
    page = open_page(board_page(hostile))
    assert _texts(page, "#board-rows td.rank") == ["1", "2", "3"]
    near = Board(
        title="Near",
        tasks=hostile.tasks[:1],
        languages=hostile.languages,
        systems=tuple(
            System(
                label=label,
                origin="run",
                scores=(Score(task="xnli", metric="accuracy", mean=mean, se=se),),
            )
            for label, mean, se in (("a", 60.0, 1.0), ("b", 59.0, 1.0), ("c", 40.0, 1.0), ("d", 20.0, None))
        ),
    )
    page = open_page(board_page(near))
    # What has no known error is separable from nothing.
    assert _texts(page, "#board-rows td.rank") == ["1–3", "1–3", "3–4", "1–4"]
    assert "60.0 ±2.0" in page.inner_text("#board-rows")
    assert page.locator("#board-rows .total .bar b").count() == 3
    page.click('[data-switch="ci"]')
    assert "±" not in page.inner_text("#board-rows")
    assert page.locator("#board-rows .bar b").count() == 0


def test_published_systems_of_near_scores_share_their_ranks(page_text: str, open_page: Open) -> None:
    page = open_page(page_text, "#/task/xcopa")
    # People: no number of items is known. Then 77.8, 74.9, 69.2, and three within 1.8 points, each of 500 items.
    assert _texts(page, "#board-rows td.rank") == ["1–7", "1–3", "1–3", "3–4", "4–7", "4–7", "4–7"]
    page = open_page(page_text, "#/compare?a=mBERT · translate_train&b=mBERT · translate_train_all")
    assert "within the noise of so many items: xnli, xcopa" in page.inner_text(".verdict")


def test_a_language_ranks_by_the_tasks_that_its_systems_have(page_text: str, open_page: Open) -> None:
    page = open_page(page_text, "#/language/sw")
    # TyDi QA of mT5 and of translated training is not comparable with the others.
    assert _texts(page, "#board-rows td.rank") == ["1", "2–3", "2–4", "3–4", "5"]
    tasks = page.evaluate("harnessBoard.shown().basis.tasks")
    assert 0 < len(tasks) < page.evaluate("harnessBoard.shown().tasks.length")
    said = page.inner_text("#basis")
    assert f"{len(tasks)} tasks that all" in said and all(task in said for task in tasks)
    means = page.evaluate(
        """(tasks) => harnessBoard.shown().ranked.map((row) =>
        tasks.reduce((sum, task) => sum + row.tasks[task].value, 0) / tasks.length)""",
        tasks,
    )
    assert page.evaluate("harnessBoard.shown().ranked.map((row) => row.total.value)") == pytest.approx(means)
    assert means == sorted(means, reverse=True)


def test_partial_runs_rank_on_the_languages_that_they_share(hostile: Board, open_page: Open) -> None:
    systems = tuple(
        System(
            label=label,
            origin="run",
            scores=(Score(task="xnli", metric="accuracy", mean=mean, by_language=values, is_whole=False),),
        )
        for label, mean, values in (("a", 50.0, {"en": 50.0}), ("b", 40.0, {"en": 60.0, "fr": 20.0}))
    )
    task = TaskColumn(
        task="xnli", metrics=("accuracy",), headline=("accuracy",), languages=("en", "fr", "sw"), source="en"
    )
    about = {code: {"name": code, "family": "f", "script": "Latn"} for code in task.languages}
    board = Board(title="T", tasks=(task,), systems=systems, languages=about)
    page = open_page(board_page(board))
    assert list(zip(_texts(page, "#board-rows td.rank"), _names(page), strict=True)) == [
        ("1", "b"),
        ("2", "a"),
    ]
    assert "languages that all systems shown" in page.inner_text("#basis")
    assert [row[0] for row in standing(board).rows] == ["b", "a"]


def test_partial_results_stay_below_the_line_in_one_order(page_text: str, open_page: Open) -> None:
    page = open_page(page_text)
    line = page.locator("#board-rows tr.line")
    assert (
        line.inner_text().strip()
        == "Partial results: not comparable, not ranked (5), those with most tasks first"
    )
    before = _names(page)
    page.click('[data-sort="total"]')
    assert page.get_attribute("th.total", "aria-sort") == "ascending"
    assert _names(page) == [*reversed(before[:2]), *before[2:]]
    page.click('[data-sort="total"]')
    assert _names(page) == before
    page.click('[data-sort="c:classification"]')
    assert page.locator("th[aria-sort]").count() == 1
    assert _names(page)[:2] == ["XLM-R Large", "mBERT"] and _names(page)[2] == "Human"
    page.select_option('[data-key="sort"]', "year")
    assert _names(page)[:2] == ["XLM-R Large", "mBERT"]
    page.click('[data-switch="partial"]')
    assert len(_names(page)) == 2 and line.count() == 0


def test_categories_unfold_into_their_tasks(page_text: str, open_page: Open) -> None:
    page = open_page(page_text)
    unfold = page.locator('[data-unfold="question_answering"]')
    assert unfold.get_attribute("aria-expanded") == "false"
    unfold.click()
    heads = page.evaluate("harnessBoard.shown().columns.map((column) => column.id)")
    assert heads[2:6] == ["c:question_answering", "t:xquad", "t:mlqa", "t:tydiqa"]
    first = page.evaluate("harnessBoard.shown().ranked[0].cells.slice(2, 6).map((cell) => cell.value)")
    assert first[0] == pytest.approx(sum(first[1:]) / 3)
    assert unfold.get_attribute("aria-expanded") == "true"
    assert page.evaluate("document.activeElement.dataset.unfold") == "question_answering"
    unfold.click()
    assert page.evaluate("harnessBoard.shown().columns.length") == 4


def test_boxes_show_what_is_known(page_text: str, open_page: Open) -> None:
    page = open_page(page_text)
    boxes = page.locator("#board-rows .boxes")
    assert boxes.first.locator(".full").count() == 10
    known = page.evaluate(f"{SHOWN}.map((row) => row.known)")
    assert [boxes.nth(at).locator("i.full, i.half").count() for at in range(7)] == [
        sum(level > 0 for level in row) for row in known
    ]
    assert "10/10 tasks known" in (boxes.first.get_attribute("aria-label") or "")


def test_names_and_heads_stay_in_sight(open_page: Open) -> None:
    page = open_page(board_page(_synthetic(120)), "#/task/t0", viewport={"width": 900, "height": 600})
    assert page.get_attribute("#board", "aria-rowcount") == "121"
    assert page.locator("#board-rows tr").count() < 120
    place = "(name) => [...Object.values(document.querySelector(name).getBoundingClientRect().toJSON())].slice(0, 2)"
    left, top = page.evaluate(place, "#board-rows th.name")[0], page.evaluate(place, "#board-head th.name")[1]
    # Rows that wait are drawn as the reader comes to them.
    for _ in range(10):
        page.evaluate("document.querySelector('.board-scroll').scrollTo(900, 1e6)")
        page.wait_for_timeout(60)
    assert page.locator("#board-rows tr").count() == 120
    assert page.evaluate(place, "#board-rows th.name")[0] == left
    assert page.evaluate(place, "#board-head th.name")[1] == pytest.approx(top, abs=2)


def test_a_system_opens_what_is_stated_about_it(page_text: str, open_page: Open) -> None:
    page = open_page(page_text)
    page.locator("[data-system]").first.click()
    shown = page.inner_text("tr.about")
    assert "6.3T tokens" in shown and "Conneau et al. 2020" in shown
    assert page.locator("[data-system]").first.get_attribute("aria-expanded") == "true"
    page.go_back()
    _until(page, "document.querySelector('tr.about') === null")


def test_two_systems_are_compared(hostile: Board, open_page: Open) -> None:
    page = open_page(board_page(hostile), "#/compare")
    page.select_option('[data-key="a"]', label="plain · zero shot transfer")
    page.select_option('[data-key="b"]', index=0)
    rows = _texts(page, "#other tbody tr")
    # 60 against 68, each with an error of 1: the difference is 5.7 errors.
    assert "+8.0" in rows[0] and "5.2 to 10.8" in rows[0] and "<0.001" in rows[0]
    assert "plain is measurably higher in 2 and lower in 0 of 2 tested tasks" in page.inner_text(".verdict")
    page.click('[data-open="xnli"]')
    assert page.locator("#other tbody tr").count() == 4


# Charts ---------------------------------------------------------------------------------------------------


def test_charts_show_every_system_and_have_a_table(page_text: str, open_page: Open) -> None:
    page = open_page(page_text)
    page.wait_for_selector("#rail figure")
    assert _texts(page, "#rail h2") == ["English against the rest", "Average against size"]
    assert (
        page.locator("#rail figure").nth(1).locator("circle").count() == 2
    )  # mT5's average is not comparable
    assert page.locator("#rail figure").nth(1).locator("tbody tr").count() == 2
    boxes = page.evaluate(
        """[...document.querySelectorAll('#rail figure')].map((one) => [...one.querySelectorAll('.label')]
        .map((text) => text.getBBox()).map((box) => [box.x, box.y + 2, box.x + box.width, box.y + box.height - 2]))"""
    )
    for labels in boxes:
        assert len(labels) >= 2
        for at, (a, b, c, d) in enumerate(labels):
            assert all(c <= e or g <= a or d <= f or h <= b for e, f, g, h in labels[at + 1 :])
    page.fill("#search", "human")
    _until(page, "document.getElementById('rail').hidden")


# Files ----------------------------------------------------------------------------------------------------


def test_what_is_shown_can_be_saved(published: Board, page_text: str, open_page: Open) -> None:
    page = open_page(page_text)
    with page.expect_download() as saved:
        page.click('[data-deed="csv"]')
    rows = list(csv.DictReader(io.StringIO(Path(saved.value.path()).read_text(encoding="utf-8"))))
    assert [row["system"] for row in rows] == _names(page)
    for system in published.systems:
        setting = f"{system.protocol} {system.view}".strip().replace("_", " ")
        [row] = [row for row in rows if (row["system"], row["setting"]) == (system.label, setting)]
        for task in published.tasks:
            found = [
                score.mean
                for score in system.scores
                if score.task == task.task and score.metric in task.headline
            ]
            if len(found) == len(task.headline) and None not in found:
                mean = sum(value for value in found if value is not None) / len(found)
                assert float(row[task.task]) == pytest.approx(mean, abs=0.001)
            else:
                assert row[task.task] == ""
    with page.expect_download() as saved:
        page.click('[data-deed="latex"]')
    table = Path(saved.value.path()).read_text(encoding="utf-8")
    assert r"XLM-R Large (zero shot transfer) & \textbf{65.3}" in table
    page.click('[data-deed="link"]')
    _until(page, "document.getElementById('said').textContent !== ''")


def _pages_of(pdf: bytes) -> list[str]:
    """Return the texts of the pages of a PDF as Chromium writes it: its fonts map glyphs to characters."""
    objects = {int(number): body for number, body in re.findall(rb"(\d+) 0 obj\s(.*?)endobj", pdf, re.DOTALL)}

    def stream(number: int) -> bytes:
        head, _, rest = objects[number].partition(b"stream")
        data = rest.lstrip(b"\r\n").rpartition(b"endstream")[0]
        return zlib.decompress(data) if b"FlateDecode" in head else data

    def characters(font: int) -> dict[int, str]:
        found = re.search(rb"/ToUnicode (\d+) 0 R", objects[font])
        table, known = (stream(int(found[1])) if found else b""), {}
        for block in re.findall(rb"beginbfchar(.*?)endbfchar", table, re.DOTALL):
            for glyph, text in re.findall(rb"<(\w+)>\s*<(\w+)>", block):
                known[int(glyph, 16)] = bytes.fromhex(text.decode()).decode("utf-16-be")
        for block in re.findall(rb"beginbfrange(.*?)endbfrange", table, re.DOTALL):
            for low, high, text in re.findall(rb"<(\w+)>\s*<(\w+)>\s*<(\w+)>", block):
                for at in range(int(low, 16), int(high, 16) + 1):
                    known[at] = chr(int(text, 16) + at - int(low, 16))
        return known

    texts = []
    for _, body in sorted(objects.items()):
        if not re.search(rb"/Type\s*/Page\b", body):
            continue
        fonts = {name: characters(int(at)) for name, at in re.findall(rb"/(F\d+) (\d+) 0 R", body)}
        content = re.search(rb"/Contents (\d+) 0 R", body)
        assert content is not None
        text = ""
        font: dict[int, str] = {}
        for name, glyphs in re.findall(rb"/(F\d+) [\d.]+ Tf|<(\w+)> Tj", stream(int(content[1]))):
            font = fonts[name] if name else font
            text += "".join(font.get(int(glyphs[at : at + 4], 16), "") for at in range(0, len(glyphs), 4))
        texts.append(text)
    return texts


@pytest.mark.parametrize("address", ["", "#/task/t0"])
def test_paper_has_all_rows_and_heads_on_every_page(address: str, open_page: Open, tmp_path: Path) -> None:
    page = open_page(board_page(_synthetic(150)), address)
    page.wait_for_timeout(200)
    pdf = page.pdf(prefer_css_page_size=True)
    assert len(pdf) < 1_000_000
    assert b"/MediaBox [0 0 841" in pdf.replace(b".92", b"").replace(b".8898", b""), "landscape A4"
    texts = _pages_of(pdf)
    with_rows = [text for text in texts if re.search(r"system \d", text)]
    assert len(with_rows) > 2
    for text in with_rows:
        assert "System" in text and "Average" in text and "Known" in text
    assert len({name for text in texts for name in re.findall(r"system \d+", text)}) >= 140
    if address:
        assert all("l49" in text for text in with_rows), "the last column is not cut"


# Why ------------------------------------------------------------------------------------------------------


def test_a_bucket_leads_to_its_examples(hostile: Board, open_page: Open) -> None:
    page = open_page(board_page(hostile))
    page.click('[data-tab="why"]')
    assert page.locator("#other svg[role=img]").count() == 1
    page.click('[data-bucket="XL"]')
    shown = page.locator("#other article")
    assert shown.locator("dt").all_inner_texts()[:4] == ["premise", "hypothesis", "context", "reference"]
    assert shown.locator(".text[dir=auto][lang=sw]").count() >= 5
    assert "show all 100,000 characters" in shown.inner_text()
    assert "⟦U+202E⟧" in shown.inner_text()
    assert violations(page) == []
    page.reload()
    _until(page, "document.querySelector('#other article') !== null")
    page.click('[data-kind="pairwise"]')
    assert "0.040" in page.inner_text("#other table") and "10.0" in page.inner_text("#other table")
    assert "Difference: plain minus <img" in page.inner_text("#other")
    page.click('[data-kind="data"]')
    assert page.locator('[data-kind="data"]').get_attribute("aria-pressed") == "true"


def test_texts_never_become_markup(hostile: Board, open_page: Open) -> None:
    page = open_page(board_page(hostile))
    key = page.get_attribute("#board-rows tr:last-child [data-system]", "data-system")
    states: tuple[dict[str, Any], ...] = ({}, {"sys": key}, {"tab": "task", "task": "xnli"},
        {"tab": "why", "kind": "data"}, {"kind": "pairwise"}, {"tab": "compare"},
        {"tab": "", "q": HOSTILE})  # fmt: skip
    for update in states:
        page.evaluate("(update) => harnessBoard.draw(update)", update)
        assert page.locator("main img").count() == 0
        assert "\u202e" not in page.inner_text("body")
        assert page.title().startswith("Board <img")


# Everyone -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1440, 390])
def test_no_barrier_is_found(scheme: str, width: int, page_text: str, open_page: Open) -> None:
    page = open_page(page_text, color_scheme=scheme, viewport={"width": width, "height": 900})
    page.wait_for_selector("#rail figure")
    for update in ({}, {"open": "retrieval", "q": "m"}, {"tab": "language", "language": "ar"},
                   {"tab": "task", "task": "xnli"}, {"tab": "family"}, {"tab": "compare"}):  # fmt: skip
        page.evaluate("(update) => harnessBoard.draw(update)", update)
        assert violations(page) == [], update
        assert page.evaluate("document.documentElement.scrollWidth") <= width, update


def test_languages_have_their_own_names(page_text: str, open_page: Open) -> None:
    page = open_page(page_text, "#/language/ar")
    own = page.locator('.picker bdi[lang="ar"]')
    assert own.inner_text() == "العربية"
    assert page.locator('.picker bdi[lang="ja"]').inner_text() == "日本語"


def test_the_pages_of_a_site_lead_to_the_board(published: Board, browser: Any, tmp_path: Path) -> None:
    assert (
        len(write_files(((name, make()) for name, make in site_pages(published).items()), tmp_path))
        == 1 + 10 + 50
    )
    sizes = {path.name: path.stat().st_size for path in tmp_path.iterdir()}
    assert max(size for name, size in sizes.items() if name != "index.html") < 50_000
    page = browser.new_context(java_script_enabled=False).new_page()
    page.goto((tmp_path / "language-sw.html").as_uri())
    assert page.inner_text("h1") == "Swahili" and "72.7" in page.inner_text("#board-rows")
    page = browser.new_page()
    page.goto((tmp_path / "task-xnli.html").as_uri())
    page.wait_for_url("**/index.html#/task/xnli")
    assert "92.8" in page.inner_text("#board-rows")


def test_a_name_that_is_no_file_name_makes_no_page(published: Board) -> None:
    board = Board(
        title="T",
        tasks=(),
        systems=published.systems,
        languages={"../x": {"name": "x", "family": "", "script": ""}},
    )
    with pytest.raises(UsageError, match="cannot be used"):
        site_pages(board)


@pytest.mark.thorough
def test_the_page_stays_usable_with_200_models(tmp_path: Path, open_page: Open) -> None:
    write_repository(tmp_path, models=200, tasks=3, languages=8)
    page_text = board_page(gather(stored=read_repository(tmp_path)))
    for width in (1440, 390):
        page = open_page(page_text, viewport={"width": width, "height": 900})
        assert page.evaluate("harnessBoard.shown().ranked.length") == 200
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        page.fill('input[type="search"]', "model-123")
        _until(page, "harnessBoard.shown().ranked.length === 1")
        assert page.locator("#board-rows th.name").all_inner_texts()[0].startswith("west/model-123")
