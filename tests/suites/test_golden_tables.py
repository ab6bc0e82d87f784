"""The shipped numbers are those of the reference tables, and every reference table gives its printed averages.

The tables lie in ``golden/xtreme_r`` next to the folder that HARNESS_TEST_DATA names.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator, Mapping
from pathlib import Path
from statistics import fmean

import pytest

from harness.languages.table import known_languages
from harness.running.session import open_session
from harness.scores.suites import overall, task_scores
from harness.specs.published import PublishedSpec, SystemScores
from harness_board.published import published_metadata
from tests.builders import published_tables

Row = Mapping[str, str]

ROUNDING = 0.06
"""Cells are rounded to 0.1."""
ROWS = {
    ("mBERT", "zero-shot"): "xtreme_r_mbert",
    ("XLM-R Large", "zero-shot"): "xtreme_r_xlm_r_large",
    ("mT5-XXL", "zero-shot"): "xtreme_r_mt5_xxl",
    ("mBERT", "translate-train"): "xtreme_r_mbert_translate_train",
    ("mBERT, multilingual", "translate-train"): "xtreme_r_mbert_translate_train_all",
    ("mT5-XXL, multilingual", "translate-train"): "xtreme_r_mt5_xxl_translate_train_all",
    ("Human", "human"): "xtreme_r_human",
}
"""Table 4: model and setting -> the shipped document."""
MODELS = {
    "mbert": "xtreme_r_mbert",
    "xlm-r": "xtreme_r_xlm_r_large",
    "xlm-r large": "xtreme_r_xlm_r_large",
    "mt5": "xtreme_r_mt5_xxl",
    "mbert translate-train": "xtreme_r_mbert_translate_train",
    "mbert translate-train-all": "xtreme_r_mbert_translate_train_all",
}
"""Tables 15-24: model -> the shipped document."""
COLUMNS = {
    "xnli": ("xnli", "accuracy"),
    "xcopa": ("xcopa", "accuracy"),
    "udpos": ("udpos", "chunk_f1"),
    "wikiann": ("wikiann", "chunk_f1"),
    "xquad_f1": ("xquad", "f1"),
    "xquad_em": ("xquad", "exact_match"),
    "mlqa_f1": ("mlqa", "mlqa_f1"),
    "mlqa_em": ("mlqa", "mlqa_exact_match"),
    "tydiqa_f1": ("tydiqa", "f1"),
    "tydiqa_em": ("tydiqa", "exact_match"),
    "mewslix": ("mewslix", "map_at_20"),
    "lareqa": ("lareqa", "map_at_20"),
    "tatoeba": ("tatoeba", "top1_accuracy"),
}
"""Column of Table 4, and end of the name of a table by language -> task and metric."""
BY_LANGUAGE = (
    "table15_xnli",
    "table16_xcopa",
    "table17_udpos",
    "table18_wikiann",
    "table19_xquad_f1",
    "table20_mlqa_f1",
    "table21_tydiqa_f1",
    "table22_tatoeba",
    "table23_mewslix",
    "table24_lareqa",
)
CHECKLIST = ("table5_multichecklist_xlmr", "table10_multichecklist_xlmr", "table11_multichecklist_mbert")
TESTS = (
    "comparisons",
    "intensifiers",
    "properties",
    "job_vs_nationality",
    "animal_vs_vehicles",
    "animal_vs_vehicles_2",
)
WITHOUT_ENGLISH = ("table15_xnli", "xtreme_r_mbert")
"""Erratum: this printed average leaves English out."""
NOT_CELLS = {"model", "avg_printed", "mean_of_cells", "note"}

CATALOG = open_session().catalog
SUITE = CATALOG.suite("xtreme_r")
PUBLISHED = {spec.published: spec for spec in CATALOG.published_for("xtreme_r")}


@pytest.fixture(scope="module")
def golden() -> Path:
    return published_tables("xtreme_r")


def table(golden: Path, name: str) -> list[Row]:
    text = (golden / f"{name}.tsv").read_text(encoding="utf-8")
    return list(csv.DictReader(text.splitlines(), delimiter="\t"))


def cells_of(row: Row) -> dict[str, float]:
    return {key: float(text) for key, text in row.items() if key not in NOT_CELLS and text not in {"", "NA"}}


def languages_in(row: Row) -> int:
    return len(set(row) - NOT_CELLS)


def rows_by_language(golden: Path, name: str) -> Iterator[tuple[PublishedSpec, str, str, Row]]:
    """Yield the shipped document, task and metric of every row of a table by language, and the row."""
    task, metric = COLUMNS[name.split("_", 1)[1]]
    for row in table(golden, name):
        yield PUBLISHED[MODELS[row["model"].lower()]], task, metric, row


def test_every_number_of_table_4_ships_and_no_other(golden: Path) -> None:
    rows = {ROWS[row["model"], row["setting"]]: row for row in table(golden, "table4")}
    assert set(rows) == set(PUBLISHED)
    for name, row in rows.items():
        expected: dict[str, dict[str, float]] = {}
        for column, (task, metric) in COLUMNS.items():
            if row[column]:
                expected.setdefault(task, {})[metric] = float(row[column])
        assert PUBLISHED[name].scores == expected
        assert PUBLISHED[name].overall == (float(row["avg"]) if row["avg"] else None)


def test_every_legible_cell_of_tables_15_to_24_ships_and_no_other(golden: Path) -> None:
    expected: dict[str, dict[str, dict[str, dict[str, float]]]] = {name: {} for name in PUBLISHED}
    for name in BY_LANGUAGE:
        for spec, task, metric, row in rows_by_language(golden, name):
            if cells_of(row):
                expected[spec.published][task] = {metric: cells_of(row)}
    assert {name: spec.languages for name, spec in PUBLISHED.items()} == expected
    assert (
        sum(len(cells) for spec in expected.values() for task in spec.values() for cells in task.values())
        > 300
    )


def test_table_4_gives_its_printed_averages(golden: Path) -> None:
    printed = 0
    for row in table(golden, "table4"):
        scores: dict[str, dict[str, float]] = {}
        for column, (task, metric) in COLUMNS.items():
            if row[column]:
                scores.setdefault(task, {})[metric] = float(row[column])
        headlines = {
            task: [metric for name, metric in COLUMNS.values() if name == task] for task in SUITE.tasks
        }
        found = overall(task_scores(scores, headlines), SUITE.tasks, SUITE.categories)
        if row["avg"]:
            assert found.paper == pytest.approx(float(row["avg"]), abs=ROUNDING)
            printed += 1
        else:
            assert found.paper is None
    assert printed == 3


@pytest.mark.parametrize("name", BY_LANGUAGE)
def test_a_table_by_language_gives_its_printed_averages(golden: Path, name: str) -> None:
    checked = 0
    for spec, task, metric, row in rows_by_language(golden, name):
        cells, printed = cells_of(row), float(row["avg_printed"])
        if len(cells) < languages_in(row):
            assert "could be read" in spec.errata[task]
        elif (name, spec.published) == WITHOUT_ENGLISH:
            assert fmean(cells.values()) != pytest.approx(printed, abs=ROUNDING)
            assert fmean(value for code, value in cells.items() if code != "en") == pytest.approx(
                printed, abs=ROUNDING
            )
            assert str(printed) in spec.errata[task]
        else:
            assert fmean(cells.values()) == pytest.approx(printed, abs=ROUNDING)
            if spec.scores[task][metric] != pytest.approx(printed, abs=1e-9):
                assert str(printed) in spec.errata[task]
        checked += 1
    assert checked >= 2


def test_table_14_is_micro_averaged(golden: Path) -> None:
    """Mewsli-X by the mentions of Table 9, LAReQA by one correct answer in the question's language and ten others."""
    counts = table(golden, "table9_mewslix_counts")
    total = {code: int(text) for code, text in counts[-1].items() if code != "entity_language"}
    assert sum(int(row["Total"]) for row in counts[:-1]) == total.pop("Total") == sum(total.values()) == 15000
    same = sum(int(row[row["entity_language"]]) for row in counts if row["entity_language"] in total)
    subsets = {row["subset"]: row for row in table(golden, "table14")}
    shares = {"mewslix": same / 15000, "lareqa": 1 / 11}
    assert same == 3617
    for column in ("mewslix_mbert", "mewslix_xlmr_large", "lareqa_mbert", "lareqa_xlmr_large"):
        share = shares[column.split("_")[0]]
        micro = share * float(subsets["same_language"][column])
        micro += (1 - share) * float(subsets["different_languages"][column])
        assert micro == pytest.approx(float(subsets["all"][column]), abs=ROUNDING)


