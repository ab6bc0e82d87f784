"""Questions with spans, and where tokens are in a text."""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, strategies as st
from pyarrow import parquet

from harness.data.alignment import detokenise, locate
from harness.errors import DataError
from harness.languages.character import is_blank, is_extender, is_unspaced, splits_combination
from tests.data.conftest import Read, Write

_CONTEXT = "नदी लंबी है। नदी 🙂 गहरी है।"


def _question(identifier: str, *answers: tuple[str, int]) -> dict[str, Any]:
    found = [{"text": text, "answer_start": start} for text, start in answers]
    return {"id": identifier, "question": "कैसी?", "answers": found}


def _document(*questions: dict[str, Any], context: str = _CONTEXT) -> str:
    article = {"title": "नदी", "paragraphs": [{"context": context, "qas": list(questions)}]}
    return json.dumps({"version": "1.1", "data": [article]})


def test_questions_come_with_context_and_answers(read: Read, write: Write) -> None:
    path = write("a.json", _document(_question("q1", ("गहरी", 19), ("लंबी", 4)), _question("q2", ("है", 9))))
    rows = read("squad", path)
    assert rows[0].fields == {
        "id": "q1",
        "title": "नदी",
        "paragraph": "0-0",
        "context": _CONTEXT,
        "question": "कैसी?",
        "answers": [{"text": "गहरी", "start": 19}, {"text": "लंबी", "start": 4}],
    }
    assert [row.line for row in rows] == [1, 2]
    assert all(
        _CONTEXT[answer["start"] :].startswith(answer["text"])
        for row in rows
        for answer in row.fields["answers"]
    )


def test_articles_are_numbered_over_all_files(read: Read, write: Write) -> None:
    first, second = write("a.json", _document(_question("1"))), write("b.json", _document(_question("2")))
    assert [row.fields["paragraph"] for row in read("squad", [first, second])] == ["0-0", "1-0"]


def test_a_question_may_have_no_answers(read: Read, write: Write) -> None:
    bare = {"id": "q1", "question": "?"}
    # What XTREME's script leaves of a test set.
    removed = _question("q2", ("", 0))
    rows = read("squad", write("a.json", _document(bare, removed)))
    assert [row.fields["answers"] for row in rows] == [[], []]


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (("नदी", 1), ": question 'q1': expected the answer 'नदी' at offset 1"),
        (("नदी", -5), ": question 'q1': expected the answer 'नदी' at offset -5"),
        (("झील", 0), ": question 'q1': expected the answer 'झील' in the context"),
        (("", 3), ": question 'q1': expected the answer '' in the context"),
    ],
)
def test_an_answer_that_is_not_at_its_offset_is_reported(
    read: Read, write: Write, answer: tuple[str, int], message: str
) -> None:
    path = write("a.json", _document(_question("q1", answer)))
    with pytest.raises(DataError) as caught:
        read("squad", path)
    assert message in str(caught.value)
    if "nowhere" in message or "in the context" in message:
        with pytest.raises(DataError, match="in the context, found it nowhere"):
            read("squad", path, check_offsets="nearest")
    kept = read("squad", path, check_offsets="false")[0].fields["answers"]
    assert kept == [{"text": answer[0], "start": answer[1]}]


@pytest.mark.parametrize(("start", "found"), [(0, 0), (1, 0), (6, 0), (7, 13), (12, 13), (99, 13)])
def test_nearest_moves_an_answer_to_its_nearest_occurrence(
    read: Read, write: Write, start: int, found: int
) -> None:
    path = write("a.json", _document(_question("q1", ("नदी", start))))
    assert read("squad", path, check_offsets="nearest")[0].fields["answers"][0]["start"] == found


@pytest.mark.parametrize(
    ("document", "message"),
    [
        ("[]", ": expected an object with 'data'"),
        ('{"dta": []}', ": expected 'data'"),
        ('{"data": [{}]}', ": article 1: expected 'paragraphs'"),
        (
            '{"data": [{"paragraphs": [{"context": 3, "qas": []}]}]}',
            ": article 1, paragraph 1: expected 'context' to be of type str",
        ),
        (
            '{"data": [{"paragraphs": [{"context": "a", "qas": [{"id": "q"}]}]}]}',
            ": article 1, paragraph 1, question 'q': expected 'question'",
        ),
        (
            '{"data": [{"paragraphs": [{"context": "a", "qas": [{"id": "q", "question": "?", '
            '"answers": [{"text": "a", "answer_start": "0"}]}]}]}]}',
            ": article 1, paragraph 1, question 'q': expected 'answer_start' to be of type int",
        ),
        ('{"data": [}', ":1: expected JSON"),
    ],
)
def test_a_fault_of_the_layout_is_reported_with_its_place(
    read: Read, write: Write, document: str, message: str
) -> None:
    path = write("a.json", document)
    with pytest.raises(DataError) as caught:
        read("squad", path)
    assert message in str(caught.value)


def _columns(path: Path, *answers: dict[str, Any]) -> Path:
    records = [
        {"id": f"q{number}", "context": context, "question": "?", "answers": answer}
        for number, (context, answer) in enumerate(zip("aba", answers, strict=True))
    ]
    parquet.write_table(pa.Table.from_pylist(records), path)
    return path


def test_the_columns_of_the_hub_give_the_same_fields(read: Read, tmp_path: Path) -> None:
    answer = {"text": ["a"], "answer_start": [0]}
    empty: dict[str, list[Any]] = {"text": [], "answer_start": []}
    rows = read("squad_records", _columns(tmp_path / "a.parquet", answer, empty, answer))
    assert rows[0].fields == {
        "id": "q0",
        "title": "",
        "paragraph": "0-0",
        "context": "a",
        "question": "?",
        "answers": [{"text": "a", "start": 0}],
    }
    assert [row.fields["paragraph"] for row in rows] == ["0-0", "0-1", "0-0"]
    assert rows[1].fields["answers"] == []


