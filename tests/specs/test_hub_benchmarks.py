"""Benchmarks whose data lie on the Hub: every configuration is named, and rows in the Hub's format are read right."""

from __future__ import annotations

import csv
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import pyarrow as pa
import pytest
import yaml
from pyarrow import parquet

from harness.errors import DataError
from harness.running.session import Session
from tests.builders import read_items, split_ref
from tests.specs.hub_configs import CONFIGS

Where = Literal["local", "hub"]
Rows = Sequence[Mapping[str, Any]]


@pytest.mark.parametrize("task", CONFIGS)
def test_every_configuration_belongs_to_one_language(session: Session, task: str) -> None:
    """Paths of a data folder have the same name as the configuration, or as the files of the repository."""
    found = []
    for language in session.catalog.task(task).spec.languages:
        ref = split_ref(session, task, language)
        assert ref.hub is not None
        name = str(ref.hub.config or ref.hub.files[0].removeprefix("test/mmlu_").removesuffix(".csv"))
        name = name.removeprefix("indicqa.")
        found.append(name)
        assert all("{" not in text for text in (*ref.hub.files, name))
        assert all(name in path for alternative in ref.local for path in alternative.paths)
        assert all(name in path for path in ref.hub.files)
    assert sorted(found) == sorted(CONFIGS[task])
    assert len(set(found)) == len(found)


@dataclass(frozen=True)
class Case:
    """Rows as they are published, and what they mean."""

    task: str
    language: str
    rows: Rows
    items: Sequence[tuple[Any, ...]]
    """By item: id, cluster, group, the texts, the reference."""
    only: Where | None = None
    """Where the rows look so, if not in both places."""


PROX = {f"option_{number}": str(number) for number in range(10)}
SPOKEN = {"id": "7", "locale": "de-DE", "utt": "weck mich um neun", "worker_id": "1"}

CASES = [
    Case(
        task=task,
        language=entry["language"],
        rows=entry["rows"],
        items=[
            (item["id"], item.get("cluster"), item.get("group"), tuple(item["texts"]), item["reference"])
            for item in entry["items"]
        ],
        only=entry.get("only"),
    )
    for entry in yaml.safe_load(Path(__file__).with_name("hub_rows.yaml").read_text(encoding="utf-8"))
    for task in entry["tasks"]
]


def write(path: Path, rows: Rows) -> None:
    """Write rows in the format of the file's name."""
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.suffix == ".parquet":
        parquet.write_table(pa.Table.from_pylist([dict(row) for row in rows]), path)
    elif path.suffix in {".json", ".jsonl"}:
        lines = [json.dumps(row, ensure_ascii=False) + "\n" for row in rows]
        path.write_text("".join(lines), encoding="utf-8")
    else:
        with path.open("w", encoding="utf-8", newline="") as file:
            delimiter = "," if path.suffix == ".csv" else "\t"
            table = csv.DictWriter(file, list(rows[0]), delimiter=delimiter, lineterminator="\n")
            table.writeheader()
            table.writerows(rows)


def meaning(session: Session, task: str, example: Any) -> tuple[Any, ...]:
    kind = session.registry.kinds.get(session.catalog.task(task).spec.kind)
    answer = kind.reference(example)
    texts = (*getattr(example, "inputs", {}).values(), *getattr(example, "choices", ()))
    return (
        example.id,
        example.cluster,
        example.group,
        texts or example.tokens,
        " ".join(answer) if isinstance(answer, list) else answer,
    )


@pytest.mark.parametrize(
    "case", [case for case in CASES if case.only != "hub"], ids=lambda case: f"{case.task}-{case.language}"
)
def test_files_of_a_data_folder(session: Session, tmp_path: Path, case: Case) -> None:
    ref = split_ref(session, case.task, case.language)
    path = tmp_path / ref.local[0].paths[0].replace("*", "00000-of-00001")
    write(path, case.rows)
    examples = read_items(session, case.task, case.language, tmp_path)
    assert [meaning(session, case.task, example) for example in examples] == list(case.items)


