from __future__ import annotations

import re
from typing import Any

import pytest

from harness.errors import MissingDataError, SpecError
from harness.prompts.preset import CompiledPrompt, PromptItem, compile_prompt
from harness.specs.documents import PromptSpec


def spec(**changes: Any) -> PromptSpec:
    given: dict[str, Any] = {
        "prompt": "xnli/mine",
        "tasks": ("xnli",),
        "kind": "sequence_classification",
        "formulation": "cloze",
        "description": "Mine.",
        "source": "me",
        "item": "{premise}",
        "choice": "{space}{label}",
        "literals": {
            "mul": words(space=" "),
            "en": words(**{"label.yes": "Yes", "label.no": "No"}),
            "zh": words(**{"label.yes": "是", "label.no": "不", "space": ""}),
        },
    }
    return PromptSpec.model_validate({**given, **changes})


def words(**given: str) -> dict[str, Any]:
    return {"provenance": "translated", "words": given}


ITEM = PromptItem(fields={"premise": "It rains"}, choices=("no", "yes"), gold="yes")


def fault(compiled: CompiledPrompt, *fields: str) -> str:
    with pytest.raises(SpecError) as caught:
        compiled.check_known(fields)
    [problem] = caught.value.problems
    return problem.message


def test_words_of_the_language_come_before_those_of_all_languages() -> None:
    assert compile_prompt(spec(), "en").ranking(ITEM).continuations == (" No", " Yes")
    assert compile_prompt(spec(), "zh").ranking(ITEM).continuations == ("不", "是")


def test_words_of_all_languages_alone_are_enough_for_every_language() -> None:
    numbered = {"mul": words(**{"label.yes": "1", "label.no": "0", "space": ""})}
    compiled = compile_prompt(spec(literals=numbered), "sw", policy="fail")
    assert compiled.shot(ITEM) == "It rains1"


def test_a_language_without_words_is_asked_in_english_or_rejected() -> None:
    compiled = compile_prompt(spec(), "sw")
    assert compiled.literals_language == "en"
    assert compiled.answer(ITEM) == " Yes"
    with pytest.raises(
        MissingDataError, match=re.escape("'xnli/mine' has no words in 'sw'; it has: en, zh.")
    ):
        compile_prompt(spec(), "sw", policy="fail")
    only = {"zh": words(**{"label.yes": "是", "label.no": "不", "space": ""})}
    with pytest.raises(MissingDataError, match="it has: zh"):
        compile_prompt(spec(literals=only), "sw")


def test_inherited_words_and_templates_are_replaced_by_language() -> None:
    own = spec(prompt="xnli/heir", literals={"zh": words(**{"label.yes": "对", "label.no": "错"})})
    heir = compile_prompt(own, "zh", inherited=spec())
    assert heir.ranking(ITEM).continuations == (" 错", " 对")
    assert compile_prompt(own, "en", inherited=spec()).answer(ITEM) == " Yes"
    templates = spec(templates={"zh": {"choice": "{label}！"}})
    assert compile_prompt(templates, "zh").answer(ITEM) == "是！"
    assert compile_prompt(templates, "en").answer(ITEM) == " Yes"


def test_unknown_names_and_missing_words_are_reported() -> None:
    assert "named 'premise'" in fault(compile_prompt(spec(), "en"), "hypothesis")
    assert "named 'wrod'" in fault(compile_prompt(spec(unconditional="{wrod}"), "en"), "premise")
    chosen = compile_prompt(spec(item="{connective[premise]}"), "en")
    assert fault(chosen, "premise") == "the literals in 'en' have no 'connective' (write 'connective.VALUE')"
    english = {"label.yes": "Yes", "space": " "}
    hiding = {"en": words(**english, **{"label.no": "No", "premise": "!"})}
    assert "'premise' has the name of a field" in fault(
        compile_prompt(spec(literals=hiding), "en"), "premise"
    )
    with pytest.raises(SpecError, match=re.escape("the literals in 'en' have no 'label.no'")):
        compile_prompt(spec(literals={"en": words(**english)}), "en").ranking(ITEM)
    unlabelled = PromptItem(fields=ITEM.fields, choices=ITEM.choices)
    with pytest.raises(MissingDataError, match="without a label cannot be a shot"):
        compile_prompt(spec(), "en").shot(unlabelled)


def test_choices_are_never_cut_at_the_last_letter() -> None:
    labels = tuple(f"l{number}" for number in range(30))
    many = PromptItem(fields={"premise": "x"}, choices=labels, texts=labels)
    assert len(compile_prompt(spec(choice="{choice}"), "en").ranking(many).continuations) == 30
    for listed in (spec(item="{choices}", choice="{choice}"), spec(choice="{letter}")):
        with pytest.raises(SpecError, match="an item has 30 choices, and letters end at Z"):
            compile_prompt(listed, "en").ranking(many)


def test_names_of_choices_may_have_words_and_texts() -> None:
    both = PromptItem(
        fields={"premise": "x"}, choices=("no", "yes"), texts=("text of no", "text of yes"), gold="no"
    )
    compiled = compile_prompt(spec(choice="{choice}={label}"), "en")
    assert compiled.ranking(both).continuations == ("text of no=No", "text of yes=Yes")
    assert compiled.words(both) == ("No", "Yes")
    plain = compile_prompt(spec(literals={}, choice="{choice}"), "en")
    assert plain.words(both) == ("text of no", "text of yes")


@pytest.mark.parametrize("hostile", ["{label}", "{{", "}", "{choices}", "{space}"])
def test_texts_of_items_are_put_in_as_they_are(hostile: str) -> None:
    hostile_item = PromptItem(
        fields={"premise": hostile}, choices=("no", "yes"), texts=(hostile, "b"), gold="no"
    )
    listed = compile_prompt(spec(item="{premise}\n{choices}", choice="{choice}", literals={}), "en")
    assert listed.ranking(hostile_item).context == f"{hostile}\n{{letter}}".replace(
        "{letter}", f"A. {hostile}\nB. b"
    )
    assert listed.answer(hostile_item) == hostile


def test_what_formulations_need() -> None:
    with pytest.raises(ValueError, match="ranks choices: give 'choice'"):
        spec(choice="")
    with pytest.raises(ValueError, match="'answer' is missing"):
        spec(choice="", formulation="generation")
