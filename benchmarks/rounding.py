"""What 4-bit weights cost: scores of a model whose weights get noise of the size of their rounding.

Weights in the format Q4_0 are whole multiples of a step per 32 weights. The weights before rounding differ from them by
up to half a step, so a model with noise of that size is as likely to be the original as the model itself. The spread of
its scores over seeds is what a comparison with scores of unrounded weights must allow.
Run: python -m benchmarks.rounding --model models/e5-small --tasks nusax_bitext --data DIR [-o query_prefix=]
"""

from __future__ import annotations

import argparse
import shutil
import tempfile
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.table import Table

from harness import evaluate

BLOCK = 32
"""Weights that share a step in Q4_0."""
STEPS = 8
"""Steps from zero to the largest weight of a block."""


def copy_with_noise(model: Path, folder: Path, seed: int) -> None:
    """Write a copy of a model whose matrices have uniform noise of half a step."""
    import torch
    from safetensors.torch import load_file, save_file

    shutil.copytree(model, folder)
    generator = torch.Generator().manual_seed(seed)
    weights = load_file(model / "model.safetensors")
    for name, weight in weights.items():
        if weight.ndim != 2 or "position" in name or "token_type" in name:  # these are not rounded
            continue
        blocks = weight.float().reshape(-1, BLOCK)
        step = blocks.abs().amax(dim=1, keepdim=True) / STEPS
        noise = (torch.rand(blocks.shape, generator=generator) - 0.5) * step
        weights[name] = (blocks + noise).reshape(weight.shape)
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})


def scores(model: Path, given: argparse.Namespace, output: Path) -> dict[str, float]:
    """Return the score of every cell of a model, in points."""
    run = evaluate(
        given.tasks.split(","),
        f"hf:{model}",
        options=dict(text.split("=", 1) for text in given.options),
        data=given.data,
        protocols=["frozen"],
        output=output,
    )
    return {
        f"{cell.task} {cell.language}": 100 * next(iter(cell.metrics.values())).value
        for cell in run.results.cells
        if cell.status == "ok"
    }


def main(arguments: Sequence[str] | None = None) -> None:
    """Print a row per cell: the model's score, and mean and spread of the scores with noise."""
    parser = argparse.ArgumentParser(description="What 4-bit weights cost.")
    parser.add_argument("--model", type=Path, required=True)
    parser.add_argument("--tasks", required=True)
    parser.add_argument("--data", required=True)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("-o", dest="options", action="append", default=[], metavar="KEY=VALUE")
    given = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as place:
        own = scores(given.model, given, Path(place, "own"))
        noisy = []
        for seed in range(given.seeds):
            folder = Path(place, f"seed-{seed}")
            copy_with_noise(given.model, folder, seed)
            noisy.append(scores(folder, given, Path(place, f"run-{seed}")))
            shutil.rmtree(folder)
    own["mean"] = float(np.mean(list(own.values())))
    for found in noisy:
        found["mean"] = float(np.mean(list(found.values())))
    table = Table("cell", "score", "mean with noise", "standard deviation", "lowest", "highest")
    for name, score in own.items():
        drawn = np.array([found[name] for found in noisy])
        numbers = (score, drawn.mean(), drawn.std(ddof=1), drawn.min(), drawn.max())
        table.add_row(name, *(f"{number:.1f}" for number in numbers))
    Console(width=110).print(table)


if __name__ == "__main__":
    main()
