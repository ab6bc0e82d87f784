"""Training sets that were translated: the variants of the translation-errors paper, and translate-train of XTREME-R."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from harness.data.sources import DrawnRows, FoundData
from harness.data.translation.opening import PairCheck
from harness.data.translation.variants import Step, TextChange
from harness.errors import MissingDataError, UsageError, near_names
from harness.languages.table import known_languages
from harness.planning.plan import RunConfig
from harness.registry.registry import Registry
from harness.specs.schema import Translate

__all__ = ["TRAIN_VARIANTS", "TRANSLATE_TRAIN", "TrainVariants"]

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
        known = self._variant in TRAIN_VARIANTS and self._variant != "mt-LANGUAGE"
        if not known and not self._variant.startswith("mt-"):
            near = near_names(self._variant, TRAIN_VARIANTS)
            meant = f" Did you mean {near[0]!r}?" if near else ""
            raise UsageError(
                f"--train-variant must be one of {', '.join(TRAIN_VARIANTS)}, got {self._variant!r}.{meant}"
            )
        if not known:
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
    ) -> list[Part]:
        """Return the training parts of a stage: language and files.

        Args:
            stage: The training set.
            parts: As they are.
            translate: What of it is translated.
            protocol: Of the cell; `translate_train_all` adds every language to the source's.
            targets: The cell's language, or all languages of the task.

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
        for code, found in parts:
            if protocol in TRANSLATE_TRAIN:
                self._open(f"The protocol {protocol!r}")
                own = [(code, found)] if protocol == "translate_train_all" or code in targets else []
                changed += own
                others = [target for target in targets if target != code]
                changed += [
                    (target, self._changed(stage, found, translate, ((code, target),))) for target in others
                ]
            else:
                changed += self._variant_parts(stage, code, found, translate)
        return changed

    def _variant_parts(self, stage: str, code: str, found: FoundData, translate: Translate) -> list[Part]:
        if self._variant.startswith("mt-"):
            target = self._variant.removeprefix("mt-")
            third = replace(found, share=THIRD)
            return [(target, self._changed(stage, third, translate, ((code, target),)))]
        if self._variant == "t-train":
            return [(self._pivot, self._changed(stage, found, translate, ((code, self._pivot),)))]
        back = (code, self._changed(stage, found, translate, ((code, self._pivot), (self._pivot, code))))
        return [back, (code, found)] if self._variant == "bt-orig" else [back]

    def _changed(
        self, stage: str, found: FoundData, translate: Translate, steps: tuple[Step, ...]
    ) -> FoundData:
        if any(source == target for source, target in steps):
            raise UsageError(
                f"The training set {stage!r} is in {steps[0][0]!r} already, so it cannot be translated into it.",
                hint="Give another language with --train-pivot or --train-variant mt-LANGUAGE.",
            )
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
            named = self._pairs.named(self._given, why)
            self._name, self._reference = next(iter(named.items()))
        return self._name
