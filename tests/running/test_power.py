"""The smallest detectable differences of the sample data, with and without runs."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from pathlib import Path

import pytest

from harness.analysis.power import Assumption, Detectable, detectable_differences
from harness.data.resolve import DataOptions
from harness.errors import UsageError
from harness.planning.run_config import RunConfig
from harness.running.cell_reader import CellReader
from harness.running.session import open_session, prepare

Cli = Callable[..., tuple[int, str, str]]
FACTOR = 1.9599639845 + 0.8416212336


def _found(tasks: tuple[str, ...], limit: int | None = None) -> list[Detectable]:
    config = RunConfig(tasks=tasks, model="baseline:majority", data=DataOptions(mode="sample"))
    prepared = prepare(config, open_session())
    registry = prepared.session.registry
    reader = CellReader(registry, prepared.finder)
    return detectable_differences(prepared.plan.cells, reader, registry, Assumption(), limit=limit)


def test_clusters_of_the_data_at_hand_are_counted() -> None:
    german, swahili, mean, tagging = _found(("xnli:de+sw", "udpos:de"))
    assert (german.items, german.clusters, german.sd, german.assumed) == (24, 8, 0.5, True)
    assert german.difference == swahili.difference == pytest.approx(FACTOR * 0.5 / math.sqrt(8))
    # XNLI is parallel: a second language brings no further draws.
    assert (mean.language, mean.clusters, mean.difference) == (None, 8, german.difference)
    assert (tagging.items, tagging.clusters) == (15, 15)


def test_languages_that_are_not_parallel_add_up() -> None:
    *parts, mean = _found(("udpos:de+en",))
    assert mean.clusters == sum(part.clusters for part in parts) == 30
    assert mean.difference == pytest.approx(FACTOR * 0.5 / math.sqrt(30))


def test_what_a_difference_needs() -> None:
    """Ten times as many items for one that is the root of ten smaller; a tenfold test shows just that difference."""
    config = RunConfig(
        tasks=("xnli:de+sw", "udpos:de+en"), model="baseline:majority", data=DataOptions(mode="sample")
    )
    prepared = prepare(config, open_session())
    registry = prepared.session.registry
    reader = CellReader(registry, prepared.finder)
    plain = detectable_differences(prepared.plan.cells, reader, registry, Assumption())
    for own in plain:
        assert (own.needed_items, own.needed_languages) == (None, None)
    assert plain[2].difference is not None
    assert plain[-1].difference is not None
    parallel, apart = (
        detectable_differences(
            prepared.plan.cells, reader, registry, Assumption(detect=1.0001 * own.difference / 10**0.5)
        )[at]
        for at, own in ((2, plain[2]), (-1, plain[-1]))
        if own.difference is not None
    )
    assert (parallel.needed_items, parallel.needed_languages) == (240, None)
    assert (apart.needed_items, apart.needed_languages) == (150, 20)


def test_a_limit_and_a_pool_count() -> None:
    [limited] = _found(("udpos:de",), limit=4)
    assert limited.clusters == 4
    retrieval, *_ = _found(("lareqa:de",))
    assert 0 < retrieval.clusters <= retrieval.items


def test_runs_give_the_spread(cli: Cli, tmp_path: Path) -> None:
    paths = []
    for model in ("majority", "char-ngram"):
        paths.append(tmp_path / model)
        asked = ("--tasks", "xnli:de", "--data", "sample", "--output", paths[-1])
        assert cli("eval", "--model", f"baseline:{model}", *asked)[0] == 0
    plan = ("plan", "--tasks", "xnli:de", "--model", "baseline:majority", "--data", "sample", "--power")
    file = tmp_path / "rows.json"
    status, out, _ = cli(*plan, "--assume", paths[0], "--assume", paths[1], "--json", file)
    assert status == 0
    assert "difference" in out
    [paired] = json.loads(file.read_text())
    rows = tmp_path / "compared.json"
    assert cli("compare", *paths, "--json", rows)[0] == 0
    [compared] = [row for row in json.loads(rows.read_text()) if row["language"] and row["se"]]
    # The difference that those runs' own standard error can show.
    assert paired["difference"] == pytest.approx(FACTOR * compared["se"])
    assert paired["assumed"] is False
    cli(*plan, "--assume", paths[1], "--correlation", "0", "--json", file)
    [single] = json.loads(file.read_text())
    results = json.loads((paths[1] / "results.json").read_text())
    assert single["difference"] == pytest.approx(FACTOR * math.sqrt(2) * results["tasks"][0]["se"])


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"score": 1.0}, "--score 1 is"),
        ({"score": -0.1}, "--score"),
        ({"correlation": 1.0}, "--correlation 1 is"),
    ],
)
def test_numbers_that_mean_nothing_are_rejected(fields: dict[str, float], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        Assumption(**fields)  # type: ignore[arg-type]
