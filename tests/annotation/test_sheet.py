"""Sheets for annotators: which items they hold, how they are drawn, and how annotators agree."""

from __future__ import annotations

import csv
import json
import math
import random
import re
from collections import Counter
from pathlib import Path
from typing import Literal
from xml.etree import ElementTree

import pytest
from hypothesis import given, strategies as st
from sklearn.metrics import cohen_kappa_score
from statsmodels.stats.proportion import proportions_ztest

from harness.errors import DataError, UnknownNameError, UsageError
from harness.statistics import wilson
from harness_translation.annotation.items import Key, Sheet, read_key
from harness_translation.annotation.labels import (
    alpha_interval,
    cohen_kappa,
    krippendorff_alpha,
    read_sheets,
    two_proportions,
    weighted_share,
)
from harness_translation.annotation.sheets import (
    ExportRequest,
    annotator_rows,
    default_instructions,
    draw_sheets,
    export_sheets,
    labelling_setup,
    labelling_tasks,
    sheet_table,
)
from tests.annotation.conftest import Export, FillIn, text_items


def regolded(key: Key) -> Key:
    """Return the key with a different inherited label for every item."""
    sheets = []
    for sheet in key.sheets:
        rows = []
        for row in sheet.rows:
            other = next(label for label in sheet.labels if label != row.gold)
            changed = {"gold": other, "id": f"{row.id}-secret", "stratum": "secret"}
            rows.append(row.model_copy(update=changed))
        sheets.append(sheet.model_copy(update={"rows": tuple(rows)}))
    return key.model_copy(update={"sheets": tuple(sheets)})


def test_sheets_depend_on_neither_labels_nor_ids_nor_strata(export: Export) -> None:
    _, key = export()
    for sheet, other in zip(key.sheets, regolded(key).sheets, strict=True):
        texts = []
        for one in (sheet, other):
            rows = annotator_rows(one, "1")
            table = sheet_table(one, "1", rows, ["Do."])
            texts.append(table + labelling_tasks(rows) + labelling_setup(one, ["Do."]))
        assert texts[0] == texts[1]
        assert "secret" not in texts[1]


def test_a_sheet_for_label_studio_shows_its_texts_and_labels(export: Export) -> None:
    folder, key = export(languages=("hi",), size=3)
    path = folder / "sheets" / "annotator-1" / "xnli-hi-1.json"
    tasks = json.loads(path.read_text(encoding="utf-8"))
    assert {task["data"]["row"] for task in tasks} == set(key.sheets[0].by_row)
    setup = ElementTree.parse(path.with_suffix(".xml")).getroot()
    shown = [one.attrib["value"].removeprefix("$") for one in setup.iter("Text")]
    assert shown == ["premise", "hypothesis"]
    assert all(set(shown) <= set(task["data"]) for task in tasks)
    (choices,) = setup.iter("Choices")
    assert choices.attrib["name"] == "label" and choices.attrib["toName"] in shown
    assert [one.attrib["value"] for one in choices] == list(key.sheets[0].labels)


def test_annotators_get_the_same_rows_in_different_orders(export: Export) -> None:
    folder, key = export(annotators=3)
    orders = []
    for annotator in key.annotators:
        path = folder / "sheets" / f"annotator-{annotator}" / "xnli-hi-1.csv"
        rows = csv.reader(path.read_text(encoding="utf-8-sig").splitlines())
        orders.append([row[0] for row in rows if re.fullmatch("[0-9a-f]{10}", row[0])])
    assert len({tuple(order) for order in orders}) == 3
    assert {frozenset(order) for order in orders} == {frozenset(key.sheets[0].by_row)}
    assert read_key(folder) == key


def test_a_sheet_explains_labels_and_has_no_formulas(export: Export) -> None:
    _, key = export(languages=("hi",), size=2)
    sheet = key.sheets[0]
    row = sheet.rows[0].model_copy(update={"fields": {"premise": "=1+1", "label": "- yes"}})
    text = sheet_table(sheet, "1", [row], default_instructions(sheet.labels))
    assert "entailment: the premise makes the hypothesis true." in text
    lines = list(csv.reader(text.splitlines()))
    assert lines[-2] == ["row", "premise", "text_label", "annotator", "label", "comment"]
    assert lines[-1][1:3] == ["'=1+1", "'- yes"]


