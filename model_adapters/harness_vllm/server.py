"""A vLLM server that the adapter starts on loopback, watches, restarts once, and ends with all its processes."""

from __future__ import annotations

import atexit
import http.client
import os
import re
import secrets
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from harness import AdapterError, UsageError
from harness.models import AdapterOptions
from harness.storage import add_secret, clean_text
from harness_vllm import launcher
from harness_vllm.client import Address
from harness_vllm.options import VllmOptions

MODULE = "vllm.entrypoints.openai.api_server"
SECONDS_BETWEEN_LINES = 10.0
SECONDS_BETWEEN_CHECKS = 0.1
SECONDS_TO_DIE = 2.0
RESTARTS = 1
LINE = 120
"""Characters of the server's last line that a progress line shows."""
TAIL_LINES = 12
TAIL_BYTES = 65_536
ERROR = re.compile(r"(?:^|\] +)(?:\w+\.)*\w+Error: \S")
"""How the last line of a traceback begins."""
LOOPBACK = "127.0.0.1"
CACHES_PREFIXES = "--enable-prefix-caching"
NO_PREFIXES = "--no-enable-prefix-caching"
SETTINGS = (
    *("dtype", "max_model_len", "tensor_parallel_size", "pipeline_parallel_size", "data_parallel_size"),
    *("gpu_memory_utilization", "max_num_seqs", "revision"),
)
"""Options that the command has under the same name."""
OURS = frozenset({"--model", "--served-model-name", "--host", "--port", "--api-key"})


def server_command(
    ref: str, name: str, port: int, options: VllmOptions, *, host: str = LOOPBACK
) -> list[str]:
    """Return the command that serves a model at `host` under `name`; raises `UsageError` for bad options."""
    python = options.python or sys.executable
    if shutil.which(python) is None:
        raise UsageError(f"The option python names {python!r}, which is no program that can be run.")
    command = [python, "-m", MODULE, "--model", ref, "--served-model-name", name]
    command += ["--host", host, "--port", str(port), "--runner", options.runner]
    # Without these a model folder's generation_config.json changes sampling, and the log grows by request.
    command += ["--generation-config", "vllm", "--disable-uvicorn-access-log"]
    for option in SETTINGS:
        value = getattr(options, option)
        command += [] if value is None else [f"--{option.replace('_', '-')}", str(value)]
    if options.pooling is not None and options.runner == "pooling":
        command += ["--pooler-config", f'{{"pooling_type": "{options.pooling.upper()}"}}']
    command += ["--enforce-eager"] if options.enforce_eager else []
    command += ["--trust-remote-code"] if options.trust_remote_code else []
    # Under prefix caching, log-probabilities of prompts may depend on the order of requests (vLLM issue 42019).
    command += [NO_PREFIXES] if options.runner == "generate" else []
    return command + _further(options.server_args)


def _further(text: str) -> list[str]:
    try:
        words = shlex.split(text)
    except ValueError as error:
        raise UsageError(
            f"The option server_args is {text!r}, which no shell could read: {error}."
        ) from error
    for word in words:
        if word.split("=")[0] in OURS:
            raise UsageError(f"The option server_args holds {word!r}, which the adapter sets itself.")
    return words


