"""What reports print of probes, held by approved files, and their tables.

After an intended change: ``HARNESS_UPDATE_GOLDEN=1 python -m pytest tests/reporting/probing/test_reports.py``, and
read the diff. The numbers come from a file, so that they are the same on every machine.
"""

from __future__ import annotations

import copy
import csv
import io
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from harness.reporting.blocks.model import Table
from harness.reporting.documents import html_text, latex_text, markdown_text, terminal_text
from harness.storage.run_folder import Run
from harness_probing.reporting.probe import Probe, read_probes
from harness_probing.reporting.section import probe_rows, probing_sections, read_probing, render_probe_csv
from harness_probing.reporting.tables import (
    baseline_table,
    baseline_values,
    depth_of,
    detail_table,
    unseen_table,
    variant_table,
)
from tests.reporting.probing.conftest import WriteProbes, kept_details, make_cells

Cli = Callable[..., tuple[int, str, str]]
GOLDEN = Path(__file__).with_name("golden")
UPDATE = "HARNESS_UPDATE_GOLDEN"


def _compare(text: str, name: str) -> None:
    path, found = GOLDEN / name, "".join(line.rstrip() + "\n" for line in text.splitlines())
    if os.environ.get(UPDATE):
        path.parent.mkdir(exist_ok=True)
        path.write_text(found, encoding="utf-8")
    assert found == path.read_text(encoding="utf-8"), f"{name} differs; if that is meant, run with {UPDATE}=1"


def test_the_summaries_of_one_run_and_of_two(vyakarana: Run, other_vyakarana: Run) -> None:
    text = terminal_text([vyakarana], width=80)
    assert max(map(len, text.splitlines())) <= 80
    _compare(text, "summary-80.txt")
    _compare(terminal_text([vyakarana, other_vyakarana], width=100), "two-runs-100.txt")


def test_the_probes_alone(vyakarana: Run, cli: Cli, tmp_path: Path) -> None:
    out = tmp_path / "rows.json"
    status, stdout, stderr = cli("report", vyakarana.path, "--probing", "--json", out)
    assert (status, stderr) == (0, "")
    _compare(stdout, "probing-100.txt")
    assert json.loads(out.read_text(encoding="utf-8")) == probe_rows([vyakarana])


def test_markdown_and_latex_have_the_tables(vyakarana: Run) -> None:
    _compare(markdown_text([vyakarana]), "report.md")
    latex = latex_text([vyakarana])
    assert latex.count(r"\begin{tabular}") == latex.count(r"\end{tabular}")
    assert r"\caption{Hindi (hi), probe: last and best layer}" in latex
    assert r"\quad CG & " in latex


def test_a_run_without_probes_prints_a_sentence(write_probes: WriteProbes, cli: Cli) -> None:
    cells = make_cells("p", {}, kept_details()["vyakarana_pos", "", "cg"])
    run = write_probes(*({**cell, "details": {}} for cell in cells))
    assert read_probing([run]) is None
    assert "robing" not in terminal_text([run], width=80)
    assert 'id="probing"' not in html_text([run])
    _, stdout, _ = cli("report", run.path, "--probing")
    assert "This run has no probes." in stdout


def test_results_of_another_version_are_reported_and_not_shown(write_probes: WriteProbes) -> None:
    details = {**kept_details()["vyakarana_pos", "", "cg"], "schema": 2}
    run = write_probes(*make_cells("p", {}, details))
    text = " ".join(terminal_text([run], width=80).split())
    assert "The probing results of first have the schema 2, not 1" in text
    assert "wF1" in text, "the scores of the cells are shown where there are no probes"
    assert probe_rows([run]) == []


def test_scores_are_in_one_table_only(vyakarana: Run, write_probes: WriteProbes) -> None:
    assert "wF1" not in terminal_text([vyakarana], width=100)
    details = kept_details()["vyakarana_pos", "", "cg"]
    unprobed = [{**cell, "language": "mr", "details": {}} for cell in make_cells("p", {}, details)]
    text = terminal_text([write_probes(*make_cells("p", {}, details), *unprobed)], width=100)
    assert "wF1" in text, "one language's probes are not there: its cells are"
    assert "Marathi" in text


def test_an_axis_of_treebanks_has_no_halves_of_languages(vyakarana: Run, cli: Cli) -> None:
    _, stdout, _ = cli("report", vyakarana.path, "--matrices")
    assert "Mean: " in stdout
    assert "across languages" not in stdout


def _row(table: Table, task: str, treebank: str) -> tuple[str, ...]:
    labels = [row.label for row in table.rows]
    start = labels.index(task)
    return next(tuple(map(str, row.fields)) for row in table.rows[start + 1 :] if row.label == treebank)


@pytest.fixture
def probes(vyakarana: Run) -> tuple[Probe, ...]:
    return read_probes([vyakarana])[0]


def test_baselines_are_those_of_the_chosen_layer(probes: tuple[Probe, ...]) -> None:
    details = kept_details()["vyakarana_pos", "", "cg"]
    problem = details["problem"]
    [chosen] = [own for own in problem["layers"] if own["layer"] == problem["headline"]["layer"]]
    found = baseline_values(next(probe for probe in probes if probe.treebank == "cg"))
    assert found == {
        "majority": problem["baselines"]["majority"]["weighted_f1"],
        "type_majority": problem["baselines"]["type_majority"]["weighted_f1"],
        "random_encoder": details["random_encoder"]["headline"]["weighted_f1"]["value"],
        "layer_0": problem["layers"][0]["test"]["weighted_f1"]["value"],
        "selectivity": chosen["selectivity"]["weighted_f1"]["value"],
        "compression": chosen["code"]["compression"],
        "center_of_gravity": problem["mix"]["center_of_gravity"],
    }
    fields = _row(baseline_table(probes, "T"), "vyakarana_pos", "CG")
    assert fields[1] == f"{problem['baselines']['majority']['weighted_f1'] * 100:.1f}"
    assert fields[5] == f"{chosen['selectivity']['weighted_f1']['value'] * 100:+.1f}"
    assert fields[6] == f"{chosen['code']['compression']:.2f}"


