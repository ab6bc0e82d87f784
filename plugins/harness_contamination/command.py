"""Signs that a causal model has seen the items of a task, with error rates."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from harness.cli import JsonFile, takes_settings

if TYPE_CHECKING:
    from harness.running import Prepared
    from harness_contamination.signs import Material, Sign

Fresh = Annotated[
    Path | None, typer.Option("--fresh", help="Texts that no training data has; a line is CODE, tab, text.")
]
ShardItems = Annotated[
    int, typer.Option("--shard-items", min=2, help="Neighbours that are shuffled together.")
]
Permutations = Annotated[int, typer.Option("--permutations", min=2, help="Random orders of every shard.")]
app = typer.Typer(add_completion=False)
NOTES = """
p: one-sided. Holm: adjusted for all tests of the table. FPR: how often the same test has p <= 0.05 on random orders
of the same items, or on random halves of the fresh texts.
Evidence is not a verdict: a low p can have other causes, and without evidence the items may still be known."""


@app.command()
@takes_settings("tasks", "model", "options", "languages", "tasks_from", "data", "limit")
def contamination(
    fresh: Fresh = None,
    shard_items: ShardItems = 8,
    permutations: Permutations = 20,
    json_file: JsonFile = None,
    **given: Any,
) -> None:
    """Look for signs that a causal model has seen the items of a task, by language, each with its error rate.

    The signs: the order of the file against random orders; Min-K%++, and the completion of held-back halves, against
    fresh texts. They are evidence, never a verdict.

    Example: harness contamination --tasks xcopa:sw --model hf:models/smollm2 --data DIR --limit 200 --fresh fresh.tsv
    """
    # Imported here so that help stays fast.
    import harness
    from harness.cli import (
        check_output_file,
        echo,
        make_config,
        print_table,
        reporting_broken_plugins,
        write_rows,
    )
    from harness.running import prepare
    from harness_contamination.signs import SEED, read_fresh, read_material, sign_rows

    check_output_file(json_file, ".json")
    config = make_config(given, None)
    texts = {} if fresh is None else read_fresh(fresh)
    session = harness.open_session(config.tasks_from)
    with reporting_broken_plugins(session.registry.plugins, session.catalog):
        prepared = prepare(config, session)
    for line in dict.fromkeys(
        f"skipped: {one.task}:{one.language}: {one.reason}" for one in prepared.plan.skipped
    ):
        echo(line, err=True)
    cells = read_material(prepared, texts, shard_items, config.limit)
    signs, identity = _measured(prepared, cells, permutations)
    rows = sign_rows(signs)
    if json_file is not None:
        settings = dict(shard_items=shard_items, permutations=permutations, seed=SEED, limit=config.limit)
        origin = {"settings": settings, "model": identity, "harness": harness.__version__}
        write_rows(json_file, [{**row, **origin} for row in rows])
    print_table(*_table(rows))
    echo(NOTES)


def _measured(
    prepared: Prepared, cells: Sequence[Material], permutations: int
) -> tuple[list[Sign], dict[str, str]]:
    """Return the signs of all cells, and what the model is; raises `CapabilityError` for one without probabilities."""
    from contextlib import closing

    from harness import CapabilityError
    from harness.cli import show_progress
    from harness.models import Capability
    from harness_contamination.signs import measure_signs

    model = prepared.plan.model
    if Capability.SCORES_CONTINUATIONS not in model.description.offers:
        raise CapabilityError(
            f"The model {str(model.reference)!r} gives no probabilities of texts; expected a causal model.",
            hint="Run 'harness models' to see the adapters.",
        )
    signs = []
    with closing(model.entry.open(model.description, model.options)) as adapter, show_progress() as progress:
        progress.start("Signs", 3 * len(cells), "signs")
        for cell in cells:
            for sign in measure_signs(adapter, cell, permutations):
                signs.append(sign)
                progress.advance(1)
        progress.finish()
        return signs, dict(adapter.identity())


def _table(rows: Sequence[dict[str, Any]]) -> tuple[list[str], list[list[str]]]:
    def number(value: float | None) -> str:
        return "" if value is None else "<0.001" if value < 0.001 else f"{value:.3f}"

    texts, numbers = ["task", "language", "sign", "items", "measured"], ["p", "p_holm", "false_positive_rate"]
    shown = [
        [*(str(row[name]) for name in texts), *(number(row[name]) for name in numbers), row["reading"]]
        for row in rows
    ]
    return [*texts, "p", "Holm", "FPR", "reading"], shown
