"""Tasks on topics, sentiment and hate speech keep the contract, and read the layouts that were published."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from harness.data.resolve import DataRef
from harness.data.sources import data_ref
from harness.running.session import Session, open_session
from harness.testing.spec_contract import SpecContract
from tests.builders import published_tables


@pytest.mark.thorough
class TestSib200(SpecContract):
    sample_languages = 7
    sample_scripts = 3
    sample_items = 7

    @pytest.fixture
    def task(self) -> str:
        return "sib200"


@pytest.mark.thorough
class TestInLanguage(SpecContract):
    sample_languages = 3  # each of these has a sample to train on
    sample_scripts = 1
    sample_items = 6

    @pytest.fixture(params=["afrisenti", "masakhanews", "nusax_senti"])
    def task(self, request: pytest.FixtureRequest) -> str:
        return str(request.param)


@pytest.mark.thorough
class TestNusaxBitext(SpecContract):
    sample_languages = 3
    sample_scripts = 1
    sample_items = 6

    @pytest.fixture
    def task(self) -> str:
        return "nusax_bitext"


@pytest.mark.thorough
class TestMultilingualHatecheck(SpecContract):
    sample_languages = 4
    sample_scripts = 2
    sample_items = 6
    model = "ranks:it"  # prompted only

    @pytest.fixture
    def task(self, install_plugin: Callable[..., Path]) -> str:
        folder = Path(__file__).parents[1] / "running"
        install_plugin("ranking_adapter", (folder / "ranking_adapter.py").read_text(encoding="utf-8"))
        return "multilingual_hatecheck"


@pytest.fixture(scope="module")
def session() -> Session:
    return open_session()


def _ref(session: Session, task: str, language: str) -> DataRef:
    entry = session.catalog.task(task)
    source = entry.spec.source(language, "test")
    assert source is not None
    return data_ref(source, owner=task, language=entry.languages.get(language), split="test", folder=None)


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
    [files] = _ref(session, task, language).local
    assert list(files.paths) == paths


@pytest.mark.parametrize(
    ("task", "language", "config", "row", "fields"),
    [
        (
            "sib200",
            "sw",
            "swh_Latn",
            {"index_id": 7, "category": "health", "text": "Kunywa maji."},
            {"id": 7, "text": "Kunywa maji.", "label": "health"},
        ),
        (
            "ntrex_bitext",
            "mn",
            None,
            {"mon_Mong": "Сайн уу.", "eng_Latn": "Hello.", "deu_Latn": "Hallo."},
            {"query": "Сайн уу.", "target": "Hello."},
        ),
        (
            "nusax_bitext",
            "jv",
            "eng-jav",
            {"sentence1": "Good.", "sentence2": "Apik."},
            {"query": "Good.", "target": "Apik."},
        ),
        (
            "masakhanews",
            "sw",
            "swa",
            {"category": "sports", "headline": "Fainali", "text": "Leo.", "url": "x"},
            {"headline": "Fainali", "text": "Leo.", "label": "sports"},
        ),
        (
            "afrisenti",
            "ha",
            "hau",
            {"tweet": "Na gode.", "label": "positive"},
            {"text": "Na gode.", "label": "positive"},
        ),
        (
            "multilingual_hatecheck",
            "de",
            None,
            {
                "mhc_case_id": "german-1",
                "functionality": "target_obj_nh",
                "test_case": "Ich mag keine Suppe.",
                "label_gold": "non-hateful",
                "templ_id": 9,
            },
            {
                "id": "german-1",
                "text": "Ich mag keine Suppe.",
                "label": "non-hateful",
                "group": "target_obj_nh",
                "template": 9,
            },
        ),
    ],
)
def test_rows_of_the_hub_become_items(
    session: Session,
    tmp_path: Path,
    task: str,
    language: str,
    config: str | None,
    row: dict[str, object],
    fields: dict[str, object],
) -> None:
    """A table in the layout of the Hub is read by the spec's reader with the spec's columns."""
    pa, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    hub = _ref(session, task, language).hub
    assert hub is not None
    assert hub.config == config
    parquet.write_table(pa.Table.from_pylist([row]), tmp_path / "test.parquet")
    options = dict(hub.options) | ({} if hub.columns is None else {"columns": hub.columns})
    [read] = session.registry.readers.get(str(hub.reader)).rows([tmp_path / "test.parquet"], options)
    assert dict(read.fields) == fields


def test_labels_of_nusax_on_the_hub_are_numbers(session: Session) -> None:
    hub = _ref(session, "nusax_senti", "id").hub
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