def test_variants_are_the_mean_over_seeds(probes: tuple[Probe, ...]) -> None:
    table = variant_table(probes, "T")
    assert table is not None
    assert table.heads == ("org1", "org2", "org3", "org4", "spread")
    best = kept_details()["vyakarana_pos", "", "cg"]["problem"]["headline"]["weighted_f1"]["value"]
    fields = _row(table, "vyakarana_pos", "CG")
    assert fields == (*(f"{(best - 0.01 * place - 0.001) * 100:.1f}" for place in range(4)), "3.0")
    assert "original" not in {row.label for row in table.rows}, "an original treebank has no variants"


def test_no_variants_and_no_types_no_tables(write_probes: WriteProbes) -> None:
    details = {**kept_details()["vyakarana_pos", "", "original"], "unseen_types": None}
    run = write_probes(*make_cells("p", {}, details))
    own, _ = read_probes([run])
    assert variant_table(own, "T") is None
    assert unseen_table(own, "T") is None
    assert len(probing_sections([run])[0][0].further) == 1


def test_unseen_types_have_shares_and_scores(probes: tuple[Probe, ...]) -> None:
    table = unseen_table(probes, "T")
    assert table is not None
    assert _row(table, "vyakarana_stdp", "csCG") == ("61", "11.5", "300", "4.0", "73.1", "58.0", "-15.1")


def test_notes_name_cut_sentences_and_classes_missing_in_train(write_probes: WriteProbes) -> None:
    details = copy.deepcopy(kept_details()["vyakarana_pos", "", "cg"])
    details["problem"]["items"] |= {"missing_in_train": ["SYM"], "test_items_of_missing_classes": 7}
    own, _ = read_probes([write_probes(*make_cells("p", {"treebank": "cg"}, details))])
    notes = detail_table(own, "T").notes
    assert "Sentences cut in test, 2: first p CG." in notes
    assert any("SYM" in note and "7 test items" in note and "first p CG" in note for note in notes)


def test_a_note_on_many_probes_comes_once(probes: tuple[Probe, ...]) -> None:
    [note] = [note for note in detail_table(probes, "T").notes if note.startswith("Sentences cut")]
    assert note.endswith("and 9 more.")


def test_models_are_laid_over_each_other_by_depth(vyakarana: Run, other_vyakarana: Run) -> None:
    [section], _ = probing_sections([vyakarana, other_vyakarana])
    assert [one.title for one in section.localisations][:2] == ["vyakarana_pos original", "vyakarana_pos CG"]
    assert len(section.localisations) == 6, "the second model has two tasks"
    first, second = section.localisations[0].curves
    assert [depth_of(first.probe, layer) for layer, _ in first.points][-1] == 1.0
    assert [depth_of(second.probe, layer) for layer, _ in second.points] == [0, 1 / 3, 2 / 3, 1]
    assert probing_sections([vyakarana, vyakarana])[0][0].localisations == (), "one run named twice"


def test_rows_hold_every_layer(vyakarana: Run, other_vyakarana: Run) -> None:
    rows = probe_rows([vyakarana, other_vyakarana])
    assert len(rows) == 12 * 7 + 6 * 4
    best = [row for row in rows if row["best"]]
    assert len(best) == 18
    problem = kept_details()["vyakarana_pos", "", "original"]["problem"]
    assert best[0]["weighted_f1"] == problem["headline"]["weighted_f1"]["value"]
    assert [best[0]["ci_low"], best[0]["ci_high"]] == problem["headline"]["weighted_f1"]["ci"]
    assert best[0]["mix_weight"] == problem["mix"]["weights"][str(best[0]["layer"])]
    written = list(csv.DictReader(io.StringIO(render_probe_csv([vyakarana, other_vyakarana]))))
    assert len(written) == len(rows)
    assert float(written[5]["weighted_f1"]) == rows[5]["weighted_f1"]


def test_a_spreadsheet_runs_nothing(write_probes: WriteProbes) -> None:
    cells: list[dict[str, Any]] = make_cells("p", {}, kept_details()["vyakarana_pos", "", "cg"])
    written = render_probe_csv([write_probes(*cells, model="=cmd()")])
    assert written.splitlines()[1].startswith("'=cmd()")


def test_a_wide_model_fits_into_a_narrow_terminal(write_probes: WriteProbes) -> None:
    details = copy.deepcopy(kept_details()["vyakarana_pos", "", "cg"])
    layers = details["problem"]["layers"]
    details["problem"]["layers"] = [{**layers[number % 7], "layer": number} for number in range(49)]
    text = terminal_text([write_probes(*make_cells("p", {"treebank": "cg"}, details))], width=80)
    assert max(map(len, text.splitlines())) <= 80
    [line] = [line for line in text.splitlines() if " probe " in line and "▁" in line]
    assert len([character for character in line if character in "▁▂▃▄▅▆▇█"]) == 49
    assert any(" control" in line and "▁" in line for line in text.splitlines())
