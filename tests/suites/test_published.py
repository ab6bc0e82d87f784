"""The published scores that ship agree with themselves, except where they say so."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from statistics import fmean

import pytest

from harness.errors import DuplicateNameError, SpecError, UnknownNameError
from harness.running.session import Session, open_session
from harness.scores.aggregation import overall, task_scores
from harness.specs.documents import PublishedSpec
from harness_board.document import Score
from harness_board.published import published_systems
from tests.conftest import Cli

CATALOG = open_session().catalog
SUITE = CATALOG.suite("xtreme_r")
PUBLISHED = {spec.published: spec for spec in CATALOG.published_for("xtreme_r")}
COMPLETE = ("xtreme_r_mbert", "xtreme_r_mt5_xxl", "xtreme_r_xlm_r_large")
PRINTED = dict(zip(COMPLETE, (54.1, 64.6, 65.3), strict=True))
TEN_TASKS = dict(zip(COMPLETE, (52.120, 62.550, 63.940), strict=True))
LANGUAGES = {
    "xnli": 15,
    "xcopa": 11,
    "udpos": 38,
    "wikiann": 48,
    "xquad": 11,
    "mlqa": 7,
    "tydiqa": 9,
    "mewslix": 11,
    "lareqa": 11,
    "tatoeba": 41,
}
"""Ruder et al. (2021), Tables 15-24: the number of languages of every task."""
HEADLINES = {task: tuple(scores) for task, scores in PUBLISHED["xtreme_r_mbert"].scores.items()}
ROUNDING = 0.06
"""Cells are rounded to 0.1."""

TABLES = [
    (name, task, metric)
    for name, spec in PUBLISHED.items()
    for task, tables in spec.languages.items()
    for metric in tables
]


def scores_of(spec: PublishedSpec) -> Mapping[str, float | None]:
    return task_scores(spec.scores, HEADLINES)


def test_what_ships() -> None:
    """By protocol, people last."""
    assert [(spec.label, spec.protocol) for spec in PUBLISHED.values()] == [
        ("mBERT", "zero_shot_transfer"),
        ("mT5-XXL", "zero_shot_transfer"),
        ("XLM-R Large", "zero_shot_transfer"),
        ("mBERT", "translate_train"),
        ("mBERT", "translate_train_all"),
        ("mT5-XXL", "translate_train_all"),
        ("Human", "human"),
    ]
    assert set(PUBLISHED) == {name for name in CATALOG.names("published") if name.startswith("xtreme_r_")}
    assert CATALOG.published("xtreme_r_human") == PUBLISHED["xtreme_r_human"]
    assert CATALOG.published_for("another") == []
    # They have languages by task: the keys must not count as language codes.
    assert {"xnli", "wikiann"} & CATALOG.language_codes() == set()


@pytest.mark.parametrize("name", COMPLETE)
def test_the_printed_average_is_the_mean_of_category_means(name: str) -> None:
    found = overall(scores_of(PUBLISHED[name]), SUITE.tasks, SUITE.categories)
    assert found.paper == pytest.approx(PRINTED[name], abs=ROUNDING)
    assert PUBLISHED[name].overall == PRINTED[name]
    assert found.flat == pytest.approx(TEN_TASKS[name], abs=1e-9)
    assert found.flat != pytest.approx(PRINTED[name], abs=ROUNDING), "the plain mean is not what is printed"


@pytest.mark.parametrize("name", sorted(set(PUBLISHED) - set(COMPLETE)))
def test_a_row_with_holes_has_no_overall_score(name: str) -> None:
    found = overall(scores_of(PUBLISHED[name]), SUITE.tasks, SUITE.categories)
    assert (found.paper, found.flat, PUBLISHED[name].overall) == (None, None, None)
    assert {"wikiann", "mewslix", "lareqa", "tatoeba"} <= set(found.missing)
    assert found.categories["classification"] is not None
    assert ("tydiqa" in found.missing) == (name == "xtreme_r_human"), "only F1 is printed for people"


@pytest.mark.parametrize(("name", "task", "metric"), TABLES)
def test_a_table_by_language_has_the_mean_that_is_printed(name: str, task: str, metric: str) -> None:
    spec = PUBLISHED[name]
    cells = spec.languages[task][metric]
    assert len(cells) <= LANGUAGES[task]
    agrees = (
        len(cells) == LANGUAGES[task] and abs(fmean(cells.values()) - spec.scores[task][metric]) <= ROUNDING
    )
    assert agrees != (task in spec.errata) or (name, task) == ("xtreme_r_mbert", "xnli")


def test_the_erratum_that_is_only_in_a_printed_table() -> None:
    """Table 15's average of mBERT leaves English out; Table 4's does not."""
    spec = PUBLISHED["xtreme_r_mbert"]
    cells = spec.languages["xnli"]["accuracy"]
    assert fmean(value for code, value in cells.items() if code != "en") == pytest.approx(65.4, abs=ROUNDING)
    assert fmean(cells.values()) == pytest.approx(spec.scores["xnli"]["accuracy"], abs=ROUNDING)
    assert "65.4" in spec.errata["xnli"]


def test_metrics_are_the_headlines_of_the_tasks(session: Session) -> None:
    for task in SUITE.tasks:
        if task in session.catalog.names("task"):
            assert set(session.catalog.task(task).spec.headline) == set(HEADLINES[task]), task
    assert list(HEADLINES) == list(SUITE.tasks)


def test_what_cannot_be_compared_says_why() -> None:
    starred = PUBLISHED["xtreme_r_mt5_xxl"].comparable
    assert {"tydiqa", "mewslix", "lareqa", "tatoeba"} == set(starred)
    for spec in PUBLISHED.values():
        assert "Ruder et al. 2021, Table 4" in spec.source
        if "mewslix" in spec.scores:
            assert "mewslix" in spec.comparable


DOCUMENT = """\
published: mine
suite: xtreme_r
label: Mine
protocol: zero_shot_transfer
recipe: none
release: none
source: Table 1
scores:
  xnli: {accuracy: 50}
