"""Several servers of one model: how requests are shared, and what happens where one of them dies."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from harness.cli.main import run_command
from harness.errors import AdapterError, UsageError
from harness.models.requests import Call, GenerateOptions, HasNotices
from harness_vllm.client import Client, Unreachable
from harness_vllm.ranking import CHECKED, LONGEST

pytestmark = pytest.mark.thorough

Open = Callable[..., Any]
OPTIONS = GenerateOptions(max_tokens=8)
PAIRS = [(f"number {number}", OPTIONS) for number in range(120)]


@pytest.fixture
def pair(stand_in: Any, folders: dict[str, Path]) -> Iterator[tuple[Any, Any]]:
    """Two running servers of one model."""
    with type(stand_in)(folders["plain"]) as second:
        second.thread.start()
        yield stand_in, second
        second.shutdown()


@pytest.fixture
def open_pair(ranker: Open, pair: tuple[Any, Any]) -> Open:
    """A function that opens the model of both servers."""
    return lambda **options: ranker(url=f"{pair[0].url},{pair[1].url}", **options)


def prompts(sent: list[tuple[str, dict[str, Any]]]) -> Counter[tuple[int, ...]]:
    """How often each prompt was sent; a request for log-probabilities holds several."""
    given = [payload["prompt"] for route, payload in sent if route == "completions"]
    return Counter(
        tuple(ids) for prompt in given for ids in (prompt if isinstance(prompt[0], list) else [prompt])
    )


def collect(model: Any) -> dict[int, Any]:
    found: dict[int, Any] = {}
    for answered in model.stream(Call(ability="generate"), [PAIRS]):
        for index, answer in zip(answered.indices, answered.answers, strict=True):
            assert index not in found
            found[index] = answer
    return found


def die(server: Any) -> None:
    """Close the port; its threads would go on to answer on connections that are open."""
    server.shutdown()
    server.server_close()
    server.faults += ["close"] * 1000


# Sharing ------------------------------------------------------------------------------------------------


def test_every_prompt_is_sent_once_and_both_servers_get_some(
    ranker: Open, open_pair: Open, pair: tuple[Any, Any]
) -> None:
    wanted = collect(ranker(concurrency=4))
    for server in pair:
        server.requests.clear()
    assert collect(open_pair(concurrency=4)) == wanted
    sent = [prompts(server.requests) for server in pair]
    assert set((sent[0] + sent[1]).values()) == {1}
    assert (sent[0] + sent[1]).total() == len(PAIRS)
    assert min(each.total() for each in sent) > 20


def test_the_limit_of_requests_is_that_of_each_server(open_pair: Open, pair: tuple[Any, Any]) -> None:
    for server in pair:
        server.pause = 0.05
    collect(open_pair(concurrency=3))
    assert all(1 <= server.most_at_once <= 3 for server in pair)
    assert sum(server.most_at_once for server in pair) > 3, "the limit is that of both together"


def test_a_slow_server_gets_fewer_requests(open_pair: Open, pair: tuple[Any, Any]) -> None:
    pair[1].pause = 0.2
    collect(open_pair(concurrency=2))
    assert prompts(pair[1].requests).total() * 3 < prompts(pair[0].requests).total()


def test_servers_on_ports_of_one_host_are_chat_endpoints(open_model: Open, pair: tuple[Any, Any]) -> None:
    model = open_model("openai", f"{pair[0].url}, {pair[1].url}", concurrency=2)
    assert len(model.generate(*zip(*PAIRS, strict=True))) == len(PAIRS)
    sent = [len(server.posted("chat/completions")) for server in pair]
    assert sum(sent) == len(PAIRS)
    assert min(sent) > 20


def test_the_identity_is_that_of_one_server(ranker: Open, open_pair: Open, pair: tuple[Any, Any]) -> None:
    assert open_pair().identity() == ranker().identity() == ranker(url=pair[1].url).identity()


# Differences --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("field", "value", "shown"),
    [
        ("models", ["other"], "model is 'tiny' and 'other'"),
        ("context", 32, "context_length is '64' and '32'"),
        ("version", "0.11.0", "vllm is '0.32.0' and '0.11.0'"),
        ("root", "org/other", "server.root is 'unknown' and 'org/other'"),
    ],
)
def test_servers_of_different_models_are_rejected(
    open_pair: Open, pair: tuple[Any, Any], field: str, value: Any, shown: str
) -> None:
    setattr(pair[1], field, value)
    with pytest.raises(UsageError) as caught:
        open_pair()
    assert shown in caught.value.message
    assert all(server.url in caught.value.message for server in pair)


def test_chat_endpoints_of_different_hosts_are_rejected(open_model: Open, pair: tuple[Any, Any]) -> None:
    with pytest.raises(UsageError, match=r"host is '127\.0\.0\.1' and 'localhost'"):
        open_model("openai", f"{pair[0].url},{pair[1].url.replace('127.0.0.1', 'localhost')}")


def test_an_address_in_the_list_that_is_none_is_named(ranker: Open, pair: tuple[Any, Any]) -> None:
    with pytest.raises(UsageError, match=r"The address 'b:8000' is not of the form"):
        ranker(url=f"{pair[0].url},b:8000")


# Death --------------------------------------------------------------------------------------------------


def test_what_a_dead_server_left_goes_to_the_other(
    ranker: Open, open_pair: Open, pair: tuple[Any, Any], capsys: pytest.CaptureFixture[str]
) -> None:
    wanted = collect(ranker(concurrency=4))
    for server in pair:
        server.requests.clear()
        server.served.clear()
        server.pause = 0.01
    model = open_pair(concurrency=4, retries=1)
    found: dict[int, Any] = {}
    for answered in model.stream(Call(ability="generate"), [PAIRS]):
        found.update(zip(answered.indices, answered.answers, strict=True))
        if len(found) == 30:
            die(pair[0])
    assert found == wanted
    answered_by = [prompts(server.served) for server in pair]
    assert set((answered_by[0] + answered_by[1]).values()) == {1}, "a prompt was answered twice"
    lost = set(prompts(pair[0].requests)) - set(answered_by[0])
    assert lost, "nothing was under way when the server died"
    assert lost <= set(answered_by[1])
    assert isinstance(model, HasNotices)
    [notice] = model.notices()
    assert pair[0].url in notice
    assert capsys.readouterr().err.count(notice) == 1
    assert pair[1].most_at_once <= 4
    pair[1].requests.clear()
    assert collect(model) == wanted, "the other server is enough from then on"
    assert prompts(pair[1].requests).total() == len(PAIRS)


def test_a_server_that_accepts_no_connections_is_dead_whatever_old_ones_answer(
    open_pair: Open, pair: tuple[Any, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its models are still listed on a connection of before."""
    model = open_pair(concurrency=2, retries=0)
    post = Client.post

    def unreachable(client: Client, *arguments: Any, **options: Any) -> Any:
        if str(client.address) == pair[0].url:
            raise Unreachable("nothing accepts connections there")
        return post(client, *arguments, **options)

    monkeypatch.setattr(Client, "post", unreachable)
    assert len(collect(model)) == len(PAIRS)
    assert len(model.notices()) == 1