class OwnServer:
    """One server process group; `stop` ends it, and so does the end of this process.

    Args:
        ref: The model, for messages and for the command.
        name: What the server calls the model.
        options: The options of the adapter.
        host: The address of this machine at which it accepts connections.
        key: What those who send it requests must know; default: one of this server alone, so that other users of the
            machine cannot send it any.
    """

    def __init__(
        self, ref: str, name: str, options: VllmOptions, *, host: str = LOOPBACK, key: str | None = None
    ) -> None:
        self.key = key or secrets.token_urlsafe(24)
        add_secret(self.key)
        port = _free_port(host)
        self.address = Address(secure=False, host=host, port=port, base="/v1")
        self._ref = ref
        self._command = server_command(ref, name, port, options, host=host)
        self._patience = options.start_timeout
        self._owner = os.getpid()
        self._restarts = 0
        self._restarting = threading.Lock()
        self._stopped = threading.Event()
        self._process: subprocess.Popen[bytes] | None = None
        self._taking = threading.Lock()
        self._log = tempfile.TemporaryFile(buffering=0)  # noqa: SIM115, RUF100  # closed by stop()

    def start(self) -> None:
        """Start the server and wait until it is healthy; raises `AdapterError` with its last lines if it dies."""
        atexit.register(self.stop)
        try:
            self._launch()
        except BaseException:
            self.stop()
            raise

    def revive(self) -> bool:
        """Start the server again if it has died, once; return whether it was started.

        Raises `AdapterError` where it dies a second time.
        """
        with self._restarting:
            if self._stopped.is_set() or not self._died():
                return False
            tail = self.tail()
            if self._restarts >= RESTARTS:
                raise AdapterError(
                    f"The vLLM server for {self._ref!r} died twice; its last lines:\n{tail}",
                    hint="Repeat the command to continue: finished parts are kept. A smaller -o max_num_seqs or "
                    "-o concurrency needs less memory.",
                )
            self._restarts += 1
            _say(f"vLLM for {self._ref} died and is started again; its last lines:\n{tail}")
            self._end()
            self._launch()
            return True

    def stop(self) -> None:
        """End the server's whole process group; a second call does nothing."""
        if self._stopped.is_set() or os.getpid() != self._owner:
            return
        self._stopped.set()
        atexit.unregister(self.stop)
        self._end()
        self._log.close()

    def tail(self) -> str:
        """Return the last lines that the server wrote, after the first error before them, which is often the cause."""
        descriptor = self._log.fileno()
        size = os.fstat(descriptor).st_size
        # pread leaves the offset alone, which the server's own writes share.
        text = os.pread(descriptor, TAIL_BYTES, max(0, size - TAIL_BYTES)).decode("utf-8", "replace")
        lines = [line.rstrip() for line in clean_text(text).splitlines() if line.strip()]
        cause = next((line for line in lines[:-TAIL_LINES] if ERROR.search(line)), None)
        excerpt = [*([] if cause is None else [cause, "..."]), *lines[-TAIL_LINES:]]
        return "\n".join(f"  {line}" for line in excerpt) or "  (it wrote nothing)"

    # The process ----------------------------------------------------------------------------------------

    def _launch(self) -> None:
        self._log.seek(0)
        self._log.truncate()
        self._process = subprocess.Popen(
            [sys.executable, "-I", str(Path(launcher.__file__)), str(os.getpid()), *self._command],
            stdin=subprocess.DEVNULL,
            stdout=self._log,
            stderr=subprocess.STDOUT,
            env=_environment(self.key),
            start_new_session=True,
        )
        if self._stopped.is_set():  # while a worker was starting it again
            self._end()
        self._wait_until_healthy()

    def _wait_until_healthy(self) -> None:
        started = reported = time.monotonic()
        _say(f"vLLM is loading {self._ref} ...")
        while not self._healthy():
            now = time.monotonic()
            if not self._alive():
                raise self._dead()
            if now - started > self._patience:
                raise AdapterError(
                    f"The vLLM server for {self._ref!r} was not ready after {self._patience:g} s; its last "
                    f"lines:\n{self.tail()}",
                    hint="Give it more time with -o start_timeout=SECONDS.",
                )
            if now - reported >= SECONDS_BETWEEN_LINES:
                reported = now
                last = self.tail().splitlines()[-1].strip()
                _say(f"vLLM is loading {self._ref} ({now - started:.0f} s): {last[:LINE]}")
            self._stopped.wait(SECONDS_BETWEEN_CHECKS)
        _say(f"vLLM is ready after {time.monotonic() - started:.0f} s.")

    def _dead(self) -> AdapterError:
        if self._stopped.is_set():
            return AdapterError(f"The vLLM server for {self._ref!r} was ended while it was loading.")
        tail = self.tail()
        if "No module named 'vllm'" in tail:
            return AdapterError(
                f"The Python interpreter {self._command[0]!r} has no vllm.",
                hint="Install vllm into an environment of its own and name it: -o python=PATH/bin/python",
            )
        return AdapterError(
            f"The vLLM server for {self._ref!r} ended before it was ready; its last lines:\n{tail}",
            hint=f"To see all of it, run: {shlex.join(self._command)}",
        )

    def _healthy(self) -> bool:
        connection = http.client.HTTPConnection(self.address.host, self.address.port, timeout=5)
        try:
            connection.request("GET", "/health")
            return connection.getresponse().status == 200
        except (OSError, http.client.HTTPException):
            return False
        finally:
            connection.close()

    def _died(self) -> bool:
        """Return whether the server has ended; one that no longer answers gets a moment to end."""
        deadline = time.monotonic() + SECONDS_TO_DIE
        while self._alive() and not self._healthy() and time.monotonic() < deadline:
            self._stopped.wait(SECONDS_BETWEEN_CHECKS)
        return not self._alive()

    def _alive(self) -> bool:
        process = self._process
        return process is not None and _runs(process.pid)

    def _end(self) -> None:
        """SIGTERM, then SIGKILL for whatever is left of the group."""
        with self._taking:
            process, self._process = self._process, None
        if process is None:
            return
        try:
            os.kill(process.pid, signal.SIGTERM)
            deadline = time.monotonic() + launcher.GRACE + 5
            while time.monotonic() < deadline and _runs(process.pid):
                time.sleep(0.05)
        finally:
            try:
                os.killpg(process.pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
            process.wait()


def own_server(ref: str, options: VllmOptions, *, host: str = LOOPBACK, key: str | None = None) -> OwnServer:
    """Return a server for a model folder or hub id, not started yet; raises `UsageError` for bad options."""
    folder = Path(ref).expanduser()
    local = folder.is_dir()
    name = folder.resolve().name if local else ref
    return OwnServer(str(folder) if local else ref, name, options, host=host, key=key)


def _runs(pid: int) -> bool:
    """Return whether a child runs; it is not reaped, so that its number keeps belonging to its group."""
    try:
        return os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT | os.WNOHANG) is None
    except ChildProcessError:
        return False


