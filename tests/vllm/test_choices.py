"""Choices of a server that answers in an order of its own, and the ranks of their tokens."""

from __future__ import annotations

from harness_vllm.answers import read_choices
from harness_vllm.ranking import read_scores


def test_choices_are_those_of_their_prompts() -> None:
    answer = {"choices": [{"index": 1, "text": "second"}, {"index": 0, "text": "first"}]}
    choices, _ = read_choices(answer, 2, "http://server/v1")
    assert [choice.text for choice in choices] == ["first", "second"]


def test_the_likeliest_token_alone_is_greedy() -> None:
    entries = [None, {"5": {"logprob": -0.1, "rank": 1}}, {"6": {"logprob": -0.2, "rank": 2}}]
    answer = {"choices": [{"index": 0, "prompt_logprobs": entries}]}
    [scored] = read_scores(answer, [(4, 5, 6)], "prompt_logprobs", "http://server/v1")
    assert (scored.logprobs, scored.likeliest) == ((-0.1, -0.2), (True, False))
