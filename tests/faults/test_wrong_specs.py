"""Spec and data files that are wrong: every fault is shown, with its file and line, before anything is scored."""

from __future__ import annotations

import json
import sys
import tracemalloc
from pathlib import Path
from typing import Any

import pytest

from harness.checks.shared_rows import audit_own_rows
from harness.data.readers.squad import SQUAD
from harness.data.readers.tabular import JSON, JSONL
from harness.data.readers.tagged import TAGGED
from harness.data.sources import DataFinder
from harness.errors import DataError, SpecError
from harness.planning.run_config import data_options
from harness.running.session import open_session
from harness.specs.loading import read_yaml
from harness_xtreme_r.xquad_r import XQUAD_R_SENTENCES

from ..builders import released_data
from ..conftest import Cli
from .mood_spec import MOOD

JSON_LINES = """\
transfer: {source: en, stages: [mood], recipe: xtreme_r}
splits:
  train: {local: mood/train.jsonl, reader: jsonl}
  test: {local: "mood/{language}.jsonl", reader: jsonl}
languages: {en: {provenance: native}}
"""


def _problems(cli: Cli, *files: Path) -> list[list[str]]:
    """Return the faults of wrong files, as ``tasks validate`` lists them."""
    rows = files[0].with_name("rows.json")
    assert cli("tasks", "validate", *files, "--json", rows)[0] == 2
    return [row["problems"] for row in json.loads(rows.read_text(encoding="utf-8"))]


def _repeated(text: str, count: int) -> str:
    return f"a: &a {text}\nb: [{', '.join(['*a'] * count)}]\n"


@pytest.mark.parametrize(
    ("text", "line"),
    [
        # Each repetition was compared with the patterns of numbers: 70 seconds for 136 kB.
        (_repeated("1" * 60_000 + "x", 19_000), 2),
        (_repeated('"' + "lol" * 3_000 + '"', 300), 2),
        (
            "a: &a [" + "x, " * 9 + "]\n"
            "b: &b [" + "*a, " * 9 + "]\n"
            "c: &c {t: " + "y" * 9_000 + ", u: *b}\n"
            "d: [" + "*c, " * 300 + "]\n",
            4,
        ),
    ],
    ids=["digits", "quoted", "nested"],
)
def test_strings_behind_aliases_are_counted_and_not_written_out(text: str, line: int) -> None:
    with pytest.raises(SpecError) as caught:
        read_yaml(text, "laughs.yaml")
    [problem] = caught.value.problems
    assert problem.line == line


def test_each_node_is_visited_once() -> None:
    visited = 0

    def counted(frame: object, event: str, argument: object) -> None:
        nonlocal visited
        visited += event == "call"

    text = f"a: &a [{', '.join('x' * 90)}]\n" + "".join(f"k{number}: *a\n" for number in range(2_000))
    sys.setprofile(counted)
    try:
        assert len(read_yaml(text, "x").data) == 2_001
    finally:
        sys.setprofile(None)
    assert visited < 60_000


def test_a_text_that_is_used_twice_is_fine() -> None:
    text = _repeated('"' + "x" * 100_000 + '"', 18)
    assert len(read_yaml(text, "x").data["b"]) == 18


def test_a_small_spec_takes_little_memory(cli: Cli, tmp_path: Path) -> None:
    file = tmp_path / "mood.yaml"
    repeated = "\n".join([f'citation: &a "{"x" * 100_000}"', f"variants: [{', '.join(['*a'] * 6_700)}]", ""])
    file.write_text("task: mood\nkind: sequence_classification\n" + repeated, encoding="utf-8")
    assert file.stat().st_size < 130_000
    cli("tasks", "validate", file)
    tracemalloc.start()
    try:
        status, _, err = cli("tasks", "validate", file)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert status == 2
    assert "line 4" in err
    assert peak < 100_000_000


def test_a_wrong_value_is_shown_in_part(cli: Cli, tmp_path: Path) -> None:
    file = tmp_path / "mood.yaml"
    wrong = f"description: [{'x' * 1_500_000}]\n"
    file.write_text(MOOD.replace("description: Moods of short texts.\n", wrong), encoding="utf-8")
    status, _, err = cli("tasks", "validate", file)
    assert status == 2
    assert "description" in err
    assert len(err) < 5_000


def _paragraph(*answers: tuple[str, int]) -> dict[str, Any]:
    context = "Rain fell. Boats pass."
    asked = [
        {"id": f"q{number}", "question": "?", "answers": [{"text": text, "answer_start": start}]}
        for number, (text, start) in enumerate(answers, start=1)
    ]
    sentences = [context[:10], context[11:]]
    return {
        "context": context,
        "sentence_breaks": [[0, 10], [11, 22]],
        "sentences": sentences,
        "qas": asked,
    }


def test_removed_answers_of_lareqa_are_no_gold(tmp_path: Path) -> None:
    file = tmp_path / "en.json"
    document = {"data": [{"title": "t", "paragraphs": [_paragraph(("Boats", 11), ("", 0))]}]}
    text = json.dumps(document, indent=1)
    file.write_text(text, encoding="utf-8")
    line = next(number for number, row in enumerate(text.split("\n"), start=1) if '"q2"' in row)
    with pytest.raises(DataError, match=rf"en\.json:{line}:.*'q2'"):
        list(XQUAD_R_SENTENCES.read([file], {"language": "en"}))


