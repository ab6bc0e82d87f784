"""Translation models on translation tasks: asked with their own language codes, and the same as bare transformers."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import (
    M2M100Config,
    M2M100ForConditionalGeneration,
    MarianConfig,
    MarianMTModel,
    MBart50Tokenizer,
    MBartConfig,
    MBartForConditionalGeneration,
    MBartTokenizer,
    NllbTokenizer,
)

from harness.storage.run_folder import Run
from tests.translation_models import save_nllb, save_writing

pytestmark = pytest.mark.thorough

Cli = Callable[..., tuple[int, str, str]]
CODES = ("eng_Latn", "deu_Latn", "fra_Latn")
SENTENCES = [
    "the cat sat on the mat and looked at the dog",
    "die katze lag auf der matte und sah den hund",
    "a good morning to all of you in the small town",
    "einen guten morgen euch allen in der kleinen stadt",
]
SIZES = {
    "d_model": 32, "encoder_layers": 1, "decoder_layers": 1, "encoder_attention_heads": 2,
    "decoder_attention_heads": 2, "encoder_ffn_dim": 32, "decoder_ffn_dim": 32, "max_position_embeddings": 200,
    "init_std": 0.5, "tie_word_embeddings": False,
}  # fmt: skip


@pytest.fixture(scope="module")
def nllb(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_nllb(tmp_path_factory.mktemp("nllb"), CODES, positions=200)


def evaluated(cli: Cli, tasks: str, model: Path) -> tuple[int, Run, str]:
    given = ("--tasks", tasks, "--model", f"hf:{model}", "--data", "sample", "--limit", 3)
    status, out, err = cli("eval", *given, "--output", "run")
    return status, Run(Path("run")), out + err


def translations(run: Run, task: str, language: str) -> dict[str, str]:
    (cell,) = [one for one in run.cells if (one.task, one.language) == (task, language)]
    return {str(record.fields["source"]): record.prediction["text"] for record in run.records(cell)}


def bare(network: Any, tokenizer: Any, text: str, *, prefix: int = 2, **options: Any) -> str:
    """What transformers writes; the tokens that the decoder begins with are no text, special or not."""
    written = network.eval().generate(
        **tokenizer(text, return_tensors="pt"),
        do_sample=False,
        num_beams=1,
        max_length=None,
        max_new_tokens=63,
        **options,
    )
    return " ".join(tokenizer.decode(written[0][prefix:], skip_special_tokens=True).split())


@pytest.mark.parametrize("legacy", [False, True])
def test_nllb_is_asked_with_its_codes_in_both_directions(tmp_path: Path, cli: Cli, legacy: bool) -> None:
    nllb = save_nllb(tmp_path / "nllb", CODES, positions=200, legacy_behaviour=legacy)
    status, run, shown = evaluated(cli, "ntrex_mt:de+fr,ntrex_mt_to_en:de", nllb)
    assert status == 0, shown
    assert {str(cell.method) for cell in run.cells} == {"translate"}
    network: Any = M2M100ForConditionalGeneration.from_pretrained(nllb)
    written = set()
    for task, language, source, target in (
        ("ntrex_mt", "de", "eng_Latn", "deu_Latn"),
        ("ntrex_mt", "fr", "eng_Latn", "fra_Latn"),
        ("ntrex_mt_to_en", "de", "deu_Latn", "eng_Latn"),
    ):
        tokenizer = NllbTokenizer.from_pretrained(nllb, src_lang=source)
        forced = tokenizer.convert_tokens_to_ids(target)
        own = translations(run, task, language)
        for text, answer in own.items():
            ids = tokenizer(text)["input_ids"]
            assert tokenizer.convert_ids_to_tokens(ids)[-1 if legacy else 0] == source
            assert answer[:40] == bare(network, tokenizer, text, forced_bos_token_id=forced)[:40]
        written.add(tuple(own.values()))
    assert len(written) == 3


@pytest.mark.parametrize("make", [MBart50Tokenizer, MBartTokenizer])
def test_mbart_is_asked_with_its_codes_in_both_directions(tmp_path: Path, cli: Cli, make: Any) -> None:
    letters = [(letter, -3.0) for letter in "abcdefghijklmnoprstuvwyz"]
    names = [(name, 0.0) for name in ("<s>", "<pad>", "</s>", "<unk>")]
    codes = [(code, 0.0) for code in ("en_XX", "de_DE", "fr_XX")]
    tokenizer = make(vocab=[*names, ("▁", -2.0), *letters, *codes, ("<mask>", 0.0)])
    config: Any = MBartConfig
    torch.manual_seed(0)
    network = MBartForConditionalGeneration(
        config(vocab_size=len(tokenizer), decoder_start_token_id=2, forced_eos_token_id=None, **SIZES)
    )
    save_writing(network, tokenizer, tmp_path / "mbart")
    tokenizer.save_pretrained(tmp_path / "mbart")
    status, run, shown = evaluated(cli, "ntrex_mt:de+fr,ntrex_mt_to_en:de", tmp_path / "mbart")
    assert status == 0, shown
    written = set()
    for task, language, source, target in (
        ("ntrex_mt", "de", "en_XX", "de_DE"),
        ("ntrex_mt", "fr", "en_XX", "fr_XX"),
        ("ntrex_mt_to_en", "de", "de_DE", "en_XX"),
    ):
        tokenizer = make.from_pretrained(tmp_path / "mbart", src_lang=source)
        code = tokenizer.convert_tokens_to_ids(target)
        asked: dict[str, int] = {"forced_bos_token_id": code}
        if make is MBartTokenizer:
            asked = {"decoder_start_token_id": code, "prefix": 1}
        own = translations(run, task, language)
        for text, answer in own.items():
            assert answer[:40] == bare(network, tokenizer, text, **asked)[:40]
        written.add(tuple(own.values()))
    assert len(written) == 3


def test_a_language_that_the_model_does_not_know_fails_alone(nllb: Path, cli: Cli) -> None:
    status, run, _ = evaluated(cli, "ntrex_mt:de+zh", nllb)
    assert status == 1
    assert {cell.language: cell.status for cell in run.cells} == {"de": "ok", "zh": "failed"}
    (failed,) = [cell for cell in run.cells if cell.status == "failed"]
    assert "has no code of FLORES-200 (NLLB) for the language 'zh'" in str(failed.reason)


def test_a_prompt_can_be_asked_for_instead(nllb: Path, cli: Cli) -> None:
    given = ("--tasks", "ntrex_mt:de", "--model", f"hf:{nllb}", "--data", "sample", "--limit", 2)
    status, _, err = cli("eval", *given, "--method", "generate", "--output", "run")
    assert status == 0, err
    (cell,) = Run(Path("run")).cells
    assert str(cell.method) == "generate"


@pytest.fixture(scope="module")
def pieces(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A sentencepiece model, and its vocabulary as M2M100 and Marian have it."""
    trainer: Any = pytest.importorskip("sentencepiece").SentencePieceTrainer
    folder = tmp_path_factory.mktemp("pieces")
    (folder / "text").write_text("\n".join(SENTENCES * 20), encoding="utf-8")
    trainer.train(input=str(folder / "text"), model_prefix=str(folder / "own"), vocab_size=48)
    words = [line.split("\t")[0] for line in (folder / "own.vocab").read_text("utf-8").splitlines()]
    names = ["<s>", "<pad>", "</s>", "<unk>", ">>deu<<", ">>fra<<"]
    # M2M100 adds a hundred languages, and a network with over twice as many rows as pieces is rejected.
    further = [f"x{number}" for number in range(100)]
    vocabulary = {word: place for place, word in enumerate(dict.fromkeys([*names, *words, *further]))}
    (folder / "vocab.json").write_text(json.dumps(vocabulary), encoding="utf-8")
    return folder / "own.model", folder / "vocab.json"


