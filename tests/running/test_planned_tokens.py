"""Tokens and prices that ``harness plan --tokens`` gives before a run."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from harness.analysis.plan_estimates import PlannedTokens, TokenCounter, planned_tokens, text_size
from harness.cli.main import run_command
from harness.planning.run_config import RunConfig, data_options
from harness.running.cell_reader import CellReader
from harness.running.session import prepare

from .conftest import InstallPlugin


def _planned(
    install_plugin: InstallPlugin,
    ref: str,
    counter: TokenCounter,
    limit: int | None = None,
    **settings: object,
) -> dict[str, PlannedTokens]:
    install_plugin(
        "asking_adapter", Path(__file__).with_name("asking_adapter.py").read_text(encoding="utf-8")
    )
    given = {"tasks": ("xnli:en+de",), "model": f"asks:{ref}", "data": data_options(["sample"]), **settings}
    prepared = prepare(RunConfig(**given))  # type: ignore[arg-type]
    registry = prepared.session.registry
    reader = CellReader(registry, prepared.finder)
    found = planned_tokens(prepared.plan.cells, reader, registry, counter, limit)
    return {own.language: own for own in found}


def test_tokens_are_those_of_the_prompts_that_a_run_sends(install_plugin: InstallPlugin) -> None:
    requests = TokenCounter(lambda texts: [1] * len(texts), {})
    ranked = _planned(install_plugin, "ranks", requests)
    assert (ranked["en"].items, ranked["en"].input, ranked["en"].output) == (24, 24 * 3, 0)  # three choices
    assert not ranked["en"].estimated
    written = _planned(install_plugin, "writes", requests, limit=5)["de"]
    assert (written.items, written.input) == (5, 5)
    assert written.output > 0
    assert written.output % 5 == 0
    characters = TokenCounter(lambda texts: [*map(len, texts)], {})
    plain, shots = (_planned(install_plugin, "writes", characters, shots=count)["de"] for count in (0, 2))
    assert shots.input > 2 * plain.input


def test_without_a_tokenizer_a_run_gives_the_rate_of_a_language(install_plugin: InstallPlugin) -> None:
    measured = _planned(install_plugin, "writes", TokenCounter(None, {"de": 0.5}))
    characters = _planned(install_plugin, "writes", TokenCounter(lambda texts: [*map(len, texts)], {}))
    assert measured["de"].estimated
    assert abs(measured["de"].input - characters["de"].input / 2) <= 1
    assert measured["en"].input < characters["en"].input / 3  # by bytes
    assert text_size("हिन्दी") > text_size("Hindi!") * 2


def test_a_price_is_that_of_a_million_tokens() -> None:
    own = PlannedTokens(task="t", language="en", items=1, input=2_000_000, output=500_000, estimated=False)
    assert own.cost((0.5, 4.0)) == pytest.approx(3.0)


@pytest.mark.parametrize(
    ("price", "status"), [("1,2", 0), ("0.15, .6", 0), ("1", 2), ("a,b", 2), ("-1,2", 2), ("nan,1", 2)]
)
def test_the_command_writes_rows(price: str, status: int, tmp_path: Path) -> None:
    file = tmp_path / "tokens.json"
    given = ["plan", "--tasks", "xnli:en+hi", "--model", "baseline:majority", "--data", "sample", "--tokens"]
    assert run_command([*given, "--price", price, "--json", str(file)]) == status
    if status == 0:
        rows = json.loads(file.read_text(encoding="utf-8"))
        assert {row["language"] for row in rows} == {"en", "hi"}
        assert all(row["cost"] > 0 and row["estimated"] for row in rows)
