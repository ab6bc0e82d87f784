"""The options of the backend ``slurm``."""

from __future__ import annotations

import shlex

from pydantic import Field, field_validator

from harness.models import AdapterOptions


class SlurmOptions(AdapterOptions):
    """Options of the backend ``slurm``."""

    partition: str | None = None
    """The partition of all jobs."""
    account: str | None = None
    """The account that is charged."""
    qos: str | None = None
    """The quality of service."""
    constraint: str | None = None
    """The features that a node must have."""
    cpus: int = Field(default=4, ge=1)
    """CPU cores per process of a job."""
    parallel: int = Field(default=256, ge=1)
    """Jobs of one array that run at the same time."""
    requeues: int = Field(default=3, ge=0)
    """How often a job that runs out of time is continued."""
    grace: int = Field(default=300, ge=1, le=600)
    """Seconds before the end of its time at which a job is interrupted; at most a third of its time."""
    setup: str | None = None
    """Shell lines that run before the command: ``module load cuda``."""
    sbatch: str | None = None
    """Further options of sbatch, as on its command line: ``--exclusive --nodelist=gpu[1-4]``."""

    @field_validator("sbatch")
    @classmethod
    def _check_sbatch(cls, text: str | None) -> str | None:
        for word in shlex.split(text or ""):
            if not word.startswith("--") or word.startswith(
                ("--=", "--array", "--dependency", "--signal", "--time")
            ):
                raise ValueError(f"{word!r} is not an option of the form --name=value that may be given here")
        return text

    def further(self) -> dict[str, str | bool]:
        """Return the further options of sbatch by name; those without a value are True."""
        words = [word.removeprefix("--").partition("=") for word in shlex.split(self.sbatch or "")]
        return {name: value if equals else True for name, equals, value in words}
