"""The translator `hf-seq2seq` on tiny untrained models, against a bare `generate` of transformers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import (
    M2M100ForConditionalGeneration,
    NllbTokenizer,
    T5Config,
    T5ForConditionalGeneration,
)

from harness.data.translation.services import Translator, TranslatorContext, TranslatorEntry
from harness.errors import AdapterError, UnknownNameError, UsageError
from harness.languages.table import known_languages
from harness.running.session import open_session
from harness.testing.translator_contract import TranslatorContract
from harness_hf import harness_register_translators
from harness_hf.seq2seq.adapter import open_translator
from tests.translation_models import save_nllb, save_writing

pytestmark = pytest.mark.thorough

CODES = ("eng_Latn", "hin_Deva", "swh_Latn")
SEGMENTS = ["the cat", "a dog sat", "the the the cat on a mat", "mat"]


@pytest.fixture(scope="module")
def context() -> TranslatorContext:
    return open_session().registry


@pytest.fixture(scope="module")
def nllb(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_nllb(tmp_path_factory.mktemp("nllb"), CODES)


@pytest.fixture(scope="module")
def madlad(tmp_path_factory: pytest.TempPathFactory, seq2seq_folders: dict[str, Path]) -> Path:
    from transformers import AutoTokenizer

    folder = tmp_path_factory.mktemp("madlad")
    tokenizer = AutoTokenizer.from_pretrained(seq2seq_folders["t5"])
    tokenizer.add_tokens(["<2en>", "<2sw>"])
    make: Any = T5Config
    config = make(
        vocab_size=len(tokenizer) + 4,
        d_model=32,
        d_kv=16,
        d_ff=64,
        num_layers=1,
        num_heads=2,
        decoder_start_token_id=0,
        initializer_factor=20.0,
        tie_word_embeddings=False,
    )
    torch.manual_seed(1)
    save_writing(T5ForConditionalGeneration(config), tokenizer, folder)
    tokenizer.save_pretrained(folder)
    return folder


@pytest.mark.parametrize(("source", "target"), [("en", "hi"), ("hi", "en"), ("en", "sw")])
def test_nllb_writes_what_a_bare_model_writes(
    nllb: Path, context: TranslatorContext, source: str, target: str
) -> None:
    translator = open_translator(str(nllb), context)
    answers = translator.translate(SEGMENTS, source, target)
    codes = {code: known_languages().get(code).flores for code in (source, target)}
    tokenizer = NllbTokenizer.from_pretrained(nllb, src_lang=codes[source])
    network: Any = M2M100ForConditionalGeneration.from_pretrained(nllb)
    network.eval()
    for segment, answer in zip(SEGMENTS, answers, strict=True):
        written = network.generate(
            **tokenizer(segment, return_tensors="pt"),
            forced_bos_token_id=tokenizer.convert_tokens_to_ids(codes[target]),
            do_sample=False,
            num_beams=1,
            max_length=None,
            max_new_tokens=60,
        )
        expected = tokenizer.decode(written[0], skip_special_tokens=True).strip()
        assert answer.text[:40] == expected[:40]
    assert any(answer.text for answer in answers)
    translator.close()
    translator.close()


def test_the_target_changes_the_answer_and_the_batch_does_not(nllb: Path, context: TranslatorContext) -> None:
    translator = open_translator(str(nllb), context)
    together = translator.translate(SEGMENTS, "en", "hi")
    alone = [translator.translate([segment], "en", "hi")[0] for segment in SEGMENTS]
    assert together == alone
    assert [item.text for item in translator.translate(SEGMENTS, "en", "sw")] != [
        item.text for item in together
    ]
    translator.close()


def test_madlad_gets_the_target_before_the_text(madlad: Path, context: TranslatorContext) -> None:
    translator = open_translator(str(madlad), context)
    assert translator.supports("xx", "sw") and translator.supports("sw", "en")
    assert not translator.supports("en", "hi")
    to_swahili, to_english = (translator.translate(SEGMENTS, "de", code) for code in ("sw", "en"))
    assert to_swahili != to_english
    translator.close()


def test_languages_that_are_not_in_the_vocabulary_are_not_supported(
    nllb: Path, context: TranslatorContext
) -> None:
    translator: Translator = open_translator(str(nllb), context)
    assert translator.supports("sw", "hi")
    assert not translator.supports("en", "de")


def test_the_fingerprint_is_that_of_weights_and_options(nllb: Path, context: TranslatorContext) -> None:
    one, again = (open_translator(str(nllb), context).info() for _ in range(2))
    cut = open_translator(f"{nllb}?max_length=16", context).info()
    assert one.fingerprint == again.fingerprint != cut.fingerprint


def test_a_model_without_languages_is_rejected(
    seq2seq_folders: dict[str, Path], context: TranslatorContext
) -> None:
    with pytest.raises(AdapterError, match="'<2en>'"):
        open_translator(str(seq2seq_folders["t5"]), context)
    with pytest.raises(UsageError, match="needs a model"):
        open_translator("", context)
    with pytest.raises(UnknownNameError, match="max_length"):
        open_translator(f"{seq2seq_folders['t5']}?max_lenght=3", context)


class TestContract(TranslatorContract):
    @pytest.fixture(scope="class")
    @classmethod
    def entry(cls) -> TranslatorEntry:
        return next(entry for entry in harness_register_translators() if entry.name == "hf-seq2seq")

    @pytest.fixture(scope="class")
    @classmethod
    def ref(cls, nllb: Path) -> str:
        return str(nllb)
