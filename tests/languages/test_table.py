"""The table of languages: names, codes, and how users write them."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, strategies as st

from benchmarks.language_table import FAMILIES, SUBTAGS, listed
from harness.cli.main import _repeated, run_command
from harness.errors import UnknownNameError, UsageError
from harness.languages.detection import DETECTED, can_detect, detected_code
from harness.languages.table import FOREIGN_CODES, Language, known_languages, library_code
from harness.planning.plan import Plan
from harness.planning.planner import resolve_model
from harness.planning.run_config import RunConfig, data_options
from harness.running.session import open_session, prepare
from harness.specs.selection import language_codes, plain_codes, plain_patterns, select, split_names

KNOWN = known_languages()
FLORES = """
ace_Arab ace_Latn acm_Arab acq_Arab aeb_Arab afr_Latn ajp_Arab aka_Latn als_Latn amh_Ethi apc_Arab arb_Arab arb_Latn
ars_Arab ary_Arab arz_Arab asm_Beng ast_Latn awa_Deva ayr_Latn azb_Arab azj_Latn bak_Cyrl bam_Latn ban_Latn bel_Cyrl
bem_Latn ben_Beng bho_Deva bjn_Arab bjn_Latn bod_Tibt bos_Latn bug_Latn bul_Cyrl cat_Latn ceb_Latn ces_Latn cjk_Latn
ckb_Arab crh_Latn cym_Latn dan_Latn deu_Latn dik_Latn dyu_Latn dzo_Tibt ell_Grek eng_Latn epo_Latn est_Latn eus_Latn
ewe_Latn fao_Latn fij_Latn fin_Latn fon_Latn fra_Latn fur_Latn fuv_Latn gaz_Latn gla_Latn gle_Latn glg_Latn grn_Latn
guj_Gujr hat_Latn hau_Latn heb_Hebr hin_Deva hne_Deva hrv_Latn hun_Latn hye_Armn ibo_Latn ilo_Latn ind_Latn isl_Latn
ita_Latn jav_Latn jpn_Jpan kab_Latn kac_Latn kam_Latn kan_Knda kas_Arab kas_Deva kat_Geor kaz_Cyrl kbp_Latn kea_Latn
khk_Cyrl khm_Khmr kik_Latn kin_Latn kir_Cyrl kmb_Latn kmr_Latn knc_Arab knc_Latn kon_Latn kor_Hang lao_Laoo lij_Latn
lim_Latn lin_Latn lit_Latn lmo_Latn ltg_Latn ltz_Latn lua_Latn lug_Latn luo_Latn lus_Latn lvs_Latn mag_Deva mai_Deva
mal_Mlym mar_Deva min_Arab min_Latn mkd_Cyrl mlt_Latn mni_Beng mos_Latn mri_Latn mya_Mymr nld_Latn nno_Latn nob_Latn
npi_Deva nqo_Nkoo nso_Latn nus_Latn nya_Latn oci_Latn ory_Orya pag_Latn pan_Guru pap_Latn pbt_Arab pes_Arab plt_Latn
pol_Latn por_Latn prs_Arab quy_Latn ron_Latn run_Latn rus_Cyrl sag_Latn san_Deva sat_Olck scn_Latn shn_Mymr sin_Sinh
slk_Latn slv_Latn smo_Latn sna_Latn snd_Arab som_Latn sot_Latn spa_Latn srd_Latn srp_Cyrl ssw_Latn sun_Latn swe_Latn
swh_Latn szl_Latn tam_Taml taq_Latn taq_Tfng tat_Cyrl tel_Telu tgk_Cyrl tgl_Latn tha_Thai tir_Ethi tpi_Latn tsn_Latn
tso_Latn tuk_Latn tum_Latn tur_Latn twi_Latn tzm_Tfng uig_Arab ukr_Cyrl umb_Latn urd_Arab uzn_Latn vec_Latn vie_Latn
war_Latn wol_Latn xho_Latn ydd_Hebr yor_Latn yue_Hant zho_Hans zho_Hant zsm_Latn zul_Latn
""".split()
"""The folders of SIB-200's data (github.com/dadelani/sib-200 @ 593cea8): FLORES-200's languages and N'Ko."""
BY_HAND = """
am|Amharic|Ethi|Afro-Asiatic||amh|amha1245|2
bm|Bambara|Latn|Niger-Congo||bam|bamb1269|1
bo|Tibetan|Tibt|Sino-Tibetan||bod|tibe1272|1
ca|Catalan|Latn|Indo-European|Romance|cat|stan1289|4
cs|Czech|Latn|Indo-European|Slavic|ces|czec1258|4
cy|Welsh|Latn|Indo-European|Celtic|cym|wels1247|1
gn|Guarani|Latn|Tupian||gug|para1311|1
hr|Croatian|Latn|Indo-European|Slavic|hrv|croa1245|4
hy|Armenian|Armn|Indo-European|Armenian|hye|nucl1235|1
ig|Igbo|Latn|Niger-Congo||ibo|nucl1417|1
km|Khmer|Khmr|Austro-Asiatic||khm|cent1989|1
lo|Lao|Laoo|Kra-Dai||lao|laoo1244|2
lv|Latvian|Latn|Indo-European|Baltic|lvs|stan1325|3
mn|Mongolian|Cyrl|Mongolic||khk|halh1238|1
nah|Nahuatl|Latn|Uto-Aztecan||nah|azte1234|1
ne|Nepali|Deva|Indo-European|Indo-Aryan|npi|nepa1254|1
pcm|Nigerian Pidgin|Latn|Creole||pcm|nige1257|0
quy|Ayacucho Quechua|Latn|Quechuan||quy|ayac1239|1
sat|Santali|Olck|Austro-Asiatic||sat|sant1410|1
sr-Latn|Serbian (Latin script)|Latn|Indo-European|Slavic|srp|serb1264|4
zh|Mandarin Chinese|Hans|Sino-Tibetan||cmn|mand1415|5
zu|Zulu|Latn|Niger-Congo||zul|zulu1248|2
""".split("\n")[1:-1]


