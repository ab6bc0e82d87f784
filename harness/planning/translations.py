"""Plans what translation makes: the variants `tt`, `te` and `bt` of test items, and translated training sets.

Those of training sets are of the translation-errors paper, and of XTREME-R (translate-train).
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from harness.data.origin import Origin
from harness.data.records import LIMIT_SEED
from harness.data.sources import DataFinder, DrawnRows, FoundData
from harness.data.translation.services import PairCheck
from harness.data.translation.variants import Step, TextChange
from harness.errors import MissingDataError, UsageError, near_names
from harness.languages.table import Language, known_languages
from harness.planning.evaluated_split import EvaluatedSplit
from harness.planning.run_config import RunConfig
from harness.registry.registry import Registry
from harness.specs.schema import Source, TaskSpec, Translate, source_language
from harness.specs.task_entry import TaskEntry

MACHINE_VARIANTS = ("tt", "te", "bt")
"""Variants that a translator makes."""
TRANSLATE_TRAIN = frozenset({"translate_train", "translate_train_all"})
TRAIN_VARIANTS = {
    "orig": "the training set as it is",
    "b-train": "translated into the pivot and back: a paraphrase",
    "t-train": "translated into the pivot",
    "bt-orig": "b-train and the training set as it is, together",
    "mt-LANGUAGE": "a third of it, translated into LANGUAGE",
}
"""Table 13 and section 3 of "Translation Errors Significantly Impact Low-Resource Languages" (EACL 2024)."""
THIRD = 1 / 3
DATA_SEED = 0
"""As in `harness.running.fit_store`: which training items a limit keeps depends on the item alone."""

Part = tuple[str, FoundData]
Find = Callable[[str, Source], FoundData]
"""Returns the training files of a language at a source."""
RELEASED = "released"
"""The value of ``--translator`` that reads published translations of training sets, and translates nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TranslatedVersion:
    """One translated version of a language's test items."""

    view: Mapping[str, str]
    found: FoundData
    text: Language
    """The language that the answer, and all context around it, is in."""


def beginning(spec: TaskSpec, variant: str, code: str) -> tuple[Source | None, str]:
    """Return the items that a translated variant of a language begins with, and their language; None without any."""
    assert spec.translate is not None
    origin = source_language(spec)
    if variant == "tt":
        return spec.translate.tt or spec.source(code, "test"), code
    if variant == "te" and spec.translate.te is not None:
        return spec.translate.te, code
    return spec.translate.source or spec.source(origin, "test"), origin


