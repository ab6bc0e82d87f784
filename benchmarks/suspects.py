"""Planted faults that are found: python -m benchmarks.suspects [--data DIR] [--vectors FILE] [--answers DIR].

Without data the answers are simulated: systems, languages and items as the model has them, and two faulty items in a
hundred. With data faults are planted in published rows (`benchmarks.planted_rows`), systems answer these rows, and the
suspects are compared with what was planted. The systems are linear models over n-grams, with other n-grams, learners
and halves of the training data; with `--vectors`, linear heads on vectors of e5-small (an .npz file of ``texts`` as
JSON and ``vectors``); with `--answers`, published answers (one JSON file per system: text -> answer). *recall*: share
of the planted faults in a queue as long as there are faults, which is the share of true suspects in it; *top 20*: share
of true ones among the first 20; *by answers*, and the columns of the faults: the recall without the signs of texts.
The seeds are fixed.
"""

from __future__ import annotations

import argparse
import json
import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from rich.console import Console
from rich.table import Table
from scipy.special import expit
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import ComplementNB
from sklearn.pipeline import Pipeline, make_pipeline

from benchmarks.measuring import record
from benchmarks.planted_rows import Fields, PlantedRows, plant, read_rows
from harness_suspects.answers import Item, TaskAnswers
from harness_suspects.signs import LISTED, Signs, agreement_evidence, find_signs, sign_codes
from harness_suspects.suspect import Suspect, rank_suspects
from harness_suspects.verdict import Judgement, find_families, judge

