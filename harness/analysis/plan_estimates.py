"""What a plan costs and what it can show: its tokens, and the smallest true differences that its items would show.

Tokens are counted before a model is opened. They come from the model's own tokenizer where its files are on this
machine. Else they are estimated: from the tokens per character that an earlier run measured in the same language, or,
without one, as a token per four UTF-8 bytes, which is about right for English alone.

A difference is shown that a paired test finds in four of five runs. The items and clusters are those of the data at
hand. How much two systems differ from item to item is assumed, or taken from runs that there are: from the spread of
one run's items, or from the paired differences of two runs.
"""

from __future__ import annotations

import itertools
import math
import operator
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from harness.analysis.comparison import compare
from harness.data.records import LIMIT_SEED, draw
from harness.errors import UsageError
from harness.planning.plan import Cell, Model
from harness.prompts.prompter import Prompter
from harness.registry.registry import Registry
from harness.running.cell_reader import CellReader
from harness.statistics import detectable_difference, draw_codes, needed_groups, paired_sd
from harness.statistics.significance import mean_sd
from harness.storage.run_folder import Run

SAMPLE = 200
"""Items of a cell whose prompts are built; the tokens of larger cells are scaled."""
BYTES_PER_TOKEN = 4
Count = Callable[[Sequence[str]], list[int]]
Deviations = Mapping[tuple[str, str], float]
"""By task and language: the standard deviation of the paired difference of one draw."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedTokens:
    """Tokens of the cells of a task in a language."""

    task: str
    language: str
    items: int
    input: int
    output: int
    """At most: the limit of every answer that is written; a ranked answer is part of the input."""
    estimated: bool
    """Whether they do not come from the model's tokenizer."""

    def cost(self, price: tuple[float, float]) -> float:
        """Return the price of input and output, where `price` is that of a million tokens of each."""
        return (self.input * price[0] + self.output * price[1]) / 1_000_000


@dataclass(frozen=True, slots=True)
class TokenCounter:
    """Counts the tokens of texts in a language."""

    count: Count | None
    """The model's own tokenizer; None where it is not on this machine."""
    rates: Mapping[str, float]
    """Language -> tokens per character."""

    @property
    def estimates(self) -> bool:
        """Whether the tokens do not come from the model's tokenizer."""
        return self.count is None

    @classmethod
    def of(cls, model: Model, runs: Sequence[Run] = ()) -> TokenCounter:
        """Return the counter of a model, which estimates from runs where its tokenizer is not here."""
        sums: dict[str, list[int]] = {}
        for ledger, code in ((cell.ledger or {}, cell.language) for run in runs for cell in run.cells):
            tokens, characters = ledger.get("tokens", 0), ledger.get("characters", 0)
            if tokens and characters:
                total = sums.setdefault(code, [0, 0])
                total[0], total[1] = total[0] + tokens, total[1] + characters
        return cls(
            model.entry.open_tokenizer(model.description, model.options),
            {code: tokens / characters for code, (tokens, characters) in sums.items()},
        )

    def tokens(self, texts: Sequence[str], language: str) -> float:
        """Return the tokens of all texts."""
        if self.count is not None:
            return sum(self.count(texts))
        rate = self.rates.get(language)
        return sum(map(text_size, texts)) if rate is None else rate * sum(map(len, texts))


def text_size(text: str) -> float:
    """Return the tokens of a text as the number of its UTF-8 bytes allows."""
    return len(text.encode("utf-8", "surrogatepass")) / BYTES_PER_TOKEN


def planned_tokens(
    cells: Sequence[Cell], reader: CellReader, registry: Registry, counter: TokenCounter, limit: int | None
) -> list[PlannedTokens]:
    """Return the tokens of every task and language of a plan, trainings not counted.

    Args:
        cells: Those of the plan; cells of one task and language (seeds, prompts) are added up.
        reader: Reads their items and shots.
        registry: Has the kinds.
        counter: Counts tokens.
        limit: At most so many items a cell.
    """
    rows: dict[tuple[str, str], list[float]] = {}
    for cell in cells:
        items, _ = reader.items(cell, limit=limit)
        examples = list(itertools.islice(itertools.chain.from_iterable(items.chunks(SAMPLE)), SAMPLE))
        prompter = reader.prompter(cell)
        texts = [text for example in examples for text in _texts(cell, example, prompter, registry)]
        written = 0
        if prompter is not None and cell.pairing.method.name != "rank":
            written = sum(prompter.options(example).max_tokens * prompter.repeats for example in examples)
        scale = len(items) / max(1, len(examples))
        sums = (len(items), counter.tokens(texts, cell.text_language.code) * scale, written * scale)
        total = rows.setdefault((cell.spec.task, cell.language.code), [0.0, 0.0, 0.0])
        total[:] = map(operator.add, total, sums)
    return [
        PlannedTokens(
            task=task,
            language=code,
            items=round(count),
            input=round(read),
            output=round(written),
            estimated=counter.estimates,
        )
        for (task, code), (count, read, written) in rows.items()
    ]