class VariantPlanner:
    """Plans the translated variants that a user asked for.

    Args:
        variants: Among others `tt` (the language's items, translated into the source language), `te` (the source
            language's items, translated into the language) and `bt` (there and back).
        translators: Values of ``--translator``.
        finder: Finds the files.
        limit: Of the items of a cell: items beyond it are not translated.
        split: The split that the entries of `plan` are evaluated on.

    Raises:
        UsageError: A variant needs a translator, and none was given; or the other way round.
    """

    def __init__(
        self,
        variants: Sequence[str],
        translators: Sequence[str],
        registry: Registry,
        finder: DataFinder,
        *,
        limit: int | None = None,
        romanised: str = "keep",
        split: EvaluatedSplit = "test",
    ) -> None:
        self.variants = tuple(dict.fromkeys(name for name in variants if name in MACHINE_VARIANTS))
        self._finder = finder
        self._limit = limit
        self._split = split
        self._pairs = PairCheck(registry)
        self._translators: Mapping[str, str] = {}
        if self.variants:
            self._translators = self._pairs.named(translators, f"The variant {self.variants[0]!r}")
        self._romanised = romanised
        if romanised not in {"keep", "skip"}:
            [self._romanised] = self._pairs.named([romanised], "--romanised").values()

    def translations(self) -> Iterator[tuple[str, str]]:
        """Yield every variant with the name of every translator."""
        return itertools.product(self.variants, self._translators)

    def plan(
        self, entry: TaskEntry, code: str, variant: str, translator: str, conditions: Mapping[str, str]
    ) -> TranslatedVersion:
        """Return the version of one language's items that a translator makes.

        Raises `MissingDataError` where the task does not say what is translated, files are missing, or the translator
        is known not to have a pair.
        """
        spec = entry.spec
        origin = source_language(spec)
        if spec.translate is None:
            raise MissingDataError(
                f"task {spec.task!r} does not say what is translated, so it has no variant {variant!r}",
                hint="Its spec needs 'translate: {fields: [...]}'.",
            )
        if code == origin:
            raise MissingDataError(
                f"task {spec.task!r} is written in {code!r}, so there is nothing to translate for {variant!r}"
            )
        if spec.translate.answers is not None:
            raise MissingDataError(
                f"task {spec.task!r} translates contexts with the answers in them, which only its training set has "
                f"translated, so there is no variant {variant!r}"
            )
        if conditions:
            raise MissingDataError(
                f"task {spec.task!r} crosses languages ({', '.join(conditions)}), which no translated variant does"
            )
        original = self._find(entry, spec.source(code, "test"), code)
        base, text, steps = self._begin(entry, code, origin, variant, original)
        reference = self._translators[translator]
        self._pairs.require_pair(translator, reference, steps)
        change = TextChange(
            translator=translator,
            reference=reference,
            steps=steps,
            fields=spec.translate.fields,
            romanised=self._romanised if variant == "tt" else "keep",
        )
        return TranslatedVersion(
            view={"variant": variant, "translator": translator},
            found=replace(
                base,
                change=change,
                aligned=None if base is original else original,
                drawn=self._drawn(spec, code),
            ),
            text=entry.languages.get(text),
        )

    def _drawn(self, spec: TaskSpec, code: str) -> DrawnRows | None:
        if self._limit is None or spec.draw == "clusters":
            return None
        language = None if spec.pairs(code) else code
        return DrawnRows(limit=self._limit, seed=LIMIT_SEED, task=spec.task, language=language)

    def _begin(
        self, entry: TaskEntry, code: str, origin: str, variant: str, own: FoundData
    ) -> tuple[FoundData, str, tuple[Step, ...]]:
        """Return the items that a variant begins with, the language of what stays as it is, and the steps."""
        assert entry.spec.translate is not None
        source, begin = beginning(entry.spec, variant, code)
        base = (
            own if variant == "tt" and entry.spec.translate.tt is None else self._find(entry, source, begin)
        )
        if variant == "tt":
            return base, origin, ((code, origin),)
        if variant == "te":
            return base, code, ((origin, code),)
        return base, origin, ((origin, code), (code, origin))

    def _find(self, entry: TaskEntry, source: Source | None, code: str) -> FoundData:
        spec = entry.spec
        if source is None:
            raise MissingDataError(
                f"task {spec.task!r} has no {self._split} split in {code!r}, which is to be translated"
            )
        return Origin.of(entry).find(self._finder, code, self._split, source=source)


