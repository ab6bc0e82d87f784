"""Counts of sub-words: those of the tokenizer itself, and exactly as much room as the model reads."""

from __future__ import annotations

import os
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from harness.models.capabilities import EmbedOptions
from harness.models.requests import CountsSubwords, CutsTexts
from harness_hf.inference.pieces import subword_ids

from .conftest import Open

TEXTS = (
    "The cat sleeps.",
    "",
    "नमस्ते दुनिया",
    "東京は今日も晴れです。",
    "a\u0301b ß \u200d",
    "cat cat cat cat",
)


def phrases(count: int) -> list[str]:
    chosen = random.Random(3)
    return [
        " ".join(chosen.choices(["cat", "dog", "sleeps", "猫", "á"], k=chosen.randint(0, 30)))
        for _ in range(count)
    ]


def alone(adapter: Any) -> Callable[[str], list[int]]:
    tokenizer = adapter._session.tokenizer
    return lambda text: list(tokenizer(text, add_special_tokens=False)["input_ids"])


def test_counts_of_encoders_are_those_of_the_tokenizer(encoder: Any) -> None:
    tokenizer, pieces = encoder._session.tokenizer, alone(encoder)
    assert isinstance(encoder, CountsSubwords)
    for text, count in zip(TEXTS, encoder.subword_counts(TEXTS), strict=True):
        assert (count.tokens, count.unknown) == (
            len(pieces(text)),
            pieces(text).count(tokenizer.unk_token_id),
        )
    assert encoder.subword_counts([]) == []


def test_counts_of_decoders_are_those_of_the_tokenizer(decoder: Any) -> None:
    pieces = alone(decoder)
    assert [count.tokens for count in decoder.subword_counts(TEXTS)] == [len(pieces(text)) for text in TEXTS]


def test_truncation_of_another_call_does_not_cut_a_count(bert: Any) -> None:
    long = "cat " * 300
    before = bert.subword_counts([long])
    bert.embed([long], side="query", options=EmbedOptions(max_length=8))
    assert bert.subword_counts([long]) == before
    assert before[0].tokens >= 300


def test_room_of_pairs_is_what_the_model_reads(encoder: Any) -> None:
    session = encoder._session
    texts = phrases(120)
    pairs = list(zip(texts[::2], texts[1::2], strict=True))
    session.options = session.options.model_copy(update={"max_length": 24})
    try:
        room, single = encoder.text_room(2), encoder.text_room(1)
        seen = set()
        for first, second in pairs:
            total = sum(len(ids) for ids in subword_ids(session, [first, second]))
            whole = session.encode([first], [second], 10_000)[0]
            assert (total > room) == (len(whole) > 24)
            assert (len(subword_ids(session, [first])[0]) > single) == (
                len(session.encode([first], None, 10_000)[0]) > 24
            )
            seen.add(total > room)
        assert seen == {True, False}
    finally:
        session.options = session.options.model_copy(update={"max_length": None})


def test_room_of_a_query_excludes_its_prefix(folders: dict[str, Path], open_folder: Open) -> None:
    adapter = open_folder(folders["xlm-roberta"], query_prefix="query: ", max_length=20)
    counts_room = isinstance(adapter, CutsTexts)
    assert counts_room
    room = adapter.text_room(1, EmbedOptions())
    assert room is not None
    for text in (phrase for phrase in phrases(60) if phrase):
        count = adapter.subword_counts([text])[0].tokens
        whole = adapter._session.encode(["query: " + text], None, 10_000)[0]
        assert (count > room) == (len(whole) > 20)
    assert (adapter.text_room(1, EmbedOptions(prefixes=False)) or 0) > room
    assert adapter.text_room(1, EmbedOptions(max_length=10)) == room - 10


@pytest.mark.models
@pytest.mark.parametrize("name", ["e5-small", "smollm2"])
def test_real_tokenizers_count_as_they_do_alone(name: str) -> None:
    from threading import RLock
    from types import SimpleNamespace

    from transformers import AutoTokenizer

    from harness.running.session import open_session
    from harness_hf.inference.pieces import SubwordCounting

    folder = Path(os.environ.get("HARNESS_MODELS") or Path(__file__).parents[2] / "models") / name
    if not (folder / "tokenizer.json").is_file():
        pytest.skip(f"models/{name} is not there: run make models, or set HARNESS_MODELS")
    tokenizer = AutoTokenizer.from_pretrained(folder)
    adapter: Any = SubwordCounting()
    adapter._session = SimpleNamespace(tokenizer=AutoTokenizer.from_pretrained(folder), tokenizing=RLock())
    folders = open_session().catalog.task("xnli").folders
    texts = [line for own in set(folders.values()) for line in _lines(own)]
    counts = adapter.subword_counts(texts)
    assert len(texts) > 50
    for text, count in zip(texts, counts, strict=True):
        ids = tokenizer(text, add_special_tokens=False)["input_ids"]
        assert (count.tokens, count.unknown) == (len(ids), ids.count(tokenizer.unk_token_id))


def _lines(folder: Any) -> list[str]:
    files = [file for file in (folder / "sample" / "xnli").iterdir() if file.name.endswith(".jsonl")]
    return [line for file in files for line in file.read_text(encoding="utf-8").splitlines()]
