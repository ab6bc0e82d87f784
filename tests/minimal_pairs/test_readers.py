"""Files of minimal pairs and of BMLAMA, and the layouts that the specs name for the Hub, become items."""

from __future__ import annotations

import os
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyarrow import parquet

from harness.data.sources import DataFinder, data_ref
from harness.errors import DataError
from harness.kinds.kind import ReadContext, read_examples
from harness.planning.run_config import data_options
from harness.running.session import open_session
from harness_minimal_pairs.readers import READERS

READ = {reader.name: reader for reader in READERS}
DATA = os.environ.get("HARNESS_TEST_DATA")


def fields(reader: str, path: Path, **options: str) -> list[dict[str, Any]]:
    return [dict(row.fields) for row in READ[reader].rows([path], options)]


def test_identical_sentences_are_skipped_and_keep_their_number(tmp_path: Path) -> None:
    path = tmp_path / "augmented_binding.csv"
    path.write_text(
        'good_sentence;bad_sentence;phenomenon\n"A; a.";B.;x\nSame.;Same. ;x\nC.;D.;x\n', encoding="utf-8"
    )
    how = {"delimiter": ";", "right": "good_sentence", "wrong": "bad_sentence", "group": "file"}
    found = fields("sentence_pairs", path, **how, prefix="augmented_")
    assert [(row["id"], row["group"], row["right"], row["wrong"]) for row in found] == [
        ("binding:1", "binding", "A; a.", "B."),
        ("binding:3", "binding", "C.", "D."),
    ]
    kept = fields("sentence_pairs", path, **how, equal="keep")
    assert [row["id"] for row in kept] == [f"augmented_binding:{number}" for number in (1, 2, 3)]


def test_judged_lines_are_pairs(tmp_path: Path) -> None:
    path = tmp_path / "simple_agrmt.txt"
    path.write_text("True\tthe cat sleeps\nFalse\tthe cat sleep\n", encoding="utf-8")
    [row] = fields("sentence_pairs", path, format="judged", group="file")
    assert (row["id"], row["right"], row["wrong"]) == ("simple_agrmt:1", "the cat sleeps", "the cat sleep")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("False\ta\nTrue\tb\n", r"f\.txt:1: expected 'True', a tab and a sentence, found 'False\\ta'"),
        ("True\ta\nTrue\tb\n", r"f\.txt:2: expected 'False'"),
        ("True\ta\n", r"f\.txt:1: expected the wrong sentence after it, found the end of the file"),
        ("True a\nFalse\tb\n", r"f\.txt:1: expected 'True', a tab"),
    ],
)
def test_lines_that_are_no_pairs_are_rejected(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "f.txt"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(DataError, match=message):
        fields("sentence_pairs", path, format="judged")


def test_a_missing_column_is_named(tmp_path: Path) -> None:
    path = tmp_path / "f.jsonl"
    path.write_text('{"sentence_good": "A."}\n', encoding="utf-8")
    with pytest.raises(
        DataError, match="expected the wrong sentence in the column 'sentence_bad', found 'sentence_good'"
    ):
        fields("sentence_pairs", path, format="jsonl", right="sentence_good", wrong="sentence_bad")


HEAD = "Prompt\tAns\tCandidate Ans\tSubject\n"


def test_a_cloze_question_has_a_gap_and_candidates(tmp_path: Path) -> None:
    path = tmp_path / "zh.tsv"
    rows = ["A is <mask>.\tc\ta, b, c\tA", '<mask> is B.\t"d ""e"""\t"f, d ""e"""\tB']
    text = "\n".join(["Prompt\tAns\tCandidate\tAns\tSubject", *rows, ""])
    path.write_text(text, encoding="utf-8")
    first, second = fields("bmlama", path)
    assert first == {"id": "1", "before": "A is ", "after": ".", "right": "c", "wrong": ["a", "b"]}
    assert (second["id"], second["before"], second["right"], second["wrong"]) == ("2", "", 'd "e"', ["f"])


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ("A is B.\tc\ta, c\tA\n", "expected '<mask>' once in the prompt"),
        ("<mask> <mask>\tc\ta, c\tA\n", "expected '<mask>' once in the prompt"),
        ("A <mask>\td\ta, c\tA\n", "expected the answer once among the candidates, found 'd' and 'a, c'"),
        ("A <mask>\ta\ta, a\tA\n", "expected the answer once among the candidates"),
        ("A <mask>\ta\tA\n", "expected prompt, answer, candidates and subject, found 3 cells"),
    ],
)
def test_broken_cloze_questions_are_rejected(tmp_path: Path, row: str, message: str) -> None:
    path = tmp_path / "en.tsv"
    path.write_text(HEAD + row, encoding="utf-8")
    with pytest.raises(DataError, match=message):
        fields("bmlama", path)


