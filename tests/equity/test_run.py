"""The ledger of whole runs: what is counted, and that no way of running changes the sums."""

from __future__ import annotations

import dataclasses
import importlib
import json
import math
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from harness.analysis.merge import merge_runs
from harness.analysis.rescoring import rescore
from harness.reporting.cost.cost import EquityTable, Premium, equity_report
from harness.reporting.cost.table import (
    ANSWER_HEADS,
    PROMPT_HEADS,
    answer_rows,
    equity_rows,
    prompt_rows,
    side_notes,
    table_notes,
)
from harness.reporting.overview.run_remarks import run_remarks
from harness.running.session import open_session
from harness.storage.records import read_tokens
from harness.storage.run_folder import Run

RunTasks = Callable[..., Run]
Cli = Callable[..., tuple[int, str, str]]


def ledgers(run: Run) -> dict[tuple[str, str], Any]:
    return {(cell.task, cell.language): cell.ledger for cell in run.cells if cell.status == "ok"}


def tokens_by_item(run: Run) -> dict[tuple[str, str], list[int | None]]:
    folder = Run.at(run.path)
    return {
        (cell.task, cell.language): list(read_tokens(folder.records_of(cell)).tokens)
        for cell in run.cells
        if cell.status == "ok"
    }


def table_of(run: Run) -> EquityTable:
    [table] = equity_report([run]).tables
    return table


def test_a_cell_keeps_the_sums_over_its_own_texts(run: RunTasks) -> None:
    finished = run("xnli:en+zh,xcopa:it")
    by_item = tokens_by_item(finished)
    for cell in finished.cells:
        kept, fields = cell.ledger, [record.fields for record in finished.records(cell)]
        if cell.task == "xcopa":  # the question is the benchmark's own words, and no text of an item
            texts = [[own["inputs"]["premise"], *own["choices"]] for own in fields]
        else:
            texts = [list(own["inputs"].values()) for own in fields]
            assert (2 * kept["unspaced"] > kept["words"]) is (cell.language == "zh")
        flat = [text for own in texts for text in own]
        assert kept["items"] == len(texts) == 5
        assert kept["tokens"] == sum(math.ceil(len(text) / 3) for text in flat)
        assert kept["bytes"] == sum(len(text.encode()) for text in flat)
        assert kept["unknown"] == sum(text.count("?") for text in flat)
        assert kept["truncated"] == cell.truncated
        assert by_item[cell.task, cell.language] == [
            sum(math.ceil(len(text) / 3) for text in own) for own in texts
        ]
    for table in equity_report([finished]).tables:  # what ranks generates nothing
        assert all(row.fields[PROMPT_HEADS.index("generated") :] == ("-", "-") for row in prompt_rows(table))


def test_texts_that_repeat_are_counted_once(run: RunTasks) -> None:
    kept = ledgers(run("xnli:en", limit=6))["xnli", "en"]
    calls = importlib.import_module("counting_adapter").CALLS
    assert (kept["items"], len(calls)) == (6, 1)
    assert calls[0] < 12  # hypotheses share their premises


def test_an_embedded_text_that_is_too_long_is_cut(run: RunTasks) -> None:
    finished = run("tatoeba:de+ja", "counts:embeds", protocols=("frozen",))
    for (_, code), kept in ledgers(finished).items():
        [cell] = [cell for cell in finished.cells if cell.language == code and cell.status == "ok"]
        pairs = [(record.fields["query"], record.fields["target"]) for record in finished.records(cell)]
        cut = sum(any(math.ceil(len(text) / 3) > 16 for text in pair) for pair in pairs)
        assert kept["truncated"] == cut
        assert kept["tokens"] == sum(math.ceil(len(target) / 3) for _, target in pairs)
    rows = [
        row for row in equity_rows([run("lareqa:en", "counts:embeds", protocols=("frozen",))]) if row["task"]
    ]
    assert {row["tokens_per_correct_answer"] for row in rows} == {None}, (
        "the metric counts no correct answers"
    )


