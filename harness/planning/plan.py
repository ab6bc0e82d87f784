"""The plan of a run: the configuration, the models to fit, the cells, and skipped cells with their reasons."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

from harness.data.gold import CellGold
from harness.data.sources import DataFinder, FoundData
from harness.errors import CapabilityError, UsageError
from harness.kinds.kind import TaskKind
from harness.kinds.methods import Pairing
from harness.languages.table import Language
from harness.models.adapters import AdapterEntry, ModelReference
from harness.models.capabilities import HeadSpec, ModelDescription, TrainingSettings
from harness.models.options import AdapterOptions
from harness.planning.run_config import RunConfig
from harness.prompts.preset import CompiledPrompt, compile_prompt
from harness.registry.registry import Registry
from harness.specs.catalog import Catalog
from harness.specs.documents import PromptSpec, TunedFit
from harness.specs.schema import Phrases, SuiteSpec, TaskSpec, TrainingSpec
from harness.storage.model_name import model_name

OF_OPTION = re.compile(r"(?<!with )--(?!data|tasks-from)[a-z]")
"""In a reason about what was typed; data that are missing name only where to look."""
FIT_FORMAT = 2
"""Raised when the training code changes what the same digest would give."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Model:
    """A model that was described but not loaded."""

    reference: ModelReference
    entry: AdapterEntry
    options: AdapterOptions
    description: ModelDescription
    chosen_name: str | None = None
    """What ``--name`` calls it."""

    @property
    def name(self) -> str:
        """Its name in reports: `chosen_name`, or `model_name` by its server and its options."""
        if self.chosen_name:
            return self.chosen_name
        served = getattr(self.options, "model", None) or self.description.metadata.get("model")
        is_folder = Path(self.reference.ref).expanduser().is_dir()
        revision = getattr(self.options, "revision", None)
        return model_name(str(self.reference), served, revision, is_folder=is_folder)


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanRequest:
    """What a plan is made of."""

    config: RunConfig
    registry: Registry
    catalog: Catalog
    finder: DataFinder
    model: Model


@dataclass(frozen=True, slots=True, kw_only=True)
class StagePlan:
    """One training stage: its examples, and the dev set that chooses the checkpoint."""

    name: str
    kind: TaskKind
    head: HeadSpec
    train: tuple[tuple[str, FoundData], ...]
    """Language and files of every part of the training data."""
    validation: tuple[str, FoundData] | None
    settings: TrainingSettings
    limit: int | None
    labels: tuple[str, ...] = ()
    """Names that the data are read with; a multiple-choice head has no names of its own."""
    phrases: Phrases = field(default_factory=dict)
    prompt: PromptPlan | None = None
    """How examples become text pairs, where a text-to-text model is trained."""
    note: str = ""

    def identity(self) -> dict[str, Any]:
        """Return the identity of the stage; digests on disk depend on every part and on their order."""
        validation = None if self.validation is None else [self.validation[0], self.validation[1].digest()]
        return {
            "head": self.head.head.value,
            "labels": self.head.labels,
            "inputs": self.head.inputs,
            "train": [[language, split.digest()] for language, split in self.train],
            "validation": validation,
            "settings": self.settings.identity(),
            "limit": self.limit,
            "read": [list(self.labels), self.phrases],
            "prompt": None if self.prompt is None else self.prompt.digest,
        }