def test_every_row_is_well_formed() -> None:
    assert len(KNOWN) >= 210
    for language in KNOWN:
        # Language, script, region and private use of RFC 5646.
        assert re.fullmatch(r"[a-z]{2,3}(-[A-Z][a-z]{3})?(-[A-Z]{2})?(-x-[a-z0-9]{1,8})?", language.code)
        assert re.fullmatch("[A-Z][a-z]{3}", language.script), language
        assert re.fullmatch("[a-z]{3}", language.iso639_3), language
        assert re.fullmatch("[a-z]{4}[0-9]{4}", language.glottocode), language
        assert re.fullmatch("[0-5]?", language.resource_class), language
        assert language.family, language
        assert language.family not in FAMILIES, language
        assert language.segmentation in {"space", "character"}
        assert not language.flores or language.flores[:3].isalpha(), language


def test_names_are_unique() -> None:
    names = Counter(language.name.lower() for language in KNOWN)
    assert [name for name, count in names.items() if count > 1] == []


def test_a_variety_is_of_a_language_in_the_table() -> None:
    for language in KNOWN:
        base, _, subtag = language.code.partition("-")
        if subtag:
            of = KNOWN.get(base)
            assert (language.family, language.iso639_3, language.glottocode) == (
                of.family,
                of.iso639_3,
                of.glottocode,
            )
            assert language.name.startswith(of.name)
            if subtag in SUBTAGS and len(subtag) == 4:
                assert language.script == subtag != of.script


def test_every_language_of_sib200_is_there_once() -> None:
    counts = Counter(language.flores for language in KNOWN if language.flores)
    assert len(FLORES) == 205
    assert set(counts) == set(FLORES)
    assert [code for code, count in counts.items() if count > 1] == ["quy_Latn"]
    for language in KNOWN:
        script = language.flores[-4:]
        assert not script or language.script == script


def test_languages_without_spaces() -> None:
    codes = {language.code for language in KNOWN if language.segmentation == "character"}
    assert codes >= set("bo dz ja km lo my shn th yue zh zh-Hant".split())
    assert not codes & set("ko vi en am hi".split())


@pytest.mark.parametrize("line", BY_HAND)
def test_rows_that_were_looked_up(line: str) -> None:
    code, *rest = line.split("|")
    of = KNOWN.get(code)
    assert [of.name, of.script, of.family, of.branch, of.iso639_3, of.glottocode, of.resource_class] == rest


def test_the_list_and_the_table_name_the_same_languages() -> None:
    published = {language.code for language in KNOWN if language.printed_datasets} | {"ha"}
    assert len(published) == 51
    assert {code for code, _ in listed()} | published == {language.code for language in KNOWN}
    assert not {code for code, _ in listed()} & published


Cli = Callable[..., tuple[int, str, str]]

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


LISTED = list(known_languages().listed)


def _plan(tasks: str, languages: tuple[str, ...] | str | None = None) -> Plan:
    given = {"tasks": tasks, "languages": languages, "model": "baseline:majority", "data": "sample"}
    return prepare(RunConfig.read(given)).plan


