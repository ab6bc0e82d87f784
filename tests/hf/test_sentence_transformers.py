"""Embedding models, against `sentence-transformers` itself on the same texts."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import save_file
from tokenizers import processors
from transformers import ModernBertConfig, ModernBertModel, Qwen3Config, Qwen3Model

from harness.errors import AdapterError, UsageError
from harness.models.capabilities import EmbedOptions

from .conftest import PIECE_LIMIT, Open, byte_level, decoder_tokenizer

pytestmark = pytest.mark.thorough

sentence_transformers = pytest.importorskip("sentence_transformers")

TEXTS = [
    "The cat sat on the mat.",
    "Der Hund schläft neben der Tür.",
    "cafe\u0301 FERMÉ",
    "القطة تجلس على السجادة",
    "猫",
    "one two three " * 60,
    "",
]
INSTRUCTION = "Instruct: Given a web search query, retrieve relevant passages\nQuery: "
Save = Callable[..., Path]


@pytest.fixture(scope="session")
def further_folders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Folders of a ModernBERT and of a Qwen3 whose tokenizer pads on the left and ends texts with </s>."""
    root = tmp_path_factory.mktemp("embedders")
    tokenizer = byte_level()
    torch.manual_seed(0)
    given: dict[str, Any] = {
        "hidden_size": 32,
        "intermediate_size": 48,
        "num_hidden_layers": 4,
        "num_attention_heads": 2,
        "max_position_embeddings": PIECE_LIMIT,
        "initializer_range": 0.3,
    }
    special: dict[str, Any] = {
        name: getattr(tokenizer, name) for name in ("pad_token_id", "bos_token_id", "eos_token_id")
    }
    marks: dict[str, Any] = {"cls_token_id": 0, "sep_token_id": 2, "local_attention": 16}
    ModernBertModel(ModernBertConfig(vocab_size=len(tokenizer), **given, **special, **marks)).save_pretrained(
        root / "modernbert"
    )
    tokenizer.save_pretrained(root / "modernbert")

    tokenizer = decoder_tokenizer(begins=True)
    tokenizer.backend_tokenizer.post_processor = processors.TemplateProcessing(
        single="$A </s>", special_tokens=[("</s>", 1)]
    )
    tokenizer.pad_token, tokenizer.padding_side = "</s>", "left"
    heads: dict[str, Any] = {"num_key_value_heads": 1, "head_dim": 16, "tie_word_embeddings": True}
    config = Qwen3Config(vocab_size=len(tokenizer), **given, **heads, eos_token_id=1, bos_token_id=0)
    config.architectures = ["Qwen3ForCausalLM"]
    network = Qwen3Model(config)
    network.save_pretrained(root / "qwen3")
    # As on the hub: the class of the config writes text, the weights are those of the model without a head.
    written = json.loads((root / "qwen3" / "config.json").read_text())
    (root / "qwen3" / "config.json").write_text(
        json.dumps({**written, "architectures": ["Qwen3ForCausalLM"]})
    )
    tokenizer.save_pretrained(root / "qwen3")
    return {name: root / name for name in ("modernbert", "qwen3")}


@pytest.fixture
def save(folders: dict[str, Path], further_folders: dict[str, Path], tmp_path: Path) -> Save:
    """A function that writes an embedding model in the hub's layout."""

    def save_(family: str, modules: Mapping[str, Any], prompts: Any = None, **transformer: Any) -> Path:
        folder = tmp_path / "model"
        shutil.copytree({**folders, **further_folders}[family], folder)
        listed = [{"idx": 0, "name": "0", "path": "", "type": "sentence_transformers.models.Transformer"}]
        for number, (name, config) in enumerate(modules.items(), start=1):
            kind, path = name.split("-")[0], f"{number}_{name.split('-')[0]}"
            (folder / path).mkdir()
            (folder / path / "config.json").write_text(json.dumps(config))
            kind = f"sentence_transformers.models.{kind}"
            listed.append({"idx": number, "name": str(number), "path": path, "type": kind})
            if "in_features" in config:
                save_dense(folder / path / "model.safetensors", config, seed=number)
        (folder / "modules.json").write_text(json.dumps(listed))
        given = prompts if prompts is not None else {}
        (folder / "config_sentence_transformers.json").write_text(json.dumps(given))
        settings = {"max_seq_length": 48, "do_lower_case": False, **transformer}
        (folder / "sentence_bert_config.json").write_text(json.dumps(settings))
        return folder

    return save_


