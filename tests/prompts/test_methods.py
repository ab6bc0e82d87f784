"""The method `generate` of every kind: what it lets a model write, and what it makes of the text."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from harness.data.records import (
    Answer,
    ClassificationExample,
    MarkedText,
    MultipleChoiceExample,
    Prediction,
    SpanExample,
    TaggedSentence,
)
from harness.kinds.methods import MethodContext
from harness.languages.table import known_languages
from harness.models.requests import Generated, GenerateOptions, Prompt
from harness.prompts.preset import CompiledPrompt
from harness.prompts.prompter import Prompter
from harness.running.session import Session

Compile = Callable[..., CompiledPrompt]
Write = Callable[..., tuple[list[Prediction], list[GenerateOptions]]]

XNLI = ClassificationExample(
    id="1",
    inputs={"premise": "It rains.", "hypothesis": "It pours."},
    label="neutral",
    labels=("contradiction", "entailment", "neutral"),
)
XCOPA = MultipleChoiceExample(
    id="1",
    context="It rains. What was the cause?",
    choices=("The sky is grey.", "I sing."),
    label=0,
    names=("choice1", "choice2"),
    inputs={"premise": "It rains.", "question": "cause"},
)
XQUAD = SpanExample(id="1", question="Who?", context="Ann saw Ann.", answers=(Answer(text="Ann", start=0),))
UDPOS = TaggedSentence(id="1", tokens=("Ann", "sings", "(x)"), tags=("PROPN", "VERB", "PUNCT"))
WIKIANN = TaggedSentence(id="1", tokens=("Ann", "saw", "New", "York"), tags=("B-PER", "O", "B-LOC", "I-LOC"))
RAW = MarkedText(id="1", text="Ann saw Anna in New York", spans=())


class Writes:
    """A model that writes given texts."""

    def __init__(self, texts: Sequence[str]) -> None:
        self._texts = texts
        self.options: list[GenerateOptions] = []

    def generate(self, prompts: Sequence[Prompt], options: Sequence[GenerateOptions]) -> list[Generated]:
        self.options += options
        return [
            Generated(text=text, tokens=2, finished=True)
            for text, _ in zip(self._texts, prompts, strict=True)
        ]


@pytest.fixture
def write(shipped: Session, compiled: Compile) -> Write:
    """Let a model write given texts for an example of a task, under a shipped prompt in English."""

    def written(task: str, preset: str, example: Any, *texts: str, **settings: Any) -> Any:
        spec = shipped.catalog.task(task).spec
        kind = shipped.registry.kinds.get(spec.kind)
        assert kind.prompt_item is not None
        prompter = Prompter(
            prompt=compiled(task, preset, "en"),
            item=kind.prompt_item,
            task=task,
            language="en",
            **settings,
        )
        context = MethodContext(
            spec=spec,
            language=known_languages().get("en"),
            protocol="prompted",
            seed=0,
            prompter=prompter,
        )
        method = shipped.registry.methods.get(f"{spec.kind}:generate")
        model = Writes(texts)
        return method.predict(model, [example] * len(texts), context), model.options

    return written


@pytest.mark.parametrize(
    ("task", "preset", "example", "text", "label"),
    [
        ("xnli", "mega", XNLI, " False, never", "contradiction"),
        ("xnli", "mega", XNLI, "true.", "entailment"),
        ("xnli", "mega", XNLI, "Nothing", None),
        ("xnli", "mega", XNLI, "", None),
        ("xnli", "mt5", XNLI, "1", "neutral"),
        ("xnli", "letters", XNLI, " B. True", "entailment"),
        ("xnli", "letters", XNLI, " D", None),
        ("xnli", "letters", XNLI, " True", None),
        ("xcopa", "mega", XCOPA, " I sing.", "choice2"),
        ("xcopa", "mega", XCOPA, " the sky is grey", "choice1"),
        ("xcopa", "mega", XCOPA, " Perhaps I sing.", None),
        ("xcopa", "letters", XCOPA, "(B)", "choice2"),
        ("xcopa", "mt5", XCOPA, "choice1", "choice1"),
    ],
)
def test_a_written_choice_is_its_name(
    write: Write, task: str, preset: str, example: Any, text: str, label: str | None
) -> None:
    [prediction], [free] = write(task, preset, example, text)
    assert prediction.output == {"label": label, "raw": text}
    assert prediction.unparsed == (label is None)
    assert (free.choices, free.regex) == (None, None)


@pytest.mark.parametrize(
    ("task", "preset", "example", "choices"),
    [
        ("xnli", "mega", XNLI, {"True", "False", "Neither"}),
        ("xnli", "letters", XNLI, {"A", "B", "C"}),
        ("xcopa", "mega", XCOPA, {"The sky is grey.", "I sing."}),
    ],
)
def test_a_constrained_server_may_write_a_choice_only(
    write: Write, task: str, preset: str, example: Any, choices: set[str]
) -> None:
    _, [bound] = write(task, preset, example, "x", constrained=True)
    assert (set(bound.choices or ()), bound.regex) == (choices, None)


@pytest.mark.parametrize(
    ("text", "answer", "place"),
    [
        (" Ann saw\nand more", "Ann saw", (0, 7)),
        ("Ann", "Ann", (0, 3)),
        ("\n\n Ann. \n", "Ann.", (8, 12)),
        # A generated answer need not be in the context: it is scored as it is, and has no place.
        ("Bob", "Bob", (-1, -1)),
    ],
)
def test_a_written_answer_is_its_first_line(
    write: Write, text: str, answer: str, place: tuple[int, int]
) -> None:
    [prediction], [options] = write("xquad", "default", XQUAD, text)
    output = prediction.output
    assert (output["text"], (output["start"], output["end"])) == (answer, place)
    assert (output["raw"], prediction.unparsed) == (text, False)
    assert "\n" in options.stop


def test_an_empty_answer_is_unparsed(write: Write) -> None:
    [prediction], _ = write("xquad", "default", XQUAD, " \n ")
    assert prediction.unparsed
    assert (prediction.output["text"], prediction.output["start"]) == ("", -1)


@pytest.mark.parametrize(
    ("text", "tags"),
    [
        (" Ann_PROPN sings_VERB (x)_PUNCT", ["PROPN", "VERB", "PUNCT"]),
        ("Ann_PROPN sings_VERB", None),
    ],
)
def test_tags_are_read_for_exactly_the_tokens(write: Write, text: str, tags: list[str] | None) -> None:
    [prediction], _ = write("udpos", "default", UDPOS, text)
    # A tag that no task has, so that not one token of it counts as right.
    assert prediction.output == (tags or ["O", "O", "O"])
    assert prediction.unparsed == (tags is None)


def test_a_constrained_server_must_tag_every_token(write: Write) -> None:
    _, [free] = write("udpos", "default", UDPOS, "x")
    assert free.regex is None
    _, [bound] = write("udpos", "default", UDPOS, "x", constrained=True)
    assert bound.regex is not None
    assert re.fullmatch(bound.regex, " Ann_PROPN sings_VERB (x)_PUNCT")
    assert re.fullmatch(bound.regex, "Ann_X sings_X (x)_X")
    for wrong in ("Ann_PROPN sings_VERB", "Ann_NAME sings_X (x)_X", "Ann_X sings_X x_X"):
        assert re.fullmatch(bound.regex, wrong) is None


def test_a_long_sentence_may_be_written_to_its_end(write: Write) -> None:
    tokens = ("word",) * 100
    _, [options] = write("udpos", "default", TaggedSentence(id="1", tokens=tokens, tags=None), "x")
    assert options.max_tokens == 1600
    _, [short] = write("udpos", "default", UDPOS, "x")
    assert short.max_tokens < options.max_tokens


@pytest.mark.parametrize(
    ("text", "tags"),
    [
        (" PER: Ann $$ LOC: New York", ["B-PER", "O", "B-LOC", "I-LOC"]),
        ("none", ["O"] * 4),
        ("DATE: Ann", None),
    ],
)
def test_entities_become_tags(write: Write, text: str, tags: list[str] | None) -> None:
    [prediction], [options] = write("wikiann", "default", WIKIANN, text, constrained=True)
    assert prediction.output == (tags or ["O"] * 4)
    assert prediction.unparsed == (tags is None)
    assert options.regex is None


@pytest.mark.parametrize(
    ("text", "spans"),
    [
        (" PER: Ann $$ PER: Anna $$ LOC: New York", [[0, 3, "PER"], [8, 12, "PER"], [16, 24, "LOC"]]),
        ("LOC: New York $$ PER: Ann", [[0, 3, "PER"], [16, 24, "LOC"]]),
        ("none", []),
        ("PER: Ann $$ PER: Ann", None),
        ("PER: An", None),
        ("DATE: Ann", None),
    ],
)
def test_entities_of_raw_text_have_places(write: Write, text: str, spans: list[Any] | None) -> None:
    [prediction], _ = write("wikiann_raw", "default", RAW, text)
    assert prediction.output == {"spans": spans or [], "raw": text}
    assert prediction.unparsed == (spans is None)
