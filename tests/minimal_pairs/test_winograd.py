"""XWinograd: the place of a pronoun in its sentence, and the Hub's copy."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from harness import DataError
from harness_minimal_pairs.readers import XWINOGRAD


def _line(sentence: str, tokens: list[str], start: int, right: str = "Tom", language: str = "en") -> str:
    places = [tokens[start], [start, start + 1], [tokens[start]]]
    options = [[name, [0, 1], [name], name == right] for name in ("Tom", "Ralph")]
    return "\t".join(
        [language, "ours", "?", sentence, *(json.dumps(part) for part in (tokens, places, options))]
    )


def _rows(path: Path, language: str = "en") -> list[dict[str, object]]:
    return [dict(row.fields) for row in XWINOGRAD.rows([path], {"language": language})]


def test_the_pronoun_is_the_one_with_the_number(tmp_path: Path) -> None:
    sentence = 'Tom said "he" to Ralph before he left.'
    tokens = ["Tom", "said", "``", "he", "''", "to", "Ralph", "before", "he", "left", "."]
    path = tmp_path / "dataset.tsv"
    lines = [
        _line(sentence, tokens, 8),
        _line("x", ["x"], 0, language="fr"),
        _line(sentence, tokens, 3, "Ralph"),
    ]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    first, second = _rows(path)
    assert (first["before"], first["after"]) == ('Tom said "he" to Ralph before ', " left.")
    assert (second["before"], second["after"]) == ('Tom said "', '" to Ralph before he left.')
    assert [(row["id"], row["right"], row["wrong"]) for row in (first, second)] == [
        ("1", "Tom", "Ralph"),
        ("2", "Ralph", "Tom"),
    ]


@pytest.mark.parametrize("tokens", [["Sam", "he"], ["he", "Tom"]])
def test_tokens_that_are_not_in_the_sentence_are_reported(tmp_path: Path, tokens: list[str]) -> None:
    path = tmp_path / "dataset.tsv"
    path.write_text(_line("Tom left, since he was late.", tokens, 1) + "\n", encoding="utf-8")
    with pytest.raises(DataError, match=r"dataset\.tsv:1: expected the token"):
        _rows(path)


def test_the_hubs_copy_has_a_gap(tmp_path: Path) -> None:
    path = tmp_path / "test.parquet"
    table = {"sentence": ["Ann met Eve, and _ smiled."] * 2, "option1": ["Ann"] * 2, "option2": ["Eve"] * 2}
    pq.write_table(pa.table({**table, "answer": ["2", "1"]}), path)
    found = [(row["before"], row["right"], row["wrong"], row["after"]) for row in _rows(path)]
    assert found == [
        ("Ann met Eve, and ", "Eve", "Ann", " smiled."),
        ("Ann met Eve, and ", "Ann", "Eve", " smiled."),
    ]


@pytest.mark.parametrize(("language", "count"), [("en", 2325), ("fr", 83), ("jp", 959)])
def test_all_published_sentences_are_read(data_root: Path, language: str, count: int) -> None:
    rows = _rows(data_root / "xwinograd/dataset.tsv", language)
    assert len(rows) == count
    assert all(str(row["after"]).strip() for row in rows), "what is compared is never empty"