@pytest.mark.parametrize(
    ("tasks", "model"),
    [("xnli:en+zh", "counts:classifies"), ("xcopa:it", "counts:chooses"), ("tatoeba:de", "counts:embeds")],
)
def test_an_item_that_is_cut_is_truncated_in_every_kind(
    run: RunTasks, monkeypatch: pytest.MonkeyPatch, tasks: str, model: str
) -> None:
    if model == "counts:embeds":
        monkeypatch.setattr(importlib.import_module("counting_adapter"), "ROOM", 6)
    finished = run(tasks, model, limit=12, protocols=("frozen",) if model == "counts:embeds" else None)
    cells = [cell for cell in finished.cells if cell.status == "ok"]
    assert cells
    for cell in cells:
        flags = [record.flags["truncated"] for record in finished.records(cell)]
        assert cell.truncated == cell.ledger["truncated"] == sum(flags)
        assert cell.tied == (0 if model == "counts:embeds" else cell.n), "equal scores are ties"
    count = sum(cell.truncated for cell in cells)
    assert 0 < count < sum(cell.n for cell in cells) or model == "counts:chooses"
    assert f"{count:,} items were truncated" in [remark.text for remark in run_remarks(finished)]


def test_shards_give_the_sums_of_the_whole(run: RunTasks, tmp_path: Path) -> None:
    whole = run("xnli:en+de+hi+zh")
    parts = [run("xnli:en+de+hi+zh", shard=f"{number}/2") for number in (1, 2)]
    output = tmp_path / "merged"
    merge_runs([part.path for part in parts], output, open_session().registry.metrics)
    merged = Run(output)
    assert ledgers(merged) == ledgers(whole)
    assert tokens_by_item(merged) == tokens_by_item(whole)
    premiums = [
        [dataclasses.replace(row.premium, seconds=None) for row in table_of(one).rows]
        for one in (merged, whole)
    ]
    assert premiums[0] == premiums[1]
    assert [row.premium for row in table_of(parts[1]).rows] == [
        Premium(reason="the run has no English items of this task")
    ] * len(table_of(parts[1]).rows)


def test_resuming_and_reusing_change_nothing_but_the_seconds(run: RunTasks, cli: Cli, tmp_path: Path) -> None:
    whole = run("xnli:en+de+zh")
    broken = tmp_path / "broken"
    shutil.copytree(whole.path, broken)
    (broken / "results.json").unlink()
    for file in sorted((broken / "cells").glob("*.json"))[1:]:
        file.unlink()
    code, _, error = cli("eval", "--resume", broken)
    assert code == 0, error
    resumed = Run(broken)
    assert ledgers(resumed) == ledgers(whole)
    assert tokens_by_item(resumed) == tokens_by_item(whole)
    reused = run("xnli:en+de+zh", reuse=(whole.path,))
    assert ledgers(reused) == ledgers(whole)
    assert [row.cost.is_timed for row in table_of(whole).rows] == [True] * 3
    assert sorted(row.cost.is_timed for row in table_of(resumed).rows) == [False, False, True]
    assert [row.cost.is_timed for row in table_of(reused).rows] == [False] * 3


def test_scoring_again_keeps_the_ledger(run: RunTasks) -> None:
    finished = run("xnli:en+de")
    before, items = ledgers(finished), tokens_by_item(finished)
    rescore(finished.path, open_session().registry, ["weighted_f1"])
    again = Run(finished.path)
    assert all("weighted_f1" in cell.metrics for cell in again.cells)
    assert (ledgers(again), tokens_by_item(again)) == (before, items)


def test_a_model_that_counts_nothing_has_no_ledger(run: RunTasks) -> None:
    finished = run("xnli:en", "baseline:majority", recipe="quick", train_limit=30)
    assert not finished.cells[0].ledger
    assert tokens_by_item(finished)["xnli", "en"] == [None] * 5
    report = equity_report([finished])
    assert (bool(report), report.notes) == (
        False, ("majority: no ledger: the model counts no sub-words, or its tasks name no texts",)
    )  # fmt: skip


