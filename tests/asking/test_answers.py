"""What names a request, and that an answer that was written down is the answer."""

from __future__ import annotations

import math
import struct
from collections.abc import Callable, Sequence
from dataclasses import fields, replace
from typing import Any, get_args

import numpy as np
import pytest
from hypothesis import example, given, strategies as st
from hypothesis.extra import numpy as hnp

from harness.models.capabilities import Choice, EmbedOptions, SpanAnswer, SpanQuestion, TextInput
from harness.models.requests import (
    Ability,
    Generated,
    GenerateOptions,
    LikelihoodAnswer,
    LikelihoodRequest,
    Turn,
)
from harness.running.codec import FORMS, argument_content, request_keys, source_digest

SOURCE = b"source-1"
TEXTS = st.text(st.characters(), max_size=8)
"""Any code points, lone surrogates too."""
FLOATS = st.floats(allow_nan=True, allow_infinity=True, allow_subnormal=True)
ROWS = hnp.arrays(np.float32, st.integers(0, 9), elements=st.floats(width=32, allow_subnormal=True))
SPARSE = hnp.arrays(
    np.float32,
    st.integers(0, 50),
    elements=st.floats(width=32, allow_subnormal=True),
    fill=st.just(np.float32(0)),
)
LIKELIHOODS = st.builds(
    LikelihoodAnswer,
    token_logprobs=st.lists(FLOATS, max_size=4).map(tuple),
    is_greedy=st.booleans(),
    byte_length=st.integers(0),
    truncated=st.booleans(),
    straddles=st.booleans(),
)
ANSWERS: dict[Ability, st.SearchStrategy[Any]] = {
    "classify": ROWS | SPARSE,
    "embed": ROWS | SPARSE,
    "choose": st.lists(FLOATS, max_size=4).map(tuple),
    "tag": st.lists(TEXTS, max_size=4),
    "extract_spans": st.builds(
        SpanAnswer,
        text=TEXTS,
        start=st.integers(-1),
        end=st.integers(-1),
        score=FLOATS,
        truncated=st.booleans(),
    ),
    "loglikelihood": LIKELIHOODS,
    "fill_masks": LIKELIHOODS,
    "generate": st.builds(
        Generated, text=TEXTS, tokens=st.integers(0), finished=st.booleans(), truncated=st.booleans()
    ),
}


def _bits(value: Any) -> Any:
    """A form in which only what is equal to the bit is equal, NaN and -0.0 too."""
    if isinstance(value, np.ndarray):
        return (str(value.dtype), value.shape, value.tobytes())
    if isinstance(value, float):
        return "nan" if math.isnan(value) else struct.pack("<d", value)
    if isinstance(value, tuple | list):
        return (type(value).__name__, *map(_bits, value))
    if hasattr(value, "__slots__"):
        return tuple(_bits(getattr(value, item.name)) for item in fields(value))
    return (type(value).__name__, value)


@pytest.mark.parametrize("ability", get_args(Ability))
def test_an_answer_is_read_back_as_it_was_to_the_bit(ability: Ability) -> None:
    form = FORMS[ability]

    @given(ANSWERS[ability])
    def check(answer: Any) -> None:
        body = form.encode(answer)
        assert isinstance(body, bytes)
        assert _bits(form.decode(body)) == _bits(answer)

    check()


@given(ROWS | SPARSE)
@example(np.array([0, -0.0, 0, 0, 1e-45], dtype=np.float32))
def test_a_row_takes_no_more_room_than_its_numbers(row: Any) -> None:
    body = FORMS["embed"].encode(row)
    assert _bits(FORMS["embed"].decode(body)) == _bits(row)
    assert len(body) <= 9 + 4 * len(row)


def test_a_row_that_is_mostly_zero_is_small() -> None:
    row = np.zeros(10_000, dtype=np.float32)
    row[[7, 9_999]] = 0.5, -0.0
    body = FORMS["embed"].encode(row)
    assert len(body) == 9 + 2 * 8
    assert _bits(FORMS["embed"].decode(body)) == _bits(row)


