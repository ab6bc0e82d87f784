"""A real vLLM server on a tiny random Llama, against a forward pass of transformers in float32.

The environment is that of ``make setup-vllm``; HARNESS_VLLM_PYTHON names another interpreter that has vllm.
"""

from __future__ import annotations

import importlib.util
import json
import os
import re
import signal
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import AutoTokenizer, LlamaConfig, LlamaForCausalLM

from harness.errors import AdapterError
from harness.models.adapters import AdapterEntry
from harness.models.options import parse_options
from harness.models.requests import Call, GenerateOptions, LikelihoodRequest, Turn
from harness_vllm import harness_register_adapters

pytestmark = pytest.mark.vllm

ROOT = Path(__file__).resolve().parents[2]
CONTEXT = 128
PAIRS = [
    ("The cat sat on the", " warm mat"),
    ("The cat sat on the", " door."),
    ("Der Hund schläft", " neben der Tür"),
    ("बिल्ली चटाई", " पर बैठी है"),
    ("Кошка сидит", " у двери"),
    ("yes no red ", "green"),
    ("", "The cat"),
    ("The dog and the cat. " * 60, " yes"),
]


@pytest.fixture(scope="module")
def python() -> str:
    given = os.environ.get("HARNESS_VLLM_PYTHON", str(ROOT / ".venv-vllm" / "bin" / "python"))
    if not Path(given).exists():
        pytest.skip("there is no .venv-vllm; make setup-vllm makes it")
    return given


@pytest.fixture(scope="module")
def folder(folders: dict[str, Path]) -> Path:
    """A random Llama with the smallest heads that vLLM runs on a CPU (32 wide), and logits that differ."""
    torch.set_num_threads(1)
    torch.manual_seed(0)
    path = folders["plain"].with_name("llama")
    tokenizer = AutoTokenizer.from_pretrained(folders["plain"])
    config = LlamaConfig(
        vocab_size=len(tokenizer),
        hidden_size=64,
        intermediate_size=128,
        num_hidden_layers=2,
        num_attention_heads=2,
        num_key_value_heads=2,
        max_position_embeddings=CONTEXT,
        initializer_range=0.3,
        eos_token_id=tokenizer.eos_token_id,
        bos_token_id=None,
        pad_token_id=tokenizer.pad_token_id,
        tie_word_embeddings=False,
    )
    LlamaForCausalLM(config).save_pretrained(path)
    tokenizer.save_pretrained(path)
    # What the harness asks for must not be changed by what the folder recommends.
    file = path / "generation_config.json"
    file.write_text(
        json.dumps({**json.loads(file.read_text()), "repetition_penalty": 9.0, "do_sample": True})
    )
    return path


@pytest.fixture(scope="module")
def model(python: str, folder: Path) -> Iterator[Any]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("VLLM_CPU_KVCACHE_SPACE", "1")
        given = {"python": python, "dtype": "float32", "max_model_len": CONTEXT, "max_num_seqs": 16}
        opened = open_vllm(str(folder), enforce_eager=True, start_timeout=300, **given)
        yield opened
        opened.close()


def open_vllm(ref: str, **options: Any) -> Any:
    adapter = options.pop("adapter", "vllm")
    [entry] = [entry for entry in harness_register_adapters() if entry.name == adapter]
    assert isinstance(entry, AdapterEntry)
    given = parse_options(entry, {name: str(value) for name, value in options.items()})
    return entry.open(entry.describe_model(ref, given), given)


@lru_cache(maxsize=1)
def network_of(folder: Path) -> Any:
    return LlamaForCausalLM.from_pretrained(folder, dtype=torch.float32)


def own_logprobs(folder: Path, ids: Sequence[int]) -> torch.Tensor:
    network = network_of(folder)
    with torch.inference_mode():
        logits: torch.Tensor = network(torch.tensor([list(ids)])).logits[0]
        return torch.log_softmax(logits, dim=-1)


def greedy(folder: Path, ids: list[int], count: int) -> list[int]:
    found: list[int] = []
    for _ in range(count):
        found.append(int(own_logprobs(folder, ids + found)[-1].argmax()))
    return found


