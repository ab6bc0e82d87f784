"""A judge's passport: what people say of its verdicts, by language, as a file that others reuse."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict
from hashlib import sha256
from pathlib import Path
from typing import Final, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from harness import DataError, Run, UsageError
from harness_judge.prediction_powered import Moments

LEAST: Final = 30
"""Fewest labelled clusters of a certified language: below, normal theory does not hold."""
PLACE: Final = frozenset({"device", "torch", "transformers", "tokenizers", "vllm"})
"""What an identity says of the machine and the versions that a judge ran with, which passports do not bind."""


class _Entry(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, allow_inf_nan=False)


class Bias(_Entry):
    """How much higher the judge's values are under a condition, with its 95 % interval; 1 is the whole scale."""

    value: float
    ci: tuple[float, float] | None = Field(default=None, strict=False)
    n: int


class CertifiedLanguage(_Entry):
    """A language: how the judge was asked, and how far it agrees with people."""

    method: str | None
    view: dict[str, str]
    words: str
    """The language of the rubric's words."""
    unreadable: int
    agreement: float
    kappa: float
    kappa_ci: tuple[float, float] | None = Field(default=None, strict=False)
    length: Bias | None
    """Longer answers against shorter ones, judge minus people."""
    position: Bias | None
    """The answer that is shown first against the other; of pairs."""
    other_words: dict[str, Bias]
    """By the language of other words: these words minus those."""
    moments: dict[str, float]
    """Of `harness_judge.prediction_powered.Moments`."""
    items: list[str]
    """Digests of the labelled items."""
    certified: bool
    reason: str
    """Why it is not certified."""

    @property
    def labelled(self) -> Moments:
        """The moments of the labelled items."""
        counts = {name: int(self.moments[name]) for name in ("n", "clusters")}
        return Moments(**{**self.moments, **counts})  # type: ignore[arg-type]


class Passport(_Entry):
    """The file."""

    passport: Literal[1] = 1
    made: str
    """The day."""
    harness: str
    judge: str
    """The name of the model, for people."""
    judge_digest: str
    """Of the model, its revision and options."""
    judge_identity: dict[str, str]
    """What the digest is of, and the machine and versions that it ran with."""
    rubric: str
    labels: list[str]
    """The verdicts."""
    tasks: list[str]
    human: str
    """Where the verdicts of people come from: a file with its digest, or ``gold``."""
    languages: dict[str, CertifiedLanguage]

    def of(
        self, language: str, method: str | None, view: Mapping[str, str], words: str
    ) -> CertifiedLanguage | None:
        """Return a language as it is asked; None where it was certified otherwise, or not at all."""
        entry = self.languages.get(language)
        if entry is None or not entry.certified:
            return None
        asked = (entry.method, entry.view, entry.words)
        return entry if asked == (method, dict(view), words) else None


def judge_identity(run: Run) -> dict[str, str]:
    """Return the identity of a judge: that of the model, and the options that were given."""
    options = {
        f"given.{name}": str(value) for name, value in (run.manifest.config.get("options") or {}).items()
    }
    head = {"model": run.results.model.ref, "revision": str(run.results.model.revision)}
    identity = dict(run.manifest.identity)
    return {**(head if "weights" not in identity else {}), **identity, **options}


def judge_digest(identity: Mapping[str, str]) -> str:
    """Return the digest that a passport binds."""
    bound = {name: value for name, value in identity.items() if name not in PLACE}
    return sha256(json.dumps(bound, sort_keys=True).encode()).hexdigest()


def rubric_of(run: Run) -> tuple[str, list[str]]:
    """Return the rubric and the verdicts of a judge's run; raises `UsageError` where there is no single one."""
    specs = [spec for spec in run.manifest.specs.values() if spec.get("kind") == "judgement"]
    rubrics = {spec.get("rubric", "") for spec in specs}
    if len(rubrics) != 1 or "" in rubrics:
        raise UsageError(
            f"The run {str(run.path)!r} has {'no' if not rubrics - {''} else 'several'} rubrics with a digest.",
            hint="Write its task again with 'harness judge export', one rubric at a time, and ask the judge.",
        )
    return str(rubrics.pop()), list(specs[0]["labels"])


def read_passport(path: Path, run: Run) -> Passport:
    """Return the passport of the judge of a run.

    Raises:
        DataError: Where the file cannot be read.
        UsageError: Where it is of another judge or rubric, with what differs.
    """
    try:
        passport = Passport.model_validate_json(path.read_bytes())
    except (OSError, ValidationError) as error:
        reason = error.strerror if isinstance(error, OSError) else _first_fault(error)
        raise DataError(f"The passport {str(path)!r} cannot be read: {reason}.") from error
    identity = judge_identity(run)
    if judge_digest(passport.judge_identity) != passport.judge_digest:
        raise DataError(f"The passport {str(path)!r} was changed: its judge does not have its digest.")
    if judge_digest(identity) != passport.judge_digest:
        own = passport.judge_identity
        names = sorted(name for name in {*own, *identity} - PLACE if own.get(name) != identity.get(name))
        differences = ", ".join(
            f"{name} {str(own.get(name))[:16]!r}, here {str(identity.get(name))[:16]!r}" for name in names[:3]
        )
        raise UsageError(
            f"The passport {str(path)!r} is of another judge ({passport.judge}) than that of the run "
            f"{str(run.path)!r}: {differences}.",
            hint="Certify this judge: harness judge certify RUN --human FILE --output FILE.json.",
        )
    rubric, _ = rubric_of(run)
    if rubric != passport.rubric:
        raise UsageError(
            f"The passport {str(path)!r} is for the rubric {passport.rubric}, the run {str(run.path)!r} has {rubric}.",
            hint="Certify the judge with this rubric.",
        )
    return passport


def write_passport(path: Path, passport: Passport) -> None:
    """Write the file."""
    from harness.cli import write_file

    write_file(path, passport.model_dump_json(indent=1) + "\n")


def _first_fault(error: ValidationError) -> str:
    first = error.errors(include_url=False)[0]
    return f"{'.'.join(map(str, first['loc'])) or 'the file'}: {first['msg']}"


def moments_json(labelled: Moments) -> dict[str, float]:
    """Return moments as a passport holds them."""
    return asdict(labelled)
