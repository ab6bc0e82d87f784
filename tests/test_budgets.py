"""Code lines of every package, without blanks, comments and docstrings: a commit that raises a budget says why."""

from __future__ import annotations

import ast
import io
import tokenize
from collections import Counter
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
NO_CODE = {
    tokenize.COMMENT,
    tokenize.NL,
    tokenize.NEWLINE,
    tokenize.INDENT,
    tokenize.DEDENT,
    tokenize.ENDMARKER,
}
BUDGETS = {
    "harness": 480,
    "harness/analysis": 3_760,
    "harness/checks": 960,
    "harness/cli": 3_620,
    "harness/data": 3_410,
    "harness/kinds": 1_910,
    "harness/languages": 790,
    "harness/metrics": 1_220,
    "harness/models": 690,
    "harness/planning": 2_820,
    "harness/prompts": 1_260,
    "harness/registry": 900,
    "harness/reporting": 8_280,
    "harness/running": 3_550,
    "harness/scores": 660,
    "harness/specs": 1_770,
    "harness/statistics": 680,
    "harness/storage": 1_610,
    "harness/testing": 1_500,
    "model_adapters/harness_baseline": 980,
    "model_adapters/harness_hf": 8_090,
    "model_adapters/harness_vllm": 2_590,
    "plugins/harness_accelerate": 230,
    "plugins/harness_audit": 1_450,
    "plugins/harness_board": 2_020,
    "plugins/harness_checklist": 3_440,
    "plugins/harness_contamination": 320,
    "plugins/harness_diagnosis": 450,
    "plugins/harness_errata": 630,
    "plugins/harness_export": 520,
    "plugins/harness_fleet": 1_040,
    "plugins/harness_gate": 470,
    "plugins/harness_hub": 760,
    "plugins/harness_import": 1_100,
    "plugins/harness_instructions": 560,
    "plugins/harness_judge": 1_020,
    "plugins/harness_lm_eval": 1_400,
    "plugins/harness_long_context": 370,
    "plugins/harness_minimal_pairs": 240,
    "plugins/harness_probing": 2_860,
    "plugins/harness_ray": 570,
    "plugins/harness_scaffold": 810,
    "plugins/harness_semeval": 460,
    "plugins/harness_slurm": 230,
    "plugins/harness_suspects": 1_110,
    "plugins/harness_trackers": 170,
    "plugins/harness_translation": 4_700,
    "plugins/harness_transliteration": 360,
    "plugins/harness_vyakarana": 2_540,
    "plugins/harness_watch": 360,
    "plugins/harness_xtreme_r": 1_390,
    "task_specs/harness_task_specs": 10,
}


def _code_lines(source: str) -> int:
    docstrings = {
        line
        for node in ast.walk(ast.parse(source))
        if isinstance(body := getattr(node, "body", None), list)
        for statement in body
        if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)
        for line in range(statement.lineno, (statement.end_lineno or statement.lineno) + 1)
    }
    tokens = tokenize.generate_tokens(io.StringIO(source).readline)
    lines = {
        line
        for token in tokens
        if token.type not in NO_CODE
        for line in range(token.start[0], token.end[0] + 1)
    }
    return len(lines - docstrings)


def _package(path: Path) -> str:
    """Return the package that a file counts for; the modules of ``harness/`` itself are one."""
    outer, inner = path.relative_to(ROOT).parts[:2]
    return outer if inner.endswith(".py") else f"{outer}/{inner}"


@pytest.mark.thorough
def test_packages_keep_their_budgets() -> None:
    lines: Counter[str] = Counter()
    for folder in ("harness", "plugins", "model_adapters", "task_specs"):
        for path in (ROOT / folder).rglob("*.py"):
            lines[_package(path)] += _code_lines(path.read_text(encoding="utf-8"))
    assert lines.keys() == BUDGETS.keys()
    assert {name: count for name, count in lines.items() if count > BUDGETS[name]} == {}
