"""Every task that ships keeps the contract, and has the languages that were published."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cache
from importlib.resources import files
from pathlib import Path

import pytest

from harness.errors import SpecError
from harness.running.session import Session, open_session
from harness.specs.loading import read_yaml
from harness.testing.spec_contract import SpecContract, _require_task
from tests.specs.hub_configs import CONFIGS

Cli = Callable[..., tuple[int, str, str]]

FOLDER = Path(str(files("harness_task_specs")))
SCHEMA = FOLDER / "task.schema.json"
DOCUMENTS = sorted(FOLDER.glob("*/*.yaml"))
SHIPPED = [entry.name for entry in open_session().catalog.entries if entry.sort == "task"]
PUBLISHED = {
    "am2ico": 14,  # Liu et al. (2021)
    "arabicmmlu": 1,  # Koto et al. (2024)
    "brighter": 28,  # Muhammad et al. (2025)
    "marco_mif": 30,  # Zeng et al. (2025)
    "multi_if": 8,  # He et al. (2024)
    "multijail": 10,  # Deng et al. (2024)
    "semrel": 14,  # Ousidhoum et al. (2024): 13 with training data or tests, and Spanish
    "blend": 16,  # Myung et al. (2024): 16 countries, 13 languages
    "cmmlu": 1,  # Li et al. (2024)
    "crosssum_in": 29,  # Singh et al. (2024), Table 1
    "dialect_copa": 10,  # clarinsi/dialect-copa: English, four languages, three dialects, Latin copies of two
    "exams": 16,  # Hardalov et al. (2020), multilingual test
    "flores_in": 29,  # Singh et al. (2024), Table 1
    "flores_in_to_en": 29,
    "kmmlu": 1,  # Son et al. (2025)
    "milu": 11,  # Verma et al. (2025)
    "multiloko": 31,  # Hupkes and Bogoychev (2025)
    "tico19": 36,  # the test files, without two more of Tigrinya
    "turkishmmlu": 1,  # Yüksel et al. (2024)
    "wmt24pp": 55,  # Deutsch et al. (2025)
    "afrimgsm": 19,  # Adelani et al. (2024): 17 African languages, English and French
    "afriqa": 9,  # Ogundepo et al. (2023), those with gold passages
    "afrisenti": 14,  # Muhammad et al. (2023)
    "blimp": 1,  # Warstadt et al. (2020)
    "bmlama": 17,  # Qi et al. (2023): BMLAMA-17
    "clams": 5,  # Mueller et al. (2020)
    "colorless_green_agreement": 4,  # two of Gulordava et al. (2018), two of our own
    "flores_mt": 205,  # NLLB Team (2022), as the language table has them
    "flores_mt_to_en": 205,
    "flores_plus": 217,  # devtest as others list its files, those that the language table has a code for
    "lareqa": 11,  # Roy et al. (2020); Ruder et al. (2021), Table 1
    "masakhaner2": 20,  # Adelani et al. (2022)
    "masakhaner_x": 20,
    "masakhanews": 16,  # Adelani et al. (2023)
    "masakhapos": 20,  # Dione et al. (2023)
    "mewslix": 11,  # Ruder et al. (2021), Table 1
    "mgsm": 11,  # Shi et al. (2023)
    "mkqa": 26,  # Longpre et al. (2021)
    "mlqa": 7,  # Lewis et al. (2020); Ruder et al. (2021), Table 1
    "mlqa_cross": 7,
    "msvamp": 10,  # Chen et al. (2023)
    "multiblimp": 101,  # Jumelet et al. (2025)
    "multichecklist": 50,  # Ruder et al. (2021), section 3.4
    "multilingual_hatecheck": 10,  # Röttger et al. (2022)
    "ntrex_bitext": 124,  # Federmann et al. (2022): 128 files, without three kinds of English and a second Spanish
    "ntrex_mt": 124,  # Federmann et al. (2022), without English and its three variants
    "ntrex_mt_to_en": 124,
    "nusax_bitext": 11,  # Winata et al. (2023): 12 languages, of which English asks
    "nusax_mt": 11,  # Winata et al. (2023), without English
    "nusax_mt_to_en": 11,
    "nusax_senti": 12,
    "pawsx": 7,  # Yang et al. (2019), Table 1: English and six translations
    "polymath": 18,  # Wang et al. (2025)
    "rublimp": 1,  # Taktasheva et al. (2024)
    "sib200": 205,  # Adelani et al. (2024)
    "sib200_bitext": 204,  # English answers
    "tatoeba": 41,  # Ruder et al. (2021), Table 1
    "turblimp": 1,  # Basar et al. (2025)
    "tydiqa": 9,  # Clark et al. (2020), gold passages, with English; Ruder et al. (2021), Table 1
    "udpos": 38,  # Ruder et al. (2021), Table 1
    "udpos_raw": 38,
    "vyakarana_gcm": 2,  # Patil et al. (2021): Hindi and Tamil
    "vyakarana_pos": 2,
    "vyakarana_pos_rows": 1,  # only the Tamil treebank has multi-word tokens
    "vyakarana_stdp": 2,
    "vyakarana_sva": 1,  # Hindi: the verbs of the Tamil treebank are neither masculine nor feminine
    "wikiann": 48,  # Ruder et al. (2021), tables of results
    "wikiann_raw": 48,
    "xcopa": 11,  # Ponti et al. (2020)
    "xglue_nc": 5,  # Liang et al. (2020)
    "xglue_qam": 3,
    "xlsum": 45,  # Hasan et al. (2021): 44 languages, Serbian in two scripts
    "xnli": 15,  # Conneau et al. (2018)
    "xquad": 11,  # Artetxe et al. (2020); Ruder et al. (2021), Table 1
    "xsid_intent": 19,  # van der Goot et al. (2021), release 0.7
    "xsid_slots": 19,
    "xtreme_up_qa": 9,  # the authors' evaluation/constants.py
    "xwinograd": 6,  # Tikhonov and Ryabinin (2021)
}
PUBLISHED |= {name: len(configs) for name, configs in CONFIGS.items()}

BEYOND = {name: 2 for name in PUBLISHED if name.startswith("vyakarana") and not name.endswith("_rows")}
"""Languages that we add to the published ones: Urdu and Marathi."""


WRITTEN = {
    "afrimgsm": (3, 1),
    "blend": (3, 2),
    "crosssum_in": (3, 3),
    "flores_mt": (5, 3),
    "flores_mt_to_en": (5, 3),
    "flores_plus": (5, 3),
    "flores_in": (3, 3),
    "flores_in_to_en": (3, 3),
    "mgsm": (6, 2),
    "mkqa": (6, 3),
    "msvamp": (6, 2),
    "multiloko": (6, 3),
    "ntrex_mt": (5, 3),
    "ntrex_mt_to_en": (5, 3),
    "nusax_mt": (1, 1),
    "nusax_mt_to_en": (1, 1),
    "polymath": (5, 2),
    "tico19": (4, 3),
    "wmt24pp": (4, 3),
    "marco_mif": (5, 4),
    "multi_if": (5, 4),
    "xlsum": (3, 2),
    "xtreme_up_qa": (3, 2),
}
"""Tasks whose answers are written, which no baseline can do -> the languages and scripts of their samples."""
# The sample of these tasks is smaller: they have fewer languages or scripts, or not those of the other samples.
PAIRS = {"blimp": 1, "bmlama": 5, "clams": 4, "multiblimp": 5, "rublimp": 1, "turblimp": 1, "xwinograd": 3}
"""Tasks of form preference, which no baseline can do -> the languages of their samples."""
CHOSEN = {
    "am2ico": (3, 2),
    "arabicmmlu": (1, 1),
    "cmmlu": (1, 1),
    "dialect_copa": (4, 2),
    "exams": (3, 2),
    "kmmlu": (1, 1),
    "milu": (2, 2),
    "turkishmmlu": (1, 1),
}
"""Tasks without training data, which models are only asked -> the languages and scripts of their samples."""
SMALLER = {
    *PAIRS,
    *CHOSEN,
    "afriqa",
    "brighter",
    "semrel",
    "multijail",  # no program scores it: tests/instructions/test_safety.py
    *WRITTEN,
    "afrisenti",  # these six: test_topic_tasks.py
    "masakhaner2",  # these five: test_tagged_tasks.py
    "masakhaner_x",
    "masakhapos",
    "xsid_intent",
    "xsid_slots",
    "masakhanews",
    "multilingual_hatecheck",
    "nusax_bitext",
    "nusax_senti",
    "sib200",
    "xglue_nc",
    "xglue_qam",
    "colorless_green_agreement",
    "mewslix",
    "mlqa",
    "mlqa_cross",
    "pawsx",
    "tydiqa",
    "vyakarana_pos_rows",
    "xcopa",
    *BEYOND,
    *CONFIGS,
}


@pytest.fixture(autouse=True, scope="module")
def _plugins_are_loaded_once() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("harness.testing.spec_contract.open_session", cache(open_session))
        yield


@pytest.mark.thorough
class TestShippedSpecs(SpecContract):
    @pytest.fixture(params=[name for name in SHIPPED if name not in SMALLER])
    def task(self, request: pytest.FixtureRequest) -> str:
        return str(request.param)


class TestColorlessGreenAgreement(SpecContract):
    sample_languages = 2  # no baseline is a language model, and the set has English and Hindi of our own
    sample_scripts = 2
    model = "ranks:it"

    @pytest.fixture
    def task(self, install_plugin: Callable[..., Path]) -> str:
        folder = Path(__file__).parents[1] / "running"
        install_plugin("ranking_adapter", (folder / "ranking_adapter.py").read_text(encoding="utf-8"))
        return "colorless_green_agreement"


@pytest.mark.thorough
class TestPairs(SpecContract):
    sample_scripts = 1
    sample_items = 6
    model = "ranks:it"

    @pytest.fixture(params=sorted(PAIRS))
    def task(self, request: pytest.FixtureRequest, install_plugin: Callable[..., Path]) -> str:
        folder = Path(__file__).parents[1] / "running"
        install_plugin("ranking_adapter", (folder / "ranking_adapter.py").read_text(encoding="utf-8"))
        type(self).sample_languages = PAIRS[request.param]
        return str(request.param)


class TestAfriqa(SpecContract):
    sample_languages = 3
    sample_items = 6
    sample_scripts = 1  # all nine languages are written in Latin letters

    @pytest.fixture
    def task(self) -> str:
        return "afriqa"


class TestXglue(SpecContract):
    sample_languages = 3
    sample_items = 6
    sample_scripts = 1

    @pytest.fixture(params=["xglue_nc", "xglue_qam"])
    def task(self, request: pytest.FixtureRequest) -> str:
        return str(request.param)


class TestSemeval(SpecContract):
    sample_languages = 4
    sample_items = 3
    sample_scripts = 2

    @pytest.fixture(params=["brighter", "semrel"])
    def task(self, request: pytest.FixtureRequest) -> str:
        return str(request.param)


class TestWritten(SpecContract):
    thorough = frozenset({"test_the_baseline_gets_a_score_in_every_language_of_the_sample"})
    sample_items = 3
    model = "asks:writes"

    @pytest.fixture(params=sorted(WRITTEN))
    def task(self, request: pytest.FixtureRequest, install_plugin: Callable[..., Path]) -> str:
        folder = Path(__file__).parents[1] / "running"
        install_plugin("asking_adapter", (folder / "asking_adapter.py").read_text(encoding="utf-8"))
        type(self).sample_languages, type(self).sample_scripts = WRITTEN[request.param]
        return str(request.param)


@pytest.mark.thorough
class TestChosen(SpecContract):
    sample_items = 4
    model = "ranks:it"

    @pytest.fixture(params=sorted(CHOSEN))
    def task(self, request: pytest.FixtureRequest, install_plugin: Callable[..., Path]) -> str:
        folder = Path(__file__).parents[1] / "running"
        install_plugin("ranking_adapter", (folder / "ranking_adapter.py").read_text(encoding="utf-8"))
        type(self).sample_languages, type(self).sample_scripts = CHOSEN[request.param]
        return str(request.param)


class TestPawsX(SpecContract):
    sample_languages = 4  # PAWS-X has seven languages in four scripts
    sample_scripts = 2

    @pytest.fixture
    def task(self) -> str:
        return "pawsx"


class TestXcopa(SpecContract):
    sample_scripts = 3  # eight of XCOPA's eleven languages are written in Latin letters

    @pytest.fixture
    def task(self) -> str:
        return "xcopa"


class TestMlqa(SpecContract):
    sample_languages = 7  # all that MLQA has, in four scripts
    sample_scripts = 4

    @pytest.fixture
    def task(self) -> str:
        return "mlqa"


class TestMlqaCross(SpecContract):
    sample_languages = 5  # six of MLQA's 49 pairs
    sample_scripts = 3

    @pytest.fixture
    def task(self) -> str:
        return "mlqa_cross"


class TestTydiqa(SpecContract):
    sample_languages = 6  # of TyDi QA's nine languages, which are written in six scripts
    sample_scripts = 3

    @pytest.fixture
    def task(self) -> str:
        return "tydiqa"


class TestMewsliX(SpecContract):
    sample_languages = 6  # of Mewsli-X's eleven
    sample_scripts = 3

    @pytest.fixture
    def task(self) -> str:
        return "mewslix"


class TestVyakarana(SpecContract):
    sample_languages = 4  # Hindi and Tamil, Urdu and Marathi
    sample_scripts = 3
    sample_items = 4

    @pytest.fixture(params=["vyakarana_gcm", "vyakarana_pos", "vyakarana_stdp"])
    def task(self, request: pytest.FixtureRequest) -> str:
        return str(request.param)


class TestVyakaranaRows(SpecContract):
    sample_languages = 1
    sample_scripts = 1
    sample_items = 4

    @pytest.fixture
    def task(self) -> str:
        return "vyakarana_pos_rows"


class TestVyakaranaAgreement(SpecContract):
    sample_languages = 3  # without Tamil
    sample_scripts = 2
    sample_items = 2

    @pytest.fixture
    def task(self) -> str:
        return "vyakarana_sva"


@pytest.mark.parametrize("task", sorted(PUBLISHED))
def test_a_task_has_the_published_number_of_languages(session: Session, task: str) -> None:
    entry = session.catalog.task(task)
    assert len(entry.spec.languages) - len(entry.added) == PUBLISHED[task] + BEYOND.get(task, 0)


@pytest.mark.parametrize(
    ("task", "stages"),
    [
        ("lareqa", ["squad_sentences"]),
        ("mewslix", ["mewsli_x_pairs"]),
        ("mlqa", ["squad"]),
        ("mlqa_cross", ["squad"]),
        ("tydiqa", ["tydiqa"]),
        ("wikiann", ["wikiann"]),
        ("xcopa", ["siqa", "copa"]),
        ("xnli", ["mnli"]),
        ("xquad", ["squad"]),
        ("tatoeba", ["squad"]),
        ("udpos", ["udpos"]),
        ("udpos_raw", ["udpos"]),
        ("wikiann_raw", ["wikiann"]),
    ],
)
def test_a_task_is_trained_on_what_the_paper_trains_on(
    session: Session, task: str, stages: list[str]
) -> None:
    transfer = session.catalog.task(task).spec.transfer
    assert transfer is not None
    assert (list(transfer.stages), transfer.source) == (stages, "en")


@pytest.mark.parametrize("task", SHIPPED)
def test_a_shipped_task_says_where_it_is_from(session: Session, task: str) -> None:
    """A task of your own may leave these out."""
    spec = session.catalog.task(task).spec
    assert spec.description
    assert spec.citation
    assert spec.license


def test_every_task_says_how_many_languages_were_published() -> None:
    assert sorted(PUBLISHED) == sorted(SHIPPED)


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