def _texts(cell: Cell, example: Any, prompter: Prompter | None, registry: Registry) -> Iterator[str]:
    """Yield the texts that a model reads for an item: each choice with its context, each answer with its prompt."""
    kind = registry.kinds.get(cell.spec.kind)
    if prompter is None:
        yield from () if kind.texts is None else kind.texts(example, cell.spec)
    elif cell.pairing.method.name == "rank":
        ranked = prompter.ranking(example, prompter.shots)
        yield from (ranked.context + continuation for continuation in ranked.continuations)
    else:
        prompt = prompter.generation(example, prompter.shots)
        text = prompt if isinstance(prompt, str) else "\n".join(turn.text for turn in prompt)
        yield from itertools.repeat(text, prompter.repeats)


@dataclass(frozen=True, slots=True, kw_only=True)
class Assumption:
    """Assumptions about two systems."""

    score: float = 0.5
    """Share of items that each has right; 0.5 is the most cautious."""
    correlation: float = 0.5
    """Of their item scores."""
    runs: tuple[Run, ...] = ()
    """One run, whose items give the spread of each system's scores; or two, whose paired differences are taken."""
    detect: float | None = None
    """A difference, as a fraction, of which the needed items and languages are wanted."""

    def __post_init__(self) -> None:
        """Raise `UsageError` for numbers that have no meaning."""
        if not 0 < self.score < 1:
            raise UsageError(
                f"--score {self.score:g} is no expected score; expected more than 0 and less than 1."
            )
        if not -1 <= self.correlation < 1:
            raise UsageError(f"--correlation {self.correlation:g} is none below 1; expected -1 to 0.99.")
        if self.detect is not None and not 0 < self.detect < 1:
            raise UsageError(f"--detect must be more than 0 and less than 100, got {self.detect * 100:g}.")
        if len(self.runs) > 2:
            raise UsageError(
                f"--assume was given {len(self.runs)} runs; expected one, or two to be compared."
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class Detectable:
    """The smallest detectable difference in one language, or in the mean over the languages of a task."""

    task: str
    view: Mapping[str, str]
    language: str | None
    """None for the mean over languages."""
    items: int
    clusters: int
    """Independent draws: the translations of an item are one where the task is parallel."""
    sd: float | None
    """Standard deviation of the paired difference of one draw; None for a mean."""
    assumed: bool
    """Whether the deviation is assumed, for this language or for one of the task; False where runs give it."""
    difference: float | None
    """As a fraction, at 80 % power and 5 % two-sided; None where these items show no difference at all."""
    needed_items: int | None = None
    """Items per language with clusters of this size that show the wanted difference; None where none is wanted."""
    needed_languages: int | None = None
    """Of a mean: languages of this size that show it; None where more languages bring no further draws."""


_Items = tuple[str, list[str], list[str | None]]
"""The language, its ids and their clusters."""


def detectable_differences(
    cells: Sequence[Cell],
    reader: CellReader,
    registry: Registry,
    assumption: Assumption,
    *,
    limit: int | None = None,
) -> list[Detectable]:
    """Return the smallest detectable differences of every task and view, each language and then their mean.

    The items of a cluster count as one draw, as if they were all right or all wrong together: with an assumed score
    this is the largest difference that could be needed.

    Args:
        cells: Those of a plan; the test data of each task, view and language are read once.
        reader: Reads them.
        registry: Has the kinds.
        assumption: What is assumed about the systems.
        limit: At most so many items a cell.
    """
    measured = _measured(assumption, registry)
    groups: dict[tuple[str, str], tuple[Cell, dict[str, str], dict[str, Cell]]] = {}
    for cell in cells:
        view = {name: value for name, value in cell.view.items() if name in {"variant", *cell.spec.axes}}
        _, _, by_language = groups.setdefault((cell.spec.task, repr(sorted(view.items()))), (cell, view, {}))
        by_language.setdefault(cell.language.code, cell)
    detectables: list[Detectable] = []
    for first, view, members in groups.values():
        per_language = [_items(cell, reader, registry, limit) for cell in members.values()]
        detectables += _of_task(first, view, per_language, measured, assumption)
    return detectables


def _of_task(
    cell: Cell,
    view: Mapping[str, str],
    per_language: Sequence[_Items],
    measured: Deviations,
    assumption: Assumption,
) -> Iterator[Detectable]:
    """Yield the detectable difference of every language of a task, then that of their mean."""
    task, detect = cell.spec.task, assumption.detect
    usual = paired_sd(assumption.score, assumption.correlation)
    by_language = []
    for code, ids, clusters in per_language:
        sd, draws = measured.get((task, code), usual), _draws([(code, ids, clusters)], linked=False)
        language = Detectable(
            task=task,
            view=view,
            language=code,
            items=len(ids),
            clusters=draws,
            sd=sd,
            assumed=(task, code) not in measured,
            difference=detectable_difference(sd, draws),
            needed_items=_needed_items(sd, detect, len(ids), draws),
        )
        by_language.append((language, sd))
        yield language
    count = len(by_language)
    if count < 2:
        return
    items = sum(language.items for language, _ in by_language)
    groups, deviations = [language.clusters for language, _ in by_language], [sd for _, sd in by_language]
    mean: float | None = None
    needed_items = needed_languages = None
    if cell.spec.parallel:
        # As if the translations of an item were right or wrong together, which is the most cautious, too.
        draws = _draws(per_language, linked=True, unpaired=cell.spec.unpaired)
        mean = sum(deviations) / count
        needed_items = _needed_items(mean, detect, items // count, draws)
    else:
        draws = sum(groups)
        mean = mean_sd(deviations, groups) if all(groups) else None
        if detect is not None and mean is not None:
            # The spread of a mean over languages like these falls with the root of their number; with that of their
            # items, too, which are as many in each language as in the mean one.
            needed_languages = needed_groups(mean / math.sqrt(draws / count), detect, draws=draws / count)
            needed_items = math.ceil(items / count * needed_languages / count)
    yield Detectable(
        task=task,
        view=view,
        language=None,
        items=items,
        clusters=draws,
        sd=None,
        assumed=any(language.assumed for language, _ in by_language),
        difference=None if mean is None else detectable_difference(mean, draws),
        needed_items=needed_items,
        needed_languages=needed_languages,
    )


def _needed_items(sd: float, detect: float | None, items: int, groups: int) -> int | None:
    """Return the items that show a difference, in clusters of the size of those at hand."""
    return math.ceil(needed_groups(sd, detect) * items / groups) if detect is not None and groups else None


def _draws(per_language: Sequence[_Items], *, linked: bool, unpaired: Sequence[str] = ()) -> int:
    return int(draw_codes(per_language, linked=linked, unpaired=unpaired).max(initial=-1)) + 1


def _items(cell: Cell, reader: CellReader, registry: Registry, limit: int | None) -> _Items:
    """Return the ids and clusters of the labelled items that a limit keeps."""
    examples: Iterable[Any]
    if cell.pool is None:
        chunks = reader.stream(cell, limit=limit, seed=LIMIT_SEED).chunks(2_048)
        examples = itertools.chain.from_iterable(chunks)
    else:
        pooled, _ = reader.read(cell)
        language = None if cell.spec.pairs(cell.language.code) else cell.language.code
        ids = [example.id for example in pooled]
        rows = draw(ids, limit, seed=LIMIT_SEED, task=cell.spec.task, language=language)
        examples = (pooled[row] for row in rows)
    reference = registry.kinds.get(cell.spec.kind).reference
    labelled = [(example.id, example.cluster) for example in examples if reference(example) is not None]
    return cell.language.code, [name for name, _ in labelled], [cluster for _, cluster in labelled]


def _measured(assumption: Assumption, registry: Registry) -> Deviations:
    """Return the measured deviations of runs, of the first headline metric of each task."""
    if len(assumption.runs) == 2:
        return {
            (task.task, language.language): difference.se * math.sqrt(difference.groups)
            for task in compare(assumption.runs, registry.metrics).tasks
            for language in task.languages
            if (difference := language.scores[0].differences[1]) is not None
            and difference.se
            and difference.groups
        }
    deviations = {}
    for run in assumption.runs:
        for cell in run.cells:
            score = cell.metrics.get(run.manifest.tasks[cell.task].headline[0])
            if score is not None and score.se and score.clusters:
                spread = score.se * math.sqrt(score.clusters)
                deviations[cell.task, cell.language] = spread * math.sqrt(2 * (1 - assumption.correlation))
    return deviations
