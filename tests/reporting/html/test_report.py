"""The HTML report is a well-formed page whose numbers are those of the summary, whatever the runs hold."""

from __future__ import annotations

import base64
import csv
import hashlib
import io
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pytest

import harness
from harness.reporting.documents import html_text
from harness.reporting.overview.summary import read_material, summarise
from harness.reporting.render.page import script
from harness.reporting.weakness.items import LONGEST
from harness.storage.results import STOPPED
from harness.storage.run_folder import Run, with_baselines

from .conftest import check_page as check, make_cell as cell, make_record as record

Make = Callable[..., Any]
HOSTILE = (
    "<script>alert(1)</script><img src=x onerror=alert(1)> \u202eevil\u202c \x00 & \"'</td></table>]]><!--"
)


def _records(count: int = 40, **changes: Any) -> list[Any]:
    return [record(number, right=number % 2 == 0, **changes) for number in range(count)]


def test_scores_are_those_of_the_summary(write_run: Make) -> None:
    own = {code: _records() for code in ("de", "en", "sw")}
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
def test_hostile_texts_are_shown_and_do_nothing(write_run: Make, where: str) -> None:
    records = _records()
    if where == "premise":
        records = _records(premise=HOSTILE)
    elif where == "id":
        records = [record(number, right=False, id=f"{number} {HOSTILE}") for number in range(40)]
    elif where == "label":
        records = [record(number, right=False, prediction={"label": HOSTILE}) for number in range(40)]
    failed = cell("sw", None, status="failed", reason=HOSTILE if where == "reason" else "broken", n=0)
    model = HOSTILE if where == "model" else "hf:models/mine"
    notes = [HOSTILE] if where == "note" else []
    run = write_run(cell("de"), failed, records={"de": records}, model=model, notes=notes)
    text = html_text([run])
    root = check(text)
    assert text.count("<script") == 1, "check compares it with ours"
    assert "\u202e" not in text
    assert "\x00" not in text
    # Of a model that looks like a path only the end is its name.
    assert ("table>]]><!--" if where == "model" else "<script>alert(1)</script>") in root.text


def test_very_long_texts_are_cut(write_run: Make) -> None:
    records = _records(premise="ä" * 100_000)
    text = html_text([write_run(cell("de"), records={"de": records})])
    root = check(text)
    assert len(text) < 200_000
    assert f"{100_000 - LONGEST:,} more characters are in the records." in root.text


def test_confidently_wrong_items_come_first(write_run: Make) -> None:
    run = write_run(cell("de"), records={"de": _records()})
    root = check(html_text([run]))
    [section] = [each for each in root.all("section") if each.attributes["id"] == "items"]
    shown = [str(table.attributes["id"]) for table in section.all("table")]
    assert [name.partition("-xnli-de-item-")[2][:2] for name in shown] == ["39", "37", "35"]
    [languages] = [each for each in root.all("section") if each.attributes["id"] == "languages"]
    assert [link.attributes["href"] for link in languages.all("a")] == [f"#{shown[0]}"]
    [item] = [each for each in root.all("table") if each.text.startswith("xnli, de, item item-39")]
    rows = {row.all("th")[0].text: row.all("td")[0] for row in item.all("tr")}
    assert rows["gold"].text == "contradiction"
    assert rows["premise"].all("span")[0].attributes == {"class": "text", "dir": "auto", "lang": "de"}
    assert "entailment" in rows["models/mine"].text


def test_two_runs_stand_side_by_side(write_run: Make) -> None:
    first = write_run(cell("de"), records={"de": _records()})
    better = [record(number, right=True) for number in range(40)]
    second = write_run(cell("de", 1.0), records={"de": better}, model="hf:models/other")
    root = check(html_text([first, second]))
    assert [head.text for head in root.all("h2")].count("Comparison") == 1
    [item] = [each for each in root.all("table") if each.text.startswith("xnli, de, item item-39")]
    rows = {row.all("th")[0].text: row.all("td")[0].text for row in item.all("tr")}
    assert rows["models/other"].startswith("contradiction")
    [section] = [each for each in root.all("section") if each.attributes["id"] == "comparison"]
    assert section.all("h3")[0].text.startswith("xnli: models/mine is 50.0 points below models/other (")
    assert len([each for each in section.all("div") if each.attributes.get("class") == "forest"]) == 1
    [compared, _] = [each for each in root.all("table") if each.text.startswith("xnli: 40 common items")]
    assert "-50.0" in compared.text