OTHER_FORMATS = {
    "space": "The DT\ndog NN\n\nIt PRP\nbarks VBZ\n",
    "document start": "-DOCSTART- -X- O O\n\nThe DT\ndog NN\n",
    "commas": "The,DT\ndog,NN\n",
    "text": "The dog barks at the postman.\n\nIt sleeps.\n",
    "json": '{\n "tokens": ["a"],\n "tags": ["O"]\n}\n',
    "json lines": '{"tokens": ["a"], "tags": ["O"]}\n{"tokens": ["b"], "tags": ["O"]}\n',
}


@pytest.mark.parametrize("text", OTHER_FORMATS.values(), ids=OTHER_FORMATS)
def test_tags_in_another_format_are_not_missing_tags(tmp_path: Path, text: str) -> None:
    file = tmp_path / "en.tsv"
    file.write_text(text, encoding="utf-8")
    with pytest.raises(DataError, match=r"en\.tsv:\d+: "):
        list(TAGGED.read([file], {}))


def test_words_without_tags_are_still_read(tmp_path: Path) -> None:
    file = tmp_path / "vi.tsv"
    file.write_text("Vi\u1ec7t Nam\n\n10 000\n10,5\n.\n\nb\u1edfi v\u00ec\nhai ba\n", encoding="utf-8")
    rows = list(TAGGED.read([file], {}))
    assert [len(row.fields["tokens"]) for row in rows] == [1, 3, 2]
    assert all(row.fields["tags"] is None for row in rows)


def test_answers_under_another_key_are_not_missing_answers(tmp_path: Path) -> None:
    file = tmp_path / "en.json"
    question = {"id": "q1", "question": "?", "answer": [{"text": "Rain", "answer_start": 0}]}
    paragraphs = [{"context": "Rain fell.", "qas": [question]}]
    file.write_text(
        json.dumps({"data": [{"title": "t", "paragraphs": paragraphs}]}, indent=1), encoding="utf-8"
    )
    with pytest.raises(DataError, match=r"en\.json:\d+: .*'q1'.*'answer'"):
        list(SQUAD.read([file], {}))


def test_labels_under_another_name_are_not_missing_labels(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "mood.yaml").write_text(MOOD + JSON_LINES, encoding="utf-8")
    file = tmp_path / "data" / "mood" / "en.jsonl"
    file.parent.mkdir(parents=True)
    rows = [{"id": str(number), "text": f"text {number}", "gold": "good"} for number in range(4)]
    text = "".join(json.dumps(row) + "\n" for row in rows)
    file.write_text(text, encoding="utf-8")
    (file.parent / "train.jsonl").write_text(text.replace("gold", "label"), encoding="utf-8")
    given = ("eval", "--tasks", "mood", "--tasks-from", tmp_path / "mood.yaml", "--data", tmp_path / "data")
    status, out, err = cli(*given, "--model", "baseline:majority", "--output", tmp_path / "run")
    assert status == 1
    assert "en.jsonl:1" in out + err


@pytest.mark.parametrize(
    ("reader", "text", "line"),
    [
        (JSONL, '{"id": 1}\n{"id": ' + "1" * 5_000 + "}\n", 2),
        (JSON, '[{"id": "' + "1" * 5_000 + '"},\n{"id": 1},\n{"id": ' + "1" * 5_000 + "}]\n", 3),
    ],
    ids=["jsonl", "json"],
)
def test_a_huge_integer_has_a_file_and_a_line(tmp_path: Path, reader: Any, text: str, line: int) -> None:
    file = tmp_path / "items.json"
    file.write_text(text, encoding="utf-8")
    with pytest.raises(DataError, match=rf"items\.json:{line}: "):
        list(reader.read([file], {}))


def test_documents_of_a_folder_may_name_each_other(cli: Cli, tmp_path: Path) -> None:
    specs = tmp_path / "specs"
    specs.mkdir()
    (specs / "mood.yaml").write_text(MOOD + JSON_LINES, encoding="utf-8")
    suite = "suite: moods\ndescription: d\ncitation: c\nprotocol: frozen\ntasks: [mood]\n"
    (specs / "a_suite.yaml").write_text(suite, encoding="utf-8")
    status, out, err = cli("tasks", "validate", specs)
    assert status == 0, err
    assert "suite moods" in out
    assert "task mood" in out


def test_two_documents_with_one_name_are_a_fault(cli: Cli, tmp_path: Path) -> None:
    files = [tmp_path / name for name in ("a.yaml", "b.yaml")]
    for file in files:
        file.write_text(MOOD + JSON_LINES, encoding="utf-8")
    assert [len(problems) for problems in _problems(cli, *files)] == [0, 1]


