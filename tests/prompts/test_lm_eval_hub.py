"""The presets `lm_eval` of benchmarks on the Hub against lm-evaluation-harness itself, from the Hub's rows on.

``golden/lm_eval_hub_requests.jsonl`` is what `peer_hub_prompts.py` wrote for the documents below. Where lm-eval is
installed, it is asked again: the environment that ``HARNESS_TEST_PEERS`` names.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from harness.data.readers.reader import pick, wanted_columns
from harness.data.records import Row
from harness.data.sources import columns_option
from harness.kinds.kind import ReadContext
from harness.prompts.preset import compile_prompt
from harness.running.session import Session

AskPeer = Callable[[str, str], str]
HERE = Path(__file__).parent
GOLDEN = HERE / "golden" / "lm_eval_hub_requests.jsonl"

CASES: Mapping[str, Mapping[str, Any]] = yaml.safe_load(
    (HERE / "golden" / "lm_eval_hub_cases.yaml").read_text(encoding="utf-8")
)


def asked(session: Session, case: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return our requests of every document, and which is right, in the order of lm-eval's choices."""
    catalog = session.catalog
    spec = catalog.task(case["task"]).spec
    source = spec.source(case["language"], "test")
    assert source is not None
    assert source.hub is not None
    prompt = catalog.prompt(case["task"], case.get("preset", "lm_eval"))
    inherited = catalog.inherited_prompt(prompt)
    compiled = compile_prompt(prompt, case["language"], policy="fail", inherited=inherited)
    kind = session.registry.kinds.get(spec.kind)
    assert kind.prompt_item is not None
    columns = wanted_columns({"columns": columns_option(source.hub.columns) or ""})
    context = ReadContext.of_test(spec, case["language"], source.hub.label_map or {})
    found = []
    for document in case["documents"]:
        row = Row(fields=pick(document, columns, "made-up"), path="made-up", line=1)
        item = kind.prompt_item(kind.example(row, 1, context))
        ranked = compiled.ranking(item)
        texts = dict(zip(item.choices, ranked.continuations, strict=True))
        order = list(case.get("choices", item.choices))
        requests = [[ranked.context, texts[name]] for name in order]
        found.append({"requests": requests, "right": order.index(item.gold)})
    return found


def golden() -> dict[str, list[dict[str, Any]]]:
    return by_name(GOLDEN.read_text(encoding="utf-8"))


def by_name(text: str) -> dict[str, list[dict[str, Any]]]:
    found: dict[str, list[dict[str, Any]]] = {}
    for line in text.splitlines():
        record = json.loads(line)
        found.setdefault(record.pop("name"), []).append(record)
    return found


@pytest.mark.parametrize("name", CASES)
def test_prompts_and_answers_are_lm_evals(name: str, shipped: Session) -> None:
    assert asked(shipped, CASES[name]) == golden()[name]


@pytest.mark.thorough
def test_lm_eval_still_asks_what_the_golden_file_says(ask_peer: AskPeer) -> None:
    requests = {name: {key: case[key] for key in ("path", "documents")} for name, case in CASES.items()}
    answers = ask_peer("peer_hub_prompts.py", json.dumps(requests))
    if os.environ.get("HARNESS_UPDATE_GOLDEN"):
        GOLDEN.write_text(answers, encoding="utf-8")
    assert by_name(answers) == golden()