def test_sheets_are_read_in_every_format(export: Export, fill_in: FillIn, tmp_path: Path) -> None:
    folder, key = export()
    paths = fill_in(folder, "1")
    expected, skipped = read_sheets(paths, key)
    gold = {keyed.row: keyed.gold for sheet in key.sheets for keyed in sheet.rows}
    assert expected.labels == {"1": gold} and skipped == 0
    semicolons = []
    for path in paths:
        rows = list(csv.reader(path.read_text(encoding="utf-8").splitlines()))
        semicolons.append(tmp_path / f"semi-{path.name}")
        with semicolons[-1].open("w", encoding="utf-8-sig", newline="") as file:
            csv.writer(file, delimiter=";", lineterminator="\r\n").writerows(rows)
    assert read_sheets(semicolons, key)[0].labels == expected.labels
    saved = tmp_path / "saved.csv"
    exported = [
        f'{n},x,{row},7,"odd, very",{label.upper()},mia@x' for n, (row, label) in enumerate(gold.items())
    ]
    saved.write_text(
        "\n".join(["id,premise,row,lead_time,comment,label,annotator", *exported]), encoding="utf-8"
    )
    found, _ = read_sheets([saved], key)
    assert found.labels == {"mia@x": gold} and set(found.comments["mia@x"].values()) == {"odd, very"}
    assert list(read_sheets([saved], key, annotator="Mia")[0].labels) == ["Mia"]


def test_all_faults_of_all_files_are_reported_at_once(export: Export, tmp_path: Path) -> None:
    _, key = export(languages=("hi",), size=5)
    rows = list(key.sheets[0].by_row)
    table, saved = tmp_path / "one.csv", tmp_path / "two.tsv"
    lines = [
        "# Read.",
        "row,premise,annotator,label,comment",
        f'{rows[0]},"two\nlines",1,entailment,',
        f"{rows[0]},x,1,neutral,",
        f"{rows[1]},x,1,contradicton,",
        f"{rows[2]},x,1,,no idea",
        "ffffffffff,x,1,neutral,",
        f"{rows[3]},x,1,neutral,,,",
    ]
    table.write_text("\n".join(lines), encoding="utf-8")
    saved.write_text(f"row\tlabel\tannotator\n{rows[0]}\tneutral\t2\n{rows[0]}\tneutral\t2\n", "utf-8")
    with pytest.raises(DataError) as error:
        read_sheets([table, saved], key)
    lines = str(error.value).split("\n  ")[1:]
    assert len(lines) == 8
    for parts in (
        (f"{table}:5:", "'1'", repr(rows[0]), f"{table}:3"),
        (f"{table}:6:", "'contradicton'", "contradiction, entailment, neutral", "'contradiction'"),
        (f"{table}:7:", repr(rows[2])),
        (f"{table}:8:", "'ffffffffff'"),
        (f"{table}:9:", " 7 ", " 5 "),
        (f"{saved}:3:", "'2'", repr(rows[0]), f"{saved}:2"),
        (f"{table}:", " 2 rows ", "'xnli-hi-1'", "'1'"),
        (f"{saved}:", " 4 rows ", "'xnli-hi-1'", "'2'"),
    ):
        assert any(all(part in line for part in parts) for line in lines), parts
    assert "--allow-skipped" in str(error.value.hint)


def test_other_files_and_skipped_rows_are_rejected(export: Export, tmp_path: Path) -> None:
    _, key = export(languages=("hi",), size=5)
    rows = list(key.sheets[0].by_row)
    skipping = f"row,label\n{rows[0]},neutral\n{rows[1]},\n"
    for name, text, error, named in (
        ("a.csv", "id,label\n1,neutral\n", DataError, "id, label"),
        ("b.csv", "# nothing\n", DataError, "heading"),
        ("c.json", "[]", UsageError, r"\.csv or \.tsv"),
        ("Mia.csv", skipping, DataError, r"^[^\n]*\b2\b"),
    ):
        (tmp_path / name).write_text(text, encoding="utf-8")
        with pytest.raises(error, match=named):
            read_sheets([tmp_path / name], key)
    found, skipped = read_sheets([tmp_path / "Mia.csv"], key, allow_skipped=True)
    assert found.labels == {"Mia": {rows[0]: "neutral"}} and skipped == 4
    with pytest.raises(UsageError, match=r"key\.json"):
        read_key(tmp_path)
    (tmp_path / "key.json").write_text('{"schema": 1}', encoding="utf-8")
    with pytest.raises(DataError, match="'seed'"):
        read_key(tmp_path)


