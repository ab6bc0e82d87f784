"""The smallest detectable differences of the sample data, with and without runs."""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import pytest
from scipy import stats
from scipy.optimize import brentq

from harness.analysis.plan_estimates import Assumption, Detectable, detectable_differences
from harness.data.resolve import DataOptions
from harness.errors import UsageError
from harness.planning.run_config import RunConfig
from harness.running.cell_reader import CellReader
from harness.running.session import open_session, prepare

from .conftest import Cli


def _factor(draws: int) -> float:
    """Return the difference, in standard errors, for which the noncentral t of so many draws has 80 % power."""
    limit = stats.t.ppf(0.975, draws - 1)
    with np.errstate(divide="ignore"):  # in scipy 1.12
        return brentq(lambda shift: stats.nct.sf(limit, draws - 1, shift) - 0.8, 1.0, 6.0)


def _found(tasks: tuple[str, ...], limit: int | None = None) -> list[Detectable]:
    config = RunConfig(tasks=tasks, model="baseline:majority", data=DataOptions(mode="sample"))
    prepared = prepare(config, open_session())
    registry = prepared.session.registry
    reader = CellReader(registry, prepared.finder)
    return detectable_differences(prepared.plan.cells, reader, registry, Assumption(), limit=limit)


def test_clusters_of_the_data_at_hand_are_counted() -> None:
    german, swahili, mean, tagging = _found(("xnli:de+sw", "udpos:de"))
    assert (german.items, german.clusters, german.sd, german.assumed) == (24, 8, 0.5, True)
    assert german.difference == swahili.difference == pytest.approx(_factor(8) * 0.5 / math.sqrt(8), rel=1e-5)
    # XNLI is parallel: a second language brings no further draws.
    assert (mean.language, mean.clusters, mean.difference) == (None, 8, german.difference)
    assert (tagging.items, tagging.clusters) == (15, 15)


def test_languages_that_are_not_parallel_add_up() -> None:
    *parts, mean = _found(("udpos:de+en",))
    assert mean.clusters == sum(part.clusters for part in parts) == 30
    assert mean.difference == pytest.approx(_factor(30) * 0.5 / math.sqrt(30), rel=1e-5)


def test_what_a_difference_needs() -> None:
    """The needed items or languages show the wanted difference, and one cluster or language less does not."""
    config = RunConfig(
        tasks=("xnli:de+sw", "udpos:de+en"), model="baseline:majority", data=DataOptions(mode="sample")
    )
    prepared = prepare(config, open_session())
    registry = prepared.session.registry
    reader = CellReader(registry, prepared.finder)
    plain = detectable_differences(prepared.plan.cells, reader, registry, Assumption())
    assert {(own.needed_items, own.needed_languages) for own in plain} == {(None, None)}
    german, _, parallel, *_, apart = detectable_differences(
        prepared.plan.cells, reader, registry, Assumption(detect=0.1)
    )
    clusters = next(n for n in range(4, 999) if _factor(n) * 0.5 / math.sqrt(n) <= 0.1)
    # XNLI has three items per cluster.
    assert (german.needed_items, german.needed_languages) == (3 * clusters, None)
    assert (parallel.needed_items, parallel.needed_languages) == (3 * clusters, None)
    # Languages of 15 items each: as many draws, whichever language they are in.
    languages = next(n for n in range(2, 99) if _factor(15 * n) * 0.5 / math.sqrt(15 * n) <= 0.1)
    assert (apart.needed_items, apart.needed_languages) == (math.ceil(15 * languages / 2), languages)


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
    assert paired["difference"] == pytest.approx(_factor(paired["clusters"]) * compared["se"], rel=1e-5)
    assert paired["assumed"] is False
    cli(*plan, "--assume", paths[1], "--correlation", "0", "--json", file)
    [single] = json.loads(file.read_text())
    results = json.loads((paths[1] / "results.json").read_text())
    factor = _factor(single["clusters"]) * math.sqrt(2)
    assert single["difference"] == pytest.approx(factor * results["tasks"][0]["se"], rel=1e-5)


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
