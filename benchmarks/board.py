"""The board in a browser: how large it is, how fast it opens, how fast it filters and sorts.

``python -m benchmarks.board`` makes 500 systems x 10 tasks x 50 languages from a seed, opens the page in headless
Chromium, and prints the sizes of the code and of the page (and with ``--site`` of a site), the seconds until the first
scores are painted and until the table listens, and for several filters the milliseconds until their frame is painted
and the CPU time of the page for it, charts included. Rows out of sight are drawn when a reader scrolls to them.
Budgets: 100 kB of code, 1 s to the first content, 200 ms of CPU.
"""

from __future__ import annotations

import argparse
import random
import tempfile
import time
from pathlib import Path
from statistics import median
from typing import Any

from harness.cli import write_files
from harness.languages.table import known_languages
from harness.reporting.render.page import style
from harness_board.document import Board, Score, System, TaskColumn
from harness_board.rendering import board_page, board_style, script, site_pages

ARGUMENTS = (
    "--no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking "
    "--disable-component-update --disable-sync"
).split()
CHROMIUM = "/usr/bin/chromium"
CHANGES: tuple[dict[str, str], ...] = (
    {"q": "system 1"},
    {"q": ""},
    {"sort": "c:b", "dir": "d"},
    {"sort": "", "dir": ""},
    {"family": "Indo-European"},
    {"family": "", "agg": "worst"},
    {"agg": "gap"},
    {"agg": "", "size": "1000-10000"},
    {"size": "", "open": "a,b"},
    {"open": "", "tab": "language", "language": "sw"},
    {"tab": "task", "language": "", "task": "task5"},
    {"tab": "family", "task": ""},
    {"tab": "", "ci": "0"},
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
PAINTED = "performance.getEntriesByName('first-contentful-paint')[0]?.startTime ?? 0"


def synthetic_board(systems: int = 500, tasks: int = 10, languages: int = 50, *, seed: int = 7) -> Board:
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
    names = [column.task for column in columns]
    categories = {"a": tuple(names[: tasks // 2]), "b": tuple(names[tasks // 2 :])}
    return Board(
        title="Synthetic", tasks=columns, systems=tuple(made), languages=about, categories=categories
    )


def measure(path: Path, *, repeats: int = 3) -> dict[str, Any]:
    """Return the seconds to the first paint and until the page listens, and milliseconds of every change: medians."""
    from playwright.sync_api import sync_playwright

    painted: list[float] = []
    opened: list[float] = []
    changes: dict[str, list[tuple[float, float]]] = {}
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=CHROMIUM, headless=True, args=ARGUMENTS)
        for _ in range(repeats):
            page = browser.new_page()
            tools = page.context.new_cdp_session(page)
            tools.send("Performance.enable", {"timeDomain": "threadTicks"})
            start = time.perf_counter()
            page.goto(path.as_uri())
            page.evaluate("harnessBoard.shown().ranked.length")  # a page has loaded when its modules have run
            opened.append(time.perf_counter() - start)
            page.wait_for_timeout(1000)  # a reader sees the table before using a filter
            painted.append(float(page.evaluate(PAINTED)) / 1000)
            for update in CHANGES:
                before = _cpu(tools)
                frame = float(page.evaluate(MEASURE, update))
                page.wait_for_timeout(200)  # charts follow
                changes.setdefault(str(update), []).append((frame, (_cpu(tools) - before) * 1000))
            page.close()
        browser.close()
    return {
        "painted_s": median(painted),
        "open_s": median(opened),
        "changes_ms": {
            name: (median(frame for frame, _ in found), median(cpu for _, cpu in found))
            for name, found in changes.items()
        },
    }


def _cpu(tools: Any) -> float:
    """Return the seconds of CPU that the page's main thread has used."""
    metrics = {one["name"]: one["value"] for one in tools.send("Performance.getMetrics")["metrics"]}
    return float(metrics["TaskDuration"])


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--systems", type=int, default=500)
    parser.add_argument("--site", action="store_true", help="write a site, too, and print its size")
    given = parser.parse_args()
    made = synthetic_board(given.systems)
    html = board_page(made)
    code = len((script() + style() + board_style()).encode())
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "board.html"
        path.write_text(html, encoding="utf-8")
        found = measure(path)
        if given.site:
            texts = ((name, make()) for name, make in site_pages(made).items())
            pages = write_files(texts, Path(folder) / "site")
            size = sum(file.stat().st_size for file in pages)
            print(f"site          {size / 1e6:8.2f} MB   in {len(pages)} pages")
    print(f"code          {code / 1000:8.1f} kB   (budget 100)")
    print(f"page          {len(html.encode()) / 1e6:8.2f} MB")
    print(f"first paint   {found['painted_s']:8.2f} s    (budget 1)")
    print(f"listens       {found['open_s']:8.2f} s")
    for name, (frame, cpu) in found["changes_ms"].items():
        print(f"change  frame {frame:6.0f} ms   CPU {cpu:6.0f} ms (budget 200)   {name}")


if __name__ == "__main__":
    main()
