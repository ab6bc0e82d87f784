"""Code-switched treebanks, and their command."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, strategies as st

from harness.data.readers.conllu import Sentence, Token, read_sentences
from harness.errors import ContractError, MissingDataError, PluginError, StorageError, UsageError
from harness_transliteration.indictrans import INDICTRANS
from harness_transliteration.rules import RULES
from harness_vyakarana.code_switch import CodeSwitch, SwitchCounts, code_switch_file, switch_sentence
from harness_vyakarana.treebank import jobs_of, sentence_text
from tests.builders import released_data
from tests.vyakarana.conftest import run

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


WINDOWS = "\ufeff" + TAMIL.replace("\n", "\r\n")


def test_forms_lemmas_and_text_change_and_nothing_else(tmp_path: Path) -> None:
    counts = code_switch_file(_write(tmp_path, TAMIL), tmp_path / "out.conllu", ALL)
    assert (tmp_path / "out.conllu").read_bytes().decode() == SWITCHED
    assert (counts.sentences, counts.tokens, counts.switched) == (2, 10, 7)
    assert counts.unknown == {"পথ": 1}
    assert _switched(_write(tmp_path, WINDOWS), ALL) == "\ufeff" + SWITCHED.replace("\n", "\r\n")
    stale = TAMIL.replace("# text = பிகாரிலிருந்து  அவர், OK।", "# text = something else")
    assert "# text = pigaarilirundhu avar, OK.\n" in _switched(_write(tmp_path, stale), ALL)
    lines = _switched(_write(tmp_path, TAMIL), replace(ALL, paper=True)).splitlines()
    assert lines[0].endswith(" seed=0 compat=paper")
    assert lines[2] == "# text = pigaarilirundhu pigaar ilirundhu avar vandhaar , OK ."
    assert not any("Orig=" in line for line in lines)


@pytest.mark.parametrize("text", [TAMIL, WINDOWS.rstrip()])
def test_nothing_switched_is_the_source(tmp_path: Path, text: str) -> None:
    assert _switched(_write(tmp_path, text), replace(ALL, ratio=0.0, noise=1.0)) == text


def test_an_original_form_that_is_there_is_kept(tmp_path: Path) -> None:
    text = TAMIL.replace("SpaceAfter=No\n3.1", "SpaceAfter=No|Orig=first\n3.1").replace(
        "வீடு	வீடு	NOUN", "வீ|டு	வீடு	NOUN"
    )
    switched = _switched(_write(tmp_path, text.replace("= வீடு", "= வீ|டு")), ALL)
    assert "SpaceAfter=No|Orig=first\n" in switched
    assert "\tOrig=வீ\\pடு\n" in switched


# Drawing ----------------------------------------------------------------------------------------------


def _sentences(count: int, length: int = 10) -> list[Sentence]:
    form = "அவர்"
    tokens = tuple(
        Token(str(place), form, form, "PRON", "_", "_", str(place - 1), "_", "_", "_")
        for place in range(1, length + 1)
    )
    comments = (f"# text = {' '.join([form] * length)}",)
    sentence = Sentence(comments=comments, tokens=tokens, words=tokens, heads=tuple(range(length)))
    return [replace(sentence, sent_id=f"s{number}") for number in range(count)]


def _latin(sentence: Sentence) -> list[str]:
    """Return the ids of the tokens of a sentence that are in Latin letters."""
    return [token.id for token in sentence.tokens if token.form.isascii()]


def _switchable(sentences: Iterable[Sentence]) -> int:
    """Return how many tokens have a form that is not ASCII."""
    return sum(len(sentence.tokens) - len(_latin(sentence)) for sentence in sentences)


def _texts(sentences: Sequence[Sentence], switch: CodeSwitch) -> dict[str | None, str]:
    return {s.sent_id: sentence_text(switch_sentence(s, switch, SwitchCounts())) for s in sentences}


def test_a_share_of_the_tokens_is_switched() -> None:
    counts = SwitchCounts()
    shares = set()
    for sentence in _sentences(400):
        switched = switch_sentence(sentence, replace(ALL, ratio=0.5), counts)
        shares.add(len(_latin(switched)))
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
            {*_latin(switch_sentence(sentence, replace(ALL, ratio=ratio), SwitchCounts()))}
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


@pytest.mark.parametrize(
    ("option", "value"),
    [
        *((name, share) for name in ("ratio", "noise") for share in (-0.1, 1.5, float("nan"))),
        ("language", "ur"),
    ],
)
def test_an_option_out_of_range_is_rejected(option: str, value: Any) -> None:
    with pytest.raises(UsageError, match=f"{option}.*{value}"):
        replace(ALL, **{option: value})


@pytest.mark.parametrize(
    "answer", [lambda words: words[:-1], lambda words: [""] * len(words), lambda words: ["a\tb"] * len(words)]
)
def test_an_engine_that_breaks_its_contract_is_an_error(answer: Callable[[Sequence[str]], list[str]]) -> None:
    engine = replace(RULES, name="broken", transliterate=lambda words, language: answer(words))
    with pytest.raises(ContractError, match="'broken'"):
        switch_sentence(_sentences(1)[0], replace(ALL, engine=engine), SwitchCounts())


def test_a_file_gives_a_file_and_a_folder_a_folder(tmp_path: Path) -> None:
    source = tmp_path / "in"
    (source / "deep").mkdir(parents=True)
    first, second = _write(source, TAMIL), _write(source / "deep", TAMIL, "ta_y.conllu")
    output = run("code-switch", first, "--out", tmp_path / "one.conllu")
    assert (
        "7 of 10 tokens switched, 0 respelt, in 2 sentences of 1 file(s), by rules 1 (Apache-2.0)." in output
    )
    assert "পথ (1)" in output
    assert (tmp_path / "one.conllu").read_text(encoding="utf-8") == SWITCHED
    run("code-switch", source, "--out", tmp_path / "out", "--ratio", 0.5, "--noise", 1, "--seed", 3)
    for path in (first, second):
        written = (tmp_path / "out" / path.relative_to(source)).read_text(encoding="utf-8")
        assert " ratio=0.5 noise=1.0 seed=3\n" in written
        assert written.count("\n") == TAMIL.count("\n") + 1
    with pytest.raises(StorageError):
        run("code-switch", first, "--out", first / "out.conllu")


ENGINES = """
from harness import hookimpl
from harness.data.translation.services import Transliterator
from harness.errors import PluginError

def ready():
    raise PluginError("buy it first")

@hookimpl
def harness_register_transliterators():
    engine = dict(version="9", licence="MIT", languages=None, summary="x",
                  transliterate=lambda words, language: ["x" for word in words])
    return [Transliterator(name="x", **engine), Transliterator(name="unready", ready=ready, **engine)]
"""


def test_an_engine_of_a_plugin(install_plugin: Callable[..., Path], tmp_path: Path) -> None:
    install_plugin("with_engine", ENGINES)
    source, target = _write(tmp_path, TAMIL, "plain.conllu"), tmp_path / "out.conllu"
    with pytest.raises(PluginError, match="buy it first"):
        run("code-switch", source, "--out", target, "--engine", "unready", "--language", "qq")
    assert not target.exists()
    run("code-switch", source, "--out", target, "--engine", "x", "--language", "qq", "--compat", "paper")
    lines = target.read_text(encoding="utf-8").splitlines()
    assert lines[0].startswith("# code_switch = engine=x version=9 licence=MIT language=qq ")
    assert lines[2] == "# text = x x x x x x x x"


def test_bad_paths_are_rejected(tmp_path: Path) -> None:
    source = _write(tmp_path, TAMIL)
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