def test_loglikelihoods_are_those_of_transformers(model: Any, folder: Path) -> None:
    tokenizer = AutoTokenizer.from_pretrained(folder)
    requests = [LikelihoodRequest(context=context, continuation=rest) for context, rest in PAIRS]
    for (context, rest), answer in zip(PAIRS, model.loglikelihood(requests), strict=True):
        whole = tokenizer(context + rest, add_special_tokens=False).input_ids
        count = len(answer.token_logprobs)
        ids = [tokenizer.eos_token_id, *whole] if not context else whole[-(CONTEXT - 1) :]
        logprobs = own_logprobs(folder, ids)
        places = range(len(ids) - count, len(ids))
        wanted = [float(logprobs[place - 1, ids[place]]) for place in places]
        assert answer.token_logprobs == pytest.approx(wanted, abs=1e-3)
        assert answer.is_greedy == all(int(logprobs[place - 1].argmax()) == ids[place] for place in places)
        assert answer.truncated == (len(context) > 500)
        alone = tokenizer(context, add_special_tokens=False).input_ids
        assert answer.straddles == (whole[: len(alone)] != alone)
        assert count == len(whole) - len(alone) + answer.straddles


def test_choices_of_one_token_are_read_together(model: Any, folder: Path) -> None:
    """Their numbers are those of transformers, and of whole prompts."""
    tokenizer = AutoTokenizer.from_pretrained(folder)
    contexts = ["The cat sat on the", "Der Hund", "Кошка сидит на", "yes no"]
    requests = [LikelihoodRequest(context=text, continuation=end) for text in contexts for end in "!?=+#"]
    posted, sent = model._session.client.post, []

    def post(path: str, payload: Any) -> Any:
        sent.append(payload)
        return posted(path, payload)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(model._session.client, "post", post)
        answers = model.loglikelihood(requests)
    last = [payload for payload in sent if "logprob_token_ids" in payload][-len(contexts) :]
    assert [len(payload["logprob_token_ids"]) for payload in last] == [5] * len(contexts)
    whole = [answer.token_logprobs for answer in (model.loglikelihood([one])[0] for one in requests)]
    for request, answer, other in zip(requests, answers, whole, strict=True):
        context, token = tokenizer(request.context).input_ids, tokenizer(request.continuation).input_ids[0]
        logprobs = own_logprobs(folder, context)[-1]
        assert answer.token_logprobs == pytest.approx((float(logprobs[token]),), abs=1e-3)
        assert answer.token_logprobs == pytest.approx(other, abs=1e-3)
        assert answer.is_greedy == (int(logprobs.argmax()) == token)
    assert "were scored by the next token of their context" in model.notices()[0]


def test_echo_gives_the_same_numbers(model: Any, python: str, folder: Path) -> None:
    client = model._session.client.clients[0]
    requests = [LikelihoodRequest(context=context, continuation=rest) for context, rest in PAIRS[:5]]
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("VLLM_API_KEY", client._key)
        running = open_vllm(client.address.url("/v1"), scoring="echo")
    try:
        for one, other in zip(model.loglikelihood(requests), running.loglikelihood(requests), strict=True):
            assert other.token_logprobs == pytest.approx(one.token_logprobs, abs=1e-4)
            assert other.is_greedy == one.is_greedy
        assert running.identity()["vllm"] == model.identity()["vllm"] != "unknown"
    finally:
        running.close()


def test_generation_is_greedy_and_keeps_its_order(model: Any, folder: Path) -> None:
    tokenizer = AutoTokenizer.from_pretrained(folder)
    prompts = ["The cat", "Der Hund", "yes no"]
    for prompt, answer in zip(
        prompts, model.generate(prompts, [GenerateOptions(max_tokens=6)] * 3), strict=True
    ):
        wanted = greedy(folder, tokenizer(prompt, add_special_tokens=False).input_ids, 6)
        if tokenizer.eos_token_id not in wanted:
            # vLLM leaves out the bytes of a character that the limit cut.
            assert answer.text == str(tokenizer.decode(wanted, skip_special_tokens=True)).rstrip("\ufffd")
            assert (answer.tokens, answer.finished, answer.truncated) == (6, False, False)


def test_sampling_depends_on_the_seed_alone(model: Any) -> None:
    options = [GenerateOptions(max_tokens=8, temperature=1.0, seed=seed) for seed in (1, 2, 1, 3)]
    first, second, third, _ = model.generate(["The cat"] * 4, options)
    assert first == third
    assert first != second


def test_conversations_and_lengths(model: Any, folder: Path) -> None:
    turns = (Turn(role="user", text="The cat?"),)
    tokenizer = AutoTokenizer.from_pretrained(folder)
    ids = tokenizer("user: The cat?\nassistant: ", add_special_tokens=False).input_ids
    assert model.token_counts([turns, "The cat"]) == [len(ids), len(tokenizer("The cat").input_ids)]
    assert model.context_length() == CONTEXT
    [answer] = model.generate([turns], [GenerateOptions(max_tokens=4)])
    [same] = model.generate(["user: The cat?\nassistant: "], [GenerateOptions(max_tokens=4)])
    assert answer == same
    long = (Turn(role="user", text="the dog " * 200),)
    [cut] = model.generate([long], [GenerateOptions(max_tokens=4)])
    assert cut.truncated


