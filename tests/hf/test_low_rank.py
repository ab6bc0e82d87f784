"""Low-rank adapters: what is saved, what it belongs to, and folders of adapters that others made."""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import peft
import pytest
import torch
from safetensors import safe_open
from safetensors.torch import load_file, save_file
from transformers import AutoModel, AutoModelForCausalLM, AutoModelForSequenceClassification

from harness.errors import AdapterError, TrainingError
from harness.models.capabilities import Head, TextInput, TrainingSettings
from harness.models.requests import LikelihoodRequest
from harness.testing.examples import head_spec, training_examples
from harness_hf import low_rank

from .conftest import Open, Options
from .test_own_heads import HEADS, answers

pytestmark = pytest.mark.thorough

LORA: Mapping[str, Any] = {"epochs": 1, "lora_rank": 4, "lora_alpha": 8, "max_query_length": 16}
SETTINGS_BEFORE_LORA = {
    "learning_rate": 1e-05,
    "epochs": 1.0,
    "batch_size": 8,
    "max_length": 128,
    "stride": 128,
    "max_query_length": 64,
    "max_answer_length": 30,
    "n_best": 20,
    "warmup_steps": 0,
    "warmup_share": 0.0,
    "weight_decay": 0.0,
    "adam_epsilon": 1e-08,
    "max_grad_norm": 1.0,
    "eval_steps": None,
    "select_best": True,
    "validation_limit": None,
    "freeze_embeddings": False,
    "max_steps": None,
    "group_by_length": False,
    "pooling": "pooler",
    "max_target_length": 128,
    "lr_schedule": "linear",
    "optimizer": "adamw",
}


def digest(file: Path) -> str:
    return hashlib.sha256(file.read_bytes()).hexdigest()


@pytest.fixture
def base(request: pytest.FixtureRequest, tmp_path: Path, decoder_folders: Any, folders: Any) -> Path:
    """A copy of a tiny model's folder."""
    family = getattr(request, "param", "llama")
    return Path(shutil.copytree({**folders, **decoder_folders}[family], tmp_path / "base"))


@pytest.fixture
def open_any(open_folder: Open, open_decoder: Open) -> Open:
    """A function that opens a folder of either family."""

    def open_(folder: Path) -> Any:
        model_type = json.loads((folder / "config.json").read_text())["model_type"]
        return (open_decoder if model_type in ("llama", "gpt2") else open_folder)(folder)

    return open_


def test_digests_of_fits_without_low_rank_adapters_are_as_before() -> None:
    plain = TrainingSettings(learning_rate=1e-5, epochs=1.0, batch_size=8)
    assert plain.identity() == SETTINGS_BEFORE_LORA
    with_lora = TrainingSettings(learning_rate=1e-5, epochs=1.0, batch_size=8, lora_rank=8)
    assert {**SETTINGS_BEFORE_LORA, "lora_rank": 8}.items() <= with_lora.identity().items()
    assert {"lora_alpha", "lora_dropout", "lora_targets", "quantize"} <= with_lora.identity().keys()


@pytest.mark.parametrize("head", HEADS, ids=lambda head: head.value)
@pytest.mark.parametrize("base", ["bert", "xlm-roberta", "llama", "gpt2"], indirect=True)
def test_the_adapter_and_the_head_are_saved_alone(
    base: Path, head: Head, open_any: Open, fit_options: Options
) -> None:
    before = digest(base / "model.safetensors")
    options, examples = fit_options(**LORA), training_examples(head)
    fitted = open_any(base).fit(examples, examples[:4], head_spec(head), options)
    saved = {file.name for file in options.directory.glob("*.safetensors")}
    assert saved == {"adapter_model.safetensors", "harness_head.safetensors"}
    with safe_open(options.directory / "adapter_model.safetensors", framework="pt") as file:
        assert all(".lora_A." in name or ".lora_B." in name for name in file.keys())
        assert any(file.get_tensor(name).abs().max() > 0 for name in file.keys() if ".lora_B." in name)
    assert digest(base / "model.safetensors") == before
    original = load_file(base / "model.safetensors")
    backbone = fitted._session.network.base_model
    kept = {name.replace(".base_layer", ""): one for name, one in backbone.state_dict().items()}
    shared = [
        (one, kept[short])
        for name, one in original.items()
        if (short := name.removeprefix("model.").removeprefix("transformer.")) in kept
        and "pooler" not in name
    ]
    assert len(shared) > 20
    assert all(torch.equal(one, other) for one, other in shared)
    again = open_any(options.directory)
    assert again.identity() == fitted.identity()
    assert answers(again, head) == answers(fitted, head)


