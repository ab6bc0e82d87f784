"""Prompt building: documents of XNLI, XCOPA and XQuAD per CPU second, against lm-eval's `Task.build_all_requests`.

The same documents and, to the character, the same prompts: lm-eval's own task files, our `lm_eval-bugcompat`. Ours is
the way from examples to the requests that an adapter is given. The limit for XNLI is 10,000 documents a CPU second.
Run: make bench, or python -m benchmarks.prompt_building [--documents N] [--rounds N]
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from benchmarks.decoder_items import LANGUAGES, DecoderItems, made_up
from benchmarks.lm_eval_peer import ask
from benchmarks.measuring import record
from harness.data.sources import DataFinder, data_ref
from harness.kinds.kind import ReadContext, read_examples
from harness.models.requests import Generated, GenerateOptions, LikelihoodAnswer, LikelihoodRequest, Prompt
from harness.planning.run_config import data_options
from harness.prompts.asking import generate_answers, rank_choices
from harness.prompts.preset import compile_prompt
from harness.prompts.prompter import Prompter
from harness.running.session import Session, open_session

PRESET = "lm_eval-bugcompat"
LIMIT = 10_000


class _AskedError(Exception):
    """The requests are made; nothing answers them."""


class _Asked:
    """In a model's place: keeps what it is asked, and stops there."""

    def __init__(self) -> None:
        self.requests: list[Any] = []

    def loglikelihood(self, requests: Sequence[LikelihoodRequest]) -> list[LikelihoodAnswer]:
        self.requests = list(requests)
        raise _AskedError

    def generate(self, prompts: Sequence[Prompt], options: Sequence[GenerateOptions]) -> list[Generated]:
        self.requests = list(zip(prompts, options, strict=True))
        raise _AskedError


def examples_of(session: Session, task: str, folder: Path) -> list[Any]:
    """Return a task's items in the files below `folder`, as a run reads them."""
    entry = session.catalog.task(task)
    spec, language = entry.spec, LANGUAGES[task]
    kind = session.registry.kinds.get(spec.kind)
    source = spec.source(language, "test")
    assert source is not None
    finder = DataFinder(data_options([folder]), session.registry, folder / "cache")
    ref = data_ref(
        source,
        owner=spec.task,
        language=entry.languages.get(language),
        split="test",
        folder=entry.folders[language],
    )
    found = finder.find(source, ref)
    context = ReadContext.of_test(spec, language, found.label_map)
    return read_examples(kind, finder.rows(found), context)


def builder(session: Session, task: str, examples: Sequence[Any]) -> Callable[[], int]:
    """Return what makes all requests of a task, and returns their number."""
    spec = session.catalog.prompt(task, PRESET)
    kind = session.registry.kinds.get(session.catalog.task(task).spec.kind)
    assert kind.prompt_item is not None
    compiled = compile_prompt(spec, LANGUAGES[task], inherited=session.catalog.inherited_prompt(spec))
    prompter = Prompter(prompt=compiled, item=kind.prompt_item, task=task, language=LANGUAGES[task])

    def build() -> int:
        asked = _Asked()
        try:
            if spec.formulation == "generation":
                generate_answers(asked, examples, prompter, prompter.options, lambda *_: ("", False))
            else:
                rank_choices(asked, examples, prompter)
        except _AskedError:
            pass
        return len(asked.requests)

    return build


def measure(items: DecoderItems, python: str, rounds: int) -> dict[str, tuple[float, float, int, int]]:
    """Return by task documents a CPU second of ours (median) and lm-eval's, and the requests of both."""
    session = open_session()
    rates = {}
    with tempfile.TemporaryDirectory() as name:
        items.write(Path(name))
        for task, given in items.documents().items():
            examples = examples_of(session, task, Path(name))
            build, seconds = builder(session, task, examples), []
            for _ in range(rounds):
                started = time.process_time()
                count = build()
                seconds.append(time.process_time() - started)
            theirs = ask(python, {"job": "build", "family": task, "given": given})
            own = len(examples) / statistics.median(seconds)
            rates[task] = own, len(examples) / theirs["seconds"][0], count, theirs["requests"]
    return rates


def _show(rates: Mapping[str, tuple[float, float, int, int]]) -> None:
    table = Table("", "documents/CPU s", "lm-eval's", "ratio", "requests", "lm-eval's", "limit")
    for task, (own, other, count, asked) in rates.items():
        record(f"prompts of {task}: documents per CPU s of lm-eval's", own / other)
        limit = f"{LIMIT:,}" if task == "xnli" else ""
        table.add_row(
            task, f"{own:,.0f}", f"{other:,.0f}", f"{own / other:.0f}", str(count), str(asked), limit
        )
    Console(width=110).print(table)
    record("prompts of xnli per CPU s", rates["xnli"][0], LIMIT, least=True)


def main(arguments: list[str] | None = None) -> None:
    """Measure and print; without lm-eval, say what is missing."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--python", default=".venv-peers/bin/python", help="interpreter that has lm-eval")
    parser.add_argument("--documents", type=int, default=1200, help="of every task")
    parser.add_argument("--rounds", type=int, default=5)
    given = parser.parse_args(arguments)
    if not Path(given.python).exists():
        print(f"Prompt building is not measured: there is no {given.python}; make bench makes it.")
        return
    _show(measure(made_up(*[given.documents] * 3), given.python, given.rounds))


if __name__ == "__main__":
    main()
