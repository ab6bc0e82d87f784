"""Tables of printed scores: derived numbers, printed ones that do not follow, and files that are rejected.

The paper's tables are in ``golden/translation`` next to the folder that HARNESS_TEST_DATA names.
"""

from __future__ import annotations

import csv
from collections.abc import Iterable, Mapping
from decimal import ROUND_HALF_UP, Decimal
from fractions import Fraction
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from harness.errors import DataError, UsageError
from harness.reporting.blocks.chart import BarChart
from harness.reporting.blocks.model import Charts
from harness_translation.gap.paper import (
    COLUMNS,
    DerivedRow,
    Printed,
    derived_rows,
    derived_sections,
    read_scores,
)
from tests.builders import published_tables

Row = Mapping[str, str]
HEAD = "\t".join(COLUMNS)
TRANSLATORS = {"n": "nllb", "g": "google", "": ""}
"""Behind the hyphen of a row's name in the paper: ``BT-g``."""


def line(
    variant: str, lang: str, value: str, *, table: str = "1", train: str = "ORIG", task: str = "xnli"
) -> str:
    translator = "" if variant == "ZS" else "mt"
    return "\t".join([table, task, "accuracy", "model", train, "test", variant, translator, lang, value])


def rows_of(path: Path, lines: Iterable[str]) -> dict[tuple[str, str, str], DerivedRow]:
    path.write_text("\n".join([HEAD, *lines]) + "\n", encoding="utf-8")
    return {(row.group.table, row.lang, row.quantity): row for row in derived_rows(read_scores(path))}


@pytest.fixture
def lines() -> list[str]:
    scores = {
        "ZS": {"en": "90.0", "sw": "70.0", "de": "80.0"},
        "TT": {"sw": "71.5", "de": "79.0"},
        "TE": {"sw": "75.0", "de": "82.5"},
        "BT": {"sw": "80.0", "de": "84.1"},
    }
    return [line(variant, lang, value) for variant, own in scores.items() for lang, value in own.items()]


def test_contrasts_means_and_transfer_gaps_are_exact(tmp_path: Path, lines: list[str]) -> None:
    unknown = line("TT", "en", "")
    printed = [line("DELTA", "sw", "8.5"), line("DELTA", "avg", "6.8"), line("BT", "avg", "82.0")]
    found = rows_of(tmp_path / "scores.tsv", [*lines, unknown, *printed])
    for lang, quantity, text in (("sw", "delta", "8.5"), ("avg", "delta", "6.8"), ("avg", "mean_bt", "82.0")):
        number = found["1", lang, quantity].printed
        assert number is not None and number.text == text
    assert ("1", "en", "tt") not in found
    expected = {
        ("sw", "delta"): "8.5",
        ("de", "delta"): "4.1",
        ("avg", "delta"): "6.3",
        ("sw", "te_zs"): "5",
        ("de", "bt_tt"): "5.1",
        ("sw", "tt_zs"): "1.5",
        ("avg", "mean_zs"): "75",
        ("avg", "mean_with_source_zs"): "80",
        ("sw", "transfer_gap_zs"): "20",
        ("avg", "transfer_gap_bt"): "7.95",
        ("avg", "transfer_gap_with_source_zs"): "10",
    }
    assert {key: found["1", *key].value for key in expected} == {
        key: Fraction(text) for key, text in expected.items()
    }
    assert found["1", "avg", "delta"].languages == ("de", "sw")
    assert ("1", "avg", "mean_with_source_bt") not in found


def test_the_source_of_a_language_may_have_its_own_items(tmp_path: Path) -> None:
    given = [("ZS", "en@hi", "83.2"), ("ZS", "en@vi", "83.4"), ("ZS", "hi", "70.6"), ("ZS", "vi", "74.0")]
    given += [("TT", "hi", "78.4"), ("TT", "vi", "74.9"), ("BT", "hi", "78.4"), ("BT", "vi", "76.7")]
    found = rows_of(tmp_path / "scores.tsv", [line(*own, task="mlqa") for own in given])
    assert found["1", "hi", "transfer_gap_zs"].value == Fraction("12.6")
    assert found["1", "vi", "bt_tt"].value == Fraction("1.8")
    assert not found["1", "vi", "bt_tt"].unfair
    assert "context" in found["1", "vi", "delta"].unfair
    assert "context" in found["1", "hi", "tt_zs"].unfair
    assert found["1", "en@hi", "zs"].value == Fraction("83.2")