@dataclass(frozen=True, kw_only=True)
class FitPlan:
    """A model to fine-tune, in one stage or several; cells with equal plans share the fit."""

    stages: tuple[StagePlan, ...]
    seed: int
    recipe: str
    tuned: TunedFit | None = None
    """How the recipe's settings for it were chosen; no part of what it is."""

    @cached_property
    def key(self) -> str:
        """A digest of all of it but the model, which is part of the digests of cells."""
        identity: list[Any] = [[self.seed, self.recipe]]
        for stage in self.stages:
            *leading, read, prompt = stage.identity().values()
            identity.append([stage.name, *leading, *read, prompt])
        return _digest(identity, default=str)

    def digests(self, model: Mapping[str, str], translators: Callable[[FoundData], list[str]]) -> list[str]:
        """Return the digest of each fitted stage, the last one being that of the fit.

        Args:
            model: The identity of the model that is fitted.
            translators: Returns the fingerprints of what translated a training set, which a user may name otherwise.
        """
        digest = _digest({"format": FIT_FORMAT, "model": dict(model)})[:16]
        stage_digests = []
        for stage in self.stages:
            content = stage.identity()
            validation = content["validation"]
            content["validation"] = None if validation is None else validation[1]
            if content["prompt"] is None:
                del content["prompt"]
            identity = {"parent": digest, "seed": self.seed, "stage": content}
            changed = [data for _, data in stage.train if data.change is not None]
            if changed:
                identity["translators"] = [translators(data) for data in changed]
            digest = _digest(identity)[:16]
            stage_digests.append(digest)
        return stage_digests

    @property
    def title(self) -> str:
        """``squad (en), seed 42``, or ``squad (es), translated by nllb, seed 42``."""
        return f"{self.data_title}, seed {self.seed}"

    @property
    def data_title(self) -> str:
        """The title without the seed."""
        names = " then ".join(
            f"{stage.name} ({'+'.join(language for language, _ in stage.train)})" for stage in self.stages
        )
        changes = [split.change for stage in self.stages for _, split in stage.train]
        by = dict.fromkeys(change.translator for change in changes if change is not None)
        translated = f", translated by {' and '.join(by)}" if by else ""
        return f"{names}{translated}"


def _digest(content: Any, default: Callable[[Any], Any] = list) -> str:
    """Return a digest that is kept on disk: in the names of cached fits and in the identities of cells."""
    text = json.dumps(content, sort_keys=True, ensure_ascii=False, default=default)
    return hashlib.sha256(text.encode()).hexdigest()


