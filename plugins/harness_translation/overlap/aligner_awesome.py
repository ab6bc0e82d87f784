"""The package ``awesome-align`` as an aligner: its command runs in a process of its own, on files.

It only reads BERT checkpoints with a ``pytorch_model.bin``. Dou and Neubig (2021), Word alignment by fine-tuning
embeddings on parallel corpora.
"""

from __future__ import annotations

import importlib.metadata
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from harness import Alignment, ContractError, Link, PluginError, WordPair

__all__ = ["AwesomeAligner", "open_awesome"]

MODULE = "awesome_align.run_align"


def open_awesome(reference: str) -> AwesomeAligner:
    """Return the aligner of a model folder or hub id."""
    return AwesomeAligner(reference)


class AwesomeAligner:
    """Runs awesome-align once per call, with its defaults and its probabilities."""

    def __init__(self, model: str) -> None:
        self._model = model

    def identity(self) -> dict[str, str]:
        """Return what the links depend on."""
        version = importlib.metadata.version("awesome-align")
        return {"aligner": "awesome-align", "aligner.version": version, "aligner.model": self._model}

    def close(self) -> None:
        """Do nothing: the process has ended."""

    def align(self, pairs: Sequence[WordPair]) -> list[Alignment]:
        """Return one alignment per pair; a pair with an empty side has no links. Raises `PluginError` on failure."""
        asked = [number for number, pair in enumerate(pairs) if pair.source and pair.target]
        found = [Alignment(links=())] * len(pairs)
        if not asked:
            return found
        with tempfile.TemporaryDirectory() as folder:
            links, probabilities = self._run(Path(folder), [pairs[number] for number in asked])
        if not len(links) == len(probabilities) == len(asked):
            raise ContractError(f"awesome-align returned {len(links)} lines for {len(asked)} pairs.")
        for number, own, values in zip(asked, links, probabilities, strict=True):
            both = zip(own.split(), values.split(), strict=True)
            found[number] = Alignment(links=tuple(_link(link, value) for link, value in both))
        return found

    def _run(self, folder: Path, pairs: Sequence[WordPair]) -> tuple[list[str], list[str]]:
        lines = [f"{' '.join(pair.source)} ||| {' '.join(pair.target)}\n" for pair in pairs]
        (folder / "pairs").write_text("".join(lines), encoding="utf-8")
        arguments = ["--model_name_or_path", self._model, "--data_file", str(folder / "pairs")]
        arguments += [
            "--output_file",
            str(folder / "links"),
            "--output_prob_file",
            str(folder / "probabilities"),
        ]
        done = subprocess.run(
            [sys.executable, "-m", MODULE, *arguments], capture_output=True, text=True, check=False
        )
        if done.returncode:
            last = done.stderr.strip().splitlines()[-1:] or ["no message"]
            raise PluginError(f"awesome-align failed on {self._model!r}: {last[0]}.")
        names = ("links", "probabilities")
        links, probabilities = ((folder / name).read_text(encoding="utf-8").splitlines() for name in names)
        return links, probabilities


def _link(text: str, probability: str) -> Link:
    one, _, other = text.partition("-")
    return Link(source=int(one), target=int(other), probability=float(probability))