def _environment(key: str) -> Mapping[str, str]:
    quiet = {"VLLM_NO_USAGE_STATS": "1", "DO_NOT_TRACK": "1"}
    return {**quiet, **os.environ, "VLLM_API_KEY": key, "PYTHONUNBUFFERED": "1"}


def _free_port(host: str) -> int:
    with socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET) as probe:
        probe.bind((host, 0))
        return int(probe.getsockname()[1])


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)  # noqa: T201  # the line is what this is for


SECONDS_BETWEEN_REVIVALS = 2.0


@contextmanager
def serve(ref: str, options: AdapterOptions, host: str, key: str) -> Iterator[str]:
    """Start a server at an address of this machine, and yield its URL; it is started again once if it dies.

    Args:
        ref: A model folder or hub id.
        options: Those of the adapter.
        host: The address.
        key: What its clients must send.

    Raises:
        AdapterError: Where the server does not start.
        UsageError: For options that a server cannot have.
    """
    assert isinstance(options, VllmOptions)
    server = own_server(ref, options, host=host, key=key)
    server.start()
    ending = threading.Event()
    thread = threading.Thread(target=_revive, args=(server, ending), name="harness-revive", daemon=True)
    thread.start()
    try:
        yield server.address.url("/v1")
    finally:
        ending.set()
        server.stop()
        thread.join()


def _revive(server: OwnServer, ending: threading.Event) -> None:
    while not ending.wait(SECONDS_BETWEEN_REVIVALS):
        try:
            server.revive()
        except AdapterError:
            return  # it died twice; its clients drop it
