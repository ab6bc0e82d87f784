"""Data of languages that a plugin or user adds, or that are absent."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from harness.data.resolve import DataOptions
from harness.data.sources import DataFinder, data_ref
from harness.errors import DataError, MissingDataError
from harness.running.session import open_session
from harness.specs.schema import Source
from harness.specs.selection import select
from tests.builders import read_items

SESSION = open_session()


def find(root: Path, language: str, source: Source) -> None:
    language_row = SESSION.registry.languages.get(language)
    ref = data_ref(source, owner="mine", language=language_row, split="test", folder=None)
    DataFinder(DataOptions(mode="local", folders=(root,)), SESSION.registry, root / "cache").find(source, ref)


FILTERED = Source(local="all.jsonl", reader="jsonl", options={"where": "lang={language}"})


def test_a_language_without_a_record(tmp_path: Path) -> None:
    (tmp_path / "all.jsonl").write_text(json.dumps({"lang": "sw", "text": "x"}) + "\n", encoding="utf-8")
    find(tmp_path, "sw", FILTERED)
    with pytest.raises(MissingDataError, match=r"all\.jsonl .* no record with where: lang=pt"):
        find(tmp_path, "pt", FILTERED)
    (tmp_path / "all.jsonl").write_text("{", encoding="utf-8")
    find(tmp_path, "pt", FILTERED)  # a broken file is reported by the cell


def test_a_language_without_a_column(tmp_path: Path) -> None:
    """A column of another name than the spec's is a fault of the file, which the cell reports."""
    (tmp_path / "all.csv").write_text("sw,text\nx,y\n", encoding="utf-8")

    def table(**columns: str) -> Source:
        return Source(local="all.csv", reader="csv", columns=columns)

    find(tmp_path, "sw", table(text="{language}"))
    find(tmp_path, "pt", table(text="words"))
    find(tmp_path, "sw", table(text="{language}", context="words"))
    with pytest.raises(MissingDataError, match=r"all\.csv .* has no column 'pt'"):
        find(tmp_path, "pt", table(text="{language}"))


MKQA = {
    "example_id": -7,
    "queries": {"en": "who", "zh_cn": "谁"},
    "query": "who",
    "answers": {
        "en": [{"type": "entity", "entity": "Q1", "text": "Ann Lee", "aliases": ["Ann", "A. Lee"]}],
        "zh_cn": [{"type": "entity", "entity": "Q1", "text": "安"}],
    },
}


def test_mkqa_is_read_as_published(tmp_path: Path) -> None:
    """Aliases are answers; questions that need a long answer or have none are left out."""
    none = {name: [{"type": "unanswerable", "text": None}] for name in ("en", "zh_cn")}
    (tmp_path / "mkqa").mkdir()
    lines = [MKQA, {**MKQA, "example_id": 8, "answers": none}]
    text = "".join(json.dumps(line) + "\n" for line in lines)
    (tmp_path / "mkqa" / "mkqa.jsonl").write_text(text, encoding="utf-8")
    found = {}
    for language in ("en", "zh"):
        [item] = read_items(SESSION, "mkqa", language, tmp_path)
        found[language] = (item.id, item.question, [answer.text for answer in item.answers], item.group)
    assert found == {
        "en": ("-7", "who", ["Ann Lee", "Ann", "A. Lee"], "entity"),
        "zh": ("-7", "谁", ["安"], "entity"),
    }


def test_sentences_are_joined_by_id_in_json_lines(tmp_path: Path) -> None:
    from harness.data.readers.bitext import BITEXT

    for name, texts in (("a", ["one", "two"]), ("b", ["zwei", "eins"])):
        rows = zip((1, 2) if name == "a" else (2, 1), texts, strict=True)
        text = "".join(json.dumps({"id": key, "text": value}) + "\n" for key, value in rows)
        (tmp_path / f"{name}.jsonl").write_text(text, encoding="utf-8")
    paths = [tmp_path / "a.jsonl", tmp_path / "b.jsonl"]
    found = [row.fields for row in BITEXT.read(paths, {"key": "id", "text": "text"})]
    assert [(row["query"], row["target"]) for row in found] == [("one", "eins"), ("two", "zwei")]
    (tmp_path / "b.jsonl").write_text('{"id": 1, "text": "eins"}\n', encoding="utf-8")
    with pytest.raises(DataError, match="is not in"):
        list(BITEXT.read(paths, {"key": "id", "text": "text"}))


@pytest.mark.parametrize("code", ["bem", "ha", "rw", "yo"])
def test_questions_of_afriqa_have_a_passage_and_an_answer(data_root: Path, code: str) -> None:
    for item in read_items(SESSION, "afriqa", code, data_root):
        [answer] = item.answers
        assert item.context
        assert answer.text
        # -1 where the passage writes it in another way
        assert answer.start == -1 or item.context[answer.start :].startswith(answer.text)


@pytest.mark.parametrize(
    ("code", "size", "paired"),
    [("ko", 5010, True), ("ay", 750, False), ("nah", 738, False), ("quy", 750, False)],
)
def test_languages_that_others_added_to_xnli(data_root: Path, code: str, size: int, paired: bool) -> None:
    items = read_items(SESSION, "xnli", code, data_root)
    assert len(items) == size
    assert SESSION.catalog.task("xnli").spec.pairs(code) == paired
    if paired:
        assert [item.label for item in items] == [
            item.label for item in read_items(SESSION, "xnli", "en", data_root)
        ]


def test_languages_of_other_data_sets_run_where_they_are_named() -> None:
    def languages(*patterns: str, only: list[str] | None = None) -> set[str]:
        return {code for task in select(SESSION.catalog, patterns, only) for code in task.languages}

    assert len(languages("xnli")) == 15
    [xnli] = [task for task in select(SESSION.catalog, ["xtreme_r"]) if task.entry.spec.task == "xnli"]
    assert len(xnli.languages) == 15
    assert languages("xnli:quy+en") == {"quy", "en"}
    assert languages("xnli", only=["ko", "de"]) == {"ko", "de"}
    assert languages("@hch") == {"hch"}


def test_a_suite_that_names_them_counts_them() -> None:
    [xnli] = [task for task in select(SESSION.catalog, ["americas"]) if task.entry.spec.task == "xnli"]
    assert "quy" in xnli.languages
    assert set(xnli.published) == set(xnli.languages)