def test_faults_of_the_columns_are_reported_for_the_chosen_language(read: Read, tmp_path: Path) -> None:
    good = {"text": ["a"], "answer_start": [0]}
    path = _columns(tmp_path / "a.parquet", good, {"text": ["b"], "answer_start": [1]}, good)
    with pytest.raises(DataError, match="question 'q1': expected the answer 'b' at offset 1"):
        read("squad_records", path)
    # Questions of other languages are neither read nor checked.
    [row] = read("squad_records", path, id_prefix="q2")
    assert (row.fields["id"], row.line) == ("q2", 3)
    assert read("squad_records", path, id_prefix="thai-") == []
    path = _columns(tmp_path / "b.parquet", good, {"text": ["b", "b"], "answer_start": [0]}, good)
    with pytest.raises(DataError, match="question 'q1': expected as many offsets as answers"):
        read("squad_records", path)


tokens_of_any_script = st.lists(
    st.text(
        st.characters(exclude_categories=["Z", "C"]) | st.sampled_from("aéß.,()東京กိน"),
        min_size=1,
        max_size=4,
    ),
    min_size=1,
    max_size=8,
)


@pytest.mark.parametrize(
    ("tokens", "language", "text"),
    [
        (("Sioux", "Falls", ",", "(", "South", "Dakota", ")", "!"), "en", "Sioux Falls, (South Dakota)!"),
        (("''", "Ice", "Cube", "''"), "en", "'' Ice Cube ''"),
        (("¿", "Qué", "?", "..."), "es", "¿Qué?..."),
        (("گھوٹکی", "،", "وسکونسن", "۔"), "ur", "گھوٹکی، وسکونسن۔"),
        (("한국", "사람", "."), "ko", "한국 사람."),
        (("東", "京", "は", "K", "O"), "ja", "東京はKO"),
        (("北京", "市", "。"), "zh", "北京市。"),
        (("ประเทศ", "ไทย"), "th", "ประเทศไทย"),
        (("၁၈၇၈", "ခုနှစ်တွင်"), "my", "၁၈၇၈ ခုနှစ်တွင်"),
        (("ລາວ", "ໄທ", "Lao", "PDR"), "xx", "ລາວໄທ Lao PDR"),  # not in the table: known by its letters
        (("北京", "大学"), "en", "北京 大学"),
    ],
)
def test_tokens_become_a_text(tokens: tuple[str, ...], language: str, text: str) -> None:
    made, offsets = detokenise(tokens, language)
    assert made == text
    assert tuple(made[start:end] for start, end in offsets) == tokens


@given(tokens_of_any_script, st.sampled_from(["en", "ar", "zh", "th", "my", "xx"]))
def test_a_text_can_be_taken_apart_again(tokens: list[str], language: str) -> None:
    text, offsets = detokenise(tokens, language)
    assert [text[start:end] for start, end in offsets] == tokens
    assert detokenise(tokens, language) == (text, offsets)
    with pytest.raises(ValueError, match="token 2 is empty"):
        detokenise([tokens[0], ""], language)
    assert locate(tokens, text) == offsets
    rest = "".join(text[end:start] for (_, end), (start, _) in pairwise(offsets))
    assert set(rest) <= {" "}


@pytest.mark.parametrize(
    ("tokens", "text", "surfaces"),
    [
        (("Er", "geht", "zum", "See", "."), "Er geht zum See.", ["Er", "geht", "zum", "See", "."]),
        (("da", "da", "d", "a"), "da dad a", ["da", "da", "d", "a"]),
        (("میروم", "10000"), " می\u200cروم  10 000 ", ["می\u200cروم", "10 000"]),
        (("Việt Nam", "10 000"), "Việt Nam 10\u00a0000", ["Việt Nam", "10\u00a0000"]),
        (("می\u200cروم",), "میروم", ["میروم"]),
        (("\u0300\u0301n", "sí"), "olori \u0300\u0301n sí"[6:], ["\u0300\u0301n", "sí"]),
    ],
)
def test_tokens_are_found_in_their_text(tokens: tuple[str, ...], text: str, surfaces: list[str]) -> None:
    assert [text[start:end] for start, end in locate(tokens, text)] == surfaces


@pytest.mark.parametrize(
    ("tokens", "text", "message"),
    [
        (("a", "c"), "a b", r"token 2, 'c'.*'b', character 2"),
        (("b", "a"), "a b", r"token 1, 'b'.*'a b', character 0"),
        (("a",), "a b", r"no token is left for 'b', character 2"),
        (("a", "b"), "a", r"token 2, 'b'.*end of the text"),
        (("a", "\u200c"), "a b", r"token 2, '\\u200c', has no visible character"),
        (("de", "el"), "del", r"token 2, 'el'.*'l', character 2"),
    ],
)
def test_tokens_that_do_not_make_the_text_are_rejected(
    tokens: tuple[str, ...], text: str, message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        locate(tokens, text)


def test_combined_characters_have_an_inside() -> None:
    text = "e\u0301 \u0301x👩\u200d🚀"
    inside = [offset for offset in range(len(text) + 1) if splits_combination(text, offset)]
    # Before the acute on 'e'; not before the one after a space; on both sides of the joiner.
    assert inside == [1, 6, 7]


def test_classes_of_characters() -> None:
    assert all(map(is_unspaced, "東々〇ひカーｶกລកက"))
    assert not any(map(is_unspaced, "a1한。、・１๑"))
    assert all(map(is_extender, "\u0301\u094d\u200d\u200c\u200e\ufeff\ufe0f"))
    assert is_blank("\u200b") and not is_extender("\u200b")
