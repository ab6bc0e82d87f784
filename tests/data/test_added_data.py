"""Data of languages that a plugin or user adds, or that are absent."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from harness.data.resolve import DataOptions
from harness.data.sources import DataFinder, data_ref, find_split
from harness.errors import DataError, MissingDataError
from harness.kinds.kind import ReadContext, read_examples
from harness.planning.run_config import data_options
from harness.running.session import open_session
from harness.specs.schema import LocalSource, Source
from harness.specs.selection import select

SESSION = open_session()


def find(root: Path, language: str) -> None:
    source = Source(
        local=(LocalSource(path=("all.jsonl",)),), reader="jsonl", options={"where": "lang={language}"}
    )
    ref = data_ref(
        source, owner="mine", language=SESSION.registry.languages.get(language), split="test", folder=None
    )
    DataFinder(DataOptions(mode="local", folders=(root,)), SESSION.registry, root / "cache").find(source, ref)


def test_a_language_without_a_record(tmp_path: Path) -> None:
    (tmp_path / "all.jsonl").write_text(json.dumps({"lang": "sw", "text": "x"}) + "\n", encoding="utf-8")
    find(tmp_path, "sw")
    with pytest.raises(MissingDataError, match=r"all\.jsonl .* no record with where: lang=pt"):
        find(tmp_path, "pt")


def find_columns(root: Path, language: str, **columns: str) -> None:
    source = Source(local=(LocalSource(path=("all.csv",)),), reader="csv", columns=columns)
    ref = data_ref(
        source, owner="mine", language=SESSION.registry.languages.get(language), split="test", folder=None
    )
    DataFinder(DataOptions(mode="local", folders=(root,)), SESSION.registry, root / "cache").find(source, ref)


def test_a_language_without_a_column(tmp_path: Path) -> None:
    """A column of another name than the spec's is a fault of the file, which the cell reports."""
    (tmp_path / "all.csv").write_text("sw,text\nx,y\n", encoding="utf-8")
    find_columns(tmp_path, "sw", text="{language}")
    find_columns(tmp_path, "pt", text="words")
    find_columns(tmp_path, "sw", text="{language}", context="words")
    with pytest.raises(MissingDataError, match=r"all\.csv .* has no column 'pt'"):
        find_columns(tmp_path, "pt", text="{language}")


def test_a_broken_file_is_left_to_the_cell(tmp_path: Path) -> None:
    (tmp_path / "all.jsonl").write_text("{", encoding="utf-8")
    find(tmp_path, "pt")


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
    entry = SESSION.catalog.task("mkqa")
    finder = DataFinder(DataOptions(mode="local", folders=(tmp_path,)), SESSION.registry, tmp_path / "cache")
    found = {}
    for language in ("en", "zh"):
        source = entry.spec.source(language, "test")
        assert source is not None
        ref = data_ref(
            source, owner="mkqa", language=entry.languages.get(language), split="test", folder=None
        )
        split = finder.find(source, ref)
        context = ReadContext.of_test(entry.spec, language, split.label_map)
        [item] = read_examples(SESSION.registry.kinds.get(entry.spec.kind), finder.rows(split), context)
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


def _rows(root: Path, task: str, code: str) -> list[dict[str, object]]:
    entry = SESSION.catalog.task(task)
    source = entry.spec.source(code, "test")
    assert source is not None
    finder = DataFinder(data_options([str(root)]), SESSION.registry, Path("unused"))
    found = find_split(finder, source, task, entry.languages.get(code), "test", None)
    return [dict(row.fields) for row in finder.rows(found)]


@pytest.mark.parametrize(("code", "size"), [("bem", 308), ("ha", 300), ("rw", 345), ("yo", 253)])
def test_questions_of_afriqa_have_a_passage_and_an_answer(data_root: Path, code: str, size: int) -> None:
    rows = _rows(data_root, "afriqa", code)
    assert len(rows) == size
    for row in rows:
        [answer] = row["answers"] if isinstance(row["answers"], list) else []
        place = answer["start"]
        assert row["context"]
        assert answer["text"]
        # -1 where the passage writes it in another way
        assert place == -1 or str(row["context"])[place:].startswith(answer["text"])


def test_kornli_is_xnli_row_by_row(data_root: Path) -> None:
    english, korean = (_rows(data_root, "xnli", code) for code in ("en", "ko"))
    assert len(korean) == 5010
    assert [row["label"] for row in korean] == [row["label"] for row in english]
    assert SESSION.catalog.task("xnli").spec.pairs("ko")


@pytest.mark.parametrize(("code", "size"), [("ay", 750), ("nah", 738), ("quy", 750)])
def test_americasnli_has_its_items_and_is_not_paired(data_root: Path, code: str, size: int) -> None:
    assert len(_rows(data_root, "xnli", code)) == size
    assert not SESSION.catalog.task("xnli").spec.pairs(code)


def test_basque_is_not_paired_and_burmese_is() -> None:
    spec = SESSION.catalog.task("xnli").spec
    assert not spec.pairs("eu"), "its order was not compared with XNLI's"
    assert spec.pairs("my")
    assert (spec.provenance_of("eu"), spec.provenance_of("my")) == ("post-edited", "human-translated")


def test_only_the_english_schemas_of_xwinograd_are_native() -> None:
    spec = SESSION.catalog.task("xwinograd").spec
    native = [code for code in spec.languages if spec.provenance_of(code) == "native"]
    assert native == ["en"], "the table gives the English schema of the Japanese and Chinese ones"


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
