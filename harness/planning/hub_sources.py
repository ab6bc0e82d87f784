"""The Hub datasets of tasks: what the Hub says of each split, and how much a run would download."""

from __future__ import annotations

import itertools
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from harness.data.origin import Origin
from harness.data.resolve import DataRef, SourceState, is_made
from harness.planning.resolution import LEARNED
from harness.registry.registry import Registry
from harness.specs.catalog import Catalog
from harness.specs.schema import SPLITS, Source, source_language
from harness.specs.selection import SelectedTask


@dataclass(frozen=True, slots=True)
class HubSources:
    """The splits that the Hub has of tasks, and of the training sets of their stages."""

    selected: Iterable[SelectedTask]
    registry: Registry
    catalog: Catalog
    cache: Path
    """Where prepared splits are kept."""

    def states(self) -> list[tuple[DataRef, SourceState]]:
        """Return the state on the Hub of every split, variants and pools included."""
        return self._ask(list(self._refs()), footers=True)

    def downloads(self, train_languages: Collection[str]) -> tuple[Mapping[str, int], Collection[str]]:
        """Return files and bytes that a run would fetch at most, and the datasets whose conditions were not accepted.

        A run reads test sets, and what its model may be trained and chosen on.
        """
        learnt = {*train_languages, *(source_language(item.entry.spec) for item in self.selected)}
        refs = [ref for ref in self._refs() if ref.split not in LEARNED or ref.language in learnt]
        states = self._ask(refs, footers=False)
        gated = dict.fromkeys(ref.hub.path for ref, state in states if ref.hub and state.state == "gated")
        return {name: size for _, state in states for name, size in state.files.items()}, gated

    def _ask(self, refs: list[DataRef], *, footers: bool) -> list[tuple[DataRef, SourceState]]:
        states = self.registry.inspect_data(refs, self.cache, footers=footers) if refs else ()
        return list(zip(refs, states, strict=False))  # no states without a plugin that knows them

    def _refs(self) -> Iterator[DataRef]:
        keys: set[str] = set()
        for origin, code, split, source in self._sources():
            for ref in () if source is None else origin.refs(code, split, source):
                key = f"{ref.owner} {ref.language} {ref.hub}"
                if ref.hub is not None and not is_made(ref) and key not in keys:
                    keys.add(key)
                    yield ref

    def _sources(self) -> Iterator[tuple[Origin, str, str, Source | None]]:
        for item in self.selected:
            spec, origin = item.entry.spec, Origin.of(item.entry)
            further = [pair for variant in spec.variants.values() for pair in variant.splits.items()]
            for code in item.languages:
                yield from ((origin, code, split, origin.source(code, split)) for split in SPLITS)
                yield from ((origin, code, split, source) for split, source in further)
                yield origin, code, "candidates", spec.pool_source
            for name in spec.transfer.stages if spec.transfer else ():
                stage = Origin.named(name, self.catalog)
                for code, split in itertools.product(stage.spec.languages, LEARNED):
                    yield stage, code, split, stage.source(code, split)
