"""Servers that the adapter starts: they serve, die, are started again, and are always ended."""

from __future__ import annotations

import itertools
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from harness.errors import AdapterError, UsageError
from harness.models.requests import Call, GenerateOptions
from harness_vllm.options import VllmOptions
from harness_vllm.server import server_command

pytestmark = pytest.mark.thorough

Open = Callable[..., Any]
OPTIONS = GenerateOptions(max_tokens=8)
OWNER = """
import signal, sys, time
# Where the tests run in the background of a shell, its children ignore Ctrl-C.
signal.signal(signal.SIGINT, signal.default_int_handler)
from harness.models.options import parse_options
from harness_vllm import harness_register_adapters
[entry] = [entry for entry in harness_register_adapters() if entry.name == "vllm"]
options = parse_options(entry, {"python": sys.argv[1]})
model = entry.open(entry.describe_model(sys.argv[2], options), options)
print("ready", flush=True)
{then}
"""


@pytest.fixture
def own(open_model: Open, interpreter: Path, folders: dict[str, Path]) -> Callable[..., Any]:
    return lambda **options: open_model("vllm", str(folders["plain"]), python=interpreter, **options)


def wait_until(condition: Callable[[], bool], seconds: float = 60) -> bool:
    deadline = time.monotonic() + seconds
    while not condition() and time.monotonic() < deadline:
        time.sleep(0.02)
    return condition()


def test_it_serves_and_ends_with_its_children(
    own: Open, pids: Any, runs: Any, capfd: pytest.CaptureFixture[str]
) -> None:
    model = own()
    assert all(map(runs, pids()))
    assert len(model.generate(["a", "b"], [OPTIONS] * 2)) == 2
    assert model.identity()["model"] == "plain"
    assert len(model.identity()["files"]) == 64
    model.close()
    model.close()
    assert wait_until(lambda: not any(map(runs, pids())))
    said = capfd.readouterr().err
    assert "vLLM is loading" in said
    assert "vLLM is ready after" in said


def test_it_wants_the_adapters_own_key(own: Open) -> None:
    model = own()
    del model._session.client.clients[0]._http.headers["Authorization"]
    with pytest.raises(AdapterError, match="401"):
        model.generate(["a"], [OPTIONS])


