"""Sheets: blind, in an order per annotator, and read with all their faults at once."""

from __future__ import annotations

import csv
import json
import re
from pathlib import Path
from xml.etree import ElementTree

import pytest

from harness.errors import DataError, UsageError
from harness_translation.annotation.export import (
    annotator_rows,
    default_instructions,
    labelling_setup,
    labelling_tasks,
    sheet_table,
)
from harness_translation.annotation.key import Key, read_key
from harness_translation.annotation.labels import read_sheets
from tests.annotation.conftest import Export, FillIn


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
        text = (folder / "sheets" / f"annotator-{annotator}" / "xnli-hi-1.csv").read_text(
            encoding="utf-8-sig"
        )
        orders.append(
            [row[0] for row in csv.reader(text.splitlines()) if re.fullmatch("[0-9a-f]{10}", row[0])]
        )
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


def test_skipped_rows_can_be_allowed(export: Export, tmp_path: Path) -> None:
    _, key = export(languages=("hi",), size=5)
    rows = list(key.sheets[0].by_row)
    path = tmp_path / "Mia.csv"
    path.write_text(f"row,label\n{rows[0]},neutral\n{rows[1]},\n", encoding="utf-8")
    with pytest.raises(DataError, match=r"^[^\n]*\b2\b"):
        read_sheets([path], key)
    found, skipped = read_sheets([path], key, allow_skipped=True)
    assert found.labels == {"Mia": {rows[0]: "neutral"}} and skipped == 4


@pytest.mark.parametrize(
    ("name", "text", "error", "found"),
    [
        ("a.csv", "id,label\n1,neutral\n", DataError, "id, label"),
        ("b.csv", "# nothing\n", DataError, "heading"),
        ("c.json", "[]", UsageError, r"\.csv or \.tsv"),
    ],
)
def test_other_files_are_rejected(
    export: Export, tmp_path: Path, name: str, text: str, error: type[Exception], found: str
) -> None:
    _, key = export(languages=("hi",), size=5)
    (tmp_path / name).write_text(text, encoding="utf-8")
    with pytest.raises(error, match=found):
        read_sheets([tmp_path / name], key)


def test_a_folder_needs_a_key(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"key\.json"):
        read_key(tmp_path)
    (tmp_path / "key.json").write_text('{"schema": 1}', encoding="utf-8")
    with pytest.raises(DataError, match="'seed'"):
        read_key(tmp_path)
