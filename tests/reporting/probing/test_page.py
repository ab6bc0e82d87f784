"""The probes in the HTML report: tables, curves with title and description, nothing that runs."""

from __future__ import annotations

import copy
from collections.abc import Sequence

import pytest

from harness.reporting.documents import html_text
from harness.storage.run_folder import Run
from tests.reporting.html.conftest import Node, check_page
from tests.reporting.probing.conftest import WriteProbes, kept_details, make_cells

HOSTILE = "<script>alert(1)</script><img src=x onerror=alert(1)> \u202eevil\u202c & \"'</td></table>]]><!--"


def _section(runs: Sequence[Run]) -> Node:
    root = check_page(html_text(runs))
    [found] = [each for each in root.all("section") if each.attributes["id"] == "probing"]
    return found


def test_tables_and_curves_are_in_the_page(vyakarana: Run) -> None:
    section = _section([vyakarana])
    tables = {table.all("caption")[0].text: table for table in section.all("table") if table.all("caption")}
    assert len(tables) == 6
    rows = {row.all("th")[0].text: row for row in tables["Hindi (hi), probe: last and best layer"].all("tr")}
    best = kept_details()["vyakarana_pos", "", "cg"]["problem"]["headline"]["weighted_f1"]["value"]
    assert rows["vyakarana_pos"].all("td")[3].text.startswith(f"{best * 100:.1f}")
    charts = [svg for svg in section.all("svg") if svg.attributes.get("role") == "img"]
    assert len(charts) == 4, "one for every task with its view"
    for svg in charts:
        assert svg.all("title")[0].text
        assert "highest" in svg.all("desc")[0].text
        strokes = [str(path.attributes["class"]) for path in svg.all("path")]
        assert sum("dashed" in stroke for stroke in strokes) == 3, "control tasks"
        assert sum("dotted" in stroke for stroke in strokes) == 3, "random encoders"


def test_models_are_in_one_chart_by_depth(vyakarana: Run, other_vyakarana: Run) -> None:
    section = _section([vyakarana, other_vyakarana])
    [chart] = [
        figure
        for figure in section.all("figure")
        if figure.all("figcaption")[0].text == "vyakarana_pos CG: all models by depth"
    ]
    rows = [[field.text for field in row.children if isinstance(field, Node)] for row in chart.all("tr")[1:]]
    assert [head.text for head in chart.all("tr")[0].all("th")][1:] == ["first", "second"]
    assert [row[0] for row in rows if row[2] != "-"] == ["0.00", "0.33", "0.67", "1.00"]
    assert [row[0] for row in rows if row[1] != "-"][-1] == "1.00"


@pytest.mark.parametrize("where", ["model", "view", "class", "group"])
def test_hostile_names_do_nothing(write_probes: WriteProbes, where: str) -> None:
    details = copy.deepcopy(kept_details()["vyakarana_pos", "", "cg"])
    if where == "class":
        details["problem"]["items"]["missing_in_train"] = [HOSTILE]
    view = {"treebank": HOSTILE} if where == "view" else {"treebank": "cg"}
    cells = make_cells("p", view, details)
    if where == "group":
        cells[0]["metrics"]["weighted_f1"]["groups"] = {
            name: {"value": 0.5, "n": 3} for name in (HOSTILE, "org1")
        }
    run = write_probes(*cells, model=HOSTILE if where == "model" else "hf:first")
    text = html_text([run])
    root = check_page(text)
    assert text.count("<script") == 1, "check_page compares it with ours"
    assert "\u202e" not in text
    assert "<script>alert(1)</script>" in root.text
