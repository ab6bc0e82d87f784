"""Runs with probes whose numbers come from the probing engine: see `engine_details`."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from harness.storage.run_folder import Run
from tests.builders import make_shown_cell, write_run

WriteProbes = Callable[..., Run]
PROBED = Path(__file__).with_name("probed.json")
VARIANTS = ("org1", "org2", "org3", "org4")


def kept_details(model: str = "hf:first") -> dict[tuple[str, str, str], dict[str, Any]]:
    """Return ``details.probing`` of a model by task, inputs and treebank."""
    kept = {tuple(key.split(" ")): details for key, details in json.loads(PROBED.read_text("utf-8")).items()}
    return {(task, inputs, bank): own for (of, task, inputs, bank), own in kept.items() if of == model}


def make_cells(
    task: str, view: Mapping[str, str], details: Mapping[str, Any], *, method: str = "probe", **fields: Any
) -> list[dict[str, Any]]:
    """Return the cells of all seeds; the first one holds the details."""
    best = details["problem"]["headline"]["weighted_f1"]
    usual = {"protocol": "frozen", "fit": "none", "method": method, "view": dict(view), "seconds": 2.0}
    usual |= {"n": 300, "size": 300}
    cells = []
    for number, seed in enumerate(details["settings"]["seeds"]):
        score: dict[str, Any] = {"value": best["value"], "se": best["se"], "ci": best["ci"], "ci_method": "b"}
        if view.get("treebank", "original") != "original":
            score["groups"] = {
                name: {"value": best["value"] - 0.01 * place - 0.002 * number, "n": 75}
                for place, name in enumerate(VARIANTS)
            }
        own = {"seed": seed, "digest": f"{number:012d}", "details": {} if number else {"probing": details}}
        cells.append(make_shown_cell(task, "hi", {"weighted_f1": score}, **{**usual, **own, **fields}))
    return cells


def vyakarana_cells(model: str) -> list[dict[str, Any]]:
    """Return the cells of three tasks, one of them with two inputs, on three treebanks."""
    cells: list[dict[str, Any]] = []
    for (task, inputs, treebank), details in kept_details(model).items():
        view = {"inputs": inputs, "treebank": treebank} if inputs else {"treebank": treebank}
        cells += make_cells(task, view, details)
    return cells


def write_probed_run(path: Path, cells: Sequence[dict[str, Any]], *, model: str, data: str = "local") -> Run:
    """Write a run of cells."""
    specs = {
        task: {
            "kind": "token_tagging",
            "metrics": ["weighted_f1"],
            "headline": ["weighted_f1"],
            "labels": ["a", "b"],
            "parallel": False,
            "source": "hi",
            "axes": sorted(next(cell["view"] for cell in cells if cell["task"] == task)),
            "languages": {code: ["Indo-European", "Deva"] for code in ("hi", "mr")},
        }
        for task in dict.fromkeys(cell["task"] for cell in cells)
    }
    manifest = {"model": model, "published": [], "command": ["harness", "eval"]}
    return write_run(
        path, cells, specs, run={"data": data}, manifest=manifest, model={"adapter": "hf", "ref": model}
    )


@pytest.fixture
def write_probes(tmp_path: Path) -> WriteProbes:
    """Return a function that writes a run of cells."""
    numbers = iter(range(100))

    def write(*cells: dict[str, Any], model: str = "hf:first", data: str = "local") -> Run:
        return write_probed_run(tmp_path / f"run-{next(numbers)}", cells, model=model, data=data)

    return write


@pytest.fixture
def vyakarana(write_probes: WriteProbes) -> Run:
    """A run of the first model on the whole suite."""
    return write_probes(*vyakarana_cells("hf:first"))


@pytest.fixture
def other_vyakarana(write_probes: WriteProbes) -> Run:
    """A run of a model with half the layers."""
    return write_probes(*vyakarana_cells("hf:second"), model="hf:second")
