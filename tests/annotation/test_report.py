"""What annotations say of a task and of a run: reports, and the items of runs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, strategies as st
from typer.testing import CliRunner

from harness.api import evaluate
from harness.errors import UsageError
from harness.statistics import wilson
from harness.storage.run_folder import Run
from harness_errata.document import read_errata
from harness_translation.annotation.command import app
from harness_translation.annotation.items import Key, Sheet, read_key, read_run_texts
from harness_translation.annotation.labels import (
    Annotations,
    deciding_stage,
    final_label,
    merge,
    read_annotations,
    two_proportions,
    weighted_share,
)
from harness_translation.annotation.report import gold_rows, report_rows, report_tables
from harness_translation.annotation.sheets import (
    ExportRequest,
    default_instructions,
    draw_sheets,
    export_sheets,
    write_adjudication,
)
from tests.annotation.conftest import Export, FillIn, fill, text_items


def keyed(size: int = 20, **settings: Any) -> Key:
    """Return the key of a human and a machine text of the same items."""
    sheets = draw_sheets([text_items(), text_items(variant="tt")], size=size, seed=0, **settings)
    return Key(seed=0, annotators=("1", "2"), instructions={"nli": ("Do.",)}, sheets=sheets)


def of_kind(kind: str, rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [row for row in rows if row["row"] == kind]


def gold_of(key: Key, number: int) -> dict[str, str]:
    return {one.row: one.gold for one in key.sheets[number].rows}


def wrong(gold: dict[str, str], count: int) -> dict[str, str]:
    """Return the labels with the first ones changed."""
    order = {"yes": "no", "no": "maybe", "maybe": "yes"}
    return {row: order[label] if place < count else label for place, (row, label) in enumerate(gold.items())}


PUBLISHED = {
    ("hi", ""): (133, 59.7, 72.7),
    ("hi", "tt"): (160, 73.9, 85.0),
    ("ur", ""): (120, 53.1, 66.5),
    ("ur", "tt"): (142, 64.4, 76.8),
}
"""Labels of 200 that hold in the translation-errors paper (EACL 2024, section 4.1), and their intervals."""


def test_the_published_shares_have_their_intervals_and_are_corrected_by_holm() -> None:
    """The published shares as annotations give the intervals and p of the golden notes: hi 0.002 and ur 0.021."""
    sheets: list[Sheet] = []
    for language, variant in PUBLISHED:
        items = text_items(200, language=language, variant=variant, parallel=False)
        sheets += draw_sheets([items], size=200, seed=0)
    key = Key(seed=0, annotators=("1",), instructions={}, sheets=tuple(sheets))
    labels: dict[str, str] = {}
    for number, (agree, low, high) in enumerate(PUBLISHED.values()):
        labels |= wrong(gold_of(key, number), 200 - agree)
        share = weighted_share([place < agree for place in range(200)], ["all"] * 200, {"all": 5010})
        assert (round(100 * share.low, 1), round(100 * share.high, 1)) == (low, high)
    contrasts = of_kind("contrast", report_rows(key, Annotations(labels={"1": labels})))
    found = [one for one in contrasts if one["across"] == "texts"]
    shown = [(one["first"][:2], round(one["p"], 3), round(100 * one["difference"], 1)) for one in found]
    assert shown == [("hi", 0.002, 13.5), ("ur", 0.021, 11.0)]
    assert [one["p_holm"] for one in found] == pytest.approx([2 * found[0]["p"], found[1]["p"]])
    assert len(contrasts) == 4


def test_the_final_label_is_the_adjudicators_or_that_of_more_than_half() -> None:
    labels = {
        "1": {"a": "x", "b": "x", "c": "x", "e": "x"},
        "2": {"a": "x", "b": "y", "c": "y"},
        "3": {"c": "y"},
    }
    annotations = Annotations(labels=labels, final={"a": "z"})
    assert [final_label(row, annotations) for row in "abcde"] == ["z", None, "y", None, "x"]


def test_agreement_confusion_and_items_to_fix() -> None:
    key = keyed()
    gold, machine = gold_of(key, 0), gold_of(key, 1)
    labels = {name: {**wrong(gold, 8), **wrong(machine, 2)} for name in ("1", "2")}
    annotations = Annotations(labels=labels)
    rows = report_rows(key, annotations)
    human, translated = of_kind("agreement", rows)
    assert (human["n"], human["agree"], human["agreement"]) == (20, 12, 0.6)
    assert human["ci"] == pytest.approx(list(wilson(12, 20)))
    assert sum(one["n"] for one in human["confusion"]) == 20
    assert sum(one["n"] for one in human["confusion"] if one["inherited"] == one["final"]) == 12
    assert human["kappa"] == [{"annotators": ["1", "2"], "value": 1.0}]
    assert human["alpha"] == 1.0 and human["each"] == {"1": 0.6, "2": 0.6}
    (contrast,) = of_kind("contrast", rows)
    assert contrast["p"] == contrast["p_holm"] == pytest.approx(two_proportions(12, 20, 18, 20))
    assert contrast["difference"] == pytest.approx(0.3) and translated["text"] == "tt"
    to_fix = of_kind("item to fix", rows)
    assert len(to_fix) == 10 and len(gold_rows(key, annotations)) == 40
    assert {row.get("variant") for row in to_fix} == {None, "tt"}


def test_the_tables_of_many_texts_are_short() -> None:
    sheets = draw_sheets(
        [text_items(language=language) for language in ("en", "hi", "sw", "ur")], size=12, seed=0
    )
    key = Key(seed=0, annotators=("1",), instructions={"nli": ("Do.",)}, sheets=sheets)
    labels = {sheet.row: sheet.gold for one in key.sheets[:3] for sheet in one.rows}
    labels |= wrong(gold_of(key, 3), 7)
    rows = report_rows(key, Annotations(labels={"1": labels}))
    assert len(of_kind("contrast", rows)) == 6
    contrasts, *confusions, to_fix = report_tables(rows, items=3)[1:]
    assert [len(table[2]) for table in (contrasts, to_fix)] == [3, 3]
    assert all("ur" in f"{fields[2]} {fields[3]}" for fields in contrasts[2])
    assert len(confusions) == 4
    few = [{**row, "n": 9} if row["row"] == "agreement" else row for row in rows]
    assert len(report_tables(few, items=100)) == 3


def test_open_rows_leave_the_agreement_open() -> None:
    key = keyed()
    gold = gold_of(key, 0)
    (sheet,) = report_rows(key, Annotations(labels={"1": gold, "2": wrong(gold, 5)}))
    assert (sheet["agreement"], sheet["ci"], sheet["open"]) == (None, None, 5)
    assert sheet["bounds"] == [0.75, 1.0] and sheet["each"] == {"1": 1.0, "2": 0.75}
    decided = dict(list(gold.items())[:5])
    (sheet,) = report_rows(key, Annotations(labels={"1": gold, "2": wrong(gold, 5)}, final=decided))
    assert sheet["agreement"] == 1.0 and sheet["open"] == 0
    with pytest.raises(UsageError):
        report_rows(key, Annotations())


def test_strata_weigh_in_the_agreement() -> None:
    sheets = draw_sheets([text_items()], size=12, seed=0, stratify="genre", allocation="equal")
    key = Key(seed=0, annotators=("1",), instructions={}, sheets=sheets)
    rare = {one.row for one in sheets[0].rows if one.stratum == "rare"}
    labels = {
        row: ("no" if label == "yes" else "yes") if row in rare else label
        for row, label in gold_of(key, 0).items()
    }
    (sheet,) = of_kind("agreement", report_rows(key, Annotations(labels={"1": labels})))
    assert sheet["agreement"] == pytest.approx(0.9), "all 6 rare items of 60 are wrong"


def test_labels_are_replaced_only_on_request() -> None:
    key = keyed()
    gold, machine = gold_of(key, 0), gold_of(key, 1)
    first = merge(Annotations(), Annotations(labels={"1": gold}), key)
    both = merge(first, Annotations(labels={"1": machine}), key)
    assert both.labels == {"1": {**gold, **machine}}
    again = Annotations(labels={"1": wrong(gold, 3)})
    with pytest.raises(UsageError, match=r"'1' .*'nli-hi-[12]'"):
        merge(both, again, key)
    assert merge(both, again, key, replace=True).labels == {"1": {**wrong(gold, 3), **machine}}
    final = Annotations(final=dict(list(gold.items())[:2]))
    done = merge(both, final, key)
    assert done.final == dict(list(gold.items())[:2])
    further = Annotations(final=dict(list(gold.items())[2:4]))
    assert len(merge(done, further, key).final) == 4
    with pytest.raises(UsageError, match="'adjudicated'"):
        merge(done, final, key)


def test_undecided_rows_get_a_sheet_until_they_are_decided(tmp_path: Path) -> None:
    key = keyed()
    gold = gold_of(key, 0)
    annotations = Annotations(labels={"1": gold, "2": wrong(gold, 3)})
    ((path, count),) = write_adjudication(key, annotations, tmp_path)
    assert count == 3 and "label of 1,label of 2,annotator" in path.read_text(encoding="utf-8-sig")
    decided = Annotations(labels=annotations.labels, final=gold)
    assert list(write_adjudication(key, decided, tmp_path)) == [] and not path.exists()


def test_the_commands_go_from_export_to_gold(export: Export, fill_in: FillIn, tmp_path: Path) -> None:
    folder, key = export("folder", size=6)
    runner = CliRunner()
    first = [one.row for one in key.sheets[0].rows][:2]
    other = {row: next(x for x in key.sheets[0].labels if x != gold_of(key, 0)[row]) for row in first}
    files = [str(path) for path in (*fill_in(folder, "1"), *fill_in(folder, "2", other))]
    done = runner.invoke(app, ["import", str(folder), *files])
    assert done.exit_code == 0, done.output
    assert "1: 12 labels" in done.output and "2 rows have no final label yet" in done.output
    sheet = folder / "adjudication" / f"{key.sheets[0].name}.csv"
    lines = sheet.read_text(encoding="utf-8-sig").splitlines()
    filled = [f"{line[:-2]},{other[line[:10]]}," if line[:10] in other else line for line in lines]
    sheet.write_text("\n".join(filled), encoding="utf-8")
    assert runner.invoke(app, ["import", str(folder), str(sheet)]).exit_code == 0
    assert read_annotations(folder).final == other
    gold, rows = tmp_path / "gold.jsonl", tmp_path / "rows.json"
    written = runner.invoke(app, ["report", str(folder), "--write-gold", str(gold), "--json", str(rows)])
    assert written.exit_code == 0, written.output
    errata = tmp_path / "errata"
    run("report", folder, "--write-errata", errata, "--revision", "the sample")
    (file,) = read_errata(errata).files
    assert file.document.revision == "the sample"
    by_id = {key.sheets[0].by_row[row].id: label for row, label in other.items()}
    assert {entry.id: entry.corrected for entry in file.document.entries} == by_id
    # Of two annotators one gave the final label, which the adjudicator chose.
    assert {(entry.votes, entry.who) for entry in file.document.entries} == {("1/2", "1, 2, adjudicated")}
    labels = [json.loads(line) for line in gold.read_text(encoding="utf-8").splitlines()]
    assert len(labels) == 12 and {row["task"] for row in labels} == {"xnli"}
    found = json.loads(rows.read_text(encoding="utf-8"))
    assert [row["agree"] for row in found if row["row"] == "agreement"] == [4, 6]
    assert sorted(row["label"] for row in found if row["row"] == "item to fix") == sorted(other.values())
    assert "original, human-translated" in written.output


def run(*arguments: object) -> str:
    result = CliRunner().invoke(app, [str(each) for each in arguments])
    assert result.exit_code == 0, (result.output, result.exception)
    return result.output


def test_three_stages_keep_the_first_labels(export: Export, fill_in: FillIn, tmp_path: Path) -> None:
    """Two blind annotators, a round of correction, a blind third one, and an adjudicator for the rest."""
    folder, key = export("folder", size=6, languages=("hi",))
    (sheet,) = key.sheets
    gold = gold_of(key, 0)
    rows = sorted(gold)[:4]
    others = {row: [label for label in sheet.labels if label != gold[row]] for row in rows}
    second = {row: others[row][0] for row in rows}
    run("import", folder, *fill_in(folder, "1"), *fill_in(folder, "2", second))
    corrections = [folder / "correction" / f"annotator-{name}" / f"{sheet.name}.csv" for name in "12"]
    third = folder / "third" / f"{sheet.name}.csv"
    assert "label of 1,label of 2" in corrections[0].read_text(encoding="utf-8-sig") and not third.exists()
    kappa = report_rows(key, read_annotations(folder))[0]["kappa"]
    # The first row is agreed upon; the second annotator insists on the other three.
    run("import", folder, fill(corrections[0], gold))
    run("import", folder, fill(corrections[1], {**second, rows[0]: gold[rows[0]]}))
    assert not corrections[0].exists() and not corrections[1].exists()
    text = third.read_text(encoding="utf-8-sig")
    assert "label of" not in text and not any(row in text for row in (rows[0], *sorted(gold)[4:]))
    assert "third" in third.with_suffix(".json").read_text(encoding="utf-8")
    # Of the three rows the third annotator decides two; on the last all labels differ.
    votes = {rows[1]: gold[rows[1]], rows[2]: second[rows[2]], rows[3]: others[rows[3]][1]}
    assert "3 labels" in run("import", folder, fill(third, votes))
    adjudication = folder / "adjudication" / f"{sheet.name}.csv"
    assert "label of third" in adjudication.read_text(encoding="utf-8-sig") and not third.exists()
    run("import", folder, fill(adjudication, {rows[3]: gold[rows[3]]}))
    annotations = read_annotations(folder)
    assert annotations.labels == {"1": gold, "2": {**gold, **second}}
    assert annotations.final == {rows[3]: gold[rows[3]]}
    row = report_rows(key, annotations)[0]
    assert row["stages"] == {"first": 2, "correction": 1, "third": 2, "adjudicated": 1}
    assert (row["kappa"], row["open"], row["agree"]) == (kappa, 0, 5)
    assert "Rows by the stage that decided them" in run("report", folder)


def test_a_named_annotator_of_an_adjudication_is_a_third_one(export: Export, fill_in: FillIn) -> None:
    folder, key = export("folder", size=6, languages=("hi",))
    gold = gold_of(key, 0)
    row, label = next(iter(gold.items()))
    other = next(each for each in key.sheets[0].labels if each != label)
    run("import", folder, *fill_in(folder, "1"), *fill_in(folder, "2", {row: other}))
    path = fill(folder / "adjudication" / f"{key.sheets[0].name}.csv", {row: other})
    with pytest.raises(UsageError, match=r"'1' .* third"):
        CliRunner().invoke(
            app, ["import", str(folder), str(path), "--annotator", "1"], catch_exceptions=False
        )
    assert "third: 1 labels" in run("import", folder, path, "--annotator", "third")
    annotations = read_annotations(folder)
    assert (annotations.third, annotations.final) == ({"third": {row: other}}, {})
    assert final_label(row, annotations) == other
    with pytest.raises(UsageError, match="'3' has no first label"):
        merge(annotations, Annotations(corrected={"3": {row: other}}), key)


LABELS = st.fixed_dictionaries({row: st.sampled_from("xyz") for row in "abcdef"})


@given(st.lists(LABELS, min_size=5, max_size=5), st.integers(0, 6), st.integers(0, 6))
def test_later_stages_decide_only_what_earlier_ones_left(
    labels: list[dict[str, str]], corrected: int, third: int
) -> None:
    first = {"1": labels[0], "2": labels[1]}
    rows = [row for row in "abcdef" if labels[0][row] != labels[1][row]]
    later = {
        name: {row: own[row] for row in rows[:corrected]} for name, own in zip("12", labels[2:4], strict=True)
    }
    left = [row for row in rows[:corrected] if labels[2][row] != labels[3][row]][:third]
    before = Annotations(labels=first, corrected=later)
    after = Annotations(labels=first, corrected=later, third={"third": {row: labels[4][row] for row in left}})
    for row in "abcdef":
        earlier, final = deciding_stage(row, before), deciding_stage(row, after)
        assert earlier is None or final == earlier
        if row not in rows:
            assert final == ("first", labels[0][row])
        elif row in left and labels[4][row] in {labels[2][row], labels[3][row]}:
            assert final == ("third", labels[4][row])
    assert after.labels == first


@pytest.fixture
def run_items_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    """A run whose German items are marked as a machine translation."""
    monkeypatch.setenv("HARNESS_CACHE", str(tmp_path / "cache"))
    made = evaluate(
        ["xnli:hi+de", "xcopa:zh", "xquad:de"],
        "baseline:majority",
        data="sample",
        train_limit=20,
        output=tmp_path / "run_items_run",
    )
    results = json.loads((made.path / "results.json").read_text(encoding="utf-8"))
    for cell in results["cells"]:
        if (cell["task"], cell["language"]) == ("xnli", "de"):
            cell["view"] = {"prompt": "other", "translator": "nllb", "variant": "tt"}
    (made.path / "results.json").write_text(json.dumps(results), encoding="utf-8")
    return Run(made.path)


def test_texts_of_a_run_are_those_of_its_views(run_items_run: Run, tmp_path: Path) -> None:
    texts = read_run_texts([run_items_run, run_items_run], ["xnli"], None, [])
    shown = {str(text): (len(text.items), text.parallel, text.provenance) for text in texts}
    assert shown == {
        "xnli:hi original": (24, True, "human-translated"),
        "xnli:de tt (nllb)": (24, True, ""),
    }
    (machine,) = read_run_texts([run_items_run], ["xnli"], None, ["tt"])
    assert machine.view == {"variant": "tt", "translator": "nllb"}
    assert set(machine.items[0].fields) == {"premise", "hypothesis"}
    request = ExportRequest(runs=(run_items_run.path,), tasks=("xnli",), size=12, seed=3)
    key = export_sheets(request, tmp_path / "sheets")
    assert read_key(tmp_path / "sheets") == key
    assert len({one.id for sheet in key.sheets for one in sheet.rows}) == 24


def test_choices_are_shown_with_their_texts(run_items_run: Run, tmp_path: Path) -> None:
    key = export_sheets(
        ExportRequest(runs=(run_items_run.path,), tasks=("xcopa",), size=2), tmp_path / "sheets"
    )
    (sheet,) = key.sheets
    item = sheet.rows[0]
    assert set(item.choices) == set(sheet.labels) == {"choice1", "choice2"}
    text = (tmp_path / "sheets/sheets/annotator-1" / f"{sheet.name}.csv").read_text(encoding="utf-8-sig")
    assert all(choice in text for choice in item.choices.values())
    assert key.instructions["xcopa"] == default_instructions(sheet.labels, choices=True)


def test_a_run_without_the_requested_items_is_an_error(run_items_run: Run) -> None:
    with pytest.raises(UsageError, match="original, tt"):
        read_run_texts([run_items_run], ["xnli"], None, ["bt"])
    with pytest.raises(UsageError, match=r"'xquad' .*'span_extraction'"):
        read_run_texts([run_items_run], ["xquad"], None, [])
