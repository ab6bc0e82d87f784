"""Plans what translation makes: the variants `tt`, `te` and `bt` of test items, and translated training sets."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from harness.data.sampling import LIMIT_SEED
from harness.data.sources import DataFinder, DrawnRows, FoundData, find_split
from harness.data.translation.opening import PairCheck
from harness.data.translation.variants import Step, TextChange
from harness.errors import MissingDataError
from harness.languages.table import Language
from harness.registry.registry import Registry
from harness.specs.schema import Source, TaskSpec
from harness.specs.task_entry import TaskEntry

MACHINE_VARIANTS = ("tt", "te", "bt")
"""Variants that a translator makes."""

__all__ = ["MACHINE_VARIANTS", "TranslatedVersion", "VariantPlanner", "beginning", "source_language"]


@dataclass(frozen=True, slots=True, kw_only=True)
class TranslatedVersion:
    """One translated version of a language's test items."""

    view: Mapping[str, str]
    found: FoundData
    text: Language
    """The language that the answer, and all context around it, is in."""


def source_language(spec: TaskSpec) -> str:
    """Return the language that a task's items were written in and its labels come from."""
    return "en" if spec.transfer is None else spec.transfer.source


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
    ) -> None:
        self.variants = tuple(dict.fromkeys(name for name in variants if name in MACHINE_VARIANTS))
        self._finder = finder
        self._limit = limit
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
        if conditions:
            raise MissingDataError(
                f"task {spec.task!r} crosses languages ({', '.join(conditions)}), which no translated variant does"
            )
        own = self._find(entry, spec.source(code, "test"), code)
        base, text, steps = self._begin(entry, code, origin, variant, own)
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
                base, change=change, aligned=None if base is own else own, drawn=self._drawn(spec, code)
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
                f"task {spec.task!r} has no test split in {code!r}, which is to be translated"
            )
        # A task without its source language (XCOPA) finds its items below the folder of any language it has.
        folder = entry.folders.get(code) or next(iter(entry.folders.values()), None)
        language = entry.languages.get(code)
        return find_split(self._finder, source, spec.task, language, "test", folder)
