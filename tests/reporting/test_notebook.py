"""A run as notebooks show it: one line, a table, and charts whose numbers are those of ``results.json``."""

from __future__ import annotations

import json
import subprocess
import sys
from html.parser import HTMLParser
from inspect import signature
from pathlib import Path
from statistics import fmean
from typing import Any, get_type_hints

import pytest

import harness
from harness import LoadedRun, Run
from harness.errors import UsageError
from harness.planning.run_config import settings
from harness.planning.run_settings import RunSettings


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
    cells = _results(loaded)["cells"]
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
    shown = [dict(zip(head, row, strict=False)) for row in rows]
    assert {"script", "style", "link", "img"} & table.tags == set()
    for mean in _means(loaded):
        words = mean["protocol"].replace("_", " ")
        [row] = [row for row in shown if row["Task"] in {mean["task"], f"{mean['task']} {words}"}]
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
            content["model"] = f"hf:{evil}"
            for task in content["tasks"].values():
                task["names"] = {"sw": evil, "en": evil, "de": evil}
        (tmp_path / name).write_text(json.dumps(content), encoding="utf-8")
    text = harness.load(tmp_path)._repr_html_()
    assert "<img" not in text
    assert "&lt;img src=x" in text


def test_opening_a_run_imports_neither_altair_nor_pandas(loaded: LoadedRun) -> None:
    script = (
        f"import sys, harness; run = harness.load({str(loaded.path)!r}); run._repr_html_(); repr(run); run.plot\n"
        "print([name for name in ('altair', 'pandas', 'narwhals', 'torch') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


# Charts ------------------------------------------------------------------------------------------------


@pytest.fixture
def altair() -> Any:
    """Return altair, which validates every chart against the schema of Vega-Lite."""
    pytest.importorskip("vl_convert", reason="vl-convert-python is not installed: pip install '.[plots]'")
    return pytest.importorskip("altair", reason="altair is not installed: pip install '.[plots]'")


def _values(chart: Any) -> list[dict[str, Any]]:
    document = chart.to_dict()
    [values] = document["datasets"].values() if "datasets" in document else [document["data"]["values"]]
    return list(values)


@pytest.mark.usefixtures("altair")
def test_the_heat_map_has_every_cell_that_was_asked_for(loaded: LoadedRun, tmp_path: Path) -> None:
    chart = loaded.plot.heatmap()
    rows, cells = _values(chart), _results(loaded)["cells"]
    codes = {(row["task"].split()[0], row["language"].rpartition("(")[2].rstrip(")")) for row in rows}
    scored = {cell["language"] for cell in cells if cell["metrics"]}
    asked = {(cell["task"], cell["language"]) for cell in cells}
    assert codes == {(task, code) for task, code in asked if code in scored}
    hidden = len({code for _, code in asked} - scored)
    assert hidden > 0
    assert f"{hidden} language" in str(chart.to_dict()["title"]["subtitle"])
    tasks = {
        task: (chance or 0.0) for task, chance in ((n, s.chance) for n, s in loaded.manifest.tasks.items())
    }
    for row in rows:
        task, code = row["task"].split()[0], row["language"].rpartition("(")[2].rstrip(")")
        own = [cell for cell in cells if (cell["task"], cell["language"]) == (task, code)]
        if row["level"] is None:
            assert row["reason"] in {cell["reason"] for cell in own}
            assert row["reason"]
            continue
        metric = loaded.manifest.tasks[task].headline[0]
        values = [cell["metrics"][metric]["value"] for cell in own if metric in cell["metrics"]]
        expected = [max(0.0, (value - tasks[task]) / (1 - tasks[task])) for value in values]
        assert any(row["level"] == pytest.approx(level) for level in expected)
        assert row["items"] in {cell["n"] for cell in own}
    colour = json.dumps(chart.to_dict())
    assert '"domain": [0, 1]' in colour
    chart.save(tmp_path / "heatmap.svg")
    chart.save(tmp_path / "heatmap.png")
    svg = (tmp_path / "heatmap.svg").read_text(encoding="utf-8")
    assert "Swahili (sw)" in svg
    assert (tmp_path / "heatmap.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.usefixtures("altair")
def test_the_colours_are_those_of_the_report(loaded: LoadedRun) -> None:
    from harness.reporting.page import style

    layers = loaded.plot.heatmap().to_dict()["spec"]["layer"]
    [colours] = [
        layer["encoding"]["color"]["scale"]["range"]
        for layer in layers
        if "scale" in layer["encoding"].get("color", {})
    ]
    light = style().partition("@media")[0]
    assert len(colours) == 9
    assert [f"--h{step}: {colour};" in light for step, colour in enumerate(colours)] == [True] * 9


@pytest.mark.usefixtures("altair")
def test_the_gap_is_the_source_language_minus_the_mean_of_the_others(
    loaded: LoadedRun, tmp_path: Path
) -> None:
    chart = loaded.plot.gap()
    rows = _values(chart)
    means = [row for row in _means(loaded) if row["transfer_gap"] is not None]
    assert {row["task"].split()[0] for row in rows} == {row["task"] for row in means}
    for mean in means:
        own = [row for row in rows if row["task"].split()[0] == mean["task"]]
        [source] = [row for row in own if row["lane"] == "source"]
        [others] = [row for row in own if row["kind"] == "mean of the others"]
        code = loaded.manifest.tasks[mean["task"]].source
        rest = [value for language, value in mean["by_language"].items() if language != code]
        assert source["score"] == pytest.approx(mean["by_language"][code] * 100)
        assert others["score"] == pytest.approx(fmean(rest) * 100)
        assert float(source["gap"]) == pytest.approx(source["score"] - others["score"], abs=0.06)
        if others["low"] is not None:
            assert others["low"] <= others["score"] <= others["high"]
            if len(rest) == 1:
                [cell] = [
                    cell
                    for cell in _results(loaded)["cells"]
                    if cell["task"] == mean["task"] and cell["language"] != code and cell["metrics"]
                ]
                ends = cell["metrics"][mean["metric"]]["ci"]
                assert (others["low"], others["high"]) == pytest.approx([end * 100 for end in ends], abs=0.5)
    chart.save(tmp_path / "gap.svg")
    assert "mean of the others" in (tmp_path / "gap.svg").read_text(encoding="utf-8")


@pytest.mark.usefixtures("altair")
def test_a_run_without_a_source_language_has_no_gap(tmp_path: Path) -> None:
    run = harness.evaluate("xcopa:et", "baseline:random", data="sample", output=tmp_path / "run")
    with pytest.raises(UsageError, match="trained in"):
        run.plot.gap()


def test_charts_name_their_extra(loaded: LoadedRun, monkeypatch: pytest.MonkeyPatch) -> None:
    class Absent:
        def find_spec(self, name: str, *_: Any) -> None:
            if name == "altair":
                raise ModuleNotFoundError(f"No module named {name!r}", name=name)

    monkeypatch.delitem(sys.modules, "altair", raising=False)
    monkeypatch.setattr(sys, "meta_path", [Absent(), *sys.meta_path])
    with pytest.raises(harness.MissingExtraError, match=r"multilingual-harness\[plots\]"):
        loaded.plot.heatmap()
