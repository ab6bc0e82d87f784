"""``python -m harness_xtreme_r.mewsli_x``: write synthetic files in the layout of Mewsli-X."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from harness import HarnessError, UsageError
from harness.cli.output import echo
from harness_xtreme_r.mewsli_x.synthetic import (
    RELEASED_CANDIDATES,
    RELEASED_MENTIONS,
    RELEASED_PAIRS,
    write_synthetic,
)

app = typer.Typer(add_completion=False)


@app.command()
def write(
    output: Annotated[Path, typer.Option(help="Folder in which the folder mewsli-x is written.")],
    candidates: Annotated[int | None, typer.Option(help="Entities to choose from [default: 2000].")] = None,
    mentions: Annotated[
        int | None, typer.Option(help="Test mentions of each language [default: 20].")
    ] = None,
    pairs: Annotated[int | None, typer.Option(help="Training pairs [default: 1000].")] = None,
    seed: Annotated[int, typer.Option(help="Seed of the names and texts.")] = 42,
    full: Annotated[bool, typer.Option("--full", help="The sizes of the release.")] = False,
) -> None:
    """Write synthetic files in the layout of Mewsli-X: invented names and texts, no benchmark data."""
    try:
        if full and (candidates, mentions, pairs) != (None, None, None):
            raise UsageError("--full sets every size; omit --candidates, --mentions and --pairs.")
        counts = RELEASED_MENTIONS if full else dict.fromkeys(RELEASED_MENTIONS, _given(mentions, 20))
        paths = write_synthetic(
            output,
            candidates=RELEASED_CANDIDATES if full else _given(candidates, 2000),
            mentions_per_language=counts,
            pairs=RELEASED_PAIRS if full else _given(pairs, 1000),
            seed=seed,
        )
    except HarnessError as error:
        echo(f"Error: {error}", err=True)
        raise typer.Exit(error.exit_code) from error
    for path in paths:
        echo(str(path))


def _given(value: int | None, default: int) -> int:
    return default if value is None else value


if __name__ == "__main__":
    app(prog_name="python -m harness_xtreme_r.mewsli_x")
