"""Readers of XCOPA and Mewsli-X."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, strategies as st

from harness.data.readers.reader import Reader
from harness.data.readers.tabular import JSONL
from harness.data.records import Row
from harness.errors import DataError, UsageError
from harness_xtreme_r.readers import (
    MEWSLI_X_ENTITIES,
    MEWSLI_X_MENTIONS,
    MEWSLI_X_PAIRS,
    XCOPA_ALIGNED,
    cuts_character,
    mention_text,
)
from tests.builders import released_data

ENGLISH = "Harbour news\n\nThe {old} ferry left  Alda at {noon}.\nNo one saw Berin."
TAMIL = "மணலி ஊர்."
Change = Callable[[dict[str, Any]], Any]


def spans(text: str, *parts: str) -> list[dict[str, int]]:
    return [{"start": text.index(part), "end": text.index(part) + len(part)} for part in parts]


def mention(key: str, text: str, surface: str, entity: str) -> dict[str, Any]:
    span = {**spans(text, surface)[0], "text": surface}
    return {"example_id": key, "entity_id": entity, "mention_span": span, "metadata": {}}


def article(language: str, text: str, sentences: Sequence[str], *mentions: dict[str, Any]) -> dict[str, Any]:
    context = {
        "document_id": f"{language}-1",
        "document_url": "https://example.org/1",
        "document_title": "t",
        "section_title": "",
        "language": language,
        "text": text,
        "sentence_spans": spans(text, *sentences),
    }
    return {"context": context, "mentions": list(mentions)}


def english() -> dict[str, Any]:
    sentences = ("Harbour news", "The {old} ferry left  Alda at {noon}.\n", "No one saw Berin.")
    mentions = (mention("m1", ENGLISH, "Alda", "Q1"), mention("m2", ENGLISH, "Berin", "Q2"))
    return article("en", ENGLISH, sentences, *mentions)


def tamil() -> dict[str, Any]:
    return article("ta", TAMIL, [TAMIL], mention("m3", TAMIL, "மணலி", "Q3"))


def entity(key: str = "Q1", description: str = "Alda is a harbour.  It is\nold. Third.") -> dict[str, Any]:
    return {
        "entity_id": key,
        "title": "Not used",
        "description": description,
        "description_url": "https://example.org/Alda",
        "description_language": "en",
        "sentence_spans": spans(description, "Alda is a harbour.", "It is\nold."),
    }


def pair() -> dict[str, Any]:
    whole = english()
    return {
        "contextual_mention": {"context": whole["context"], "mention": whole["mentions"][0]},
        "entity": entity(),
    }


@pytest.fixture
def saved(tmp_path: Path) -> Callable[..., Path]:
    def save(*records: Any) -> Path:
        path = tmp_path / "file.jsonl"
        lines = [item if isinstance(item, str) else json.dumps(item, ensure_ascii=False) for item in records]
        path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
        return path

    return save


def mentions(path: Path, language: str = "en", **options: str) -> list[Row]:
    return list(MEWSLI_X_MENTIONS.read([path], {"language": language, **options}))


def test_mentions_of_one_language_in_their_sentence(saved: Callable[..., Path]) -> None:
    path = saved(english(), tamil())
    # Only pairs of spaces become one, and each only once, as in the released code.
    query = "Alda: The (old) ferry left  { Alda } at (noon)."
    assert [row.fields for row in mentions(path)] == [
        {"id": "m1", "query": query, "target": "Q1", "document": "en-1"},
        {"id": "m2", "query": "Berin: No one saw { Berin } .", "target": "Q2", "document": "en-1"},
    ]
    assert [(row.fields["query"], row.line) for row in mentions(path, "ta")] == [("மணலி: { மணலி } ஊர்.", 2)]
    [row] = MEWSLI_X_PAIRS.read([saved(pair())], {})
    assert row.fields == {"id": "m1", "query": query, "passage": "Alda is a harbour. It is old."}


def test_a_language_without_articles_is_rejected(saved: Callable[..., Path]) -> None:
    with pytest.raises(DataError, match=r"file.jsonl: .*'de', found en, ta"):
        mentions(saved(english(), tamil()), "de")
    with pytest.raises(DataError):
        mentions(saved())
    with pytest.raises(UsageError, match="'language'"):
        list(MEWSLI_X_MENTIONS.read([saved(english())], {}))


def first(record: dict[str, Any]) -> Any:
    return record["mentions"][0]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda record: first(record)["mention_span"].update(text="Aldo"), ":2: .*'m1'.*'Aldo'.*'Alda'"),
        (lambda record: first(record)["mention_span"].update(end=900), "'m1': .* 69 .* 36 to 900"),
        (lambda record: first(record)["mention_span"].update(start=40), "40 to 40"),
        (lambda record: first(record)["mention_span"].pop("start"), "'start', found 'end', 'text'"),
        (lambda record: first(record).pop("entity_id"), "'m1': expected 'entity_id', found 'example_id'"),
        (lambda record: first(record).update(example_id=5), "'example_id' .* str, found int"),
        (lambda record: record.pop("mentions"), "'context' and 'mentions', found 'context'"),
        (
            lambda record: record["context"].update(sentence_spans=[{"start": 0, "end": 39}]),
            "'Alda' .*sentences",
        ),
        (lambda record: record["context"].update(text=""), "text of the article, found none"),
        (lambda record: record["context"].pop("language"), ":2: expected 'language', found 'document_id'"),
    ],
)
def test_rejects_mentions_that_do_not_fit(change: Change, message: str, saved: Callable[..., Path]) -> None:
    record = english()
    change(record)
    with pytest.raises(DataError, match=message):
        mentions(saved(tamil(), record))


@pytest.mark.parametrize(
    ("text", "surface"),
    [("மணலியில்", "மணலிய"), ("cafe\u0301 noir", "cafe"), ("كتابٌ جديد", "كتاب"), ("கி.", "\u0bbf.")],
)
def test_rejects_mentions_that_cut_a_character(text: str, surface: str, saved: Callable[..., Path]) -> None:
    path = saved(article("ta", text, [text], mention("m", text, surface, "Q1")))
    with pytest.raises(DataError, match=r":1: mention 'm': .* offset \d+ inside"):
        mentions(path, "ta")
    assert [row.fields["target"] for row in mentions(path, "ta", check_offsets="text")] == ["Q1"]


def test_a_word_may_end_before_a_joiner() -> None:
    assert not cuts_character("کتاب\u200cها", 4)
    assert cuts_character("e\u0301", 1)
    assert not cuts_character("\u0301e", 0)
    assert not cuts_character("e\u0301", 2)


@given(st.text(max_size=20), st.text(min_size=1, max_size=10), st.text(max_size=20))
def test_the_query_is_one_line_that_begins_with_the_mention(left: str, surface: str, right: str) -> None:
    text = left + surface + right
    span = {"start": len(left), "end": len(left) + len(surface), "text": surface}
    context = {"text": text, "sentence_spans": [{"start": 0, "end": len(text)}]}
    query = mention_text(context, {"mention_span": span}, "here", check="text")
    assert len(query.splitlines()) <= 1
    assert query.count("{") >= 1
    if " ".join(surface.split()) == surface and not set(surface) & set("{}"):
        assert query.startswith(f"{surface}: ")
        assert f"{{ {surface} }}" in query


def test_entities_are_the_sentences_of_their_descriptions(saved: Callable[..., Path]) -> None:
    rows = list(MEWSLI_X_ENTITIES.read([saved(entity(), entity("Q2"))], {}))
    assert rows[0].fields == {"id": "Q1", "text": "Alda is a harbour. It is old.", "language": "en"}
    assert [(row.fields["id"], row.line) for row in rows] == [("Q1", 1), ("Q2", 2)]


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        ([entity(), entity()], ":2: .*'Q1' repeated"),
        ([entity(), '{"entity_id": "Q2",'], ":2: expected JSON"),
        ([entity(), '{"entity_id": NaN}'], ":2: .*found NaN"),
        ([entity(), r'{"entity_id": "\ud800"}'], ":2: .*surrogate"),
        ([entity(), "[]"], ":2: .*found list"),
        ([{**entity(), "description": ""}], ":1: .*inside of the 0 characters"),
        ([{**entity(), "sentence_spans": []}], ":1: .*at least one sentence"),
        ([{**entity(), "sentence_spans": [{"start": 0}]}], ":1: expected 'end', found 'start'"),
        ([{**entity(), "sentence_spans": [3]}], ":1: .*'start', found int"),
        ([{"entity_id": "Q1", "text": "x"}], ":1: .*'description', found 'entity_id', 'text'"),
    ],
)
def test_rejects_entities_that_do_not_fit(lines: list[Any], message: str, saved: Callable[..., Path]) -> None:
    rows = MEWSLI_X_ENTITIES.read([saved(*lines)], {})
    if len(lines) == 2:
        assert next(rows).fields["id"] == "Q1", "entities are streamed"
    with pytest.raises(DataError, match=message):
        next(rows)


def test_an_entity_file_may_end_in_a_blank_line_and_begin_with_a_byte_order_mark(tmp_path: Path) -> None:
    path = tmp_path / "file.jsonl"
    path.write_bytes(b"\xef\xbb\xbf" + json.dumps(entity()).encode() + b"\r\n\n")
    assert [row.fields["id"] for row in MEWSLI_X_ENTITIES.read([path], {})] == ["Q1"]
    path.write_bytes(b'{"entity_id": "\xff"}\n')
    with pytest.raises(DataError, match=":1: expected UTF-8, found the byte 0xff"):
        list(MEWSLI_X_ENTITIES.read([path], {}))
    with pytest.raises(DataError, match="expected a readable file, found: No such file"):
        list(MEWSLI_X_ENTITIES.read([tmp_path / "absent.jsonl"], {}))


def test_rejects_pairs_that_do_not_fit(saved: Callable[..., Path]) -> None:
    shifted = copy.deepcopy(pair())
    shifted["contextual_mention"]["mention"]["mention_span"]["start"] += 1
    with pytest.raises(DataError, match=r":2: mention 'm1': .*'Alda' from 37 to 40, found 'lda'"):
        list(MEWSLI_X_PAIRS.read([saved(pair(), shifted)], {}))
    bare = {**pair(), "entity": {"title": "x"}}
    with pytest.raises(DataError, match=r":1: mention 'm1': .*'description', found 'title'"):
        list(MEWSLI_X_PAIRS.read([saved(bare)], {}))


@pytest.mark.parametrize(
    ("reader", "record", "fitting"),
    [
        (MEWSLI_X_MENTIONS, pair(), "mewsli_x_pairs"),
        (MEWSLI_X_PAIRS, entity(), "mewsli_x_entities"),
        (MEWSLI_X_ENTITIES, english(), "mewsli_x_mentions"),
    ],
)
def test_another_file_of_the_release_is_named(
    reader: Reader, record: Any, fitting: str, saved: Callable[..., Path]
) -> None:
    with pytest.raises(DataError, match=f":1: expected .* This is another file of Mewsli-X: .*'{fitting}'"):
        list(reader.read([saved(record)], {"language": "en"}))


def test_the_example_of_the_release() -> None:
    root = released_data()
    path = root / "mewsli-x" / "example_mentions.jsonl"
    (only,) = mentions(path)
    assert only.fields["id"] == "c79595350cc2d5c7f2b095e2cb785212"
    assert only.fields["target"] == "Q1757"
    assert only.fields["query"] == (
        "Helsinki: In { Helsinki } , the Finnish trade union for bus and truck drivers has gone on strike on "
        "Sunday evening, mainly over the use of part-time labor."
    )
    arabic = mentions(path, "ar")
    assert [row.fields["target"] for row in arabic] == ["Q167217", "Q3447452"]
    assert arabic[0].fields["query"].startswith("أبو موسى: زار قائد")
    assert " و { طنب الصغرى } ، في أول" in arabic[1].fields["query"]


WRONG = {"sw": (37, 6), "id": (4, 5), "it": (4, 5), "ht": (0, 0), "ta": (0, 0)}
"""Items of test and validation whose published question is not the Estonian one's."""