"""


@pytest.mark.parametrize(
    ("more", "expected"),
    [
        ("  xnly: {accuracy: 50}\n", "line 10: scores.xnly: No task of the suite 'xtreme_r' named 'xnly'"),
        (
            "  xquad: {exact_mach: 50}\n",
            "line 10: scores.xquad.exact_mach: No metric named 'exact_mach'. Did",
        ),
        (
            "languages: {xnli: {accuracy: {cmn: 5}}}\n",
            "languages.xnli.accuracy.cmn: 'cmn' is the Tatoeba code",
        ),
        (
            "languages: {xnli: {accuracy: {fi: 5}}}\n",
            "languages.xnli.accuracy.fi: No language of 'xnli' named",
        ),
        ("languages: {xquad: {f1: {en: 5}}}\n", "languages names xquad, "),
        ("languages: {xnli: {f1: {en: 5}}}\n", "languages.xnli has f1, "),
        ("errata: {xquad: e}\n", "errata names xquad, "),
        ("comparable: {xquad: e}\n", "comparable names xquad, "),
        ("  xquad: {f1: 150}\n", "line 10: scores.xquad.f1: Input should be less than or equal to 100"),
        ("  xquad: {}\n", "line 10: scores.xquad: Dictionary should have at least 1 item"),
        ("overal: 5\n", "line 10: overal: unknown key 'overal'; did you mean 'overall'?"),
    ],
)
def test_faults_of_published_scores(cli: Cli, tmp_path: Path, more: str, expected: str) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text(DOCUMENT.replace("xtreme_r", "xtreme_rr"), encoding="utf-8")
    assert "line 2: suite: No suite named 'xtreme_rr'" in cli("tasks", "validate", path)[2]
    path.write_text(DOCUMENT, encoding="utf-8")
    assert cli("tasks", "validate", path) == (0, "ok  published mine\n", "")
    path.write_text(DOCUMENT + more, encoding="utf-8")
    status, _, err = cli("tasks", "validate", path)
    assert status == 2
    assert expected in err


def test_documents_of_packages_join_the_shipped_ones(tmp_path: Path) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text(DOCUMENT, encoding="utf-8")
    catalog = open_session([path]).catalog
    assert [spec.label for spec in catalog.published_for("xtreme_r")][:2] == ["Mine", "mBERT"]
    with pytest.raises(UnknownNameError):
        catalog.published("mina")
    path.write_text(DOCUMENT.replace("published: mine", "published: xtreme_r_mbert"), encoding="utf-8")
    with pytest.raises(DuplicateNameError, match="xtreme_r_mbert"):
        open_session([path]).catalog.published_for("xtreme_r")
    path.write_text(DOCUMENT.replace("label: Mine\n", ""), encoding="utf-8")
    with pytest.raises(SpecError, match="expected either 'label' and 'scores', or 'systems'"):
        open_session([path]).catalog.published_for("xtreme_r")


SEVERAL = """\
published: several
suite: xtreme_r
protocol: prompted
recipe: r
release: d
source: s
comparable: {xnli: other items}
items: {xnli: {de: 14, en: 1000}}
systems:
  A: {scores: {xnli: {accuracy: 50}}, languages: {xnli: {accuracy: {de: 57.1, en: 60}}}}
  B: {scores: {xcopa: {accuracy: 40}}, families: {xcopa: {accuracy: {Uralic: 39}}}}
