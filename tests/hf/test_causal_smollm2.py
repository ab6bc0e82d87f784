"""A real decoder: SmolLM2-135M-Instruct, which `make models` makes."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

from harness.models.requests import GenerateOptions, LikelihoodRequest, Turn

pytestmark = [pytest.mark.slow, pytest.mark.models]
ROOT = Path(__file__).parents[2]
LM_EVAL = """
import json, sys
from lm_eval.api.instance import Instance
from lm_eval.models.huggingface import HFLM
model = HFLM(pretrained=sys.argv[1], dtype="float32", batch_size=4, device="cpu")
pairs = json.loads(sys.argv[2])
asked = [Instance("loglikelihood", {}, tuple(pair), 0) for pair in pairs]
print(json.dumps(model.loglikelihood(asked, disable_tqdm=True)))
"""
PREMISES = (
    "The man bought two loaves of bread at the market",
    "Der Zug nach Bremen fährt heute nicht",
    "आज बारिश हो रही है",
)
REQUESTS = [
    LikelihoodRequest(context=premise, continuation=f", right? {word}, it is so.")
    for premise in PREMISES
    for word in ("Yes", "Also", "No")
] + [
    LikelihoodRequest(context="The capital of France is", continuation=choice)
    for choice in (" Paris", " London", " Rome")
]


@pytest.fixture(scope="module")
def smollm2() -> Path:
    root = Path(os.environ.get("HARNESS_MODELS") or ROOT / "models")
    if not (root / "smollm2" / "config.json").is_file():
        pytest.skip("models/smollm2 is not there: run make models, or set HARNESS_MODELS")
    return root / "smollm2"


@pytest.fixture(scope="module")
def model(smollm2: Path, open_decoder: Callable[..., Any]) -> Any:
    return open_decoder(smollm2, dtype="float32")


def test_it_knows_the_capital_of_france(model: Any) -> None:
    answers = model.loglikelihood(REQUESTS)
    totals = {one.continuation: answer.total for one, answer in zip(REQUESTS, answers, strict=True)}
    assert max((" Paris", " London", " Rome"), key=lambda choice: totals[choice]) == " Paris"
    talk = (Turn(role="user", text="What is the capital of France?"),)
    (answer,) = model.generate([talk], [GenerateOptions(max_tokens=20)])
    assert "Paris" in answer.text
    assert answer.finished


def test_numbers_and_texts_are_those_of_transformers(smollm2: Path, model: Any) -> None:
    tokenizer = AutoTokenizer.from_pretrained(smollm2)
    plain: Any = AutoModelForCausalLM.from_pretrained(smollm2, dtype=torch.float32)
    for one, answer in zip(REQUESTS, model.loglikelihood(REQUESTS), strict=True):
        size = len(tokenizer(one.context)["input_ids"])
        ids = torch.tensor([tokenizer(one.context + one.continuation)["input_ids"]])
        with torch.inference_mode():
            logprobs = plain(ids).logits[0].log_softmax(-1)
        expected = [float(logprobs[place - 1, ids[0, place]]) for place in range(size, ids.shape[1])]
        assert answer.token_logprobs == pytest.approx(expected, abs=1e-4)
    prompts = ["The capital of France is", "Once upon a time there was a small dog who"]
    answers = model.generate(prompts, [GenerateOptions(max_tokens=12)] * 2)
    for prompt, answer in zip(prompts, answers, strict=True):
        ids = tokenizer(prompt, return_tensors="pt")
        written = plain.generate(**ids, max_new_tokens=12, do_sample=False)[0, ids["input_ids"].shape[1] :]
        assert answer.text == tokenizer.decode(written, skip_special_tokens=True)


def test_totals_are_those_of_lm_eval(smollm2: Path, model: Any) -> None:
    """Against lm-evaluation-harness, in the environment that `make bench` makes for it."""
    python = Path(os.environ.get("HARNESS_PEERS") or ROOT / ".venv-peers") / "bin" / "python"
    if not python.is_file():
        pytest.skip(".venv-peers is not there: run make bench, or set HARNESS_PEERS")
    pairs = json.dumps([[one.context, one.continuation] for one in REQUESTS])
    done = subprocess.run(
        [str(python), "-c", LM_EVAL, str(smollm2), pairs], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    theirs = json.loads(done.stdout.splitlines()[-1])
    for answer, (total, greedy) in zip(model.loglikelihood(REQUESTS), theirs, strict=True):
        assert answer.total == pytest.approx(total, abs=1e-3)
        assert answer.is_greedy == greedy
