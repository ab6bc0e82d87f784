"""Connects to Ray, and checks what a cluster has before any job starts."""

from __future__ import annotations

import logging
import os
import secrets
import socket
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import ray
from ray.exceptions import GetTimeoutError, RayError
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

from harness import HarnessError, UsageError
from harness.registry import FleetJob
from harness_ray.options import RayOptions

GIB = 2**30
OBJECT_STORE = 100 * 2**20
"""Bytes of a new Ray's object store: jobs pass files, not objects."""
PATIENCE = 5.0
"""Seconds in which a cluster must accept a connection; Ray itself waits for minutes."""
FOLDER_PATIENCE = 60.0
QUIET = {"RAY_USAGE_STATS_ENABLED": "0", "RAY_SCHEDULER_EVENTS": "0"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """A living machine of the cluster, and what it has in all."""

    id: str
    name: str
    cpus: float
    gpus: float
    memory: float
    """Bytes."""

    def __str__(self) -> str:
        """Return its name in messages."""
        return f"{self.name} ({self.cpus:g} CPUs, {self.gpus:g} GPUs, {self.memory / GIB:.0f} GiB)"


@contextmanager
def connected(options: RayOptions) -> Iterator[None]:
    """Connect to a cluster, or start Ray on this machine and end it; what is connected already stays so.

    Raises:
        HarnessError: Where no cluster accepts connections at the address.
    """
    if ray.is_initialized():
        yield
        return
    for name, value in QUIET.items():
        os.environ.setdefault(name, value)
    _connect(options)
    try:
        yield
    finally:
        ray.shutdown()


def _connect(options: RayOptions) -> None:
    address = options.address or os.environ.get("RAY_ADDRESS") or None
    quiet: dict[str, Any] = {"logging_level": logging.ERROR, "log_to_driver": False}
    if address not in {None, "auto", "local"}:
        _check_address(str(address))
    try:
        if address != "local":
            try:
                ray.init(address=address or "auto", **quiet)
            except ConnectionError:
                if address is not None:
                    raise
            else:
                return
        settings: dict[str, Any] = {
            "object_store_memory": OBJECT_STORE,
            "include_dashboard": False,
            "num_cpus": options.cpus,
        }
        ray.init(address="local", **settings, **quiet)
    except (ConnectionError, RuntimeError, ValueError, RayError) as error:
        reason = str(error).strip().splitlines()[0].rstrip(".")
        raise HarnessError(f"Ray cannot be reached at {address or 'this machine'}: {reason}.") from error


def _check_address(address: str) -> None:
    """Raise where nothing accepts connections: Ray would wait for minutes, and print a line every few seconds."""
    hint = "Give HOST:PORT of the head node with --backend-option address=..., or unset RAY_ADDRESS."
    host, _, port = address.rpartition(":")
    if "://" in address or not host or not port.isdecimal():
        raise UsageError(f"The address of Ray {address!r} is not of the form HOST:PORT.", hint=hint)
    try:
        socket.create_connection((host.strip("[]"), int(port)), timeout=PATIENCE).close()
    except (OSError, OverflowError) as error:
        raise HarnessError(f"No Ray cluster accepts connections at {address}: {error}.", hint=hint) from error


def nodes() -> list[Node]:
    """Return the living nodes that can run jobs."""
    usable = []
    living: list[dict[str, Any]] = ray.nodes()  # type: ignore[no-untyped-call]
    for node in living:
        has = node["Resources"]
        if node["Alive"] and has.get("CPU", 0) > 0:
            name = f"{node['NodeManagerHostname']} at {node['NodeManagerAddress']}"
            sizes = {"cpus": has["CPU"], "gpus": has.get("GPU", 0.0), "memory": has.get("memory", 0.0)}
            usable.append(Node(id=node["NodeID"], name=name, **sizes))
    return usable


def start_actor(
    kind: type, *arguments: Any, cpus: float, gpus: float, memory_gib: float | None, **keywords: Any
) -> Any:
    """Return an actor that starts where there is room for it, and whose methods two callers can use at once."""
    memory = None if memory_gib is None else int(memory_gib * GIB)
    options: dict[str, Any] = {"max_concurrency": 2, "num_cpus": cpus, "num_gpus": gpus, "memory": memory}
    return ray.remote(kind).options(**options).remote(*arguments, **keywords)


def check_room(jobs: Sequence[FleetJob], cluster: Sequence[Node]) -> None:
    """Raise `UsageError` for a job that no node has room for, even when nothing else runs."""
    for job in jobs:
        memory = (job.memory_gib or 0.0) * GIB
        if any(
            node.gpus >= job.gpus and node.cpus >= job.processes and node.memory >= memory for node in cluster
        ):
            continue
        needs = [f"{job.processes} CPUs" if job.processes > 1 else "1 CPU"]
        needs += [f"{job.gpus:g} GPUs"] if job.gpus else []
        needs += [f"{job.memory_gib:g} GiB of memory"] if job.memory_gib else []
        raise UsageError(
            f"The job {job.name!r} asks for {', '.join(needs)}; no node of the Ray cluster has that: "
            f"{', '.join(map(str, cluster)) or 'it has no node with CPUs'}.",
            hint="Give less with --gpus, --memory or --num-processes, or join a larger node to the cluster.",
        )


def check_folder(folder: Path, cluster: Sequence[Node]) -> None:
    """Raise `HarnessError` where a node does not see what is written into a folder here.

    A node that died meanwhile gets no job.
    """
    word = secrets.token_hex(8)
    marker = folder / f".seen-{word}"
    marker.write_text(word, encoding="ascii")
    reading = ray.remote(_read)
    try:
        answers = [
            reading.options(
                num_cpus=0, scheduling_strategy=NodeAffinitySchedulingStrategy(node.id, soft=False)
            ).remote(marker)
            for node in cluster
        ]
        for node, answer in zip(cluster, answers, strict=True):
            try:
                text = ray.get(answer, timeout=FOLDER_PATIENCE)
            except GetTimeoutError:
                text = f"it gave no answer within {FOLDER_PATIENCE:g} s"
            except RayError as error:
                text = str(error).strip().splitlines()[-1]
            if text != word and node.id in {living.id for living in nodes()}:
                raise HarnessError(
                    f"The node {node.name} of the Ray cluster does not see {str(folder)!r}: {text}.",
                    hint="Give a folder that all nodes share with --output.",
                )
    finally:
        marker.unlink(missing_ok=True)


def _read(marker: Path) -> str:
    try:
        return marker.read_text(encoding="ascii")
    except OSError as error:
        return str(error.strerror)
