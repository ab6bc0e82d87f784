from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from harness.api import evaluate
from harness.storage.run_folder import Run

WriteErrata = Callable[..., Path]


@pytest.fixture(scope="module")
def majority(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """A run of the sample in two languages."""
    return evaluate(
        ["pawsx"],
        "baseline:majority",
        languages=("de", "es"),
        data="sample",
        recipe="quick",
        output=tmp_path_factory.mktemp("errata") / "majority",
    )


@pytest.fixture
def entry_of(majority: Run) -> Callable[..., dict[str, Any]]:
    """Make an entry of the n-th German item."""
    (cell,) = (cell for cell in majority.cells if cell.language == "de")
    records = list(majority.records(cell))

    def make(number: int, **fields: Any) -> dict[str, Any]:
        record = records[number]
        entry = {"id": record.id, "language": "de", "digest": record.inputs_digest, "field": "item", **fields}
        if entry["field"] == "label":
            entry = {"was": record.reference, "is": {"0": "1", "1": "0"}[record.reference], **entry}
        return entry

    return make


@pytest.fixture
def write_folder(tmp_path: Path) -> WriteErrata:
    """Write a folder with one file of entries, an entry a line from line 7 on."""

    def write(*entries: Mapping[str, Any], name: str = "pawsx", **head: str) -> Path:
        folder = tmp_path / "errata"
        folder.mkdir(exist_ok=True)
        usual = {
            "errata": "pawsx",
            "revision": "the sample",
            "source": "a test",
            "reason": "planted",
            "who": "ann",
            "votes": "2/3",
        }
        lines = [f"{key}: {json.dumps(value)}" for key, value in {**usual, **head}.items() if value]
        lines += ["entries:", *(f"  - {json.dumps(entry)}" for entry in entries)]
        (folder / f"{name}.yaml").write_text("\n".join(lines) + "\n", encoding="utf-8")
        return folder

    return write
