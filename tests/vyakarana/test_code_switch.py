"""Code-switched treebanks, and their command."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest
import typer
from hypothesis import given, strategies as st
from typer.testing import CliRunner

from harness.data.readers.conllu import Sentence, Token, read_sentences
from harness.data.translation.transliterators import Transliterator
from harness.errors import ContractError, MissingDataError, StorageError, UsageError
from harness_transliteration.indictrans import INDICTRANS
from harness_transliteration.rules import RULES
from harness_vyakarana.code_switch import CodeSwitch, SwitchCounts, code_switch_file, switch_sentence
from harness_vyakarana.command import code_switch
from harness_vyakarana.treebank import jobs_of, language_of, sentence_text
from tests.builders import released_data

TAMIL = """\
# sent_id = a
# text = பிகாரிலிருந்து  அவர், OK।
# translit = _
1-2	பிகாரிலிருந்து	_	_	_	_	_	_	_	_
1	பிகார்	பிகார்	PROPN	NEN	Case=Nom	3	nmod	3:nmod:இல்	Translit=pikār
2	இலிருந்து	இலிருந்து	ADP	PP	_	1	case	1:case	_
3	அவர்	அவர்	PRON	RP	Case=Nom	0	root	0:root	SpaceAfter=No
3.1	வந்தார்	வா	VERB	_	_	_	_	0:root	_
4	,	,	PUNCT	Z	_	3	punct	3:punct	_
5	OK	சரி	INTJ	_	_	3	discourse	3:discourse	SpaceAfter=No
6	।	।	PUNCT	Z	_	3	punct	3:punct	_


# sent_id = b
# text = வீடு পথ
1	வீடு	வீடு	NOUN	_	_	0	root	_	_
2	পথ	পথ	NOUN	_	_	1	dep	_	_
"""
SWITCHED = """\
# code_switch = engine=rules version=1 licence=Apache-2.0 language=ta source=ta_x.conllu source_licence=unknown \
ratio=1.0 noise=0.0 seed=0
# sent_id = a
# text = pigaarilirundhu  avar, OK.
# translit = _
1-2	pigaarilirundhu	_	_	_	_	_	_	_	Orig=பிகாரிலிருந்து
1	pigaar	pigaar	PROPN	NEN	Case=Nom	3	nmod	3:nmod:இல்	Translit=pikār|Orig=பிகார்
2	ilirundhu	ilirundhu	ADP	PP	_	1	case	1:case	Orig=இலிருந்து
3	avar	avar	PRON	RP	Case=Nom	0	root	0:root	SpaceAfter=No|Orig=அவர்
3.1	vandhaar	vaa	VERB	_	_	_	_	0:root	Orig=வந்தார்
4	,	,	PUNCT	Z	_	3	punct	3:punct	_
5	OK	sari	INTJ	_	_	3	discourse	3:discourse	SpaceAfter=No
6	.	.	PUNCT	Z	_	3	punct	3:punct	Orig=।


