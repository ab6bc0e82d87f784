"""A language has one code; the codes of other collections are rejected with the one to use."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, strategies as st

from harness.errors import UnknownNameError, UsageError
from harness.languages.table import FOREIGN_CODES, Language, known_languages

Cli = Callable[..., tuple[int, str, str]]

KNOWN = known_languages()
FOREIGN = [
    ("cmn", "zh", "'cmn' is the Tatoeba code and ISO 639-3 code of Mandarin Chinese: use 'zh'."),
    ("zho", "zh", "'zho' is the ISO 639-2 code of Mandarin Chinese: use 'zh'."),
    ("chi", "zh", "ISO 639-2 code"),
    ("swh", "sw", "Tatoeba code and ISO 639-3 code of Swahili"),
    ("swa", "sw", "ISO 639-2 code"),
    ("pes", "fa", "Tatoeba code and ISO 639-3 code of Persian"),
    ("fas", "fa", "ISO 639-2 code"),
    ("arb", "ar", "'arb' is the ISO 639-3 code of Arabic: use 'ar'."),
    ("ara", "ar", "'ara' is the Tatoeba code and ISO 639-2 code of Arabic: use 'ar'."),
    ("aze", "az", "Tatoeba code and ISO 639-2 code"),
    ("azj", "az", "ISO 639-3 code"),
    ("tgl", "tl", "Tatoeba code"),
    ("jpn", "ja", "Tatoeba code"),
    ("JPN", "ja", "Tatoeba code"),
    ("est", "et", "Tatoeba code and ISO 639-2 code"),
    ("zsm", "ms", "ISO 639-3 code"),
    ("quz", "qu", "ISO 639-3 code"),
    ("iw", "he", "'iw' is the withdrawn ISO 639-1 code of Hebrew: use 'he'."),
    ("in", "id", "withdrawn ISO 639-1 code of Indonesian"),
    ("zh_", "zh", "Universal Dependencies file prefix of Mandarin Chinese"),
    ("Chinese", "zh", "Universal Dependencies name of Mandarin Chinese"),
    ("zho_Hans", "zh", "FLORES code"),
    ("arb_Arab", "ar", "FLORES code"),
    ("ace_Arab", "ace-Arab", "FLORES code"),
    ("kmr", "ku", "ISO 639-3 code"),
    ("quy_Latn", "quy", "'quy_Latn' is the FLORES code of Ayacucho Quechua: use 'quy'."),
    ("bam", "bm", "ISO 639-3 code and ISO 639-2 code of Bambara"),
    ("ji", "yi", "withdrawn ISO 639-1 code of Yiddish"),
    ("hi:", "hi", "WikiANN line prefix"),
    ("swahili", "sw", "Languages are named by code: 'swahili' is 'sw'."),
]


@pytest.mark.parametrize(("code", "ours", "sentence"), FOREIGN)
def test_a_code_of_another_collection_names_ours(code: str, ours: str, sentence: str) -> None:
    with pytest.raises(UsageError) as caught:
        KNOWN.get(code)
    assert sentence in str(caught.value)
    assert f"'{ours}'." in str(caught.value)
    assert not isinstance(caught.value, UnknownNameError)


def test_every_foreign_code_leads_to_its_language() -> None:
    """To a language that has the code, and that is no variety of another that has it."""
    for language in KNOWN:
        for field in FOREIGN_CODES:
            for code in getattr(language, field).split():
                if code not in KNOWN and code.lower() not in {other.name.lower() for other in KNOWN}:
                    meant = KNOWN.meant_by(code)
                    assert meant is not None
                    owner = KNOWN.get(meant.rpartition("use ")[2].strip("'"))
                    assert code in getattr(owner, field).split()
                    assert (
                        owner is language or language.code.startswith(f"{owner.code}-") or code == "quy_Latn"
                    )


def test_no_foreign_code_means_two_languages() -> None:
    """Varieties share their language's codes, and NLLB's only Quechua is Ayacucho Quechua."""
    owners = Counter(
        code
        for language in KNOWN
        if "-" not in language.code
        for code in {code.lower() for field in FOREIGN_CODES for code in getattr(language, field).split()}
    )
    assert [code for code, count in owners.items() if count > 1] == ["quy_latn"]


def test_our_codes_are_in_no_other_collection() -> None:
    """``et`` cannot be Estonian here and another language there: no foreign code shadows one of ours."""
    for language in KNOWN:
        foreign = {code.lower() for field in FOREIGN_CODES for code in getattr(language, field).split()}
        assert not {code for code in foreign if code in KNOWN} - {language.code.partition("-")[0]}


@given(st.text(alphabet=st.characters(categories=["Ll"], max_codepoint=0x7F), min_size=1, max_size=4))
def test_a_code_is_ours_or_an_error_that_says_more(code: str) -> None:
    if code in KNOWN:
        assert KNOWN.get(code).code == code
        assert KNOWN.meant_by(code) is None
        return
    with pytest.raises(UsageError) as caught:
        KNOWN.get(code)
    assert isinstance(caught.value, UnknownNameError) != (
        KNOWN.meant_by(code) is not None or any(code == language.name.lower() for language in KNOWN)
    )


def test_a_code_that_a_task_describes_is_its_own() -> None:
    mine = Language(code="cmn", name="My Mandarin", script="Hant", family="Sino-Tibetan")
    table = KNOWN.extended({"cmn": mine})
    assert table.get("cmn") is mine
    assert table.meant_by("cmn") is None


@pytest.mark.parametrize(
    "command",
    [
        "languages cmn",
        "tasks list --language cmn",
        "plan --tasks xnli --model baseline:random --data sample --languages cmn",
        "plan --tasks xnli:cmn --model baseline:random --data sample",
        "plan --tasks xnli --model baseline:random --data sample --train-languages cmn",
        "plan --tasks xnli --model baseline:random --data sample --select-on cmn",
    ],
)
def test_commands_read_a_foreign_code(cli: Cli, command: str) -> None:
    ours = cli(*command.replace("cmn", "zh").split())
    status, out, err = cli(*command.split())
    assert (status, err.replace("cmn", "zh")) == (ours[0], ours[2])
    assert "zh" in out or status


def test_a_spec_with_a_foreign_code_shows_the_right_one(cli: Cli, tmp_path: Path) -> None:
    path = tmp_path / "mine.yaml"
    text = (
        "task: mine\nkind: bitext_retrieval\nversion: 1\ndescription: d\ncitation: c\nlicense: l\n"
        "metrics: [top1_accuracy]\nlanguages:\n  swh: {test: {sample: a}}\n  xx: {test: {sample: a}}\n"
    )
    path.write_text(text, encoding="utf-8")
    status, _, err = cli("tasks", "validate", path)
    assert status == 2
    assert "line 9: languages.swh: 'swh' is the Tatoeba code and ISO 639-3 code of Swahili: use 'sw'" in err
    assert re.search("line 10: languages.xx: .*'xx'", err)
