"""Figures, rows and the published table of probes as files."""

from __future__ import annotations

import copy
import csv
import io
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from harness.reporting.overview.means import Estimate
from harness.storage.run_folder import Run
from harness_probing.reporting.probe import Probe, read_probes
from harness_probing.reporting.progression import average, paper_table, short_titles
from harness_probing.reporting.section import read_probing
from tests.reporting.probing.conftest import WriteProbes, kept_details, make_cells

Cli = Callable[..., tuple[int, str, str]]


def _figures(*runs: Run) -> Mapping[str, Any]:
    section = read_probing(runs)
    assert section is not None
    return section.figures()


def test_one_model_has_a_figure_per_task_with_numbered_layers_and_baselines(vyakarana: Run) -> None:
    figures = _figures(vyakarana)
    assert [name.removeprefix("layers-hi-probe-") for name in figures] == [
        "vyakarana_pos-first",
        "vyakarana_stdp-first",
        "vyakarana_gcm-inputs=full-first",
        "vyakarana_gcm-inputs=case_only-first",
    ]
    chart = figures["layers-hi-probe-vyakarana_pos-first"]
    assert chart.groups == ("original", "CG", "csCG")
    drawn = {line.label: line for line in chart.drawn}
    assert [x for x, _ in drawn["original"].points] == [0, 1, 2, 3, 4, 5, 6]
    assert {"original, control task", "original, encoder with random weights"} <= drawn.keys()
    guides = {line.label: line.points for line in chart.lines if line.is_guide}
    assert guides == {
        "majority 28.3": ((0.0, pytest.approx(28.28, abs=0.01)), (6.0, pytest.approx(28.28, abs=0.01)))
    }
    assert [chart.x_text(tick) for tick in chart.x_ticks] == ["0", "1", "2", "3", "4", "5", "6"]


def test_several_models_share_a_figure_for_every_task_and_treebank(
    vyakarana: Run, other_vyakarana: Run
) -> None:
    figures = _figures(vyakarana, other_vyakarana)
    shared = [name for name in figures if name.startswith("models-")]
    assert shared[:3] == [
        f"models-hi-probe-vyakarana_pos-{treebank}" for treebank in ("original", "CG", "csCG")
    ]
    assert len(shared) == 6
    chart = figures[shared[0]]
    assert chart.groups == ("first", "second")
    assert [[x for x, _ in line.points] for line in chart.lines[:2]] == [[0, 1, 2, 3, 4, 5, 6], [0, 1, 2, 3]]


@pytest.mark.parametrize("format_name", ["svg", "pdf"])
def test_figures_are_files(
    other_vyakarana: Run, write_probes: WriteProbes, cli: Cli, tmp_path: Path, format_name: str
) -> None:
    """A run whose tasks are shown as matrices alone has no heat map, and still its curves."""
    if format_name != "svg":
        pytest.importorskip("vl_convert", reason="vl-convert-python is not installed: pip install '.[plots]'")
    status, stdout, stderr = cli(
        "report", other_vyakarana.path, "--format", format_name, "--output", tmp_path / "f"
    )
    assert (status, stderr) == (0, "")
    files = sorted(path.name for path in (tmp_path / "f").iterdir())
    curves = [name for name in files if name.startswith("layers")]
    assert curves == [f"layers-hi-probe-vyakarana_{task}-second.{format_name}" for task in ("pos", "stdp")]
    assert not any(name.startswith("heatmap") for name in files)
    assert stdout.count("wrote ") == len(files)
    if format_name == "svg":
        text = (tmp_path / "f" / curves[0]).read_text(encoding="utf-8")
        assert {"0", "1", "2", "3", "layer", "csCG", "control task"} <= set(
            re.findall(r">([^<>]+)</text>", text)
        )
        assert re.search(r">majority [\d.]+</text>", text)