@pytest.mark.parametrize(
    ("ability", "sound", "unsound"),
    [
        ("classify", np.ones(2, np.float32), np.array([1, np.nan], np.float32)),
        ("embed", np.ones(2, np.float32), np.array([1, np.inf], np.float32)),
        ("choose", (1.0, -2.0), (1.0, -math.inf)),
        (
            "extract_spans",
            SpanAnswer(text="a", start=0, end=1, score=-1e9),
            SpanAnswer(text="a", start=0, end=1, score=math.nan),
        ),
        (
            "loglikelihood",
            LikelihoodAnswer(token_logprobs=(-1.0,), is_greedy=True, byte_length=1),
            LikelihoodAnswer(token_logprobs=(-1.0, math.nan), is_greedy=True, byte_length=1),
        ),
    ],
)
def test_numbers_that_are_not_finite_are_not_kept(ability: Ability, sound: Any, unsound: Any) -> None:
    assert FORMS[ability].is_sound(sound)
    assert not FORMS[ability].is_sound(unsound)


TALK = (Turn(role="user", text="Go on."), Turn(role="assistant", text="I do."))
REQUESTS: dict[Ability, Any] = {
    "classify": TextInput(text="a", text_pair="b"),
    "choose": Choice(context="c", choices=("x", "y")),
    "tag": ("two", "words"),
    "extract_spans": SpanQuestion(id="q1", question="Who?", context="He."),
    "embed": "some text, ž \ud800",
    "loglikelihood": LikelihoodRequest(context="The sky is", continuation=" blue"),
    "generate": ("Write.", GenerateOptions(max_tokens=8, stop=("\n",))),
}
ARGUMENTS: dict[Ability, dict[str, Any]] = {
    "classify": {"labels": ("no", "yes")},
    "embed": {"side": "query", "options": EmbedOptions(pooling="mean", layer=3)},
}


def _key(ability: Ability, request: Any, source: bytes = SOURCE, **arguments: Any) -> str:
    [key] = request_keys(source, ability, arguments or ARGUMENTS.get(ability, {}), [request])
    assert len(key) == 16
    return key.hex()


# Digests that older runs have in their journals: after a change of one of them nothing is found in them any more.
KEYS = {
    "classify": "3f58bc220a17accff260643fe99f0fcc",
    "choose": "790e3d9c20c57909f46aecda2d12f3d9",
    "tag": "d295a21618bea9be2b8b7dd73e3d2da0",
    "extract_spans": "dcc921330db5938a28a245da5221ef07",
    "embed": "5a2e67a6a529c201438cac684a40b37d",
    "loglikelihood": "914689bf8d4bc1e499fcede8f1fb5921",
    "generate": "e08d9d7c14c62e90ad62537596e13659",
}


def test_keys_are_those_of_earlier_runs() -> None:
    assert {ability: _key(ability, request) for ability, request in REQUESTS.items()} == KEYS
    sampled = GenerateOptions(temperature=0.5, top_p=0.9, seed=7)
    assert _key("generate", (TALK, sampled)) == "0d0741d82d8dbd3c3b4eb2ba46065810"
    for identity in ({"b": "ž", "a": "1"}, {"a": "1", "b": "ž"}):
        assert source_digest(identity).hex() == "72bcd805f337e03f"


OPTIONS = GenerateOptions(temperature=0.5)
CHANGES: tuple[dict[str, Any], ...] = (
    {"max_tokens": 65},
    {"stop": ("\n",)},
    {"temperature": 0.6},
    {"top_p": 0.9},
    {"seed": 1},
    {"choices": ("a", "b")},
    {"regex": "a|b"},
    {"json_schema": {"type": "object"}},
    {"reasoning_markers": ("<a>", "</a>")},
)
PAIRS = [("a", None), ("a", ""), ("a", "b"), ("b", "a"), ("ab", None), ("", "ab"), ('a","b', None)]
CHOICES = [("c", ("x", "y")), ("c", ("y", "x")), ("c", ("x,y",)), ("cx", ("y",)), ("", ("x", "y"))]
QUESTIONS = [("1", "q", "c"), ("2", "q", "c"), ("1", "q2", "c"), ("1", "q", "c2")]
PROMPTS = ["p", "p2", TALK, TALK[:1], (Turn(role="user", text="p"),), (Turn(role="system", text="p"),)]
VARIATIONS: dict[Ability, Sequence[Any]] = {
    "classify": [TextInput(text=text, text_pair=second) for text, second in PAIRS],
    "choose": [Choice(context=context, choices=choices) for context, choices in CHOICES],
    "tag": [("two", "words"), ("words", "two"), ("two words",), ("twowords",), ("two", "words", "")],
    "extract_spans": [
        SpanQuestion(id=key, question=text, context=context) for key, text, context in QUESTIONS
    ],
    "embed": ["a", "b", "a ", "A", "\ud800", "\ufffd", "\u00e9", "e\u0301", "1", ""],
    "loglikelihood": [
        LikelihoodRequest(context=context, continuation=text)
        for context, text in (("a", " b"), ("a ", "b"), ("", "a b"))
    ],
    "generate": [
        *((prompt, OPTIONS) for prompt in PROMPTS),
        ("p", GenerateOptions()),
        *(("p", replace(OPTIONS, **change)) for change in CHANGES),
    ],
}