@pytest.mark.parametrize("name", CHECKLIST)
def test_multichecklist_gives_its_printed_averages(golden: Path, name: str) -> None:
    rows = table(golden, name)
    averages = rows.pop()
    assert averages["lang"] == "Avg"
    assert len(rows) == 50
    for test in TESTS:
        column = fmean(float(row[test]) for row in rows)
        assert column == pytest.approx(float(averages[test]), abs=ROUNDING)
    if "avg_printed" in averages:
        for row in rows:
            assert fmean(float(row[test]) for test in TESTS) == pytest.approx(
                float(row["avg_printed"]), abs=ROUNDING
            )
        assert fmean(float(row["avg_printed"]) for row in rows) == pytest.approx(
            float(averages["avg_printed"]), abs=ROUNDING
        )


def test_tables_5_and_10_are_the_same(golden: Path) -> None:
    fifth, tenth = ({row["lang"]: row for row in table(golden, name)} for name in CHECKLIST[:2])
    assert set(fifth) == set(tenth)
    for code, row in fifth.items():
        assert [float(row[test]) for test in TESTS] == [float(tenth[code][test]) for test in TESTS]


def test_the_language_table_is_table_7(golden: Path) -> None:
    marks = ("diacritics", "compounding", "clitics", "inflection", "derivation")
    rows = table(golden, "languages")
    assert len(rows) == 50
    for row in rows:
        language = known_languages().get(row["iso639_1"])
        branch = "IE: " + language.branch if language.family == "Indo-European" else language.family
        assert branch == row["family"]
        assert language.wikipedia_articles == row["wiki_articles_millions"]
        assert language.printed_script == row["script"]
        assert language.printed_datasets == row["n_datasets_printed"]
        assert [getattr(language, mark) for mark in marks] == [row[mark] for mark in marks]


