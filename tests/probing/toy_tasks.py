"""Two tasks over the same sentences: the class of every word, and that of the first one."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

CLASSES = ("NOUN", "VERB", "ADJ")
LETTERS = {"NOUN": "n", "VERB": "v", "ADJ": "a"}
SPEC = """\
task: {task}
kind: {kind}
version: 1
description: A toy.
citation: none
license: none
{inputs}labels: [NOUN, VERB, ADJ]
metrics: [{metric}]
protocols: [frozen]
cluster: source
splits:
  train: {{local: "toy/{name}{{language}}.train.jsonl", reader: jsonl}}
  validation: {{local: "toy/{name}{{language}}.dev.jsonl", reader: jsonl}}
  test: {{local: "toy/{name}{{language}}.test.jsonl", reader: jsonl}}
languages:
  hi: {{provenance: native}}
  ta: {{provenance: native}}
"""


def write_tasks(folder: Path) -> Path:
    """Write the specs of ``toy_pos``, ``toy_first`` over the same files, and of ``toy_broken`` over its own."""
    folder.mkdir(parents=True, exist_ok=True)
    documents = {
        "toy_pos": ("token_tagging", "", "token_accuracy", ""),
        "toy_first": ("sequence_classification", "inputs: [sentence]\n", "accuracy", ""),
        "toy_broken": ("sequence_classification", "inputs: [lost]\n", "accuracy", ""),
    }
    for task, (kind, inputs, metric, name) in documents.items():
        text = SPEC.format(task=task, kind=kind, inputs=inputs, metric=metric, name=name)
        (folder / f"{task}.yaml").write_text(text, encoding="utf-8")
    return folder


def row(number: int, tags: Sequence[str], words: Sequence[str]) -> dict[str, Any]:
    """Return one sentence as the files have it."""
    return {
        "id": f"s{number}",
        "source": f"source {number // 2}",
        "tokens": list(words),
        "tags": list(tags),
        "sentence": " ".join(words),
        "label": tags[0],
    }


def rows(count: int, *, seed: int, classes: Sequence[str] = CLASSES) -> list[dict[str, Any]]:
    """Return made-up sentences of 3 to 8 words."""
    rng = np.random.default_rng(seed)
    found = []
    for number in range(count):
        tags = [str(tag) for tag in rng.choice(list(classes), size=rng.integers(3, 9))]
        words = [f"{LETTERS[tag]}{rng.integers(40)}" for tag in tags]
        found.append(row(number, tags, words))
    return found


def write_rows(path: Path, content: Sequence[Any]) -> None:
    """Write a file of JSON lines."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(one) + "\n" for one in content), encoding="utf-8")