def test_the_second_run_is_in_overview_and_systems(write_run: Make) -> None:
    first = write_run(cell("de", 0.75))
    second = write_run(
        cell("de", 0.25, n=6), cell("sw", 0.25, n=6), cell("fr", 0.5, task="pawsx"), model="hf:models/other"
    )
    root = check(html_text([first, second]))
    assert "2 runs, 3 languages, 2 tasks." in root.text
    assert [head.text for head in root.all("h1")] == ["models/mine and models/other"]
    [table] = [each for each in root.all("table") if each.text.startswith("Means over languages")]
    rows = {row.all("th")[0].text: [field.text for field in row.all("td")] for row in table.all("tr")[1:]}
    assert [head.text for head in table.all("th")[:3]] == ["system", "xnliacc", "pawsxacc"]
    assert [field.split(" ")[0] for field in rows["models/mine"]] == ["75.0", "-"]
    assert [field.split(" ")[0] for field in rows["models/other"]] == ["25.0~", "50.0"]
    assert rows["items"] == ["100", "100"]
    assert [field.text.split(" ")[0] for field in table.all("strong")] == [], (
        "one comparable mean is no best one"
    )
    assert "models/other, xnli 2 languages, 12 items (first run: 1 language, 100 items)" in root.text
    [chart] = [each for each in root.all("details") if each.text.startswith("Data of this chart")][:1]
    assert "models/other 25.0" in chart.text


def test_the_best_comparable_mean_is_bold(write_run: Make) -> None:
    runs = [
        write_run(cell("de", value), model=f"hf:models/{name}")
        for name, value in (("a", 0.75), ("b", 0.8), ("c", 0.8))
    ]
    root = check(html_text(runs))
    [table] = [each for each in root.all("table") if each.text.startswith("Means over languages")]
    assert [strong.text for strong in table.all("strong")] == ["80.0", "80.0"]
    latex = next(link for link in root.all("a") if link.text == "LaTeX")
    text = unquote(str(latex.attributes["href"]))
    assert text.count(r"\textbf{80.0}") == 2
    assert r"\textbf{75.0}" not in text


def test_the_downloaded_scores_are_those_of_the_cells(write_run: Make) -> None:
    run = write_run(cell("de", 0.333), cell("en", 0.918), cell("sw", None, status="failed", reason="x", n=0))
    [link] = [link for link in check(html_text([run])).all("a") if link.text == "CSV"]
    assert str(link.attributes["download"]).endswith(".csv")
    media, _, text = str(link.attributes["href"]).partition(",")
    assert media == "data:text/csv;charset=utf-8"
    rows = list(csv.DictReader(io.StringIO(unquote(text))))
    assert {row["language"]: float(row["value"]) for row in rows if row["value"]} == {
        "de": 0.333,
        "en": 0.918,
    }
    assert {(row["model"], row["task"], row["metric"], row["n"]) for row in rows if row["value"]} == {
        ("models/mine", "xnli", "accuracy", "100")
    }


def test_failed_and_skipped_cells_have_their_reasons(write_run: Make) -> None:
    failed = cell("sw", None, status="failed", reason="RuntimeError: out of memory", n=0)
    skipped = cell("ur", None, status="skipped", reason="No data in 'ur'.", n=0)
    kept = ("task", "language", "status", "reason", "n", "metrics", "seconds")
    run = write_run(cell("de"), failed, {key: skipped[key] for key in kept}, records={"de": _records()})
    root = check(html_text([run]))
    for caption, reason in (
        ("Failed: 1 cell", "RuntimeError: out of memory"),
        ("Skipped: 1 cell", "No data in 'ur'."),
    ):
        [table] = [each for each in root.all("table") if each.text.startswith(caption)]
        assert reason in table.text
    assert [field.text for field in root.all("td") if field.text == "!"], "in the table and in the map"
    [banner] = [each for each in _banners(run) if each.text.startswith("Partial run. ")]
    assert "1 of 1 task, 1 of 3 languages, 1 cell failed, 1 cell skipped." in banner.text
    assert [link.attributes["href"] for link in banner.all("a")] == ["#missing"]


def _banners(run: Run) -> list[Any]:
    return [each for each in check(html_text([run])).all("p") if each.attributes.get("class") == "banner"]


def test_a_stopped_run_says_how_to_continue_it(write_run: Make) -> None:
    run = write_run(cell("de"), cell("sw", None, status="skipped", reason=STOPPED, n=0))
    [banner] = _banners(run)
    assert banner.text.startswith("Stopped run.")
    assert [code.text for code in banner.all("code")] == [f"harness eval --resume {run.path}"]
    assert _banners(write_run(cell("de"), cell("en"))) == [], "a whole run has none"