# sent_id = b
# text = veedu পথ
1	veedu	veedu	NOUN	_	_	0	root	_	Orig=வீடு
2	পথ	পথ	NOUN	_	_	1	dep	_	_
"""
ALL = CodeSwitch(engine=RULES, language="ta")


def _write(folder: Path, text: str, name: str = "ta_x.conllu") -> Path:
    path = folder / name
    path.write_bytes(text.encode())
    return path


def _switched(source: Path, switch: CodeSwitch) -> str:
    target = source.parent / "out.conllu"
    code_switch_file(source, target, switch)
    return target.read_bytes().decode()


def test_forms_lemmas_and_text_change_and_nothing_else(tmp_path: Path) -> None:
    source = _write(tmp_path, TAMIL)
    counts = code_switch_file(source, tmp_path / "out.conllu", ALL)
    assert (tmp_path / "out.conllu").read_bytes().decode() == SWITCHED
    assert (counts.sentences, counts.tokens, counts.switched) == (2, 10, 7)
    assert counts.unknown == {"পথ": 1}


def test_as_the_released_files(tmp_path: Path) -> None:
    lines = _switched(_write(tmp_path, TAMIL), replace(ALL, paper=True)).splitlines()
    assert lines[0].endswith(" seed=0 compat=paper")
    assert lines[2] == "# text = pigaarilirundhu pigaar ilirundhu avar vandhaar , OK ."
    assert not any("Orig=" in line for line in lines)


def test_nothing_switched_is_the_source(tmp_path: Path) -> None:
    windows = "\ufeff\n" + TAMIL.replace("\n", "\r\n").rstrip()
    for text in (TAMIL, windows):
        assert _switched(_write(tmp_path, text), replace(ALL, ratio=0.0, noise=1.0)) == text


def test_line_ends_and_byte_order_mark_stay(tmp_path: Path) -> None:
    windows = "\ufeff" + TAMIL.replace("\n", "\r\n")
    assert _switched(_write(tmp_path, windows), ALL) == "\ufeff" + SWITCHED.replace("\n", "\r\n")


def test_a_text_that_does_not_hold_the_forms_is_made_anew(tmp_path: Path) -> None:
    stale = TAMIL.replace("# text = பிகாரிலிருந்து  அவர், OK।", "# text = something else")
    assert "# text = pigaarilirundhu avar, OK.\n" in _switched(_write(tmp_path, stale), ALL)


def test_an_original_form_that_is_there_is_kept(tmp_path: Path) -> None:
    text = TAMIL.replace("SpaceAfter=No\n3.1", "SpaceAfter=No|Orig=first\n3.1").replace(
        "வீடு	வீடு	NOUN", "வீ|டு	வீடு	NOUN"
    )
    switched = _switched(_write(tmp_path, text.replace("= வீடு", "= வீ|டு")), ALL)
    assert "SpaceAfter=No|Orig=first\n" in switched
    assert "\tOrig=வீ\\pடு\n" in switched


# Drawing ----------------------------------------------------------------------------------------------


def _sentences(count: int, length: int = 10) -> list[Sentence]:
    word = Token(
        id="1",
        form="அவர்",
        lemma="அவர்",
        upos="PRON",
        xpos="_",
        feats="_",
        head="0",
        deprel="_",
        deps="_",
        misc="_",
    )
    tokens = tuple(word._replace(id=str(place), head=str(place - 1)) for place in range(1, length + 1))
    comments = ("# text = " + " ".join(["அவர்"] * length),)
    return [
        Sentence(
            sent_id=f"s{number}", comments=comments, tokens=tokens, words=tokens, heads=tuple(range(length))
        )
        for number in range(count)
    ]


def _switchable(sentences: Iterable[Sentence]) -> int:
    """Return how many tokens have a form that is not ASCII."""
    return sum(not token.form.isascii() for sentence in sentences for token in sentence.tokens)


def _texts(sentences: Sequence[Sentence], switch: CodeSwitch) -> dict[str | None, str]:
    return {s.sent_id: sentence_text(switch_sentence(s, switch, SwitchCounts())) for s in sentences}


def test_a_share_of_the_tokens_is_switched() -> None:
    counts = SwitchCounts()
    shares = set()
    for sentence in _sentences(400):
        switched = switch_sentence(sentence, replace(ALL, ratio=0.5), counts)
        shares.add(sum(token.form.isascii() for token in switched.tokens))
    assert len(shares) > 5, "tokens of a sentence are drawn one by one"
    # 4,000 draws: five standard deviations are 0.04.
    assert counts.switched / _switchable(_sentences(400)) == pytest.approx(0.5, abs=0.04)


def test_order_and_sharding_do_not_matter_but_the_seed_does() -> None:
    sentences = _sentences(40)
    switch = replace(ALL, ratio=0.5, noise=0.5)
    whole = _texts(sentences, switch)
    assert _texts(sentences[::-1], switch) == whole
    assert {**_texts(sentences[::2], switch), **_texts(sentences[1::2], switch)} == whole
    assert _texts(sentences, replace(switch, seed=1)) != whole
    assert len({text.split("\n", 1)[1] for text in whole.values()}) > 30


def test_more_is_switched_where_the_ratio_is_higher() -> None:
    """Nested: what is switched at a low ratio is switched at a higher one, so that ratios can be compared."""
    for sentence in _sentences(20):
        chosen = [
            {
                t.id
                for t in switch_sentence(sentence, replace(ALL, ratio=ratio), SwitchCounts()).tokens
                if t.form.isascii()
            }
            for ratio in (0.2, 0.5, 0.9, 1.0)
        ]
        assert all(low <= high for low, high in pairwise(chosen))


def test_words_of_a_multiword_token_are_switched_with_it(tmp_path: Path) -> None:
    [sentence, _] = read_sentences(_write(tmp_path, TAMIL))
    seen = set()
    for seed in range(40):
        switched = switch_sentence(sentence, replace(ALL, ratio=0.5, seed=seed), SwitchCounts())
        latin = tuple(token.form.isascii() for token in switched.tokens[:3])
        assert len(set(latin)) == 1
        seen.add(latin)
    assert len(seen) == 2


def test_noise_respells_forms_not_lemmas() -> None:
    counts = SwitchCounts()
    forms = set()
    for sentence in _sentences(100):
        switched = switch_sentence(sentence, replace(ALL, noise=0.3), counts)
        assert {token.lemma for token in switched.tokens} == {"avar"}
        forms |= {token.form for token in switched.tokens}
    assert forms == {"avar", "awar", "aavar", "avaar"}
    assert counts.respelt / counts.switched == pytest.approx(0.3, abs=0.08)


# Properties and real data -----------------------------------------------------------------------------

cell = st.text(
    st.characters(blacklist_categories=["Cs"], blacklist_characters="\t\n\r")
    | st.characters(min_codepoint=0x900, max_codepoint=0x97F)
    | st.characters(min_codepoint=0xB80, max_codepoint=0xBFF),
    min_size=1,
    max_size=8,
)


@given(
    st.lists(st.tuples(cell, cell, cell), min_size=1, max_size=5),
    st.sampled_from([0.0, 0.5, 1.0]),
    st.sampled_from([0.0, 1.0]),
    st.booleans(),
)
def test_any_text_goes_through(
    rows: list[tuple[str, str, str]], ratio: float, noise: float, paper: bool
) -> None:
    [sample] = _sentences(1, len(rows))
    tokens = tuple(
        token._replace(form=form, lemma=lemma, misc=misc)
        for token, (form, lemma, misc) in zip(sample.tokens, rows, strict=True)
    )
    text = "".join(form for form, _, _ in rows)
    sentence = replace(sample, tokens=tokens, words=tokens, comments=(f"# text = {text}",))
    switch = replace(ALL, ratio=ratio, noise=noise, paper=paper, language="hi")
    switched = switch_sentence(sentence, switch, SwitchCounts())
    _assert_parallel(sentence, switched)
    if ratio == 0:
        assert switched == sentence
    if ratio == 1:
        assert not any(map(_indic, (t.form + t.lemma for t in switched.tokens)))


def _indic(text: str) -> bool:
    return any(("ऀ" <= letter <= "ॿ" or "஀" <= letter <= "௿") and letter.isalpha() for letter in text)


def _other_comments(sentence: Sentence) -> list[str]:
    return [line for line in sentence.comments if not line.startswith(("# text =", "# code_switch ="))]


def _assert_parallel(source: Sentence, switched: Sentence) -> None:
    def rest(token: Token) -> Token:
        return token._replace(form="", lemma="", misc="")

    assert [rest(token) for token in switched.tokens] == [rest(token) for token in source.tokens]
    assert _other_comments(switched) == _other_comments(source)
    assert (switched.endings, switched.after) == (source.endings, source.after)
    assert switched.words == tuple(token for token in switched.tokens if token.is_word)
    assert (switched.heads, switched.sent_id) == (source.heads, source.sent_id)
    assert all(
        token.misc.startswith(old.misc) or old.misc == "_"
        for token, old in zip(switched.tokens, source.tokens, strict=True)
    )


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("name", "language"),
    [
        ("ud/UD_Tamil-TTB/ta_ttb-ud-dev.conllu", "ta"),
        ("ud/UD_Hindi-PUD/hi_pud-ud-test.conllu", "hi"),
        ("vyakarana/tamil/CG-TTB/train.conllu", "ta"),
    ],
)
def test_real_treebanks(name: str, language: str, tmp_path: Path) -> None:
    root = released_data()
    source, target = root / name, tmp_path / "out.conllu"
    counts = code_switch_file(source, target, CodeSwitch(engine=RULES, language=language))
    # What is not ASCII and stays: quotation marks, dashes, Latin letters with accents.
    switchable = _switchable(read_sentences(source))
    assert counts.switched / switchable > 0.99
    assert not counts.unknown
    for old, new in zip(read_sentences(source), read_sentences(target), strict=True):
        _assert_parallel(old, new)
        assert not any(map(_indic, (token.form + token.lemma for token in new.tokens)))
        assert not any(_indic(line) for line in new.comments if line.startswith("# text ="))
    half = CodeSwitch(engine=RULES, language=language, ratio=0.5)
    counts = code_switch_file(source, target, half)
    assert counts.switched / switchable == pytest.approx(0.5, abs=0.03)
    code_switch_file(source, target, replace(half, ratio=0.0))
    assert target.read_bytes() == source.read_bytes()


def test_the_released_treebank_is_reproduced(tmp_path: Path) -> None:
    """csCG-TTB of Patil et al. (2021), whole files, but for our header: their engine on their CG-TTB."""
    root = released_data()
    if importlib.util.find_spec("indictrans") is None:
        pytest.skip("indictrans is not installed")
    folder = root / "vyakarana" / "tamil"
    for name in ("train.conllu", "dev.conllu"):
        code_switch_file(
            folder / "CG-TTB" / name, tmp_path / name, replace(ALL, engine=INDICTRANS, paper=True)
        )
        _, _, made = (tmp_path / name).read_text(encoding="utf-8").partition("\n")
        assert made == (folder / "csCG-TTB" / name).read_text(encoding="utf-8")


# Rejected input --------------------------------------------------------------------------------------


@pytest.mark.parametrize("option", ["ratio", "noise"])
@pytest.mark.parametrize("share", [-0.1, 1.5, float("nan")])
def test_a_share_outside_of_its_range_is_rejected(option: str, share: float) -> None:
    with pytest.raises(UsageError, match=f"{option} .*{share}"):
        CodeSwitch(engine=RULES, language="ta", **{option: share})  # type: ignore[arg-type]


def test_a_language_that_the_engine_does_not_know_is_rejected() -> None:
    with pytest.raises(UsageError, match=r"'rules' .*'ur'.*hi, .*ta"):
        CodeSwitch(engine=RULES, language="ur")


@pytest.mark.parametrize(
    "answer", [lambda words: words[:-1], lambda words: [""] * len(words), lambda words: ["a\tb"] * len(words)]
)
def test_an_engine_that_breaks_its_contract_is_an_error(answer: Callable[[Sequence[str]], list[str]]) -> None:
    engine = replace(RULES, name="broken", transliterate=lambda words, language: answer(words))
    with pytest.raises(ContractError, match="'broken'"):
        switch_sentence(_sentences(1)[0], replace(ALL, engine=engine), SwitchCounts())


def test_the_record_is_frozen() -> None:
    with pytest.raises(AttributeError):
        RULES.name = "other"  # type: ignore[misc]
    assert isinstance(RULES, Transliterator)


CODE_SWITCH_COMMAND_TAMIL = """\
# sent_id = a
# text = அவர் OK
1	அவர்	அவர்	PRON	_	Case=Nom	0	root	_	_
2	OK	ok	INTJ	_	_	1	discourse	_	_

