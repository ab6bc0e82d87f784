"""Generation; the golden sentences were read word by word for their agreement (see the comments)."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace

import pytest
from hypothesis import given, strategies as st

from harness.data.readers.conllu import Sentence, text_of
from harness_vyakarana.colorless import Generator
from harness_vyakarana.donors import DEFAULT, MODES, PAPER, DonorPool
from harness_vyakarana.grammar import Grammar
from harness_vyakarana.treebank import variant_id

# In default mode every adjective, verb and auxiliary has the gender of its noun. hi-06 has an ergative subject, so
# लिखी थी follows चिट्ठी, as छोटी does, and के/की follows the oblique पड़ोसी. hi-02: का and सोता था follow भाई.
GOLDEN = {
    ("hi-02", DEFAULT): [
        "मोहन का दोस्त पड़ोसी में बैठता था।",
        "गीता की सहेली नदी में पकड़ती थी।",
        "मोहन का कुत्ता बच्चे में बैठता था।",
        "गीता की बहन दुकान में पकड़ती थी।",
    ],
    ("hi-06", DEFAULT): [
        "राम के लड़के ने ऊँची सहेली पढ़ी थी।",
        "सीता की बच्ची ने पुराना आम सुना था।",
        "राम के लड़के ने मीठा कुत्ता खाया था।",
        "सीता की नदी ने नई बारिश पढ़ी थी।",
    ],
    # As published: auxiliaries keep their gender (नदी ... सोता था), and every masculine का is written के.
    ("hi-02", PAPER): [
        "राम के आम बाज़ार में सोता था ।",
        "गीता की सहेली नदी में सोता था ।",
        "राम के आम घर में सोता था ।",
        "गीता की बहन दुकान में सोता था ।",
    ],
    ("hi-06", PAPER): [
        "मोहन के बच्चे ने छोटी किताब लिखी थी ।",
        "सीता की बच्ची ने पुराना आम लिखी थी ।",
        "राम के बाज़ार ने मीठा कुत्ता लिखी थी ।",
        "सीता की नदी ने नई चिट्ठी लिखी थी ।",
    ],
}


def generated(
    sentences: Sequence[Sentence],
    grammar: Grammar,
    mode: str,
    *,
    seed: int = 0,
    donors: Sequence[Sentence] = (),
) -> dict[str, Sentence]:
    generator = Generator(grammar, DonorPool(grammar, mode).add(donors or sentences), seed=seed)
    made = [variant for s in sentences for variant in generator.variants(s)]
    return {sentence.sent_id or "": sentence for sentence in made}


def comment(sentence: Sentence, name: str) -> str:
    return next(c for c in sentence.comments if c.startswith(f"# {name} = ")).partition(" = ")[2]


@pytest.mark.parametrize(("sent_id", "mode"), GOLDEN)
def test_golden_sentences(
    hindi: tuple[Sentence, ...], grammars: dict[str, Grammar], sent_id: str, mode: str
) -> None:
    made = generated(hindi, grammars["hi"], mode)
    texts = [comment(made[variant_id(sent_id, number)], "text") for number in range(4)]
    assert texts == GOLDEN[sent_id, mode]


def forms(sentence: Sentence, *numbers: int) -> str:
    return " ".join(sentence.words[number - 1].form for number in numbers)


def test_what_agrees_in_default_mode(hindi: tuple[Sentence, ...], grammars: dict[str, Grammar]) -> None:
    made = generated(hindi, grammars["hi"], DEFAULT)
    masculine = {sent_id[:5]: s for sent_id, s in made.items() if sent_id.endswith("org3")}
    feminine = {sent_id[:5]: s for sent_id, s in made.items() if sent_id.endswith("org4")}
    # Possessive, auxiliary, genitive, determiner.
    assert (forms(masculine["hi-03"], 1, 7), forms(feminine["hi-03"], 1, 7)) == ("मेरा था", "मेरी थी")
    assert (forms(masculine["hi-05"], 2), forms(feminine["hi-05"], 2)) == ("का", "की")
    assert (forms(masculine["hi-09"], 2), forms(feminine["hi-09"], 2)) == ("के", "की")  # before माँ ने
    assert (forms(masculine["hi-11"], 4), forms(feminine["hi-11"], 4)) == ("ऐसा", "ऐसी")
    # के साथ has the gender of साथ, whatever precedes it.
    assert (forms(masculine["hi-11"], 2, 3), forms(feminine["hi-11"], 2, 3)) == ("के साथ", "के साथ")
    # No nominative argument: कहा has the default gender.
    assert (forms(masculine["hi-09"], 5), forms(feminine["hi-09"], 5)) == ("कहा", "कहा")
    # A pronoun shows no gender, and its verb and auxiliary turn together.
    assert forms(masculine["hi-10"], 5) == "था"
    assert forms(feminine["hi-10"], 5) == "थी"
    # Plural: थे and थीं.
    assert forms(masculine["hi-13"], 4) == "थे"
    assert forms(feminine["hi-12"], 4) == "थीं"


def test_genders_in_paper_mode(hindi: tuple[Sentence, ...], grammars: dict[str, Grammar]) -> None:
    """Gender is rewritten on six parts of speech and on no other (the paper's counts of Masc and Fem)."""
    made = generated(hindi, grammars["hi"], PAPER)
    flips = grammars["hi"].paper.flips
    for sent_id, variant in made.items():
        source = next(s for s in hindi if s.sent_id == sent_id[:5])
        for old, new in zip(source.words, variant.words, strict=True):
            before, after = old.feature("Gender"), new.feature("Gender")
            if before is None or old.upos not in flips:
                assert after == before
            else:
                opposite = {"Masc": "Fem", "Fem": "Masc"}[before]
                assert after == {"1": before, "2": opposite, "3": "Masc", "4": "Fem"}[sent_id[-1]]
            assert {**old.features, "Gender": 0} == {**new.features, "Gender": 0}


# Determinism ------------------------------------------------------------------------------------------


@pytest.mark.thorough
@given(st.randoms(use_true_random=False), st.integers(0, 5))
def test_order_and_sharding_do_not_matter(
    hindi: tuple[Sentence, ...], grammars: dict[str, Grammar], source: random.Random, seed: int
) -> None:
    whole = generated(hindi, grammars["hi"], DEFAULT, seed=seed)
    shuffled = list(hindi)
    source.shuffle(shuffled)
    shard = shuffled[: source.randint(1, len(shuffled))]
    for sent_id, sentence in generated(shard, grammars["hi"], DEFAULT, seed=seed, donors=shuffled).items():
        assert sentence == whole[sent_id]


def test_another_seed_gives_other_donors(hindi: tuple[Sentence, ...], grammars: dict[str, Grammar]) -> None:
    first, second = (generated(hindi, grammars["hi"], DEFAULT, seed=seed) for seed in (0, 1))
    assert any(first[sent_id].words != second[sent_id].words for sent_id in first)


def test_draws_are_uniform_over_types(tamil: tuple[Sentence, ...], grammars: dict[str, Grammar]) -> None:
    """Paper mode draws from all types of the cell, the word itself among them; default mode never draws itself."""
    for mode in MODES:
        pool = DonorPool(grammars["ta"], mode).add(tamil)
        fact = pool.facts(tamil[1], pool.agreement(tamil[1]))[1]
        keys = pool.keys(fact)
        drawn = [pool.draw(keys, fact.word.form, str(number).encode())[0] for number in range(3000)]
        found = [donor.form for donor in drawn if donor is not None]
        types = set(pool.lemmas(keys[0]))
        assert fact.word.form in types
        wanted = types if mode == PAPER else types - {fact.word.form}
        assert set(found) == wanted
        for form in wanted:
            assert found.count(form) == pytest.approx(3000 / len(wanted), rel=0.2)


# Lines ------------------------------------------------------------------------------------------------


def test_misc_names_the_donor_and_loses_what_is_stale(
    hindi: tuple[Sentence, ...], grammars: dict[str, Grammar]
) -> None:
    by_id = {sentence.sent_id: sentence for sentence in hindi}
    for mode in MODES:
        for variant in generated(hindi, grammars["hi"], mode).values():
            for word in variant.words:
                items = dict(item.split("=", 1) for item in word.misc.split("|") if item != "_")
                if "Donor" in items:
                    sent_id, number = items["Donor"].split(":")
                    donor = by_id[sent_id].words[int(number) - 1]
                    assert (donor.form, donor.lemma, donor.upos) == (word.form, word.lemma, word.upos)
                    assert ("Translit" in items) == (mode == PAPER and word.upos == "NOUN")


def test_text_follows_space_after(hindi: tuple[Sentence, ...], grammars: dict[str, Grammar]) -> None:
    default = generated(hindi, grammars["hi"], DEFAULT)["hi-01-org1"]
    assert comment(default, "text") == text_of(default.tokens)
    assert comment(default, "text").endswith("थी।")
    assert default.comments[:2] == ("# newdoc id = own", "# sent_id = hi-01-org1")
    paper = generated(hindi, grammars["hi"], PAPER)["hi-01-org1"]
    assert comment(paper, "text") == " ".join(word.form for word in paper.words)


def test_a_multi_word_token_changes_with_its_word(
    tamil: tuple[Sentence, ...], grammars: dict[str, Grammar]
) -> None:
    surfaces = {"மரங்கள்": "மரங்களும்", "வீடுகள்": "வீடுகளும்", "நதிகள்": "நதிகளும்"}
    for mode in MODES:
        for sent_id, variant in generated(tamil, grammars["ta"], mode).items():
            for token in variant.tokens:
                if token.span is not None:
                    inner = variant.words[token.span[0] - 1]
                    assert token.form == surfaces[inner.form], sent_id
    # A noun outside of multi-word tokens never takes a donor from inside one.
    plurals = {word.form for s in tamil for word in s.words if word.upos == "NOUN" and "Plur" in word.feats}
    assert plurals == set(surfaces)


def test_sandhi_fits_the_next_word(tamil: tuple[Sentence, ...], grammars: dict[str, Grammar]) -> None:
    doubled = {"க": "க்", "ச": "ச்", "த": "த்", "ப": "ப்"}
    seen = set()
    for variant in generated(tamil, grammars["ta"], DEFAULT).values():
        for word, following in zip(variant.words, variant.words[1:], strict=False):
            if word.feature("Case") == "Acc":
                ending = doubled.get(following.form[0], "ை")
                assert word.form.endswith(ending), (word.form, following.form)
                seen.add(ending)
    assert seen == {"க்", "ச்", "த்", "ப்", "ை"}


def test_the_report_counts_every_step(hindi: tuple[Sentence, ...], grammars: dict[str, Grammar]) -> None:
    generator = Generator(grammars["hi"], DonorPool(grammars["hi"], DEFAULT).add(hindi))
    for sentence in hindi:
        generator.variants(sentence)
    report = generator.report
    assert report.written == 4 * len(hindi)
    assert report.words["NOUN"] == 4 * sum(word.upos == "NOUN" for s in hindi for word in s.words)
    assert report.inflected["AUX"] > 0
    nouns = sum(count for (upos, _), count in report.stepped.items() if upos == "NOUN")
    assert nouns + report.without_donor["NOUN"] == report.words["NOUN"]
    assert report.genders[2, "Fem"] == 0
    assert report.genders[0, "Masc"] + report.genders[0, "Fem"] == sum(
        word.feature("Gender") is not None for s in hindi for word in s.words
    )


def test_the_ladder_is_climbed_where_a_cell_is_thin(
    hindi: tuple[Sentence, ...], grammars: dict[str, Grammar]
) -> None:
    """Without Person on the donors, nouns are found one step down; the step is counted."""
    donors = []
    for sentence in hindi:
        words = tuple(word._replace(feats=word.feats.replace("|Person=3", "")) for word in sentence.words)
        donors.append(replace(sentence, words=words, sent_id=f"x{sentence.sent_id}"))
    generator = Generator(grammars["hi"], DonorPool(grammars["hi"], DEFAULT).add(donors))
    generator.variants(hindi[1])
    assert (generator.report.stepped["NOUN", 0], generator.report.stepped["NOUN", 1]) == (0, 8)