WRONG = """\
task: wrong
kind: KIND
version: one
description: d
citation: c
inputs: [text]
labels: [good, bad]
metrics: [acuracy]
transfer: {source: en, stages: [nosuchset]}
splits: {test: {local: "x-{lang}.tsv", columns: [text, label], reader: tsvv, label_map: {"+": god}, odd: 1}}
languages: {en: {}, xq: {}}
"""
FAULTY = {
    "kind",
    "version",
    "metrics.0",
    "transfer.stages.0",
    "splits.test.odd",
    "splits.test.local",
    "splits.test.reader",
    "languages.xq",
}


@pytest.mark.parametrize(
    ("kind", "further"),
    [
        ("sequence_clasification", {"splits.test.label_map.+"}),
        ("nonsense", set()),  # the labels of an unknown kind are unknown
    ],
)
def test_all_faults_of_a_file_are_shown_at_once(
    cli: Cli, tmp_path: Path, kind: str, further: set[str]
) -> None:
    file = tmp_path / "wrong.yaml"
    file.write_text(WRONG.replace("KIND", kind), encoding="utf-8")
    [problems] = _problems(cli, file)
    for key in FAULTY | further:
        assert any(f": {key}: " in problem for problem in problems), key
    assert len(problems) == len(FAULTY | further)


def test_a_replaced_key_makes_no_fault_of_its_own(cli: Cli, tmp_path: Path) -> None:
    file = tmp_path / "mood.yaml"
    spec = MOOD.replace("labels: [good, bad]\n", "labels: good\n") + JSON_LINES
    mapped = spec.replace("reader: jsonl}\nlang", 'reader: jsonl, label_map: {"+": good}}\nlang')
    file.write_text(mapped, encoding="utf-8")
    [[problem]] = _problems(cli, file)
    assert ": labels: " in problem


def _shared(tmp_path: Path, source: str) -> tuple[Any, ...]:
    """Write a task of three languages and its data, and return the arguments that name them."""
    spec = MOOD + (
        "transfer: {source: en, stages: [mood], recipe: xtreme_r}\n"
        "splits:\n"
        "  train: {local: mood/train.jsonl, reader: jsonl}\n"
        f"  test: {source}\n"
        "languages:\n"
        "  en: {provenance: native}\n"
        "  de: {provenance: native}\n"
        "  sw: {provenance: native, test: {local: mood/sw.jsonl, reader: jsonl}}\n"
    )
    (tmp_path / "mood.yaml").write_text(spec, encoding="utf-8")
    folder = tmp_path / "data" / "mood"
    folder.mkdir(parents=True)
    labels = ["good", "bad"]
    rows = [{"id": str(n), "text": f"text {n}", "label": labels[n % 2], "lang": "en"} for n in range(8)]
    for name in ("train", "all", "sw", "en", "de"):
        text = "".join(json.dumps(row) + "\n" for row in rows).replace("text ", f"{name} ")
        (folder / f"{name}.jsonl").write_text(text, "utf-8")
    return ("--tasks-from", tmp_path / "mood.yaml", "--data", tmp_path / "data")


ONE_FILE = "{local: mood/all.jsonl, reader: jsonl}"


def test_one_file_for_several_languages_is_a_fault_of_the_spec(cli: Cli, tmp_path: Path) -> None:
    given = _shared(tmp_path, ONE_FILE)
    rows = tmp_path / "rows.json"
    status, _, _ = cli("tasks", "validate", "mood", *given, "--json", rows)
    assert status == 1
    [row] = json.loads(rows.read_text(encoding="utf-8"))
    [found] = [item for item in row["proof"]["findings"] if item["check"] == "shared_rows"]
    assert found["languages"] == ["en", "de"]
    assert "all.jsonl" in found["found"]
    planned = ("--tasks", "mood", *given, "--model", "baseline:majority")
    for command in (("plan", *planned), ("eval", *planned, "--output", tmp_path / "run")):
        status, _, err = cli(*command)
        assert status == 2
        assert "en, de" in err
        assert "all.jsonl" in err
        assert "line 16: languages.de" in err


@pytest.mark.parametrize(
    ("source", "languages"),
    [
        ('{local: "mood/{language}.jsonl", reader: jsonl}', "en+de+sw"),
        (ONE_FILE, "en+sw"),
        # One reader selects the rows, here by their ids.
        ('{local: mood/all.parquet, reader: squad_records, options: {id_prefix: "{language}"}}', "en+de"),
    ],
    ids=["files", "one language", "option"],
)
def test_languages_with_rows_of_their_own_are_planned(
    cli: Cli, tmp_path: Path, source: str, languages: str
) -> None:
    given = _shared(tmp_path, source)
    (tmp_path / "data" / "mood" / "all.parquet").write_bytes(b"")
    status, _, err = cli("plan", "--tasks", f"mood:{languages}", *given, "--model", "baseline:majority")
    assert status == 0, err


@pytest.mark.parametrize("where", ["sample", "released"])
def test_no_shipped_task_has_one_file_for_several_languages(where: str) -> None:
    session = open_session()
    options = data_options(["sample" if where == "sample" else released_data()])
    finder = DataFinder(options, session.registry, Path("unused"))
    found = 0
    for name in session.catalog.names("task"):
        audit = audit_own_rows(session.catalog.task(name), finder)
        assert not audit.findings
        found += 1
    assert found > 10
