"""Bitext accuracy of e5-small against what MTEB computes: vectors of sentence-transformers, and a search."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

import numpy as np
import pytest
import torch

from harness import evaluate
from tests.builders import released_data


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