def test_the_language_of_written_answers_is_counted(run: RunTasks) -> None:
    english = "This is an answer of several words in the English language."
    finished = run("xquad:hi", "counts:writes", options={"says": english}, method="generate")
    kept = ledgers(finished)["xquad", "hi"]["answers"]
    assert kept["answers"] == 5
    assert kept["scripts"] == {"target": 0, "latin": 5, "other": 0, "undetermined": 0}
    if kept["detector"] is not None:
        assert kept["languages"] == {"target": 0, "english": 5, "other": 0, "undetermined": 0}


def test_answers_due_in_english_or_latin_letters_are_in_no_group_of_those(run: RunTasks) -> None:
    finished = run("xquad:en+de+hi", "counts:writes", options={"says": "yes yes"}, method="generate")
    rows = {
        str(row.label).split()[0]: dict(zip(ANSWER_HEADS, row.fields, strict=True))
        for row in answer_rows(table_of(finished))
    }
    latin = {code: fields["latin script %"] for code, fields in rows.items()}
    assert latin == {"en": "-", "de": "-", "hi": "100.0"}
    assert rows["en"]["target script %"] == "100.0"
    assert rows["en"]["english %"] == "-"


def test_seeds_are_reported_where_their_costs_are_added(run: RunTasks) -> None:
    finished = run("xnli:en+de", "counts:writes", options={"says": "yes"}, prompt="mega", limit=3)
    once = table_of(finished)
    results = json.loads((finished.path / "results.json").read_text(encoding="utf-8"))
    results["cells"] += [{**cell, "seed": cell["seed"] + 1} for cell in results["cells"]]
    (finished.path / "results.json").write_text(json.dumps(results), encoding="utf-8")
    twice = table_of(Run(finished.path))
    for before, after in zip(once.rows, twice.rows, strict=True):
        assert (after.seeds, after.cost.tokens) == (2, 2 * before.cost.tokens)
        assert after.answers is not None
        assert before.answers is not None
        assert after.answers["answers"] == 2 * before.answers["answers"]
        assert after.premium == before.premium
    note = "tokens, seconds and what was generated are sums over 2 seeds"
    assert note in table_notes(twice)
    assert note not in table_notes(once)
    relative = [row.fields[PROMPT_HEADS.index("to English")] for row in prompt_rows(twice)]
    assert "-" not in relative


def test_prompts_of_other_items_are_not_compared(run: RunTasks, tmp_path: Path) -> None:
    table = table_of(run("xnli:en+de", "counts:writes", limit=3))
    english = [row for row in table.rows if row.code == "en"]
    german = [row for row in table.rows if row.code == "de"]
    shared = dataclasses.replace(german[0].premium, items=2)
    partial = dataclasses.replace(table, rows=(dataclasses.replace(german[0], premium=shared), *english))
    place = PROMPT_HEADS.index("to English")
    assert [row.fields[place] for row in prompt_rows(partial)] == ["-", "1.00"]


def test_languages_of_different_tasks_are_reported(run: RunTasks) -> None:
    note = "the languages have different tasks, so only premiums are of the same texts"
    uneven = equity_report([run("xnli:en+de,xcopa:it")])
    even = equity_report([run("xnli:en+de,xquad:en+de", "counts:writes", protocols=("prompted",))])
    assert note in table_notes(uneven.overall[0])
    assert note not in table_notes(even.overall[0])
    assert note not in table_notes(uneven.tables[0])


def test_systems_with_other_texts_are_reported(run: RunTasks) -> None:
    runs = [run("xnli:en+de"), run("xnli:en,xcopa:it"), run("xnli:en+de")]
    report = equity_report(runs)
    assert side_notes(report.overall) == []
    other = equity_report([*runs, run("xnli:en+de", limit=2)])
    assert side_notes(other.overall) == ["not the same texts in all systems, compare with care: de en"]


