"""Answers of models, written by hand or by a model, and what a reader takes them for."""

from __future__ import annotations

from pathlib import Path


def answer_rows(name: str) -> list[tuple[str, ...]]:
    """Return the rows of a table without its heading; ``⏎`` is a line end."""
    lines = (Path(__file__).with_name("answers") / name).read_text(encoding="utf-8").splitlines()[1:]
    return [tuple(cell.replace("⏎", "\n") for cell in line.split("\t")) for line in lines]
