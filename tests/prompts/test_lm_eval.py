"""The presets `lm_eval` and `lm_eval-bugcompat` against lm-evaluation-harness itself.

``golden/lm_eval_requests.jsonl`` is what `peer_prompts.py` wrote for ``golden/lm_eval_documents.json``. Where lm-eval
is installed, it is asked again: ``make .venv-peers/bin/lm-eval``, or the environment that ``HARNESS_TEST_PEERS`` names.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from harness.prompts.preset import CompiledPrompt, PromptItem, choose_literals
from harness.running.session import Session

AskPeer = Callable[[str, str], str]
HERE = Path(__file__).parent
DOCUMENTS = HERE / "golden" / "lm_eval_documents.json"
REQUESTS = HERE / "golden" / "lm_eval_requests.jsonl"

EXACT = {
    "xnli": "lm_eval-bugcompat",
    "xcopa": "lm_eval-bugcompat",
    "pawsx": "lm_eval",
    "xquad": "lm_eval-bugcompat",
    "mlqa": "lm_eval",
}
CORRECTED = {
    ("xnli", "ar"): {"label.contradiction"},
    ("xnli", "el"): {"question", "label.entailment", "label.contradiction"},
    ("xnli", "es"): {"label.neutral"},
    ("xcopa", "ht"): {"connective.cause"},
    ("xcopa", "ta"): {"connective.cause"},
    ("xquad", "ar"): {"context_word"},
}
"""The words that `lm_eval` has otherwise than lm-eval, all of them."""
CHOICES = {
    "xnli": ("entailment", "neutral", "contradiction"),
    "pawsx": ("0", "1"),
    "xcopa": ("choice1", "choice2"),
}
"""The order of lm-eval's choices, by our names."""

Requests = list[list[str]]


def read(text: str) -> Iterator[tuple[str, str, int, Requests]]:
    """Yield family, language, number of the document within its language, and its requests."""
    seen: dict[tuple[str, str], int] = {}
    for line in text.splitlines():
        record = json.loads(line)
        place = record["family"], record["language"]
        yield *place, seen.setdefault(place, 0), record["requests"]
        seen[place] += 1


GOLDEN = list(read(REQUESTS.read_text(encoding="utf-8")))
GIVEN: Mapping[str, Any] = json.loads(DOCUMENTS.read_text(encoding="utf-8"))


def requests(prompt: CompiledPrompt, item: PromptItem, family: str) -> Requests:
    """Return what we ask in the order of lm-eval's choices."""
    if prompt.spec.formulation == "generation":
        return [[prompt.system(item) + prompt.context(item)]]
    ranked = prompt.ranking(item)
    assert prompt.system(item) == ""
    texts = dict(zip(item.choices, ranked.continuations, strict=True))
    return [[ranked.context, texts[name]] for name in CHOICES[family]]


Ask = Callable[[str, str, str, int], Requests]


@pytest.fixture
def ask(compiled: Callable[..., CompiledPrompt], item: Callable[..., PromptItem]) -> Ask:
    def asked(family: str, preset: str, language: str, number: int) -> Requests:
        document = dict(GIVEN[family]["documents"][number])
        for name in ("label", "answers"):
            document.pop(name, None)
        return requests(compiled(family, preset, language, policy="fail"), item(family, document), family)

    return asked


def test_the_golden_file_has_all_languages() -> None:
    expected = {
        (family, language, number)
        for family, given in GIVEN.items()
        for language in given["languages"]
        for number in range(len(given["documents"]))
    }
    assert {record[:3] for record in GOLDEN} == expected
    assert {family: len(given["languages"]) for family, given in GIVEN.items()} == {
        "xnli": 15,
        "xcopa": 11,
        "pawsx": 7,
        "xquad": 12,
        "mlqa": 7,
    }


@pytest.mark.parametrize("family", EXACT)
def test_prompts_are_lm_evals_to_the_character(family: str, ask: Ask) -> None:
    for name, language, number, expected in GOLDEN:
        if name == family:
            assert ask(family, EXACT[family], language, number) == expected, (language, number)


@pytest.mark.parametrize("family", EXACT)
def test_the_corrected_preset_differs_in_its_corrected_words_only(family: str, ask: Ask) -> None:
    for name, language, number, expected in GOLDEN:
        if name == family and (family, language) not in CORRECTED:
            assert ask(family, "lm_eval", language, number) == expected, (language, number)


@pytest.mark.parametrize(("family", "language"), CORRECTED)
def test_the_corrected_words_are_those_that_are_named(
    family: str, language: str, shipped: Session, ask: Ask
) -> None:
    tables = []
    for preset in ("lm_eval", "lm_eval-bugcompat"):
        spec = shipped.catalog.prompt(family, preset)
        _, chosen = choose_literals(spec, language, inherited=shipped.catalog.inherited_prompt(spec))
        assert chosen is not None
        tables.append(chosen)
    ours, theirs = tables
    changed = {name for name in ours.words | theirs.words if ours.words.get(name) != theirs.words.get(name)}
    assert changed == CORRECTED[family, language]
    assert "ours" in ours.source
    assert "ours" not in theirs.source
    for name, code, number, expected in GOLDEN:
        if (name, code) == (family, language):
            text = json.dumps(expected, ensure_ascii=False)
            for word in changed:
                text = text.replace(f" {theirs.words[word]}", f" {ours.words[word]}")
                text = text.replace(f'"{theirs.words[word]}', f'"{ours.words[word]}')
            assert ask(family, "lm_eval", language, number) == json.loads(text)


@pytest.mark.thorough
def test_lm_eval_still_asks_what_the_golden_file_says(ask_peer: AskPeer) -> None:
    assert list(read(ask_peer("peer_prompts.py", DOCUMENTS.read_text(encoding="utf-8")))) == GOLDEN