# sent_id = b
# text = வீடு পথ
1	வீடு	வீடு	NOUN	_	_	0	root	_	_
2	পথ	পথ	NOUN	_	_	1	dep	_	_

"""
CODE_SWITCH_COMMAND_SWITCHED = [
    "# code_switch = engine=rules version=1 licence=Apache-2.0 language=ta source=ta_x.conllu "
    "source_licence=unknown ratio=1.0 noise=0.0 seed=0",
    "# sent_id = a",
    "# text = avar OK",
    "1	avar	avar	PRON	_	Case=Nom	0	root	_	Orig=அவர்",
    "2	OK	ok	INTJ	_	_	1	discourse	_	_",
    "",
    "# sent_id = b",
    "# text = veedu পথ",
    "1	veedu	veedu	NOUN	_	_	0	root	_	Orig=வீடு",
    "2	পথ	পথ	NOUN	_	_	1	dep	_	_",
    "",
]


@pytest.fixture
def command() -> Callable[..., tuple[int, str]]:
    app = typer.Typer()
    app.command()(code_switch)

    def run(*arguments: object) -> tuple[int, str]:
        result = CliRunner().invoke(app, [str(argument) for argument in arguments])
        if result.exception is not None and not isinstance(result.exception, SystemExit):
            raise result.exception
        return result.exit_code, result.output

    return run


def test_a_file_gives_a_file_and_a_folder_a_folder(
    command: Callable[..., tuple[int, str]], tmp_path: Path
) -> None:
    source = tmp_path / "in"
    (source / "deep").mkdir(parents=True)
    first, second = (
        _write(source, CODE_SWITCH_COMMAND_TAMIL),
        _write(source / "deep", CODE_SWITCH_COMMAND_TAMIL, "ta_y.conllu"),
    )
    status, out = command(first, "--out", tmp_path / "one.conllu")
    assert status == 0
    assert "2 of 4 tokens switched, 0 respelt, in 2 sentences of 1 file(s), by rules 1 (Apache-2.0)." in out
    assert "পথ (1)" in out
    assert (tmp_path / "one.conllu").read_text(encoding="utf-8").splitlines() == CODE_SWITCH_COMMAND_SWITCHED
    status, _ = command(source, "--out", tmp_path / "out", "--ratio", 0.5, "--noise", 1, "--seed", 3)
    assert status == 0
    for path in (first, second):
        written = (tmp_path / "out" / path.relative_to(source)).read_text(encoding="utf-8")
        assert " ratio=0.5 noise=1.0 seed=3\n" in written
        assert written.count("\n") == CODE_SWITCH_COMMAND_TAMIL.count("\n") + 1


def test_an_engine_of_a_plugin(
    command: Callable[..., tuple[int, str]], install_plugin: Callable[..., Path], tmp_path: Path
) -> None:
    install_plugin(
        "with_engine",
        """