@pytest.mark.parametrize("name", ["sw", "swa", "swh", "Swahili", "swahili", "SW", "swh_Latn", "sw-KE"])
def test_a_language_has_one_code_under_all_its_names(name: str) -> None:
    catalog = open_session().catalog
    assert language_codes([name]) == ["sw"]
    assert plain_codes(catalog, [name])[0] == {name: "sw"}
    assert [cell.language.code for cell in _plan(f"xnli:{name}").cells] == ["sw"]
    assert [cell.language.code for cell in _plan("xnli", (name,)).cells] == ["sw"]


@given(st.sampled_from(LISTED), st.sampled_from(["code", "name", "iso639_3"]))
def test_every_listed_language_is_named_by_code_name_and_iso_code(language: object, field: str) -> None:
    code, name = getattr(language, "code"), getattr(language, field)  # noqa: B009
    if field == "code" or "-" not in code:
        expected = {own.code for own in LISTED if name in (own.code, own.name, own.iso639_3)}
        assert language_codes([name])[0] in expected


@given(
    st.lists(st.sampled_from(["sw", "de", "zh-Hant", "Egyptian Arabic", "Swahili"]), min_size=1, unique=True)
)
def test_commas_spaces_and_repetition_separate_alike(names: list[str]) -> None:
    assert split_names(names) == names
    assert split_names([",".join(names)]) == names
    assert split_names([" ".join(names)]) == names
    assert split_names([" , ".join(names) + ","]) == names


@pytest.mark.parametrize(
    ("typed", "read"),
    [
        ("-l sw hi --model m", "-l sw -l hi --model m"),
        ("--tasks=xnli xquad -l sw,hi de", "--tasks=xnli --tasks xquad -l sw,hi -l de"),
        ("--data a b --limit 3", "--data a --data b --limit 3"),
        ("--limit 3 stray", "--limit 3 stray"),
    ],
)
def test_further_values_of_a_list_have_its_option(typed: str, read: str) -> None:
    assert _repeated(typed.split()) == read.split()


def test_all_unknown_names_are_reported_at_once() -> None:
    catalog = open_session().catalog
    with pytest.raises(UsageError) as caught:
        _plan("xnli", ("qqx", "Klingonese", "sw", "qqy"))
    assert all(repr(name) in caught.value.message for name in ("qqx", "Klingonese", "qqy"))
    with pytest.raises(UsageError) as caught:
        select(catalog, ["xnlii", "xnli", "xquda"])
    assert "'xnlii'" in caught.value.message
    assert "'xquda' (did you mean 'xquad' or 'xquad_in'?)" in caught.value.message
    with pytest.raises(UnknownNameError, match="xnlii"):
        select(catalog, ["xnlii"])


def test_a_language_in_the_place_of_a_task_has_a_hint() -> None:
    with pytest.raises(UnknownNameError) as caught:
        select(open_session().catalog, ["xnli:sw", "hi"])
    assert "@hi" in str(caught.value.hint)


def test_languages_of_a_task_and_of_the_run_intersect() -> None:
    plan = _plan("xnli:sw+de,xquad:hi", "de,hi")
    assert {(cell.spec.task, cell.language.code) for cell in plan.cells} == {("xnli", "de"), ("xquad", "hi")}
    assert [note for note in plan.notes if note.startswith("xnli: sw ")]
    assert not plan.skipped
    assert [note for note in _plan("xnli:sw", "German").notes if note.startswith("xnli: sw ")]


def test_data_folders_are_divided_and_near_names_are_given(tmp_path: Path) -> None:
    folders = [tmp_path / name for name in ("a", "b", "c,d")]
    for folder in folders:
        folder.mkdir()
    assert data_options([f"{folders[0]},{folders[1]}"]).folders == tuple(folders[:2])
    assert data_options([folders[2]]).folders == (folders[2],)
    for typed in ("smaple", "Sample", "sampel"):
        with pytest.raises(UsageError, match="exist") as caught:
            data_options([typed])
        assert "'sample'" in str(caught.value.hint)
    with pytest.raises(UsageError, match="excludes"):
        data_options([f"sample,{folders[0]}"])


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("list", "tasks list"),
        ("run", "eval"),
        ("evaluate", "eval"),
        ("download", "fetch"),
        ("version", "--version"),
    ],
)
def test_a_command_of_other_tools_has_a_hint(
    typed: str, meant: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run_command([typed]) == 2
    assert f"'harness {meant}'" in capsys.readouterr().err


@pytest.mark.parametrize("adapter", ["huggingface", "HuggingFace", "transformers", "hub"])
def test_a_model_of_the_hub_has_one_adapter(adapter: str) -> None:
    with pytest.raises(UnknownNameError) as caught:
        resolve_model(open_session().registry.adapters, f"{adapter}:org/foo", {})
    assert caught.value.near == ["hf:org/foo"]


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