@pytest.mark.thorough
@pytest.mark.parametrize(
    "case", [case for case in CASES if case.only != "local"], ids=lambda case: f"{case.task}-{case.language}"
)
def test_files_of_the_hub(
    session: Session, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, case: Case
) -> None:
    pytest.importorskip("datasets")
    from huggingface_hub import constants

    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "hub"))
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    hub = split_ref(session, case.task, case.language).hub
    assert hub is not None
    commit = "1" * 40 if "/" in (hub.revision or "/") else str(hub.revision)
    root = tmp_path / "hub" / ("datasets--" + hub.path.replace("/", "--"))
    snapshot = root / "snapshots" / commit
    file = hub.files[0].replace("*", "0000") if hub.files else f"data/{hub.split}-0.parquet"
    write(snapshot / file, case.rows)
    if not hub.files:
        card = {"configs": [{"config_name": hub.config, "data_files": [{"split": hub.split, "path": file}]}]}
        (snapshot / "README.md").write_text(f"---\n{json.dumps(card)}\n---\n", encoding="utf-8")
    pointer = root / "refs" / (hub.revision or "main")
    pointer.parent.mkdir(parents=True)
    pointer.write_text(commit, encoding="utf-8")
    examples = read_items(session, case.task, case.language)
    assert [meaning(session, case.task, example) for example in examples] == list(case.items)


INDICQA = {
    "data": [
        {
            "paragraphs": [
                {
                    "context": "राधा गाँव में रहती है।",
                    "qas": [
                        {"id": 1, "question": "कहाँ?", "answers": [{"text": "गाँव", "answer_start": 0}]},
                        {"id": 2, "question": "क्यों?", "answers": [{"text": "", "answer_start": None}]},
                        {"id": 3, "question": "कब?", "answers": []},
                    ],
                }
            ]
        }
    ]
}


def test_questions_without_an_answer_are_left_out(session: Session, tmp_path: Path) -> None:
    """An offset that is wrong is moved to the answer, as in other sets of stripped contexts."""
    path = tmp_path / "IndicQA/data/indicqa.hi.json"
    path.parent.mkdir(parents=True)
    path.write_text(json.dumps(INDICQA), encoding="utf-8")
    [example] = read_items(session, "indicqa", "hi", tmp_path)
    assert (example.id, example.cluster) == ("1", "0-0")
    assert [(answer.text, answer.start) for answer in example.answers] == [("गाँव", 5)]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"answer": "J"}, "the label of 'mmlu_prox' is 'J'; expected one of the item's choices"),
        ({f"option_{number}": None for number in range(1, 10)}, "expected two or more choices"),
    ],
)
def test_a_missing_choice_is_never_the_answer(
    session: Session, tmp_path: Path, change: dict[str, Any], message: str
) -> None:
    row = {**PROX, "option_9": None, "question": "Q?", "answer": "A", "category": "law", **change}
    ref = split_ref(session, "mmlu_prox", "fr")
    write(tmp_path / ref.local[0].paths[0].replace("*", "0"), [row])
    with pytest.raises(DataError, match=message):
        read_items(session, "mmlu_prox", "fr", tmp_path)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('"RT @a: ""karibu"" sana"', 'RT @a: "karibu" sana'),
        ('"""sawa"""', '"sawa"'),
        ('"a\tb"', "a\tb"),
        ("no quotes", "no quotes"),
    ],
)
def test_test_files_of_afrisenti_are_quoted(
    session: Session, tmp_path: Path, text: str, expected: str
) -> None:
    path = tmp_path / "afrisenti/swa/test.tsv"
    path.parent.mkdir(parents=True)
    path.write_text(f"tweet\tlabel\n{text}\tpositive\n", encoding="utf-8")
    [example] = read_items(session, "afrisenti", "sw", tmp_path)
    assert (example.inputs["text"], example.label) == (expected, "positive")


@pytest.mark.parametrize(
    ("marked", "message"),
    [("wake [time : me", r"written '\[label : text\]'"), ("wake [time : ]", "the span 'time' has no text")],
)
def test_a_broken_bracket_is_named(session: Session, tmp_path: Path, marked: str, message: str) -> None:
    row = {**SPOKEN, "partition": "test", "annot_utt": marked}
    write(tmp_path / "1.1/data/de-DE.jsonl", [row])
    with pytest.raises(DataError, match=message):
        read_items(session, "massive_slots", "de", tmp_path)
