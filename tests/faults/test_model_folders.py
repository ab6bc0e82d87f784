"""Model folders that open and answer nonsense: no tokenizer or another model's, unsafe or ignored weights."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest
import torch
from tokenizers import Tokenizer, models, pre_tokenizers, trainers
from transformers import BertConfig, BertForMaskedLM, BertForSequenceClassification, BertModel

from harness.data.records import ClassificationExample, Prediction
from harness.errors import AdapterError
from harness.kinds.methods import Pairing
from harness.languages.table import known_languages
from harness.models.requests import SubwordCount
from harness.running.cell_counts import CellLedger, unknown_notes
from harness.running.session import open_session
from harness.storage.results import CellResult
from harness_hf.family import AnyFamilyOptions, describe_any, open_any
from harness_hf.model_folder import ModelConfig, folder_fault, weight_files

from ..conftest import Cli
from ..hf.conftest import CORPUS, byte_level, decoder_tokenizer, fast, sizes, wordpiece
from .evaluation import read_results
from .saved_models import save_encoder, save_gpt2, save_text_to_text

TOKENIZER_FILES = ("tokenizer.json", "tokenizer_config.json")
ONE_TASK = ("eval", "--tasks", "tatoeba:ru+sw+ta", "--data", "sample", "--protocol", "frozen")


def open_model(folder: Path) -> Any:
    """Open a folder as ``--model hf:FOLDER`` does."""
    options = AnyFamilyOptions()
    return open_any(describe_any(str(folder), options), options)


SAVES: dict[str, Callable[[Path], Path]] = {
    "bert": lambda folder: save_encoder(folder, "bert"),
    "xlm-roberta": lambda folder: save_encoder(folder, "xlm-roberta"),
    "roberta": lambda folder: save_encoder(folder, "roberta"),
    "mt5": save_text_to_text,
    "gpt2": save_gpt2,
}


@pytest.mark.parametrize("kept", [(), ("tokenizer_config.json",)])
@pytest.mark.parametrize("kind", list(SAVES))
def test_a_folder_without_tokenizer_files_is_an_error(
    tmp_path: Path, kind: str, kept: tuple[str, ...]
) -> None:
    folder = SAVES[kind](tmp_path / kind)
    open_model(folder).close()
    for name in set(TOKENIZER_FILES) - set(kept):
        (folder / name).unlink()
    with pytest.raises(AdapterError) as caught:
        open_model(folder)
    if not kept:
        assert "tokenizer.save_pretrained" in f"{caught.value} {caught.value.hint}"


def test_the_command_stops_before_any_score(cli: Cli, tmp_path: Path) -> None:
    folder = save_encoder(tmp_path / "model")
    for name in TOKENIZER_FILES:
        (folder / name).unlink()
    status, _, err = cli(*ONE_TASK, "--model", f"hf:{folder}", "--output", tmp_path / "run")
    assert status != 0
    assert str(folder) in err
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("rows", ["one too few", "three times"])
@pytest.mark.parametrize(
    ("save", "size"),
    [
        (save_encoder, len(wordpiece())),
        (save_text_to_text, len(byte_level())),
        (save_gpt2, len(decoder_tokenizer(begins=False))),
    ],
)
def test_a_tokenizer_of_another_model_is_an_error(
    tmp_path: Path, save: Callable[..., Path], size: int, rows: str
) -> None:
    count = {"one too few": size - 1, "three times": 3 * size}[rows]
    with pytest.raises(AdapterError, match=f"{count:,}"):
        open_model(save(tmp_path / "model", vocab_size=count))


@pytest.mark.parametrize("save", [save_encoder, save_text_to_text, save_gpt2])
def test_embeddings_padded_to_a_multiple_are_usual(tmp_path: Path, save: Callable[..., Path]) -> None:
    open_model(save(tmp_path / "model", vocab_size=512)).close()


def test_a_decoder_may_have_an_added_padding_token_without_embedding(tmp_path: Path) -> None:
    folder = save_gpt2(tmp_path / "model")
    tokenizer = decoder_tokenizer(begins=False)
    tokenizer.add_special_tokens({"pad_token": "<pad>"})
    tokenizer.save_pretrained(folder)
    open_model(folder).close()


def cyrillic() -> Any:
    """A tokenizer of whole words and letters that knows Cyrillic alone, without punctuation."""
    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    tokenizer = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    letters = " ".join(chr(code) for code in range(0x410, 0x450))
    joined = "".join(chr(code) for code in range(0x410, 0x450))
    trainer = trainers.WordPieceTrainer(vocab_size=300, special_tokens=special, show_progress=False)
    tokenizer.train_from_iterator([CORPUS[5].rstrip("."), letters, joined], trainer)
    names = dict(zip(("pad", "unk", "cls", "sep", "mask"), special, strict=True))
    return fast(tokenizer, {f"{key}_token": value for key, value in names.items()})


def test_cells_of_unknown_pieces_fail(cli: Cli, tmp_path: Path) -> None:
    tokenizer = cyrillic()
    folder = save_encoder(tmp_path / "model", tokenizer=tokenizer, vocab_size=len(tokenizer))
    status, _, err = cli(*ONE_TASK, "--model", f"hf:{folder}", "--output", tmp_path / "run")
    assert status == 1, err
    cells = {cell["language"]: cell for cell in read_results(tmp_path / "run")["cells"]}
    assert {code: cell["status"] for code, cell in cells.items()} == {
        "ru": "ok",
        "sw": "failed",
        "ta": "failed",
    }
    assert all("unknown" in cells[code]["reason"] for code in ("sw", "ta"))


@pytest.mark.parametrize("family", ["bert", "roberta"])
def test_languages_with_many_unknown_pieces_have_a_note(cli: Cli, tmp_path: Path, family: str) -> None:
    """A byte-level tokenizer (RoBERTa) knows all languages."""
    folder, run = save_encoder(tmp_path / "model", family), tmp_path / "run"
    status, out, err = cli(*ONE_TASK, "--model", f"hf:{folder}", "--output", run)
    assert status == 0, err
    results = read_results(run)
    ledgers = {cell["language"]: cell["ledger"] for cell in results["cells"]}
    shares = {code: ledger["unknown"] / ledger["tokens"] for code, ledger in ledgers.items()}
    if family == "roberta":
        assert set(shares.values()) == {0}
        assert not results["notes"]
        return
    assert 0.9 > shares["ta"] > shares["ru"] >= 0.2 > shares["sw"]
    [note] = results["notes"]
    assert f"ta {100 * shares['ta']:.1f}%, ru {100 * shares['ru']:.1f}%" in note
    assert "sw" not in note
    assert "unknown to the tokenizer: ta ru" in out


class Characters:
    """A sub-word is a character, and '?' is unknown."""

    def subword_counts(self, texts: Any) -> list[SubwordCount]:
        return [SubwordCount(tokens=len(text), unknown=text.count("?")) for text in texts]


@pytest.mark.parametrize(("unknown", "noted", "failed"), [(19, 0, 0), (25, 1, 0), (89, 1, 0), (90, 1, 1)])
def test_a_quarter_of_unknown_pieces_is_a_note_and_nine_tenths_an_error(
    unknown: int, noted: int, failed: int
) -> None:
    session = open_session()
    spec = session.catalog.task("xnli").spec
    method = session.registry.methods.get(f"{spec.kind}:head")
    pairing = Pairing(protocol="zero_shot_transfer", method=method)
    language = known_languages().get("ta")
    ledger = CellLedger(session.registry.kinds.get(spec.kind), spec, pairing, language, Characters())
    inputs = {"premise": "?" * unknown, "hypothesis": "a" * (100 - unknown)}
    item = ClassificationExample(id="1", inputs=inputs, label="entailment")
    ledger.add([item], [Prediction(id="1", output="entailment")])
    cell = CellResult(task="xnli", language="ta", status="ok", metrics={}, ledger=ledger.to_json())
    assert len(unknown_notes([cell])) == noted
    with pytest.raises(AdapterError, match="90") if failed else nullcontext():
        ledger.require_known()


def write_index(folder: Path, *names: str) -> None:
    """Write an index that spreads the weights of a folder over the named files."""
    tensors = BertModel.from_pretrained(folder).state_dict()
    table = {name: names[number % len(names)] for number, name in enumerate(tensors)}
    content = {"metadata": {"total_size": 1}, "weight_map": table}
    (folder / "model.safetensors.index.json").write_text(json.dumps(content), encoding="utf-8")


@pytest.mark.parametrize("kept", ["", "shard.safetensors"])
@pytest.mark.parametrize(
    "name",
    ["pytorch_model.bin", "../other/model.safetensors", "sub/model.safetensors", "model.safetensors.bin"],
)
def test_an_index_names_only_safetensors_files_of_the_folder(tmp_path: Path, name: str, kept: str) -> None:
    folder = save_encoder(tmp_path / "model")
    write_index(folder, *filter(None, (kept, name)))
    weights = folder / "model.safetensors"
    state = BertModel.from_pretrained(folder).state_dict()
    (folder / name).parent.mkdir(exist_ok=True)
    if kept:
        shutil.copy(weights, folder / kept)
    if name.endswith(".bin"):
        torch.save(state, folder / name)
    else:
        shutil.copy(weights, folder / name)
    weights.unlink()
    with pytest.raises(AdapterError, match=name):
        weight_files(folder)
    with pytest.raises(AdapterError, match=name):
        open_model(folder)


@pytest.mark.parametrize(
    "name", ["adapter_model.bin", "../other.safetensors", "pytorch_model.bin.index.json"]
)
def test_a_configuration_names_only_safetensors_files_of_the_folder(tmp_path: Path, name: str) -> None:
    folder = save_encoder(tmp_path / "model")
    torch.save(BertModel.from_pretrained(folder).state_dict(), folder / "adapter_model.bin")
    config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    (folder / "config.json").write_text(
        json.dumps({**config, "transformers_weights": name}), encoding="utf-8"
    )
    with pytest.raises(AdapterError, match=name):
        open_model(folder)


def test_the_files_are_those_that_transformers_reads(tmp_path: Path) -> None:
    folder = save_encoder(tmp_path / "model")
    shutil.copy(folder / "model.safetensors", folder / "other.safetensors")
    write_index(folder, "other.safetensors")
    assert weight_files(folder) == [folder / "model.safetensors"]
    (folder / "model.safetensors").unlink()
    assert weight_files(folder) == [folder / "other.safetensors"]
    open_model(folder).close()


def test_an_adapter_and_its_base_are_read_from_safetensors_only(tmp_path: Path) -> None:
    folder, base = save_encoder(tmp_path / "model"), save_encoder(tmp_path / "base")
    config = {"base_model_name_or_path": str(base), "peft_type": "LORA"}
    (folder / "adapter_config.json").write_text(json.dumps(config), encoding="utf-8")
    torch.save({}, folder / "adapter_model.bin")
    with pytest.raises(AdapterError, match=r"model' has pickled weights only \(adapter_model\.bin\)"):
        open_model(folder)
    (folder / "model.safetensors").rename(folder / "adapter_model.safetensors")
    torch.save(BertModel.from_pretrained(base).state_dict(), base / "pytorch_model.bin")
    (base / "model.safetensors").unlink()
    with pytest.raises(AdapterError, match=r"base' has pickled weights only \(pytorch_model\.bin\)"):
        open_model(folder)


def save_bert(model_class: Any) -> Callable[[Path], Path]:
    """Return what saves a BERT as this class does."""

    def save(folder: Path) -> Path:
        tokenizer = wordpiece()
        model_class(BertConfig(**sizes(tokenizer, 64))).save_pretrained(folder)
        tokenizer.save_pretrained(folder)
        return folder

    return save


@pytest.mark.parametrize(
    ("save", "key", "layer"),
    [
        (save_bert(BertModel), "num_hidden_layers", r"layer\.3\."),
        (save_bert(BertForMaskedLM), "num_hidden_layers", r"layer\.3\."),
        (save_bert(BertForSequenceClassification), "num_hidden_layers", r"layer\.3\."),
        (save_text_to_text, "num_layers", r"\.1\."),
        (save_text_to_text, "num_decoder_layers", r"\.1\."),
        (save_gpt2, "n_layer", r"\.1\."),
    ],
)
def test_layers_beyond_the_configuration_are_an_error(
    tmp_path: Path, save: Callable[..., Path], key: str, layer: str
) -> None:
    folder = save(tmp_path / "model")
    open_model(folder).close()
    config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    (folder / "config.json").write_text(json.dumps({**config, key: config[key] - 1}), encoding="utf-8")
    with pytest.raises(AdapterError, match=layer):
        open_model(folder)


@pytest.mark.parametrize(
    ("files", "is_missing"),
    [
        ({}, True),
        ({"tokenizer_config.json": {"tokenizer_class": "XLMRobertaTokenizer"}}, True),
        ({"tokenizer_config.json": {"tokenizer_class": "ByT5Tokenizer"}}, False),
        ({"tokenizer.json": {}}, False),
        ({"vocab.txt": {}}, False),
        ({"sentencepiece.bpe.model": {}}, False),
    ],
)
def test_a_missing_tokenizer_is_known_without_loading(
    tmp_path: Path, files: dict[str, object], is_missing: bool
) -> None:
    for name, content in files.items():
        (tmp_path / name).write_text(json.dumps(content))
    found = ModelConfig(ref="m", config={"model_type": "t5"}, folder=tmp_path, revision=None)
    assert bool(folder_fault(found)) == is_missing
