"""Runs written by hand, with records, for the HTML report, and a strict reader of its pages.

A page is read element by element: every one is closed in order, tables have heads, anchors lead somewhere.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from harness.languages.table import known_languages
from harness.reporting.render.page import script
from harness.storage.records import ItemRecord
from harness.storage.run_folder import Run
from tests import builders

WriteRun = Callable[..., Run]
LABELS = ("contradiction", "entailment", "neutral")
LANGUAGES = {language.code: [language.family, language.script] for language in known_languages()}


def make_record(number: int, *, right: bool, premise: str = "A cat sleeps.", **changes: Any) -> ItemRecord:
    """Return an answer of a classifier; the more confident, the larger its number."""
    gold = LABELS[number % 3]
    label = gold if right else LABELS[(number + 1) % 3]
    scores = [1.0 + number / 100 if name == label else 0.0 for name in LABELS]
    fields: dict[str, Any] = {
        "id": f"item-{number}",
        "inputs_digest": f"{number:016d}",
        "prediction": {"label": label, "scores": scores},
        "reference": gold,
        "scores": {"accuracy": float(right)},
        "cluster": None,
        "group": None,
        "tags": {},
        "flags": {"truncated": False, "unparsed": False},
        "inputs": json.dumps({"inputs": {"premise": premise, "hypothesis": "It rests."}}),
    }
    return ItemRecord(**{**fields, **changes})


def make_cell(language: str, value: float | None = 0.5, **fields: Any) -> dict[str, Any]:
    """Return a cell of a classification task."""
    score = {"value": value, "se": 0.03, "ci": [0.4, 0.6], "ci_method": "t"}
    data = {"origin": "local", "pinned": True, "note": "", "digest": "d" * 64, "files": "a.tsv"}
    usual = {"fit": "f" * 16, "prompt": None, "data": data, "n": 100, "size": 100, "seconds": 2.0}
    metrics = {} if value is None else {"accuracy": score}
    return builders.make_shown_cell("xnli", language, metrics, **{**usual, **fields})


@pytest.fixture
def write_run(tmp_path: Path) -> WriteRun:
    """Return a function that writes a run: cells, each with its records by language, or without any."""
    numbers = iter(range(100))

    def write(
        *cells: dict[str, Any],
        records: Mapping[str, Sequence[ItemRecord]] | None = None,
        model: str = "hf:models/mine",
        data: str = "local",
        **results: Any,
    ) -> Run:
        folder = tmp_path / f"run-{next(numbers)}"
        spec = {
            "kind": "sequence_classification",
            "metrics": ["accuracy"],
            "headline": ["accuracy"],
            "labels": list(LABELS),
            "parallel": False,
            "source": "en",
            "chance": 1 / 3,
            "languages": LANGUAGES,
        }
        specs = {task: spec for task in dict.fromkeys(each["task"] for each in cells)}
        written = builders.write_run(
            folder,
            cells,
            specs,
            run={"data": data, "created": "2026-01-01", "harness": "0.1.0", "seconds": 1.0},
            manifest={"model": model, "command": ["harness", "eval"]},
            **{"model": {"adapter": "hf", "ref": "models/mine"}, **results},
        )
        for each in cells:
            own = (records or {}).get(each["language"])
            if own is not None:
                writer = Run.at(folder)
                writer.write_records(writer.records_path(each["task"], each["language"], each["digest"]), own)
        return written

    return write


VOID = {"area", "br", "col", "hr", "img", "input", "link", "meta", "source", "wbr"}


@dataclass
class Node:
    """One element of the page."""

    tag: str
    attributes: dict[str, str | None]
    children: list[Node | str] = field(default_factory=list)

    def all(self, tag: str) -> list[Node]:
        """Return the elements of a name within, in the order of the page."""
        found = []
        for child in self.children:
            if isinstance(child, Node):
                found += [child] if child.tag == tag else []
                found += child.all(tag)
        return found

    @property
    def text(self) -> str:
        """The text within."""
        return "".join(child if isinstance(child, str) else child.text for child in self.children)


class _Reader(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.root = Node("", {})
        self._open = [self.root]

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert len(dict(attrs)) == len(attrs), f"<{tag}> has an attribute twice"
        node = Node(tag, dict(attrs))
        self._open[-1].children.append(node)
        if tag not in VOID:
            self._open.append(node)

    def handle_endtag(self, tag: str) -> None:
        assert self._open[-1].tag == tag, f"</{tag}> closes <{self._open[-1].tag}>"
        self._open.pop()

    def handle_data(self, data: str) -> None:
        self._open[-1].children.append(data)

    def finished(self) -> Node:
        assert [node.tag for node in self._open] == [""], "elements are left open"
        return self.root


def read_page(text: str) -> Node:
    """Return the page; fails where it is not well-formed."""
    reader = _Reader()
    reader.feed(text)
    reader.close()
    return reader.finished()


def check_page(text: str) -> Node:
    """Return the page; fails for what no report may have."""
    root = read_page(text)
    assert [found.text for found in root.all("script")] in ([], [script("tabs")])
    assert len(root.all("main")) == len(root.all("h1")) == 1
    nodes = _every(root)
    ids = [str(node.attributes["id"]) for node in nodes if "id" in node.attributes]
    assert len(ids) == len(set(ids)), sorted({name for name in ids if ids.count(name) > 1})
    for node in nodes:
        href = node.attributes.get("href")
        assert href is None or "download" in node.attributes or (href.startswith("#") and href[1:] in ids), (
            href
        )
        assert not [name for name in node.attributes if name.startswith("on") or name in {"src", "style"}]
    for table in root.all("table"):
        assert [head for head in table.all("th") if head.attributes.get("scope")], table.text[:200]
        assert all(head.attributes.get("scope") for head in table.all("th"))
    for row in root.all("tr"):
        widths = {_width(other) for other in _table_of(root, row).all("tr")}
        assert len(widths) == 1, (widths, row.text)
    return root


def _every(node: Node) -> list[Node]:
    found = []
    for child in node.children:
        if isinstance(child, Node):
            found += [child, *_every(child)]
    return found


def _table_of(root: Node, row: Node) -> Node:
    return next(table for table in root.all("table") if any(other is row for other in table.all("tr")))


def _width(row: Node) -> int:
    fields = [child for child in row.children if isinstance(child, Node)]
    return sum(int(child.attributes.get("colspan") or 1) for child in fields)
