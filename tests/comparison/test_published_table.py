"""A run next to published systems: the tables of the papers, over the languages of the run."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from statistics import fmean
from typing import Any

import pytest
from hypothesis import given, strategies as st

from harness.errors import UsageError
from harness.registry.registry import Registry
from harness.reporting.blocks.model import Field, Table
from harness.reporting.overview.paper_tables import published_blocks, published_cells, read_published_tables
from harness.reporting.render.text import csv_text
from harness.running.manifest import published_documents
from harness.running.session import open_session
from harness.storage.results import Manifest, RunResults, SuiteSummary
from harness.storage.run_folder import Run
from tests.builders import published_tables

Cli = Callable[..., tuple[int, str, str]]
CATALOG = open_session().catalog
XNLI = CATALOG.published("xtreme_r_mbert").languages["xnli"]["accuracy"]
DOCUMENTS = published_documents(CATALOG, [], ["xnli"])


def run_of(scores: Mapping[str, float], view: Mapping[str, str] = {}, name: str = "mine") -> Run:
    """Return a run of XNLI with these scores, as fractions."""
    shared = {"task": "xnli", "protocol": "zero_shot_transfer", "method": "head", "view": dict(view)}
    about = {"seed": 1, "stands_in": False, "data": {"pinned": True, "note": ""}, "n": 10, "status": "ok"}
    cells = [
        {**shared, **about, "language": code, "metrics": {"accuracy": {"value": value}}}
        for code, value in scores.items()
    ]
    row = {**shared, "metric": "accuracy", "value": fmean(scores.values()), "by_language": dict(scores)}
    entry = CATALOG.task("xnli").spec
    spec = {
        "kind": "sequence_classification",
        "metrics": ["accuracy"],
        "headline": ["accuracy"],
        "languages": {code: ["family", "Latn"] for code in entry.languages},
        "published_languages": list(XNLI),
    }
    run = Run.at(Path(name))
    run.manifest = Manifest.model_validate({"model": f"hf:{name}", "tasks": {"xnli": spec}, "suites": []})
    run.results = RunResults.model_validate(
        {"run": {"data": "local"}, "cells": cells, "tasks": [row], "suites": [], "fits": {}, "notes": []}
    )
    return run


def texts(table: Table) -> dict[str, list[str]]:
    return {str(row.label): [str(field) for field in row.fields] for row in table.rows}


def shown(runs: Sequence[Run], registry: Registry, documents: Any = DOCUMENTS, **only: Any) -> list[Table]:
    found = published_blocks(read_published_tables(runs, documents, **only), registry.metrics, sample=False)
    return [block for block in found if isinstance(block, Table)]


def test_a_run_in_all_languages_stands_under_table_15(registry: Registry) -> None:
    [table] = shown(
        [run_of(dict.fromkeys(XNLI, 0.5))],
        registry,
        published_documents(CATALOG, [SuiteSummary(suite="xtreme_r", tasks=["xnli"])]),
    )
    text = (published_tables("xtreme_r") / "table15_xnli.tsv").read_text("utf-8")
    rows = list(csv.DictReader(text.splitlines(), delimiter="\t"))
    names = {"mBERT": "mBERT", "XLM-R": "XLM-R Large", "mT5": "mT5-XXL"}
    names |= {
        f"mBERT {setting}": f"mBERT, tr-train{end}"
        for setting, end in (("translate-train", ""), ("translate-train-all", "+"))
    }
    found = texts(table)
    for row in rows:
        label = names[row["model"]]
        assert found[label][:-1] == [row[code] for code in table.heads[:-1]]
        # Table 15 leaves English out of the average of mBERT, Table 4 does not.
        assert found[label][-1] == (row["avg_printed"] if label != "mBERT" else "66.5")
    assert list(found)[-1] == "mine"
    assert found["mine"] == ["50.0"] * 16


@given(st.sets(st.sampled_from(sorted(XNLI)), min_size=1))
def test_every_average_of_a_table_is_over_its_languages(codes: set[str]) -> None:
    [table] = read_published_tables([run_of(dict.fromkeys(codes, 0.25))], DOCUMENTS)
    assert set(table.heads[:-1]) == codes
    for _, is_run, (*cells, mean) in table.rows:
        values = [score.value for score in cells if score.value is not None]
        if len(values) == len(codes):
            assert mean.mark == ""
            assert mean.value == pytest.approx(fmean(values), abs=0.0011)  # the printed one, of all languages
        else:
            assert not is_run
            assert mean.mark == ("~" if codes < set(XNLI) else "")


def test_two_runs_in_other_languages_are_marked_where_their_mean_is_another(registry: Registry) -> None:
    runs = [run_of({"en": 0.9, "de": 0.8}, name="a"), run_of({"en": 0.7}, name="b")]
    [table] = shown(runs, registry)
    assert texts(table)["a"] == ["90.0", "80.0", "85.0"]
    assert texts(table)["b"] == ["70.0", "-", "70.0~"]


def test_the_best_unmarked_score_of_a_column_is_bold(registry: Registry) -> None:
    [table] = shown([run_of({"en": 0.95, "sw": 0.5})], registry)
    best = {
        head: [
            str(row.label)
            for row in table.rows
            if isinstance(own := row.fields[at], Field) and own.style == "best"
        ]
        for at, head in enumerate(table.heads)
    }
    assert best == {"en": ["mine"], "sw": ["mT5-XXL"], "Avg": ["mT5-XXL"]}


def test_a_translated_variant_stands_under_its_own_rows(registry: Registry) -> None:
    view = {"variant": "bt", "translator": "mine"}
    [table] = shown([run_of({"hi": 0.5, "sw": 0.5}, view)], registry)
    assert texts(table) == {
        "XLM-R Large ORIG, NLLB": ["82.9", "79.4", "81.2"],
        "XLM-R Large ORIG, Google": ["85.1", "83.6", "84.3"],
        "mine": ["50.0", "50.0", "50.0"],
    }


def test_rows_are_fractions_and_a_mean_has_no_language() -> None:
    tables = read_published_tables([run_of({"en": 0.5, "sw": 0.25})], DOCUMENTS, languages=["sw"])
    rows = list(csv.DictReader(io.StringIO(csv_text(published_cells(tables)))))
    own = [row for row in rows if row["source"] == "run"]
    assert [(row["language"], float(row["value"])) for row in own] == [("sw", 0.25), ("", 0.25)]
    [english] = [row for row in rows if (row["system"], row["language"]) == ("XLM-R Large", "sw")]
    assert float(english["value"]) == pytest.approx(0.712)


@pytest.mark.parametrize(
    ("view", "only"),
    [({"prompt": "other"}, {}), ({}, {"tasks": ["udpos"]}), ({}, {"languages": ["qu"]})],
)
def test_without_a_published_score_there_is_no_table(
    view: Mapping[str, str], only: Mapping[str, Any]
) -> None:
    with pytest.raises(UsageError):
        read_published_tables([run_of({"en": 0.5}, view)], DOCUMENTS, **only)


@pytest.mark.parametrize(
    "option", [("--history",), ("--strict",), ("--metric", "accuracy"), ("--format", "svg")]
)
def test_options_that_printed_scores_do_not_have(cli: Cli, tmp_path: Path, option: tuple[str, ...]) -> None:
    ending = ("--output", tmp_path / "x.svg") if option[0] == "--format" else ()
    status, _, err = cli("compare", tmp_path, "--with-published", *option, *ending)
    assert status == 2
    assert option[0] in err