from harness import hookimpl

@hookimpl
def harness_register_transliterators():
    from harness.data.translation.transliterators import Transliterator
    return [Transliterator(name="x", version="9", licence="MIT", languages=None, summary="x",
                           transliterate=lambda words, language: ["x" for word in words])]
""",
    )
    source = _write(tmp_path, CODE_SWITCH_COMMAND_TAMIL, "plain.conllu")
    command(
        source, "--out", tmp_path / "out.conllu", "--engine", "x", "--language", "qq", "--compat", "paper"
    )
    lines = (tmp_path / "out.conllu").read_text(encoding="utf-8").splitlines()
    assert lines[0].startswith("# code_switch = engine=x version=9 licence=MIT language=qq ")
    assert lines[2] == "# text = x x"


def test_an_engine_that_is_not_ready_says_why(
    command: Callable[..., tuple[int, str]], tmp_path: Path, install_plugin: Callable[..., Path]
) -> None:
    install_plugin(
        "not_ready",
        """
from harness import hookimpl
from harness.errors import PluginError
from harness.data.translation.transliterators import Transliterator

def ready():
    raise PluginError("buy it first")

@hookimpl
def harness_register_transliterators():
    return [Transliterator(name="x", version="9", licence="MIT", languages=None, summary="x", ready=ready,
                           transliterate=lambda words, language: list(words))]