# The other papers --------------------------------------------------------------------------------------

TRAIN = ("train", "variant", "F1/EM (# sents)", "dev/test")
ZS_ELSEWHERE = {("T-TRAIN", "ru"), ("B-TRAIN", "bg"), ("BT-enes", "ur"), ("MT-hi-n", "zh")}
"""Errata: Tables 13 and 15 print other cells than Tables 2, 9, 10 and 12."""
TT_ELSEWHERE = {("MT-hi-g", "th"), ("MT-hi-g", "zh"), ("MT-hi-n", "ru"), ("MT-hi-n", "sw")}
"""Table 16; two of them by their digits alone."""
TRAINED = {
    "table01_xnli_orig": "ORIG",
    "table02_xnli_b_train": "B-TRAIN",
    "table09_xnli_t_train": "T-TRAIN",
    "table10_xnli_bt_enes": "BT-enes",
    "table11_xnli_mt_hi_g": "MT-hi-g",
    "table12_xnli_mt_hi_n": "MT-hi-n",
}


def _numbers(row: Row, *skipped: str) -> dict[str, float]:
    return {key: float(text) for key, text in row.items() if text and key not in {*skipped, *TRAIN}}


@pytest.fixture(scope="module")
def translated() -> dict[str, SystemScores]:
    return CATALOG.published("translation_errors").systems


def test_every_cell_of_xnli_with_translations_ships_and_no_other(
    translated: Mapping[str, SystemScores],
) -> None:
    golden = published_tables("translation")
    expected = {
        f"{train} {row['variant']}": _numbers(row, "avg")
        for name, train in TRAINED.items()
        for row in table(golden, name)
        if not row["variant"].startswith("delta")
    }
    assert {key: own.languages["xnli"]["accuracy"] for key, own in translated.items()} == expected
    for name, train in TRAINED.items():
        for row in table(golden, name):
            own = translated.get(f"{train} {row['variant']}")
            if own is None or row["variant"] == "ZS":
                continue
            cells, mean = own.languages["xnli"]["accuracy"], own.scores["xnli"]["accuracy"]
            assert mean == float(row["avg"])
            assert fmean(cells.values()) == pytest.approx(mean, abs=0.08)  # two are truncated, not rounded


@pytest.mark.parametrize(
    ("name", "variant", "others"),
    [
        ("table13_xnli_zs_all_trains", "ZS", ZS_ELSEWHERE),
        ("table15_xnli_zs_mt_hi", "ZS", ZS_ELSEWHERE),
        ("table14_xnli_tt_n_all_trains", "TT-n", TT_ELSEWHERE),
        ("table16_xnli_tt_n_mt_hi", "TT-n", TT_ELSEWHERE),
    ],
)
def test_tables_13_to_16_repeat_the_cells_but_for_their_errata(
    translated: Mapping[str, SystemScores], name: str, variant: str, others: set[tuple[str, str]]
) -> None:
    for row in table(published_tables("translation"), name):
        cells = translated[f"{row['train']} {variant}"].languages["xnli"]["accuracy"]
        printed = _numbers(row, "avg")
        differing = {(row["train"], code) for code in cells if cells[code] != printed[code]}
        assert differing == {own for own in others if own[0] == row["train"]}
        if variant == "ZS":
            assert translated[f"{row['train']} ZS"].scores["xnli"]["accuracy"] == float(row["avg"])


