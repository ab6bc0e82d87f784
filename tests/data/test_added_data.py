"""AfriQA and the data sets in XNLI's format: what the published files hold, and when their languages run."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.data.sources import DataFinder, find_split
from harness.planning.run_config import data_options
from harness.running.session import open_session
from harness.specs.selection import select

SESSION = open_session()


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
