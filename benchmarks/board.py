"""The board in a browser: how large it is, how fast it opens, how fast a filter shows.

``python -m benchmarks.board`` makes 200 systems x 10 tasks x 50 languages from a seed, opens the page in headless
Chromium, and prints the size of the code and of the page, the seconds until the table is shown and listens, and the
slowest of several filters, each until its frame is painted. Budgets: 100 kB, 1 s, 100 ms.
"""

from __future__ import annotations

import argparse
import random
import tempfile
import time
from pathlib import Path
from statistics import median
from typing import Any

from harness.languages.table import known_languages
from harness.reporting.page import style
from harness_board.document import Board, Score, System, TaskColumn
from harness_board.rendering import board_page, board_style, script

ARGUMENTS = (
    "--no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking "
    "--disable-component-update --disable-sync"
).split()
CHROMIUM = "/usr/bin/chromium"
FILTERS: tuple[dict[str, str], ...] = (
    {"q": "system 1"},
    {"q": ""},
    {"family": "Indo-European"},
    {"family": "", "agg": "worst"},
    {"agg": "gap"},
    {"agg": "", "pmin": "500"},
    {"pmin": "", "sort": "t:task3"},
    {"sort": "", "language": "sw"},
    {"language": "", "task": "task5"},
    {"q": "system 12"},
    {"q": "", "task": "", "cov": "50"},
)
# A frame's callback runs before it is painted; the message that it posts comes after.
MEASURE = """async (update) => {
  const start = performance.now();
  harnessBoard.draw(update);
  document.body.offsetHeight;
  await new Promise((done) => requestAnimationFrame(() => {
    const channel = new MessageChannel();
    channel.port1.onmessage = done;
    channel.port2.postMessage(0);
  }));
  return performance.now() - start;
}"""


def synthetic_board(systems: int = 200, tasks: int = 10, languages: int = 50, *, seed: int = 7) -> Board:
    """Return a board of made-up scores with errors."""
    draw = random.Random(seed)
    known = {language.code: language for language in known_languages()}
    codes = tuple(sorted(known))[:languages]
    columns = tuple(
        TaskColumn(task=f"task{index}", metrics=("score",), headline=("score",), languages=codes, source="en")
        for index in range(tasks)
    )
    made = []
    for number in range(systems):
        scores = []
        for column in columns:
            values = {code: draw.uniform(20, 95) for code in codes}
            errors = {code: draw.uniform(0.3, 2) for code in codes}
            mean = sum(values.values()) / len(values)
            scores.append(
                Score(task=column.task, metric="score", mean=mean, se=0.3, by_language=values, se_by_language=errors)
            )  # fmt: skip
        facts = {"parameters": int(10 ** draw.uniform(7, 11))}
        year = draw.randint(2019, 2026)
        made.append(
            System(label=f"system {number}", origin="run", year=year, scores=tuple(scores), metadata=facts)
        )
    about = {
        code: {"name": known[code].name, "family": known[code].family, "script": known[code].script}
        for code in codes
    }
    return Board(title="Synthetic", tasks=columns, systems=tuple(made), languages=about)


def measure(path: Path, *, repeats: int = 3) -> dict[str, Any]:
    """Return the seconds to open a page, and the milliseconds of every filter: median and least of some repeats."""
    from playwright.sync_api import sync_playwright

    opened: list[float] = []
    filters: dict[str, list[float]] = {}
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=CHROMIUM, headless=True, args=ARGUMENTS)
        for _ in range(repeats):
            page = browser.new_page()
            start = time.perf_counter()
            page.goto(path.as_uri())
            page.evaluate("harnessBoard.shown().rows.length")  # a page has loaded when its modules have run
            opened.append(time.perf_counter() - start)
            page.wait_for_timeout(500)  # a reader sees the table before using a filter
            for update in FILTERS:
                filters.setdefault(str(update), []).append(float(page.evaluate(MEASURE, update)))
            page.close()
        browser.close()
    return {
        "open_s": median(opened),
        "filters_ms": {name: (median(values), min(values)) for name, values in filters.items()},
    }


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--systems", type=int, default=200)
    given = parser.parse_args()
    html = board_page(synthetic_board(given.systems))
    code = len((script() + style() + board_style()).encode())
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "board.html"
        path.write_text(html, encoding="utf-8")
        found = measure(path)
    print(f"code          {code / 1000:8.1f} kB   (budget 100)")
    print(f"page          {len(html.encode()) / 1e6:8.2f} MB")
    print(f"open          {found['open_s']:8.2f} s    (budget 1)")
    for name, (middle, best) in found["filters_ms"].items():
        print(f"filter        {middle:8.0f} ms   (budget 100; best {best:.0f})  {name}")


if __name__ == "__main__":
    main()
