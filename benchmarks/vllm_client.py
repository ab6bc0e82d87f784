"""The vLLM client: our adapter against a bare loop that sends the same requests, made beforehand, to the same server.

Both keep 16 requests under way over keep-alive connections and read the JSON that comes back; ours also tokenises,
checks every token of the answers, and puts them in order. The limit is 1.05 of the bare loop's time.

Then against ``local-completions`` of lm-evaluation-harness (``--peers PATH``, an interpreter that has it), in turns on
the same server: choices of one token, and long ones. Their scores must be equal.
Run: make bench, or python -m benchmarks.vllm_client [--model DIR] [--python PATH] [--requests N] [--rounds N]
"""

from __future__ import annotations

import argparse
import http.client
import json
import os
import statistics
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from benchmarks.lm_eval_peer import ask
from benchmarks.measuring import alternate, record, show
from harness.models.options import parse_options
from harness.models.requests import LikelihoodRequest
from harness_vllm import harness_register_adapters
from harness_vllm.model import GeneratingModel

CONCURRENCY = 16
LIMIT = 1.05
SENTENCE = (
    "The committee met on day {number} and decided, after a long debate, that the bridge would be repaired. "
)
LETTERS = (" A", " B", " C", " D")
EQUAL = 1e-3
CHOICES = ("Therefore the bridge stays open.", "Therefore no one paid.", "Therefore the river was moved.")


def open_model(folder: str, python: str) -> Any:
    """Return the adapter, with a server of its own."""
    os.environ.setdefault("VLLM_CPU_KVCACHE_SPACE", "1")  # GiB; vLLM asks for 92 % of all memory otherwise
    [entry] = [entry for entry in harness_register_adapters() if entry.name == "vllm"]
    given = {
        "python": python,
        "concurrency": str(CONCURRENCY),
        "max_num_seqs": str(CONCURRENCY * 4),
        "max_model_len": "512",
        "dtype": "float32",
        "enforce_eager": "true",
    }
    options = parse_options(entry, given)
    return entry.open(entry.describe_model(folder, options), options)


def record_bodies(model: GeneratingModel, requests: Sequence[LikelihoodRequest]) -> list[bytes]:
    """Return the bodies that the adapter sends for the requests."""
    client, bodies = model._session.client, []
    post = client.post

    def recorded(path: str, payload: Any) -> Any:
        bodies.append(json.dumps(payload, separators=(",", ":")).encode())
        return post(path, payload)

    client.post = recorded  # type: ignore[method-assign]
    model.loglikelihood(requests)
    client.post = post  # type: ignore[method-assign]
    return bodies


def rank(model: GeneratingModel, requests: Sequence[LikelihoodRequest]) -> None:
    """Rank with the adapter."""
    assert len(model.loglikelihood(requests)) == len(requests)


def bare_loop(model: GeneratingModel, bodies: Sequence[bytes]) -> None:
    """Send the bodies, `CONCURRENCY` at a time, and read the answers."""
    client = model._session.client.clients[0]
    address, key = client.address, client._key
    headers = {"Content-Type": "application/json", "Authorization": f"Bearer {key}"}
    waiting = iter(bodies)

    def work(_: int) -> None:
        connection = http.client.HTTPConnection(address.host, address.port, timeout=300)
        for body in waiting:
            connection.request("POST", "/v1/completions", body=body, headers=headers)
            assert json.loads(connection.getresponse().read())["choices"]
        connection.close()

    with ThreadPoolExecutor(CONCURRENCY) as threads:
        list(threads.map(work, range(CONCURRENCY)))


def against_peer(model: GeneratingModel, folder: str, peers: str, count: int, rounds: int) -> None:
    """Print how long our adapter and lm-eval take for the same continuations; raises where their scores differ."""
    client = model._session.client.clients[0]
    os.environ["OPENAI_API_KEY"] = str(client._key)
    for name, choices in (("one token", LETTERS), ("long", tuple(f" {choice}" for choice in CHOICES))):
        pairs = [
            ((SENTENCE.format(number=number) * 3).rstrip(), choice)
            for number in range(count // len(choices))
            for choice in choices
        ]
        requests = [LikelihoodRequest(context=context, continuation=choice) for context, choice in pairs]
        job = {
            "job": "rank",
            "model": folder,
            "served": model._session.model,
            "url": client.address.url(client.address.base),
            "concurrency": CONCURRENCY,
            "batch_size": 1,
            "requests": pairs,
        }
        ours, theirs = [], []
        for _ in range(rounds):
            started = time.perf_counter()
            sums = [answer.total for answer in model.loglikelihood(requests)]
            ours.append(time.perf_counter() - started)
            answer = ask(peers, job)
            theirs.append(answer["seconds"][1])
        worst = max(abs(one - other) for one, other in zip(sums, answer["sums"], strict=True))
        if worst > EQUAL:
            raise RuntimeError(f"Scores of {name} choices differ from those of lm-eval by {worst:.3g}.")
        mine, other = statistics.median(ours), statistics.median(theirs)
        print(
            f"{len(pairs)} {name} choices: {mine:.2f} s, lm-eval's local-completions {other:.2f} s; "
            f"ratio {other / mine:.2f}, scores differ by at most {worst:.1g}."
        )


def main(arguments: list[str] | None = None) -> None:
    """Measure and print; without vLLM or a model, say what is missing."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--model", default="models/smollm2", help="folder of a decoder")
    parser.add_argument("--python", default=".venv-vllm/bin/python", help="interpreter that has vllm")
    parser.add_argument("--peers", default=".venv-peers/bin/python", help="interpreter that has lm-eval")
    parser.add_argument("--requests", type=int, default=192)
    parser.add_argument("--rounds", type=int, default=5)
    given = parser.parse_args(arguments)
    for path, maker in ((given.python, "setup-vllm"), (given.model, "models")):
        if not Path(path).exists():
            print(f"The vLLM client is not measured: there is no {path}; make {maker} makes it.")
            return
    requests = [
        LikelihoodRequest(
            context=SENTENCE.format(number=number // 3) * 3, continuation=" " + CHOICES[number % 3]
        )
        for number in range(given.requests)
    ]
    model = open_model(given.model, given.python)
    try:
        model.loglikelihood(requests[:1])  # the checks of a new server
        bodies = record_bodies(model, requests)
        contenders = {
            "vllm adapter": lambda: rank(model, requests),
            "bare loop": lambda: bare_loop(model, bodies),
        }
        seconds = alternate(contenders, rounds=given.rounds)
        if Path(given.peers).exists():
            against_peer(model, given.model, given.peers, given.requests, given.rounds)
        else:
            print(f"lm-eval is not measured: there is no {given.peers}; make setup-peers makes it.")
    finally:
        model.close()
    show(f"{given.requests} continuations through vLLM", seconds, limits={"vllm adapter": f"{LIMIT}"})
    ours, bare = (statistics.median(seconds[name]) for name in contenders)
    record("vLLM client: time of a bare loop's", ours / bare, LIMIT)


if __name__ == "__main__":
    main()
