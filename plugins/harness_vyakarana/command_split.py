"""``harness treebank split`` on the command line."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

__all__ = ["split"]


def split(
    source: Annotated[Path, typer.Argument(metavar="IN", help="A .conllu file.")],
    output: Annotated[
        Path,
        typer.Option("--output", "--out", "-o", help="Folder for train.conllu, dev.conllu and test.conllu."),
    ],
    ratios: Annotated[str, typer.Option(help="Shares of the sentences: train/dev/test.")] = "80/10/10",
    seed: Annotated[int, typer.Option(help="Another seed, another split.")] = 0,
) -> None:
    """Split a treebank that came in one file into train, dev and test, by the hash of its ids.

    Whole documents (from one '# newdoc' to the next) and the variants of a sentence stay together.
    """
    # Imported here so that help stays fast.
    from harness.cli.display import print_table
    from harness.errors import UsageError
    from harness_vyakarana.split import ratios_of, split_file

    shares = ratios_of(ratios)
    if source.is_dir():
        raise UsageError(f"{str(source)!r} is a folder, expected one .conllu file to split.")
    parts = split_file(source, output, shares, seed=seed)
    total = sum(part.sentences for part in parts)
    print_table(
        ("file", "kept whole", "sentences", "words", "share"),
        [
            (
                str(part.path),
                f"{part.units:,}",
                f"{part.sentences:,}",
                f"{part.words:,}",
                f"{part.sentences / total:.1%}",
            )
            for part in parts
        ],
    )
