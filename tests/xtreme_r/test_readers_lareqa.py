from __future__ import annotations

import copy
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, strategies as st

from harness.data.records import Row
from harness.errors import DataError, HarnessError, UsageError
from harness_xtreme_r.xquad_r import SQUAD_SENTENCES, XQUAD_R_QUESTIONS, XQUAD_R_SENTENCES, sentence_spans

CANDIDATES = {"ar": 1222, "de": 1276, "en": 1180, "es": 1215, "zh": 1196}
"""Table of the README of google-research-datasets/lareqa."""
BRIDGE = "The bridge opened in 1931.\nIt is 40 metres long. Boats pass below."


def paragraph(context: str, breaks: list[list[int]], *questions: tuple[str, str]) -> dict[str, Any]:
    asked = [
        {
            "id": key,
            "question": f"Question {key}?",
            "answers": [{"text": text, "answer_start": context.index(text)}],
        }
        for key, text in questions
    ]
    sentences = [context[start:end] for start, end in breaks]
    return {"context": context, "sentence_breaks": breaks, "sentences": sentences, "qas": asked}


def document() -> dict[str, Any]:
    first = paragraph(
        BRIDGE, [[0, 26], [27, 48], [49, 66]], ("a", "1931"), ("b", "40 metres"), ("c", "opened")
    )
    second = paragraph("Rain fell. Rain fell.", [[0, 10], [11, 21]], ("d", "Rain"))
    third = paragraph("No one came.", [[0, 12]], ("e", "No one"))
    return {"data": [{"title": "x", "paragraphs": [first, second]}, {"title": "y", "paragraphs": [third]}]}


@pytest.fixture
def saved(tmp_path: Path) -> Callable[[Any], Path]:
    def save(content: Any) -> Path:
        path = tmp_path / "en.json"
        path.write_text(content if isinstance(content, str) else json.dumps(content), encoding="utf-8")
        return path

    return save


def sentences(path: Path, **options: str) -> list[Row]:
    return list(XQUAD_R_SENTENCES.read([path], {"language": "en", **options}))


def test_questions_are_read_in_the_order_of_the_file(saved: Callable[[Any], Path]) -> None:
    rows = list(XQUAD_R_QUESTIONS.read([saved(document())], {}))
    assert [row.fields for row in rows] == [
        {"id": key, "query": f"Question {key}?", "paragraph": place}
        for key, place in (("a", "0-0"), ("b", "0-0"), ("c", "0-0"), ("d", "0-1"), ("e", "1-0"))
    ]
    assert [row.line for row in rows] == [1, 2, 3, 4, 5]


def test_every_sentence_is_a_candidate_with_the_questions_that_it_answers(
    saved: Callable[[Any], Path],
) -> None:
    rows = sentences(saved(document()))
    assert {row.fields["id"]: row.fields["answers"] for row in rows} == {
        "en/0-0/0": ["a", "c"],
        "en/0-0/1": ["b"],
        "en/0-0/2": [],
        "en/0-1/0": ["d"],  # the equal sentence after it does not answer the question
        "en/0-1/1": [],
        "en/1-0/0": ["e"],
    }
    assert rows[1].fields["sentence"] == "It is 40 metres long."
    assert rows[1].fields["text"] == (
        "It is 40 metres long.The bridge opened in 1931.It is 40 metres long. Boats pass below."
    )


def changed(change: Callable[[dict[str, Any]], None]) -> dict[str, Any]:
    content = copy.deepcopy(document())
    change(content["data"][0]["paragraphs"][0])
    return content


def start(offset: int) -> Callable[[dict[str, Any]], None]:
    return lambda part: part["qas"][1]["answers"][0].update(answer_start=offset)


def answers(*answers: dict[str, Any]) -> Callable[[dict[str, Any]], None]:
    return lambda part: part["qas"][1].update(answers=list(answers))


