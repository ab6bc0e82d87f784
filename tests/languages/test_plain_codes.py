"""A language is named by any BCP 47 tag: country and usual script are dropped, with a note."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given, strategies as st

from harness.errors import UnknownNameError
from harness.languages.detection import DETECTED, can_detect, detected_code
from harness.languages.library_code import library_code
from harness.languages.table import known_languages
from harness.planning.run_config import RunConfig, data_options
from harness.running.session import open_session, prepare
from harness.specs.selection import plain_patterns

Cli = Callable[..., tuple[int, str, str]]
KNOWN = known_languages()
PLAIN = {
    "zh": "zh-CN zh_CN zh-Hans zh_hans ZH-hans-cn zh-SG zh-Hans-SG zh-Hans-HK",
    "zh-Hant": "zh-TW zh_TW zh-MO zh-hant zh-Hant-TW zh-Hant-HK",
    "zh-HK": "zh_HK zh-hk",
    "pt": "pt-PT pt_PT pt-AO pt-Latn",
    "pt-BR": "pt_BR pt-br",
    "en": "en-US en_US en-001 en-Latn-US EN",
    "en-GB": "en_GB en-gb",
    "es": "es-ES es-419",
    "sr": "sr-Cyrl sr-RS sr_Cyrl_RS",
    "sr-Latn": "sr_Latn sr-Latn-RS sr-ME",
    "ja": "ja-JP ja-Jpan",
    "ko": "ko-KR ko-Kore",
    "hi-Latn": "hi-Latn-IN",
    "uz": "uz-Latn-UZ",
    "sd-Deva": "sd-IN",
    "yue": "yue-HK yue-Hant",
}
OTHERS = "hi-Arab uz-AF pa-PK yue-CN en-x-pirate ca-valencia de-CH-1996 qq-CN"
COUNTRIES = ["AQ", "001", "zz"]
"""Regions that imply no script for any language."""


@pytest.mark.parametrize(("ours", "codes"), PLAIN.items())
def test_country_and_usual_script_are_dropped(ours: str, codes: str) -> None:
    assert {KNOWN.plain_code(code) for code in codes.split()} == {ours}
    assert {KNOWN.code_of(code) for code in codes.split()} == {ours}


@given(st.sampled_from(list(KNOWN)), st.sampled_from(["-", "_"]), st.sampled_from(COUNTRIES), st.booleans())
def test_every_language_is_itself_with_script_and_country(
    language: object, mark: str, country: str, scripted: bool
) -> None:
    code, script = getattr(language, "code"), getattr(language, "script")  # noqa: B009
    if code in {"bar-x-munich", "zh-HK"} or ("-" in code and not code.endswith(script)):
        return
    named = f"{code}-{script}" if scripted and "-" not in code else code
    assert KNOWN.plain_code(f"{named}-{country}".replace("-", mark)) == code


@pytest.mark.parametrize("code", OTHERS.split())
def test_another_script_or_dialect_is_an_error_with_the_language(code: str) -> None:
    assert KNOWN.plain_code(code) is None
    with pytest.raises(UnknownNameError) as caught:
        KNOWN.get(code)
    language = code.split("-", maxsplit=1)[0]
    assert (caught.value.near == [language]) == (language in KNOWN)


@pytest.mark.parametrize(
    ("code", "near"),
    [("zh-CN", "zh"), ("pt-PT", "pt"), ("en-US", "en"), ("zho-Hant", "zh-Hant"), ("iw-IL", "he")],
)
def test_a_hint_is_the_language_and_not_a_near_spelling(code: str, near: str) -> None:
    with pytest.raises(UnknownNameError) as caught:
        KNOWN.get(code)
    assert caught.value.near == [near]


def test_patterns_and_options_of_a_run_name_languages_in_any_form() -> None:
    patterns, notes = plain_patterns(open_session().catalog, ["xnli:zh-CN+sw,@pt-PT", "xnli"])
    assert patterns == ["xnli:zh+sw", "@pt", "xnli"]
    assert len(notes) == 2
    config = RunConfig(
        tasks=("xnli:zh-CN+sw+en",),
        model="baseline:majority",
        data=data_options(["sample"]),
        languages=("zh_Hans", "zh-CN", "sw-KE", "en-US"),
        train_languages=("en-US",),
        select_on="en_US",
    )
    plan = prepare(config).plan
    assert [cell.language.code for cell in plan.cells] == ["zh", "sw", "en"]
    assert {cell.view["train_languages"] for cell in plan.cells} == {"en"}
    assert {cell.view["select_on"] for cell in plan.cells} == {"en"}
    assert {note.split()[0] for note in plan.notes} >= {"zh-CN", "zh_Hans", "sw-KE", "en-US", "en_US"}


def test_libraries_get_the_code_that_they_know() -> None:
    detected = {"zh-Hant": "zh", "pt-BR": "pt", "en-GB": "en", "yue": "yue", "zh-HK": "zh", "bar-IT": "bar"}
    assert {code: detected_code(KNOWN.get(code)) for code in detected} == detected
    for code in ("hi-Latn", "sr-Latn", "uz-Cyrl", "ar-Latn"):  # the detector knows their other script
        assert library_code(code, DETECTED) is None
        assert code not in KNOWN or not can_detect(KNOWN.get(code))
    assert library_code("he", {"iw"}) == "iw"
    assert library_code("zh_TW", {"zh"}) == "zh"
    assert library_code("zh-Latn", {"zh"}) is None
    assert all(
        detected_code(language) in {None, language.code} for language in KNOWN if language.code in DETECTED
    )
