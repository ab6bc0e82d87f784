"""The pages of benchmarks: one for every task, with all sections, and with the facts of the specs."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path

import pytest

from harness.running.session import open_session
from harness.specs.catalog import Catalog
from tests.docs.page import DOCS, blocks, page_name

pytestmark = pytest.mark.thorough

PAGES = sorted((DOCS / "benchmarks").glob("*.md"))
SECTIONS = [
    *("Protocol", "What is exact", "What differs from the paper, and why"),
    *("Traps", "Data and licence", "Try it", "Cite"),
]
PUBLISHED = ("xtreme_r_mbert", "xtreme_r_xlm_r_large", "xtreme_r_mt5_xxl")


@cache
def catalog() -> Catalog:
    return open_session().catalog


def text_of(page: Path) -> str:
    return page.read_text(encoding="utf-8")


def tables(page: Path) -> list[list[list[str]]]:
    """Return the tables of a page: their rows, each a list of cells, without the ruler."""
    found: list[list[list[str]]] = []
    inside = False
    for line in text_of(page).splitlines():
        row = line.startswith("|")
        if row and not inside:
            found.append([])
        if row and not re.fullmatch(r"[|\-: ]+", line):
            found[-1].append([cell.strip() for cell in line.strip("|").split(" | ")])
        inside = row
    return found


def facts(page: Path) -> Mapping[str, Mapping[str, str]]:
    """Return the rows of the first table, by task."""
    head, *rows = tables(page)[0]
    tasks = [cell.strip("`") for cell in head[1:]]
    return {task: {row[0]: row[place] for row in rows} for place, task in enumerate(tasks, start=1)}


def names(cell: str) -> list[str]:
    return re.findall(r"`(\w+)`", cell)


def codes(cell: str, task: str, page: Path) -> list[str]:
    """Return the language codes of a cell; one that says that they are the same takes those of the first task."""
    first = next(iter(facts(page).values()))["languages"]
    return sorted((first if cell.startswith("the same") else cell).partition(": ")[2].split())


FACTS = [(page, task) for page in PAGES for task in facts(page)]


def test_every_task_that_ships_has_a_page() -> None:
    assert sorted(task for _, task in FACTS) == catalog().names("task")


@pytest.mark.parametrize(("page", "task"), FACTS, ids=[task for _, task in FACTS])
def test_facts_are_those_of_the_spec(page: Path, task: str) -> None:
    shown, spec = facts(page)[task], catalog().task(task).spec
    count = re.search(r"\d+", shown["languages"])
    assert count is not None
    own = set(catalog().languages_of(task)) - set(catalog().task(task).added)
    assert int(count[0]) == len(own)
    assert codes(shown["languages"], task, page) == sorted(own)
    assert names(shown["kind"]) == [spec.kind]
    assert names(shown["metrics"]) == list(spec.metrics)
    assert names(shown["protocols"]) == list(spec.protocols)
    assert names(shown["trained on"]) == (list(spec.transfer.stages) if spec.transfer else [])
    assert shown["licence"] == spec.license
    assert names(shown["cite as"]) == [spec.citation]


@pytest.mark.parametrize(("page", "task"), FACTS, ids=[task for _, task in FACTS])
def test_numbers_of_items_are_those_of_the_release(page: Path, task: str) -> None:
    """Check the tasks whose spec names a release."""
    releases = list(catalog().task(task).spec.releases.values())
    released = releases[0].counts if releases else {}
    shown = facts(page)[task]["test items"]
    assert shown
    if shown == "the same":
        return
    if isinstance(released, int):
        assert re.match(r"[\d,]+", shown)
        assert f"{released:,} per language" in shown
    elif released:
        pairs = re.findall(r"\b([a-z]{2,3}) ([\d,]+)", shown.replace(" to ", " - "))
        named = {code: int(number.replace(",", "").rstrip(",")) for code, number in pairs}
        assert named.items() <= dict(released).items()
        others = [count for code, count in released.items() if code not in named]
        assert not others or {min(others), max(others)} <= _numbers(shown)


def _numbers(text: str) -> set[int]:
    return {int(number.replace(",", "")) for number in re.findall(r"\d[\d,]*\d|\d", text)}


@pytest.mark.parametrize("page", PAGES, ids=page_name)
def test_page_has_every_section(page: Path) -> None:
    heads = re.findall(r"^## (.+)$", text_of(page), flags=re.MULTILINE)
    assert [head for head in heads if head in SECTIONS] == SECTIONS
    assert set(heads) <= {*SECTIONS, "Published scores", "Raw text"}
    consoles = [block for block in blocks(page) if block.language == "console"]
    shown = "\n".join(line for block in consoles for line in block.lines)
    for task in facts(page):
        assert task in shown, f"no command of the page runs {task!r}"


@pytest.mark.parametrize("page", PAGES, ids=page_name)
def test_published_scores_are_those_of_the_package(page: Path) -> None:
    shown = [table for table in tables(page) if table[0][0] == "Table 4 of XTREME-R"]
    task = next(iter(facts(page)))
    published = [catalog().published(name) for name in PUBLISHED]
    if task not in published[0].scores:
        assert not shown
        return
    wanted = []
    for row in published:
        mark = "°" if task in row.comparable else ""
        wanted.append([row.label, *(f"{score:g}{mark}" for score in row.scores[task].values())])
    found = [
        [row[0], *(f"{float(cell.rstrip('°')):g}{'°' * cell.count('°')}" for cell in row[1:])]
        for row in shown[0][1:]
    ]
    assert found == wanted
