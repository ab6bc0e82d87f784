from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from harness.errors import CapabilityError, UnknownNameError, UsageError
from harness.models.capabilities import Capability, Head
from harness.planning.planner import resolve_model
from harness.registry.discovery import discover
from harness.registry.registry import Registry
from harness_hf.options import ModelOptions


@pytest.fixture(scope="module")
def registry() -> Any:
    return Registry(discover())


def test_hf_follows_the_family(
    registry: Any, folders: dict[str, Path], decoder_folders: dict[str, Path]
) -> None:
    for folder, name in (
        (folders["bert"], "hf-encoder"),
        *((one, "hf-causal") for one in decoder_folders.values()),
    ):
        model = resolve_model(registry.adapters, f"hf:{folder}", {"dtype": "float32", "max_length": "32"})
        assert isinstance(model.options, ModelOptions)
        assert model.entry.name == model.description.adapter == name
        assert model.options.max_length == 32
        direct = resolve_model(registry.adapters, f"{name}:{folder}", {})
        assert direct.description.offers == model.description.offers


def test_hf_opens_what_it_described(folders: dict[str, Path], decoder_folders: dict[str, Path]) -> None:
    from harness_hf.family import AnyFamilyOptions, describe_any, open_any

    for folder in (folders["bert"], decoder_folders["gpt2"]):
        options = AnyFamilyOptions.model_validate({"batch_tokens": "77"})
        opened: Any = open_any(describe_any(str(folder), options), options)
        assert opened.identity()["adapter"] == describe_any(str(folder), options).adapter
        assert opened._session.options.batch_tokens == 77


def test_a_decoder(registry: Any, decoder_folders: dict[str, Path], llama: Any) -> None:
    found = resolve_model(registry.adapters, f"hf:{decoder_folders['llama']}", {}).description
    assert found.offers == {
        Capability.SCORES_CONTINUATIONS,
        Capability.GENERATES,
        Capability.COUNTS_TOKENS,
        Capability.EMBEDS,
        Capability.EXPOSES_HIDDEN_STATES,
        Capability.FITS,
    }
    assert set(found.after_fit) == set(Head) - {Head.TEXT_TO_TEXT}
    assert found.fits_on_request
    assert found.layers == 3
    assert found.parameters == sum(one.numel() for one in llama._session.network.parameters())


def test_options_of_any_family_pass_and_others_are_rejected(
    registry: Any, folders: dict[str, Path], decoder_folders: dict[str, Path]
) -> None:
    model = resolve_model(registry.adapters, f"hf:{decoder_folders['llama']}", {"share_prefixes": "false"})
    assert model.options.model_dump()["share_prefixes"] is False
    encoder = resolve_model(registry.adapters, f"hf:{folders['bert']}", {"mixed_precision": "bf16"})
    assert encoder.options.model_dump()["mixed_precision"] == "bf16"
    with pytest.raises(UnknownNameError, match="'hf-causal' named 'score_eos'"):
        resolve_model(registry.adapters, f"hf:{decoder_folders['llama']}", {"score_eos": "true"})
    with pytest.raises(UnknownNameError, match="'hf-encoder' named 'share_prefixes'"):
        resolve_model(registry.adapters, f"hf:{folders['bert']}", {"share_prefixes": "false"})
    with pytest.raises(UnknownNameError, match="Did you mean 'pooling'"):
        resolve_model(registry.adapters, f"hf:{folders['bert']}", {"poling": "mean"})
    for text in ("hf", "hf-causal"):
        with pytest.raises(UsageError, match="'dtype' of the adapter 'hf"):
            resolve_model(registry.adapters, f"{text}:{decoder_folders['llama']}", {"dtype": "int8"})


def test_the_wrong_adapter_names_the_right_one(
    registry: Any, folders: dict[str, Path], decoder_folders: dict[str, Path], tmp_path: Path
) -> None:
    with pytest.raises(CapabilityError, match=r"an encoder \(bert\), not a decoder.*'hf-encoder:"):
        resolve_model(registry.adapters, f"hf-causal:{folders['bert']}", {})
    with pytest.raises(CapabilityError, match=r"a decoder \(llama\), not an encoder.*'hf-causal'"):
        resolve_model(registry.adapters, f"hf-encoder:{decoder_folders['llama']}", {})
    (tmp_path / "config.json").write_text(json.dumps({"model_type": "mt5", "is_encoder_decoder": True}))
    with pytest.raises(CapabilityError, match=r"a sequence-to-sequence model \(mt5\).*'hf-seq2seq'"):
        resolve_model(registry.adapters, f"hf-causal:{tmp_path}", {})