def item(index: int, question: str = "cause", label: Any = 0, premise: str = "p") -> dict[str, Any]:
    named = {"premise": premise, "choice1": "a", "choice2": "b", "question": question}
    return {**named, "label": label, "idx": index, "changed": False}


@pytest.fixture
def readers_xcopa_saved(tmp_path: Path) -> Callable[..., list[Path]]:
    def save(*files: list[Any]) -> list[Path]:
        paths = [tmp_path / name for name in ("test.sw.jsonl", "test.et.jsonl", "third.jsonl")[: len(files)]]
        for path, records in zip(paths, files, strict=True):
            lines = [record if isinstance(record, str) else json.dumps(record) for record in records]
            path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
        return paths

    return save


def test_questions_come_from_the_aligned_file_and_the_rest_from_the_first(
    readers_xcopa_saved: Callable[..., list[Path]],
) -> None:
    own = [item(2, "effect", 1, "two"), item(0, "cause", 0, "zero")]
    aligned = [item(0, "cause", 0, "null"), item(2, "cause", 1, "kaks")]
    paths = readers_xcopa_saved(own, aligned)
    rows = list(XCOPA_ALIGNED.read(paths, {}))
    assert [row.fields for row in rows] == [item(2, "cause", 1, "two"), item(0, "cause", 0, "zero")]
    assert [row.where for row in rows] == [f"{paths[0]}:1", f"{paths[0]}:2"]
    [named, _] = XCOPA_ALIGNED.read(paths, {"columns": "id=idx,question=question,label=label"})
    assert named.fields == {"id": 2, "question": "cause", "label": 1}


