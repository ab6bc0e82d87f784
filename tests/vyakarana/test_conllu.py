"""Treebanks: read, split, repaired, checked."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, strategies as st

from harness.data.readers.conllu import Sentence, Token, TreebankError, read_sentences
from harness.errors import DataError, UsageError
from harness_vyakarana.agreement import Agreement
from harness_vyakarana.colorless import Generator, apply_sandhi
from harness_vyakarana.donors import DEFAULT, MODES, PAPER, DonorPool
from harness_vyakarana.grammar import Grammar
from harness_vyakarana.treebank import SPLITS, feats_of, parse_ratios, sentence_text, split_file, units_of
from harness_vyakarana.treebank_check import check_colorless
from tests.vyakarana.conftest import run

REST = "\t_" * 8


def row(identifier: str, head: str, form: str = "a", *, feats: str = "_") -> str:
    return f"{identifier}\t{form}\t_\tX\t_\t{feats}\t{head}\tdep\t_\t_"


def token(number: int, form: str, feats: str, upos: str = "VERB", deprel: str = "_") -> Token:
    return Token(str(number), form, "x", upos, "_", feats, "_", deprel, "_", "_")


def written(path: Path) -> bytes:
    return "".join(map(sentence_text, read_sentences(path))).encode()


def faults(folder: Path, text: str) -> list[str]:
    path = folder / "a.conllu"
    path.write_bytes(text.encode())
    with pytest.raises(TreebankError) as caught:
        list(read_sentences(path))
    assert str(path) in str(caught.value)
    return [str(problem) for problem in caught.value.problems]


# Round trip -------------------------------------------------------------------------------------------

cell = st.text(
    st.characters(blacklist_categories=("Cs", "Cc", "Zl", "Zp"), blacklist_characters="\t"), min_size=1
)
ending = st.sampled_from(["\n", "\r\n"])


@st.composite
def treebanks(draw: st.DrawFn) -> str:
    """Texts of treebanks with comments, ranges, empty nodes, odd spacing and any line ends."""
    text = draw(st.sampled_from(["", "\ufeff", "\n", "\r\n\n"]))
    for number in range(draw(st.integers(1, 3))):
        lines = [f"# sent_id = s{number}", *("#" + draw(cell) for _ in range(draw(st.integers(0, 2))))]
        lines = [line for line in lines if not line.startswith("#") or "sent_id" not in line[9:]]
        count = draw(st.integers(1, 4))
        for word in range(1, count + 1):
            if word == 1 and count > 1 and draw(st.booleans()):
                lines.append(f"1-2\t{draw(cell)}" + "\t_" * 8)
            rest = [draw(cell) for _ in range(5)]
            head = str(draw(st.integers(1, word - 1))) if word > 1 else "0"
            lines.append("\t".join([str(word), *rest, head, draw(cell), draw(cell), draw(cell)]))
            if draw(st.booleans()):
                lines.append("\t".join([f"{word}.1", draw(cell)] + ["_"] * 8))
        text += "".join(line + draw(ending) for line in lines)
        text += "".join(draw(st.lists(ending, min_size=1, max_size=3)))
    return text


@given(treebanks(), st.booleans())
def test_what_is_read_is_written_byte_for_byte(
    tmp_path_factory: pytest.TempPathFactory, text: str, whole: bool
) -> None:
    path = tmp_path_factory.mktemp("treebank") / "a.conllu"
    path.write_bytes((text if whole else text.rstrip("\r\n")).encode())
    assert written(path) == path.read_bytes()


@pytest.mark.thorough
def test_released_treebanks_are_written_byte_for_byte(data_root: Path) -> None:
    paths = sorted([*data_root.glob("ud/*/*.conllu"), *data_root.glob("vyakarana/**/*.conllu")])
    assert len(paths) > 20
    for path in paths:
        assert written(path) == path.read_bytes(), path


# What is in a sentence --------------------------------------------------------------------------------


def test_words_are_distinguished_from_ranges_and_empty_nodes(tmp_path: Path) -> None:
    path = tmp_path / "a.conllu"
    path.write_text(f"# sent_id = x\n1-2\tab{REST}\n{row('1', '2')}\n{row('2', '0')}\n2.1\tc{REST}\n\n")
    (sentence,) = read_sentences(path)
    assert [token.id for token in sentence.tokens] == ["1-2", "1", "2", "2.1"]
    assert [word.id for word in sentence.words] == ["1", "2"]
    assert sentence.heads == (2, 0)
    assert sentence.tokens[0].span == (1, 2)
    assert sentence.words[0].span is None


def test_features_have_several_values() -> None:
    cells = row("1", "0", feats="Case=Gen,Acc|odd|Gender=Masc").split("\t")
    assert Token(*cells).features == {"Case": "Gen,Acc", "Gender": "Masc"}
    assert Token(*row("1", "0").split("\t")).features == {}
    assert feats_of({"b": "1", "A": "2"}) == "A=2|b=1"
    assert feats_of({}) == "_"


# Faults -----------------------------------------------------------------------------------------------


def test_all_faults_of_a_file_are_reported_at_once(tmp_path: Path) -> None:
    text = (
        f"# sent_id = one\n{row('1', '2')}\n{row('2', '1')}\n\n"
        f"# sent_id = two\n{row('1', '0')}\n{row('2', '0')}\n\n"
        f"# sent_id = three\n{row('1', '0')}\n{row('3', '1')}\n\n"
        f"# sent_id = four\n{row('1', '0')}\n{row('2', '9')}\n{row('3', '_')}\n\n"
        f"# sent_id = five\n{row('1', '0')}\textra\n\n"
        f"# sent_id = one\n{row('1', '0')}\n\n"
    )
    expected = [
        ("line 2: sentence 'one': ", "root"),
        ("line 2: sentence 'one': ", "1 -> 2 -> 1"),
        ("line 7: sentence 'two': ", "word 1"),
        ("line 11: sentence 'three': ", "'3'"),
        ("line 15: sentence 'four': ", "'9'"),
        ("line 16: sentence 'four': ", "'_'"),
        ("line 19: sentence 'five': ", "11"),
        ("line 21: sentence 'one': ", "line 1"),
    ]
    for fault, (where, found) in zip(faults(tmp_path, text), expected, strict=True):
        assert fault.startswith(where) and found in fault


@pytest.mark.parametrize(
    ("lines", "found"),
    [
        ([row("1", "0"), "2-1\tx" + "\t_" * 8], "'2-1'"),
        (["1-3\tx" + "\t_" * 8, row("1", "0")], "words up to 3"),
        (["1-2\tx" + "\t_" * 8, row("1", "0"), "2-3\tx" + "\t_" * 8, row("2", "1")], "'2-3'"),
        ([row("1", "0"), "3.1\tx" + "\t_" * 8], "'3.1'"),
        ([row("1", "0"), "# late"], "comments"),
        ([row("1", "0", form="")], "column 2"),
        (["# only a comment"], "words"),
        ([row("x", "0")], "'x'"),
        ([row("1", "00")], "'00'"),
    ],
)
def test_a_broken_sentence_is_rejected(tmp_path: Path, lines: list[str], found: str) -> None:
    assert any(found in fault for fault in faults(tmp_path, "\n".join([*lines, "\n"])))


def test_bytes_that_are_not_utf8_are_reported_by_line(tmp_path: Path) -> None:
    path = tmp_path / "a.conllu"
    path.write_bytes(b"# sent_id = a\n1\t\xff" + b"\t_" * 8 + b"\n\n")
    with pytest.raises(DataError, match=r"a\.conllu:2: .*0xff"):
        list(read_sentences(path))


def test_empty_and_missing_files(tmp_path: Path) -> None:
    (tmp_path / "a.conllu").write_text("\n\n")
    with pytest.raises(TreebankError):
        list(read_sentences(tmp_path / "a.conllu"))
    with pytest.raises(DataError, match=r"b\.conllu"):
        list(read_sentences(tmp_path / "b.conllu"))


def test_good_sentences_come_before_the_faults_of_others(tmp_path: Path) -> None:
    path = tmp_path / "a.conllu"
    path.write_text(f"# sent_id = a\n{row('1', '0')}\n\n# sent_id = b\n{row('2', '0')}\n\n")
    sentences = read_sentences(path)
    assert next(sentences).sent_id == "a"
    with pytest.raises(TreebankError):
        next(sentences)


def test_what_is_odd_is_no_fault(tmp_path: Path) -> None:
    path = tmp_path / "a.conllu"
    path.write_text(f"{row('1', '_', feats='SG;NOM')}\n\n")
    [sentence] = read_sentences(path)
    assert (sentence.heads, sentence.sent_id, sentence.words[0].features) == ((), None, {})
    with pytest.raises(TreebankError, match="sent_id"):
        list(read_sentences(path, named=True))


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
def repair_sentences(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Sentence]:
    columns = r"\1\t\2\t\3\t\4\t_\t\5\t\6\t\7\t_\t_"
    path = tmp_path_factory.mktemp("repair") / "hi.conllu"
    text = re.sub(r"^(\d) (\S+) (\S+) (\S+) (\S+) (\d) (\S+)$", columns, HINDI, flags=re.MULTILINE)
    path.write_text(text + "\n", encoding="utf-8")
    return {sentence.sent_id or "": sentence for sentence in read_sentences(path)}


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
    repair_sentences: dict[str, Sentence],
    grammars: dict[str, Grammar],
    name: str,
    variant: str,
    expected: str,
) -> None:
    grammar = grammars["hi"]
    generator = Generator(grammar, DonorPool(grammar, DEFAULT).add(repair_sentences.values()))
    made = generator.variants(repair_sentences[name])[grammar.variants.index(variant)]
    assert " ".join(word.form for word in made.words) == expected


def test_a_noun_that_its_verb_contradicts_is_no_donor(
    repair_sentences: dict[str, Sentence], grammars: dict[str, Grammar]
) -> None:
    pool = DonorPool(grammars["hi"], DEFAULT)
    for name, settled in (("plural", False), ("predicate", True)):
        agreement = Agreement(repair_sentences[name], grammars["hi"], pool.paradigms)
        noun = next(n for n, word in enumerate(repair_sentences[name].words, start=1) if word.upos == "NOUN")
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
    words = (noun, token(2, "में", "_", "ADP", "case"))
    sentence = Sentence(sent_id="a", comments=(), tokens=words, words=words, heads=(0, 1))
    pool = DonorPool(grammars["hi"], DEFAULT)
    assert Agreement(sentence, grammars["hi"], pool.paradigms).settled(1) is settled


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


WORD = "1\tघर\tघर\tNOUN\t_\t_\t0\troot\t_\t_"


def sentence(name: str, *comments: str) -> str:
    return "\n".join([*comments, f"# sent_id = {name}", WORD]) + "\n\n"


def documents(sizes: Sequence[int]) -> str:
    return "".join(
        sentence(f"{number}-{place}", *([f"# newdoc id = d{number}"] if place == 0 else []))
        for number, size in enumerate(sizes)
        for place in range(size)
    )


def split_written(folder: Path) -> dict[str, list[str]]:
    return {
        path.stem: [s.sent_id or "" for s in list(read_sentences(path))]
        for path in sorted(folder.glob("*.conllu"))
    }


@given(st.lists(st.integers(1, 6), min_size=30, max_size=60), st.integers(0, 1000))
def test_documents_stay_whole_and_shares_are_kept(
    tmp_path_factory: pytest.TempPathFactory, sizes: list[int], seed: int
) -> None:
    folder = tmp_path_factory.mktemp("split")
    source = folder / "source.conllu"
    source.write_text(documents(sizes))
    parts = split_file(source, folder, (60, 20, 20), seed=seed)
    source.unlink()
    found = split_written(folder)
    where = {name: split for split, names in found.items() for name in names}
    assert sum(map(len, found.values())) == len(where) == sum(sizes)
    for number, size in enumerate(sizes):
        assert len({where[f"{number}-{place}"] for place in range(size)}) == 1
    for part, share in zip(parts, (0.6, 0.2, 0.2), strict=True):
        assert abs(part.sentences - share * sum(sizes)) <= max(sizes)


def test_sentences_keep_their_bytes_and_their_order(own: Path, tmp_path: Path) -> None:
    lines = (own / "hi_own-ud-test.conllu").read_bytes().splitlines(keepends=True)
    source = tmp_path / "source"
    source.write_bytes(b"".join(line for line in lines if not line.startswith(b"# newdoc")))
    split_file(source, tmp_path, (50, 25, 25))
    blocks = source.read_bytes().split(b"\n\n")
    parts = {name: (tmp_path / f"{name}.conllu").read_bytes().split(b"\n\n") for name in SPLITS}
    gathered = [block for own_blocks in parts.values() for block in own_blocks if block]
    assert sorted(gathered) == sorted(block for block in blocks if block)
    for own_blocks in parts.values():
        places = [blocks.index(block) for block in own_blocks if block]
        assert places == sorted(places) and places


def test_the_order_of_the_file_does_not_matter_but_the_seed_does(tmp_path: Path) -> None:
    names = [f"s{number}" for number in range(40)]
    found = []
    for order, seed in ((names, 0), (names[::-1], 0), (names, 1)):
        source = tmp_path / "source"
        source.write_text("".join(map(sentence, order)))
        split_file(source, tmp_path, (80, 10, 10), seed=seed)
        found.append({split: set(own) for split, own in split_written(tmp_path).items()})
    assert found[0] == found[1] != found[2]
    assert [len(found[0][name]) for name in SPLITS] == [32, 4, 4]


def test_variants_and_documents_stay_together(tmp_path: Path) -> None:
    source = tmp_path / "source"
    lines = [sentence(f"s{n}-org{v}") for n in range(6) for v in range(1, 5)]
    lines += [sentence(f"v{n}-{v}", f"# source_sent_id = s{n}") for n in range(6) for v in "ab"]
    source.write_text("".join(lines))
    assert units_of(list(read_sentences(source))) == [
        f"s{n}" for v in (4, 2) for n in range(6) for _ in range(v)
    ]
    source.write_text(sentence("a") + sentence("b", "# newdoc") + sentence("c") + sentence("d", "# newdoc"))
    units = units_of(list(read_sentences(source)))
    assert units == ["a", "document from b", "document from b", "document from d"]


def test_a_split_of_ratio_0_is_not_written(tmp_path: Path) -> None:
    source, target = tmp_path / "source", tmp_path / "new"
    source.write_text(documents([1] * 10))
    assert "70.0%" in run("split", source, "--output", target, "--ratios", "70/0/30")
    assert {name: len(ids) for name, ids in split_written(target).items()} == {"train": 7, "test": 3}


@pytest.mark.parametrize("text", ["80/20", "a/b/c", "80/10/-10", "0/0/0", "0.8/0.1/0.1"])
def test_bad_ratios_are_rejected(text: str) -> None:
    with pytest.raises(UsageError, match="ratios"):
        parse_ratios(text)


def test_files_that_cannot_be_split_are_rejected(tmp_path: Path) -> None:
    source = tmp_path / "test.conllu"
    source.write_text(documents([20]))
    with pytest.raises(UsageError, match=r"test\.conllu"):
        split_file(source, tmp_path, (80, 10, 10))
    with pytest.raises(UsageError, match=r"dev and test .*20 .*\b1\b"):
        split_file(source, tmp_path / "out", (90, 5, 5))
    source.write_text(WORD + "\n\n" + sentence("a") + WORD + "\n\n")
    with pytest.raises(DataError, match=r"(?s)line 1: .*line 6: "):
        split_file(source, tmp_path / "out", (80, 10, 10))
    with pytest.raises(UsageError):
        run("split", tmp_path, "--output", tmp_path / "out")


def test_hindi_pud_is_split_by_documents(data_root: Path, tmp_path: Path) -> None:
    source = data_root / "ud/UD_Hindi-PUD/hi_pud-ud-test.conllu"
    parts = split_file(source, tmp_path, (80, 10, 10))
    assert sum(part.units for part in parts) == 397  # counted with grep
    assert [part.sentences for part in parts] == [800, 101, 99]


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
        assert result.other_release["deprel"] == 0


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


def test_faulty_variants_and_ranges_are_violations(
    hindi: tuple[Sentence, ...], tamil: tuple[Sentence, ...], grammars: dict[str, Grammar]
) -> None:
    made = generated(hindi, grammars["hi"], DEFAULT)
    made[0] = replace(made[0], sent_id="stranger")
    violations = check_colorless(hindi, made, grammars["hi"], DEFAULT).violations
    assert [violation.sent_id for violation in violations] == ["stranger", "hi-01-org1"]
    made = generated(tamil, grammars["ta"], DEFAULT)
    position = next(i for i, s in enumerate(made) if s.sent_id == "ta-05-org1")
    words = tamil[4].words
    tokens = (made[position].tokens[0]._replace(form="x"), *words)
    made[position] = replace(made[position], tokens=tokens, words=words)
    [violation] = check_colorless(tamil, made, grammars["ta"], DEFAULT).violations
    assert str(violation).startswith("ta-05-org1:1-2: ")


def test_the_released_treebank_passes(data_root: Path, grammars: dict[str, Grammar]) -> None:
    """CG-TTB: train from TTB's test, dev from its dev; 4672 changed words (Vyakarana, released files)."""
    grammar, changed = grammars["ta"], 0
    sources = {
        split: list(read_sentences(data_root / f"ud/UD_Tamil-TTB/ta_ttb-ud-{split}.conllu"))
        for split in ("test", "dev")
    }
    for made, split, sentences in (("train", "test", 480), ("dev", "dev", 320)):
        released = list(read_sentences(data_root / f"vyakarana/tamil/CG-TTB/{made}.conllu"))
        result = check_colorless(sources[split], released, grammar, PAPER)
        assert (result.violations, result.sentences) == ([], sentences)
        changed += sum(result.changed.values())
        if split == "test":
            foreign = DonorPool(grammar, PAPER).add(sources["dev"])
            result = check_colorless(sources[split], released, grammar, PAPER, pool=foreign)
            assert len(result.violations) > 1000
    assert changed == 4672
