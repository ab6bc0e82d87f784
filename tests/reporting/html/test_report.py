"""The HTML report is a well-formed page whose numbers are those of the summary, whatever the runs hold."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import harness
from harness.reporting.catalog import html_text
from harness.reporting.items import LONGEST
from harness.reporting.material import read_material
from harness.reporting.summary import summarise
from harness.storage.run_folder import Run, with_baselines

Make = Callable[..., Any]
HOSTILE = (
    "<script>alert(1)</script><img src=x onerror=alert(1)> \u202eevil\u202c \x00 & \"'</td></table>]]><!--"
)


def _records(record: Make, count: int = 40, **changes: Any) -> list[Any]:
    return [record(number, right=number % 2 == 0, **changes) for number in range(count)]


def test_scores_are_those_of_the_summary(write_run: Make, cell: Make, record: Make, check: Make) -> None:
    own = {code: _records(record) for code in ("de", "en", "sw")}
    run = write_run(cell("de", 0.333), cell("en", 0.918), cell("sw", 0.4567), records=own)
    root = check(html_text([run]))
    [table] = [table for table in root.all("table") if table.attributes.get("class") == "heat scores"][:1]
    rows = {row.all("th")[0].text: [field.text for field in row.all("td")] for row in table.all("tr")[1:]}
    summary = summarise([run])
    for part in summary.sections:
        for code, name, [score] in part.rows:
            assert score.value is not None
            assert rows[f"{name} ({code})"] == [f"{score.value * 100:.1f} (40.0–60.0)"]
    [(_, [mean]), *_] = summary.means
    assert mean.value is not None
    assert rows["mean"][0].split(" ")[0] == f"{mean.value * 100:.1f}"
    assert rows["Indo-European"][0].startswith("62.6")


@pytest.mark.parametrize("where", ["premise", "id", "label", "model", "reason", "note"])
def test_hostile_texts_are_shown_and_do_nothing(
    write_run: Make, cell: Make, record: Make, check: Make, where: str
) -> None:
    records = _records(record)
    model, reason, notes = "hf:models/mine", "broken", []
    if where == "premise":
        records = _records(record, premise=HOSTILE)
    elif where == "id":
        records = [record(number, right=False, id=f"{number} {HOSTILE}") for number in range(40)]
    elif where == "label":
        records = [record(number, right=False, prediction={"label": HOSTILE}) for number in range(40)]
    elif where == "model":
        model = HOSTILE
    elif where == "reason":
        reason = HOSTILE
    else:
        notes = [HOSTILE]
    failed = cell("sw", None, status="failed", reason=reason, n=0)
    run = write_run(cell("de"), failed, records={"de": records}, model=model, notes=notes)
    text = html_text([run])
    root = check(text)
    assert "<script" not in text
    assert "\u202e" not in text
    assert "\x00" not in text
    assert "<script>alert(1)</script>" in root.text


def test_very_long_texts_are_cut(write_run: Make, cell: Make, record: Make, check: Make) -> None:
    records = _records(record, premise="ä" * 100_000)
    text = html_text([write_run(cell("de"), records={"de": records})])
    root = check(text)
    assert len(text) < 200_000
    assert f"{100_000 - LONGEST:,} more characters are in the records." in root.text


def test_confidently_wrong_items_come_first(write_run: Make, cell: Make, record: Make, check: Make) -> None:
    run = write_run(cell("de"), records={"de": _records(record)})
    root = check(html_text([run]))
    [table] = [table for table in root.all("table") if table.text.startswith("The worst items")]
    assert [row.all("th")[0].text for row in table.all("tr")[1:]] == ["item-39", "item-37", "item-35"]
    [item] = [each for each in root.all("table") if each.text.startswith("xnli, de, item item-39")]
    rows = {row.all("th")[0].text: row.all("td")[0] for row in item.all("tr")}
    assert rows["gold"].text == "contradiction"
    assert rows["premise"].all("span")[0].attributes == {"class": "text", "dir": "auto", "lang": "de"}
    assert "entailment" in rows["hf:models/mine"].text


def test_two_runs_stand_side_by_side(write_run: Make, cell: Make, record: Make, check: Make) -> None:
    first = write_run(cell("de"), records={"de": _records(record)})
    better = [record(number, right=True) for number in range(40)]
    second = write_run(cell("de", 1.0), records={"de": better}, model="hf:models/other")
    root = check(html_text([first, second]))
    assert [head.text for head in root.all("h2")].count("Comparison") == 1
    [item] = [each for each in root.all("table") if each.text.startswith("xnli, de, item item-39")]
    rows = {row.all("th")[0].text: row.all("td")[0].text for row in item.all("tr")}
    assert rows["hf:models/other"].startswith("contradiction")
    [compared, _] = [each for each in root.all("table") if each.text.startswith("xnli: 40 common items")]
    assert "+50.0" in compared.text


def test_the_second_run_is_in_overview_and_systems(write_run: Make, cell: Make, check: Make) -> None:
    first = write_run(cell("de", 0.75))
    second = write_run(
        cell("de", 0.25, n=6), cell("sw", 0.25, n=6), cell("fr", 0.5, task="pawsx"), model="hf:models/other"
    )
    root = check(html_text([first, second]))
    assert "2 runs, 3 languages, 2 tasks." in root.text
    [table] = [each for each in root.all("table") if each.text.startswith("Unweighted means")]
    rows = [[field.text for field in row.all("th") + row.all("td")] for row in table.all("tr")][1:]
    assert [row[:3] + row[4:6] for row in rows] == [
        ["xnli acc", "hf:models/mine", "75.0", "1", "100"],
        ["xnli acc", "hf:models/other", "25.0~", "2", "12"],
        ["pawsx acc", "hf:models/other", "50.0", "1", "100"],
    ]
    assert "hf:models/other, xnli 2 languages, 12 items (first run: 1 language, 100 items)" in root.text
    [systems] = [each for each in root.all("section") if each.attributes["id"] == "systems"]
    assert "pawsx acc: means over languages" in systems.text


def test_failed_and_skipped_cells_have_their_reasons(
    write_run: Make, cell: Make, record: Make, check: Make
) -> None:
    failed = cell("sw", None, status="failed", reason="RuntimeError: out of memory", n=0)
    kept = ("task", "language", "status", "reason", "n", "metrics", "seconds")
    skipped = {
        key: value
        for key, value in cell("ur", None, status="skipped", reason="No data in 'ur'.", n=0).items()
        if key in kept
    }
    run = write_run(cell("de"), failed, skipped, records={"de": _records(record)})
    root = check(html_text([run]))
    for caption, reason in (
        ("Failed: 1 cell", "RuntimeError: out of memory"),
        ("Skipped: 1 cell", "No data in 'ur'."),
    ):
        [table] = [each for each in root.all("table") if each.text.startswith(caption)]
        assert reason in table.text
    marks = [field for field in root.all("td") if field.text == "!"]
    assert {field.attributes["title"] for field in marks} == {"RuntimeError: out of memory"}


def test_a_run_without_a_score(write_run: Make, cell: Make, check: Make) -> None:
    root = check(html_text([write_run(cell("de", None, status="failed", reason="broken", n=0))]))
    assert "broken" in root.text


def test_unlabelled_data_are_predicted_and_not_scored(
    write_run: Make, cell: Make, record: Make, check: Make
) -> None:
    records = _records(record, reference=None, scores={})
    root = check(html_text([write_run(cell("de", None), records={"de": records})]))
    assert "predicted but not scored" in root.text


def test_several_seeds_have_their_mean(write_run: Make, cell: Make, record: Make, check: Make) -> None:
    cells = [cell("de", value, seed=seed, digest=f"{seed:012d}") for seed, value in ((1, 0.4), (2, 0.6))]
    root = check(html_text([write_run(*cells, records={"de": _records(record)})]))
    found = [each for each in root.all("td") if "seed 1: 40.0" in str(each.attributes.get("title"))]
    assert [field.text for field in found] == ["50.0", "50.0"], "by family and by script"


def test_a_run_without_records_has_one_sentence(write_run: Make, cell: Make, check: Make) -> None:
    root = check(html_text([write_run(cell("de"))]))
    [section] = [each for each in root.all("section") if each.attributes["id"] == "items"]
    assert len(section.all("li")) == 1
    assert "records" in section.text


def test_an_older_run_without_inputs_shows_gold_and_answers(
    write_run: Make, cell: Make, record: Make, check: Make
) -> None:
    run = write_run(cell("de"), records={"de": _records(record, inputs="{}")})
    root = check(html_text([run]))
    [item] = [each for each in root.all("table") if each.text.startswith("xnli, de, item item-39")]
    assert [row.all("th")[0].text for row in item.all("tr")] == ["gold", "hf:models/mine"]


def test_baselines_stand_in_charts_and_are_not_compared(
    write_run: Make, cell: Make, record: Make, check: Make
) -> None:
    run = write_run(cell("de"), records={"de": _records(record)})
    other = write_run(cell("de", 0.25), model="baseline:majority")
    (run.path / "baselines").mkdir()
    other.path.rename(run.path / "baselines" / "majority")
    runs = with_baselines(Run(run.path))
    assert [own.path for own in read_material(runs).runs] == [run.path]
    root = check(html_text(runs))
    assert "Comparison" not in [head.text for head in root.all("h2")]
    assert "baseline:majority" in root.text


def test_the_policy_allows_nothing_but_the_style(write_run: Make, cell: Make, check: Make) -> None:
    root = check(html_text([write_run(cell("de"))]))
    [policy] = [
        str(meta.attributes["content"]) for meta in root.all("meta") if meta.attributes.get("http-equiv")
    ]
    assert "default-src 'none'; script-src 'none'" in policy


def test_the_command_line_writes_the_page(
    write_run: Make, cell: Make, record: Make, check: Make, cli: Make, tmp_path: Path
) -> None:
    run = write_run(cell("de"), records={"de": _records(record)})
    out = tmp_path / "report.html"
    status, _, stderr = cli("report", str(run.path), "--format", "html", "--output", str(out))
    assert (status, stderr) == (0, "")
    check(out.read_text(encoding="utf-8"))


def test_the_same_runs_give_the_same_bytes(write_run: Make, cell: Make, record: Make) -> None:
    run = write_run(cell("de"), cell("en"), records={"de": _records(record), "en": _records(record)})
    assert html_text([run]) == html_text([Run(run.path)])


def test_a_large_run_stays_small_and_quick(write_run: Make, cell: Make, record: Make) -> None:
    """15 languages x 5 tasks x 250 items; the bound of time is for a machine that does other things too."""
    codes = "de en sw ur ar bg el es fr hi ru th tr vi zh".split()
    premise = "Ein Satz, der so lang ist wie die meisten Absätze in einem Datensatz von Fragen. " * 8
    own = [record(number, right=number % 3 == 0, premise=premise) for number in range(250)]
    cells = [
        cell(code, 0.5, task=f"task{task}", digest=f"{task:012d}") for task in range(5) for code in codes
    ]
    run = write_run(*cells, records={code: own for code in codes})
    text = html_text([run])
    assert len(text.encode()) < 3_000_000


def test_broken_markup_is_noticed(check: Make) -> None:
    bad = '<main id="main"><h1>x</h1><a href="#nowhere">y</a></main>'
    with pytest.raises(AssertionError):
        check(bad)


def test_a_baseline_that_is_named_itself_is_compared(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HARNESS_CACHE", str(tmp_path / "cache"))
    run = harness.evaluate(
        "xnli:en", "baseline:char-ngram", data="sample", with_baselines=True, output=tmp_path / "run"
    )
    both_runs = with_baselines(run)
    own = Run(run.path / "baselines" / "majority")
    assert [given.path for given in read_material(both_runs).runs] == [run.path]
    both = read_material([own, *both_runs])
    assert [given.path for given in both.runs] == [own.path, run.path]
    assert len(both.every) == len(both_runs)
