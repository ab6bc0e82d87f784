"""Fits models stage by stage, and keeps every fitted stage in a cache under the digest of all that made it."""

from __future__ import annotations

import hashlib
import json
import math
import os
import shutil
import tempfile
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from harness.capabilities import HEAD_CAPABILITY, Adapter, FitOptions, Fits, HeadSpec, capability_protocols
from harness.data.records import TextPair
from harness.data.sampling import draw
from harness.data.sources import DataFinder, FoundData
from harness.errors import ContractError, DataError, TrainingError
from harness.kinds.kind import ReadContext, read_examples
from harness.plan import FitPlan, StagePlan
from harness.progress import Progress
from harness.results import write_atomically

__all__ = ["FitStore", "Fitted", "cache_folder"]

FORMAT = 1
"""Raised when the training code changes what the same digest would give."""
DATA_SEED = 0
"""Which training items a limit keeps depends on the item alone, so that seeds train on the same items."""


def cache_folder() -> Path:
    """Return where fitted models and downloads are kept: ``$HARNESS_CACHE``, else the user's cache folder."""
    given = os.environ.get("HARNESS_CACHE")
    if given:
        return Path(given)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "harness"


@dataclass(frozen=True, slots=True, kw_only=True)
class Fitted:
    """A fitted model with its digest and what the manifest records of its making."""

    adapter: Adapter
    digest: str
    stages: tuple[Mapping[str, Any], ...]


class FitStore:
    """Trains a fit once and reuses it afterwards."""

    def __init__(self, cache: Path, finder: DataFinder, progress: Progress) -> None:
        self._folder = cache / "fits"
        self._finder = finder
        self._progress = progress

    def fit(self, adapter: Adapter, plan: FitPlan) -> Fitted:
        """Return the model fitted by a plan, from the cache where it has been fitted before."""
        digests = _stage_digests(adapter, plan)
        first = max(
            (i + 1 for i, digest in enumerate(digests) if (self._folder / digest).is_dir()), default=0
        )
        current = adapter
        records = [
            self._cached(stage, digest) for stage, digest in zip(plan.stages[:first], digests, strict=False)
        ]
        if first:
            self._progress.announce(f"Reusing the fit {digests[first - 1]}: {plan.title}.")
            current = self._load(adapter, digests[first - 1], plan.stages[first - 1].head)
        for stage, digest in zip(plan.stages[first:], digests[first:], strict=True):
            fitted, record = self._train(current, stage, digest, plan)
            records.append(record)
            if current is not adapter:
                current.close()
            current = fitted
        return Fitted(adapter=current, digest=digests[-1], stages=tuple(records))

    def _cached(self, stage: StagePlan, digest: str) -> Mapping[str, Any]:
        file = self._folder / digest / "fit.json"
        known: dict[str, Any] = json.loads(file.read_text(encoding="utf-8")) if file.is_file() else {}
        return {"stage": stage.name, "digest": digest, **known, "reused": True}

    def _load(self, adapter: Adapter, digest: str, head: HeadSpec) -> Adapter:
        assert isinstance(adapter, Fits)
        fitted = adapter.load_fit(self._folder / digest, head)
        needed = HEAD_CAPABILITY[head.head]
        if not isinstance(fitted, capability_protocols()[needed]):
            raise ContractError(f"The model fitted with the head {head.head.value!r} lacks {needed.value}.")
        return fitted

    def _train(
        self, adapter: Adapter, stage: StagePlan, digest: str, plan: FitPlan
    ) -> tuple[Adapter, Mapping[str, Any]]:
        if not isinstance(adapter, Fits):
            raise ContractError(f"The model cannot be trained on {stage.name!r}: it lacks Fits.")
        train, validation = self._examples(stage)
        self._folder.mkdir(parents=True, exist_ok=True)
        temporary = Path(tempfile.mkdtemp(dir=self._folder, prefix=f".{digest}."))
        title = f"{stage.name} ({'+'.join(code for code, _ in stage.train)}), {len(train):,} examples"
        self._progress.announce(f"Fine-tuning on {title}, seed {plan.seed}, recipe {plan.recipe}.")
        started = time.monotonic()
        try:
            options = FitOptions(directory=temporary, settings=stage.settings, seed=plan.seed, describe=title)
            adapter.fit(train, validation, stage.head, options).close()
            record = _record(stage, plan, len(train), len(validation), time.monotonic() - started)
            write_atomically(temporary / "fit.json", json.dumps(record, ensure_ascii=False, indent=1))
            self._keep(temporary, digest)
        finally:
            shutil.rmtree(temporary, ignore_errors=True)
        fitted = self._load(adapter, digest, stage.head)
        return fitted, {"stage": stage.name, "digest": digest, **record, "reused": False}

    def _keep(self, temporary: Path, digest: str) -> None:
        try:
            temporary.rename(self._folder / digest)
        except OSError:
            # Another run finished the same fit meanwhile; both are what the digest names.
            if not (self._folder / digest).is_dir():
                raise

    def _examples(self, stage: StagePlan) -> tuple[list[Any], list[Any]]:
        train: list[Any] = []
        for code, found in stage.train:
            drawn = _drawn(self._read(stage, found, "train"), stage.limit, stage.name, code)
            train += _as_text(stage, drawn, code)
        validation: list[Any] = []
        if stage.validation is not None:
            code, found = stage.validation
            examples = self._read(stage, found, "validation")
            drawn = _drawn(examples, stage.settings.validation_limit, stage.name, code)
            validation = _as_text(stage, drawn, code)
        if not train:
            raise TrainingError(f"The training set {stage.name!r} has no items.")
        return train, validation

    def _read(self, stage: StagePlan, found: FoundData, split: str) -> list[Any]:
        context = ReadContext(
            owner=stage.name,
            language=found.ref.language,
            split=split,
            inputs=stage.head.inputs,
            labels=stage.labels,
            label_map=found.label_map,
            phrases=stage.phrases,
        )
        return read_examples(stage.kind, self._finder.rows(found), context)


