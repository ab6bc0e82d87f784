"""The folder of a fleet, and the records of its ``fleet.json``: models, jobs with their resources, and the backend."""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from harness import DataError, UsageError
from harness.planning import RunConfig
from harness.registry import FleetJob
from harness.storage import FileLock, cache_folder, write_atomically
from harness_fleet.job import CONFIG, JOB, now

Name = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9.-]{0,99}$")]
"""A name that is a safe file name."""
LONGEST = 40
"""Characters of a model's name in the names of its jobs."""
FILE, LOCK = "fleet.json", "fleet.lock"
OWN = frozenset({"output", "num_processes", "allow_code"})
"""Settings that a job's command gives."""
TRUST = "trust_remote_code"
"""An option of adapters that it gives, too."""


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)


class FleetModel(_Part):
    """A model, and what its plan has."""

    name: Name
    model: str
    """As ``--model`` names it."""
    cells: int
    fits: int
    """Models to fine-tune."""
    skipped: int
    """Cells that were asked for and cannot be run."""
    shards: int
    """Jobs that its cells are divided into."""


class PlannedJob(_Part):
    """A job of a fleet; it comes after those that it needs."""

    name: Name
    model: Name
    """The ``name`` of its model."""
    cells: int
    """0 for a job that trains a model for others."""
    after: tuple[Name, ...] = ()
    """Jobs that must be done first."""

    @property
    def fits_only(self) -> bool:
        """Whether it trains a model for other jobs."""
        return not self.cells


class Resources(_Part):
    """Resources of every job of a fleet."""

    gpus: float = Field(default=0.0, ge=0)
    processes: int = 1
    memory_gib: float | None = None
    minutes: int | None = None


class FleetFile(_Part):
    """``fleet.json``; secrets are redacted in it."""

    schema_: Literal[1] = Field(default=1, alias="schema")
    created: str
    harness: str | None
    """The version that planned it."""
    command: tuple[str, ...]
    backend: str
    backend_options: dict[str, str]
    resources: Resources
    models: tuple[FleetModel, ...]
    jobs: tuple[PlannedJob, ...]


def safe_name(number: int, text: str) -> str:
    """Return a name for a file from a number and a name from outside: ``003-e5-small``."""
    plain = re.sub(r"[^A-Za-z0-9]+", "-", text.rstrip("/").rsplit("/", 1)[-1]).strip("-").lower()
    return f"{number:03d}-{plain[:LONGEST].strip('-') or 'model'}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Consent:
    """Permission to run the programs of others, which a file may not give."""

    allow_code: bool = False
    trust_remote_code: str | None = None

    def options(self) -> dict[str, str]:
        """Return its additions to the options of a model."""
        return {} if self.trust_remote_code is None else {"trust_remote_code": self.trust_remote_code}

    def arguments(self) -> tuple[str, ...]:
        """Return the arguments of a job's command."""
        trust = () if self.trust_remote_code is None else ("--trust-remote-code", self.trust_remote_code)
        return (*(("--allow-code",) if self.allow_code else ()), *trust)


