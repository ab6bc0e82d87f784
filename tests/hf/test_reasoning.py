"""A decoder that reasons before its answer: what is separated, what the limits and stop strings are about."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.errors import UsageError
from harness.models.requests import GenerateOptions, Turn

from .conftest import Open
from .thinking_model import COLOURS, OPENING_TEMPLATE, reasoning_of, save_thinking_model

pytestmark = pytest.mark.thorough

ANSWER = GenerateOptions(max_tokens=4, stop=("\n",))


@pytest.fixture(scope="module", params=["plain marks", "special marks"])
def folder(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    special = request.param == "special marks"
    return save_thinking_model(tmp_path_factory.mktemp("thinks"), special_marks=special)


def asked(colour: str) -> tuple[Turn, ...]:
    return (Turn(role="user", text=f"say {colour}"),)


def test_reasoning_is_separated_and_no_stop_string_ends_it(folder: Path, open_decoder: Open) -> None:
    answers = open_decoder(folder).generate([asked(one) for one in COLOURS], [ANSWER] * len(COLOURS))
    assert [answer.text for answer in answers] == list(COLOURS)
    assert [answer.reasoning for answer in answers] == [reasoning_of(one) for one in COLOURS]
    for answer in answers:
        assert answer.finished
        assert ANSWER.max_tokens < answer.reasoning_tokens < answer.tokens


def test_the_switch_of_the_template(folder: Path, open_decoder: Open) -> None:
    model = open_decoder(folder, thinking="off")
    answers = model.generate([asked(one) for one in COLOURS], [ANSWER] * len(COLOURS))
    assert [(answer.text, answer.reasoning, answer.reasoning_tokens) for answer in answers] == [
        (one, None, 0) for one in COLOURS
    ]
    assert open_decoder(folder).identity() != model.identity()
    assert open_decoder(folder, thinking="auto").identity() == open_decoder(folder).identity()


def test_a_template_that_writes_the_first_mark(folder: Path, open_decoder: Open, tmp_path: Path) -> None:
    template = tmp_path / "opens.jinja"
    template.write_text(OPENING_TEMPLATE)
    model = open_decoder(folder, chat_template=template)
    [whole, cut] = [
        model.generate([asked("blue")], [ANSWER])[0],
        open_decoder(folder, chat_template=template, reasoning_budget=5).generate([asked("blue")], [ANSWER])[
            0
        ],
    ]
    assert (whole.text, whole.reasoning, whole.finished) == ("blue", reasoning_of("blue"), True)
    assert (cut.text, cut.finished, cut.tokens, cut.reasoning_tokens) == ("", False, 5, 5)
    assert cut.reasoning
    assert reasoning_of("blue").startswith(cut.reasoning)


def test_both_limits(folder: Path, open_decoder: Open) -> None:
    [cut] = open_decoder(folder, reasoning_budget=6).generate([asked("red")], [ANSWER])
    assert (cut.text, cut.finished, cut.tokens) == ("", False, 6)
    [whole] = open_decoder(folder).generate([asked("red")], [GenerateOptions(max_tokens=50)])
    assert (whole.text, whole.finished) == ("red\nsaid", True)
    [short] = open_decoder(folder).generate([asked("red")], [GenerateOptions(max_tokens=1)])
    assert (short.tokens - short.reasoning_tokens, short.finished) == (1, False)
    assert "red\nsaid".startswith(short.text)


def test_answers_do_not_depend_on_the_batch(folder: Path, open_decoder: Open) -> None:
    model = open_decoder(folder)
    prompts = [asked(one) for one in COLOURS[:4]] + ["plain text without a template"] * 2
    options = [GenerateOptions(max_tokens=3 + number, stop=("\n",)) for number in range(6)]
    together = model.generate(prompts, options)
    assert together == [
        model.generate([prompt], [own])[0] for prompt, own in zip(prompts, options, strict=True)
    ]


def test_marks_of_a_prompt_and_of_the_user(folder: Path, open_decoder: Open) -> None:
    own = GenerateOptions(max_tokens=30, reasoning_markers=("the word", "so it is"))
    [by_prompt] = open_decoder(folder, thinking="off").generate(["user: say pink\nassistant: <think>"], [own])
    [by_user] = open_decoder(folder, thinking="off", reasoning_markers="the word,so it is").generate(
        ["user: say pink\nassistant: <think>"], [GenerateOptions(max_tokens=30)]
    )
    assert by_prompt == by_user
    assert by_prompt.reasoning is not None
    with pytest.raises(ValueError, match="reasoning_markers"):
        open_decoder(folder, reasoning_markers="<a>")


def test_a_switch_that_the_template_does_not_read_is_rejected(folder: Path, open_decoder: Open) -> None:
    with pytest.raises(UsageError, match="reasoning_effort"):
        open_decoder(folder, reasoning_effort="low")
