from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from accelerate import cpu_offload
from transformers import AutoModelForSequenceClassification, PreTrainedModel

from harness.errors import AdapterError, UsageError
from harness.models.adapters import AdapterEntry
from harness.models.capabilities import TextInput
from harness.models.options import parse_options
from harness.models.requests import GenerateOptions, LikelihoodRequest
from harness_hf import harness_register_adapters
from harness_hf.loading import choose_device, place
from harness_hf.options import ModelOptions

from .conftest import Open

TEXTS = ["The cat sat on the warm mat.", "no", "yes yes", "der Hund"]


@pytest.fixture
def two_gpus(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)


@pytest.fixture
def asked_maps(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The device maps that transformers is asked for; on one device it leaves no other trace of them."""
    maps: list[str] = []
    load = PreTrainedModel.from_pretrained.__func__  # type: ignore[attr-defined]

    def watched(cls: Any, *arguments: Any, **keywords: Any) -> Any:
        maps.extend([keywords["device_map"]] if "device_map" in keywords else [])
        return load(cls, *arguments, **keywords)

    monkeypatch.setattr(PreTrainedModel, "from_pretrained", classmethod(watched))
    return maps


@pytest.mark.usefixtures("two_gpus")
@pytest.mark.parametrize("name", ["auto", "cuda"])
def test_every_process_of_a_machine_has_its_own_gpu(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.delenv("LOCAL_RANK", raising=False)
    assert choose_device(name) == torch.device("cuda")
    for rank in range(2):
        monkeypatch.setenv("LOCAL_RANK", str(rank))
        assert choose_device(name) == torch.device("cuda", rank)
        assert choose_device("cpu") == torch.device("cpu")
    monkeypatch.setenv("LOCAL_RANK", "2")
    with pytest.raises(AdapterError, match="Process 2 of this machine has no GPU of its own: torch sees 2"):
        choose_device(name)
    monkeypatch.setenv("LOCAL_RANK", "first")
    with pytest.raises(AdapterError, match="LOCAL_RANK is 'first'"):
        choose_device(name)


def test_without_a_gpu_every_process_is_on_the_cpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    monkeypatch.setenv("LOCAL_RANK", "3")
    assert choose_device("auto") == torch.device("cpu")
    with pytest.raises(AdapterError, match="torch sees no GPU"):
        choose_device("cuda")


@pytest.mark.parametrize("device_map", ["auto", "balanced", "sequential"])
def test_an_encoder_with_a_device_map(
    with_head: Open, open_folder: Open, open_bert: Open, asked_maps: list[str], device_map: str
) -> None:
    folder = with_head(AutoModelForSequenceClassification, ["no", "yes"])
    inputs = [TextInput(text=text) for text in TEXTS]
    plain, divided = open_folder(folder), open_folder(folder, device_map=device_map)
    assert asked_maps == [device_map]
    np.testing.assert_allclose(
        divided.classify(inputs, ["no", "yes"]), plain.classify(inputs, ["no", "yes"]), atol=1e-6
    )
    assert divided.identity() == plain.identity()
    assert plain.identity()["device"] == "cpu"
    bare = open_bert(device_map=device_map)
    np.testing.assert_allclose(
        bare.embed(TEXTS, side="query"), open_bert().embed(TEXTS, side="query"), atol=1e-6
    )
    assert bare._session.has_pooler == open_bert()._session.has_pooler


def test_a_decoder_with_a_device_map(open_llama: Open, asked_maps: list[str]) -> None:
    plain = open_llama()
    divided = open_llama(device_map="auto")
    assert asked_maps == ["auto"]
    asked = [
        LikelihoodRequest(context=text * 3, continuation=end) for text in TEXTS for end in (" a", " cat")
    ]
    for one, other in zip(divided.loglikelihood(asked), plain.loglikelihood(asked), strict=True):
        np.testing.assert_allclose(one.token_logprobs, other.token_logprobs, atol=1e-5)
    options = [GenerateOptions(max_tokens=4 + number) for number in range(len(TEXTS))]
    assert divided.generate(TEXTS, options) == plain.generate(TEXTS, options)
    assert divided.identity() == plain.identity()


def test_inputs_go_where_the_embeddings_are_run(llama: Any) -> None:
    """Weights that wait elsewhere (in memory, on disk) have a hook that says where they are run."""
    network = copy.deepcopy(llama._session.network)
    cpu_offload(network, execution_device=torch.device("cpu"))
    assert network.get_input_embeddings().weight.device == torch.device("meta")
    placed, device = place(network, ModelOptions(device_map="auto"))
    assert placed is network
    assert device == torch.device("cpu")
    ids = torch.tensor([[1, 2, 3]])
    with torch.inference_mode():
        torch.testing.assert_close(network(ids).logits, llama._session.network(ids).logits)


def test_weights_that_are_missing_are_found_with_a_device_map(
    folders: dict[str, Path], open_folder: Open, with_head: Open, tmp_path: Path
) -> None:
    from safetensors.torch import load_file, save_file

    folder = with_head(AutoModelForSequenceClassification, ["no", "yes"])
    weights = load_file(folder / "model.safetensors")
    weights.pop("classifier.weight")
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})
    with pytest.raises(AdapterError, match=r"'classifier\.weight'"):
        open_folder(folder, device_map="auto")


def test_a_device_map_is_rejected_together_with_a_device() -> None:
    entries = {entry.name: entry for entry in harness_register_adapters()}
    for name in ("hf-encoder", "hf-causal", "hf-seq2seq"):
        entry: AdapterEntry = entries[name]
        given = parse_options(entry, {"device_map": "auto"})
        assert isinstance(given, ModelOptions)
        assert given.device_map == "auto"
        with pytest.raises(UsageError, match=r"'device_map'.*device=cpu"):
            parse_options(entry, {"device_map": "auto", "device": "cpu"})


def test_a_device_map_is_rejected_in_several_processes(
    open_bert: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WORLD_SIZE", "2")
    with pytest.raises(UsageError, match=r"device_map is 'auto'.*but 2 processes are running"):
        open_bert(device_map="auto")
    monkeypatch.setenv("WORLD_SIZE", "1")
    assert open_bert(device_map="auto")