def save_dense(file: Path, config: Mapping[str, Any], seed: int) -> None:
    made = torch.Generator().manual_seed(seed)
    weights = {
        "linear.weight": torch.randn(config["out_features"], config["in_features"], generator=made) / 4
    }
    if config["bias"]:
        weights["linear.bias"] = torch.randn(config["out_features"], generator=made)
    save_file(weights, file)


def pooling(*modes: str, **further: Any) -> dict[str, Any]:
    """Return an older 1_Pooling/config.json."""
    known = (
        "cls_token",
        "mean_tokens",
        "max_tokens",
        "mean_sqrt_len_tokens",
        "weightedmean_tokens",
        "lasttoken",
    )
    return {
        "word_embedding_dimension": 32,
        **{f"pooling_mode_{mode}": mode in modes for mode in known},
        **further,
    }


def dense(width: int, out: int, activation: str, *, bias: bool = True) -> dict[str, Any]:
    return {"in_features": width, "out_features": out, "bias": bias, "activation_function": activation}


TANH = "torch.nn.modules.activation.Tanh"
IDENTITY = "torch.nn.modules.linear.Identity"
E5 = {"prompts": {"query": "query: ", "passage": "passage: "}}
QWEN = {"prompts": {"query": INSTRUCTION, "document": ""}, "default_prompt_name": None}
DEFAULT = {"prompts": {"sts": "one two: ", "BitextMining": "red cat "}, "default_prompt_name": "sts"}

FORMS: dict[str, tuple[str, dict[str, Any], Any, dict[str, Any]]] = {
    "e5": ("bert", {"Pooling": pooling("mean_tokens"), "Normalize": {}}, E5, {}),
    "bge": ("xlm-roberta", {"Pooling": pooling("cls_token"), "Normalize": {}}, None, {}),
    "modernbert": ("modernbert", {"Pooling": {"embedding_dimension": 32, "pooling_mode": "mean"}}, E5, {}),
    "qwen3": ("qwen3", {"Pooling": pooling("lasttoken", include_prompt=True), "Normalize": {}}, QWEN, {}),
    "labse": (
        "bert",
        {"Pooling": pooling("cls_token"), "Dense": dense(32, 24, TANH), "Normalize": {}},
        None,
        {},
    ),
    "gemma": (
        "modernbert",
        {
            "Pooling": pooling("mean_tokens"),
            "Dense-1": dense(32, 80, IDENTITY, bias=False),
            "Dense-2": dense(80, 32, IDENTITY, bias=False),
            "Normalize": {},
        },
        {**DEFAULT, "truncate_dim": 20},
        {},
    ),
    "normalised before a Dense": (
        "roberta",
        {"Pooling": pooling("mean_tokens"), "Normalize": {}, "Dense": dense(32, 8, TANH)},
        None,
        {},
    ),
    "several": (
        "xlm-roberta",
        {"Pooling": pooling("cls_token", "max_tokens", "mean_tokens", "mean_sqrt_len_tokens")},
        E5,
        {},
    ),
    "sgpt": ("qwen3", {"Pooling": pooling("weightedmean_tokens")}, QWEN, {}),
    "instructor": (
        "xlm-roberta",
        {"Pooling": pooling("mean_tokens", "weightedmean_tokens", "max_tokens", include_prompt=False)},
        E5,
        {},
    ),
    "first piece after the prompt": (
        "bert",
        {"Pooling": pooling("cls_token", include_prompt=False), "Normalize": {}},
        E5,
        {},
    ),
    "lower case": ("roberta", {"Pooling": pooling("mean_tokens")}, E5, {"do_lower_case": True}),
}


