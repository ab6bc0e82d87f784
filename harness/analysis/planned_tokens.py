"""Tokens that a plan will read and write, by task and language, before a model is opened.

They come from the model's own tokenizer where its files are on this machine. Else they are estimated: from the tokens
per character that an earlier run measured in the same language, or, without one, as a token per four UTF-8 bytes, which
is about right for English alone.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from harness.planning.plan import Cell, Model
from harness.prompts.prompter import Prompter
from harness.registry.registry import Registry
from harness.running.cell_reader import CellReader
from harness.storage.run_folder import Run

SAMPLE = 200
"""Items of a cell whose prompts are built; the tokens of larger cells are scaled."""
BYTES_PER_TOKEN = 4
Count = Callable[[Sequence[str]], list[int]]


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


class TokenCounter:
    """Counts the tokens of texts in a language.

    Args:
        count: The model's own tokenizer; None where it is not on this machine.
        rates: Language -> tokens per character.
    """

    def __init__(self, count: Count | None, rates: Mapping[str, float]) -> None:
        self._count = count
        self._rates = rates
        self.estimates = count is None

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
        if self._count is not None:
            return sum(self._count(texts))
        rate = self._rates.get(language)
        if rate is not None:
            return rate * sum(map(len, texts))
        return sum(text_size(text) for text in texts)


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
        count = len(items)
        examples = list(itertools.islice(itertools.chain.from_iterable(items.chunks(SAMPLE)), SAMPLE))
        prompter = reader.prompter(cell)
        read = list(
            itertools.chain.from_iterable(_texts(cell, example, prompter, registry) for example in examples)
        )
        written = sum(_limit_of_answer(cell, example, prompter) for example in examples)
        scale = count / max(1, len(examples))
        sums = (count, counter.tokens(read, cell.text_language.code) * scale, written * scale)
        total = rows.setdefault((cell.spec.task, cell.language.code), [0.0, 0.0, 0.0])
        rows[cell.spec.task, cell.language.code] = [
            before + added for before, added in zip(total, sums, strict=True)
        ]
    return [
        PlannedTokens(
            task=task,
            language=code,
            items=round(items),
            input=round(read),
            output=round(written),
            estimated=counter.estimates,
        )
        for (task, code), (items, read, written) in rows.items()
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


def _limit_of_answer(cell: Cell, example: Any, prompter: Prompter | None) -> int:
    if prompter is None or cell.pairing.method.name == "rank":
        return 0
    return prompter.options(example).max_tokens * prompter.repeats
