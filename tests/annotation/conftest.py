"""A small annotation and its annotators."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from harness_translation.annotation.items import AnnotationItem, Key, TextItems
from harness_translation.annotation.sheets import ExportRequest, export_sheets

Export = Callable[..., tuple[Path, Key]]
FillIn = Callable[..., list[Path]]


def text_items(count: int = 60, *, language: str = "hi", variant: str = "", **settings: Any) -> TextItems:
    """Return items with ids 1, 2, ..., whose labels and genres alternate."""
    labels = ("yes", "no", "maybe")
    return TextItems(
        task="nli",
        language=language,
        view={"variant": variant} if variant else {},
        labels=labels,
        items=[
            AnnotationItem(
                id=str(number),
                fields={"premise": f"P{number}", "hypothesis": f"H{number}"},
                gold=labels[number % 3],
                attributes={"genre": "rare" if number % 10 == 0 else "often"},
            )
            for number in range(1, count + 1)
        ],
        **{"parallel": True, **settings},
    )


@pytest.fixture
def export(tmp_path: Path) -> Export:
    """Export a sheet of sample items: the shipped XNLI sample has 24 per language."""

    def made(name: str = "relabel", **settings: Any) -> tuple[Path, Key]:
        given = {"tasks": ("xnli",), "languages": ("hi", "de"), "data": ("sample",), "size": 9, **settings}
        folder = tmp_path / name
        return folder, export_sheets(ExportRequest(**given), folder)

    return made


def fill(path: Path, labels: Mapping[str, str], target: Path | None = None) -> Path:
    """Fill in the label column of a sheet, in place or into another file."""
    with path.open(encoding="utf-8-sig", newline="") as file:
        rows = list(csv.reader(file))
    for row in rows:
        if row[0] in labels:
            row[-2] = labels[row[0]]
    with (target or path).open("w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows(rows)
    return target or path


@pytest.fixture
def fill_in(tmp_path: Path) -> FillIn:
    """Fill in the CSV sheets of an annotator: the inherited label, or the label in `wrong`."""

    def filled(folder: Path, annotator: str, wrong: Mapping[str, str] | None = None) -> list[Path]:
        key = json.loads((folder / "key.json").read_text(encoding="utf-8"))
        gold = {row["row"]: row["gold"] for sheet in key["sheets"] for row in sheet["rows"]}
        labels = {**gold, **(wrong or {})}
        paths = sorted((folder / "sheets" / f"annotator-{annotator}").glob("*.csv"))
        return [fill(path, labels, tmp_path / f"{path.stem}-{annotator}.csv") for path in paths]

    return filled