def test_languages_with_the_same_source_are_one_row_of_data(write_run: Make) -> None:
    run = write_run(cell("de"), cell("sw", n=60), cell("en", split="validation"))
    root = check(html_text([run]))
    [table] = [each for each in root.all("table") if each.text.startswith("Data")]
    rows = [[field.text for field in row.all("td")] for row in table.all("tr")[1:]]
    assert sorted((row[1], row[3]) for row in rows) == [("de sw", "60 to 100 of 100"), ("en", "100 of 100")]
    [provenance] = [each for each in root.all("section") if each.attributes["id"] == "provenance"]
    assert "d" * 16 not in provenance.text, "digests are in results.json"
    assert "results.json" in provenance.text


def test_what_runs_share_is_shown_once(write_run: Make) -> None:
    root = check(html_text([write_run(cell("de")), write_run(cell("de"), model="hf:models/other")]))
    assert len([each for each in root.all("table") if each.text.startswith("Data")]) == 1
    assert "The same as for models/mine:" in root.text


def test_unlabelled_data_are_predicted_and_not_scored(write_run: Make) -> None:
    records = _records(reference=None, scores={})
    root = check(html_text([write_run(cell("de", None), records={"de": records})]))
    assert "predicted but not scored" in root.text


def test_several_seeds_have_their_mean(write_run: Make) -> None:
    cells = [cell("de", value, seed=seed, digest=f"{seed:012d}") for seed, value in ((1, 0.4), (2, 0.6))]
    root = check(html_text([write_run(*cells, records={"de": _records()})]))
    [table] = [each for each in root.all("table") if each.attributes.get("class") == "heat scores"]
    [row] = [row for row in table.all("tr") if row.all("th")[0].text == "German (de)"]
    assert [field.text for field in row.all("td")] == ["50.0 (seeds 40.0, 60.0)"]


def test_a_run_without_records_has_one_sentence(write_run: Make) -> None:
    root = check(html_text([write_run(cell("de"))]))
    [section] = [each for each in root.all("section") if each.attributes["id"] == "items"]
    assert len(section.all("li")) == 1
    assert "records" in section.text


def test_an_older_run_without_inputs_shows_gold_and_answers(write_run: Make) -> None:
    run = write_run(cell("de"), records={"de": _records(inputs="{}")})
    root = check(html_text([run]))
    [item] = [each for each in root.all("table") if each.text.startswith("xnli, de, item item-39")]
    assert [row.all("th")[0].text for row in item.all("tr")] == ["gold", "models/mine"]


def test_baselines_stand_in_charts_and_are_not_compared(write_run: Make) -> None:
    run = write_run(cell("de"), records={"de": _records()})
    other = write_run(cell("de", 0.25), model="baseline:majority")
    (run.path / "baselines").mkdir()
    other.path.rename(run.path / "baselines" / "majority")
    runs = with_baselines(Run(run.path))
    assert [own.path for own in read_material(runs).runs] == [run.path]
    root = check(html_text(runs))
    assert "Comparison" not in [head.text for head in root.all("h2")]
    [chart] = [each for each in root.all("details") if each.text.startswith("Data of this chart")][:1]
    assert "majority 25.0" in chart.text


def test_the_policy_allows_nothing_but_the_style_and_the_script(write_run: Make) -> None:
    root = check(html_text([write_run(cell("de"))]))
    [policy] = [
        str(meta.attributes["content"]) for meta in root.all("meta") if meta.attributes.get("http-equiv")
    ]
    digest = base64.b64encode(hashlib.sha256(script("tabs").encode()).digest()).decode()
    assert f"default-src 'none'; script-src 'sha256-{digest}'; style-src 'sha256-" in policy


def test_the_command_line_writes_the_page(write_run: Make, cli: Make, tmp_path: Path) -> None:
    run = write_run(cell("de"), records={"de": _records()})
    out = tmp_path / "report.html"
    status, _, stderr = cli("report", str(run.path), "--format", "html", "--output", str(out))
    assert (status, stderr) == (0, "")
    check(out.read_text(encoding="utf-8"))


def test_the_same_runs_give_the_same_bytes(write_run: Make) -> None:
    run = write_run(cell("de"), cell("en"), records={"de": _records(), "en": _records()})
    assert html_text([run]) == html_text([Run(run.path)])


@pytest.mark.thorough
def test_a_large_run_stays_small_and_quick(write_run: Make) -> None:
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


def test_broken_markup_is_noticed() -> None:
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
