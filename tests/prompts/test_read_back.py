"""What the renderer writes is read back: gold answer in, 100 out, for tokens and texts of all of Unicode."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

import pytest
from hypothesis import assume, example, given, strategies as st

from harness.data.records import (
    Answer,
    MarkedText,
    MultipleChoiceExample,
    NumericQuestion,
    SourceText,
    SpanExample,
    TaggedSentence,
    TaggedSpan,
)
from harness.kinds.methods import MethodContext
from harness.metrics.metric import MetricContext
from harness.models.requests import Generated, GenerateOptions, Prompt
from harness.prompts.preset import compile_prompt
from harness.prompts.prompter import Prompter
from harness.prompts.tagged import (
    _is_border,
    read_entities,
    read_spans,
    read_tagged,
    tagged_text,
)
from harness.running.session import Session, open_session

TAGS = ("NOUN", "VERB", "X", "XX")
TYPES = ("PER", "LOC")
TOKEN = st.text(min_size=1, max_size=8) | st.sampled_from(
    [
        "10\u00a0000",
        "10\u202f000",
        "山田\u3000太郎",
        "\u00a0",
        *"a_b _ $$ : LOC: e\u0301".split(),
        "a\u2028b",
        "\x85",
    ]
)


class Writer:
    """A model that writes the given text, and ignores where it should stop."""

    def __init__(self, text: str) -> None:
        self._text = text

    def generate(self, prompts: Sequence[Prompt], options: Sequence[GenerateOptions]) -> list[Generated]:
        return [Generated(text=self._text, tokens=3, finished=True) for _ in prompts]


@cache
def session() -> Session:
    return open_session()


def scored(
    task: str, preset: str, item: Any, metric: str, *, chat: bool = False, language: str = "en"
) -> float:
    """Return the score of an item whose gold answer, as shots show it, is what the model writes."""
    spec, registry = session().catalog.task(task).spec, session().registry
    kind = registry.kinds.get(spec.kind)
    assert kind.prompt_item is not None
    prompt_spec = session().catalog.prompt(task, preset)
    inherited = session().catalog.inherited_prompt(prompt_spec)
    prompt = compile_prompt(prompt_spec, language, inherited=inherited)
    prompter = Prompter(prompt=prompt, item=kind.prompt_item, task=task, language="en", chat=chat)
    answer = prompt.answer(kind.prompt_item(item))
    english = registry.languages.get("en")
    context = MethodContext(
        spec=spec, language=english, cell_language=english, protocol="prompted", seed=0, prompter=prompter
    )
    [method] = [own for own in registry.methods if (own.kind, own.name) == (spec.kind, "generate")]
    [prediction] = method.predict(
        Writer(answer.strip() if chat else f"{answer}{(prompt.stop or (chr(10),))[0]} 4 Text: x\n"),
        [item],
        context,
    )
    assert not prediction.unparsed
    found = registry.metrics.get(metric).compute(
        [prediction.output], [kind.reference(item)], MetricContext(language="en", labels=spec.label_names)
    )
    return 100 * float(found.value)


def unique_stretches(tokens: Sequence[str]) -> bool:
    """Return whether no two stretches of the sentence have the same words, so that every entity has one place."""
    ends = range(1, len(tokens) + 1)
    joined = ["".join("".join(tokens[start:end]).split()) for end in ends for start in range(end)]
    return len(set(joined)) == len(joined)


@given(st.lists(st.tuples(TOKEN, st.sampled_from(["NOUN", "VERB", "X", "PUNCT"])), min_size=1, max_size=6))
@example([("Il", "NOUN"), ("a", "VERB"), ("10\u00a0000", "X"), ("livres", "NOUN")])
@example([("\u3000", "X"), ("a_NOUN", "VERB"), ("山田\u3000太郎", "NOUN")])
def test_tags_of_all_tokens(pairs: list[tuple[str, str]]) -> None:
    item = TaggedSentence(
        id="1", tokens=tuple(word for word, _ in pairs), tags=tuple(tag for _, tag in pairs)
    )
    assert scored("udpos", "default", item, "token_accuracy") == 100.0


@st.composite
def entities(draw: st.DrawFn) -> TaggedSentence:
    tokens = draw(st.lists(TOKEN, min_size=1, max_size=6))
    assume(unique_stretches(tokens))
    tags: list[str] = []
    while len(tags) < len(tokens):
        length = draw(st.integers(1, len(tokens) - len(tags)))
        kind = draw(st.sampled_from([None, *TYPES]))
        tags += ["O"] * length if kind is None else [f"B-{kind}"] + [f"I-{kind}"] * (length - 1)
    assume(set(tags) != {"O"})  # the score of a sentence without entities is 0
    return TaggedSentence(id="1", tokens=tuple(tokens), tags=tuple(tags))


@given(entities(), st.booleans())
@example(
    TaggedSentence(
        id="1",
        tokens=("Le\u202fHavre", "et", "$$", "LOC:", "x"),
        tags=("B-LOC", "O", "B-PER", "I-PER", "I-PER"),
    ),
    True,
)
def test_entities_of_all_tokens(item: TaggedSentence, chat: bool) -> None:
    assert scored("wikiann", "default", item, "chunk_f1", chat=chat) == 100.0


@pytest.mark.parametrize("space", ["\u00a0", "\u202f", "\u3000", "\u2009", "  "])
def test_white_space_of_any_kind_and_composed_forms_are_equal(space: str) -> None:
    assert read_tagged("é_X", ["e\u0301"], TAGS) == ["X"]
    assert read_entities("LOC: é", ["e\u0301"], TYPES) == ["B-LOC"]
    tokens = ["Il", f"10{space}000", f"Le{space}Havre"]
    tags = ["X", "NOUN", "NOUN"]
    for written in (tagged_text(tokens, tags), " ".join(tagged_text(tokens, tags).split())):
        assert read_tagged(written, tokens, TAGS) == tags
        assert read_tagged(f"{written} ._X", tokens, TAGS) is None
    for written in (f"Le{space}Havre", "Le Havre"):
        assert read_entities(f"LOC: {written}", tokens, TYPES) == ["O", "O", "B-LOC"]
        source = " ".join(tokens)
        assert read_spans(f"LOC: {written}", source, TYPES) == [(source.index("Le"), len(source), "LOC")]


@given(st.text(min_size=1, max_size=12), st.text(min_size=1, max_size=6), st.text(max_size=12))
@example("x\n", "Le\u2028Havre", " y")
@example("", "10\u202f000", "")
def test_spans_of_all_texts(before: str, words: str, after: str) -> None:
    text = before + words + after
    shown = "".join(words.split())
    assume(shown and words == words.strip() and "".join(text.split()).count(shown) == 1 and "\r" not in text)
    ends = (len(before), len(before) + len(words))
    assume(all(_is_border(text, end) for end in ends))
    span = TaggedSpan(start=len(before), end=len(before) + len(words), tag="LOC")
    item = MarkedText(id="1", text=text, spans=(span,))
    assert scored("wikiann_raw", "default", item, "span_f1") == 100.0


@given(st.text(min_size=1, max_size=20))
@example("Le\nHavre")
@example("10\u202f000")
def test_answers_and_texts_on_one_line(text: str) -> None:
    assume(any(character.isalnum() for character in text))
    answer = SpanExample(id="1", question="q", context=f"c {text}", answers=(Answer(text=text, start=2),))
    assert scored("xquad", "default", answer, "exact_match") == 100.0
    written = SourceText(id="1", source="s", reference=text, source_name="A", target_name="B")
    item = prompt_item_of("ntrex_mt", written)
    assert "\n" not in compile_prompt(session().catalog.prompt("ntrex_mt", "default"), "en").answer(item)


def prompt_item_of(task: str, item: Any) -> Any:
    kind = session().registry.kinds.get(session().catalog.task(task).spec.kind)
    assert kind.prompt_item is not None
    return kind.prompt_item(item)


@given(st.integers(-(10**9), 10**9))
def test_numbers(value: int) -> None:
    item = NumericQuestion(id="1", question="q", solution="", value=str(value))
    assert scored("mgsm", "direct", item, "exact_value") == 100.0


@given(st.lists(st.text(min_size=1, max_size=9), min_size=2, max_size=2), st.sampled_from([0, 1]))
def test_letters_of_all_choices(choices: list[str], label: int) -> None:
    item = MultipleChoiceExample(
        id="1",
        context="c",
        choices=tuple(choices),
        label=label,
        names=("choice1", "choice2"),
        inputs={"premise": "p", "question": "cause"},
    )
    assert scored("xcopa", "letters", item, "accuracy", language="it") == 100.0