@pytest.mark.parametrize("ability", VARIATIONS)
def test_requests_that_differ_have_keys_that_differ(ability: Ability) -> None:
    requests = VARIATIONS[ability]
    keys = [_key(ability, request) for request in requests]
    assert len(set(keys)) == len(requests)
    assert keys == [_key(ability, request) for request in requests]


def test_every_option_of_generation_is_varied() -> None:
    """A new option must change the key, too."""
    varied = {name for change in CHANGES for name in change}
    assert {item.name for item in fields(GenerateOptions)} == varied | {"languages"}
    assert len(FORMS["generate"].content(("p", OPTIONS))) == 7, "as older journals have it"
    assert len(argument_content({"options": EmbedOptions()})["options"]) == len(fields(EmbedOptions))


def test_a_greedy_answer_does_not_depend_on_chance() -> None:
    keys = {_key("generate", ("p", GenerateOptions(seed=seed, top_p=1 - seed / 10))) for seed in range(4)}
    assert len(keys) == 1


EMBED_OPTIONS = (
    None,
    EmbedOptions(),
    EmbedOptions(pooling="cls"),
    EmbedOptions(layer=1),
    EmbedOptions(layer="last"),
    EmbedOptions(max_length=1),
    EmbedOptions(prefixes=False),
)


@pytest.mark.parametrize(
    ("ability", "different"),
    [
        ("classify", [{"labels": labels} for labels in (("a", "b"), ("b", "a"), ("a",), ("a,b",))]),
        ("embed", [{"side": side, "options": own} for side in ("query", "passage") for own in EMBED_OPTIONS]),
    ],
)
def test_other_arguments_make_other_keys(ability: Ability, different: list[dict[str, Any]]) -> None:
    assert len({_key(ability, REQUESTS[ability], **arguments) for arguments in different}) == len(different)


def test_other_models_and_abilities_make_other_keys() -> None:
    identities = [{}, {"a": "1"}, {"a": "2"}, {"b": "1"}, {"a": "1", "b": "2"}, {"a": "1\ud800"}]
    sources = [source_digest(identity) for identity in identities]
    assert {len(source) for source in sources} == {8}
    assert len({_key("embed", "a", source) for source in sources}) == len(identities)
    item = TextInput(text="a")
    assert len(request_keys(SOURCE, "classify", {}, [item, item])) == 2
    assert request_keys(SOURCE, "classify", {}, [item]) != request_keys(SOURCE, "embed", {}, ["a"])


@given(st.lists(st.lists(TEXTS, max_size=3).map(tuple), unique=True, max_size=6))
def test_keys_are_equal_exactly_where_the_requests_are(sentences: list[tuple[str, ...]]) -> None:
    once = request_keys(SOURCE, "tag", {}, sentences)
    assert len(set(once)) == len(sentences)
    assert request_keys(SOURCE, "tag", {}, [list(tokens) for tokens in sentences]) == once


@pytest.mark.parametrize("ability", sorted(REQUESTS))
def test_lengths_are_those_of_the_text(ability: Ability) -> None:
    length: Callable[[Any], int] = FORMS[ability].length
    assert isinstance(length(REQUESTS[ability]), int)
    assert length(REQUESTS[ability]) > 0
    assert FORMS["generate"].length((TALK, OPTIONS)) == len("Go on.I do.")
    assert FORMS["classify"].length(TextInput(text="ab")) == 2