"""


def test_a_document_of_several_systems(tmp_path: Path) -> None:
    """Every system has what is said of its own tasks alone."""
    path = tmp_path / "several.yaml"
    path.write_text(SEVERAL, encoding="utf-8")
    catalog = open_session([path]).catalog
    first, second = [spec for spec in catalog.published_for("xtreme_r") if spec.published == "several"]
    assert (first.label, first.scores, first.systems) == ("A", {"xnli": {"accuracy": 50}}, {})
    assert (first.comparable, first.items) == ({"xnli": "other items"}, {"xnli": {"de": 14, "en": 1000}})
    assert (second.label, second.comparable, second.items) == ("B", {}, {})
    assert second.families == {"xcopa": {"accuracy": {"Uralic": 39}}}


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("systems:", "label: C\nsystems:", "expected either 'label' and 'scores', or 'systems'"),
        ("items: {xnli", "items: {wikiann", "items names wikiann, which 'scores' does not have"),
        ("en: 1000", "en: 0", "greater than 0"),
        ("de: 57.1", "deu: 57.1", "'deu' is the Tatoeba code"),
        (
            "B: {scores: {xcopa: {accuracy: 40}}, families: {xcopa",
            "B: {scores: {xcopy: {accuracy: 40}}, families: {xcopy",
            "No task of the suite 'xtreme_r' named 'xcopy'",
        ),
        ("xcopa: {accuracy: {Ural", "xcopa: {f1: {Ural", "families.xcopa has f1"),
    ],
)
def test_faults_of_several_systems(cli: Cli, tmp_path: Path, old: str, new: str, expected: str) -> None:
    path = tmp_path / "several.yaml"
    path.write_text(SEVERAL.replace(old, new), encoding="utf-8")
    status, _, err = cli("tasks", "validate", path)
    assert status == 2
    assert expected in err


def test_every_number_of_items_gives_the_printed_scores() -> None:
    """A score is a whole number of right answers; the smallest number of items that gives all of them is the one."""
    found = 0
    for suite in ("llm_core", "americas"):
        for spec in CATALOG.published_for(suite):
            for task, counts in spec.items.items():
                for table in spec.languages[task].values():
                    assert counts.keys() == table.keys()
                    for code, value in table.items():
                        n = counts[code]
                        digits = 1 if suite == "llm_core" else 2
                        assert round(100 * round(value * n / 100) / n, digits) == value, (spec.label, code)
                        found += 1
    assert found == 15 * 11 + 10


def test_belebele_by_family_has_the_mean_of_its_languages() -> None:
    """Qwen3 Technical Report, Table 36: how many languages every family has."""
    sizes = {
        **{"Indo-European": 40, "Sino-Tibetan": 3, "Afro-Asiatic": 8, "Austronesian": 7, "Dravidian": 4},
        **{"Turkic": 4, "Kra-Dai": 2, "Uralic": 3, "Austro-Asiatic": 2, "other": 7},
    }
    rows = [spec for spec in CATALOG.published_for("llm_core") if "belebele" in spec.scores]
    assert len(rows) == 17
    for spec in rows:
        table = spec.families["belebele"]["accuracy"]
        mean = sum(value * sizes[family] for family, value in table.items()) / sum(sizes.values())
        assert spec.scores["belebele"]["accuracy"] == pytest.approx(mean, abs=0.0501)


@pytest.mark.parametrize(
    ("categories", "expected"),
    [
        ("{x: [xnli]}", "categories: 'xquad' is in 0 categories; expected each task in one"),
        ("{x: [xnli, xquad], y: [xnli]}", "categories: 'xnli' is in 2 categories"),
    ],
)
def test_every_task_of_a_suite_is_in_one_category(
    cli: Cli, tmp_path: Path, categories: str, expected: str
) -> None:
    path = tmp_path / "mine.yaml"
    text = "suite: mine\ndescription: d\ncitation: c\nprotocol: frozen\ntasks: [xnli, xquad]\ncategories: "
    path.write_text(f"{text}{categories}\n", encoding="utf-8")
    status, _, err = cli("tasks", "validate", path)
    assert status == 2
    assert f"line 6: {expected}" in err


def test_a_board_knows_how_sure_a_score_over_few_items_is() -> None:
    """Wilson's interval of 9 of 14, by its formula."""
    systems = {system.label: system for system in published_systems(CATALOG, "llm_core")}
    scores = systems["Qwen3 32B thinking"].scores
    [score] = [score for score in scores if score.task == "include"]
    p, n, z = 9 / 14, 14, 1.959963984540054
    centre, reach = p + z * z / (2 * n), z * math.sqrt(p * (1 - p) / n + z * z / (4 * n * n))
    low, high = (100 * end / (1 + z * z / n) for end in (centre - reach, centre + reach))
    assert score.interval_by_language["de"] == pytest.approx((low, high), abs=0.1)
    assert score.se_by_language["de"] == pytest.approx(100 * math.sqrt(p * (1 - p) / n), abs=0.1)
    assert "less than 37 points apart" in score.note
    assert (score.se, score.low) == (None, None)