def ids(sheet: Sheet) -> list[str]:
    return [row.id for row in sheet.rows]


def test_sheets_of_a_parallel_task_share_no_item() -> None:
    texts = [text_items(), text_items(language="ur"), text_items(variant="tt")]
    samples = draw_sheets(texts, size=20, seed=0)
    drawn = [identifier for sample in samples for identifier in ids(sample)]
    assert len(drawn) == len(set(drawn)) == 60
    assert {one.weight for sample in samples for one in sample.rows} == {3.0}
    with pytest.raises(UsageError, match=r"has 18 .*--size 21 needs 21"):
        draw_sheets(texts, size=21, seed=0)


def test_ids_of_other_languages_are_other_items_where_a_task_is_not_parallel() -> None:
    texts = [text_items(30, parallel=False), text_items(30, language="ur", parallel=False)]
    hindi, urdu = draw_sheets(texts, size=30, seed=0)
    assert sorted(ids(hindi)) == sorted(ids(urdu))
    versions = [text_items(30, parallel=False), text_items(30, parallel=False, variant="tt")]
    own, machine = draw_sheets(versions, size=15, seed=0)
    assert not set(ids(own)) & set(ids(machine))


def test_the_seed_decides_and_a_further_text_changes_nothing_before_it() -> None:
    texts = [text_items(), text_items(language="ur")]
    first, second = draw_sheets(texts, size=10, seed=0)
    assert ids(draw_sheets(texts[:1], size=10, seed=0)[0]) == ids(first)
    assert set(ids(draw_sheets(texts, size=10, seed=1)[0])) != set(ids(first))
    assert ids(draw_sheets(texts, size=10, seed=0)[1]) == ids(second)


def test_a_draw_prefers_no_item() -> None:
    drawn = Counter(
        identifier
        for seed in range(300)
        for identifier in ids(draw_sheets([text_items(12)], size=4, seed=seed)[0])
    )
    assert set(drawn) == {str(number) for number in range(1, 13)}
    assert all(70 < count < 130 for count in drawn.values()), "expected 100 each, standard deviation 8"


@pytest.mark.parametrize(
    ("allocation", "rows"), [("proportional", {"often": 11, "rare": 1}), ("equal", {"often": 6, "rare": 6})]
)
def test_the_weights_of_strata_sum_up_to_their_size(
    allocation: Literal["proportional", "equal"], rows: dict[str, int]
) -> None:
    (sample,) = draw_sheets([text_items()], size=12, seed=0, stratify="genre", allocation=allocation)
    assert Counter(one.stratum for one in sample.rows) == rows
    weights = {stratum: sum(one.weight for one in sample.rows if one.stratum == stratum) for stratum in rows}
    assert weights == pytest.approx({"often": 54, "rare": 6})
    assert sample.design == "stratified by genre"


def test_labels_are_strata_too_and_unknown_attributes_are_errors() -> None:
    (sample,) = draw_sheets([text_items()], size=30, seed=0, stratify="label")
    assert Counter(one.gold for one in sample.rows) == {"yes": 10, "no": 10, "maybe": 10}
    with pytest.raises(UsageError, match=r"'topic' .*label, genre"):
        draw_sheets([text_items()], size=30, seed=0, stratify="topic")
    with pytest.raises(UsageError, match=r"'rare' .*0 of its 6"):
        draw_sheets([text_items()], size=4, seed=0, stratify="genre")


def test_impossible_requests_are_errors(tmp_path: Path, export: Export) -> None:
    folder, _ = export()
    with pytest.raises(UsageError, match="--output"):
        export_sheets(ExportRequest(tasks=("xnli",)), folder)
    with pytest.raises(UsageError, match="--tasks"):
        export_sheets(ExportRequest(), tmp_path / "none")
    for name in ("variants", "languages"):
        with pytest.raises(UnknownNameError) as error:
            export("a", **{name: ("tt",)})
        assert error.value.name == "tt"
    with pytest.raises(UsageError, match=r"'udpos' .*'token_tagging'"):
        export("b", tasks=("udpos",))
    assert not (tmp_path / "b").exists()


