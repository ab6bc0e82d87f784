"""What is said about a model before anything is started or loaded."""

from __future__ import annotations

import json
import socket
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from harness.errors import AdapterError, CapabilityError, UnknownNameError, UsageError
from harness.models.adapters import AdapterEntry
from harness.models.capabilities import Capability, ModelDescription
from harness.models.options import parse_options

GENERATES = {Capability.SCORES_CONTINUATIONS, Capability.GENERATES, Capability.COUNTS_TOKENS}
Describe = Callable[..., ModelDescription]


@pytest.fixture
def describe(entries: dict[str, AdapterEntry]) -> Describe:
    def describe_(name: str, ref: str, **options: str) -> ModelDescription:
        return entries[name].describe_model(ref, parse_options(entries[name], options))

    return describe_


@pytest.fixture
def unused_port() -> Iterator[int]:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        yield probe.getsockname()[1]  # bound, but no process listens


def test_a_folder(describe: Describe, folders: dict[str, Path]) -> None:
    found = describe("vllm", str(folders["plain"]))
    assert (found.adapter, found.layers, found.metadata["architecture"]) == ("vllm", 2, "LlamaForCausalLM")
    assert found.offers == GENERATES
    assert describe("vllm", str(folders["plain"]), runner="pooling").offers == {Capability.EMBEDS}


def test_a_hub_id(describe: Describe) -> None:
    found = describe("vllm", "org/name", revision="abc")
    assert found.offers == GENERATES
    assert found.revision == "abc"


def test_an_encoder_is_rejected_as_a_generator(describe: Describe, tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text(json.dumps({"architectures": ["BertModel"]}))
    with pytest.raises(
        CapabilityError, match=r"is a BertModel, which writes no text.*hf:MODEL.*runner=pooling"
    ):
        describe("vllm", str(tmp_path))
    assert describe("vllm", str(tmp_path), runner="pooling").offers == {Capability.EMBEDS}


def test_a_folder_that_is_no_model(describe: Describe, folders: dict[str, Path], tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"has no config.json"):
        describe("vllm", str(tmp_path))
    (tmp_path / "config.json").write_text('{"a": 1,\n!}')
    with pytest.raises(AdapterError, match=r"config.json:2 is not JSON"):
        describe("vllm", str(tmp_path))
    (tmp_path / "config.json").write_text("[]")
    with pytest.raises(AdapterError, match=r"holds a list; expected a JSON object"):
        describe("vllm", str(tmp_path))
    with pytest.raises(UsageError, match=r"There is no model folder.*Did you mean '.*/plain'"):
        describe("vllm", str(folders["plain"].with_name("plan")))


def test_a_running_server(describe: Describe, stand_in: Any) -> None:
    found = describe("vllm", stand_in.url)
    assert found.offers == GENERATES
    assert dict(found.metadata) == {"model": "tiny", "context_length": "64"}
    assert describe("vllm", stand_in.url, runner="pooling").offers == {Capability.EMBEDS}
    assert describe("openai", stand_in.url).offers == {Capability.GENERATES}


def test_a_server_with_several_models(describe: Describe, stand_in: Any) -> None:
    stand_in.models = ["tiny", "large"]
    assert describe("vllm", stand_in.url, model="large").metadata["model"] == "large"
    with pytest.raises(UsageError, match=r"has 2 models: large, tiny\. Name one with -o model=NAME"):
        describe("vllm", stand_in.url)
    with pytest.raises(
        UnknownNameError, match=r"No model at the server .* named 'lage'\. Did you mean 'large'"
    ):
        describe("openai", stand_in.url, model="lage")


def test_nothing_listens(describe: Describe, unused_port: int) -> None:
    with pytest.raises(AdapterError, match="was asked once: nothing accepts connections there"):
        describe("vllm", f"http://127.0.0.1:{unused_port}/v1")


def test_a_wrong_path(describe: Describe, stand_in: Any) -> None:
    with pytest.raises(AdapterError, match=r"no list of models there \(404.*Did you mean http://.*/v1\?"):
        describe("vllm", stand_in.url.removesuffix("/v1"))


def test_a_key_is_wanted(describe: Describe, stand_in: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    stand_in.key = "sk-secret"
    with pytest.raises(AdapterError, match=r"401.*MY_KEY"):
        describe("openai", stand_in.url, key_env="MY_KEY")
    monkeypatch.setenv("MY_KEY", "sk-secret")
    assert "secret" not in repr(describe("openai", stand_in.url, key_env="MY_KEY"))


def test_a_server_that_lists_nothing(describe: Describe, stand_in: Any) -> None:
    stand_in.models = []
    with pytest.raises(UsageError, match="has 0 models: none"):
        describe("openai", stand_in.url)


def test_an_address_is_wanted(describe: Describe) -> None:
    with pytest.raises(UsageError, match="'gpt' is no address of a chat endpoint"):
        describe("openai", "gpt")


def test_a_name_at_a_server_needs_a_server(describe: Describe, folders: dict[str, Path]) -> None:
    with pytest.raises(UsageError, match="names a model at a running server"):
        describe("vllm", str(folders["plain"]), model="x")


def test_a_chat_endpoint_declares_what_it_can_keep_text_to(describe: Describe, stand_in: Any) -> None:
    assert describe("openai", stand_in.url).constraints == frozenset({"json_schema"})
    assert describe("vllm", stand_in.url).constraints is None


def test_a_missing_tokenizer_is_known_before_a_server_is_started(
    describe: Describe, folders: dict[str, Path], tmp_path: Path
) -> None:
    (tmp_path / "config.json").write_text(json.dumps({"architectures": ["LlamaForCausalLM"]}))
    assert "tokenizer=FOLDER" in describe("vllm", str(tmp_path)).fault
    assert describe("vllm", str(tmp_path), tokenizer=str(folders["plain"])).fault == ""
    assert describe("vllm", str(tmp_path), runner="pooling").fault == ""
    assert str(tmp_path) in describe("vllm", str(folders["plain"]), tokenizer=str(tmp_path)).fault
    assert describe("vllm", str(folders["plain"])).fault == ""