def test_the_tokens_of_prompts_and_answers_are_counted(run: RunTasks, cli: Cli) -> None:
    finished = run("xnli:en+zh", "counts:writes", prompt="mega", options={"says": "a b"}, limit=3)
    rows = {row.code: row.cost for row in table_of(finished).rows}
    plain = run("xnli:en", "counts:writes", prompt="mega", options={"says": "a b"}, limit=2)
    assert 0 < (table_of(plain).rows[0].cost.prompts or 0) < (rows["en"].prompts or 0)
    assert {cost.generated for cost in rows.values()} == {9}
    assert all((cost.prompts or 0) > cost.characters for cost in rows.values())
    code, out, _ = cli("report", finished.path, "--equity")
    assert code == 0
    assert f"{rows['zh'].prompts:,}" in out
    assert "tokens of prompts and answers" in out


def test_a_run_of_an_older_version_is_reported_without_a_ledger(run: RunTasks, cli: Cli) -> None:
    finished = run("xnli:en")
    results = json.loads((finished.path / "results.json").read_text(encoding="utf-8"))
    for cell in results["cells"]:
        del cell["ledger"]
    (finished.path / "results.json").write_text(json.dumps(results), encoding="utf-8")
    code, out, _ = cli("report", finished.path, "--equity")
    assert code == 0
    assert "No ledger: these models" in out
    code, out, _ = cli("report", finished.path, "--format", "html")
    assert (code, 'id="equity' in out) == (0, False)


def test_missing_records_leave_the_premium_out(run: RunTasks) -> None:
    finished = run("xnli:en+de")
    shutil.rmtree(finished.path / "records" / "xnli" / "de")
    rows = {row.code: row for row in table_of(Run(finished.path)).rows}
    assert rows["de"].premium.reason == "the run's records are missing or broken"
    assert rows["de"].cost.tokens > 0
    assert rows["en"].premium.tokens == 1


def test_a_format_without_the_ledger_is_an_error(run: RunTasks, cli: Cli, tmp_path: Path) -> None:
    finished = run("xnli:en+de")
    code, _, error = cli("report", finished.path, "--equity", "--format", "latex")
    assert code == 2
    assert "--equity cannot be written as 'latex'; expected console, csv" in error
    code, _, error = cli("report", finished.path, "--equity", "--output", tmp_path / "cost.txt")
    assert code == 0, error
    assert "de German" in (tmp_path / "cost.txt").read_text(encoding="utf-8")
    assert cli("report", finished.path, "--equity", "--json", tmp_path / "cost.json")[0] == 0
    rows = json.loads((tmp_path / "cost.json").read_text(encoding="utf-8"))
    assert {(row["task"], row["language"]) for row in rows} == {
        ("", "de"), ("", "en"), ("xnli", "de"), ("xnli", "en")
    }  # fmt: skip


def test_every_format_has_the_ledger(run: RunTasks, cli: Cli) -> None:
    finished = run("xnli:en+de+zh")
    for format_name, language in (
        ("csv", "zh"),
        ("json", "zh"),
        ("markdown", "Mandarin"),
        ("html", "Mandarin"),
    ):
        code, out, error = cli("report", finished.path, "--equity", "--format", format_name)
        assert code == 0, error
        assert all(word in out for word in ("fertility", "premium", language))


def test_a_correct_answer_costs_all_that_was_read_and_written(
    run: RunTasks, cli: Cli, tmp_path: Path
) -> None:
    evaluated = run("xnli:en+de", limit=12)
    output = tmp_path / "rows.json"
    assert cli("report", evaluated.path, "--equity", "--watts", "90", "--json", output)[0] == 0
    rows = {row["language"]: row for row in json.loads(output.read_text(encoding="utf-8")) if row["task"]}
    for cell in evaluated.cells:
        row = rows[cell.language]
        right = sum(record.scores["accuracy"] for record in evaluated.records(cell))
        assert row["correct_answers"] == pytest.approx(right)
        assert right > 0
        read = row["prompt_tokens"] + row["generated_tokens"]
        assert row["tokens_per_correct_answer"] == pytest.approx(read / right)
        assert row["seconds_per_correct_answer"] == pytest.approx(cell.seconds / right)
        assert row["watt_hours_per_correct_answer"] == pytest.approx(cell.seconds * 90 / 3600 / right)
    [without] = {row["watt_hours_per_correct_answer"] for row in equity_rows([evaluated])}
    assert without is None
    assert cli("report", evaluated.path, "--watts", "90")[0] == 2
