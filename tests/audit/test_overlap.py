from __future__ import annotations

from hypothesis import given, strategies as st

from harness.data.records import SpanExample, TaggedSentence
from harness_audit.split import LEAST_TOKENS, NEAR, WIDTH, TextIndex, item_text


def sentence(identifier: str, *tokens: str, text: str | None = None) -> TaggedSentence:
    return TaggedSentence(id=identifier, tokens=tokens, tags=None, text=text)


def test_raw_text_next_to_tokens_does_not_hide_a_duplicate() -> None:
    index = TextIndex([sentence("a", "Good", "day", "!")])
    overlap = index.overlap([sentence("b", "good", "day", text="good day"), sentence("c", "good")])
    assert (overlap.exact, overlap.near, overlap.of, overlap.example) == (1, 0, 2, ("b", "a"))


def test_text_is_question_and_context() -> None:
    example = SpanExample(id="1", question="Who?", context="Ana came.", answers=())
    assert item_text(example) == "Who? Ana came."


def test_scripts_without_spaces_are_compared_by_character() -> None:
    text = "我们今天去北京看朋友和他的家人"
    index = TextIndex([sentence("a", f"{text}吗")])
    assert index.overlap([sentence("b", f"{text}吧")]).near == 1


@given(st.lists(st.sampled_from("abcdefghij"), min_size=LEAST_TOKENS + 4, max_size=40))
def test_near_means_a_jaccard_of_four_fifths(tokens: list[str]) -> None:
    """Near duplicates are near; equal texts are exact and never near."""
    changed = [*tokens[:-2], "y", "z"]
    overlap = TextIndex([sentence("a", *tokens)]).overlap([sentence("b", *changed), sentence("c", *tokens)])
    assert overlap.exact == 1
    runs = [{tuple(own[at : at + WIDTH]) for at in range(len(own) - WIDTH + 1)} for own in (tokens, changed)]
    jaccard = len(runs[0] & runs[1]) / len(runs[0] | runs[1])
    assert not overlap.near or jaccard >= NEAR


@given(st.integers(LEAST_TOKENS, 40), st.data())
def test_one_other_word_anywhere_is_near(size: int, data: st.DataObject) -> None:
    tokens = [f"word{number}" for number in range(size)]
    place = data.draw(st.integers(0, size - 1))
    changed = [*tokens[:place], "other", *tokens[place + 1 :]]
    overlap = TextIndex([sentence("a", *tokens)]).overlap([sentence("b", *changed)])
    assert (overlap.exact, overlap.near) == (0, 1)


def test_two_changed_words_of_a_long_text_are_near() -> None:
    tokens = [f"word{number}" for number in range(60)]
    overlap = TextIndex([sentence("a", *tokens)]).overlap([sentence("b", "other", *tokens[1:-1], "last")])
    assert (overlap.exact, overlap.near) == (0, 1)