def test_rows_and_the_table_of_the_paper_are_files(vyakarana: Run, other_vyakarana: Run, cli: Cli) -> None:
    runs = (vyakarana.path, other_vyakarana.path)
    _, text, _ = cli("report", *runs, "--probing", "--format", "csv")
    rows = list(csv.DictReader(io.StringIO(text)))
    assert {row["layer"] for row in rows if row["model"] == "second"} == {"0", "1", "2", "3"}
    assert {
        row["majority"][:6] for row in rows if (row["model"], row["task"]) == ("first", "vyakarana_pos")
    } == {"0.2828"}
    _, latex, _ = cli("report", *runs, "--probing", "--format", "latex")
    first, *_ = latex.split(r"\end{table}")
    for words in (
        r"\multicolumn{2}{c}{first} & \multicolumn{2}{c}{second} \\",
        r"Task & Last Layer & Best Layer & Last Layer & Best Layer \\",
        r"\textit{csCG}",
        r"\quad POS & \textbf{0.6866} & \textbf{0.9138 (3)} & 0.5243 & 0.8995 (1) \\",
        r"\quad STDP & ",
        r"\quad GCM (case\_only) & 0.7013 & 0.8961 (3) & -- & -- \\",
        r"\quad Average & 0.7099 & 0.9173 & 0.5740\textasciitilde{} & 0.8939\textasciitilde{} \\",
    ):
        assert words in first, words
    assert "vyakarana" not in first.replace(r"\_", "_")
    assert not re.search("wF1|treebank=", latex)


def test_the_averages_of_the_published_table_follow_from_its_cells() -> None:
    """Table 4 of Patil et al. (2021): POS, STDP, GCM and SVA of HDTB, last layer."""
    published = {
        0.6951: (0.9332, 0.3886, 0.7501, 0.7083),
        0.6339: (0.9567, 0.1848, 0.7733, 0.6208),
        0.6759: (0.8860, 0.3815, 0.7345, 0.7015),
        0.5821: (0.7827, 0.3825, 0.6509, 0.5122),
    }
    for mean, cells in published.items():
        estimates = [Estimate(value=value, se=None, interval=None) for value in cells]
        assert average(estimates).value == pytest.approx(mean, abs=5.1e-5)


@pytest.mark.parametrize(
    ("tasks", "names"),
    [
        (("vyakarana_pos", "vyakarana_stdp"), {"vyakarana_pos": "POS", "vyakarana_stdp": "STDP"}),
        (("vyakarana_pos", "udpos"), {"vyakarana_pos": "vyakarana_pos", "udpos": "udpos"}),
        (("udpos",), {"udpos": "udpos"}),
    ],
)
def test_tasks_have_the_names_of_the_paper(
    tasks: tuple[str, ...], names: dict[str, str], write_probes: WriteProbes
) -> None:
    probes = _probes(write_probes, *tasks)
    assert short_titles(probes) == names
    table = paper_table(probes, "x")
    assert [row.label for row in table.rows if row.depth] == [
        *names.values(),
        *(["Average"] if len(tasks) > 1 else []),
    ]


def test_a_tie_has_two_best_scores_and_a_stand_in_its_mark(write_probes: WriteProbes) -> None:
    details = kept_details()["vyakarana_pos", "", "cg"]
    runs = [
        write_probes(
            *make_cells("p", {"treebank": "cg"}, copy.deepcopy(details), stands_in=model == "hf:b"),
            model=model,
        )
        for model in ("hf:a", "hf:b")
    ]
    table = paper_table(read_probes(runs)[0], "x")
    [row] = [row for row in table.rows if row.depth]
    texts = [(str(field), getattr(field, "style", "")) for field in row.fields]
    assert texts == [("0.6142", "best"), ("0.8309 (3)", "best"), ("0.6142*", "best"), ("0.8309* (3)", "best")]


def _probes(write_probes: WriteProbes, *tasks: str) -> tuple[Probe, ...]:
    details = kept_details()["vyakarana_pos", "", "cg"]
    cells = [cell for task in tasks for cell in make_cells(task, {"treebank": "cg"}, details)]
    return read_probes([write_probes(*cells)])[0]
