"""The configurations that the Hub's datasets have, as other harnesses and the datasets' cards list them.

Sources: the task files of lm-evaluation-harness 0.4.13; MTEB for IndicSentiment; the dataset's loading script for
IndicQA; the file names of release 1.1 for MASSIVE.
"""

from __future__ import annotations

BELEBELE = (
    "acm_Arab afr_Latn als_Latn amh_Ethi apc_Arab arb_Arab arb_Latn ars_Arab ary_Arab arz_Arab asm_Beng "
    "azj_Latn bam_Latn ben_Beng ben_Latn bod_Tibt bul_Cyrl cat_Latn ceb_Latn ces_Latn ckb_Arab dan_Latn "
    "deu_Latn ell_Grek eng_Latn est_Latn eus_Latn fin_Latn fra_Latn fuv_Latn gaz_Latn grn_Latn guj_Gujr "
    "hat_Latn hau_Latn heb_Hebr hin_Deva hin_Latn hrv_Latn hun_Latn hye_Armn ibo_Latn ilo_Latn ind_Latn "
    "isl_Latn ita_Latn jav_Latn jpn_Jpan kac_Latn kan_Knda kat_Geor kaz_Cyrl kea_Latn khk_Cyrl khm_Khmr "
    "kin_Latn kir_Cyrl kor_Hang lao_Laoo lin_Latn lit_Latn lug_Latn luo_Latn lvs_Latn mal_Mlym mar_Deva "
    "mkd_Cyrl mlt_Latn mri_Latn mya_Mymr nld_Latn nob_Latn npi_Deva npi_Latn nso_Latn nya_Latn ory_Orya "
    "pan_Guru pbt_Arab pes_Arab plt_Latn pol_Latn por_Latn ron_Latn rus_Cyrl shn_Mymr sin_Latn sin_Sinh "
    "slk_Latn slv_Latn sna_Latn snd_Arab som_Latn sot_Latn spa_Latn srp_Cyrl ssw_Latn sun_Latn swe_Latn "
    "swh_Latn tam_Taml tel_Telu tgk_Cyrl tgl_Latn tha_Thai tir_Ethi tsn_Latn tso_Latn tur_Latn ukr_Cyrl "
    "urd_Arab urd_Latn uzn_Latn vie_Latn war_Latn wol_Latn xho_Latn yor_Latn zho_Hans zho_Hant zsm_Latn "
    "zul_Latn"
).split()
GLOBAL_MMLU = (
    "am ar bn cs de el en es fa fil fr ha he hi id ig it ja ko ky lt mg ms ne nl ny pl pt ro ru si sn so "
    "sr sv sw te tr uk vi yo zh"
).split()
GLOBAL_MMLU_LITE = ("ar bn de en es fr hi id it ja ko pt sw yo zh").split()
INCLUDE = (
    "Albanian, Arabic, Armenian, Azerbaijani, Basque, Belarusian, Bengali, Bulgarian, Chinese, Croatian, "
    "Dutch, Estonian, Finnish, French, Georgian, German, Greek, Hebrew, Hindi, Hungarian, Indonesian, "
    "Italian, Japanese, Kazakh, Korean, Lithuanian, Malay, Malayalam, Nepali, North Macedonian, Persian, "
    "Polish, Portuguese, Russian, Serbian, Spanish, Tagalog, Tamil, Telugu, Turkish, Ukrainian, Urdu, "
    "Uzbek, Vietnamese"
).split(", ")
MMMLU = ("AR-XY BN-BD DE-DE ES-LA FR-FR HI-IN ID-ID IT-IT JA-JP KO-KR PT-BR SW-KE YO-NG ZH-CN").split()
MMLU_PROX = ("af ar bn cs de en es fr hi hu id it ja ko mr ne pt ru sr sw te th uk ur vi wo yo zh zu").split()
XSTORYCLOZE = ("ar en es eu hi id my ru sw te zh").split()
IROKO = ("amh eng ewe fra hau ibo kin lin lug orm sna sot swa twi wol xho yor zul").split()
GLOBAL_PIQA = (
    "acm_arab acq_arab aeb_arab afb_arab als_latn amh_ethi apc_arab_jord apc_arab_leba apc_arab_pale "
    "apc_arab_syri arb_arab arq_arab ars_arab ary_arab arz_arab asm_beng azj_latn bam_latn bcc_arab "
    "bel_cyrl ben_beng ben_latn bgc_deva bho_deva bos_latn bra_deva bsk_arab btx_latn bul_cyrl cat_latn "
    "ces_latn ckb_arab ckm_latn cls_deva cmn_hans cmn_hant dan_latn deu_latn dhd_deva dje_latn ekk_latn "
    "ekp_latn ell_grek eng_latn eus_latn fao_latn fin_latn fra_latn_cana fra_latn_fran glg_latn guj_gujr "
    "hau_latn haw_latn heb_hebr hin_deva hin_latn hrv_latn hun_latn hye_armn ibo_latn idu_latn ind_latn "
    "isl_latn iso_latn ita_latn jav_latn jpn_jpan kan_knda kan_latn kat_geor kaz_cyrl kin_latn kir_cyrl "
    "kor_hang lin_latn lit_latn luo_latn mal_mlym mar_deva mkd_cyrl mni_beng mni_mtei nag_latn nld_latn "
    "nno_latn nob_latn npi_deva ory_orya pan_guru pcm_latn pes_arab plt_latn pol_latn por_latn_braz "
    "por_latn_port ron_latn rus_cyrl rwr_deva sin_latn sin_sinh slk_latn slk_latn_sari slv_latn "
    "slv_latn_cerk slv_latn_prle snd_arab snd_deva spa_latn_mexi spa_latn_peru spa_latn_spai srp_cyrl "
    "srp_cyrl_torl srp_latn srp_latn_torl sun_latn swe_latn swh_latn swv_deva tam_latn tam_taml tel_latn "
    "tel_telu tgl_latn tha_thai tur_latn uig_arab ukr_cyrl urd_arab urd_latn urh_latn uzn_latn vie_latn "
    "yor_latn yue_hant zsm_latn zul_latn"
).split()
INDIC = ("as bn gu hi kn ml mr or pa ta te").split()
INDIC_SENTIMENT = ("as bd bn gu hi kn ml mr or pa ta te ur").split()
MASSIVE = (
    "af-ZA am-ET ar-SA az-AZ bn-BD ca-ES cy-GB da-DK de-DE el-GR en-US es-ES fa-IR fi-FI fr-FR he-IL "
    "hi-IN hu-HU hy-AM id-ID is-IS it-IT ja-JP jv-ID ka-GE km-KH kn-IN ko-KR lv-LV ml-IN mn-MN ms-MY "
    "my-MM nb-NO nl-NL pl-PL pt-PT ro-RO ru-RU sl-SL sq-AL sv-SE sw-KE ta-IN te-IN th-TH tl-PH tr-TR "
    "ur-PK vi-VN zh-CN zh-TW"
).split()

CONFIGS = {
    "belebele": BELEBELE,
    "global_mmlu": GLOBAL_MMLU,
    "global_mmlu_lite": GLOBAL_MMLU_LITE,
    "include": INCLUDE,
    "include_lite": INCLUDE,
    "mmmlu": MMMLU,
    "mmlu_prox": MMLU_PROX,
    "mmlu_prox_lite": MMLU_PROX,
    "xstorycloze": XSTORYCLOZE,
    "afrixnli": IROKO,
    "afrimmlu": IROKO,
    "indicxnli": INDIC,
    "indicqa": INDIC,
    "indicsentiment": INDIC_SENTIMENT,
    "massive_intent": MASSIVE,
    "massive_slots": MASSIVE,
    "global_piqa": GLOBAL_PIQA,
}
"""By task: the configurations, or the same in the names of files."""
