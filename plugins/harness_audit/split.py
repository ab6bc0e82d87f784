"""The splits that an audit reads: all tests of a task, and all that a model of it learns from; and items in two splits.

Items are in two splits where their texts are equal, or most of the wording is.
"""

from __future__ import annotations

import itertools
import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from textwrap import shorten
from typing import TYPE_CHECKING, Any
from zlib import crc32

from harness import DataError, MissingDataError, UsageError
from harness.checks import Finding, Note
from harness.data import CandidatePool, find_split
from harness.kinds import ReadContext, read_examples
from harness.specs import described_languages

if TYPE_CHECKING:
    from harness.data import DataFinder, FoundData
    from harness.registry import Registry
    from harness.specs import Catalog, TaskEntry, TaskSpec, TrainingSpec

NAMED = 3
"""Items that a sentence names."""
LEARNED = ("train", "validation")
NEAR = 0.8
WIDTH = 3
SKETCH = 4
LEAST_TOKENS = 8
"""Tokens of the shortest text for which a near duplicate is looked for: shorter ones are alike by chance."""
MOST_COMPARED = 64
"""Texts with the same hash that are compared: a hash that more share is that of a formula."""
SHOWN = 60
"""Characters of the text that a finding shows."""
# Where writing has no spaces, every character is a token.
_TOKEN = re.compile(r"[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff]|[^\W_]+")


def named_ids(ids: Sequence[str]) -> str:
    """Return the first ids of items, as a sentence names them: their own, or their number in the file."""
    more = ", ..." if len(ids) > NAMED else ""
    return f"{'items' if len(ids) > 1 else 'item'} {', '.join(map(repr, ids[:NAMED]))}{more}"


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditedSplit:
    """The examples of one split in one language, under one value of every axis."""

    owner: str
    language: str
    split: str
    axes: tuple[str, ...]
    """The values of the task's axes."""
    found: FoundData
    examples: Sequence[Any]

    @property
    def title(self) -> str:
        """Return ``test``, or ``test, one x two`` with axes."""
        return self.split + "".join(f", {value}" for value in self.axes)

    def finding(self, check: str, expected: str, found: str) -> Finding:
        """Return a fault of this split of a task."""
        return Finding(
            task=self.owner, languages=(self.language,), check=check, expected=expected, found=found
        )

    def note(self, check: str, text: str) -> Note:
        """Return a note about this split of a task."""
        return Note(task=self.owner, languages=(self.language,), check=check, text=text)


