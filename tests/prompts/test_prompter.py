"""Shots depend on seed, task, language and item alone; they come before the item as a text or as turns."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, strategies as st

from harness.data.records import ClassificationExample
from harness.models.requests import Turn
from harness.prompts.preset import CompiledPrompt, PromptItem, compile_prompt
from harness.prompts.prompter import Prompter, item_seed
from harness.specs.documents import Literals, PromptSpec

LABELS = ("yes", "no")
NAMED = ("c1", "c2")


def _example(identifier: str, label: str | None = "yes") -> ClassificationExample:
    return ClassificationExample(id=identifier, inputs={"text": f"text {identifier}"}, label=label)


def _item(example: Any) -> PromptItem:
    return PromptItem(fields=example.inputs, choices=LABELS, gold=example.label)


def _prompt(language: str = "en", **changed: Any) -> CompiledPrompt:
    words = {"en": ("yes", "no"), "de": ("ja", "nein")}
    literals = {
        code: Literals(provenance="native", words={"label.yes": yes, "label.no": no})
        for code, (yes, no) in words.items()
    }
    given = {
        "prompt": "own/p",
        "tasks": ("own",),
        "kind": "sequence_classification",
        "formulation": "cloze",
        "description": "d",
        "source": "s",
        "system": "Judge.\n\n",
        "item": "Q: {text}\nA:",
        "choice": " {label}",
        "literals": literals,
        "max_tokens": 7,
    }
    return compile_prompt(PromptSpec(**{**given, **changed}), language)


POOL = tuple(_example(f"shot{number}", LABELS[number % 2]) for number in range(12))


def _prompter(**changed: Any) -> Prompter:
    settings = {"prompt": _prompt(), "item": _item, "task": "own", "language": "en", "pool": POOL, **changed}
    return Prompter(**settings)


def _texts(prompter: Prompter, identifier: str = "1", count: int = 3) -> list[str]:
    return [shot.fields["text"] for shot in prompter.shots_of(_example(identifier), count)]


def test_a_seed_is_the_same_in_every_process() -> None:
    """Frozen, since stored scores depend on it: a changed number here changes every run with shots."""
    assert item_seed(42, "xnli", "sw", "1-e") == 0x07CC4373
    assert item_seed(42, "xnli", None, "1-e") == item_seed(42, "xnli", "", "1-e")


@given(
    st.tuples(st.integers(0, 9), st.sampled_from("ab"), st.sampled_from(["en", None]), st.text(max_size=3)),
    st.tuples(st.integers(0, 9), st.sampled_from("ab"), st.sampled_from(["en", None]), st.text(max_size=3)),
)
def test_seeds_are_those_of_their_arguments(left: Any, right: Any) -> None:
    assert 0 <= item_seed(*left) < 2**32
    assert (item_seed(*left) == item_seed(*right)) == (left == right)


def test_shots_depend_on_seed_task_language_and_item() -> None:
    usual = _texts(_prompter(shots=3))
    assert usual == _texts(_prompter(shots=3))
    assert len(set(usual)) == 3
    others = [
        _texts(_prompter(shots=3, seed=1)),
        _texts(_prompter(shots=3, task="other")),
        _texts(_prompter(shots=3, language="de")),
        _texts(_prompter(shots=3), "2"),
    ]
    assert all(other != usual for other in others)


@given(st.integers(0, 12), st.integers(0, 12))
def test_fewer_shots_are_the_first_of_more(more: int, fewer: int) -> None:
    prompter = _prompter(shots=more)
    assert _texts(prompter, count=fewer) == _texts(prompter, count=more)[:fewer]


def test_there_are_no_more_shots_than_the_pool_has() -> None:
    texts = _texts(_prompter(shots=50), count=50)
    assert sorted(texts) == sorted(example.inputs["text"] for example in POOL)


@pytest.mark.parametrize("chat", [False, True])
def test_without_shots_only_the_item_is_asked(chat: bool) -> None:
    asked = _prompter(chat=chat).generation(_example("1", None), 0)
    expected: Any = "Judge.\n\nQ: text 1\nA:"
    if chat:
        expected = (Turn(role="system", text="Judge."), Turn(role="user", text="Q: text 1\nA:"))
    assert asked == expected


def test_shots_come_before_the_item_with_their_answers() -> None:
    prompter = _prompter(shots=2)
    shots = prompter.shots_of(_example("1"), 2)
    before = "".join(f"Q: {shot.fields['text']}\nA: {shot.gold}\n\n" for shot in shots)
    ranked = prompter.ranking(_example("1"), 2)
    assert ranked.context == f"Judge.\n\n{before}Q: text 1\nA:"
    assert ranked.continuations == (" yes", " no")
    assert prompter.generation(_example("1"), 2) == ranked.context


def test_a_conversation_has_turns_for_every_shot() -> None:
    prompter = _prompter(shots=2, chat=True)
    shots = prompter.shots_of(_example("1"), 2)
    asked = prompter.generation(_example("1"), 2)
    expected = [Turn(role="system", text="Judge.")]
    for shot in shots:
        assert shot.gold is not None
        expected += [
            Turn(role="user", text=f"Q: {shot.fields['text']}\nA:"),
            Turn(role="assistant", text=shot.gold),
        ]
    assert asked == (*expected, Turn(role="user", text="Q: text 1\nA:"))


def test_a_prompt_without_a_system_text_has_no_system_turn() -> None:
    asked = _prompter(prompt=_prompt(system=""), chat=True).generation(_example("1"), 0)
    assert asked == (Turn(role="user", text="Q: text 1\nA:"),)


def test_the_context_without_the_item_stays_without_shots() -> None:
    """Sums of PMI are asked once for all items, so the shots before them must not enter."""
    prompter = _prompter(prompt=_prompt(unconditional="A:"), shots=3)
    assert prompter.ranking(_example("1"), 3).unconditional == "A:"


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({}, (7, ("\n",), None, None)),
        ({"constrained": True}, (7, ("\n",), LABELS, "x+")),
        # A chat model ends its turn itself, and a line end in it is no end of the answer.
        ({"chat": True}, (7, (), None, None)),
    ],
)
def test_how_an_answer_is_generated(settings: dict[str, Any], expected: tuple[Any, ...]) -> None:
    options = _prompter(**settings).options(_example("1"), choices=LABELS, regex="x+")
    assert (options.max_tokens, options.stop, options.choices, options.regex) == expected
    assert options.temperature == 0.0


def test_every_item_is_generated_with_its_seed() -> None:
    prompter = _prompter()
    seeds = [prompter.options(_example(name)).seed for name in "abc"]
    assert len(set(seeds)) == 3
    assert seeds == [item_seed(0, "own", "en", name) for name in "abc"]


def test_parallel_items_have_the_same_shots_in_all_languages(compiled: Callable[..., Any]) -> None:
    english = _prompter(language=None, shots=3)
    swahili = _prompter(language=None, shots=3, prompt=compiled("xnli", "default", "sw"))
    assert _texts(english) == _texts(swahili)


# Overlap with the tested item -------------------------------------------------------------------------


@given(st.integers(0, 11), st.integers(1, 12), st.sampled_from(["drawn", "file"]), st.booleans())
def test_an_item_is_never_its_own_shot(number: int, shots: int, order: str, is_translation: bool) -> None:
    """Case, width and white space make no other text; the others are the shots of a pool without it."""
    text = f"text shot{number}"
    shown = "noch ein Text" if is_translation else f" TEXT\u3000{text.partition(' ')[2].upper()}\n"
    item = ClassificationExample(id="x", inputs={"text": shown}, label=None)
    twins = {"x": frozenset({text})} if is_translation else {}
    prompter = _prompter(prompt=_prompt(shot_order=order), shots=shots, twins=twins)
    drawn = [shot.fields["text"] for shot in prompter.shots_of(item, shots)]
    assert text not in drawn
    assert len(drawn) == len(set(drawn)) == min(shots, 11)
    assert prompter.excluded_shots(item) <= 1
    others = _prompter(prompt=_prompt(shot_order=order), shots=shots)
    usual = [shot.fields["text"] for shot in others.shots_of(_example("x"), shots)]
    assert prompter.excluded_shots(item) == (text in usual)
    assert [own for own in usual if own != text] == drawn[: len(usual) - (text in usual)]


def test_pairs_and_choices_in_another_order_are_the_same_item() -> None:
    pair = PromptItem(fields={"a": "One.", "b": "Two."})
    assert pair.text_key == PromptItem(fields={"a": "two.", "b": "one."}).text_key
    assert pair.text_key != PromptItem(fields={"a": "One.", "b": "Three."}).text_key
    tagged = PromptItem(fields={"tokens": "a b", "tagged": "a_X b_X", "entities": ""}, gold="a_X b_X")
    assert tagged.text_key == PromptItem(fields={"tokens": "a b"}).text_key
    choices = [
        PromptItem(fields={"q": "?"}, choices=NAMED, texts=texts) for texts in (("x", "y"), ("y", "x"))
    ]
    assert choices[0].text_key == choices[1].text_key