class Fleet:
    """The fleet in a folder; raises `UsageError` where there is none, and `DataError` for a damaged one."""

    def __init__(self, path: Path) -> None:
        self.path = path.absolute()
        file = self.path / FILE
        try:
            self.file = FleetFile.model_validate_json(file.read_bytes())
        except OSError as error:
            raise UsageError(
                f"The folder {str(path)!r} holds no fleet: it has no {FILE}.",
                hint="Give a folder that 'harness submit --output DIR' wrote.",
            ) from error
        except ValidationError as error:
            first = error.errors(include_url=False)[0]
            field = ".".join(map(str, first["loc"]))
            raise DataError(f"{file} is damaged at {field!r}: {first['msg']}.") from error

    @classmethod
    def create(cls, path: Path, file: FleetFile, configs: Sequence[RunConfig]) -> Self:
        """Write the folder of a new fleet and return it.

        Args:
            path: A new or an empty folder.
            file: What it is to do.
            configs: Of every job, in their order.

        Raises:
            UsageError: For a folder that holds anything or cannot be written.
        """
        check_new(path)
        path = path.absolute()
        shared = {"cwd": str(Path.cwd()), "cache": str(cache_folder().absolute())}
        try:
            for job, config in zip(file.jobs, configs, strict=True):
                folder = path / "jobs" / job.name
                folder.mkdir(parents=True)
                content = {
                    "schema": 1,
                    "run": str(path / "runs" / job.name),
                    "fits_only": job.fits_only,
                    "processes": file.resources.processes,
                    **shared,
                }
                write_atomically(folder / JOB, _json(content))
                write_atomically(folder / CONFIG, _json(_changed(config)))
            write_atomically(path / FILE, _json(file.model_dump(mode="json", by_alias=True)))
        except OSError as error:
            raise UsageError(f"The folder {str(path)!r} cannot be written: {error.strerror}.") from error
        return cls(path)

    def change(self, **values: Any) -> None:
        """Write other values into ``fleet.json``."""
        self.file = self.file.model_copy(update=values)
        write_atomically(self.path / FILE, _json(self.file.model_dump(mode="json", by_alias=True)))

    def jobs(self, consent: Consent | None = None, names: Sequence[str] | None = None) -> list[FleetJob]:
        """Return the jobs as backends take them: all, or those with these names."""
        models = {model.name: model.model for model in self.file.models}
        resources, further = self.file.resources, () if consent is None else consent.arguments()
        program, chosen = (sys.executable, "-m", "harness_fleet.job"), None if names is None else set(names)
        return [
            FleetJob(
                name=job.name,
                command=(*program, str(self.folder(job.name)), *further),
                folder=self.folder(job.name),
                model=models[job.model],
                options={**self._options(job.name), **({} if consent is None else consent.options())},
                after=job.after,
                gpus=resources.gpus,
                processes=resources.processes,
                memory_gib=resources.memory_gib,
                minutes=resources.minutes,
            )
            for job in self.file.jobs
            if chosen is None or job.name in chosen
        ]

    def _options(self, job: str) -> dict[str, str]:
        """Return the options of a job's model."""
        config = json.loads((self.folder(job) / CONFIG).read_text(encoding="utf-8"))
        return {name: str(value) for name, value in config.get("options", {}).items()}

    def folder(self, job: str) -> Path:
        """Return the folder of a job."""
        return self.path / "jobs" / job

    def run(self, job: str) -> Path:
        """Return the run folder of a job."""
        return self.path / "runs" / job

    def jobs_of(self, model: FleetModel) -> list[PlannedJob]:
        """Return the jobs that evaluate a model, without those that only train."""
        return [job for job in self.file.jobs if job.model == model.name and not job.fits_only]

    def result(self, model: FleetModel) -> Path:
        """Return the run folder in which the model's cells are together, once it is collected."""
        if model.shards == 1:
            return self.run(self.jobs_of(model)[0].name)
        return self.path / "merged" / model.name

    def lock(self) -> FileLock:
        """Return the lock of the command that runs the fleet's jobs."""
        return FileLock(self.path / LOCK)


def check_new(path: Path) -> None:
    """Raise `UsageError` for a folder that holds anything or cannot be made."""
    if (path / FILE).exists():
        raise UsageError(
            f"The folder {str(path)!r} already holds a fleet.",
            hint=f"Continue it with 'harness submit retry {path}', or give another folder with --output.",
        )
    existing = next(folder for folder in (path.absolute(), *path.absolute().parents) if folder.exists())
    if not existing.is_dir() or not os.access(existing, os.W_OK | os.X_OK):
        raise UsageError(
            f"The folder {str(path)!r} cannot be written.", hint="Give another one with --output."
        )
    if path.is_dir() and any(path.iterdir()):
        raise UsageError(f"The folder {str(path)!r} is not empty.", hint="Give a new folder with --output.")


def new_folder() -> Path:
    """Return the folder of a fleet that the user gives no name."""
    base = "fleet-" + "".join(digit for digit in now() if digit.isdigit())[:14]
    names = (base, *(f"{base}-{number}" for number in range(2, 1000)))
    return next(path for path in (Path("runs") / name for name in names) if not path.exists())


def _changed(config: RunConfig) -> dict[str, Any]:
    """Return the settings that differ from their defaults, as ``--config`` reads them; the data in any case."""
    # Where --data was not given, $HARNESS_DATA of the machine that submits says where they are.
    default = RunConfig(tasks=(), model="").to_json() | {"data": None}
    options = {key: value for key, value in config.options.items() if key != TRUST}
    values = config.to_json() | {"options": options}
    return {name: value for name, value in values.items() if name not in OWN and value != default[name]}


def _json(content: Any) -> str:
    return json.dumps(content, ensure_ascii=False, indent=1) + "\n"
