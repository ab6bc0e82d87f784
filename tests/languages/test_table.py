"""The rows of the shipped language table: well-formed, complete, and right where they were looked up by hand."""

from __future__ import annotations

import re
from collections import Counter

import pytest

from benchmarks.language_table import FAMILIES, SUBTAGS, listed
from harness.languages.table import known_languages

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