def breaks(*breaks: list[Any]) -> Callable[[dict[str, Any]], None]:
    return lambda part: part.update(sentence_breaks=list(breaks))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (start(-1), "question 'b': .* from 0 to 65, found -1"),
        (start(66), "question 'b': .* from 0 to 65, found 66"),
        (start(34), "question 'b': .*'40 metres' at offset 34, found '0 metres '"),
        (answers({"text": " Boats", "answer_start": 48}), "question 'b': .* offset 48 between"),
        (answers(), "question 'b': .*found none"),
        (lambda part: part["qas"][1].update(id="a"), "question 'a': .*paragraph 1"),
        (lambda part: part.pop("sentence_breaks"), "article 1, paragraph 1: .* another release"),
        (lambda part: part.pop("context"), "paragraph 1: expected 'context'"),
        (lambda part: part.update(context=7), "'context' .* str, found int"),
        (lambda part: part["sentences"].pop(), "found 2 for 3"),
        (lambda part: part["sentences"].append(4), "sentence 4 .*found 4"),
        (breaks([0, 26], [27, 48], [49, 67]), r"sentence break 3 after 48 .* found \[49, 67\]"),
        (breaks([0, 26], [20, 48], [49, 66]), r"sentence break 2 after 26 .* found \[20, 48\]"),
        (breaks([0, 26], [27.0, 48]), r"sentence break 2 .*found \[27.0, 48\]"),
        (breaks([0, 26], [27, 47], [49, 66]), "sentence 2 between the breaks 27 and 47"),
    ],
)
def test_rejects_mismatched_input(
    change: Callable[[dict[str, Any]], None], message: str, saved: Callable[[Any], Path]
) -> None:
    path = saved(changed(change))
    with pytest.raises(DataError, match=message) as caught:
        sentences(path)
    assert str(path) in str(caught.value)


def test_shifted_breaks_are_rejected_unless_lengths_are_enough(saved: Callable[[Any], Path]) -> None:
    path = saved(changed(breaks([0, 26], [28, 49], [49, 66])))
    with pytest.raises(DataError, match=r"sentence 2, 'It is .*found 't is "):
        sentences(path)
    assert sentences(path, check_breaks="length")[1].fields["sentence"] == "t is 40 metres long. "
    with pytest.raises(HarnessError, match="found 'no'"):
        sentences(path, check_breaks="no")
    with pytest.raises(UsageError, match="'language'"):
        list(XQUAD_R_SENTENCES.read([path], {}))


@pytest.mark.parametrize("text", ["Cafe\u0301 noir.", "क\u093fताब."])
def test_rejects_an_offset_inside_of_a_combined_character(text: str, saved: Callable[[Any], Path]) -> None:
    offset = next(place for place, letter in enumerate(text) if letter in "\u0301\u093f")
    content = paragraph(text, [[0, len(text)]], ("q", text[offset : offset + 3]))
    with pytest.raises(DataError, match=rf"question 'q': .* found {offset}, .* inside of"):
        sentences(saved({"data": [{"paragraphs": [content]}]}))


def test_other_releases_and_broken_files(saved: Callable[[Any], Path], tmp_path: Path) -> None:
    parquet = tmp_path / "xquad_r.parquet"
    parquet.write_bytes(b"PAR1....")
    for path, message in (
        (parquet, "Parquet file of another release"),
        (tmp_path / "absent.json", "readable file"),
    ):
        with pytest.raises(DataError, match=message):
            sentences(path)
    for content, message in (
        ('{"data":\n]', "en.json:2: expected JSON"),
        ({"version": "1.1"}, "expected 'data', found 'version'"),
        ({"data": [3]}, "'paragraphs', found int"),
    ):
        with pytest.raises(DataError, match=message):
            list(XQUAD_R_QUESTIONS.read([saved(content)], {}))


@pytest.mark.parametrize(
    "expected",
    [
        ["It rained.", "We left!", "Why?", "12 people stayed."],
        ['He said "no."', '"Yes," she said.', "(It was late.)", "All agreed."],
        ["Dr. Smith met J. R. Jones of St. Ives.", "They spoke."],
        ["She lives in the U.S. Army base.", "He lives in the U.S.", "The base is old."],
        ["It was cold.[12]", "No one came.[note 3]", "So it ended"],
        ["Version 2.0 costs 3.5 euros e.g. in Spain.", "See p. 7 for more."],
        ["wait... what happened?", "Élan came."],
    ],
)
def test_sentences_end_where_the_rule_says(expected: list[str]) -> None:
    text = "  " + " ".join(expected) + "\n"
    assert [text[start:end] for start, end in sentence_spans(text)] == expected


