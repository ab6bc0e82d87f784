from __future__ import annotations

import re

import pytest

from harness.models.options import SamplingOptions
from harness.prompts.answer_regex import answer_regex


@pytest.mark.parametrize(
    ("pattern", "text", "expected"),
    [
        (r"answer is \(?([A-D])\)?", "The answer is (B).", "B"),
        (r"answer is ([A-D])", "The answer is A. No: the answer is C.", "C"),
        (r"[A-D]$", "so it is D", "D"),
        (r"####\s*(-?[\d,.]+)", "so #### 1,234", "1,234"),
        (r"yes=(\d)|no=(\d)", "no=7", "7"),
        (r"answer is ([A-D])", "I do not know", None),
    ],
)
def test_the_last_match_is_found(pattern: str, text: str, expected: str | None) -> None:
    assert answer_regex(pattern).find(text) == expected


@pytest.mark.parametrize(
    "pattern",
    [r"(a+)+$", r"(a|a)*b", r"(a|aa)+$", r"a*a*a*a*b", "a?" * 40 + "a" * 40, r"((a{1,30}){1,30}){9}b", "["],
)
def test_expressions_that_could_hang_are_rejected(pattern: str) -> None:
    with pytest.raises(ValueError, match=r"could take very long|not a regular expression"):
        answer_regex(pattern)


@pytest.mark.parametrize("pattern", [r"a*b", r"a*a*b", r"(?:ab|ac)c*d", r"a{1,9}a{1,9}b"])
def test_only_as_much_is_searched_as_is_short(pattern: str) -> None:
    found = answer_regex(pattern)
    assert 500 <= found.length <= 4000
    assert found.find("b" + "a" * 10_000) is None
    assert re.search(pattern, "x" * found.length + "b") is None or found.find("x" * 5000 + "b") == "b"


def test_the_options_are_those_of_all_models_that_write() -> None:
    from harness_hf.options import CausalOptions, Seq2SeqOptions
    from harness_vllm.options import ChatOptions, VllmOptions

    names = {"max_tokens", "temperature", "top_p", "stop", "system", "answer_regex"}
    assert names <= SamplingOptions.model_fields.keys()
    for options in (CausalOptions, Seq2SeqOptions, ChatOptions, VllmOptions):
        assert names <= options.model_fields.keys()
