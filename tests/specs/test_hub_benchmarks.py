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
from pyarrow import parquet

from harness.data.resolve import DataOptions, DataRef
from harness.data.sources import DataFinder, data_ref
from harness.errors import DataError
from harness.kinds.kind import ReadContext, read_examples
from harness.running.session import Session
from harness.testing.spec_contract import SpecContract
from tests.specs.hub_configs import CONFIGS

Where = Literal["local", "hub"]
Rows = Sequence[Mapping[str, Any]]


def reference(session: Session, task: str, language: str, split: str = "test") -> DataRef:
    entry = session.catalog.task(task)
    source = entry.spec.source(language, split)  # type: ignore[arg-type]
    assert source is not None
    return data_ref(
        source,
        owner=task,
        language=entry.languages.get(language),
        split=split,
        folder=None,
    )


@pytest.mark.parametrize("task", CONFIGS)
def test_every_configuration_belongs_to_one_language(session: Session, task: str) -> None:
    """Paths of a data folder have the same name as the configuration, or as the files of the repository."""
    found = []
    for language in session.catalog.task(task).spec.languages:
        ref = reference(session, task, language)
        assert ref.hub is not None
        name = str(ref.hub.config or ref.hub.files[0].removeprefix("test/mmlu_").removesuffix(".csv"))
        name = name.removeprefix("indicqa.")
        found.append(name)
        assert all("{" not in text for text in (*ref.hub.files, name))
        assert all(name in path for alternative in ref.local for path in alternative.paths)
        assert all(name in path for path in ref.hub.files)
    assert sorted(found) == sorted(CONFIGS[task])
    assert len(set(found)) == len(found)


@dataclass(frozen=True, kw_only=True)
class Case:
    """Rows as they are published, and what they mean."""

    task: str
    language: str
    rows: Rows
    items: Sequence[tuple[Any, ...]]
    """By item: id, cluster, group, the texts, the reference."""
    only: Where | None = None
    """Where the rows look so, if not in both places."""


MMLU = {"question": "2 + 2?", "option_a": "1", "option_b": "2", "option_c": "None", "option_d": "4"}
MMLU_TEXTS = ("2 + 2?", "1", "2", "None", "4")
ANNOTATED = {"sample_id": "maths/test/0", "subject": "maths", "subject_category": "STEM"}
REGIONAL = {
    "language": "French",
    "country": "France",
    "domain": "STEM",
    "subject": "Math",
    "level": "Academic",
}
PROX = {f"option_{number}": str(number) for number in range(10)}
PAIR = {"premise": "It rains.", "hypothesis": "It is wet."}
STORY = {f"input_sentence_{number}": f"S{number}." for number in range(1, 5)}
BELEBELE = {"flores_passage": "P.", "question": "Q?", **{f"mc_answer{n}": f"a{n}" for n in range(1, 5)}}
SPOKEN = {"id": "7", "locale": "de-DE", "utt": "weck mich um neun", "worker_id": "1"}

