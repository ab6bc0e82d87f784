"""Bitext accuracy of e5-small against what MTEB computes: vectors of sentence-transformers, and a search."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

import numpy as np
import pytest
import torch

from harness import evaluate
from harness.running.session import open_session
from tests.builders import published_tables, released_data


def accuracies(task: str, languages: Collection[str], model: Path) -> dict[str, float]:
    """Return what the harness finds."""
    run = evaluate(
        [f"{task}:{'+'.join(languages)}"],
        f"hf:{model}",
        data=released_data(),
        tasks_from=[Path(__file__).parent / "mteb"],
        protocols=["frozen"],
    )
    return {cell.language: cell.metrics["top1_accuracy"].value for cell in run.results.cells}


@pytest.mark.slow
@pytest.mark.models
@pytest.mark.parametrize(("code", "name"), [("sw", "swh"), ("ta", "tam")])
def test_the_procedure_is_that_of_mteb(
    code: str, name: str, e5_small: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With the same weights: vectors of sentence-transformers for the prompt, and the nearest by cosine."""
    library = pytest.importorskip("sentence_transformers")
    monkeypatch.chdir(tmp_path)
    found = accuracies("tatoeba_to_english", [code], e5_small)[code]
    model = library.SentenceTransformer(str(e5_small), device="cpu", model_kwargs={"dtype": torch.float32})
    folder = released_data() / "tatoeba"
    sides = [
        model.encode(
            (folder / f"tatoeba.{name}-eng.{side}").read_text(encoding="utf-8").splitlines(), prompt="query: "
        )
        for side in (name, "eng")
    ]
    expected = ((sides[0] @ sides[1].T).argmax(axis=1) == np.arange(len(sides[0]))).mean()
    # A cosine that is equal to five digits may be decided the other way.
    assert abs(found - expected) <= 1.5 / len(sides[0])


@pytest.mark.slow
@pytest.mark.models
@pytest.mark.parametrize(
    ("task", "table", "pair", "single", "mean"),
    [
        ("ntrex_bitext", "NTREXBitextMining", "{mteb}-eng_Latn", 1.0, 0.7),
        ("tatoeba_to_english", "Tatoeba", "{tatoeba}-eng", 1.5, 0.5),
    ],
)
def test_accuracies_are_those_of_the_results_repository(
    task: str,
    table: str,
    pair: str,
    single: float,
    mean: float,
    e5_small: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """In points, without a prefix, as MTEB ran it; the weights here have 4 bits. Burmese differs by 1.6 points."""
    lines = (published_tables("mteb_e5_small") / f"{table}.tsv").read_text(encoding="utf-8").splitlines()
    head, *rows = [line.split("\t") for line in lines]
    published = {row[head.index("subset")]: float(row[head.index("accuracy")]) for row in rows}
    folder = Path(__file__).parent / "mteb"
    entry = open_session([folder]).catalog.task(task)
    names = {code: pair.format_map(entry.languages.get(code).codes()) for code in entry.spec.languages}
    monkeypatch.chdir(tmp_path)
    run = evaluate(
        [f"{task}:{'+'.join(code for code, name in names.items() if name in published)}"],
        f"hf:{e5_small}",
        options={"query_prefix": ""},
        data=released_data(),
        tasks_from=[folder],
        protocols=["frozen"],
    )
    differences = {
        cell.language: 100 * (cell.metrics["top1_accuracy"].value - published[names[cell.language]])
        for cell in run.results.cells
        if cell.status == "ok"
    }
    assert len(differences) >= 5
    assert {code for code, value in differences.items() if abs(value) > single} <= {"my"}
    assert abs(differences.get("my", 0)) <= 2
    assert abs(np.mean(list(differences.values()))) <= mean