def reference(folder: Path, **keywords: Any) -> Any:
    """Return the vectors of the texts, of unit length."""
    model = sentence_transformers.SentenceTransformer(
        str(folder), device="cpu", model_kwargs={"dtype": torch.float32}
    )
    return model.encode(TEXTS, normalize_embeddings=True, **keywords)


@pytest.mark.parametrize("form", FORMS)
def test_vectors_are_those_of_sentence_transformers(
    form: str, save: Save, open_folder: Open, open_decoder: Open
) -> None:
    family, modules, prompts, transformer = FORMS[form]
    folder = save(family, modules, prompts, **transformer)
    opener = open_decoder if family == "qwen3" else open_folder
    model = opener(folder, batch_tokens=200)
    names = (prompts or {}).get("prompts", {})
    sides: list[tuple[Any, str | None]] = [
        ("query", "query" if "query" in names else None),
        ("passage", next((name for name in ("document", "passage") if name in names), None)),
    ]
    for side, prompt in sides:
        found = model.embed(TEXTS, side=side)
        expected = reference(folder, prompt_name=prompt)
        assert found.shape == expected.shape
        np.testing.assert_allclose(found, expected, atol=1e-5)
    bare = model.embed(TEXTS, side="query", options=EmbedOptions(prefixes=False))
    np.testing.assert_allclose(bare, reference(folder, prompt=""), atol=1e-5)
    assert np.abs(bare[0] - bare[1]).max() > 1e-3


def test_a_named_prompt(save: Save, open_folder: Open) -> None:
    folder = save("bert", {"Pooling": pooling("mean_tokens")}, DEFAULT)
    model = open_folder(folder, query_prompt="BitextMining")
    expected = reference(folder, prompt_name="BitextMining")
    np.testing.assert_allclose(model.embed(TEXTS, side="query"), expected, atol=1e-5)
    other = model.embed(TEXTS, side="passage")
    np.testing.assert_allclose(other, reference(folder, prompt_name="sts"), atol=1e-5)
    assert model.identity() != open_folder(folder).identity()
    with pytest.raises(UsageError, match="no prompt named 'bitextmining'"):
        open_folder(folder, query_prompt="bitextmining").embed(["x"], side="query")
    with pytest.raises(ValueError, match="query_prefix"):
        open_folder(folder, query_prompt="sts", query_prefix="x")


def test_an_instruction_of_the_user(save: Save, open_decoder: Open) -> None:
    folder = save("qwen3", {"Pooling": pooling("lasttoken"), "Normalize": {}}, {"prompts": {}})
    model = open_decoder(folder, query_prefix=INSTRUCTION)
    np.testing.assert_allclose(
        model.embed(TEXTS, side="query"), reference(folder, prompt=INSTRUCTION), atol=1e-5
    )
    np.testing.assert_allclose(model.embed(TEXTS, side="passage"), reference(folder), atol=1e-5)


def test_what_sentence_transformers_saves(
    folders: dict[str, Path], open_folder: Open, tmp_path: Path
) -> None:
    """The newer layout, written by the library itself."""
    from sentence_transformers import SentenceTransformer

    modules: Any = sentence_transformers.models
    transformer = modules.Transformer(str(folders["bert"]), max_seq_length=40)
    pooled = modules.Pooling(32, pooling_mode=("lasttoken", "mean"))
    torch.manual_seed(1)
    linear = modules.Dense(64, 16, activation_function=torch.nn.GELU())
    made = SentenceTransformer(modules=[transformer, pooled, linear, modules.Normalize()], device="cpu")
    made.save(str(tmp_path / "saved"))
    found = open_folder(tmp_path / "saved").embed(TEXTS, side="query")
    np.testing.assert_allclose(found, reference(tmp_path / "saved"), atol=1e-5)