@pytest.mark.parametrize(
    ("own", "aligned", "message"),
    [
        ([item(0)], [item(0, label=1)], r"sw.jsonl:1: expected the label 1 of .*et.jsonl:1, found 0"),
        ([item(0, label=None)], [item(0)], "expected the label 0 of .* found None"),
        ([item(0), item(1)], [item(0)], r"et.jsonl: expected the item with 'idx' 1 of .*sw.jsonl:2"),
        ([item(0)], [item(3), item(0), item(4)], r"sw.jsonl: expected the item with 'idx' 3 .*\(2 are"),
        ([item(0), item(0)], [item(0)], r"sw.jsonl:2: the 'idx' 0 was already used at .*sw.jsonl:1"),
        ([{"premise": "p"}], [item(0)], r"sw.jsonl:1: expected a number 'idx', found None among 'premise'"),
        ([item(0)], [item(0, "why")], r"et.jsonl:1: expected the 'question' cause or effect, found 'why'"),
        ([item(0), '{"idx":'], [item(0)], r"sw.jsonl:2: expected JSON"),
    ],
)
def test_rejects_files_that_are_not_aligned(
    own: list[Any], aligned: list[Any], message: str, readers_xcopa_saved: Callable[..., list[Path]]
) -> None:
    with pytest.raises(DataError, match=message):
        list(XCOPA_ALIGNED.read(readers_xcopa_saved(own, aligned), {}))


@pytest.mark.parametrize("count", [1, 3])
def test_two_files_are_needed(count: int, readers_xcopa_saved: Callable[..., list[Path]]) -> None:
    with pytest.raises(UsageError, match=f"'xcopa_aligned'.* found {count}"):
        list(XCOPA_ALIGNED.read(readers_xcopa_saved(*[[item(0)]] * count), {}))


@pytest.mark.parametrize("language", WRONG)
def test_published_questions_that_are_wrong(language: str) -> None:
    folder = released_data() / "xcopa" / "data"
    wrong = []
    for split in ("test", "val"):
        own, aligned = (folder / code / f"{split}.{code}.jsonl" for code in (language, "et"))
        released, repaired = list(JSONL.read([own], {})), list(XCOPA_ALIGNED.read([own, aligned], {}))
        assert [row.line for row in repaired] == [row.line for row in released]
        pairs = zip(released, repaired, strict=True)
        wrong.append(sum(old.fields["question"] != new.fields["question"] for old, new in pairs))
    assert tuple(wrong) == WRONG[language]