Floats = npt.NDArray[np.float64]
SIZES = (2, 5, 10, 20)
SHARE = 0.02
SEED = 43
ANALYSERS = (("char_wb", (2, 4)), ("char_wb", (3, 5)), ("word", (1, 2)))
TASKS = ("sib200", "xnli", "xquad", "belebele-like")
System = Callable[[str, Sequence[Fields]], list[str | None]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Recall:
    """What some systems find."""

    systems: int
    families: int
    power: float
    """As the command states it."""
    recall: float
    answers: float
    """The recall of answers alone, without any sign of the texts."""
    top: float
    established: int
    true: int
    """Of the established ones."""
    by_fault: dict[str, float]
    """The recall of answers alone."""


def simulated(systems: int, seed: int, *, languages: int = 20, items: int = 204) -> TaskAnswers:
    """Return answers as the model has them; what is faulty is in the gold: ``0``, else ``1``."""
    rng = np.random.default_rng(seed)
    ability = rng.normal(1.5, 0.7, (systems, 1)) + rng.normal(0, 0.5, languages)
    logits = ability[:, :, None] + rng.normal(0, 1.2, items) + rng.normal(0, 0.5, (systems, items))[:, None]
    chances = expit(logits + rng.normal(0, 0.8, (languages, items)))
    faulty = rng.random((languages, items)) < SHARE
    chances = np.where(faulty, np.minimum(1 / 7, chances), chances)
    right = (rng.random(chances.shape) < chances).astype(float)
    places = {place: Item(fields={}, gold=str(int(not faulty[place]))) for place in np.ndindex(faulty.shape)}
    return _task_answers(
        "simulated", [f"l{n}" for n in range(languages)], right, places, {}, list(range(items)), 7
    )


def _task_answers(
    task: str,
    languages: Sequence[str],
    right: Floats,
    items: dict[tuple[int, ...], Item],
    said: dict[tuple[int, int, int], str],
    clusters: list[int],
    labels: float,
) -> TaskAnswers:
    return TaskAnswers(
        task=task,
        title=task,
        systems=tuple(map(str, range(len(right)))),
        languages=tuple(languages),
        ids=tuple(map(str, range(right.shape[2]))),
        clusters=tuple(clusters),
        source=languages[0],
        chance=1 / labels,
        right=right,
        items={(language, item): value for (language, item), value in items.items()},
        said=said,
    )


def answered(rows: PlantedRows, systems: Sequence[System]) -> TaskAnswers:
    """Return the answers of systems to rows."""
    languages = list(rows.texts)
    said: dict[tuple[int, int, int], str] = {}
    right = np.full((len(systems), len(languages), len(rows.clusters)), np.nan)
    for number, system in enumerate(systems):
        for language, code in enumerate(languages):
            for item, answer in enumerate(system(code, rows.texts[code])):
                if answer is not None:
                    said[(number, language, item)] = answer
                    right[number, language, item] = answer == rows.gold[code][item]
    items: dict[tuple[int, ...], Item] = {
        (language, item): Item(
            fields={str(n): text for n, text in enumerate(fields)}, gold=rows.gold[code][item]
        )
        for language, code in enumerate(languages)
        for item, fields in enumerate(rows.texts[code])
    }
    sizes = [len(fields) - 1 for fields in rows.texts[languages[0]]]
    labels = float(np.mean(sizes)) if not rows.training else len(rows.labels)
    return _task_answers(rows.task, languages, right, items, said, rows.clusters, labels)


# Systems -----------------------------------------------------------------------------------------------


def learnt(rows: PlantedRows, count: int) -> Iterator[System]:
    """Yield linear models over n-grams, each fitted in every language on its own half of the training data."""
    for number in range(count):
        kind, lengths = ANALYSERS[number % len(ANALYSERS)]
        fitted: dict[str, Pipeline] = {}
        for code, (texts, labels) in rows.training.items():
            rng = np.random.default_rng((SEED, number))
            half = rng.permutation(len(texts))[: len(texts) // 2]
            learner = (
                LogisticRegression(C=10, max_iter=300) if number // len(ANALYSERS) % 2 else ComplementNB()
            )
            model = make_pipeline(
                TfidfVectorizer(analyzer=kind, ngram_range=lengths, max_features=30_000), learner
            )
            fitted[code] = model.fit([_joined(texts[row]) for row in half], [labels[row] for row in half])
        yield partial(_predicted, fitted)


def _predicted(fitted: dict[str, Pipeline], code: str, texts: Sequence[Fields]) -> list[str | None]:
    return [str(label) for label in fitted[code].predict([_joined(fields) for fields in texts])]


def _joined(fields: Fields) -> str:
    """Return a text; of two, the second with what it shares with the first and what is new, marked."""
    if len(fields) == 1:
        return fields[0]
    first, words = set(fields[0].lower().split()), fields[1].lower().split()
    marked = [f"{word}{'=' if word in first else '+'}" for word in words]
    shared = sum(word in first for word in words) * 5 // max(1, len(words))
    return f"{' '.join(marked)} overlap{shared} overlap{shared}"


def headed(rows: PlantedRows, file: Path, count: int) -> Iterator[System]:
    """Yield linear heads on vectors, each fitted on half of the training data of one language, for all languages."""
    with np.load(file) as stored:
        vectors = dict(
            zip(json.loads(str(stored["texts"])), stored["vectors"].astype(np.float64), strict=True)
        )
    sources = [
        code for code, (texts, _) in rows.training.items() if all(text[0] in vectors for text in texts)
    ]
    for number in range(count if sources else 0):
        texts, labels = rows.training[sources[number % len(sources)]]
        half = np.random.default_rng((SEED, number)).permutation(len(texts))[: len(texts) // 2]
        head = LogisticRegression(C=50, max_iter=300)
        head.fit(np.stack([vectors[texts[row][0]] for row in half]), [labels[row] for row in half])

        def answer(code: str, asked: Sequence[Fields], head: LogisticRegression = head) -> list[str | None]:
            places = [place for place, fields in enumerate(asked) if fields[0] in vectors]
            answers: list[str | None] = [None] * len(asked)
            labels = head.predict(np.stack([vectors[asked[place][0]] for place in places])) if places else []
            for place, label in zip(places, labels, strict=True):
                answers[place] = str(label)
            return answers

        yield answer


def published(folder: Path) -> Iterator[System]:
    """Yield the systems whose answers are published; another item's text gets the answer to that item."""
    for file in sorted(folder.glob("*.json")):
        table = json.loads(file.read_text(encoding="utf-8"))
        yield partial(_looked_up, table)


def _looked_up(table: dict[str, str | None], code: str, texts: Sequence[Fields]) -> list[str | None]:
    return [table.get(fields[0]) for fields in texts]


def matching(rows: PlantedRows, count: int) -> Iterator[System]:
    """Yield systems that choose the candidate with most n-grams of the question; each knows two thirds of them."""
    answers: dict[tuple[int, str], list[str | None]] = {}
    for kind, (analyser, lengths) in enumerate((*ANALYSERS, ("char_wb", (2, 2)))):
        for code, texts in rows.texts.items():
            vectorizer = TfidfVectorizer(analyzer=analyser, ngram_range=lengths, max_features=50_000)
            flat = vectorizer.fit_transform([text for fields in texts for text in fields])
            for number in range(kind, count, len(ANALYSERS) + 1):
                kept = np.random.default_rng((SEED, number)).random(flat.shape[1]) < 2 / 3
                answers[(number, code)] = list(_chosen(flat.multiply(kept).tocsr(), texts))
    for number in range(count):
        yield partial(_stored, answers, number)


def _stored(
    answers: dict[tuple[int, str], list[str | None]], number: int, code: str, texts: Sequence[Fields]
) -> list[str | None]:
    return answers[(number, code)]


def _chosen(weighted: Any, texts: Sequence[Fields]) -> Iterator[str]:
    """Yield the number of the candidate that is nearest to the question of every item."""
    at = 0
    for fields in texts:
        part = weighted[at : at + len(fields)]
        yield str(int((part[1:] @ part[0].T).toarray().argmax()))
        at += len(fields)


# Measuring ---------------------------------------------------------------------------------------------


def measure_recall(answers: TaskAnswers, faults: dict[tuple[int, int], str]) -> Recall:
    """Return how many of the planted faults are found."""
    families = find_families(answers.right)
    signs = find_signs(answers, families) if answers.task != "simulated" else {}
    codes, evidence = sign_codes(signs, answers.right.shape[1:]), agreement_evidence(answers, families, signs)
    judgement = judge(answers.right, answers.chance, answers.clusters, codes, evidence, families=families)
    queue = _queue(answers, judgement, signs, len(faults))
    alone = judge(answers.right, answers.chance, answers.clusters, families=families)
    by_answers = _queue(answers, alone, {}, len(faults))
    planted_kinds = list(faults.values())
    return Recall(
        systems=len(answers.systems),
        families=len(judgement.families),
        power=judgement.power[len(judgement.families)],
        recall=sum(place in faults for place in queue) / len(faults),
        answers=sum(place in faults for place in by_answers) / len(faults),
        top=sum(place in faults for place in queue[:20]) / len(queue[:20]),
        established=int(judgement.established.sum()),
        true=sum(bool(judgement.established[place]) for place in faults),
        by_fault={
            kind: sum(faults.get(place) == kind for place in by_answers) / planted_kinds.count(kind)
            for kind in sorted(set(planted_kinds))
        },
    )


def _queue(answers: TaskAnswers, judgement: Judgement, signs: Signs, size: int) -> list[tuple[int, int]]:
    """Return the first suspects: those of texts, then those of answers."""
    ranked = rank_suspects(answers, judgement, signs, top=size)
    ranked.sort(
        key=lambda suspect: not any(sign.name in LISTED for sign in signs.get(_place(answers, suspect), ()))
    )
    return [_place(answers, suspect) for suspect in ranked][:size]


def _place(answers: TaskAnswers, suspect: Suspect) -> tuple[int, int]:
    return answers.languages.index(suspect.language), int(suspect.id)


def some_systems(answers: TaskAnswers, count: int, draw: int) -> TaskAnswers:
    """Return the answers of some systems, drawn at random."""
    rows = np.random.default_rng((SEED, count, draw)).permutation(len(answers.systems))[:count].tolist()
    said = {
        (rows.index(system), language, item): answer
        for (system, language, item), answer in answers.said.items()
        if system in rows
    }
    return replace(answers, systems=tuple(map(str, rows)), right=answers.right[rows], said=said)


def measure(task: str, given: argparse.Namespace) -> list[list[Recall]]:
    """Return what is found by number of systems, in several draws."""
    if task == "simulated":
        drawn = [[simulated(size, SEED + draw) for draw in range(given.draws)] for size in given.sizes]
        return [[measure_recall(part, _simulated_faults(part)) for part in parts] for parts in drawn]
    rows = plant(read_rows(task, given.data), SHARE, SEED)
    if rows.training:
        extra = [*(headed(rows, given.vectors, 6) if given.vectors and task == "sib200" else ())]
        extra += [*(published(given.answers) if given.answers and task == "sib200" else ())]
        systems = [*learnt(rows, 20 - len(extra)), *extra]
    else:
        systems = list(matching(rows, 20))
    answers = answered(rows, systems)
    right = np.nanmean(answers.right, axis=(1, 2))
    print(
        f"{task}: {len(systems)} systems, {100 * right.min():.0f} to {100 * right.max():.0f} % right",
        flush=True,
    )
    faults = {(answers.languages.index(code), item): fault for (code, item), fault in rows.faults.items()}
    return [
        [
            measure_recall(some_systems(answers, size, draw), faults)
            for draw in range(given.draws if size < len(systems) else 1)
        ]
        for size in given.sizes
    ]


def _simulated_faults(answers: TaskAnswers) -> dict[tuple[int, int], str]:
    return {place: "faulty" for place, item in answers.items.items() if item.gold == "0"}


def print_table(task: str, measured: list[list[Recall]]) -> None:
    """Print what was found, the mean over draws by number of systems."""
    kinds = sorted({kind for draws in measured for one in draws for kind in one.by_fault})
    heads = ("systems", "count as", "power", "recall", "by answers", "top 20", "established", "true", *kinds)
    table = Table(*heads, title=f"{task}: {SHARE:.0%} planted", title_justify="left")
    for draws in measured:
        means = [
            np.mean([getattr(one, name) for one in draws])
            for name in ("families", "power", "recall", "answers", "top")
        ]
        shares = [f"{100 * np.mean([one.by_fault[kind] for one in draws]):.0f}" for kind in kinds]
        established, true = (sum(getattr(one, name) for one in draws) for name in ("established", "true"))
        count = f"{established / len(draws):.1f}"
        share = f"{true / established:.0%}" if established else "-"
        numbers = [f"{means[0]:.1f}", *(f"{100 * value:.0f}" for value in means[1:])]
        table.add_row(str(draws[0].systems), *numbers, count, share, *shares)
    Console(width=130).print(table)


def main() -> None:
    """Measure the simulation and, with data, the planted rows."""
    parser = argparse.ArgumentParser(description="Planted faults that are found.")
    parser.add_argument("--data", type=Path, default=os.environ.get("HARNESS_DATA"))
    parser.add_argument("--vectors", type=Path)
    parser.add_argument("--answers", type=Path)
    parser.add_argument("--tasks", nargs="+", default=list(TASKS), choices=TASKS)
    parser.add_argument("--sizes", nargs="+", type=int, default=SIZES)
    parser.add_argument("--draws", type=int, default=10)
    given = parser.parse_args()
    given.data = Path(given.data) if given.data else None
    for task in ("simulated", *(given.tasks if given.data else ())):
        measured = measure(task, given)
        print_table(task, measured)
        record(f"suspects, {task}: recall of {given.sizes[-1]} systems", measured[-1][0].recall)


if __name__ == "__main__":
    main()
