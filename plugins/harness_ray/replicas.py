"""Servers that the jobs of a model share: each is an actor with the GPUs that its jobs would take."""

from __future__ import annotations

import importlib
import secrets
import threading
from collections.abc import Callable, Collection, Sequence
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import ray
from ray.exceptions import RayError, RayTaskError

from harness import AdapterError, UsageError, open_session
from harness.models import AdapterOptions, ModelReference, parse_options
from harness.registry import FleetJob
from harness.storage import add_secret
from harness_ray.cluster import GIB, Node, start_actor

PATIENCE = 30.0
"""Seconds that servers get to end by themselves."""
Serve = Callable[[str, AdapterOptions, str, str], AbstractContextManager[str]]


class ReplicaActor:
    """Holds one server; two calls must be able to run at once."""

    def __init__(self, target: str, ref: str, options: AdapterOptions, key: str) -> None:
        module, _, name = target.partition(":")
        self._serve: Serve = getattr(importlib.import_module(module), name)
        util: Any = ray.util
        self._given = (ref, options, str(util.get_node_ip_address()), key)
        self._stack = ExitStack()
        self._ending = threading.Event()

    def start(self) -> str:
        """Start the server and return where it is; raises what the adapter raises."""
        return self._stack.enter_context(self._serve(*self._given))

    def live(self) -> None:
        """Return once the server is to end: until then, that this call fails shows that its node is gone."""
        self._ending.wait()

    def end(self) -> None:
        """End the server."""
        self._ending.set()
        self._stack.close()


@dataclass(slots=True)
class _Replica:
    actor: Any
    start: Any
    live: Any
    address: str | None = None


@dataclass(slots=True)
class _Served:
    """A model that servers serve, and the servers that live; none before `begin`."""

    scheme: str
    ref: str
    target: str
    options: AdapterOptions
    gpus: float
    memory_gib: float | None
    has_begun: bool = False
    replicas: list[_Replica] = field(default_factory=list)
    fault: str = ""
    """Why a server did not start, or is gone."""

    def begin(self, count: int, key: str) -> None:
        """Let so many servers start, each as soon as there is room for it."""
        self.has_begun = True
        for _ in range(count):
            actor = start_actor(
                ReplicaActor,
                *(self.target, self.ref, self.options, key),
                cpus=0,
                gpus=self.gpus,
                memory_gib=self.memory_gib,
            )
            self.replicas.append(_Replica(actor, actor.start.remote(), actor.live.remote()))

    def look(self) -> None:
        """Note which servers have started, and drop those that failed or are gone."""
        for replica in list(self.replicas):
            if replica.address is None and ray.wait([replica.start], timeout=0)[0]:
                try:
                    replica.address = ray.get(replica.start)
                except RayTaskError as error:
                    self._drop(replica, str(error.cause))
                except RayError as error:
                    self._drop(replica, str(error).strip().splitlines()[-1])
            elif replica.address is not None and ray.wait([replica.live], timeout=0)[0]:
                self._drop(replica, "the process or the node of a server died")

    def is_starting(self) -> bool:
        return any(replica.address is None for replica in self.replicas)

    def model(self) -> str:
        """Return the ``--model`` value of the servers."""
        return f"{self.scheme}:{','.join(str(replica.address) for replica in self.replicas)}"

    def end(self) -> None:
        ends = [replica.actor.end.remote() for replica in self.replicas if replica.address is not None]
        if ends:
            ray.wait(ends, num_returns=len(ends), timeout=PATIENCE)
        for replica in list(self.replicas):
            self._drop(replica, "")
        self.has_begun = False

    def _drop(self, replica: _Replica, fault: str) -> None:
        self.fault = fault
        self.replicas.remove(replica)
        ray.kill(replica.actor)


class Servers:
    """The servers of a fleet: those of a model live while a job of it waits or runs.

    Args:
        jobs: All jobs; a model at a URL has its own servers already.
        count: Servers for each model; 0 for none.

    Raises:
        UsageError: For options that an adapter does not have.
    """

    def __init__(self, jobs: Sequence[FleetJob], count: int) -> None:
        self._count = count
        self._key = secrets.token_urlsafe(24)
        add_secret(self._key)
        self._models = _served_models(jobs) if count else {}

    def check_room(self, nodes: Sequence[Node]) -> None:
        """Raise `UsageError` for a model with more servers than the cluster has room for."""
        for model, served in self._models.items():
            room = _room(served, nodes, self._count)
            if room < self._count:
                raise UsageError(
                    f"The model {model!r} asks for {self._count} replicas; the Ray cluster has room for {room}: "
                    f"{', '.join(map(str, nodes))}.",
                    hint="Give fewer with --backend-option replicas=N, or less with --gpus or --memory.",
                )

    def without(self, job: FleetJob) -> FleetJob:
        """Return a job without the GPUs and the memory that the servers of its model have in its place."""
        return replace(job, gpus=0.0, memory_gib=None) if job.model in self._models else job

    def place(self, job: FleetJob) -> tuple[FleetJob, dict[str, str]] | None:
        """Return a job as it is started and its variables, or None while its servers start.

        One model's servers start at a time: those of two models could wait for each other's GPUs.

        Raises:
            AdapterError: Where none of its servers started, or none is left.
        """
        served = self._models.get(job.model)
        if served is None:
            return job, {}
        served.look()
        if not served.has_begun and not self.is_starting():
            served.begin(self._count, self._key)
        if not served.has_begun or served.is_starting():
            return None
        if not served.replicas:
            raise AdapterError(f"No server for {job.model!r} is left: {served.fault}")
        name = getattr(served.options, "key_env")  # noqa: B009  # every adapter that serves has it
        return replace(self.without(job), command=(*job.command, "--model", served.model())), {
            name: self._key
        }

    def is_starting(self) -> bool:
        """Return whether jobs may be waiting for servers that start."""
        return any(served.is_starting() for served in self._models.values())

    def end(self, needed: Collection[str] = ()) -> None:
        """End the servers of all models but those that jobs still need."""
        for model, served in self._models.items():
            if served.has_begun and model not in needed:
                served.end()


def _room(served: _Served, nodes: Sequence[Node], most: int) -> int:
    memory = (served.memory_gib or 0.0) * GIB
    room = 0
    for node in nodes:
        by_gpus = int(node.gpus / served.gpus) if served.gpus else most
        room += min(by_gpus, int(node.memory / memory) if memory else most)
    return room


def _served_models(jobs: Sequence[FleetJob]) -> dict[str, _Served]:
    adapters = open_session().registry.adapters
    models: dict[str, _Served] = {}
    for job in jobs:
        model = ModelReference.parse(job.model)
        entry = adapters.get(model.scheme)
        if entry.serve is None or "://" in model.ref or job.model in models:
            continue
        folder = Path(model.ref).expanduser()
        models[job.model] = _Served(
            scheme=model.scheme,
            ref=str(folder.absolute()) if folder.is_dir() else model.ref,
            target=entry.serve,
            options=parse_options(entry, job.options),
            gpus=job.gpus,
            memory_gib=job.memory_gib,
        )
    return models
