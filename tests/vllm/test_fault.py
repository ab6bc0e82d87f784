"""Random faults of a server: no wrong number, no lost answer, none twice."""

from __future__ import annotations

import os
import random
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from harness.errors import AdapterError
from harness.models.requests import Answered, Call, GenerateOptions, LikelihoodRequest

pytestmark = pytest.mark.thorough

Open = Callable[..., Any]
TEMPORARY = (
    "reset unread",
    "reset",
    "close",
    "half",
    "truncated",
    "429",
    "500",
    "502",
    "503",
    "hang",
)
LIES = {
    "loglikelihood": ("fewer", "more", "swapped", "shorter", "others", "nan", "empty"),
    "generate": ("fewer", "more", "no usage", "abort", "empty"),
    "embed": ("fewer", "zero", "empty"),
}
COUNT = 300
TEXTS = [f"number {number} and {number * number}" for number in range(COUNT)]
REQUESTS: dict[str, Sequence[Any]] = {
    "loglikelihood": [LikelihoodRequest(context=text, continuation=" yes no") for text in TEXTS],
    "generate": [(text, GenerateOptions(max_tokens=8, seed=number)) for number, text in enumerate(TEXTS)],
    "embed": TEXTS,
}
ARGUMENTS = {"loglikelihood": {}, "generate": {}, "embed": {"side": "query", "options": None}}
Wanted = dict[int, Any]
_undisturbed: dict[tuple[str, str], Wanted] = {}
"""By model and ability, as the stand-in answers alike every time."""


@pytest.fixture
def model_of(ranker: Open, open_model: Open, stand_in: Any, monkeypatch: pytest.MonkeyPatch) -> Open:
    """A function that opens the adapter with an ability; a hanging server is silent for longer than it waits."""
    monkeypatch.setattr("harness_vllm.model.TEXTS_PER_REQUEST", 2)
    stand_in.hang_seconds = 0.5

    def open_(ability: str, adapter: str, **options: Any) -> Any:
        given = {"timeout": 0.3, "concurrency": 8, **options}
        if adapter == "openai":
            return open_model("openai", stand_in.url, **given)
        if ability == "embed":
            return open_model("vllm", stand_in.url, runner="pooling", **given)
        return ranker(prompts_per_request=2, **given)

    return open_


def stream(model: Any, ability: Any, indices: Sequence[int]) -> Iterator[tuple[int, Any]]:
    requests = [REQUESTS[ability][index] for index in indices]
    for answered in model.stream(Call(ability=ability, arguments=ARGUMENTS[ability]), [requests]):
        assert isinstance(answered, Answered)
        for place, answer in zip(answered.indices, answered.answers, strict=True):
            yield indices[place], answer if ability != "embed" else answer.tobytes()


def undisturbed(model: Any, ability: str) -> Wanted:
    key = type(model).__name__, ability
    if key in _undisturbed:
        return _undisturbed[key]
    wanted = _undisturbed[key] = dict(stream(model, ability, range(COUNT)))
    assert len(wanted) == COUNT
    assert len(set(map(repr, wanted.values()))) > 40, "different requests have equal answers"
    return wanted


WAYS = [("loglikelihood", "vllm"), ("generate", "vllm"), ("embed", "vllm"), ("generate", "openai")]


@pytest.mark.parametrize(("ability", "adapter"), WAYS)
def test_faults_that_pass_change_nothing(model_of: Open, stand_in: Any, ability: str, adapter: str) -> None:
    wanted = undisturbed(model_of(ability, adapter, timeout=10), ability)
    stand_in.chances = (random.Random(1), 0.3, TEMPORARY)
    model = model_of(ability, adapter, retries=20)
    found = list(stream(model, ability, range(COUNT)))
    assert len(found) == COUNT, "an answer is lost, or came twice"
    assert dict(found) == wanted
    planted = stand_in.planted
    assert set(planted) == set(TEMPORARY), "a kind of fault is left out"
    assert planted.total() > 40
    print(f"{ability} of {adapter}: {planted.total()} faults {dict(planted)}")  # noqa: T201  # with -s
    stand_in.chances = None