PUBLISHED = (
    "1 2 3 3 2 1 4 1 2 . . .",
    "1 2 3 3 2 2 4 1 2 5 . 3",
    ". 3 3 3 2 3 4 2 2 5 1 .",
    "1 2 3 3 2 4 4 1 2 5 1 .",
)
"""Four observers and twelve units with missing data: Krippendorff 2011, section C; nominal alpha is 0.743."""


def units(rows: tuple[str, ...]) -> list[list[str]]:
    return [[label for label in column if label != "."] for column in zip(*map(str.split, rows), strict=True)]


@pytest.mark.parametrize(
    ("rows", "published"),
    [
        (PUBLISHED, 0.743),
        # Krippendorff 2011, section B: ten units of two observers, binary and nominal data.
        (("0 1 0 0 0 0 0 0 1 0", "1 1 1 0 0 1 0 0 0 0"), 0.095),
        (("a a b b d c c c e d d a", "b a b b b c c c e d d d"), 0.692),
    ],
)
def test_alpha_is_that_of_the_published_examples(rows: tuple[str, ...], published: float) -> None:
    alpha = krippendorff_alpha(units(rows))
    assert alpha == pytest.approx(published, abs=5e-4)
    interval = alpha_interval(units(rows), seed=1)
    assert interval is not None and alpha is not None
    assert interval[0] < alpha < interval[1] <= 1
    assert interval == alpha_interval(units(rows), seed=1)


def test_alpha_is_none_without_variation_or_shared_items() -> None:
    assert krippendorff_alpha([["a", "a"], ["a", "a"]]) is None
    assert krippendorff_alpha([["a"], ["b"], []]) is None
    assert alpha_interval([["a", "b"]]) is None


LABELS = st.lists(st.tuples(st.sampled_from("abc"), st.sampled_from("abc")), min_size=2, max_size=40)


@given(LABELS)
def test_kappa_is_that_of_scikit_learn(pairs: list[tuple[str, str]]) -> None:
    first, second = [one for one, _ in pairs], [other for _, other in pairs]
    kappa = cohen_kappa(first, second)
    if len({*first, *second}) == 1:
        assert kappa is None
        return
    assert kappa == pytest.approx(cohen_kappa_score(first, second))


@given(LABELS, st.randoms(use_true_random=False))
def test_alpha_depends_on_no_order(pairs: list[tuple[str, str]], shuffler: random.Random) -> None:
    alpha = krippendorff_alpha(pairs)
    shuffled = [list(pair) for pair in pairs]
    shuffler.shuffle(shuffled)
    for pair in shuffled:
        shuffler.shuffle(pair)
    again = krippendorff_alpha(shuffled)
    assert (alpha is None) is (again is None)
    assert alpha is None or again == pytest.approx(alpha, abs=1e-12)


@pytest.mark.parametrize("counts", [(133, 200, 160, 200), (120, 200, 142, 200), (3, 10, 9, 12)])
def test_the_test_of_two_proportions_is_that_of_statsmodels(counts: tuple[int, int, int, int]) -> None:
    first, n_first, second, n_second = counts
    _, expected = proportions_ztest([first, second], [n_first, n_second])
    assert two_proportions(*counts) == pytest.approx(expected)
    assert two_proportions(5, 5, 7, 7) == two_proportions(0, 5, 0, 7) == 1.0


def test_strata_weigh_by_their_size() -> None:
    hits = [True] * 8 + [False] * 2 + [True] * 3 + [False] * 7
    share = weighted_share(hits, ["often"] * 10 + ["rare"] * 10, {"often": 900, "rare": 100})
    assert share.value == pytest.approx(0.9 * 0.8 + 0.1 * 0.3)
    variance = 0.81 * 0.16 / 9 + 0.01 * 0.21 / 9
    assert share.high - share.low == pytest.approx(2 * 1.96 * math.sqrt(variance), rel=0.25)
    single = weighted_share([True] * 133 + [False] * 67, ["all"] * 200, {"all": 5010})
    assert (single.value, single.low, single.high) == pytest.approx((0.665, *wilson(133, 200)))
