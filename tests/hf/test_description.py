from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from transformers import (
    AutoModelForMultipleChoice,
    AutoModelForQuestionAnswering,
    AutoModelForSequenceClassification,
    AutoModelForTokenClassification,
)

from harness.errors import AdapterError, CapabilityError, UsageError
from harness.models.capabilities import HEAD_CAPABILITY, Capability, Head, capability_protocols
from harness_hf import harness_register_adapters
from harness_hf.description import describe
from harness_hf.options import EncoderOptions

BARE = {Capability.FITS, Capability.EMBEDS, Capability.EXPOSES_HIDDEN_STATES}
OPTIONS = EncoderOptions()
Save = Callable[..., Path]


def with_head_of(head: Head) -> set[Capability]:
    further = {Capability.EXPOSES_ATTENTIONS} if head is Head.CLASSIFICATION else set()
    return BARE | {HEAD_CAPABILITY[head]} | further


def write_config(folder: Path, **config: Any) -> str:
    folder.mkdir(exist_ok=True)
    (folder / "config.json").write_text(json.dumps(config))
    return str(folder)


def test_the_adapters_are_declared_and_import_nothing_heavy() -> None:
    entries = harness_register_adapters()
    assert [entry.name for entry in entries] == ["hf", "hf-encoder", "hf-causal", "hf-seq2seq"]
    code = (
        "import sys; import harness_hf; harness_hf.harness_register_adapters(); "
        "assert not {'torch', 'transformers', 'numpy', 'pydantic'} & set(sys.modules), sorted(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_describing_loads_no_model_library(folders: dict[str, Path]) -> None:
    code = (
        "import sys; from harness_hf.description import describe; "
        "from harness_hf.options import EncoderOptions; "
        "describe(sys.argv[1], EncoderOptions()); "
        "assert not {'torch', 'transformers', 'tokenizers', 'huggingface_hub'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code, str(folders["bert"])], check=True)


@pytest.mark.parametrize("family", ["bert", "xlm-roberta", "roberta"])
def test_a_bare_encoder(folders: dict[str, Path], open_folder: Any, family: str) -> None:
    found = describe(str(folders[family]), OPTIONS)
    assert found.adapter == "hf-encoder"
    assert found.offers == BARE
    assert set(found.after_fit) == {
        Head.CLASSIFICATION,
        Head.MULTIPLE_CHOICE,
        Head.TAGGING,
        Head.SPAN_EXTRACTION,
        Head.DUAL_ENCODER,
    }
    for head, offers in found.after_fit.items():
        assert offers == with_head_of(head)
    assert found.layers == 4
    network = open_folder(folders[family])._session.network
    assert found.parameters == sum(parameter.numel() for parameter in network.parameters())
    assert found.metadata["model_type"] == family


@pytest.mark.parametrize(
    ("auto_class", "head", "labels"),
    [
        (AutoModelForSequenceClassification, Head.CLASSIFICATION, ["no", "yes"]),
        (AutoModelForTokenClassification, Head.TAGGING, ["NOUN", "VERB", "X"]),
        (AutoModelForQuestionAnswering, Head.SPAN_EXTRACTION, None),
        (AutoModelForMultipleChoice, Head.MULTIPLE_CHOICE, None),
    ],
)
def test_what_is_declared_is_implemented(
    with_head: Save, open_folder: Any, auto_class: Any, head: Head, labels: list[str] | None
) -> None:
    folder = with_head(auto_class, labels)
    found = describe(str(folder), OPTIONS)
    assert found.offers == with_head_of(head)
    assert found.labels == tuple(labels or ())
    adapter = open_folder(folder)
    implemented = {name for name, protocol in capability_protocols().items() if isinstance(adapter, protocol)}
    assert implemented == found.offers


def test_a_bare_encoder_implements_what_it_declares(encoder: Any) -> None:
    implemented = {name for name, protocol in capability_protocols().items() if isinstance(encoder, protocol)}
    assert implemented == BARE


def test_unnamed_labels_are_noted(with_head: Save) -> None:
    found = describe(str(with_head(AutoModelForSequenceClassification)), OPTIONS)
    assert found.labels == ("LABEL_0", "LABEL_1")
    assert "unnamed" in found.note
    assert Capability.CLASSIFIES in found.offers


@pytest.mark.parametrize("changes", [{"num_labels": 1}, {"problem_type": "multi_label_classification"}])
def test_scores_that_are_no_labels_do_not_classify(
    with_head: Save, open_folder: Any, changes: dict[str, Any]
) -> None:
    folder = with_head(AutoModelForSequenceClassification, **changes)
    found = describe(str(folder), OPTIONS)
    assert found.offers == BARE
    assert "does not classify" in found.note
    assert not hasattr(open_folder(folder), "classify")


@pytest.mark.parametrize(
    ("config", "words"),
    [
        (
            {"model_type": "llama", "architectures": ["LlamaForCausalLM"]},
            ["a decoder (llama)", "'hf-causal'"],
        ),
        ({"model_type": "gpt2"}, ["a decoder (gpt2)", "'hf-causal'"]),
        ({"model_type": "bert", "architectures": ["BertLMHeadModel"]}, ["a decoder (bert)", "'hf-causal'"]),
        (
            {"model_type": "mbart", "architectures": ["MBartForConditionalGeneration"]},
            ["sequence-to-sequence model (mbart)", "'hf-seq2seq'"],
        ),
        ({"model_type": "marian", "is_encoder_decoder": True}, ["not an encoder", "'hf-seq2seq'"]),
    ],
)
def test_other_families_are_rejected_by_name(
    tmp_path: Path, config: dict[str, Any], words: list[str]
) -> None:
    ref = write_config(tmp_path / "model", **config)
    with pytest.raises(CapabilityError) as caught:
        describe(ref, OPTIONS)
    assert ref in str(caught.value)
    assert all(word in str(caught.value) for word in [*words, "not an encoder"])


def test_an_unknown_type_is_rejected(tmp_path: Path) -> None:
    ref = write_config(tmp_path / "model", model_type="quasar")
    with pytest.raises(AdapterError, match="'quasar'"):
        describe(ref, OPTIONS)


def test_foreign_code_runs_only_when_an_option_says_so(tmp_path: Path) -> None:
    ref = write_config(
        tmp_path / "model",
        model_type="novel",
        architectures=["NovelModel"],
        auto_map={"AutoModel": "modeling_novel.NovelModel"},
    )
    with pytest.raises(AdapterError, match="trust_remote_code=true"):
        describe(ref, OPTIONS)
    assert describe(ref, EncoderOptions(trust_remote_code=True)).offers == BARE


def test_folders_that_hold_no_model(tmp_path: Path, folders: dict[str, Path]) -> None:
    with pytest.raises(UsageError, match=r"no config\.json"):
        describe(str(tmp_path), OPTIONS)
    with pytest.raises(UsageError, match="There is no folder") as caught:
        describe(str(folders["bert"].parent / "brt"), OPTIONS)
    assert "'bert'" not in str(caught.value)
    assert str(folders["bert"]) in str(caught.value)
    missing = folders["bert"].parent.with_name(f"{folders['bert'].parent.name}s")
    with pytest.raises(UsageError, match="There is no folder") as caught:
        describe(str(missing / "bert"), OPTIONS)
    assert caught.value.hint == f"Did you mean {str(folders['bert'])!r}?"
    with pytest.raises(UsageError, match="is a file"):
        describe(str(folders["bert"] / "config.json"), OPTIONS)
    (tmp_path / "config.json").write_text('{"model_type": \n"bert",}')
    with pytest.raises(AdapterError, match=r"config\.json:2 is not JSON"):
        describe(str(tmp_path), OPTIONS)
    (tmp_path / "config.json").write_text("[]")
    with pytest.raises(AdapterError, match="expected a JSON object"):
        describe(str(tmp_path), OPTIONS)


def test_a_malformed_configuration(tmp_path: Path) -> None:
    ref = write_config(
        tmp_path / "model",
        model_type="bert",
        architectures=["BertForSequenceClassification"],
        id2label={"first": "yes"},
    )
    with pytest.raises(AdapterError, match="not one that transformers wrote"):
        describe(ref, OPTIONS)


def test_a_hub_id_offline_is_one_sentence(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path))
    with pytest.raises(AdapterError) as caught:
        describe("someone/some-encoder", OPTIONS)
    assert "'someone/some-encoder'" in str(caught.value)
    assert "neither downloaded nor reachable" in str(caught.value)


def test_a_hub_id_reads_config_json_only(
    monkeypatch: pytest.MonkeyPatch, folders: dict[str, Path], tmp_path: Path
) -> None:
    snapshot = tmp_path / "snapshots" / ("0" * 40)
    snapshot.mkdir(parents=True)
    (snapshot / "config.json").write_bytes((folders["bert"] / "config.json").read_bytes())
    asked: list[tuple[Any, ...]] = []

    def download(repo: str, file: str, **keywords: Any) -> str:
        asked.append((repo, file, keywords["revision"]))
        return str(snapshot / file)

    monkeypatch.setattr("huggingface_hub.hf_hub_download", download)
    found = describe("someone/some-encoder", EncoderOptions(revision="main"))
    assert asked == [("someone/some-encoder", "config.json", "main")]
    assert found.revision == "0" * 40
    assert found.parameters is None
    assert found.offers == BARE


def test_parameters_are_unknown_without_safetensors(tmp_path: Path) -> None:
    ref = write_config(tmp_path / "model", model_type="bert", num_hidden_layers=2)
    assert describe(ref, OPTIONS).parameters is None
    (tmp_path / "model" / "model.safetensors").write_bytes(b"\x08\x00")
    assert describe(ref, OPTIONS).parameters is None


def test_labels_are_named_by_an_option_and_checked(tmp_path: Path) -> None:
    names = {str(number): f"LABEL_{number}" for number in range(3)}
    folder = write_config(
        tmp_path / "m", model_type="bert", architectures=["BertForSequenceClassification"], id2label=names
    )
    found = describe(folder, EncoderOptions(labels="yes, no,maybe"))
    assert found.labels == ("yes", "no", "maybe")
    assert "unnamed" in describe(folder, OPTIONS).note
    assert "unnamed" not in found.note
    for labels in ("yes,no", "yes,Yes,no", "yes,,no"):
        with pytest.raises(UsageError, match="expected 3 different names"):
            describe(folder, EncoderOptions(labels=labels))
    bare = write_config(tmp_path / "bare", model_type="bert", architectures=["BertModel"])
    with pytest.raises(UsageError, match="no head with labels"):
        describe(bare, EncoderOptions(labels="yes,no"))


@pytest.mark.parametrize("device", ["auto", "cpu", "mps", "cuda", "cuda:1"])
def test_devices_are_known(device: str) -> None:
    assert EncoderOptions(device=device).device == device


@pytest.mark.parametrize("device", ["gpu", "cuda:", "cuda:x", "0"])
def test_other_devices_are_rejected(device: str) -> None:
    with pytest.raises(ValueError, match="expected auto, cpu"):
        EncoderOptions(device=device)