def _score(label: str, task: str, metric: str) -> Score:
    means = {"accuracy", "f1", "exact_match", "mlqa_f1", "map_at_20"}
    [system] = [
        own
        for own in published_systems(CATALOG, "xtreme_r", means)
        if (own.label, own.protocol) == (label, "zero_shot_transfer")
    ]
    [score] = [own for own in system.scores if (own.task, own.metric) == (task, metric)]
    return score


def test_a_published_mean_has_the_error_of_its_release() -> None:
    """mBERT on XNLI: 81.7 in English and 49.3 in Swahili, of 5,010 items each; parallel, so errors are averaged."""
    score = _score("mBERT", "xnli", "accuracy")
    errors = {code: math.sqrt(value * (100 - value) / 5010) for code, value in score.by_language.items()}
    assert (score.by_language["en"], len(errors)) == (81.7, 15)
    assert score.se_by_language == pytest.approx(errors)
    assert score.se == pytest.approx(sum(errors.values()) / 15)


def test_languages_of_their_own_items_add_as_independent_ones() -> None:
    score = _score("mBERT", "tydiqa", "f1")
    counts = dict(en=440, ar=921, bn=113, fi=782, id=565, ko=276, ru=812, sw=499, te=669)
    cells = {code: score.by_language.get(code, 50.0) for code in counts}
    variance = sum(cells[code] * (100 - cells[code]) / n for code, n in counts.items())
    assert score.se == pytest.approx(math.sqrt(variance) / 9)
    first_release = _score("mBERT", "mlqa", "mlqa_f1")
    value = first_release.by_language["de"]
    assert first_release.se_by_language["de"] == pytest.approx(math.sqrt(value * (100 - value) / 4517))


@pytest.mark.parametrize(("task", "metric"), [("wikiann", "chunk_f1"), ("mewslix", "map_at_20")])
def test_set_level_and_incomparable_scores_have_no_error(task: str, metric: str) -> None:
    score = _score("mBERT", task, metric)
    assert (score.se, score.se_by_language) == (None, {})
    # Nor are people assumed to have answered all items.
    systems = {own.label: own for own in published_systems(CATALOG, "xtreme_r", {"accuracy", "f1"})}
    assert {own.se for own in systems["Human"].scores} == {None}


@pytest.mark.parametrize(
    ("name", "task", "metric", "languages"),
    [
        ("brighter_in_language", "brighter", "multilabel_macro_f1", 24),
        ("semrel_unsupervised", "semrel", "spearman", 14),
        ("dialect_copa_zero_shot", "dialect_copa", "accuracy", 9),
    ],
)
def test_a_mean_that_is_ours_is_that_of_the_table(name: str, task: str, metric: str, languages: int) -> None:
    for system in CATALOG.published(name).each():
        cells = system.languages[task][metric]
        assert len(cells) == languages
        assert fmean(cells.values()) == pytest.approx(system.scores[task][metric], abs=0.006)


def test_the_printed_means_of_brighter_are_not_those_of_its_table() -> None:
    """The cells of its 28 languages have means that are up to 1.2 points lower."""
    for system in CATALOG.published("brighter_few_shot").each():
        cells = system.languages["brighter"]["multilabel_macro_f1"]
        gap = system.scores["brighter"]["multilabel_macro_f1"] - fmean(cells.values())
        assert len(cells) == 28
        assert 0.6 < gap < 1.2
        assert "brighter" in system.errata


def test_a_mean_over_questions_is_weighted_by_the_questions_of_a_language() -> None:
    counts = CATALOG.task("exams").spec.releases["EXAMS multilingual test"].counts
    assert isinstance(counts, dict)
    for system in CATALOG.published("national_exams_exams").each():
        cells = system.languages["exams"]["accuracy"]
        mean = sum(cells[code] * n for code, n in counts.items()) / sum(counts.values())
        assert mean == pytest.approx(system.scores["exams"]["accuracy"], abs=ROUNDING)


@pytest.mark.parametrize(("task", "metric", "status"), [("semrel", "spearman", 0), ("xnli", "accuracy", 2)])
def test_only_a_correlation_is_below_0(cli: Cli, tmp_path: Path, task: str, metric: str, status: int) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text(
        "published: mine\nlabel: M\nprotocol: frozen\nrecipe: r\nrelease: r\nsource: s\n"
        f"scores: {{{task}: {{{metric}: 12.0}}}}\nlanguages: {{{task}: {{{metric}: {{en: -16.0}}}}}}\n",
        encoding="utf-8",
    )
    code, _, err = cli("tasks", "validate", path)
    assert code == status
    assert ("must be at least 0, got -16" in err) == (status == 2)