def test_m2m100_is_asked_with_its_codes(pieces: tuple[Path, Path], tmp_path: Path, cli: Cli) -> None:
    from transformers import M2M100Tokenizer

    model, vocabulary = pieces
    make: Any = M2M100Tokenizer
    tokenizer = make(vocab_file=str(vocabulary), spm_file=str(model))
    config: Any = M2M100Config
    torch.manual_seed(0)
    rows = len(tokenizer) + len(tokenizer.lang_token_to_id) + tokenizer.num_madeup_words
    network = M2M100ForConditionalGeneration(config(vocab_size=rows, decoder_start_token_id=2, **SIZES))
    save_writing(network, tokenizer, tmp_path / "m2m")
    tokenizer.save_pretrained(tmp_path / "m2m")
    status, run, shown = evaluated(cli, "ntrex_mt:de,ntrex_mt_to_en:fr", tmp_path / "m2m")
    assert status == 0, shown
    for task, language, source, target in (
        ("ntrex_mt", "de", "en", "de"),
        ("ntrex_mt_to_en", "fr", "fr", "en"),
    ):
        tokenizer = make.from_pretrained(tmp_path / "m2m", src_lang=source)
        forced = tokenizer.get_lang_id(target)
        for text, answer in translations(run, task, language).items():
            assert answer[:40] == bare(network, tokenizer, text, forced_bos_token_id=forced)[:40]


@pytest.mark.filterwarnings("ignore:Recommended")
@pytest.mark.parametrize("several", [False, True])
def test_marian_translates_its_pairs(
    pieces: tuple[Path, Path], tmp_path: Path, cli: Cli, several: bool
) -> None:
    from transformers import MarianTokenizer

    model, vocabulary = pieces
    folder = tmp_path / "marian"
    if not several:
        kept = {
            key: place for key, place in json.loads(vocabulary.read_text("utf-8")).items() if key[:2] != ">>"
        }
        vocabulary = tmp_path / "vocab.json"
        vocabulary.write_text(json.dumps({key: place for place, key in enumerate(kept)}), encoding="utf-8")
    make: Any = MarianTokenizer
    tokenizer = make(
        source_spm=str(model),
        target_spm=str(model),
        vocab=str(vocabulary),
        source_lang="en",
        target_lang="mul" if several else "de",
    )
    config: Any = MarianConfig
    torch.manual_seed(0)
    pad = tokenizer.pad_token_id
    network = MarianMTModel(
        config(
            vocab_size=len(tokenizer),
            decoder_start_token_id=pad,
            pad_token_id=pad,
            eos_token_id=tokenizer.eos_token_id,
            forced_eos_token_id=None,
            **SIZES,
        )
    )
    save_writing(network, tokenizer, folder)
    tokenizer.save_pretrained(folder)
    status, run, shown = evaluated(cli, "ntrex_mt:de+fr+es", folder)
    known = {"de", "fr"} if several else {"de"}
    assert (status, {cell.language for cell in run.cells if cell.status == "ok"}) == (1, known), shown
    token = ">>deu<< " if several else ""
    for text, answer in translations(run, "ntrex_mt", "de").items():
        assert answer[:40] == bare(network, tokenizer, token + text, prefix=1)[:40]