def test_pawsx_and_mlqa_are_those_of_tables_6_and_4(translated: Mapping[str, SystemScores]) -> None:
    golden = published_tables("translation")
    for row in table(golden, "table06_pawsx_dev_test"):
        own = translated[f"ORIG {row['dev/test']}"]
        tested = {key: float(text.split("/")[1]) for key, text in row.items() if "/" in text}
        average = tested.pop("avg")
        assert own.languages["pawsx"]["accuracy"] == tested
        targets = [value for code, value in tested.items() if code != "en"]
        assert fmean(targets) == pytest.approx(average, abs=ROUNDING)
        assert own.scores["pawsx"]["accuracy"] == pytest.approx(fmean(tested.values()), abs=ROUNDING)
    for row in table(golden, "table04_mlqa_f1_em"):
        own = translated[f"ORIG {row['F1/EM (# sents)']}"]
        for place, metric in enumerate(("mlqa_f1", "mlqa_exact_match")):
            cells = {"hi": row["hi (4918)"], "vi": row["vi (5495)"]}
            printed = {code: float(text.split("/")[place]) for code, text in cells.items()}
            assert own.languages["mlqa"][metric] == printed
            assert own.scores["mlqa"][metric] == pytest.approx(fmean(printed.values()))


def test_every_error_rate_of_multichecklist_ships_and_no_other(golden: Path) -> None:
    for label, name in (("XLM-R Large", CHECKLIST[0]), ("mBERT", CHECKLIST[2])):
        own = CATALOG.published("multichecklist").systems[label]
        rows = {row["lang"]: {test: float(row[test]) for test in TESTS} for row in table(golden, name)}
        average = rows.pop("Avg")
        assert own.groups["multichecklist"]["case_error"] == rows
        errors, passed = (own.languages["multichecklist"][metric] for metric in ("case_error", "pass_rate"))
        assert errors == pytest.approx(
            {code: fmean(row.values()) for code, row in rows.items()}, abs=ROUNDING
        )
        assert passed == pytest.approx({code: 100 - error for code, error in errors.items()})
        assert own.scores["multichecklist"]["case_error"] == pytest.approx(
            fmean(average.values()), abs=ROUNDING
        )


def test_every_layer_of_vyakarana_ships_and_no_other() -> None:
    """Tables 4 and 5; the printed averages are the means over the tasks of a treebank."""
    tasks = {name.upper(): f"vyakarana_{name}" for name in ("pos", "stdp", "gcm", "sva")}
    treebanks = {"TTB": ("original", "ta"), "HDTB": ("original", "hi")}
    treebanks |= {
        f"{prefix}-{name}": (prefix.lower(), code)
        for prefix in ("CG", "csCG")
        for name, (_, code) in treebanks.items()
    }
    systems = CATALOG.published("vyakarana_layers").systems
    seen = 0
    for row in table(published_tables("vyakarana"), "tables_4_5"):
        kind, code = treebanks[row["treebank"]]
        for which in ("last", "best"):
            own = systems[f"{row['model']} {which} {kind}"]
            printed = 100 * float(row[f"{which}_layer"])
            if row["task"] == "Average":
                tables = [
                    table["weighted_f1"] for table in own.languages.values() if code in table["weighted_f1"]
                ]
                assert fmean(cells[code] for cells in tables) == pytest.approx(printed, abs=0.0101)
                continue
            task = tasks[row["task"]]
            assert own.languages[task]["weighted_f1"][code] == pytest.approx(printed)
            assert own.views[task]["treebank"] == kind
            assert own.label == f"{row['model']}, {which} layer"
            if which == "best":
                assert own.layers[task][code] == int(row["best_layer_number"])
            seen += 1
    assert seen == sum(
        len(cells["weighted_f1"]) for own in systems.values() for cells in own.languages.values()
    )


def test_the_ten_systems_of_figure_1_have_the_metadata_of_table_13(golden: Path) -> None:
    units = {"GB": (1e9, "bytes"), "TB": (1e12, "bytes"), "T tokens": (1e12, "tokens")}
    units |= {"B pairs": (1e9, "sentence_pairs"), "M pairs": (1e6, "sentence_pairs")}
    found = {name: item for item in published_metadata() for name in item.names}
    rows = table(golden, "table13")
    assert len(rows) == 10
    for row in rows:
        item = found[row["model"]]
        assert item.parameters is not None
        assert item.parameters.total == int(row["parameters_millions"]) * 10**6
        for amount, text in (
            (item.monolingual, row["monolingual_data"]),
            (item.parallel, row["parallel_data"]),
        ):
            [unit] = [name for name in units if text.endswith(name)] or [""]
            assert (amount is None) == (text == "N/A")
            if amount is not None:
                size, name = units[unit]
                assert amount.value == pytest.approx(float(text.removesuffix(unit)) * size)
                assert amount.unit == name
