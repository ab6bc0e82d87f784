from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from harness.data.readers.conllu import Sentence, Token, read_sentences
from harness_vyakarana.colorless import Generator
from harness_vyakarana.donors import DEFAULT, MODES, PAPER, DonorPool
from harness_vyakarana.grammar import Grammar
from harness_vyakarana.treebank_check import check_colorless


def generated(sentences: tuple[Sentence, ...], grammar: Grammar, mode: str) -> list[Sentence]:
    generator = Generator(grammar, DonorPool(grammar, mode).add(sentences))
    return [variant for s in sentences if len(s.words) > 3 for variant in generator.variants(s)]


def with_word(sentence: Sentence, number: int, change: Callable[[Token], Token]) -> Sentence:
    changed = change(sentence.words[number - 1])
    tokens = tuple(changed if token.id == str(number) else token for token in sentence.tokens)
    return replace(sentence, tokens=tokens, words=tuple(token for token in tokens if token.is_word))


@pytest.mark.parametrize("mode", MODES)
def test_what_we_generate_passes(
    hindi: tuple[Sentence, ...], tamil: tuple[Sentence, ...], grammars: dict[str, Grammar], mode: str
) -> None:
    for source, language in ((hindi, "hi"), (tamil, "ta")):
        made = generated(source, grammars[language], mode)
        result = check_colorless(source, made, grammars[language], mode)
        assert result.violations == []
        assert (result.sentences, sum(result.changed.values()) > 20) == (len(made), True)


@pytest.mark.parametrize(
    ("number", "change", "message"),
    [
        (4, {"form": "हवा"}, "no NOUN of the split with the key of 'घर' has the form 'हवा'"),
        (5, {"form": "पर"}, "the function word 'में' became 'पर'"),
        (3, {"upos": "PROPN"}, "UPOS is not that of the source"),
        (3, {"head": "4"}, "HEAD is not that of the source"),
        (7, {"form": "थी"}, "'थी' is Fem but its noun"),
        (2, {"form": "की"}, "'की' is Fem but its noun"),
    ],
)
def test_violations_are_found(
    hindi: tuple[Sentence, ...],
    grammars: dict[str, Grammar],
    number: int,
    change: dict[str, str],
    message: str,
) -> None:
    made = generated(hindi, grammars["hi"], DEFAULT)
    position = next(i for i, s in enumerate(made) if s.sent_id == "hi-02-org1")
    made[position] = with_word(made[position], number, lambda word: word._replace(**change))
    violations = check_colorless(hindi, made, grammars["hi"], DEFAULT).violations
    assert message in " ".join(map(str, violations))
    assert {violation.sent_id for violation in violations} == {"hi-02-org1"}


def test_missing_and_foreign_variants(hindi: tuple[Sentence, ...], grammars: dict[str, Grammar]) -> None:
    made = generated(hindi, grammars["hi"], DEFAULT)
    made[0] = replace(made[0], sent_id="stranger")
    violations = [str(v) for v in check_colorless(hindi, made, grammars["hi"], DEFAULT).violations]
    assert violations == [
        "stranger: no sentence of the source has this variant",
        "hi-01-org1: the variant is missing",
    ]


def test_a_range_changes_only_with_its_words(
    tamil: tuple[Sentence, ...], grammars: dict[str, Grammar]
) -> None:
    made = generated(tamil, grammars["ta"], DEFAULT)
    position = next(i for i, s in enumerate(made) if s.sent_id == "ta-05-org1")
    words = tamil[4].words
    tokens = [made[position].tokens[0]._replace(form="x"), *words]
    made[position] = replace(made[position], tokens=tuple(tokens), words=words)
    violations = [str(v) for v in check_colorless(tamil, made, grammars["ta"], DEFAULT).violations]
    assert violations == ["ta-05-org1:1-2: the range became 'x', but none of its words changed"]


def test_the_released_treebank_passes(data_root: Path, grammars: dict[str, Grammar]) -> None:
    """CG-TTB: train from TTB's test, dev from its dev; 4672 changed words (Vyakarana, released files)."""
    changed = 0
    for made, split, sentences in (("train", "test", 480), ("dev", "dev", 320)):
        source = list(read_sentences(data_root / f"ud/UD_Tamil-TTB/ta_ttb-ud-{split}.conllu"))
        released = list(read_sentences(data_root / f"vyakarana/tamil/CG-TTB/{made}.conllu"))
        result = check_colorless(source, released, grammars["ta"], PAPER)
        assert result.violations == []
        assert result.sentences == sentences
        changed += sum(result.changed.values())
    assert changed == 4672


def test_released_donors_of_another_split_do_not_pass(data_root: Path, grammars: dict[str, Grammar]) -> None:
    folder = data_root / "ud/UD_Tamil-TTB"
    source = list(read_sentences(folder / "ta_ttb-ud-test.conllu"))
    released = list(read_sentences(data_root / "vyakarana/tamil/CG-TTB/train.conllu"))
    other = DonorPool(grammars["ta"], PAPER).add(list(read_sentences(folder / "ta_ttb-ud-dev.conllu")))
    assert len(check_colorless(source, released, grammars["ta"], PAPER, pool=other).violations) > 1000


@pytest.mark.thorough
@pytest.mark.parametrize("mode", MODES)
def test_hindi_pud_passes(data_root: Path, grammars: dict[str, Grammar], mode: str) -> None:
    source = list(read_sentences(data_root / "ud/UD_Hindi-PUD/hi_pud-ud-test.conllu"))[:300]
    made = generated(tuple(source), grammars["hi"], mode)
    assert check_colorless(source, made, grammars["hi"], mode).violations == []
