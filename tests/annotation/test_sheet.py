"""Sheets: blind, in an order per annotator, and read with all their faults at once."""

from __future__ import annotations

import csv
import json
import re
from dataclasses import replace
from pathlib import Path

import pytest

from harness.errors import DataError, UsageError
from harness_translation.annotation.key import Key, read_key
from harness_translation.annotation.sheet import annotator_rows, default_instructions, write_sheet
from harness_translation.annotation.sheet_page import sheet_page
from harness_translation.annotation.sheet_reading import read_sheets
from tests.annotation.conftest import Export, FillIn


def regolded(key: Key) -> Key:
    """Return the key with a different inherited label for every item."""
    sheets = []
    for sheet in key.sheets:
        rows = []
        for keyed in sheet.rows:
            other = next(label for label in sheet.labels if label != keyed.drawn.item.gold)
            item = replace(keyed.drawn.item, gold=other, id=f"{keyed.drawn.item.id}-secret")
            rows.append(replace(keyed, drawn=replace(keyed.drawn, item=item, stratum="suspect", rank=1)))
        sheets.append(replace(sheet, rows=tuple(rows)))
    return replace(key, sheets=tuple(sheets))


def test_sheets_depend_on_neither_labels_nor_ids_nor_strata(export: Export) -> None:
    _, key = export()
    for sheet, other in zip(key.sheets, regolded(key).sheets, strict=True):
        for write in (write_sheet, sheet_page):
            texts = [write(one, "1", annotator_rows(one, "1"), ["Do."]) for one in (sheet, other)]
            assert texts[0] == texts[1]
            assert "secret" not in texts[1]


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
    assert read_key(folder) == replace(key, instructions=read_key(folder).instructions)


def test_a_sheet_explains_labels_and_has_no_formulas(export: Export) -> None:
    _, key = export(languages=("hi",), size=2)
    sheet = key.sheets[0]
    item = replace(sheet.rows[0].drawn.item, fields={"premise": "=1+1", "label": "- yes"})
    rows = [replace(sheet.rows[0], drawn=replace(sheet.rows[0].drawn, item=item))]
    text = write_sheet(sheet, "1", rows, default_instructions(sheet.labels))
    assert "entailment: the premise makes the hypothesis true." in text
    lines = list(csv.reader(text.splitlines()))
    assert lines[-2] == ["row", "premise", "text label", "annotator", "label", "comment"]
    assert lines[-1][1:3] == ["'=1+1", "'- yes"]


def test_sheets_are_read_in_every_format(export: Export, fill_in: FillIn, tmp_path: Path) -> None:
    folder, key = export()
    paths = fill_in(folder, "1")
    expected = read_sheets(paths, key)
    gold = {keyed.row: keyed.drawn.item.gold for sheet in key.sheets for keyed in sheet.rows}
    assert expected.labels == {"1": gold} and expected.skipped == 0
    semicolons = []
    for path in paths:
        rows = list(csv.reader(path.read_text(encoding="utf-8").splitlines()))
        semicolons.append(tmp_path / f"semi-{path.name}")
        with semicolons[-1].open("w", encoding="utf-8-sig", newline="") as file:
            csv.writer(file, delimiter=";", lineterminator="\r\n").writerows(rows)
    assert read_sheets(semicolons, key).labels == expected.labels
    saved = tmp_path / "saved.json"
    upper = [{"row": row, "label": label.upper(), "comment": ""} for row, label in gold.items()]
    saved.write_text(json.dumps({"annotator": "1", "rows": upper}, indent=1), encoding="utf-8")
    assert read_sheets([saved], key).labels == expected.labels
    assert list(read_sheets([saved], key, annotator="Mia").labels) == ["Mia"]


def test_all_faults_of_all_files_are_reported_at_once(export: Export, tmp_path: Path) -> None:
    _, key = export(languages=("hi",), size=5)
    rows = list(key.sheets[0].by_row)
    table, saved = tmp_path / "one.csv", tmp_path / "two.json"
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
    given = [{"row": rows[0], "label": "neutral"}, {"row": rows[0], "label": "neutral"}, {"row": 7}]
    text = ",\n".join(json.dumps(row) for row in given)
    saved.write_text(f'{{"annotator": "2", "rows": [\n{text}]}}', encoding="utf-8")
    with pytest.raises(DataError) as error:
        read_sheets([table, saved], key)
    lines = str(error.value).split("\n  ")[1:]
    assert len(lines) == 9
    for parts in (
        (f"{table}:5:", "'1'", repr(rows[0]), f"{table}:3"),
        (f"{table}:6:", "'contradicton'", "contradiction, entailment, neutral", "'contradiction'"),
        (f"{table}:7:", repr(rows[2])),
        (f"{table}:8:", "'ffffffffff'"),
        (f"{table}:9:", " 7 ", " 5 "),
        (f"{saved}:3:", "'2'", repr(rows[0]), f"{saved}:2"),
        (f"{table}:", " 2 rows ", "'xnli-hi-1'", "'1'"),
        (f"{saved}:", "row 3 "),
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
    found = read_sheets([path], key, allow_skipped=True)
    assert found.labels == {"Mia": {rows[0]: "neutral"}} and found.skipped == 4


@pytest.mark.parametrize(
    ("name", "text", "error", "found"),
    [
        ("a.csv", "id,label\n1,neutral\n", DataError, "id, label"),
        ("b.csv", "# nothing\n", DataError, "heading"),
        ("c.json", "[]", DataError, "'annotator' and 'rows'"),
        ("d.json", "{", DataError, "JSON"),
        ("e.xlsx", "", UsageError, r"\.csv, \.tsv or \.json"),
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
