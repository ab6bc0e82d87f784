"""A run as notebooks show it: one line, a table, and charts whose numbers are those of ``results.json``."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import xml.etree.ElementTree as ET
from html.parser import HTMLParser
from inspect import signature
from pathlib import Path
from statistics import fmean
from typing import Any, get_type_hints

import pytest

import harness
from harness import LoadedRun, Run
from harness.errors import UsageError
from harness.planning.run_config import RunSettings, settings
from harness.reporting.blocks.chart import TaskChart
from harness.reporting.blocks.model import TileMap


def _results(run: Run) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((run.path / "results.json").read_text(encoding="utf-8"))
    return found


@pytest.fixture(scope="module")
def loaded(trained_sample_run: Run) -> LoadedRun:
    """A fine-tuned run; tests only read it."""
    return harness.load(trained_sample_run.path)


def _means(run: Run) -> list[dict[str, Any]]:
    """Return the rows of the first headline metrics."""
    first = {task: spec.headline[0] for task, spec in run.manifest.tasks.items()}
    return [row for row in _results(run)["tasks"] if row["metric"] == first[row["task"]]]


class _Table(HTMLParser):
    """Collects the texts of the rows of a table, and the tags."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.rows: list[list[str]] = []
        self.tags: set[str] = set()
        self._open = False
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        if tag == "tr":
            self.rows.append([])
        if tag in {"td", "th"}:
            self.rows[-1].append("")
            self._open = True

    def handle_endtag(self, tag: str) -> None:
        if tag in {"td", "th"}:
            self._open = False

    def handle_data(self, data: str) -> None:
        if self._open:
            self.rows[-1][-1] += data


def test_evaluate_returns_a_loaded_run(loaded: LoadedRun, trained_sample_run: Run) -> None:
    assert isinstance(trained_sample_run, LoadedRun)
    assert loaded.results == trained_sample_run.results
    with pytest.raises(UsageError, match="does not exist"):
        harness.load("no/such/run")


def test_the_signature_has_every_setting() -> None:
    hints = get_type_hints(RunSettings)
    assert ["tasks", "model", *hints] == list(settings())
    shown = signature(harness.evaluate).parameters
    assert list(shown) == ["tasks", "model", "tokenizer", "progress", *hints]
    for name, hint in hints.items():
        setting = settings()[name]
        assert (shown[name].annotation, shown[name].default) == (hint, setting.default)
        if setting.default is not None:
            assert setting.read(setting.default) == setting.default


def test_the_line_counts_what_has_a_score(loaded: LoadedRun) -> None:
    # A language that the task never had is not planned.
    cells = [cell for cell in _results(loaded)["cells"] if "' has no " not in cell["reason"]]
    scored = [cell for cell in cells if cell["status"] == "ok"]
    line = repr(loaded)
    assert "\n" not in line
    assert str(loaded.path) in line
    for part in (
        f"char-ngram, {len({cell['task'] for cell in scored})} of {len({cell['task'] for cell in cells})} tasks",
        f"{len({cell['language'] for cell in scored})} of {len({cell['language'] for cell in cells})} languages",
        f"{len(scored)} of {len(cells)} cells",
    ):
        assert part in line


def test_the_table_has_a_row_per_task_with_its_numbers(loaded: LoadedRun) -> None:
    table = _Table(loaded._repr_html_())
    head, *rows = [[" ".join(text.split()) for text in row] for row in table.rows]
    shown = {row[0]: dict(zip(head, row, strict=False)) for row in rows}
    assert len(shown) == len(rows)
    assert {"script", "style", "link", "img"} & table.tags == set()
    for mean in _means(loaded):
        row = shown.get(f"{mean['task']} {mean['protocol'].replace('_', ' ')}") or shown[mean["task"]]
        assert row["Mean"].rstrip("*~") == f"{mean['value'] * 100:.1f}"
        if mean["transfer_gap"] is not None:
            assert float(row["Gap"]) == pytest.approx(mean["transfer_gap"] * 100, abs=0.06)
        if len(mean["by_language"]) >= 3:
            lowest = f"{min(mean['by_language'].values()) * 100:.1f}"
            assert lowest in row["Weakest languages"].split(",")[0]


