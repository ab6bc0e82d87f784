"""``harness tasks show TASK --render CODE``."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.conftest import Cli


def test_ranking_shows_every_choice_and_marks_the_gold_one(cli: Cli) -> None:
    status, out, err = cli("tasks", "show", "xnli", "--render", "sw")
    assert (status, err) == (0, "")
    assert out.splitlines() == [
        "prompt  xnli/default (cloze), item '1-e'",
        "words   sw (translated)",
        "context ⟦Kila Jumamosi asubuhi, wakulima huuza mboga mbichi katika soko la Lindova, sivyo?⟧",
        "  contradiction ⟦ Hapana, Siku za Jumamosi mboga zinaweza kununuliwa sokoni.⟧",
        "* entailment    ⟦ Ndiyo, Siku za Jumamosi mboga zinaweza kununuliwa sokoni.⟧",
        "  neutral       ⟦ Pia, Siku za Jumamosi mboga zinaweza kununuliwa sokoni.⟧",
    ]


def test_generation_shows_the_prompt_and_the_expected_answer(cli: Cli) -> None:
    status, out, _ = cli("tasks", "show", "wikiann", "--render", "de", "--prompt", "mt5")
    assert status == 0
    assert out.splitlines() == [
        "prompt  wikiann/mt5 (generation), item '1'",
        "words   the same in all languages",
        "context ⟦tag: Marie Curie wurde in Warschau geboren .⟧",
        "answer  ⟦PER: Marie Curie $$ LOC: Warschau⟧",
    ]


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (
            ("xnli", "--render", "de", "--prompt", "lm_eval"),
            "words   de (copied from lm-evaluation-harness 0.4.13, tasks/xnli (MIT))",
        ),
        (
            ("xcopa", "--render", "vi", "--prompt", "mt5"),
            "words   the same in all languages (native from this project)",
        ),
        (("xcopa", "--render", "sw"), "without the item ⟦kwa sababu⟧"),
        (("mlqa_cross", "--render", "de"), "words   de (translated)"),
    ],
)
def test_the_preview_shows_where_words_come_from(cli: Cli, arguments: tuple[str, ...], line: str) -> None:
    status, out, _ = cli("tasks", "show", *arguments)
    assert status == 0
    assert line in out.splitlines()


def test_items_of_the_user_and_words_in_english_where_there_are_none(cli: Cli) -> None:
    folder = Path("mine/xcopa/data/qu")
    folder.mkdir(parents=True)
    row = '{"idx": 7, "premise": "{a}.", "choice1": "{{b}}", "choice2": "C.", "question": "effect", "label": null}\n'
    (folder / "test.qu.jsonl").write_text(row, encoding="utf-8")
    status, out, _ = cli("tasks", "show", "xcopa", "--render", "qu", "--data", "mine")
    assert status == 0
    assert out.splitlines() == [
        "prompt  xcopa/default (cloze), item '7'",
        "words   en (native); there are none in qu",
        "context ⟦{a} so⟧",
        "without the item ⟦so⟧",
        "  choice1 ⟦ {{b}}⟧",
        "  choice2 ⟦ C.⟧",
    ]
    _, out, _ = cli("tasks", "show", "xcopa", "--render", "qu", "--data", "mine", "--prompt", "mt5")
    assert out.splitlines()[-1] == "answer  unknown: the item is not labelled"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("xnli", "--render", "swa"), "Error: No language of 'xnli' named 'swa'."),
        (("xnli", "--render", "sw", "--prompt", "lmeval"), "Error: No prompt of 'xnli' named 'lmeval'."),
        (("xnil", "--render", "sw"), "Error: No task named 'xnil'."),
        (("tatoeba", "--render", "de"), "Error: The task 'tatoeba' cannot be prompted"),
        (("xnli", "--render", "sw", "--data", "nowhere"), "Error: The data folder 'nowhere' does not exist."),
        (("xnli", "--render", "th"), "Error: The embedded sample has no 'xnli' in 'th' (test)"),
    ],
)
def test_bad_input_is_one_sentence(cli: Cli, arguments: tuple[str, ...], message: str) -> None:
    status, out, err = cli("tasks", "show", *arguments)
    assert (status, out) == (1 if "th" in arguments else 2, "")
    assert err.startswith(message)
    assert len(err.splitlines()) == 1


def test_a_broken_prompt_is_reported_with_its_line(cli: Cli) -> None:
    text = """prompt: xnli/mine
tasks: [xnli, xcopa]
kind: sequence_classification
formulation: cloze
description: Mine.
source: me
item: "{premis}"
choice: " {label}"
literals:
  en:
    provenance: native
    words: {label.entailment: "Yes", label.neutral: Maybe}
"""
    Path("mine.yaml").write_text(text, encoding="utf-8")
    status, _, err = cli("tasks", "validate", "mine.yaml")
    assert status == 2
    assert "No field or literal of the template named 'premis'. Did you mean 'premise'?" in err
    assert (
        "line 2: tasks.1: 'xcopa' is of the kind multiple_choice, and this prompt is for sequence_classification"
        in err
    )
    Path("mine.yaml").write_text(text.replace("premis}", "premise}").replace(", xcopa", ""), encoding="utf-8")
    _, _, err = cli("tasks", "validate", "mine.yaml")
    assert "line 10: literals.en: the literals in 'en' have no 'label.contradiction'" in err
