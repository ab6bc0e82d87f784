"""Final labels, adjudication and the report, which reproduces the published numbers."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from harness.errors import UsageError
from harness.statistics import wilson
from harness_translation.annotation.agreement import two_proportions
from harness_translation.annotation.agreement_report import report_counts, report_sheets
from harness_translation.annotation.command import app
from harness_translation.annotation.export import write_adjudication
from harness_translation.annotation.key import Key, make_key
from harness_translation.annotation.sample import draw_samples
from harness_translation.annotation.sheet_reading import Labelled
from harness_translation.annotation.store import Annotations, final_label, merge, read_annotations
from tests.annotation.conftest import Export, FillIn, text_items

PUBLISHED = """lang\ttext\tn\tlabel_agreement_pct\tcohen_kappa_between_two_annotators
en\toriginal\t200\t90.5\t0.64
hi\thuman-translated\t200\t66.5\t0.43
ur\thuman-translated\t200\t60\t0.37
hi\tgoogle-translated\t200\t80\t
ur\tgoogle-translated\t200\t71\t
fr\thuman-translated (as cited)\t\t83\t
"""
"""Label agreement as the translation-errors paper (EACL 2024, section 4.1) prints it."""


def keyed(size: int = 20, **settings: object) -> Key:
    samples = draw_samples([text_items(), text_items(variant="tt")], size=size, seed=0, **settings)  # type: ignore[arg-type]
    return make_key(samples, seed=0, annotators=["1", "2"], instructions={})


def gold_of(key: Key, number: int) -> dict[str, str]:
    return {one.row: one.drawn.item.gold for one in key.sheets[number].rows}


def wrong(gold: dict[str, str], count: int) -> dict[str, str]:
    """Return the labels with the first ones changed."""
    order = {"yes": "no", "no": "maybe", "maybe": "yes"}
    return {row: order[label] if place < count else label for place, (row, label) in enumerate(gold.items())}


def test_the_published_table_has_its_intervals_and_tests(tmp_path: Path) -> None:
    path = tmp_path / "human.tsv"
    path.write_text(PUBLISHED, encoding="utf-8")
    report = report_counts(path)
    shown = {
        (sheet.language, sheet.text): tuple(round(100 * end, 1) for end in sheet.interval)
        for sheet in report.sheets
        if sheet.interval is not None
    }
    assert shown == {
        ("en", "original"): (85.6, 93.8),
        ("hi", "human-translated"): (59.7, 72.7),
        ("ur", "human-translated"): (53.1, 66.5),
        ("hi", "google-translated"): (73.9, 85.0),
        ("ur", "google-translated"): (64.4, 76.8),
    }
    texts = [one for one in report.contrasts if one.across == "texts"]
    assert [(one.first[:2], round(one.p, 3), round(100 * one.difference, 1)) for one in texts] == [
        ("hi", 0.002, 13.5),
        ("ur", 0.021, 11.0),
    ]
    assert [one.p_holm for one in texts] == pytest.approx([2 * texts[0].p, texts[1].p])


@pytest.mark.parametrize(
    ("text", "where"),
    [
        ("lang\ttext\n", "label_agreement_pct"),
        ("lang\ttext\tn\tlabel_agreement_pct\nhi\tx\t200\tmany\n", "tsv:2:"),
        ("lang\ttext\tn\tlabel_agreement_pct\nhi\tx\t0\t50\n", "tsv:2:"),
    ],
)
def test_other_tables_are_rejected(tmp_path: Path, text: str, where: str) -> None:
    path = tmp_path / "table.tsv"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(UsageError, match=where):
        report_counts(path)


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
    report = report_sheets(key, Annotations(labels=labels))
    human, translated = report.sheets
    assert (human.n, human.agree, human.agreement) == (20, 12, 0.6)
    assert human.interval == pytest.approx(wilson(12, 20))
    assert sum(human.confusion.values()) == 20
    assert sum(count for (inherited, final), count in human.confusion.items() if inherited == final) == 12
    assert human.kappas == {("1", "2"): 1.0} and human.alpha == 1.0 and human.each == {"1": 0.6, "2": 0.6}
    (contrast,) = report.contrasts
    assert contrast.p == contrast.p_holm == pytest.approx(two_proportions(12, 20, 18, 20))
    assert contrast.difference == pytest.approx(0.3) and translated.text == "tt"
    assert len(report.to_fix) == 10 and len(report.labels) == 40
    assert {row.get("variant") for row in report.to_fix} == {None, "tt"}


def test_open_rows_leave_the_agreement_open() -> None:
    key = keyed()
    gold = gold_of(key, 0)
    report = report_sheets(key, Annotations(labels={"1": gold, "2": wrong(gold, 5)}))
    (sheet,) = report.sheets
    assert (sheet.agreement, sheet.interval, sheet.open) == (None, None, 5)
    assert sheet.bounds == (0.75, 1.0) and sheet.each == {"1": 1.0, "2": 0.75}
    decided = dict(list(gold.items())[:5])
    report = report_sheets(key, Annotations(labels={"1": gold, "2": wrong(gold, 5)}, final=decided))
    assert report.sheets[0].agreement == 1.0 and report.sheets[0].open == 0
    with pytest.raises(UsageError):
        report_sheets(key, Annotations())


def test_strata_weigh_in_the_agreement() -> None:
    samples = draw_samples([text_items()], size=12, seed=0, stratify="genre", allocation="equal")
    key = make_key(samples, seed=0, annotators=["1"], instructions={})
    rare = {one.row for one in key.sheets[0].rows if one.drawn.stratum == "rare"}
    labels = {
        row: ("no" if label == "yes" else "yes") if row in rare else label
        for row, label in gold_of(key, 0).items()
    }
    (sheet,) = report_sheets(key, Annotations(labels={"1": labels})).sheets
    assert sheet.agreement == pytest.approx(0.9), "all 6 rare items of 60 are wrong"


def test_precision_of_suspects_is_compared_with_the_control() -> None:
    ranking = [str(number) for number in range(1, 31)]
    samples = draw_samples([text_items()], size=40, seed=0, suspects={0: ranking}, control_share=0.5)
    key = make_key(samples, seed=0, annotators=["1"], instructions={})
    labels = gold_of(key, 0)
    for one in key.sheets[0].rows:
        # The first 10 suspects and 5 of the later ones are wrong, and one item of the control.
        if one.drawn.rank is not None and (one.drawn.rank <= 10 or one.drawn.rank % 2 == 0):
            labels[one.row] = "no" if one.drawn.item.gold == "yes" else "yes"
    control = next(one for one in key.sheets[0].rows if one.drawn.stratum == "control")
    labels[control.row] = "no" if control.drawn.item.gold == "yes" else "yes"
    first, all_ = report_sheets(key, Annotations(labels={"1": labels})).precisions
    assert (first.k, first.wrong, all_.k, all_.wrong) == (10, 10, 20, 15)
    assert (all_.precision, all_.base_rate, all_.control) == (0.75, 0.05, 20)
    assert all_.interval == pytest.approx(wilson(15, 20)) and all_.p == pytest.approx(
        two_proportions(15, 20, 1, 20)
    )


def test_labels_are_replaced_only_on_request() -> None:
    key = keyed()
    gold, machine = gold_of(key, 0), gold_of(key, 1)
    first = merge(Annotations(), Labelled(labels={"1": gold}, comments={}), key)
    both = merge(first, Labelled(labels={"1": machine}, comments={}), key)
    assert both.labels == {"1": {**gold, **machine}}
    again = Labelled(labels={"1": wrong(gold, 3)}, comments={})
    with pytest.raises(UsageError, match=r"'1' .*'nli-hi-[12]'"):
        merge(both, again, key)
    assert merge(both, again, key, replace=True).labels == {"1": {**wrong(gold, 3), **machine}}
    final = Labelled(labels={"adjudicated": dict(list(gold.items())[:2])}, comments={})
    done = merge(both, final, key)
    assert done.final == dict(list(gold.items())[:2])
    further = Labelled(labels={"adjudicated": dict(list(gold.items())[2:4])}, comments={})
    assert len(merge(done, further, key).final) == 4
    with pytest.raises(UsageError, match="'adjudicated'"):
        merge(done, final, key)


def test_undecided_rows_get_a_sheet_until_they_are_decided(tmp_path: Path) -> None:
    key = keyed()
    gold = gold_of(key, 0)
    with_instructions = make_key(
        draw_samples([text_items()], size=20, seed=0), seed=0, annotators=["1"], instructions={"nli": ["Do."]}
    )
    annotations = Annotations(labels={"1": gold, "2": wrong(gold, 3)})
    ((path, count),) = write_adjudication(with_instructions, annotations, tmp_path)
    assert count == 3 and "label of 1,label of 2,annotator" in path.read_text(encoding="utf-8-sig")
    decided = Annotations(labels=annotations.labels, final=gold)
    assert list(write_adjudication(with_instructions, decided, tmp_path)) == [] and not path.exists()


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
    gold, rows, document = tmp_path / "gold.jsonl", tmp_path / "rows.json", tmp_path / "report.md"
    written = runner.invoke(
        app,
        ["report", str(folder), "--write-gold", str(gold), "--json", str(rows), "--markdown", str(document)],
    )
    assert written.exit_code == 0, written.output
    labels = [json.loads(line) for line in gold.read_text(encoding="utf-8").splitlines()]
    assert len(labels) == 12 and {row["task"] for row in labels} == {"xnli"}
    found = json.loads(rows.read_text(encoding="utf-8"))
    assert [row["agree"] for row in found if row["row"] == "agreement"] == [4, 6]
    assert sorted(row["label"] for row in found if row["row"] == "item to fix") == sorted(other.values())
    assert "| xnli:hi | original, human-translated | 6 | 66.7 |" in document.read_text(encoding="utf-8")