@dataclass(frozen=True, slots=True, kw_only=True)
class LearningPlan:
    """Training data of a method, next to a model that stays as it is."""

    owner: str
    """The task or training set whose splits these are."""
    language: str
    train: FoundData
    validation: FoundData | None
    """None where every tenth cluster of train is held out instead."""
    spec: TaskSpec | TrainingSpec
    """Of the owner: how its rows are read."""
    limit: int | None
    """At most so many items of either split."""
    seeds: tuple[int, ...]
    """Of all cells that differ in the seed alone: what is chosen over several seeds depends on all of them."""

    @property
    def key(self) -> str:
        """A digest of the data, of how they are read, and of the seeds."""
        validation = None if self.validation is None else self.validation.digest()
        reading = [list(self.spec.input_names), list(self.spec.label_names), self.spec.input_phrases]
        identity = [
            self.owner,
            self.language,
            self.train.digest(),
            validation,
            reading,
            self.limit,
            list(self.seeds),
        ]
        return _digest(identity)[:16]

    def to_json(self) -> dict[str, Any]:
        """Return its record in the results."""
        return {
            "language": self.language,
            "train": self.train.to_json(),
            "validation": None if self.validation is None else self.validation.to_json(),
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolPlan:
    """The files of a task's candidate pool."""

    parts: tuple[tuple[str, FoundData], ...]
    """Language and files, in the order in which ties are broken."""
    missing: tuple[str, ...] = ()
    """Languages whose candidates were not found."""

    @property
    def key(self) -> tuple[str, ...]:
        """Key that two pools with the same candidates share."""
        return tuple(split.digest() for _, split in self.parts)


@dataclass(frozen=True, slots=True, kw_only=True)
class ShotPool:
    """The data that shots are drawn from, and how they are read."""

    owner: str
    language: str
    split: str
    found: FoundData
    spec: TaskSpec | TrainingSpec
    """Of the owner."""
    twins: FoundData | None = None
    """The test set of a parallel task in this language, where another one is tested: shots are no translations."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PromptPlan:
    """How the items of a cell become prompts."""

    spec: PromptSpec
    inherited: PromptSpec | None
    policy: Literal["english", "fail"]
    instruction: str
    """Language of the words."""
    shots: int = 0
    pool: ShotPool | None = None
    chat: bool = False
    constrained: bool = False
    repeats: int = 1
    """Answers per item."""

    def compiled(self, language: str, item_language: str = "") -> CompiledPrompt:
        """Return the prompt with the words of a language, for items of the same or another language."""
        return compile_prompt(
            self.spec,
            language,
            policy=self.policy,
            inherited=self.inherited,
            item_language=item_language,
        )

    @property
    def digest(self) -> str:
        """A digest of templates, words, and where the shots come from."""
        spec = self.spec.model_dump(mode="json")
        for name in ("chat_stop", "answer_regex"):  # later than the digests on disk
            if not spec[name]:
                del spec[name]
        content = [
            spec,
            None if self.inherited is None else self.inherited.model_dump(mode="json"),
            [self.policy, self.instruction, self.shots, self.chat, self.constrained],
            None if self.pool is None else [self.pool.owner, self.pool.language, self.pool.found.digest()],
            *([self.repeats] if self.repeats > 1 else []),
        ]
        return _digest(content)[:16]

    def to_json(self, compiled: CompiledPrompt) -> dict[str, Any]:
        """Return its record in the results."""
        return {
            "name": self.spec.prompt,
            "words": compiled.literals_language,
            "shots": self.shots,
            "shots_data": None if self.pool is None else self.pool.found.to_json(),
            "digest": self.digest,
        }


@dataclass(frozen=True, kw_only=True)
class Cell:
    """One number to come: a task in a language, by one model, fit, method and seed."""

    spec: TaskSpec
    language: Language
    pairing: Pairing
    fit: FitPlan | None
    seed: int
    test: FoundData
    view: Mapping[str, str] = field(default_factory=dict)
    pool: PoolPlan | None = None
    prompt: PromptPlan | None = None
    gold: CellGold | None = None
    """Corrected labels; the view names them."""
    learning: LearningPlan | None = None
    text: Language | None = None
    """The language that answers are in, where translation made it another one than the cell's."""

    @property
    def text_language(self) -> Language:
        """The language of prompts and answers."""
        return self.text or self.language

    @property
    def provenance(self) -> str | None:
        """How the texts of its items were made: by the spec, or a translator; None where it is not known."""
        if self.test.change is not None:
            return "machine-translated"
        return None if "variant" in self.view else self.spec.provenance_of(self.language.code)

    @property
    def title(self) -> str:
        """``xnli:sw``."""
        return f"{self.spec.task}:{self.language.code}"

    def identity(self) -> dict[str, Any]:
        """Return the parts that make the cell what it is within a run."""
        return {
            "task": self.spec.task,
            "version": self.spec.version,
            "language": self.language.code,
            "protocol": self.pairing.protocol,
            "method": self.pairing.method.name,
            "fit": None if self.fit is None else self.fit.key,
            "seed": self.seed,
            "prompt": None if self.prompt is None else self.prompt.digest,
            "view": dict(sorted(self.view.items())),
            **({} if self.learning is None else {"learning": self.learning.key}),
        }

    @cached_property
    def digest(self) -> str:
        """Twelve hexadecimal digits that name the cell's records."""
        return identity_digest(self.identity())


def identity_digest(identity: Mapping[str, Any]) -> str:
    """Return the twelve hexadecimal digits that identify a cell."""
    return _digest(identity)[:12]


@dataclass(frozen=True, slots=True, kw_only=True)
class Skip:
    """Something that was asked for and will not be run."""

    task: str
    language: str
    reason: str
    protocol: str | None = None
    view: Mapping[str, str] = field(default_factory=dict)
    missing_language: bool = False
    """Whether the task does not have the language at all, so that someone could add it."""


def reason_without_language(reason: str, language: str) -> str:
    """Return the reason without the language, so that reports can group several languages."""
    start, _, _ = reason.partition(":")
    subject, has_no, _ = start.partition(" has no ")
    return subject if has_no else start.replace(repr(language), "?")


def grouped_reason(reasons: Iterable[str]) -> str:
    """Return one sentence for the reasons of several languages that `reason_without_language` put together.

    What a task does not have is listed completely; of other reasons, and of whole sentences, the first one is given.
    """
    first, *later = dict.fromkeys(reasons)
    if not later:
        return first
    subject, has_no, _ = first.partition(" has no ")
    if not has_no or ":" in first or not all(sentence.startswith(f"{subject}{has_no}") for sentence in later):
        return f"{first} (and likewise for the others)"
    *missing, last = (reason.removeprefix(f"{subject}{has_no}") for reason in (first, *later))
    return f"{subject}{has_no}{', '.join(missing)} or {last}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """The plan of a run for one model."""

    model: Model
    cells: tuple[Cell, ...]
    skipped: tuple[Skip, ...]
    notes: tuple[str, ...] = ()
    suites: tuple[SuiteSpec, ...] = ()
    """Suites that were asked for by name."""
    published: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """By task: the languages of its own document, without those that fragments added."""
    added: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    """By task: the languages that fragments added, with the plugin or file that did."""
    human: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    """By task and metric: published human performance, as a fraction."""
    shard: Mapping[str, Any] = field(default_factory=dict)
    """What the manifest keeps of the plan that this one is a shard of."""

    @property
    def fits(self) -> list[FitPlan]:
        """The models to fine-tune, each once, in the order in which cells need them."""
        return list({cell.fit.key: cell.fit for cell in self.cells if cell.fit is not None}.values())

    def groups(self) -> Iterator[tuple[FitPlan | None, list[Cell]]]:
        """Yield the cells of every fit together, cells without a fit first."""
        by_key: dict[str | None, list[Cell]] = {None: []}
        for cell in self.cells:
            by_key.setdefault(None if cell.fit is None else cell.fit.key, []).append(cell)
        for cells in by_key.values():
            if cells:
                yield cells[0].fit, cells


def require_cells(plan: Plan) -> None:
    """Raise `UsageError` when a plan has no cell; the message gives the first reasons, of options before others.

    What a user typed can be changed at once: it is nearer than data and languages that are missing.
    """
    if plan.cells:
        return
    if not plan.skipped:
        raise UsageError("Nothing is left to run. No language is both in --tasks and in --languages.")
    alike: dict[tuple[str, str], dict[str, str]] = {}
    first_skips: dict[str, Skip] = {}
    for skip in sorted(plan.skipped, key=lambda skip: not OF_OPTION.search(skip.reason)):
        if OF_OPTION.search(skip.reason) and first_skips.setdefault(skip.reason, skip) is not skip:
            continue
        shape = skip.reason if skip.missing_language else reason_without_language(skip.reason, skip.language)
        alike.setdefault((skip.task, shape), {}).setdefault(skip.reason, skip.language)
    reasons = []
    for shown_first, *similar in (group.items() for group in alike.values()):
        reasons.append(
            shown_first[0] + (f" (Likewise: {', '.join(code for _, code in similar)}.)" if similar else "")
        )
    listed = " ".join(f"({number}) {reason}" for number, reason in enumerate(reasons[:3], start=1))
    more = f" and {len(reasons) - 3} more reasons" if len(reasons) > 3 else ""
    if (first := plan.skipped[0]).missing_language:
        more += ". If a file adds it, give that file or its folder with --tasks-from."
        more += f" Run 'harness new language {first.language} --task {first.task}' to start adding it."
    elif all(" needs " in skip.reason and " offers " in skip.reason for skip in plan.skipped):
        more += ". Run 'harness models' to see what the models of other adapters can do."
    raise CapabilityError(f"Nothing is left to run. {listed}{more}")