def test_the_responses_api_gives_the_answers_of_chat(model: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    client = model._session.client.clients[0]
    monkeypatch.setenv("OPENAI_API_KEY", client._key)
    options = [GenerateOptions(max_tokens=6), GenerateOptions(max_tokens=6, stop=("e",))]
    found = []
    for api in ("chat", "responses"):
        endpoint = open_vllm(client.address.url("/v1"), adapter="openai", api=api)
        found.append(endpoint.generate(["The cat?"] * 2, options))
        endpoint.close()
    for chat, answer in zip(*found, strict=True):
        assert (answer.text, answer.finished, answer.reasoning) == (chat.text, chat.finished, None)
    assert found[1][0].tokens == found[0][0].tokens


@pytest.mark.parametrize(
    "prompt", ["The cat", (Turn(role="user", text="The cat"),)], ids=["text", "conversation"]
)
def test_constraints(model: Any, prompt: Any) -> None:
    schema = {"type": "object", "properties": {"a": {"type": "boolean"}}, "required": ["a"]}
    choice, digits, value = model.generate(
        [prompt] * 3,
        [
            GenerateOptions(max_tokens=16, choices=("yes", "no, never")),
            GenerateOptions(max_tokens=16, regex="[0-9]{3}"),
            GenerateOptions(max_tokens=64, json_schema={**schema, "additionalProperties": False}),
        ],
    )
    assert choice.text in ("yes", "no, never")
    assert re.fullmatch("[0-9]{3}", digits.text)
    if value.finished:
        assert set(json.loads(value.text)) == {"a"}


def test_what_vllm_rejects_is_reported(model: Any) -> None:
    with pytest.raises(AdapterError, match="answered 400"):
        model.generate(["a"], [GenerateOptions(max_tokens=4, regex="(")])


def test_a_server_that_is_killed_in_a_stream_loses_no_answer(model: Any) -> None:
    """kill -9 of the whole process group: the adapter starts the server again, once."""
    pairs = [(f"The cat {number}", GenerateOptions(max_tokens=6)) for number in range(80)]
    wanted = model.generate(*zip(*pairs, strict=True))
    first = model._session._server._process.pid
    found: dict[int, Any] = {}
    for answered in model.stream(Call(ability="generate"), [pairs]):
        [index], [answer] = answered.indices, answered.answers
        assert index not in found
        found[index] = answer
        if len(found) == 10:
            os.killpg(first, signal.SIGKILL)
    assert sorted(found) == list(range(len(pairs)))
    assert [found[index] for index in range(len(pairs))] == wanted
    assert model._session._server._process.pid != first


def test_it_is_ended_with_all_its_processes(model: Any) -> None:
    """The last test of this module: the server is gone afterwards."""
    group = model._session._server._process.pid

    def members() -> list[str]:
        listed = subprocess.run(["ps", "-eo", "pgid=,stat="], capture_output=True, text=True, check=True)
        rows = [line.split() for line in listed.stdout.splitlines()]
        return [state for number, state in rows if number == str(group) and not state.startswith("Z")]

    assert len(members()) >= 3, "the launcher, the server and its engine"
    started = time.monotonic()
    model.close()
    gone: Callable[[], bool] = lambda: members() == []  # noqa: E731
    while not gone() and time.monotonic() - started < 60:
        time.sleep(0.1)
    assert gone()


def _thinking_module() -> Any:
    """The tiny model that reasons, of the tests of hf-causal."""
    path = ROOT / "tests" / "hf" / "thinking_model.py"
    spec = importlib.util.spec_from_file_location("thinking_model", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_reasoning_is_that_of_the_model(tmp_path: Path, python: str, monkeypatch: pytest.MonkeyPatch) -> None:
    thinking = _thinking_module()
    folder = thinking.save_thinking_model(tmp_path / "thinks")
    colours = thinking.COLOURS[:4]
    turns = [(Turn(role="user", text=f"say {colour}"),) for colour in colours]
    options = [GenerateOptions(max_tokens=4, stop=("\n",))] * len(colours)
    monkeypatch.setenv("VLLM_CPU_KVCACHE_SPACE", "1")
    settings = {"dtype": "float32", "max_num_seqs": 16, "enforce_eager": True, "start_timeout": 300}
    model = open_vllm(str(folder), python=python, **settings)
    try:
        answers = model.generate(turns, options)
    finally:
        model.close()
    assert [answer.text for answer in answers] == list(colours)
    assert [answer.reasoning for answer in answers] == [thinking.reasoning_of(one) for one in colours]
    assert all(answer.finished and 0 < answer.reasoning_tokens < answer.tokens for answer in answers)
