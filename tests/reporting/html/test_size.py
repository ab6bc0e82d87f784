"""The size of the page of a suite: what a reader opens first stays small, whatever the items take."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from harness import evaluate
from harness.reporting.documents import html_text

pytestmark = pytest.mark.thorough

PAGE = 300_000
"""Bytes of the page without the section of items."""
SECTIONS = 180_000
"""Bytes of its sections: without the items, the style, the script and the files to download."""


@pytest.fixture(scope="module")
def parts(tmp_path_factory: pytest.TempPathFactory) -> dict[str, int]:
    """Return the bytes of each section of the page, and of what is before the first one."""
    run = evaluate(
        ["xtreme_r"],
        "baseline:char-ngram",
        data="sample",
        recipe="quick",
        seeds=(1,),
        output=Path(tmp_path_factory.mktemp("size")) / "run",
    )
    before, *sections = re.split(r'(?=<section id=")', html_text([run]))
    found = {"": len(before.encode())}
    for section in sections:
        found[section.split('"', 2)[1]] = len(section.encode())
    return found


def test_the_page_of_a_suite_is_small_without_its_items(parts: dict[str, int]) -> None:
    assert parts.keys() >= {"", "overview", "languages", "diagnosis", "items", "provenance"}
    assert sum(size for name, size in parts.items() if name != "items") < PAGE


def test_the_sections_of_a_suite_are_small(parts: dict[str, int]) -> None:
    assert sum(size for name, size in parts.items() if name not in {"", "items"}) < SECTIONS
    assert max(parts["languages"], parts["diagnosis"], parts["provenance"]) < 50_000