CASES = [
    Case(
        task="masakhaner2",
        language="yo",
        rows=[{"id": "0", "tokens": ["Ade", "ti", "Oyo", "loni"], "ner_tags": [1, 0, 5, 7]}],
        items=[("1", None, None, ("Ade", "ti", "Oyo", "loni"), "B-PER O B-LOC B-DATE")],
        only="hub",
    ),
    Case(
        task="belebele",
        language="bn-Latn",
        rows=[
            {**BELEBELE, "link": "https://x.org/a", "question_number": 1, "correct_answer_num": "2"},
            {**BELEBELE, "link": "https://x.org/a", "question_number": 2, "correct_answer_num": "4"},
        ],
        items=[
            ("https://x.org/a/1", "https://x.org/a", None, ("P.", "Q?", "a1", "a2", "a3", "a4"), "B"),
            ("https://x.org/a/2", "https://x.org/a", None, ("P.", "Q?", "a1", "a2", "a3", "a4"), "D"),
        ],
    ),
    Case(
        task="xstorycloze",
        language="eu",
        rows=[
            {
                **STORY,
                "story_id": "s-1",
                "sentence_quiz1": "A.",
                "sentence_quiz2": "B.",
                "answer_right_ending": 2,
            }
        ],
        items=[("s-1", None, None, ("S1.", "S2.", "S3.", "S4.", "A.", "B."), "ending2")],
    ),
    *(
        Case(
            task=task,
            language="sw",
            rows=[
                {**MMLU, **ANNOTATED, "answer": "D", "cultural_sensitivity_label": "CS"},
                {**MMLU, **ANNOTATED, "sample_id": "x/1", "answer": "A", "cultural_sensitivity_label": "-"},
            ],
            items=[("maths/test/0", None, "CS", MMLU_TEXTS, "D"), ("x/1", None, "-", MMLU_TEXTS, "A")],
        )
        for task in ("global_mmlu", "global_mmlu_lite")
    ),
    *(
        Case(
            task=task,
            language="mk",
            rows=[{**question, **REGIONAL, "regional_feature": "agnostic", "answer": 3}],
            items=[("1", None, "agnostic", MMLU_TEXTS, "D")],
        )
        for task, question in (
            ("include", MMLU),
            ("include_lite", {"question": "2 + 2?", "choices": ["1", "2", "None", "4"]}),
        )
    ),
    Case(
        task="mmmlu",
        language="zh",
        rows=[
            {
                "": "0",
                "Question": "2 + 2?",
                "A": "1",
                "B": "2",
                "C": "None",
                "D": "4",
                "Answer": "C",
                "Subject": "m",
            }
        ],
        items=[("1", None, "m", MMLU_TEXTS, "C")],
    ),
    *(
        Case(
            task=task,
            language="wo",
            rows=[
                {**PROX, "question": "Q?", "answer": "J", "category": "law"},
                {
                    **PROX,
                    "option_8": None,
                    "option_9": None,
                    "question": "Q?",
                    "answer": "H",
                    "category": "math",
                },
            ],
            items=[
                ("1", None, "law", ("Q?", *"0123456789"), "J"),
                ("2", None, "math", ("Q?", *"01234567"), "H"),
            ],
        )
        for task in ("mmlu_prox", "mmlu_prox_lite")
    ),
    Case(
        task="afrixnli",
        language="om",
        rows=[{**PAIR, "label": label} for label in (0, 1, 2)],
        items=[
            (str(number), "It rains.", None, ("It rains.", "It is wet."), label)
            for number, label in enumerate(("entailment", "neutral", "contradiction"), start=1)
        ],
    ),
    Case(
        task="afrimmlu",
        language="sw",
        rows=[
            {
                "subject": "law",
                "question": "2 + 2?",
                "choices": """['1', "it's 2", 'None', '4']""",
                "answer": "D",
            }
        ],
        items=[("1", None, "law", ("law", "2 + 2?", "1", "it's 2", "None", "4"), "D")],
    ),
    Case(
        task="indicxnli",
        language="gu",
        rows=[{**PAIR, "label": label} for label in (2, 0)],
        items=[
            ("1", "It rains.", None, ("It rains.", "It is wet."), "contradiction"),
            ("2", "It rains.", None, ("It rains.", "It is wet."), "entailment"),
        ],
    ),
    Case(
        task="indicsentiment",
        language="brx",
        rows=[
            {"INDIC REVIEW": "Good.", "LABEL": "Positive", "CATEGORY": "Food"},
            {"INDIC REVIEW": "?", "LABEL": None, "CATEGORY": "Food"},
            {"INDIC REVIEW": "Bad.", "LABEL": "Negative", "CATEGORY": "Food"},
        ],
        items=[("1", None, None, ("Good.",), "Positive"), ("2", None, None, ("Bad.",), "Negative")],
        only="hub",
    ),
    Case(
        task="indicsentiment",
        language="ur",
        rows=[{"INDIC REVIEW": "Good.", "LABEL": "Positive", "CATEGORY": "Food"}],
        items=[("1", None, "Food", ("Good.",), "Positive")],
        only="local",
    ),
    Case(
        task="massive_intent",
        language="de",
        rows=[
            {**SPOKEN, "partition": "dev", "scenario": "alarm", "intent": "alarm_query"},
            {**SPOKEN, "partition": "test", "scenario": "alarm", "intent": "alarm_set"},
        ],
        items=[("7", None, "alarm", ("weck mich um neun",), "alarm_set")],
        only="local",
    ),
    Case(
        task="massive_intent",
        language="de",
        rows=[{**SPOKEN, "scenario": 16, "intent": 48}, {**SPOKEN, "id": "8", "scenario": 5, "intent": 0}],
        items=[
            ("7", None, None, ("weck mich um neun",), "alarm_set"),
            ("8", None, None, ("weck mich um neun",), "datetime_query"),
        ],
        only="hub",
    ),
    Case(
        task="massive_slots",
        language="zh-Hant",
        rows=[{**SPOKEN, "partition": "test", "annot_utt": "[date : 今天] 放 [music_genre : new jazz]"}],
        items=[
            (
                "7",
                None,
                None,
                ("今", "天", "放", "new", "jazz"),
                "B-date I-date O B-music_genre I-music_genre",
            )
        ],
    ),
    Case(
        task="global_piqa",
        language="sr-Latn-torlak",
        rows=[{"prompt": "To dry it,", "solution0": "wet it.", "solution1": "hang it up.", "label": 1}],
        items=[("1", None, None, ("To dry it,", "wet it.", "hang it up."), "solution1")],
    ),
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


def read(session: Session, finder: DataFinder, task: str, language: str) -> list[Any]:
    entry = session.catalog.task(task)
    source = entry.spec.source(language, "test")
    assert source is not None
    found = finder.find(source, reference(session, task, language))
    context = ReadContext.of_test(entry.spec, language, found.label_map)
    return read_examples(session.registry.kinds.get(entry.spec.kind), finder.rows(found), context)


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
    ref = reference(session, case.task, case.language)
    path = tmp_path / ref.local[0].paths[0].replace("*", "00000-of-00001")
    write(path, case.rows)
    finder = DataFinder(DataOptions(mode="local", folders=(tmp_path,)), session.registry, tmp_path / "cache")
    examples = read(session, finder, case.task, case.language)
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
    hub = reference(session, case.task, case.language).hub
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
    finder = DataFinder(DataOptions(mode="hub"), session.registry, tmp_path / "cache")
    examples = read(session, finder, case.task, case.language)
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
    finder = DataFinder(DataOptions(mode="local", folders=(tmp_path,)), session.registry, tmp_path / "cache")
    [example] = read(session, finder, "indicqa", "hi")
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
    ref = reference(session, "mmlu_prox", "fr")
    write(tmp_path / ref.local[0].paths[0].replace("*", "0"), [row])
    finder = DataFinder(DataOptions(mode="local", folders=(tmp_path,)), session.registry, tmp_path / "cache")
    with pytest.raises(DataError, match=message):
        read(session, finder, "mmlu_prox", "fr")


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
    finder = DataFinder(DataOptions(mode="local", folders=(tmp_path,)), session.registry, tmp_path / "cache")
    [example] = read(session, finder, "afrisenti", "sw")
    assert (example.inputs["text"], example.label) == (expected, "positive")


@pytest.mark.parametrize(
    ("marked", "message"),
    [("wake [time : me", r"written '\[label : text\]'"), ("wake [time : ]", "the span 'time' has no text")],
)
def test_a_broken_bracket_is_named(session: Session, tmp_path: Path, marked: str, message: str) -> None:
    row = {**SPOKEN, "partition": "test", "annot_utt": marked}
    write(tmp_path / "1.1/data/de-DE.jsonl", [row])
    finder = DataFinder(DataOptions(mode="local", folders=(tmp_path,)), session.registry, tmp_path / "cache")
    with pytest.raises(DataError, match=message):
        read(session, finder, "massive_slots", "de")


@pytest.mark.thorough
class TestSample(SpecContract):
    """Small: the samples are for trying the commands."""

    sample_languages = 2
    sample_scripts = 1
    sample_items = 6

    @pytest.fixture(params=list(CONFIGS))
    def task(self, request: pytest.FixtureRequest) -> str:
        return str(request.param)
