"""Fits models stage by stage, and keeps every fitted stage in a cache under the digest of all that made it."""

from __future__ import annotations

import errno
import json
import math
import os
import shutil
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harness.data.records import TextPair, draw
from harness.data.sources import DataFinder, FoundData
from harness.errors import ContractError, DataError, StorageError, TrainingError
from harness.kinds.kind import ReadContext, read_examples
from harness.models.capabilities import (
    HEAD_CAPABILITY,
    Adapter,
    FitOptions,
    Fits,
    HeadSpec,
    capability_protocols,
)
from harness.models.requests import HasDevScore, HasTrainingLoss
from harness.planning.plan import FitPlan, StagePlan
from harness.progress import Progress
from harness.running.processes import Interruption, ProcessGroup
from harness.specs.documents import TunedFit
from harness.storage.file_lock import FileLock
from harness.storage.files import is_full, write_atomically
from harness.storage.run_folder import FittedModel

RECORD = "fit.json"
"""Written last: a folder without it is no finished fit."""
FIT_PATIENCE = 24 * 3600.0
"""Seconds that a run waits for another one which is making the same fit."""
DATA_SEED = 0
"""Which training items a limit keeps depends on the item alone, so that seeds train on the same items."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fitted:
    """A fitted model, and what results record of its making."""

    adapter: Adapter
    record: FittedModel


class FitStore:
    """Trains a fit once and reuses it afterwards, whichever run of this cache asks for it first."""

    def __init__(
        self,
        cache: Path,
        finder: DataFinder,
        progress: Progress,
        processes: ProcessGroup,
        interruption: Interruption,
    ) -> None:
        self._folder = cache / "fits"
        self._finder = finder
        self._progress = progress
        self._processes = processes
        self._interruption = interruption

    def fit(self, adapter: Adapter, plan: FitPlan) -> Fitted:
        """Return the model fitted by a plan, from the cache where it has been fitted before."""
        digests = self.digests(adapter, plan)
        first = self._processes.share(len(digests) - len(self.missing(adapter, plan)))
        current = adapter
        records = [
            self._cached(stage, digest) for stage, digest in zip(plan.stages[:first], digests, strict=False)
        ]
        if first:
            self._progress.mention(f"Reusing the fit {digests[first - 1]}: {plan.title}.")
            current = self._load(adapter, digests[first - 1], plan.stages[first - 1].head)
        try:
            for stage, digest in zip(plan.stages[first:], digests[first:], strict=True):
                self._interruption.check()
                records.append(self._train(current, stage, digest, plan))
                self._progress.fit_finished(digest)
                fitted = self._load(current, digest, stage.head)
                if current is not adapter:
                    current.close()
                current = fitted
        except BaseException:
            for digest in digests[len(records) :]:
                self._progress.fit_finished(digest, failed=True)
            raise
        stages = [dict(record) for record in records]
        if plan.tuned is not None:
            stages[-1]["tuned"] = _tuned(plan.tuned, digests[-1])
        record = FittedModel(key=plan.key, digest=digests[-1], title=plan.title, stages=stages)
        return Fitted(adapter=current, record=record)

    def missing(self, adapter: Adapter, plan: FitPlan) -> list[tuple[str, StagePlan]]:
        """Return the stages that have to be trained, with their digests."""
        digests = self.digests(adapter, plan)
        first = max((number + 1 for number, digest in enumerate(digests) if self._has(digest)), default=0)
        return list(zip(digests[first:], plan.stages[first:], strict=True))

    def digests(self, adapter: Adapter, plan: FitPlan) -> list[str]:
        """Return the digests that name the stages of a fit in the cache."""
        return plan.digests(adapter.identity(), self._finder.fingerprints)

    def kept(self, digest: str) -> Mapping[str, Any] | None:
        """Return the record of a finished stage; None where the cache does not have it."""
        return self._read_record(digest) if self._has(digest) else None

    def sizes(self, stage: StagePlan) -> tuple[int, int]:
        """Return how many examples a stage trains on, and how many its dev set has; reads the data."""
        train, validation = self._examples(stage)
        return len(train), len(validation)

    def _read_record(self, digest: str) -> dict[str, Any]:
        record: dict[str, Any] = json.loads((self._folder / digest / RECORD).read_text(encoding="utf-8"))
        return record

    def _has(self, digest: str) -> bool:
        return (self._folder / digest / RECORD).is_file()

    def _cached(self, stage: StagePlan, digest: str) -> Mapping[str, Any]:
        return {"stage": stage.name, "digest": digest, **self._read_record(digest), "reused": True}

    def _load(self, adapter: Adapter, digest: str, head: HeadSpec) -> Adapter:
        assert isinstance(adapter, Fits)
        if not (self._folder / digest).is_dir():
            raise StorageError(
                f"Process {self._processes.rank} does not see the fitted model in {str(self._folder / digest)!r}.",
                hint="Let HARNESS_CACHE name a folder that all hosts share.",
            )
        fitted = adapter.load_fit(self._folder / digest, head)
        needed = HEAD_CAPABILITY[head.head]
        if not isinstance(fitted, capability_protocols()[needed]):
            raise ContractError(
                f"The model fitted with the head {head.head.value!r} does not offer {needed.value}."
            )
        return fitted

    def _train(self, adapter: Adapter, stage: StagePlan, digest: str, plan: FitPlan) -> Mapping[str, Any]:
        """Train one stage, in all processes or in the leading one, and return what is recorded of it."""
        if not isinstance(adapter, Fits):
            raise ContractError(f"The model cannot be trained on {stage.name!r}: it does not offer Fits.")
        lock = FileLock(self._folder / f".{digest}.lock")
        if self._processes.is_main:
            self._make_folder(self._folder)
            lock.acquire(
                patience=FIT_PATIENCE, waiting=self._announce_waiting, stopping=self._interruption.requested
            )
            self._interruption.check()
        try:
            if self._processes.share(self._has(digest)):
                # Another run finished the same fit meanwhile.
                return self._cached(stage, digest)
            together = bool(getattr(adapter, "fits_together", False))
            record: Mapping[str, Any] = {}
            if together or self._processes.is_main:
                record = self._train_here(adapter, stage, digest, plan)
            self._processes.wait()
            if self._processes.is_main:
                self._keep(digest, record)
            self._processes.wait()
            return {"stage": stage.name, "digest": digest, **record, "reused": False}
        finally:
            lock.release()

    def _make_folder(self, folder: Path) -> None:
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise self._unwritable(error.strerror) from error

    def _unwritable(self, reason: str | None) -> StorageError:
        return StorageError(
            f"The cache folder {str(self._folder)!r} cannot be written: {reason}.",
            hint="Let HARNESS_CACHE name another one.",
        )

    def _announce_waiting(self, holder: str) -> None:
        self._progress.announce(f"Waiting for the same fit, which {holder} is making.")

    def _train_here(self, adapter: Fits, stage: StagePlan, digest: str, plan: FitPlan) -> Mapping[str, Any]:
        train, validation = self._examples(stage)
        # A stable name, so that training which was killed is gone on from where it was.
        partial = self._partial(digest)
        if self._processes.is_main:
            self._make_folder(partial)
        title = f"{stage.name} ({'+'.join(code for code, _ in stage.train)}), {len(train):,} examples"
        self._progress.fit_started(digest, f"{title}, seed {plan.seed}, recipe {plan.recipe}")
        started = time.monotonic()
        options = FitOptions(
            directory=partial,
            settings=stage.settings,
            seed=plan.seed,
            describe=title,
            stopping=self._interruption.requested,
            progress=self._progress,
        )
        try:
            fitted = adapter.fit(train, validation, stage.head, options)
            dev = fitted.dev_score() if isinstance(fitted, HasDevScore) else None
            loss = fitted.training_loss() if isinstance(fitted, HasTrainingLoss) else None
            fitted.close()
        except KeyboardInterrupt:
            raise
        except Exception as error:
            if is_full(error):
                # Its checkpoints are gone on from once there is room.
                raise self._unwritable(os.strerror(errno.ENOSPC)) from error
            # What failed by itself would fail again.
            if self._processes.is_main:
                shutil.rmtree(partial, ignore_errors=True)
            raise
        record = _record(stage, plan, len(train), len(validation), time.monotonic() - started)
        if dev is not None:
            record["validation"] |= {"metric": dev.metric, "score": dev.value}
        if loss is not None:
            record["loss"] = dict(loss)
        lost = self._lost(stage)
        if lost:
            record["train"]["lost"] = lost
            record["note"] = " ".join(filter(None, (stage.note, *map(_lost_note, lost))))
        return record

    def _lost(self, stage: StagePlan) -> list[dict[str, Any]]:
        """Return how many questions every translated part of a training set lost, and mention it."""
        rows = []
        for code, split in stage.train:
            if split.change is not None:
                answers = self._finder.translations.lost.get((split.ref.owner, split.change))
                if answers is not None:
                    rows.append({"language": code, "lost": answers.lost, "of": answers.of})
                    self._progress.mention(_lost_note(rows[-1]))
        return rows

    def _partial(self, digest: str) -> Path:
        return self._folder / f".{digest}.partial"

    def _keep(self, digest: str, record: Mapping[str, Any]) -> None:
        """Give the fitted model its name, the record of its making in it: all or nothing."""
        partial = self._partial(digest)
        write_atomically(partial / RECORD, json.dumps(record, ensure_ascii=False, indent=1))
        broken = self._folder / digest
        shutil.rmtree(broken, ignore_errors=True)
        partial.rename(broken)

    def _examples(self, stage: StagePlan) -> tuple[list[Any], list[Any]]:
        train: list[Any] = []
        for code, split in stage.train:
            drawn = _drawn(self._read(stage, split, "train"), stage.limit, stage.name, code)
            train += _as_text(stage, drawn, code)
        validation: list[Any] = []
        if stage.validation is not None:
            code, split = stage.validation
            examples = self._read(stage, split, "validation")
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


def _tuned(tuned: TunedFit, digest: str) -> dict[str, Any]:
    """Return the record of how the settings of a fit were chosen, and whether it is one of those fits."""
    tried = {fit for score in tuned.scores for fit in score.fits}
    return {**tuned.model_dump(mode="json", exclude_defaults=True), "same_fit": digest in tried}


def _lost_note(row: Mapping[str, Any]) -> str:
    return (
        f"In {row['language']}, {row['lost']:,} of {row['of']:,} questions are skipped: their answer was not found "
        "again in the translated context."
    )


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


def _record(stage: StagePlan, plan: FitPlan, train: int, validation: int, seconds: float) -> dict[str, Any]:
    settings = stage.settings.identity()
    return {
        "recipe": plan.recipe,
        "seed": plan.seed,
        "settings": {name: value for name, value in settings.items() if not _is_nan(value)},
        "train": {
            "examples": train,
            "languages": [code for code, _ in stage.train],
            "data": [split.to_json() for _, split in stage.train],
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
