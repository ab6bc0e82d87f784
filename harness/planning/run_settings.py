"""The settings of a run as keyword arguments of a program, with their types."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, TypedDict

Names = str | Sequence[str]
Paths = str | Path | Sequence[str | Path]


class RunSettings(TypedDict, total=False):
    """Arguments of `harness.evaluate` besides tasks and model: a key for every further field of `RunConfig`.

    The types are what `Setting.read` accepts.
    """

    options: Mapping[str, Any] | None
    name: str | None
    languages: Names | None
    tasks_from: Paths
    protocols: Names
    method: str | None
    data: Paths
    limit: int | None
    precision: float | None
    budget: int | None
    train_limit: int | None
    seeds: int | str | Sequence[int]
    recipe: str | None
    train_languages: Names
    select_on: str | None
    split: Literal["test", "validation"]
    variants: Names
    gold: str | Path | None
    translators: Names
    romanised: str
    train_variant: str | None
    train_pivot: str
    prompt: Names | None
    repeats: int
    shots: int
    shots_from: Literal["train", "validation"]
    shots_language: Literal["source", "target"]
    instruction_language: str | None
    literals: Literal["english", "fail"]
    chat: bool
    constrained: bool
    allow_code: bool
    locked: str | Path | None
    num_processes: int | None
    shard: str | None
    fits_only: bool
    reuse: Paths
    with_baselines: bool
    with_published: bool
    log: Names
    output: str | Path | None