def test_a_server_that_dies_at_once_shows_its_last_lines(
    own: Open, pids: Any, runs: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("STAND_IN", "dies")
    with pytest.raises(
        AdapterError, match=r"ended before it was ready; its last lines:\n.*\n  CUDA out of memory"
    ):
        own()
    assert wait_until(lambda: not any(map(runs, pids())))


def test_a_server_that_takes_too_long_is_ended(
    own: Open, pids: Any, runs: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("STAND_IN", "hangs")
    with pytest.raises(AdapterError, match=r"was not ready after 1 s.*\n.*loading weights"):
        own(start_timeout=1)
    assert wait_until(lambda: not any(map(runs, pids())))


def test_a_server_that_ignores_sigterm_is_killed(
    own: Open, pids: Any, runs: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("STAND_IN", "stubborn")
    monkeypatch.setattr("harness_vllm.launcher.GRACE", -4.5)  # the launcher's own process keeps its patience
    model = own()
    model.close()
    assert wait_until(lambda: not any(map(runs, pids())))


def test_an_interpreter_without_vllm_says_so(open_model: Open, folders: dict[str, Path]) -> None:
    with pytest.raises(AdapterError, match=r"has no vllm\. .*-o python=PATH"):
        open_model("vllm", str(folders["plain"]), python=sys.executable)


@pytest.fixture
def kill(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """A function that makes the running stand-in die."""
    death = tmp_path / "death"
    monkeypatch.setenv("STAND_IN", "mortal")
    monkeypatch.setenv("STAND_IN_DEATH", str(death))

    def kill_() -> None:
        death.touch()
        assert wait_until(lambda: not death.exists())

    return kill_


def test_a_server_that_dies_is_started_again_once(
    kill: Callable[[], None], own: Open, pids: Any, runs: Any, capfd: pytest.CaptureFixture[str]
) -> None:
    model = own(concurrency=4)
    prompts = [f"{number}" for number in range(12)]
    before = model.generate(prompts, [OPTIONS] * 12)
    kill()
    assert model.generate(prompts, [OPTIONS] * 12) == before
    assert len(pids()) == 4
    assert "died and is started again; its last lines:\n  loading weights\n  engine core died: planted" in (
        capfd.readouterr().err
    )
    kill()
    with pytest.raises(AdapterError, match=r"died twice; its last lines:\n.*\n.*planted") as caught:
        model.generate(prompts, [OPTIONS] * 12)
    assert "-o max_num_seqs" in (caught.value.hint or "")
    model.close()
    assert wait_until(lambda: not any(map(runs, pids())))


def test_a_server_whose_group_is_killed_in_a_stream_loses_no_answer(
    own: Open, pids: Any, runs: Any, capfd: pytest.CaptureFixture[str]
) -> None:
    model = own(concurrency=4)
    pairs = [(f"{number}", OPTIONS) for number in range(60)]
    wanted = model.generate([prompt for prompt, _ in pairs], [OPTIONS] * 60)
    first = pids()
    found: dict[int, Any] = {}
    for answered in model.stream(Call(ability="generate"), [pairs]):
        [index], [answer] = answered.indices, answered.answers
        assert index not in found
        found[index] = answer
        if len(found) == 5:
            os.killpg(model._session._server._process.pid, signal.SIGKILL)
    assert [found[index] for index in range(60)] == wanted
    assert not any(map(runs, first))
    assert "died and is started again" in capfd.readouterr().err


def test_a_closed_stream_leaves_the_server_running(own: Open, pids: Any, runs: Any) -> None:
    model = own(concurrency=2)
    stream = model.stream(Call(ability="generate"), [[(f"{number}", OPTIONS) for number in range(60)]])
    next(stream)
    stream.close()
    assert all(map(runs, pids()))
    assert len(model.generate(["a"], [OPTIONS])) == 1


def test_several_processes_start_no_servers(
    open_model: Open, own: Open, stand_in: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WORLD_SIZE", "2")
    with pytest.raises(UsageError, match="2 processes") as caught:
        own()
    assert "-o tensor_parallel_size=N" in (caught.value.hint or "")
    assert "vllm:http://" in (caught.value.hint or "")
    assert not (tmp_path / "pids").exists()
    assert len(open_model("vllm", stand_in.url).generate(["a"], [OPTIONS])) == 1, "a running server is shared"
    monkeypatch.setenv("WORLD_SIZE", "1")
    assert len(own().generate(["a"], [OPTIONS])) == 1


@pytest.mark.parametrize(
    "number", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT], ids=lambda number: number.name
)
def test_no_server_outlives_the_harness(
    interpreter: Path, folders: dict[str, Path], pids: Any, runs: Any, number: signal.Signals
) -> None:
    script = OWNER.replace("{then}", "time.sleep(600)")
    command = [sys.executable, "-c", script, str(interpreter), str(folders["plain"])]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as owner:
        assert owner.stdout is not None
        assert owner.stdout.readline() == b"ready\n"
        assert all(map(runs, pids()))
        owner.send_signal(number)
        try:
            owner.wait(30)
        finally:
            owner.kill()
    assert wait_until(lambda: not any(map(runs, pids())))


def test_no_server_outlives_an_exception(
    interpreter: Path, folders: dict[str, Path], pids: Any, runs: Any
) -> None:
    script = OWNER.replace("{then}", "raise SystemError('planted')")
    command = [sys.executable, "-c", script, str(interpreter), str(folders["plain"])]
    answer = subprocess.run(command, capture_output=True, text=True, check=False)
    assert answer.returncode == 1
    assert "planted" in answer.stderr
    assert wait_until(lambda: not any(map(runs, pids())))


def test_ctrl_c_while_it_loads_ends_it(
    own: Open, tmp_path: Path, pids: Any, runs: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("STAND_IN", "hangs")
    before = signal.signal(signal.SIGINT, signal.default_int_handler)

    def interrupt() -> None:
        wait_until(lambda: (tmp_path / "pids").exists() and (tmp_path / "pids").read_text() != "")
        os.kill(os.getpid(), signal.SIGINT)

    thread = threading.Thread(target=interrupt)
    thread.start()
    try:
        with pytest.raises(KeyboardInterrupt):
            own()
    finally:
        thread.join()
        signal.signal(signal.SIGINT, before)
    assert wait_until(lambda: not any(map(runs, pids())))


# The command ------------------------------------------------------------------------------------------


def test_options_become_arguments() -> None:
    options = VllmOptions(
        python=sys.executable,
        dtype="bfloat16",
        max_model_len=512,
        tensor_parallel_size=2,
        pipeline_parallel_size=3,
        gpu_memory_utilization=0.8,
        max_num_seqs=32,
        enforce_eager=True,
        revision="main",
        trust_remote_code=True,
        server_args="--swap-space 0 --chat-template 'a b.jinja'",
    )
    command = server_command("org/name", "org/name", 8123, options)
    assert command[:3] == [sys.executable, "-m", "vllm.entrypoints.openai.api_server"]
    pairs = dict(itertools.pairwise(command))
    wanted = {
        "--model": "org/name",
        "--host": "127.0.0.1",
        "--port": "8123",
        "--runner": "generate",
        "--dtype": "bfloat16",
        "--max-model-len": "512",
        "--tensor-parallel-size": "2",
        "--pipeline-parallel-size": "3",
        "--gpu-memory-utilization": "0.8",
        "--max-num-seqs": "32",
        "--revision": "main",
        "--chat-template": "a b.jinja",
    }
    assert {name: pairs[name] for name in wanted} == wanted
    assert {"--enforce-eager", "--trust-remote-code"} <= set(command)


def test_prompts_are_not_cached_unless_asked() -> None:
    """What vLLM issue 42019 needs."""
    options = VllmOptions(server_args="--enable-prefix-caching")
    command = server_command("m", "m", 1, options)
    assert command.index("--no-enable-prefix-caching") < command.index("--enable-prefix-caching")
    assert "--no-enable-prefix-caching" not in server_command("m", "m", 1, VllmOptions(runner="pooling"))


def test_code_of_a_repository_is_not_trusted_unless_asked() -> None:
    command = server_command("m", "m", 1, VllmOptions())
    assert "--trust-remote-code" not in command
    assert command[command.index("--generation-config") + 1] == "vllm"


def test_pooling_is_passed_to_the_server() -> None:
    command = server_command("m", "m", 1, VllmOptions(runner="pooling", pooling="mean"))
    assert command[command.index("--pooler-config") + 1] == '{"pooling_type": "MEAN"}'


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"server_args": "--port 1"}, "holds '--port', which the adapter sets itself"),
        ({"server_args": "--api-key=1"}, "holds '--api-key=1', which"),
        ({"server_args": "'"}, "which no shell could read"),
        ({"python": "no-such-python"}, "names 'no-such-python', which is no program"),
    ],
)
def test_bad_options_are_rejected(options: dict[str, str], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        server_command("m", "m", 1, VllmOptions(**options))  # type: ignore[arg-type]
