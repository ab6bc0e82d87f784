"""The LaTeX tables hold the numbers of the summary; no text is a command."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from hypothesis import given, strategies as st

from harness.reporting.blocks.model import Table, rows_of
from harness.reporting.documents import latex_text
from harness.reporting.render.text import MOST_CHARACTERS, MOST_ROWS, _pieces, escape_latex, render_latex
from harness.storage.results import Manifest, RunResults
from harness.storage.run_folder import Run

COMMANDS = re.compile(
    r"\\textbackslash\{\}|\\textasciicircum\{\}|\\textasciitilde\{\}|\\textless\{\}|\\textgreater\{\}|\\textbar\{\}"
    r"|\\textdegree\{\}|\\S\{\}|\\d?dag\{\}|\$\^\{\+\}\$|\$\\(?:pm|leq)\$|\\[{}$&#%_]|\{[\[\]*]\}"
)


@given(st.text())
def test_nothing_that_is_left_is_special(text: str) -> None:
    left = COMMANDS.sub("", escape_latex(text))
    assert not set(left) & set("\\{}$&#%_^~<>|[]*\n\r\x00"), left


@pytest.mark.parametrize(("text", "expected"), [("a_b & 50 %", r"a\_b \& 50 \%"), ("[x]*", "{[}x{]}{*}")])
def test_known_escapes(text: str, expected: str) -> None:
    assert escape_latex(text) == expected


@given(st.lists(st.text(), min_size=1, max_size=6))
def test_every_table_has_a_label_of_its_own(titles: list[str]) -> None:
    text = render_latex([Table(title=title, heads=("a",), rows=rows_of([("b", "1")])) for title in titles])
    labels = re.findall(r"^\\label\{(.*)\}$", text, re.MULTILINE)
    assert len(set(labels)) == len(titles)
    assert all(re.fullmatch(r"tab:[a-z0-9-]+", label) for label in labels)


def _run(model: str, name: str = "") -> Run:
    score = {"value": 0.4567, "se": 0.05, "ci": [0.35, 0.55], "ci_method": "t"}
    shared = {
        "task": "xnli", "protocol": "zero_shot_transfer", "method": "head", "view": {}, "seed": 1, "stands_in": False,
        "data": {"pinned": True, "note": ""}, "n": 10, "reason": "", "truncated": 0, "unparsed": 0, "seconds": 1.0,
    }  # fmt: skip
    cells = [
        {**shared, "language": "de", "status": "ok", "metrics": {"accuracy": score}},
        {**shared, "language": "sw", "status": "failed", "metrics": {}, "reason": "line\n% \\end{table}"},
    ]
    row = {
        "task": "xnli", "protocol": "zero_shot_transfer", "method": "head", "view": {}, "metric": "accuracy",
        "value": 0.4567, "by_script": {"Latn": 0.4567}, "by_language": {"de": 0.4567}, "transfer_gap": None,
        "human_gap": None, "languages": 1,
    }  # fmt: skip
    spec = {
        "kind": "sequence_classification", "headline": ["accuracy"], "axes": [],
        "languages": {"de": ["Indo-European", "Latn"], "sw": ["Niger-Congo", "Latn"]},
    }  # fmt: skip
    run = Run.at(Path("run"))
    manifest = {"model": model, "name": name, "tasks": {"xnli": spec}, "suites": []}
    run.manifest = Manifest.model_validate(manifest)
    results = {
        "run": {"data": "local"},
        "cells": cells,
        "tasks": [row],
        "suites": [],
        "fits": {},
        "notes": [],
    }
    run.results = RunResults.model_validate(results)
    return run


def test_rows_have_as_many_fields_as_columns_and_the_scores() -> None:
    text = latex_text([_run("hf:my_model")])
    [columns] = re.findall(r"\\begin\{tabular\}\{(l+r*)\}", text)
    body = text[text.index(r"\toprule") : text.index(r"\bottomrule")]
    rows = [line for line in body.splitlines() if line.endswith(r"\\")]
    assert {len(re.split(r"(?<!\\)&", row)) for row in rows} == {len(columns)}
    assert r"\quad German (de) & 45.7 {\small $\pm$10.0} \\" in rows
    assert r"\quad Swahili (sw) & ! \\" in rows
    assert r"\caption{my\_model on local data}" in text


def test_reasons_stay_within_their_comment() -> None:
    lines = latex_text([_run("m")]).splitlines()
    assert [line for line in lines if r"\end{table}" in line and line != r"\end{table}"] == [
        r"% xnli (zero_shot_transfer) sw: line % \end{table}"
    ]


def test_a_name_with_commands_is_text() -> None:
    text = latex_text([_run("m", name=r"\input{/etc/passwd} $x$ }")])
    assert r"\input" not in text
    assert r"\textbackslash{}input\{/etc/passwd\} \$x\$ \}" in text


@pytest.mark.thorough
@given(st.data(), st.integers(1, 60), st.integers(1, 120))
def test_every_piece_fits_a_page_and_no_cell_is_lost(data: st.DataObject, columns: int, rows: int) -> None:
    width = data.draw(st.integers(1, 40))
    heads = tuple(f"h{at} of\n{'x' * (at % width)}" for at in range(columns))
    body = [
        (f"r{row}", *(f"{row}.{at}" + "0" * (at % width) for at in range(columns))) for row in range(rows)
    ]
    table = Table(title="t", corner="c", heads=heads, rows=rows_of(body), words=frozenset({0}))
    pieces = list(_pieces(table))
    for piece in pieces:
        assert 0 < len(piece.rows) <= MOST_ROWS
        longest = max(len(f"{row.label}{''.join(map(str, row.fields))}") for row in piece.rows)
        assert longest + 2 * len(piece.heads) <= MOST_CHARACTERS + 2 or len(piece.heads) == 1
    cells = [
        (row.label, head, field)
        for own in pieces
        for row in own.rows
        for head, field in zip(own.heads, row.fields, strict=True)
    ]
    assert len(cells) == rows * columns
    assert set(cells) == {
        (row[0], head, field) for row in body for head, field in zip(heads, row[1:], strict=True)
    }
    captions = re.findall(r"\\caption\{(.*)\}", render_latex([table]))
    assert captions == (
        ["t"] if len(pieces) == 1 else [f"t ({at} of {len(pieces)})" for at in range(1, len(pieces) + 1)]
    )