def test_a_server_that_answers_nothing_loses_its_requests(
    open_pair: Open, pair: tuple[Any, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The port is open, so the connection is made, but neither requests nor the list of models get an answer."""
    monkeypatch.setattr("harness_vllm.session.SECONDS_TO_PROVE_LIFE", 0.2)
    model = open_pair(concurrency=2, retries=0, timeout=0.5)
    pair[0].hang_seconds = 3.0
    pair[0].faults += ["hang"] * 1000
    pair[0].shutdown()  # new connections wait in the queue of the kernel
    assert len(collect(model)) == len(PAIRS)
    assert len(model.notices()) == 1
    assert prompts(pair[1].served).total() == len(PAIRS)


def test_the_last_server_gives_the_error_of_one(open_pair: Open, pair: tuple[Any, Any]) -> None:
    model = open_pair(concurrency=2, retries=1)
    stream = model.stream(Call(ability="generate"), [PAIRS])
    next(stream)
    for server in pair:
        die(server)
    with pytest.raises(AdapterError, match=r"nothing accepts connections there|closed the connection"):
        list(stream)
    assert len(model.notices()) == 1


def test_a_request_that_fails_everywhere_drops_no_server(open_pair: Open, pair: tuple[Any, Any]) -> None:
    model = open_pair(concurrency=1, retries=2)
    for server in pair:
        server.faults += ["500"] * 3
    with pytest.raises(AdapterError, match=r"was asked 3 times: it answered 500"):
        model.generate(["a"], [OPTIONS])
    assert model.notices() == []
    assert sorted(prompts(server.requests).total() for server in pair) == [0, 3], (
        "it went from one to the other"
    )
    for server in pair:
        server.faults.clear()
    collect(model)
    assert min(prompts(server.served).total() for server in pair) > 20


# A run --------------------------------------------------------------------------------------------------


def test_a_run_is_resumed_with_other_addresses(
    stand_in: Any, folders: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What the first servers answered is not asked of the later ones."""
    monkeypatch.setattr("harness_vllm.client.FIRST_WAIT", 0.001)
    servers = [type(stand_in)(folders["plain"], context=4096) for _ in range(4)]
    for server in servers:
        server.thread.start()
    run = tmp_path / "run"
    command = ["eval", "--tasks", "xnli:en+sw", "--data", "sample", "--output", str(run)]
    command += [
        "--model",
        f"vllm:{servers[0].url},{servers[1].url}",
        "-o",
        "retries=0",
        "-o",
        "concurrency=1",
    ]
    for server in servers[:2]:
        server.faults += ["none"] * 16 + ["400"] * 1000
    assert run_command(command) == 1, "cells fail"
    before = sum((prompts(server.served) for server in servers[:2]), Counter())
    for server in servers[:2]:
        server.shutdown()
        server.server_close()
    assert (
        run_command(["eval", "--resume", str(run), "--model", f"vllm:{servers[2].url},{servers[3].url}"]) == 0
    )
    after = sum((prompts(server.served) for server in servers[2:]), Counter())
    assert before
    assert after
    # The checks of each server have prompts of their own length.
    assert [ids for ids in set(before) & set(after) if len(ids) not in (LONGEST, CHECKED - 1)] == []
    results = json.loads((run / "results.json").read_text())
    assert {cell["status"] for cell in results["cells"]} == {"ok"}
    for server in servers[2:]:
        server.shutdown()
        server.server_close()