def test_modules_belong_to_their_own_pooling(
    save: Save,
    open_folder: Open,
    open_bert: Open,
) -> None:
    folder = save("bert", {"Pooling": pooling("mean_tokens"), "Dense": dense(32, 8, TANH), "Normalize": {}})
    model, plain = open_folder(folder, max_length=48), open_bert(max_length=48)
    assert model.embed(TEXTS, side="query").shape == (len(TEXTS), 8)
    for options in (EmbedOptions(pooling="cls"), EmbedOptions(layer=2)):
        found = model.embed(TEXTS, side="query", options=options)
        np.testing.assert_allclose(found, plain.embed(TEXTS, side="query", options=options), atol=1e-6)


def test_weights_of_modules_belong_to_the_identity(save: Save, open_folder: Open) -> None:
    config = dense(32, 8, TANH)
    folder = save("bert", {"Pooling": pooling("mean_tokens"), "Dense": config})
    before = open_folder(folder).identity()["files"]
    save_dense(folder / "2_Dense" / "model.safetensors", config, seed=9)
    assert open_folder(folder).identity()["files"] != before


@pytest.mark.parametrize(
    ("modules", "what"),
    [
        ({"LSTM": {}, "Pooling": pooling("mean_tokens")}, "module 'LSTM'"),
        ({"Normalize": {}}, "module 'Normalize'"),
        ({}, "modules without pooling"),
        ({"Pooling": pooling("mean_tokens"), "Dense": dense(32, 8, "own.Act")}, "activation 'own.Act'"),
        (
            {"Pooling": pooling("mean_tokens"), "Dense": {**dense(32, 8, TANH), "use_residual": True}},
            "2_Dense",
        ),
        ({"Pooling": {"pooling_mode": "attention"}}, "'attention' pooling"),
    ],
)
def test_what_is_not_supported_is_named(
    modules: dict[str, Any], what: str, save: Save, open_folder: Open
) -> None:
    folder = save("bert", modules)
    with pytest.raises(AdapterError, match=what):
        open_folder(folder).embed(["x"], side="query")
    assert open_folder(folder, pooling="mean").embed(["x"], side="query").shape == (1, 32)


def test_modules_stay_inside_the_folder(save: Save, open_folder: Open) -> None:
    folder = save("bert", {"Pooling": pooling("mean_tokens"), "Dense": dense(32, 8, TANH)})
    file = folder / "2_Dense" / "model.safetensors"
    save_file({"linear.weight": torch.zeros(9, 32)}, file)
    with pytest.raises(AdapterError, match="8 outputs"):
        open_folder(folder).embed(["x"], side="query")
    file.unlink()
    with pytest.raises(AdapterError, match=r"2_Dense/model\.safetensors"):
        open_folder(folder).embed(["x"], side="query")
    listed = json.loads((folder / "modules.json").read_text())
    for path in ("../other", "..", "/tmp/other"):
        listed[2]["path"] = path
        (folder / "modules.json").write_text(json.dumps(listed))
        with pytest.raises(AdapterError, match="module folder"):
            open_folder(folder)


def test_weights_of_modules_are_downloaded() -> None:
    from huggingface_hub.utils._paths import filter_repo_objects

    from harness_hf.model_files import SNAPSHOT_IGNORED, SNAPSHOT_PATTERNS

    wanted = [
        "model.safetensors",
        "1_Pooling/config.json",
        "2_Dense/config.json",
        "2_Dense/model.safetensors",
    ]
    unwanted = ["2_Dense/pytorch_model.bin", "original/model.safetensors", "onnx/model.onnx"]
    found = filter_repo_objects(
        [*wanted, *unwanted], allow_patterns=list(SNAPSHOT_PATTERNS), ignore_patterns=SNAPSHOT_IGNORED
    )
    assert list(found) == wanted


@pytest.mark.models
def test_e5_small_is_that_of_sentence_transformers(e5_small: Path, open_folder: Open) -> None:
    model = open_folder(e5_small)
    for side, prompt in (("query", "query"), ("passage", "passage")):
        found = model.embed(TEXTS, side=side)
        np.testing.assert_allclose(found, reference(e5_small, prompt_name=prompt), atol=1e-5)