@pytest.mark.parametrize(
    ("added", "error", "named"),
    [
        (line("ZS", "sw", "70.0"), DataError, "line 3"),
        (line("ZS", "fr", "good"), DataError, ":11: .*'good'"),
        (line("ZS", "fr", "NaN"), DataError, "'NaN'"),
        (line("ZS", "", "70.0"), DataError, ":11: "),
        ("1\txnli", DataError, r"\b10 .*\b2\b"),
        (line("BT", "fr", "1").replace("\tmt\t", "\t\t"), DataError, "'BT'"),
    ],
)
def test_broken_lines_are_rejected(
    tmp_path: Path, lines: list[str], added: str, error: type[Exception], named: str
) -> None:
    with pytest.raises(error, match=named):
        rows_of(tmp_path / "scores.tsv", [*lines, added])


@pytest.mark.parametrize(
    ("content", "error", "named"),
    [
        (None, UsageError, r"scores\.tsv"),
        (b"table\ttask\n1\txnli\n", UsageError, "metric model train split variant translator lang value"),
        (f"{HEAD}\n{line('HT', 'sw', '1')}\n".encode(), DataError, "ZS, TT, TE, BT"),
        (b"\xff\xfe\x00", DataError, "UTF-8"),
    ],
)
def test_broken_files_are_rejected(
    tmp_path: Path, content: bytes | None, error: type[Exception], named: str
) -> None:
    path = tmp_path / "scores.tsv"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(error, match=named):
        read_scores(path)


scores_of = st.integers(0, 1000).map(lambda tenths: f"{tenths / 10:.1f}")


