"""Every task that ships keeps the contract, and has the languages that were published."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cache
from importlib.resources import files
from pathlib import Path

import pytest

from harness.errors import SpecError
from harness.running.session import Session, open_session
from harness.specs.loading import read_yaml
from harness.testing.spec_contract import SpecContract, _require_task
from tests.conftest import Cli
from tests.specs.hub_configs import CONFIGS

FOLDER = Path(str(files("harness_task_specs")))
SCHEMA = FOLDER / "task.schema.json"
DOCUMENTS = sorted(FOLDER.glob("*/*.yaml"))
SHIPPED = [entry.name for entry in open_session().catalog.entries if entry.sort == "task"]
PUBLISHED = {name: len(configs) for name, configs in CONFIGS.items()} | {
    name: int(count)
    for name, count, _ in (
        line.split("\t")
        for line in Path(__file__)
        .with_name("published_languages.tsv")
        .read_text(encoding="utf-8")
        .splitlines()[1:]
    )
}
"""Number of languages by task; the table names the source of each."""

BEYOND = {name: 2 for name in PUBLISHED if name.startswith("vyakarana") and not name.endswith("_rows")}
"""Languages that we add to the published ones: Urdu and Marathi."""


@dataclass(frozen=True)
class Sample:
    """The least languages, scripts and items of a sample, and a model that does the task."""

    languages: int = 8
    scripts: int = 5
    items: int = 12
    model: str = "baseline:majority"


RANKS, WRITES = "ranks:it", "asks:writes"
SAMPLES = {
    task: sample
    for tasks, sample in (
        # no baseline does these: form preference, written answers, and tasks that models are only asked
        ("colorless_green_agreement", Sample(2, 2, model=RANKS)),
        ("blimp rublimp turblimp", Sample(1, 1, 6, RANKS)),
        ("xwinograd", Sample(3, 1, 6, RANKS)),
        ("clams", Sample(4, 1, 6, RANKS)),
        ("bmlama multiblimp", Sample(5, 1, 6, RANKS)),
        ("arabicmmlu blend_choices cmmlu kmmlu turkishmmlu", Sample(1, 1, 4, RANKS)),
        ("milu", Sample(2, 2, 4, RANKS)),
        ("am2ico exams", Sample(3, 2, 4, RANKS)),
        ("dialect_copa", Sample(4, 2, 4, RANKS)),
        ("multilingual_hatecheck", Sample(4, 2, 6, RANKS)),
        ("nusax_mt nusax_mt_to_en", Sample(1, 1, 3, WRITES)),
        ("afrimgsm", Sample(3, 1, 3, WRITES)),
        ("blend xlsum xtreme_up_qa", Sample(3, 2, 3, WRITES)),
        ("crosssum_in flores_in flores_in_to_en xorqa_in", Sample(3, 3, 3, WRITES)),
        ("eclektic", Sample(5, 2, 3, WRITES)),
        ("oneruler_cwe oneruler_niah", Sample(3, 2, 3, WRITES)),
        ("tico19 wmt24pp", Sample(4, 3, 3, WRITES)),
        ("polymath", Sample(5, 2, 3, WRITES)),
        ("flores_mt flores_mt_to_en flores_plus ntrex_mt ntrex_mt_to_en", Sample(5, 3, 3, WRITES)),
        ("marco_mif multi_if", Sample(5, 4, 3, WRITES)),
        ("mgsm msvamp", Sample(6, 2, 3, WRITES)),
        ("mkqa multiloko", Sample(6, 3, 3, WRITES)),
        # these have fewer languages or scripts, or a small sample for trying the commands
        ("afriqa xglue_nc xglue_qam", Sample(3, 1, 6)),
        ("xquad_in", Sample(3, 3, 6)),
        ("brighter semrel", Sample(4, 2, 3)),
        ("pawsx", Sample(4, 2)),
        ("xcopa", Sample(8, 3)),
        ("mlqa", Sample(7, 4)),
        ("mlqa_cross", Sample(5, 3)),
        ("tydiqa mewslix", Sample(6, 3)),
        ("vyakarana_gcm vyakarana_pos vyakarana_stdp", Sample(4, 3, 4)),
        ("vyakarana_pos_rows", Sample(1, 1, 4)),
        ("vyakarana_sva", Sample(3, 2, 2)),
        ("sib200", Sample(7, 3, 7)),
        ("afrisenti masakhanews nusax_senti nusax_bitext", Sample(3, 1, 6)),
        ("masakhaner2 masakhaner_x masakhapos xsid_intent xsid_slots", Sample(4, 1, 6)),
        (" ".join(CONFIGS), Sample(2, 1, 6)),
    )
    for task in tasks.split()
}
SCORED = [
    task for task in SHIPPED if task != "multijail"
]  # which no program scores: tests/instructions/test_safety.py
WRITTEN = [task for task in SCORED if SAMPLES.get(task, Sample()).model == WRITES]
QUICK = {
    *("colorless_green_agreement", "afriqa", "xglue_nc", "xglue_qam", "brighter", "semrel", "pawsx", "xcopa"),
    *("mlqa", "mlqa_cross", "tydiqa", "mewslix", *BEYOND, "vyakarana_pos_rows"),
}
ADAPTERS = {RANKS: "ranking_adapter", WRITES: "asking_adapter"}


@pytest.fixture(autouse=True, scope="module")
def _plugins_are_loaded_once() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("harness.testing.spec_contract.open_session", cache(open_session))
        yield


class Shipped(SpecContract):
    @pytest.fixture
    def task(self, request: pytest.FixtureRequest, install_plugin: Callable[..., Path]) -> str:
        sample = SAMPLES.get(request.param, Sample())
        if adapter := ADAPTERS.get(sample.model):
            source = Path(__file__).parents[1] / f"running/{adapter}.py"
            install_plugin(adapter, source.read_text(encoding="utf-8"))
        cls = type(self)
        cls.sample_languages, cls.sample_scripts = sample.languages, sample.scripts
        cls.sample_items, cls.model = sample.items, sample.model
        return str(request.param)


@pytest.mark.parametrize("task", sorted(QUICK), indirect=True)
class TestQuick(Shipped):
    pass


@pytest.mark.parametrize("task", WRITTEN, indirect=True)
class TestWritten(Shipped):
    thorough = frozenset({"test_the_baseline_gets_a_score_in_every_language_of_the_sample"})


@pytest.mark.thorough
@pytest.mark.parametrize("task", [task for task in SCORED if task not in {*QUICK, *WRITTEN}], indirect=True)
class TestThorough(Shipped):
    pass


def test_a_task_has_the_published_number_of_languages(session: Session) -> None:
    counts = {}
    for task in SHIPPED:
        entry = session.catalog.task(task)
        counts[task] = len(entry.spec.languages) - len(entry.added) - BEYOND.get(task, 0)
    assert counts == PUBLISHED


def test_tasks_are_trained_on_what_the_paper_trains_on(session: Session) -> None:
    stages = dict(xnli="mnli", xcopa="siqa copa", udpos="udpos", udpos_raw="udpos", wikiann="wikiann")
    stages |= dict(wikiann_raw="wikiann", xquad="squad", mlqa="squad", mlqa_cross="squad", tydiqa="tydiqa")
    stages |= dict(lareqa="squad_sentences", mewslix="mewsli_x_pairs", tatoeba="squad")
    transfers = {task: session.catalog.task(task).spec.transfer for task in stages}
    assert {task: " ".join(transfer.stages) for task, transfer in transfers.items() if transfer} == stages
    assert {transfer.source for transfer in transfers.values() if transfer} == {"en"}


def test_the_committed_schema_is_what_the_command_prints(cli: Cli) -> None:
    status, out, _ = cli("tasks", "schema")
    assert status == 0
    assert out == SCHEMA.read_text(encoding="utf-8"), (
        f"Run: harness tasks schema --output {SCHEMA.relative_to(FOLDER.parent.parent)}"
    )


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: path.stem)
def test_editors_find_the_schema(path: Path) -> None:
    first = path.read_text(encoding="utf-8").splitlines()[0]
    prefix = "# yaml-language-server: $schema="
    assert first.startswith(prefix)
    assert (path.parent / first.removeprefix(prefix)).resolve() == SCHEMA


@pytest.mark.thorough
@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: path.stem)
def test_documents_keep_the_json_schema(path: Path) -> None:
    import jsonschema

    document = read_yaml(path.read_text(encoding="utf-8"), str(path))
    jsonschema.validate(document.data, json.loads(SCHEMA.read_text(encoding="utf-8")))


def test_the_contract_finds_what_is_missing_in_a_spec(tmp_path: Path) -> None:
    """The contract must be able to fail: a spec without provenance, sample or parallel ids does not pass it."""
    path = tmp_path / "mine.yaml"
    path.write_text(
        "task: mine\nkind: bitext_retrieval\nversion: 1\ndescription: ' '\ncitation: c\nlicense: l\n"
        "metrics: [top1_accuracy]\nparallel: true\n"
        "languages: {de: {validation: {sample: x}}, sw: {test: {sample: x}}}\n",
        encoding="utf-8",
    )
    session = open_session([path])
    entry = session.catalog.task("mine")
    contract = SpecContract()
    with pytest.raises(AssertionError, match="de has no test split"):
        contract.test_languages_are_known(entry)
    with pytest.raises(AssertionError):
        contract.test_it_says_where_it_comes_from(entry)
    with pytest.raises(AssertionError):
        contract.test_the_sample_covers_languages_and_scripts(entry, {("de",): [1] * 12})
    few: dict[tuple[str, ...], list[int]] = {
        (code,): [1] * 11 for code in ("ar", "de", "en", "es", "hi", "ru", "sw", "zh")
    }
    with pytest.raises(
        AssertionError, match=r"too few items: ar has 11, .* at least 12 \(sample_items of SpecCon"
    ):
        contract.test_the_sample_covers_languages_and_scripts(session.catalog.task("xnli"), few)
    items: dict[tuple[str, ...], list[_Item]] = {
        ("de",): [_Item("1"), _Item("2")],
        ("sw",): [_Item("1"), _Item("3")],
    }
    with pytest.raises(AssertionError, match=r"sw has ids .*\['3'\]"):
        contract.test_parallel_items_have_the_same_ids(entry, items)
    items["sw",] = [_Item("2")]
    with pytest.raises(AssertionError, match=r"sw .*\['1'\]"):
        contract.test_parallel_items_have_the_same_ids(entry, items)
    contract.test_parallel_items_have_the_same_ids(replace(entry, added={"sw": "mine_too"}), items)
    path.write_text(path.read_text(encoding="utf-8").replace("top1_accuracy", "f1"), encoding="utf-8")
    session = open_session([path])
    with pytest.raises(AssertionError):
        contract.test_nothing_that_it_names_is_unknown(session, session.catalog.task("mine"))
    with pytest.raises(AssertionError):
        contract.test_the_spec_is_valid(session, "mine")
    path.write_text(path.read_text(encoding="utf-8").replace("version: 1", "version: no"), encoding="utf-8")
    with pytest.raises(SpecError):
        open_session([path]).catalog.task("mine")


def test_the_contract_says_that_a_package_must_be_installed(session: Session) -> None:
    message = r"No task named 'toone'\. .*Its package must be installed: run 'pip install -e \.' in it\."
    with pytest.raises(pytest.fail.Exception, match=message):
        _require_task(session, "toone")
    _require_task(session, "xnli")


class _Item:
    def __init__(self, identifier: str) -> None:
        self.id = identifier


@pytest.mark.parametrize(("raw", "tokens"), [("udpos_raw", "udpos"), ("wikiann_raw", "wikiann")])
def test_raw_text_has_the_tags_of_its_training_and_its_languages(
    session: Session, raw: str, tokens: str
) -> None:
    """The head is fitted on the token task, so both must have the same labels in the same order."""
    given, trained = session.catalog.task(raw).spec, session.catalog.task(tokens).spec
    assert given.label_names == trained.label_names
    assert given.languages.keys() == trained.languages.keys()
    assert given.transfer == trained.transfer
