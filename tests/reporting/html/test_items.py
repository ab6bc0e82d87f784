"""What a card of an item shows: the texts of candidates, excerpts of contexts, differences of tags and spans."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from harness.reporting.blocks.model import Field, Fold, as_field
from harness.reporting.weakness.items import LONGEST, WorstItem, item_blocks, item_table
from harness.storage.records import ItemRecord


def _item(
    kind: str,
    fields: Mapping[str, Any],
    prediction: Any,
    gold: Any,
    *,
    texts: Mapping[str, str] | None = None,
    **changes: Any,
) -> WorstItem:
    inputs = json.dumps({"id": "7", **fields})
    record = ItemRecord(
        id="7", inputs_digest="", inputs=inputs, prediction=prediction, reference=gold, scores={},
        cluster=None, tags={}, flags={}, **{"group": None, **changes},
    )  # fmt: skip
    answers = (("m", record),)
    return WorstItem(title="t", kind=kind, language="de", record=record, answers=answers, texts=texts or {})


def _shown(item: WorstItem) -> dict[str, str]:
    rows = item_table(item).rows
    return {str(as_field(row.label)): str(as_field(row.fields[0])) for row in rows}


def test_bitext_shows_the_chosen_sentence() -> None:
    fields = {"query": "The train leaves.", "target": "Der Zug fährt ab."}
    item = _item("bitext_retrieval", fields, {"candidate": "19"}, "7", texts={"19": "Der Laden ist zu."})
    shown = _shown(item)
    assert list(shown) == ["query", "gold", "m"]
    assert shown["gold"] == "Der Zug fährt ab."
    assert shown["m"].startswith("Der Laden ist zu.")
    unknown = _item("bitext_retrieval", fields, {"candidate": "19"}, "7")
    assert "19" in _shown(unknown)["m"]


def test_a_ranking_shows_the_texts_of_its_first_and_of_a_right_candidate() -> None:
    gold = {"targets": ["de/1", "en/1"], "languages": ["de", "en"]}
    answer = {"candidates": ["x/3", "en/1"]}
    texts = {"x/3": "Wrong sentence.", "en/1": "Right sentence."}
    shown = _shown(_item("ranked_retrieval", {"query": "Wo?"}, answer, gold, texts=texts))
    assert shown["gold"].startswith("Right sentence.")
    assert shown["m"].startswith("Wrong sentence.")
    assert "rank 2" in shown["m"]


def test_a_long_context_is_shown_around_the_answers() -> None:
    words = [f"word{number}" for number in range(400)]
    context = " ".join(words)
    start = context.index("word300")
    answer = {"text": "word300", "start": start, "score": 1.0}
    shown = _shown(_item("span_extraction", {"context": context, "question": "?"}, answer, ["word50"]))
    assert "word50" in shown["context"]
    assert "word300" in shown["context"]
    assert "word200" not in shown["context"]
    kept = [word for word in shown["context"].split() if word.startswith("word")]
    assert set(kept) <= set(words), "no word is cut"
    assert len(shown["context"]) < LONGEST < len(context)


def test_marked_text_shows_what_is_missed_and_what_is_wrongly_marked() -> None:
    gold = [[0, 3, "DET"], [4, 10, "NOUN"]]
    answer = {"spans": [[0, 3, "DET"], [4, 10, "VERB"]]}
    shown = _shown(_item("text_marking", {"text": "The farmer"}, answer, gold))
    missed, _, wrong = shown["m"].partition("wrongly marked")
    assert "farmer NOUN" in missed
    assert "farmer VERB" in wrong
    assert "DET" not in shown["m"]


def test_a_choice_is_shown_with_its_text() -> None:
    fields = {
        "choices": ["Es regnete.", "Es war heiß."],
        "names": ["choice1", "choice2"],
        "context": "Warum?",
    }
    shown = _shown(_item("multiple_choice", fields, {"label": "choice2"}, "choice1"))
    assert shown["gold"] == "Es regnete.  (choice1)"
    assert shown["m"] == "Es war heiß.  (choice2)"
    assert "names" not in shown


def test_forms_are_shown_in_their_sentence() -> None:
    fields = {"before": "The keys ", "after": " here.", "right": "are", "wrong": ["is"]}
    shown = _shown(_item("form_preference", fields, {"label": "is"}, "are"))
    assert shown["sentence"] == "The keys [are / is] here."


def test_many_wrong_tags_are_counted() -> None:
    tokens = [f"w{number}" for number in range(20)]
    item = _item("token_tagging", {"tokens": tokens}, ["X"] * 20, ["Y"] * 20)
    [row] = [row for row in item_table(item).rows if row.label == "m"]
    [field] = row.fields
    assert isinstance(field, Field)
    assert len(field.parts) == 13
    assert field.parts[-1] == "8 more wrong tags"


def test_items_are_folded_by_task() -> None:
    item = _item("sequence_classification", {"inputs": {"premise": "a"}}, {"label": "x"}, "y")
    _, fold = item_blocks({"de": [item], "xx": [item]}, {"de": "German"}, [])
    assert isinstance(fold, Fold)
    assert (fold.title, fold.soft) == ("t", "1 item")