@settings(deadline=None, max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(drawn=st.lists(st.tuples(scores_of, scores_of, scores_of, scores_of), min_size=1, max_size=4))
def test_delta_is_the_smaller_of_two_differences(tmp_path: Path, drawn: list[tuple[str, ...]]) -> None:
    codes = ["sw", "de", "hi", "ur"][: len(drawn)]
    pairs = [zip(("ZS", "TT", "TE", "BT"), own, strict=True) for own in drawn]
    lines = [line(name, code, text) for code, own in zip(codes, pairs, strict=True) for name, text in own]
    found = rows_of(tmp_path / "scores.tsv", lines)
    deltas = []
    for code in codes:
        zs, bt = found["1", code, "zs"].value, found["1", code, "bt"].value
        deltas.append(min(bt - zs, found["1", code, "bt_tt"].value))
        assert found["1", code, "delta"].value == deltas[-1]
        assert found["1", code, "te_zs"].value - found["1", code, "tt_zs"].value == (
            found["1", code, "te"].value - found["1", code, "tt"].value
        )
    assert found["1", "avg", "delta"].value == sum(deltas) / len(deltas)


def follows(value: Fraction, printed: Printed) -> bool:
    """Return whether a value, rounded half up to one decimal, is the printed one."""
    decimal = Decimal(value.numerator) / Decimal(value.denominator)
    return Fraction(decimal.quantize(Decimal("0.1"), rounding=ROUND_HALF_UP)) == printed.exact


# The paper ------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def paper() -> list[DerivedRow]:
    return derived_rows(read_scores(published_tables("translation") / "all_long.tsv"))


def table(name: str) -> list[Row]:
    text = (published_tables("translation") / f"{name}.tsv").read_text(encoding="utf-8")
    return list(csv.DictReader(text.splitlines(), delimiter="\t"))


def one(paper: Iterable[DerivedRow], quantity: str, lang: str, **own: str) -> DerivedRow:
    """Return the row of a quantity; `own` are fields of its group, or its translator."""
    found = [
        row
        for row in paper
        if (row.quantity, row.lang) == (quantity, lang)
        and row.translator in {own.get("translator", row.translator)}
        and all(getattr(row.group, name) == text for name, text in own.items() if name != "translator")
    ]
    assert len(found) == 1, (quantity, lang, own, len(found))
    return found[0]


def test_the_deltas_of_the_paper(paper: list[DerivedRow]) -> None:
    rows = table("recomputed_delta")
    assert len(rows) == 45
    for row in rows:
        own = one(paper, "delta", row["lang"], table=row["table"], train=row["train"], translator="google")
        assert float(own.value) == pytest.approx(float(row["delta_recomputed"]), abs=5e-5)
        assert own.printed is not None
        assert float(own.printed.exact) == float(row["delta_printed"])
        assert follows(own.value, own.printed) == (row["match"] != "NO")


def test_the_contrasts_with_nllb(paper: list[DerivedRow]) -> None:
    columns = {"delta_n=BT-max(ZS,TT)": "delta", "TE-ZS": "te_zs", "BT-TT": "bt_tt"}
    rows = table("recomputed_delta_nllb")
    assert len(rows) == 104
    for row in rows:
        group = {"table": row["table"], "train": row["train"], "split": row["split"], "translator": "nllb"}
        for column, quantity in columns.items():
            own = one(paper, quantity, row["lang"], task=row["task"], **group)
            assert float(own.value) == pytest.approx(float(row[column]), abs=5e-5)


TRAIN_ROWS = {"7": "model", "13": "train", "14": "train", "15": "train", "16": "train"}
"""Tables whose rows are not versions of the test set, and what they are."""
MODELS = {"XLM-R": "xlm-roberta-large", "mBERT": "bert-base-multilingual-cased"}


def test_the_averages_of_the_paper(paper: list[DerivedRow]) -> None:
    rows = table("recomputed_avg")
    assert len(rows) == 47
    for row in rows:
        group, name = {"table": row["table"]}, row["row"]
        variant, _, translator = name.partition("-")
        if row["table"] in TRAIN_ROWS:
            key = TRAIN_ROWS[row["table"]]
            group[key] = MODELS[name] if key == "model" else name
            variant, translator = ("TT", "n") if row["table"] in {"14", "16"} else ("ZS", "")
        group["translator"] = TRANSLATORS[translator]
        own = one(paper, f"mean_{variant.lower()}", "avg", **group)
        assert float(own.value) == pytest.approx(float(row["mean_14_targets"]), abs=5e-5)
        assert own.printed is not None
        assert own.printed.exact == Fraction(row["printed_avg"])
        rule = row["rule_that_reproduces"]
        assert follows(own.value, own.printed) == (rule == "mean14")
        if row["mean_15_with_en"]:
            both = one(paper, f"mean_with_source_{variant.lower()}", "avg", **group)
            assert float(both.value) == pytest.approx(float(row["mean_15_with_en"]), abs=5e-5)
            assert follows(both.value, own.printed) == (rule == "mean15")


def test_the_transfer_gaps_of_the_paper(paper: list[DerivedRow]) -> None:
    rows = table("recomputed_transfer_gap")
    assert len(rows) == 21
    for row in rows:
        variant, _, translator = row["variant"].partition("-")
        group = {"table": row["table"], "train": row["train"], "translator": TRANSLATORS[translator]}
        columns = {"gap_mean14": "avg", "gap_sw": "sw", "gap_ur": "ur"}
        for column, lang in columns.items():
            own = one(paper, f"transfer_gap_{variant.lower()}", lang, **group)
            assert float(own.value) == pytest.approx(float(row[column]), abs=5e-5)
        if row["gap_if_mean15"]:
            own = one(paper, "transfer_gap_with_source_zs", "avg", **group)
            assert float(own.value) == pytest.approx(float(row["gap_if_mean15"]), abs=5e-5)


NOT_CELLS = {"text 3.2", "text 4", "text 3.1", "text D"}
"""Errata of the text that no table of scores by version holds: averages, label agreement, the metric, the size."""


def test_the_printed_number_of_every_erratum_is_read(paper: list[DerivedRow]) -> None:
    rows = [row for row in table("errata") if row["table"] not in NOT_CELLS]
    assert len(rows) == 18
    for row in rows:
        group, name = {"table": row["table"]}, row["row"]
        variant, _, translator = name.partition("-")
        if row["table"] in TRAIN_ROWS:
            group["train"], variant, translator = name, "ZS", ""
        quantity = variant.lower()
        if row["column"] == "avg" and quantity != "delta":
            quantity = f"mean_{quantity}"
        own = one(paper, quantity, row["column"], translator=TRANSLATORS[translator], **group)
        assert own.printed is not None
        assert float(own.printed.exact) == float(row["printed"])
    means = [row for row in paper if row.group.task == "paws-x" and row.quantity.startswith("mean_")]
    pawsx = [row for row in means if row.printed and not row.quantity.startswith("mean_with")]
    assert len(pawsx) == 8
    assert all(row.printed is not None and follows(row.value, row.printed) for row in pawsx)


def test_the_sections_of_the_paper_hold_its_figure(paper: list[DerivedRow]) -> None:
    blocks = [block for own in derived_sections(paper) for block in own.blocks]
    charts = [chart for block in blocks if isinstance(block, Charts) for chart in block.charts]
    assert len(charts) == 13
    bars = [bar for chart in charts if isinstance(chart, BarChart) for bar in chart.bars]
    assert any(bar.label == "sw 1.6 GiB" for bar in bars)