""",
    )
    with pytest.raises(Exception, match="buy it first"):
        command(
            _write(tmp_path, CODE_SWITCH_COMMAND_TAMIL), "--out", tmp_path / "out.conllu", "--engine", "x"
        )
    assert not (tmp_path / "out.conllu").exists()


def test_bad_paths_are_rejected(tmp_path: Path) -> None:
    source = _write(tmp_path, CODE_SWITCH_COMMAND_TAMIL)
    (tmp_path / "empty").mkdir()
    for path, out, error in (
        (source, tmp_path, UsageError),
        (tmp_path, source, UsageError),
        (source, source, UsageError),
        (tmp_path, tmp_path, UsageError),
        (tmp_path / "empty", tmp_path / "out", MissingDataError),
        (tmp_path / "none", tmp_path / "out", MissingDataError),
    ):
        named = path if error is MissingDataError else out
        with pytest.raises(error, match=str(named)):
            jobs_of(path, out)


def test_an_output_that_cannot_be_written_is_an_error(
    command: Callable[..., tuple[int, str]], tmp_path: Path
) -> None:
    source = _write(tmp_path, CODE_SWITCH_COMMAND_TAMIL)
    with pytest.raises(StorageError, match="cannot be written"):
        command(source, "--out", source / "out.conllu")


def test_the_language_is_the_beginning_of_the_name() -> None:
    assert language_of(Path("x/ta_ttb-ud-dev.conllu")) == "ta"
    assert language_of(Path("qhe_hiencs-ud-dev.conllu")) == "qhe"
    for name in ("train.conllu", "test_A.conllu", "TA_x.conllu"):
        with pytest.raises(UsageError, match="--language"):
            language_of(Path(name))