def test_a_file_without_the_header_is_rejected(tmp_path: Path) -> None:
    path = tmp_path / "en.tsv"
    path.write_text("A <mask>\ta\ta, b\tA\n", encoding="utf-8")
    with pytest.raises(DataError, match="expected a header that begins with 'Prompt'"):
        fields("bmlama", path)


BLIMP = {"field": "syntax", "linguistics_term": "binding", "UID": "principle_A_c_command", "pair_id": 3}
HUB: dict[str, tuple[str, dict[str, Any], tuple[str, str, str | None]]] = {
    "blimp": ("en", {"sentence_good": "A.", "sentence_bad": "B.", **BLIMP}, ("A.", "B.", "binding")),
    "turblimp": (
        "tr",
        {"sentence_good": "A.", "sentence_bad": "B.", "config": "binding"},
        ("A.", "B.", "binding"),
    ),
    "rublimp": (
        "ru",
        {"source_sentence": "A.", "target_sentence": "B.", "phenomenon": "Tense", "PID": "tense_marker"},
        ("A.", "B.", "Tense"),
    ),
    "multiblimp": ("de", {"sen": "A.", "wrong_sen": "B."}, ("A.", "B.", None)),
}


@pytest.mark.parametrize("task", HUB)
def test_rows_of_the_hub_become_items(task: str, tmp_path: Path) -> None:
    session = open_session()
    entry = session.catalog.task(task)
    code, row, expected = HUB[task]
    source = entry.spec.source(code, "test")
    assert source is not None
    ref = data_ref(
        source, owner=task, language=entry.languages.get(code), split="test", folder=entry.folders.get(code)
    )
    assert ref.hub is not None
    assert ref.hub.revision is None
    path = tmp_path / "split.parquet"
    parquet.write_table(pa.Table.from_pylist([row]), path)
    rows = session.registry.readers.get(str(ref.hub.reader)).rows([path], ref.hub.options)
    context = ReadContext(owner=task, language=code, split="test")
    [item] = read_examples(session.registry.kinds.get("form_preference"), rows, context)
    assert (item.right, item.wrong, item.group) == (expected[0], (expected[1],), expected[2])


def test_the_hub_has_a_config_per_language() -> None:
    entry = open_session().catalog.task("multiblimp")
    source = entry.spec.source("sq", "test")
    assert source is not None
    assert len(entry.spec.languages) == 101
    configs = {
        data_ref(
            source, owner="multiblimp", language=entry.languages.get(code), split="test", folder=None
        ).hub.config  # type: ignore[union-attr]
        for code in ("sq", "de", "sh", "ku")
    }
    assert configs == {"sqi", "deu", "hbs", "kmr"}


@pytest.mark.skipif(DATA is None, reason="needs HARNESS_TEST_DATA")
@pytest.mark.parametrize(
    ("task", "language", "size", "groups"),
    [
        (
            "turblimp",
            "tr",
            3990,
            {"anaphor_agreement": 990, "binding": 1000, "npi_licensing": 1000, "passives": 1000},
        ),
        ("bmlama", "he", 6792, {None: 6792}),
        ("bmlama", "zh", 6792, {None: 6792}),
        (
            "clams",
            "en",
            23780,
            {
                "long_vp_coord": 400,
                "obj_rel_within_anim": 11200,
                "simple_agrmt": 140,
                "subj_rel": 11200,
                "vp_coord": 840,
            },
        ),
    ],
)
def test_published_files(task: str, language: str, size: int, groups: dict[str | None, int]) -> None:
    session = open_session()
    entry = session.catalog.task(task)
    finder = DataFinder(data_options([str(DATA)]), session.registry, Path("unused"))
    source = entry.spec.source(language, "test")
    assert source is not None
    ref = data_ref(
        source,
        owner=task,
        language=entry.languages.get(language),
        split="test",
        folder=entry.folders.get(language),
    )
    rows = finder.rows(finder.find(source, ref))
    context = ReadContext(owner=task, language=language, split="test")
    items = read_examples(session.registry.kinds.get("form_preference"), rows, context)
    assert len(items) == size
    assert Counter(item.group for item in items) == groups
    assert not any(item.right in item.wrong for item in items)