class SplitReader:
    """Reads the splits of one task; what cannot be read is kept as a finding, what is not there as a reason."""

    def __init__(self, entry: TaskEntry, registry: Registry, catalog: Catalog, finder: DataFinder) -> None:
        self._entry = entry
        self._registry = registry
        self._catalog = catalog
        self._finder = finder
        self.findings: list[Finding] = []
        self.missing: dict[str, None] = {}
        """Languages without test items."""
        self._asked: dict[tuple[str, str], bool] = {}
        """Whether any file was found of a split, by owner and name."""
        self._pools: dict[tuple[str, ...], CandidatePool] = {}
        """By the languages that add to it."""

    @property
    def pool_missing(self) -> tuple[str, ...]:
        """Languages whose candidates are not in the pool of the task."""
        return tuple(dict.fromkeys(code for pool in self._pools.values() for code in pool.missing))

    def test_files(self, code: str) -> str:
        """Return how a spec names the test items of a language."""
        source = self._entry.spec.source(code, "test")
        if source is None:
            return "no source"
        paths = [path for files in source.alternatives for path in files.paths]
        if not paths:
            return "the Hub" if source.hub else "the web" if source.web else "no source"
        return " or ".join(dict.fromkeys(map(repr, paths)))

    def missing_learned(self) -> list[str]:
        """Return the splits to learn from that the specs name and that were not found, once `learned` was read."""
        return [
            f"the {split} split of {owner!r}"
            for (owner, split), exists in self._asked.items()
            if split in LEARNED and not exists
        ]

    def tests(self) -> Iterator[AuditedSplit]:
        """Yield the test items of every language that is found, under every value of the task's axes."""
        self.missing = dict.fromkeys(self._entry.spec.languages)
        yield from self._splits(self._entry, list(self._entry.spec.languages), ("test",))

    def learned(self) -> Iterator[AuditedSplit]:
        """Yield the training and validation sets of the task and its stages: all languages of what is its own."""
        spec = self._entry.spec
        stages: tuple[str, ...] = () if spec.transfer is None else spec.transfer.stages
        for name in dict.fromkeys((spec.task, *stages)):
            if name == spec.task:
                yield from self._splits(self._entry, list(spec.languages), LEARNED)
            elif name in self._catalog.names("training"):
                yield from self._training(name)
            elif spec.transfer is not None:
                yield from self._splits(self._catalog.task(name), [spec.transfer.source], LEARNED)

    def _splits(
        self, entry: TaskEntry, codes: Sequence[str], splits: Sequence[str]
    ) -> Iterator[AuditedSplit]:
        spec = entry.spec
        for code, split in itertools.product(codes, splits):
            for values in itertools.product(*spec.axes.values()) if code in spec.languages else ():
                conditions = dict(zip(spec.axes, values, strict=True))
                language, folder = entry.languages.get(code), entry.folders.get(code)
                audited = self._read(spec, spec.task, language, split, folder, conditions)
                if audited is not None:
                    yield audited

    def _training(self, name: str) -> Iterator[AuditedSplit]:
        training, document = self._catalog.training(name)
        languages = described_languages(training)
        for code, split in itertools.product(training.languages, LEARNED):
            audited = self._read(training, name, languages.get(code), split, document.folder, {})
            if audited is not None:
                yield audited

    def _read(
        self,
        spec: TaskSpec | TrainingSpec,
        owner: str,
        language: Any,
        split: Any,
        folder: Any,
        conditions: Mapping[str, str],
    ) -> AuditedSplit | None:
        source = spec.source(language.code, split)
        if source is None:
            return None
        self._asked.setdefault((owner, split), False)
        try:
            resolved = find_split(self._finder, source, owner, language, split, folder, conditions)
        except MissingDataError:
            return None
        self._asked[owner, split] = True
        if split == "test":
            self.missing.pop(language.code, None)
        kind = self._registry.kinds.get(spec.kind)
        try:
            cluster = getattr(spec, "cluster", None) if split == "test" else None
            context = ReadContext.of(spec, owner, language.code, split, resolved.label_map, cluster=cluster)
            examples = read_examples(kind, self._finder.rows(resolved), context)
            if split == "test" and kind.join is not None and self._entry.spec.pool_source is not None:
                pool = self._candidates(language.code)
                examples = examples if pool is None else kind.join(examples, pool)
        except (DataError, UsageError) as error:
            # A reader rejects options that do not fit the file only when it reads.
            self.findings.append(
                Finding(
                    task=self._entry.spec.task,
                    languages=(language.code,),
                    check="data",
                    expected=f"a readable {split} split of {owner!r}",
                    found=str(error).rstrip("."),
                )
            )
            return None
        return AuditedSplit(
            owner=owner,
            language=language.code,
            split=split,
            axes=tuple(conditions.values()),
            found=resolved,
            examples=examples,
        )

    def _candidates(self, language: str) -> CandidatePool | None:
        """Return the pool of a language's queries, read once; None where none of its files is found."""
        codes = self._entry.pool_languages(language)
        pool = self._pools.get(codes) or self._read_pool(codes)
        if pool is not None:
            self._pools[codes] = pool
        return pool

    def _read_pool(self, codes: Sequence[str]) -> CandidatePool | None:
        spec, source = self._entry.spec, self._entry.spec.pool_source
        make = self._registry.kinds.get(spec.kind).candidate
        if source is None or make is None:
            return None
        candidates, read, missing = [], [], []
        for code in codes:
            language, folder = self._entry.languages.get(code), self._entry.folders.get(code)
            try:
                resolved = find_split(self._finder, source, spec.task, language, "candidates", folder)
            except MissingDataError:
                missing.append(code)
                continue
            context = ReadContext(owner=spec.task, language=code, split="test", inputs=spec.input_names)
            candidates += [make(row, context) for row in self._finder.rows(resolved)]
            read.append(code)
        if not candidates:
            return None
        return CandidatePool(candidates, owner=spec.task, languages=read, missing=missing)


