"""What a speaker found wrong in generated sentences, and what keeps it from coming back."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.data.readers.conllu import Sentence, Token, read_sentences
from harness_vyakarana.agreement import Agreement
from harness_vyakarana.colorless import Generator, apply_sandhi
from harness_vyakarana.donors import DEFAULT, DonorPool
from harness_vyakarana.grammar import Grammar

MASC, FEM = "Case=Nom|Gender=Masc|Number=Sing", "Case=Nom|Gender=Fem|Number=Sing"
HINDI = f"""\
# sent_id = like
1 यह यह PRON Number=Sing 4 nsubj
2 बादल बादल NOUN {MASC} 4 obl
3 जैसा जैसा ADP _ 2 case
4 होता होना VERB Gender=Masc|Number=Sing 0 root
5 है है AUX Number=Sing 4 aux

# sent_id = predicate
1 पौधा पौधा NOUN {MASC} 2 nsubj
2 राम राम PROPN _ 0 root
3 का का ADP _ 2 case
4 था था AUX Gender=Masc|Number=Sing 2 cop

# sent_id = plural
1 कुछ कुछ DET _ 2 det
2 प्रश्न प्रश्न NOUN {MASC} 3 nsubj
3 कठिन कठिन ADJ _ 0 root
4 थे था AUX Gender=Masc|Number=Plur 3 cop

# sent_id = unmarked
1 पक्षी पक्षी NOUN Case=Nom|Gender=Masc|Number=Plur 2 nsubj
2 देखे देखना VERB Number=Plur 0 root
3 गए जाना AUX Number=Plur 2 aux:pass
4 थे था AUX Number=Plur 2 aux

# sent_id = women
1 लताएं लता NOUN Case=Nom|Gender=Fem|Number=Plur 2 nsubj
2 सूखीं सूखना VERB Gender=Fem|Number=Plur 0 root

# sent_id = donors
1 नदी नदी NOUN {FEM} 3 nsubj
2 थक थक VERB _ 3 compound
3 गई जाना VERB Gender=Fem|Number=Sing 0 root
4 धूप धूप NOUN {FEM} 3 obl
5 में में ADP _ 4 case
"""


@pytest.fixture(scope="module")
def sentences(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Sentence]:
    lines = []
    for line in HINDI.splitlines():
        if not line or line.startswith("#"):
            lines.append(line)
            continue
        number, form, lemma, upos, feats, head, deprel = line.split()
        lines.append("\t".join([number, form, lemma, upos, "_", feats, head, deprel, "_", "_"]))
    path = Path(tmp_path_factory.mktemp("repair")) / "hi.conllu"
    path.write_text("\n".join(lines) + "\n\n", encoding="utf-8")
    return {sentence.sent_id or "": sentence for sentence in list(read_sentences(path))}


@pytest.mark.parametrize(
    ("name", "variant", "expected"),
    [
        ("like", "opposite", "यह धूप जैसी होती है"),
        ("predicate", "opposite", "नदी राम की थी"),
        # Both are singular by their feature: a feminine singular would contradict थे.
        ("plural", "opposite", "कुछ प्रश्न कठिन थे"),
        ("plural", "Fem", "कुछ प्रश्न कठिन थे"),
        # No word of the verb has a Gender, but its forms show one.
        ("unmarked", "opposite", "लताएं देखी गई थीं"),
        ("unmarked", "Fem", "लताएं देखी गई थीं"),
    ],
)
def test_words_agree_in_every_variant(
    sentences: dict[str, Sentence], grammars: dict[str, Grammar], name: str, variant: str, expected: str
) -> None:
    grammar = grammars["hi"]
    generator = Generator(grammar, DonorPool(grammar, DEFAULT).add(sentences.values()))
    made = generator.variants(sentences[name])[grammar.variants.index(variant)]
    assert " ".join(word.form for word in made.words) == expected


def test_a_noun_that_its_verb_contradicts_is_no_donor(
    sentences: dict[str, Sentence], grammars: dict[str, Grammar]
) -> None:
    pool = DonorPool(grammars["hi"], DEFAULT)
    for name, settled in (("plural", False), ("predicate", True)):
        agreement = Agreement(sentences[name], grammars["hi"], pool.paradigms)
        noun = next(n for n, word in enumerate(sentences[name].words, start=1) if word.upos == "NOUN")
        assert agreement.settled(noun) is settled
        assert (agreement.controller(4) == noun) is settled


@pytest.mark.parametrize(
    ("form", "feats", "settled"),
    [
        ("लता", "Gender=Fem|Number=Sing", True),
        ("लताओं", "Gender=Fem|Number=Plur", True),
        ("लताएं", "Gender=Fem|Number=Plur", False),  # before an adposition it is लताओं
        ("पौधे", "Gender=Masc|Number=Sing", True),
        ("पौधा", "Gender=Masc|Number=Sing", False),  # before an adposition it is पौधे
    ],
)
def test_a_direct_form_before_an_adposition_is_a_fault(
    grammars: dict[str, Grammar], form: str, feats: str, settled: bool
) -> None:
    noun = token(1, form, feats, "NOUN")
    words = (noun, token(2, "में", "_", "ADP")._replace(deprel="case"))
    sentence = Sentence(sent_id="a", comments=(), tokens=words, words=words, heads=(0, 1))
    pool = DonorPool(grammars["hi"], DEFAULT)
    assert Agreement(sentence, grammars["hi"], pool.paradigms).settled(1) is settled


def token(number: int, form: str, feats: str, upos: str = "VERB") -> Token:
    return Token(
        id=str(number), form=form, lemma="x", upos=upos, xpos="_", feats=feats,
        head="_", deprel="_", deps="_", misc="_",
    )  # fmt: skip


@pytest.mark.parametrize(
    ("form", "feats", "following", "expected"),
    [
        ("எடுக்க", "VerbForm=Inf", "பட்டால்", "எடுக்கப்"),
        ("எடுக்கப்", "VerbForm=Inf", "வந்தார்", "எடுக்க"),
        ("தேடி", "VerbForm=Part", "கொண்ட", "தேடிக்"),
        ("கேட்டு", "VerbForm=Part", "சென்றார்", "கேட்டுச்"),
        ("செய்து", "VerbForm=Part", "கொண்ட", "செய்து"),
        ("என்றார்", "VerbForm=Fin", "தரூர்", "என்றார்"),
    ],
)
def test_verb_forms_repeat_the_next_consonant(
    grammars: dict[str, Grammar], form: str, feats: str, following: str, expected: str
) -> None:
    sandhi = grammars["ta"].sandhi
    assert sandhi is not None
    tokens = [token(1, form, feats), token(2, following, "_")]
    assert apply_sandhi(tokens, sandhi, [True, False])[0].form == expected


def test_a_form_that_contradicts_its_case_stays_and_is_no_donor(grammars: dict[str, Grammar]) -> None:
    grammar = grammars["ta"]
    feats = "Animacy=Anim|Case=Nom|Gender=Com|Number=Plur|Person=3"
    nouns = tuple(
        token(n, form, feats, "NOUN") for n, form in enumerate(("போட்டிகளின்", "மக்கள்", "புலிகள்"), start=1)
    )
    sentence = Sentence(sent_id="a", comments=(), tokens=nouns, words=nouns, heads=(0, 1, 1))
    generator = Generator(grammar, DonorPool(grammar, DEFAULT).add([sentence]))
    for made in generator.variants(sentence):
        assert [word.form for word in made.words] == ["போட்டிகளின்", "புலிகள்", "மக்கள்"]