def test_another_base_is_reported(base: Path, open_any: Open, fit_options: Options) -> None:
    head, options = Head.TAGGING, fit_options(**LORA)
    model = open_any(base)
    model.fit(training_examples(head), [], head_spec(head), options)
    weights = load_file(base / "model.safetensors")
    save_file({name: one + 1 for name, one in weights.items()}, base / "model.safetensors", {"format": "pt"})
    with pytest.raises(AdapterError, match="other weights than those that the adapter"):
        model.load_fit(options.directory, head_spec(head))
    shutil.rmtree(base)
    with pytest.raises(AdapterError, match=r"base model '.*base' of the adapter .* is not there"):
        model.load_fit(options.directory, head_spec(head))


def test_a_moved_base_keeps_the_identity(base: Path, open_any: Open, fit_options: Options) -> None:
    head, options = Head.TAGGING, fit_options(**LORA)
    fitted = open_any(base).fit(training_examples(head), [], head_spec(head), options)
    moved = base.rename(base.with_name("elsewhere"))
    config = json.loads((options.directory / "adapter_config.json").read_text())
    config["base_model_name_or_path"] = str(moved)
    (options.directory / "adapter_config.json").write_text(json.dumps(config))
    assert open_any(options.directory).identity() == fitted.identity()


def test_a_second_stage_trains_the_same_adapter(base: Path, open_any: Open, fit_options: Options) -> None:
    head = Head.MULTIPLE_CHOICE
    examples, spec = training_examples(head), head_spec(head)
    first = open_any(base).fit(examples, [], spec, fit_options("first", **LORA))
    options = fit_options("second", **LORA)
    second = first.fit(examples, [], spec, options)
    named = json.loads((options.directory / "adapter_config.json").read_text())["base_model_name_or_path"]
    assert named == str(base)
    shutil.rmtree(options.directory.with_name("first"))
    assert answers(open_any(options.directory), head) == answers(second, head)
    for other in ({"epochs": 1}, {**LORA, "lora_rank": 2}):
        with pytest.raises(TrainingError, match="holds an adapter with rank 4"):
            second.fit(examples, [], spec, fit_options(f"other{len(other)}", **other))


@pytest.mark.parametrize("base", ["bert", "llama"], indirect=True)
def test_weights_in_four_bits_are_trained_around(base: Path, open_any: Open, fit_options: Options) -> None:
    head, options = Head.CLASSIFICATION, fit_options(**LORA, quantize="nf4", select_best=True)
    examples = training_examples(head)
    fitted = open_any(base).fit(examples, examples[:4], head_spec(head), options)
    kinds = {type(module).__name__ for module in fitted._session.network.modules()}
    assert "Linear4bit" in kinds
    assert answers(open_any(options.directory), head) == answers(fitted, head)
    plain = fit_options("plain", **LORA)
    unquantised = open_any(base).fit(examples, examples[:4], head_spec(head), plain)
    assert answers(unquantised, head) != answers(fitted, head)


def test_targets_that_are_not_there_are_reported(base: Path, open_any: Open, fit_options: Options) -> None:
    options = fit_options(**LORA, lora_targets=("nothing",))
    with pytest.raises(TrainingError, match=r"no layers that lora_targets names: nothing"):
        open_any(base).fit(training_examples(Head.TAGGING), [], head_spec(Head.TAGGING), options)