@pytest.mark.parametrize(("ability", "adapter"), WAYS)
def test_faults_that_stay_end_the_stream_behind_right_answers(
    model_of: Open, stand_in: Any, ability: str, adapter: str
) -> None:
    wanted = undisturbed(model_of(ability, adapter, timeout=10), ability)
    model = model_of(ability, adapter, retries=2)
    stand_in.chances = (random.Random(2), 0.5, TEMPORARY)
    left = list(range(COUNT))
    rounds = failures = 0
    while left and rounds < 40:
        rounds += 1
        try:
            for index, answer in stream(model, ability, list(left)):
                assert answer == wanted[index]
                left.remove(index)  # raises for an answer that came before
        except AdapterError:
            failures += 1
            stand_in.chances = (stand_in.chances[0], stand_in.chances[1] * 0.8, TEMPORARY)
    assert left == []
    assert failures > 0, "the faults never exceeded the retries"
    print(f"{ability} of {adapter}: {stand_in.planted.total()} faults, {failures} errors")  # noqa: T201
    stand_in.chances = None


@pytest.mark.parametrize("ability", ["loglikelihood", "generate", "embed"])
def test_wrong_answers_are_never_used(model_of: Open, stand_in: Any, ability: str) -> None:
    options = {} if ability == "embed" else {"scoring": "prompt_logprobs"}
    model = model_of(ability, "vllm", timeout=10, **options)
    wanted = undisturbed(model, ability)
    stand_in.chances = (random.Random(3), 0.1, LIES[ability])
    left = list(range(COUNT))
    errors = 0
    while left and errors < 100:
        try:
            for index, answer in stream(model, ability, list(left)):
                assert answer == wanted[index]
                left.remove(index)
        except AdapterError as error:
            assert "The server at" in error.message
            errors += 1
    assert left == []
    assert set(stand_in.planted) == set(LIES[ability]), "a kind of wrong answer is missing"
    print(f"{ability}: {stand_in.planted.total()} wrong answers {dict(stand_in.planted)}, {errors} errors")  # noqa: T201
    stand_in.chances = None


# A server in a process of its own ---------------------------------------------------------------------


@pytest.fixture
def serve(interpreter: Path, folders: dict[str, Path]) -> Iterator[Callable[[int], subprocess.Popen[bytes]]]:
    """A function that starts the stand-in on a port, in a process group of its own."""
    started: list[subprocess.Popen[bytes]] = []

    def serve_(port: int) -> subprocess.Popen[bytes]:
        command = [str(interpreter), "-m", "vllm", "--model", str(folders["plain"])]
        command += ["--served-model-name", "tiny", "--port", str(port)]
        environment = {**os.environ, "VLLM_API_KEY": "of-the-test"}
        started.append(
            subprocess.Popen(command, env=environment, start_new_session=True, stdout=subprocess.DEVNULL)
        )
        return started[-1]

    yield serve_
    for process in started:
        kill(process)


def kill(process: subprocess.Popen[bytes]) -> None:
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass
    process.wait()


def wait_for(port: int) -> None:
    for _ in range(600):
        try:
            socket.create_connection(("127.0.0.1", port), timeout=0.1).close()
            return
        except OSError:
            time.sleep(0.05)
    pytest.fail("the stand-in did not start")


def test_a_server_that_is_killed_and_started_again_on_its_port(
    ranker: Open, serve: Callable[[int], subprocess.Popen[bytes]], monkeypatch: pytest.MonkeyPatch
) -> None:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    monkeypatch.setenv("OUR_KEY", "of-the-test")
    process = serve(port)
    wait_for(port)
    options = {"key_env": "OUR_KEY", "concurrency": 4, "retries": 20}
    model = ranker(url=f"http://127.0.0.1:{port}/v1", **options)
    wanted = undisturbed(model, "generate")
    found: list[tuple[int, Any]] = []
    for each in stream(model, "generate", range(COUNT)):
        found.append(each)
        if len(found) in (20, 150):
            kill(process)
            process = serve(port)
    assert len(found) == COUNT
    assert dict(found) == wanted
    assert model._session.client.repeated > 0, "nothing was under way when the server died"