@dataclass(frozen=True, slots=True, kw_only=True)
class Overlap:
    """How many texts of one split are also in another."""

    exact: int
    near: int
    of: int
    example: tuple[str, str] | None
    """Ids of the first pair: in this split, in the other."""
    text: str = ""
    """The beginning of that item's text in this split."""


def item_text(example: Any) -> str:
    """Return all text of an item that a model reads, without labels; empty for records without text."""
    tokens = getattr(example, "tokens", ())
    if tokens:
        # Some files also have the raw text, others not.
        return " ".join(tokens)
    if hasattr(example, "inputs") and example.inputs:
        texts = [*example.inputs.values(), *getattr(example, "choices", ())]
    else:
        names = ("question", "context", "query", "passage", "text", "before", "right", "after", "source")
        texts = [value for name in names if isinstance(value := getattr(example, name, None), str)]
        texts += getattr(example, "choices", ())
    return " ".join(texts)


def text_tokens(text: str) -> list[str]:
    """Return the tokens by which texts are compared: words without case; characters in scripts without spaces."""
    return _TOKEN.findall(unicodedata.normalize("NFKC", text).casefold())


def _shingles(tokens: Sequence[str]) -> frozenset[int]:
    runs = (" ".join(tokens[start : start + WIDTH]) for start in range(len(tokens) - WIDTH + 1))
    return frozenset(crc32(run.encode("utf-8", "surrogatepass")) for run in runs)


def _one_changed(tokens: Sequence[str], candidate: Sequence[str]) -> bool:
    if len(tokens) != len(candidate):
        return False
    return sum(first != second for first, second in zip(tokens, candidate, strict=True)) == 1


class TextIndex:
    """The texts of one split, to be looked up by those of others."""

    def __init__(self, examples: Iterable[Any]) -> None:
        self._exact: dict[str, str] = {}
        self._sketches: dict[int, list[int]] = {}
        self._shingles: list[frozenset[int]] = []
        self._tokens: list[list[str]] = []
        self._ids: list[str] = []
        for example in examples:
            tokens = text_tokens(item_text(example))
            if not tokens or " ".join(tokens) in self._exact:
                continue
            self._exact[" ".join(tokens)] = example.id
            if len(tokens) < LEAST_TOKENS:
                continue
            shingles = _shingles(tokens)
            for value in sorted(shingles)[:SKETCH]:
                self._sketches.setdefault(value, []).append(len(self._ids))
            self._shingles.append(shingles)
            self._tokens.append(tokens)
            self._ids.append(example.id)

    def overlap(self, examples: Iterable[Any]) -> Overlap:
        """Return how many of the items stand here, each counted once."""
        exact = near = size = 0
        first: tuple[str, str] | None = None
        text = ""
        for example in examples:
            size += 1
            tokens = text_tokens(item_text(example))
            duplicate = self._exact.get(" ".join(tokens)) if tokens else None
            if duplicate is not None:
                exact += 1
            elif len(tokens) >= LEAST_TOKENS and (duplicate := self._near(tokens)) is not None:
                near += 1
            if duplicate is not None and first is None:
                first = (example.id, duplicate)
                text = shorten(item_text(example), SHOWN, placeholder=" ...") or item_text(example)[:SHOWN]
        return Overlap(exact=exact, near=near, of=size, example=first, text=text)

    def _near(self, tokens: Sequence[str]) -> str | None:
        shingles = _shingles(tokens)
        for value in sorted(shingles)[:SKETCH]:
            for row in self._sketches.get(value, ())[:MOST_COMPARED]:
                candidate = self._shingles[row]
                alike = len(shingles & candidate) >= NEAR * len(shingles | candidate)
                if alike or _one_changed(tokens, self._tokens[row]):
                    return self._ids[row]
        return None
