"""Tasks on topics, sentiment and hate speech read the layouts that were published."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from harness.running.session import Session
from tests.builders import published_tables, split_ref

ROWS = yaml.safe_load(Path(__file__).with_name("topic_rows.yaml").read_text(encoding="utf-8"))


@pytest.mark.parametrize(
    ("task", "language", "paths"),
    [
        ("sib200", "zh-Hant", ["sib200/zho_Hant/test.tsv"]),
        ("sib200_bitext", "bm", ["sib200/bam_Latn/test.tsv", "sib200/eng_Latn/test.tsv"]),
        ("ntrex_bitext", "de", ["ntrex/newstest2019-ref.deu.txt", "ntrex/newstest2019-src.eng.txt"]),
        ("ntrex_bitext", "zh", ["ntrex/newstest2019-ref.zho-CN.txt", "ntrex/newstest2019-src.eng.txt"]),
        (
            "ntrex_bitext",
            "sr-Latn",
            ["ntrex/newstest2019-ref.srp-Latn.txt", "ntrex/newstest2019-src.eng.txt"],
        ),
        ("ntrex_bitext", "om", ["ntrex/newstest2019-ref.orm.txt", "ntrex/newstest2019-src.eng.txt"]),
        ("nusax_senti", "bbc", ["nusax/sentiment/toba_batak/test.csv"]),
        ("masakhanews", "om", ["masakhanews/orm/test.tsv"]),
        ("afrisenti", "pt", ["afrisenti/por/test.tsv"]),
    ],
)
def test_files_have_their_published_names(
    session: Session, task: str, language: str, paths: list[str]
) -> None:
    [files] = split_ref(session, task, language).local
    assert list(files.paths) == paths


@pytest.mark.parametrize("published", ROWS, ids=lambda row: row["task"])
def test_rows_of_the_hub_become_items(session: Session, tmp_path: Path, published: Mapping[str, Any]) -> None:
    """A table in the layout of the Hub is read by the spec's reader with the spec's columns."""
    pa, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    hub = split_ref(session, published["task"], published["language"]).hub
    assert hub is not None
    assert hub.config == published["config"]
    parquet.write_table(pa.Table.from_pylist([published["row"]]), tmp_path / "test.parquet")
    options = dict(hub.options) | ({} if hub.columns is None else {"columns": hub.columns})
    [read] = session.registry.readers.get(str(hub.reader)).rows([tmp_path / "test.parquet"], options)
    assert dict(read.fields) == published["fields"]


def test_labels_of_nusax_on_the_hub_are_numbers(session: Session) -> None:
    hub = split_ref(session, "nusax_senti", "id").hub
    assert hub is not None
    assert (hub.config, hub.label_map) == ("ind", {"0": "negative", "1": "neutral", "2": "positive"})


def test_columns_of_mteb_are_those_of_its_results(session: Session) -> None:
    """Every pair of the results repository is a language of the task, by the name of its column on the Hub."""
    table = published_tables("mteb_e5_small") / "NTREXBitextMining.tsv"
    pairs = {line.split("\t")[2] for line in table.read_text(encoding="utf-8").splitlines()[1:]}
    entry = session.catalog.task("ntrex_bitext")
    hub = entry.spec.splits["test"].hub
    assert hub is not None
    columns = {
        entry.languages.get(code).codes()["mteb"] for code in entry.spec.languages if code not in hub.lacks
    }
    queried = {pair.split("-")[0] for pair in pairs if pair.endswith("-eng_Latn")}
    assert len(queried) > 90
    assert queried <= columns