def test_names_are_escaped(loaded: LoadedRun, tmp_path: Path) -> None:
    evil = "<img src=x onerror=alert(1)>"
    for name in ("results.json", "manifest.json"):
        content = json.loads((loaded.path / name).read_text(encoding="utf-8"))
        if name == "manifest.json":
            content["name"] = evil
            for task in content["tasks"].values():
                task["names"] = {"sw": evil, "en": evil, "de": evil}
        (tmp_path / name).write_text(json.dumps(content), encoding="utf-8")
    text = harness.load(tmp_path)._repr_html_()
    assert "<img" not in text
    assert "&lt;img src=x" in text


def test_opening_a_run_imports_no_large_package(loaded: LoadedRun) -> None:
    script = (
        f"import sys, harness; run = harness.load({str(loaded.path)!r}); run._repr_html_(); repr(run); run.plot\n"
        "print([name for name in ('vl_convert', 'pandas', 'narwhals', 'torch') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


# Charts ------------------------------------------------------------------------------------------------


def test_the_heat_map_has_every_cell_that_was_asked_for(loaded: LoadedRun, tmp_path: Path) -> None:
    figure = loaded.plot.heatmap()
    [chart] = figure.charts
    assert isinstance(chart, TileMap)
    cells = _results(loaded)["cells"]
    scored = {cell["language"] for cell in cells if cell["metrics"]}
    asked = {(cell["task"], cell["language"]) for cell in cells}
    codes = [code for code, _ in chart.languages]
    fields = {
        (name, code): field
        for name, own in chart.rows
        for code, field in zip(codes, own, strict=True)
        if field.text or field.title
    }
    assert {(name.split()[0], code) for name, code in fields} == {pair for pair in asked if pair[1] in scored}
    hidden = len({code for _, code in asked} - scored)
    assert hidden > 0
    assert any(f"{hidden} language" in note for note in figure.notes)
    for (name, code), field in fields.items():
        task = name.split()[0]
        own = [cell for cell in cells if (cell["task"], cell["language"]) == (task, code)]
        metric = loaded.manifest.tasks[task].headline[0]
        values = [
            f"{cell['metrics'][metric]['value'] * 100:.1f}" for cell in own if metric in cell["metrics"]
        ]
        assert (field.text in values) if field.text.strip("!") else field.shade == "absent"
        assert field.text.strip("!") == "" or re.fullmatch("h[0-8]", field.shade)
    figure.save(tmp_path / "heatmap.svg")
    root = ET.fromstring((tmp_path / "heatmap.svg").read_text(encoding="utf-8"))
    texts = [text.text for text in root.iter("{http://www.w3.org/2000/svg}text")]
    assert all(texts.count(field.text) >= 1 for field in fields.values() if field.text)
    assert set(codes) <= set(texts)
    assert figure._repr_svg_() == figure.svg


def test_the_gap_is_the_source_language_minus_the_mean_of_the_others(loaded: LoadedRun) -> None:
    [chart] = loaded.plot.gap().charts
    assert isinstance(chart, TaskChart)
    means = [row for row in _means(loaded) if row["transfer_gap"] is not None]
    pairs = list(zip(chart.rows[::2], chart.rows[1::2], strict=True))
    assert [source.label.split()[0] for source, _ in pairs] == [mean["task"] for mean in means]
    for mean, (source, others) in zip(means, pairs, strict=True):
        code = loaded.manifest.tasks[mean["task"]].source
        rest = [value for language, value in mean["by_language"].items() if language != code]
        assert source.value == pytest.approx(mean["by_language"][code] * 100)
        assert others.value == pytest.approx(fmean(rest) * 100)
        assert source.value is not None and others.value is not None
        gap = float(others.words.rpartition(" ")[2])
        assert gap == pytest.approx(source.value - others.value, abs=0.06)
        assert sorted(mark.value for mark in others.marks) == pytest.approx(
            sorted(value * 100 for value in rest)
        )
        if others.low is not None and others.high is not None:
            assert others.low <= others.value <= others.high


def test_a_run_without_a_source_language_has_no_gap(tmp_path: Path) -> None:
    run = harness.evaluate("xcopa:et", "baseline:random", data="sample", output=tmp_path / "run")
    with pytest.raises(UsageError, match="trained in"):
        run.plot.gap()
    assert run.plot.heatmap().svg.count("<rect") > 2
