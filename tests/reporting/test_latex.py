"""The LaTeX tables hold the numbers of the summary; no text is a command."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.reporting.catalog import latex_text
from harness.reporting.latex import escape_latex
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


def _run(model: str) -> Run:
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
    manifest = {"model": model, "tasks": {"xnli": spec}, "suites": []}
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
    assert r"\caption{hf:my\_model on local data}" in text


def test_reasons_stay_within_their_comment() -> None:
    lines = latex_text([_run("m")]).splitlines()
    assert [line for line in lines if r"\end{table}" in line and line != r"\end{table}"] == [
        r"% xnli (zero_shot_transfer) sw: line % \end{table}"
    ]


def test_a_name_with_commands_is_text() -> None:
    text = latex_text([_run(r"\input{/etc/passwd} $x$ }")])
    assert r"\input" not in text
    assert r"\textbackslash{}input\{/etc/passwd\} \$x\$ \}" in text
