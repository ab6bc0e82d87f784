"""Every family of encoders of today keeps the adapter contract, and runs the sample suite."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from transformers import (
    AutoTokenizer,
    Qwen3ForCausalLM,
    Qwen3Model,
    T5Config,
    T5EncoderModel,
    T5ForConditionalGeneration,
)

import harness
from harness.errors import AdapterError
from harness.models.adapters import AdapterEntry
from harness.models.capabilities import Capability
from harness.testing.adapter_contract import AdapterContract
from harness.testing.examples import SENTENCES
from harness_hf import harness_register_adapters
from harness_hf.description import describe
from harness_hf.encoder.heads import open_encoder
from harness_hf.family import AnyFamilyOptions, describe_any, open_any
from harness_hf.options import EncoderOptions

from .families import FAMILIES, save_family

SUITE = "xnli xcopa udpos wikiann xquad mlqa tydiqa mewslix lareqa tatoeba".split()
WITHOUT_KERNELS = ("deberta-v2", "remote code")


@pytest.fixture(scope="session")
def family_folders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """A folder of every family."""
    root = tmp_path_factory.mktemp("families")
    return {name: save_family(root / name, name) for name in FAMILIES}


@pytest.mark.thorough
class TestContract(AdapterContract):
    @pytest.fixture(scope="class", params=FAMILIES)
    @classmethod
    def name(cls, request: pytest.FixtureRequest) -> str:
        return str(request.param)

    @pytest.fixture(scope="class")
    @classmethod
    def entry(cls, name: str) -> AdapterEntry:
        adapter = "hf-causal" if name == "qwen3" else "hf-encoder"
        return next(entry for entry in harness_register_adapters() if entry.name == adapter)

    @pytest.fixture(scope="class")
    @classmethod
    def ref(cls, name: str, family_folders: dict[str, Path]) -> str:
        return str(family_folders[name])

    @pytest.fixture(scope="class")
    @classmethod
    def options(cls, name: str) -> Mapping[str, str]:
        return FAMILIES[name].options


@pytest.mark.thorough
@pytest.mark.parametrize("name", FAMILIES)
def test_the_sample_suite_has_a_score_in_every_cell(
    name: str, family_folders: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HARNESS_CACHE", str(tmp_path / "cache"))
    settings: dict[str, Any] = {"recipe": "quick", "train_limit": 8, "limit": 2, "output": tmp_path / "run"}
    run = harness.evaluate(
        "xtreme_r",
        f"hf:{family_folders[name]}",
        options=FAMILIES[name].options,
        languages=["en", "sw", "de"],
        data="sample",
        **settings,
    )
    assert {cell.task for cell in run.cells if cell.status == "ok"} == set(SUITE)
    assert not [cell.reason for cell in run.cells if cell.status == "failed"]
    reasons = {cell.reason for cell in run.cells if cell.status == "skipped"}
    assert all(re.fullmatch(r"task '\w+' has no \w+ \(\w+\)", str(reason)) for reason in reasons), reasons
    if name == "remote code":
        report = (tmp_path / "run" / "results.json").read_text(encoding="utf-8")
        assert "trust_remote_code=true" in report


def test_code_of_a_folder_must_be_allowed(family_folders: dict[str, Path]) -> None:
    folder = str(family_folders["remote code"])
    with pytest.raises(AdapterError, match="needs Python code") as raised:
        describe_any(folder, AnyFamilyOptions())
    assert "-o trust_remote_code=true" in str(raised.value.hint)


@pytest.mark.parametrize("name", [name for name in FAMILIES if name not in WITHOUT_KERNELS])
def test_fused_and_plain_attention_agree(name: str, family_folders: dict[str, Path]) -> None:
    found = {}
    for kernel in ("sdpa", "eager"):
        model: Any = opened(family_folders[name], attn_implementation=kernel)
        assert model._session.backbone.config._attn_implementation == kernel
        found[kernel] = model.embed([*SENTENCES, "cat " * 50], side="query")
        # Alone, a text has no padding.
        alone = model.embed([SENTENCES[0]], side="query")
        np.testing.assert_allclose(found[kernel][:1], alone, atol=1e-3)
    np.testing.assert_allclose(found["sdpa"], found["eager"], atol=1e-3)


@pytest.mark.parametrize("name", WITHOUT_KERNELS)
def test_a_family_without_fused_attention_says_so(name: str, family_folders: dict[str, Path]) -> None:
    with pytest.raises(AdapterError, match="scaled_dot_product_attention") as raised:
        opened(family_folders[name], attn_implementation="sdpa", **FAMILIES[name].options)
    assert "-o attn_implementation" in str(raised.value.hint)


@pytest.mark.parametrize("whole", [False, True], ids=["encoder alone", "with its decoder"])
def test_the_encoder_of_a_t5(whole: bool, family_folders: dict[str, Path], tmp_path: Path) -> None:
    folder = family_folders["t5"]
    load: Any = T5EncoderModel
    reference: Any = load.from_pretrained(folder).eval()
    if whole:
        shutil.copytree(folder, tmp_path / "t5")
        folder = tmp_path / "t5"
        network = T5ForConditionalGeneration(T5Config.from_pretrained(folder, is_encoder_decoder=True))
        network.save_pretrained(folder)
        reference = network.get_encoder().eval()
        assert describe_any(str(folder), AnyFamilyOptions()).adapter == "hf-seq2seq"
    options = EncoderOptions()
    model: Any = open_encoder(describe(str(folder), options), options)
    tokenizer: Any = AutoTokenizer.from_pretrained(folder)
    with torch.no_grad():
        states = reference(**tokenizer("The cat", return_tensors="pt", return_token_type_ids=False))
    mean = states.last_hidden_state[0].mean(dim=0)
    found = model.embed(["The cat", "The cat sat on the warm mat"], side="query")[0]
    np.testing.assert_allclose(found, (mean / mean.norm()).numpy(), atol=1e-5)


def opened(folder: Path, **options: Any) -> Any:
    """Return the model of a folder, as ``hf:`` opens it."""
    given = AnyFamilyOptions.model_validate({name: str(value) for name, value in options.items()})
    return open_any(describe_any(str(folder), given), given)


POOLED_AT_THE_END = {"embedding_dimension": 32, "pooling_mode": "lasttoken"}
MODULES = [
    {"idx": 0, "name": "0", "path": "", "type": "sentence_transformers.models.Transformer"},
    {"idx": 1, "name": "1", "path": "1_Pooling", "type": "sentence_transformers.models.Pooling"},
    {"idx": 2, "name": "2", "path": "2_Normalize", "type": "sentence_transformers.models.Normalize"},
]
PROMPTS = {"query": "Instruct: Find the cat\nQuery: ", "document": "", "STS": "Instruct: Compare\nQuery: "}


@pytest.fixture(params=["Qwen3ForCausalLM", "Qwen3Model"])
def embedder(request: pytest.FixtureRequest, family_folders: dict[str, Path], tmp_path: Path) -> Path:
    """A Qwen3-Embedding without an output layer, in the layouts of its small and its large checkpoints."""
    folder = tmp_path / "qwen3"
    shutil.copytree(family_folders["qwen3"], folder)
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps({**config, "architectures": [request.param]}))
    (folder / "modules.json").write_text(json.dumps(MODULES))
    (folder / "1_Pooling").mkdir()
    (folder / "1_Pooling" / "config.json").write_text(json.dumps(POOLED_AT_THE_END))
    (folder / "config_sentence_transformers.json").write_text(json.dumps({"prompts": PROMPTS}))
    return folder


def last_states(folder: Path, texts: list[str], side: str) -> Any:
    """Return unit vectors of the last tokens of a padded batch, through transformers alone."""
    tokenizer = AutoTokenizer.from_pretrained(folder, padding_side=side)
    batch = tokenizer(texts, return_tensors="pt", padding=True, return_token_type_ids=False)
    network: Any = Qwen3Model.from_pretrained(folder)
    with torch.no_grad():
        states = network.eval()(**batch).last_hidden_state
    last = -1 if side == "left" else batch["attention_mask"].sum(dim=1) - 1
    vectors = states[torch.arange(len(texts)), last]
    return (vectors / vectors.norm(dim=1, keepdim=True)).numpy()


def test_a_decoder_without_an_output_layer_embeds(embedder: Path) -> None:
    description = describe_any(str(embedder), AnyFamilyOptions())
    embeds = {Capability.EMBEDS, Capability.EXPOSES_HIDDEN_STATES, Capability.FITS}
    assert description.offers == embeds
    assert not description.fits_on_request
    texts = ["The cat", "Der Hund schläft neben der Tür", "猫"]
    found = opened(embedder).embed(texts, side="passage")
    for side in ("left", "right"):
        np.testing.assert_allclose(found, last_states(embedder, texts, side), atol=1e-5)
        tokenizer = AutoTokenizer.from_pretrained(embedder, padding_side=side)
        tokenizer.save_pretrained(embedder)
        np.testing.assert_allclose(opened(embedder).embed(texts, side="passage"), found, atol=1e-5)
    for options, prompt in (({}, PROMPTS["query"]), ({"query_prompt": "STS"}, PROMPTS["STS"])):
        expected = last_states(embedder, [prompt + text for text in texts], "left")
        np.testing.assert_allclose(
            opened(embedder, **options).embed(texts, side="query"), expected, atol=1e-5
        )


def test_a_decoder_that_misses_its_output_layer_is_reported(embedder: Path) -> None:
    config = json.loads((embedder / "config.json").read_text())
    if config["architectures"] == ["Qwen3Model"]:
        pytest.skip("its class has no output layer")
    (embedder / "modules.json").unlink()
    assert Capability.GENERATES in describe_any(str(embedder), AnyFamilyOptions()).offers
    with pytest.raises(AdapterError, match="lm_head"):
        opened(embedder)


def test_a_decoder_with_an_output_layer_writes(embedder: Path) -> None:
    network: Any = Qwen3ForCausalLM.from_pretrained(embedder)
    network.save_pretrained(embedder)
    assert Capability.GENERATES in describe_any(str(embedder), AnyFamilyOptions()).offers
    assert opened(embedder).embed(["The cat"], side="query").shape == (1, 32)