@pytest.mark.parametrize(("package", "settings"), [("peft", {}), ("bitsandbytes", {"quantize": "nf4"})])
def test_a_missing_package_is_named_before_training(
    package: str,
    settings: Mapping[str, Any],
    base: Path,
    open_any: Open,
    fit_options: Options,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    model = open_any(base)
    monkeypatch.setattr(low_rank, "find_spec", lambda name: None if name == package else name)
    with pytest.raises(AdapterError, match=rf"'{package}'.*pip install 'multilingual-harness\[peft\]'"):
        model.fit(
            training_examples(Head.TAGGING), [], head_spec(Head.TAGGING), fit_options(**LORA, **settings)
        )


# peft asks networks for the old name of a property.
by_peft = pytest.mark.filterwarnings("ignore:`is_gradient_checkpointing`:FutureWarning")


def made_elsewhere(base: Path, folder: Path, auto_class: Any) -> Any:
    """Save an adapter as a user's own script does, without tokenizer and config.json, and return the network."""
    torch.manual_seed(1)
    config = peft.LoraConfig(r=2, target_modules="all-linear", init_lora_weights=False)
    network: Any = peft.get_peft_model(auto_class.from_pretrained(base), config)
    network.save_pretrained(folder)
    return network.eval()


@by_peft
def test_an_adapter_made_elsewhere_is_opened_on_its_base(
    base: Path, tmp_path: Path, open_decoder: Open
) -> None:
    network = made_elsewhere(base, tmp_path / "lora", AutoModelForCausalLM)
    model = open_decoder(tmp_path / "lora")
    (answer,) = model.loglikelihood([LikelihoodRequest(context="The cat", continuation=" sat")])
    ids = model._session.tokens.encode(["The cat sat"])[0]
    with torch.no_grad():
        logprobs = network(torch.tensor([ids])).logits[0].log_softmax(dim=-1)
    count = len(answer.token_logprobs)
    expected = [float(logprobs[place - 1, ids[place]]) for place in range(len(ids) - count, len(ids))]
    assert answer.token_logprobs == pytest.approx(expected, abs=1e-4)
    (bare,) = open_decoder(base).loglikelihood([LikelihoodRequest(context="The cat", continuation=" sat")])
    assert answer.token_logprobs != pytest.approx(bare.token_logprobs, abs=1e-3)


@by_peft
@pytest.mark.parametrize("base", ["xlm-roberta"], indirect=True)
def test_an_encoders_adapter_made_elsewhere_embeds(base: Path, tmp_path: Path, open_folder: Open) -> None:
    network = made_elsewhere(base, tmp_path / "lora", AutoModel)
    model = open_folder(tmp_path / "lora")
    ids = model._session.tokenizer(["The cat sat"], return_tensors="pt")["input_ids"]
    with torch.no_grad():
        vector = network(ids).last_hidden_state[0].mean(dim=0)
    found = torch.from_numpy(model.embed(["The cat sat"], side="query"))[0]
    assert torch.allclose(found, vector / vector.norm(), atol=1e-5)


@by_peft
def test_pickled_and_foreign_adapters_are_rejected(base: Path, tmp_path: Path, open_decoder: Open) -> None:
    folder = tmp_path / "lora"
    made_elsewhere(base, folder, AutoModelForCausalLM)
    config = json.loads((folder / "adapter_config.json").read_text())
    (folder / "adapter_config.json").write_text(json.dumps({**config, "peft_type": "IA3"}))
    with pytest.raises(AdapterError, match="IA3; only plain LoRA is read"):
        open_decoder(folder)
    (folder / "adapter_config.json").write_text(json.dumps(config))
    (folder / "adapter_model.safetensors").rename(folder / "adapter_model.bin")
    with pytest.raises(AdapterError, match=r"adapter_model\.bin"):
        open_decoder(folder)


@by_peft
@pytest.mark.parametrize("base", ["xlm-roberta"], indirect=True)
def test_a_classifier_saved_by_peft_keeps_its_head(base: Path, tmp_path: Path, open_folder: Open) -> None:
    torch.manual_seed(1)
    config = peft.LoraConfig(
        task_type="SEQ_CLS", r=2, target_modules=["query", "value"], init_lora_weights=False
    )
    bare = AutoModelForSequenceClassification.from_pretrained(base, num_labels=3)
    network: Any = peft.get_peft_model(bare, config).eval()
    network.save_pretrained(tmp_path / "lora")
    model = open_folder(tmp_path / "lora", labels="yes,no,maybe")
    ids = model._session.tokenizer(["The cat sat"], return_tensors="pt")["input_ids"]
    with torch.no_grad():
        expected = network(ids).logits[0].log_softmax(dim=-1)
    found = torch.from_numpy(model.classify([TextInput(text="The cat sat")], ("maybe", "yes", "no")))[0]
    assert torch.allclose(found, expected[[2, 0, 1]], atol=1e-5)
    weights = load_file(tmp_path / "lora" / "adapter_model.safetensors")
    weights.pop(next(name for name in weights if "lora_A" in name))
    save_file(weights, tmp_path / "lora" / "adapter_model.safetensors")
    with pytest.raises(AdapterError, match="does not fit its base"):
        open_folder(tmp_path / "lora", labels="yes,no,maybe")
