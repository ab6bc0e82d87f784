"""The shipped numbers are those of the reference tables.

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
from harness.specs.documents import PublishedSpec, SystemScores
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
    *(
        "table15_xnli",
        "table16_xcopa",
        "table17_udpos",
        "table18_wikiann",
        "table19_xquad_f1",
        "table20_mlqa_f1",
    ),
    *("table21_tydiqa_f1", "table22_tatoeba", "table23_mewslix", "table24_lareqa"),
)
CHECKLIST = {"XLM-R Large": "table5_multichecklist_xlmr", "mBERT": "table11_multichecklist_mbert"}
TESTS = (
    *("comparisons", "intensifiers", "properties", "job_vs_nationality"),
    *("animal_vs_vehicles", "animal_vs_vehicles_2"),
)
NOT_CELLS = {"model", "avg_printed", "mean_of_cells", "note"}

CATALOG = open_session().catalog
PUBLISHED = {spec.published: spec for spec in CATALOG.published_for("xtreme_r")}


@pytest.fixture(scope="module")
def golden() -> Path:
    return published_tables("xtreme_r")


def table(golden: Path, name: str) -> list[Row]:
    text = (golden / f"{name}.tsv").read_text(encoding="utf-8")
    return list(csv.DictReader(text.splitlines(), delimiter="\t"))


def cells_of(row: Row) -> dict[str, float]:
    return {key: float(text) for key, text in row.items() if key not in NOT_CELLS and text not in {"", "NA"}}


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
    for label, name in CHECKLIST.items():
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