def _as_text(stage: StagePlan, examples: list[Any], language: str) -> list[Any]:
    """Return the examples, as text pairs where a text-to-text model is trained; raises `DataError` for unlabelled."""
    if any(stage.kind.reference(example) is None for example in examples):
        raise DataError(f"The training set {stage.name!r} has items without labels.")
    if stage.prompt is None:
        return examples
    assert stage.kind.prompt_item is not None
    prompt = stage.prompt.compiled(language)
    items = [(example.id, stage.kind.prompt_item(example)) for example in examples]
    return [
        TextPair(id=identifier, source=prompt.system(item) + prompt.context(item), target=prompt.answer(item))
        for identifier, item in items
    ]


def _drawn(examples: list[Any], limit: int | None, task: str, language: str) -> list[Any]:
    ids = [example.id for example in examples]
    return [examples[index] for index in draw(ids, limit, seed=DATA_SEED, task=task, language=language)]


def _stage_digests(adapter: Adapter, plan: FitPlan) -> list[str]:
    digest = _hash({"format": FORMAT, "model": dict(adapter.identity())})
    digests = []
    for stage in plan.stages:
        digest = _hash({"parent": digest, "seed": plan.seed, "stage": _identity(stage)})
        digests.append(digest)
    return digests


def _identity(stage: StagePlan) -> dict[str, Any]:
    return {
        "head": stage.head.head.value,
        "labels": stage.head.labels,
        "inputs": stage.head.inputs,
        "train": [[code, found.digest()] for code, found in stage.train],
        "validation": None if stage.validation is None else stage.validation[1].digest(),
        "settings": asdict(stage.settings),
        "limit": stage.limit,
        "read": [list(stage.labels), stage.phrases],
        **({} if stage.prompt is None else {"prompt": stage.prompt.digest}),
    }


def _hash(content: Mapping[str, Any]) -> str:
    text = json.dumps(content, sort_keys=True, ensure_ascii=False, default=list)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _record(stage: StagePlan, plan: FitPlan, train: int, validation: int, seconds: float) -> dict[str, Any]:
    settings = asdict(stage.settings)
    return {
        "recipe": plan.recipe,
        "seed": plan.seed,
        "settings": {name: value for name, value in settings.items() if not _is_nan(value)},
        "train": {
            "examples": train,
            "languages": [code for code, _ in stage.train],
            "data": [found.to_json() for _, found in stage.train],
        },
        "validation": {
            "examples": validation,
            "language": None if stage.validation is None else stage.validation[0],
            "data": None if stage.validation is None else stage.validation[1].to_json(),
        },
        "note": stage.note,
        "seconds": round(seconds, 2),
    }


def _is_nan(value: Any) -> bool:
    return isinstance(value, float) and math.isnan(value)