class TrainVariants:
    """Changes the training parts of stages as a run asks for.

    Raises `UsageError` for an unknown variant, language or translator, and where there is no translator.
    """

    def __init__(self, config: RunConfig, registry: Registry) -> None:
        self._pairs = PairCheck(registry)
        self._variant = config.train_variant or "orig"
        self._pivot = config.train_pivot
        self._name, self._reference = "", ""
        self._given = config.translators
        self._limit = config.train_limit
        is_listed = self._variant in TRAIN_VARIANTS and self._variant != "mt-LANGUAGE"
        if not is_listed and not self._variant.startswith("mt-"):
            near = near_names(self._variant, TRAIN_VARIANTS)
            meant = f" Did you mean {near[0]!r}?" if near else ""
            raise UsageError(
                f"--train-variant must be one of {', '.join(TRAIN_VARIANTS)}, got {self._variant!r}.{meant}"
            )
        if not is_listed:
            known_languages().get(self._variant.removeprefix("mt-"))
        known_languages().get(self._pivot)
        if self._variant != "orig":
            self._open(f"--train-variant {self._variant}")

    def view(self, protocol: str) -> dict[str, str]:
        """Return the conditions that a translated training set makes."""
        if protocol in TRANSLATE_TRAIN:
            return {"train_translator": self._open(f"The protocol {protocol!r}")}
        if self._variant == "orig" or protocol != "zero_shot_transfer":
            return {}
        view = {"train_variant": self._variant, "train_translator": self._name}
        if not self._variant.startswith("mt-"):
            view["train_pivot"] = self._pivot
        return view

    def parts(
        self,
        stage: str,
        parts: Sequence[Part],
        translate: Translate | None,
        protocol: str,
        targets: Sequence[str],
        find: Find,
    ) -> list[Part]:
        """Return the training parts of a stage: language and files.

        Args:
            stage: The training set.
            parts: As they are.
            translate: What of it is translated.
            protocol: Of the cell; `translate_train_all` adds every language to the source's.
            targets: The cell's language, or all languages of the task.
            find: Returns the training files of a language and source.

        Raises:
            MissingDataError: The training set does not say what is translated, or the translator does not have a pair.
        """
        if protocol not in TRANSLATE_TRAIN and (self._variant == "orig" or protocol != "zero_shot_transfer"):
            return list(parts)
        if translate is None:
            raise MissingDataError(
                f"The training set {stage!r} does not say what is translated.",
                hint="Its document needs 'translate: {fields: [...]}'.",
            )
        changed: list[Part] = []
        for code, data in parts:
            if protocol in TRANSLATE_TRAIN:
                self._open(f"The protocol {protocol!r}")
                unchanged = [(code, data)] if protocol == "translate_train_all" or code in targets else []
                changed += unchanged
                new_targets = [target for target in targets if target != code]
                changed += [
                    (target, self._changed(stage, data, translate, ((code, target),), find))
                    for target in new_targets
                ]
            else:
                changed += self._variant_parts(stage, code, data, translate, find)
        return changed

    def _variant_parts(
        self, stage: str, code: str, found: FoundData, translate: Translate, find: Find
    ) -> list[Part]:
        def through(data: FoundData, *steps: Step) -> FoundData:
            return self._changed(stage, data, translate, steps, find)

        if self._variant.startswith("mt-"):
            target = self._variant.removeprefix("mt-")
            return [(target, through(replace(found, share=THIRD), (code, target)))]
        if self._variant == "t-train":
            return [(self._pivot, through(found, (code, self._pivot)))]
        back = (code, through(found, (code, self._pivot), (self._pivot, code)))
        return [back, (code, found)] if self._variant == "bt-orig" else [back]

    def _changed(
        self, stage: str, found: FoundData, translate: Translate, steps: tuple[Step, ...], find: Find
    ) -> FoundData:
        if any(source == target for source, target in steps):
            raise UsageError(
                f"The training set {stage!r} is in {steps[0][0]!r} already, so it cannot be translated into it.",
                hint="Give another language with --train-pivot or --train-variant mt-LANGUAGE.",
            )
        if self._reference == RELEASED:
            return _released(stage, found, translate, steps, find)
        self._pairs.require_pair(self._name, self._reference, steps)
        change = TextChange(
            translator=self._name,
            reference=self._reference,
            steps=steps,
            fields=translate.fields,
            answers=translate.answers,
        )
        drawn = None
        if self._limit is not None:
            drawn = DrawnRows(limit=self._limit, seed=DATA_SEED, task=stage, language=steps[-1][1])
        return replace(found, change=change, drawn=drawn)

    def _open(self, why: str) -> str:
        if not self._name:
            references = self._pairs.named(self._given, why)
            self._name, self._reference = next(iter(references.items()))
        return self._name


def _released(
    stage: str, found: FoundData, translate: Translate, steps: tuple[Step, ...], find: Find
) -> FoundData:
    """Return the published translation of a training set: its texts and answer spans are read as they are."""
    if translate.released is None or len(steps) > 1:
        pairs = " and ".join(f"{source}->{target}" for source, target in steps)
        raise MissingDataError(
            f"The training set {stage!r} has no released translation {pairs}.",
            hint="Name a translator with --translator that makes it.",
        )
    return replace(find(steps[0][1], translate.released), share=found.share)