@given(st.text(alphabet="aA1.?! \n\"'()[]éÉ", max_size=60))
def test_sentence_spans_part_a_text_at_white_space(text: str) -> None:
    spans = sentence_spans(text)
    ends = [0, *(place for span in spans for place in span), len(text)]
    assert ends == sorted(ends)
    assert all(not text[end:start].strip() for end, start in zip(ends[::2], ends[1::2], strict=True))
    assert all(text[start:end] == text[start:end].strip() != "" for start, end in spans)


def test_squad_questions_become_pairs(saved: Callable[[Any], Path]) -> None:
    content = document()
    asked = content["data"][0]["paragraphs"][0]["qas"]
    asked[1]["answers"].append({"text": "Boats", "answer_start": 49})
    rows = list(SQUAD_SENTENCES.read([saved(content)], {}))
    assert [row.fields["id"] for row in rows] == ["a", "b", "c", "d", "e"]
    assert rows[1].fields == {
        "id": "b",
        "query": "Question b?",
        "passage": "It is 40 metres long.The bridge opened in 1931.It is 40 metres long. Boats pass below.",
        "paragraph": "0-0",
    }
    asked[1]["answers"] = [{"text": " Boats", "answer_start": 48}]
    rows = list(SQUAD_SENTENCES.read([saved(content)], {}))
    assert [row.fields["id"] for row in rows] == ["a", "c", "d", "e"], "answers between sentences are skipped"
    for wrong, message in (
        ([], "question 'b': .*found none"),
        ([{"text": "Boats", "answer_start": 3}], "question 'b': .*'Boats' at offset 3"),
    ):
        asked[1]["answers"] = wrong
        with pytest.raises(DataError, match=message):
            list(SQUAD_SENTENCES.read([saved(content)], {}))


@pytest.mark.parametrize("language", CANDIDATES)
def test_published_xquad_r(language: str, data_root: Path) -> None:
    path = data_root / "lareqa" / "xquad-r" / f"{language}.json"
    candidates = list(XQUAD_R_SENTENCES.read([path], {"language": language}))
    questions = list(XQUAD_R_QUESTIONS.read([path], {}))
    assert (len(candidates), len(questions)) == (CANDIDATES[language], 1190)
    assert len({row.fields["id"] for row in candidates}) == CANDIDATES[language]
    paragraphs = {row.fields["id"]: row.fields["paragraph"] for row in questions}
    answered = [(key, row.fields["id"]) for row in candidates for key in row.fields["answers"]]
    assert sorted(key for key, _ in answered) == sorted(paragraphs)
    assert all(place.split("/")[1] == paragraphs[key] for key, place in answered)


def test_the_splitter_finds_the_published_english_breaks(data_root: Path) -> None:
    content = json.loads((data_root / "lareqa/xquad-r/en.json").read_text(encoding="utf-8"))
    parts = [part for article in content["data"] for part in article["paragraphs"]]
    published = {(place, end) for place, part in enumerate(parts) for _, end in part["sentence_breaks"]}
    found = {(place, end) for place, part in enumerate(parts) for _, end in sentence_spans(part["context"])}
    assert (len(published), len(found), len(found & published)) == (1180, 1172, 1172)


def test_squad_sample(data_root: Path) -> None:
    path = data_root / "squad" / "train-v1.1.sample5500.json"
    rows = list(SQUAD_SENTENCES.read([path], {}))
    assert len(rows) == 5547
    content = json.loads(path.read_text(encoding="utf-8"))
    answers = {
        question["id"]: question["answers"][0]["text"]
        for article in content["data"]
        for part in article["paragraphs"]
        for question in part["qas"]
    }
    inside = sum(row.fields["passage"].count(answers[row.fields["id"]]) >= 2 for row in rows)
    assert inside >= 5538  # once in the sentence, once in the paragraph; nine answers run over a border
