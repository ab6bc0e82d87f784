"""Draws cases from the templates of a test, deterministic and without replacement, and writes those of a suite.

A generated suite has one file per language, and the task spec that runs them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from itertools import combinations, islice, product
from math import prod
from pathlib import Path
from random import Random

from harness import UnknownNameError, UsageError
from harness.cli import echo, show_progress
from harness.storage import write_atomically
from harness_checklist.case import Case, CaseExample, case_lines
from harness_checklist.checking import check_test
from harness_checklist.folder import yaml_text
from harness_checklist.suite import (
    Condition,
    FillInEntry,
    LanguageSuite,
    Suite,
    TestDeclaration,
    TestTemplate,
)
from harness_checklist.template import TRANSFORMS, Placeholder, Space, TemplateError, TextTemplate, parse

PATIENCE = 100_000
"""Drawing stops after so many draws in a row without a new case."""
_Block = tuple[Sequence[int], ...]
"""The options of every group whose product is a part of the space."""
Draw = Sequence[int]
"""The number of the option taken, for every group of the space."""
_TASK = re.compile(r"[a-z0-9][a-z0-9_\-]*")


@dataclass(frozen=True, slots=True, kw_only=True)
class Drawn:
    """The cases of one test in one language."""

    cases: tuple[Case, ...]
    possible: int | None
    """How many different cases exist, where all of them were made; None where there may be more."""
    note: str | None = None
    """Why there are fewer than requested: one sentence."""


def draw_cases(suite: Suite, test_id: str, language: str, n: int, seed: int) -> Drawn:
    """Return n different cases; where fewer exist, all of them and a note that says why.

    They depend on the suite's name, the test, the language and the seed alone; the first of them are the same for
    every n. Two draws that show the same texts are one case. No two slots of a draw show the same words (as in
    CheckList's ``remove_duplicates``), and a draw that needs a form which does not exist is never made; one to which
    no context or no question applies is a case without examples. With `balance`, cases are drawn from its values in
    turn until they run out.

    Raises `UnknownNameError` for an unknown language or test, `SpecError` for faulty templates.
    """
    spoken, declared = _find(suite, test_id, language)
    try:
        return _draw(spoken, declared, suite.name, n, seed)
    except (LookupError, ValueError, RecursionError, TemplateError):
        # Checking costs more than drawing, and suites from files are checked already.
        check_test(spoken, test_id)
        raise


def _draw(spoken: LanguageSuite, declared: TestDeclaration, suite: str, n: int, seed: int) -> Drawn:
    template = spoken.tests[declared.id]
    space = Space(template, spoken.names)
    renderer = Renderer(template, space, spoken.language)
    key = f"{suite}\0{declared.id}\0{spoken.language}\0{seed}"
    strata = _strata(space, renderer, template.balance)
    samplers = [_Sampler(blocks, f"{key}\0{name}") for name, blocks in sorted(strata.items())]
    _random(key).shuffle(samplers)
    maker = _Maker(space, renderer, declared, spoken)
    cases = tuple(islice(_in_turn([maker.cases(sampler) for sampler in samplers]), n))
    if len(cases) >= n:
        return Drawn(cases=cases, possible=None)
    exhausted = all(sampler.left == 0 for sampler in samplers)
    note = _shortage(f"{spoken.language} {declared.id}", len(cases), n, space, exhausted=exhausted)
    return Drawn(cases=cases, possible=len(cases) if exhausted else None, note=note)


def _find(suite: Suite, test_id: str, language: str) -> tuple[LanguageSuite, TestDeclaration]:
    if language not in suite.languages:
        raise UnknownNameError(f"language of suite {suite.name!r}", language, suite.languages)
    spoken = suite.languages[language]
    if test_id not in suite.tests:
        raise UnknownNameError(f"test of suite {suite.name!r}", test_id, suite.tests)
    if test_id not in spoken.tests:
        raise UnknownNameError(f"test of suite {suite.name!r} in {language!r}", test_id, spoken.tests)
    return spoken, suite.tests[test_id]


def case_id(test_id: str, fills: dict[str, str]) -> str:
    """Return the id of the case of a test with these fill-ins: the test and a digest of 48 bits."""
    text = "\n".join([f"{slot}={value}" for slot, value in sorted(fills.items())])
    return f"{test_id}-{blake2b(text.encode(), digest_size=6).hexdigest()}"


def _random(key: str) -> Random:
    seed = int.from_bytes(blake2b(key.encode(), digest_size=16).digest(), "big")
    return Random(seed)  # noqa: S311 - nothing secret is drawn


def _strata(space: Space, renderer: Renderer, balance: str | None) -> dict[str, list[_Block]]:
    """Return the parts of the space that cases are drawn from in turn."""
    ranges = [range(len(group.options)) for group in space.groups]
    if balance is None:
        return {"": [tuple(ranges)]}
    strata: dict[str, list[_Block]] = {}
    if balance != "variants":
        number = space.group_of[balance.partition(".")[0]]
        values: dict[str, list[int]] = {}
        for option in ranges[number]:
            values.setdefault(space.value_of(balance, option), []).append(option)
        for value, options in values.items():
            strata[value] = [(*ranges[:number], options, *ranges[number + 1 :])]
        return strata
    classes: list[dict[int, list[int]]] = []
    for _, masks in renderer.masks:
        of_group: dict[int, list[int]] = {}
        for option, mask in enumerate(masks):
            of_group.setdefault(mask, []).append(option)
        classes.append(of_group)
    for chosen in product(*classes):
        block: list[Sequence[int]] = list(ranges)
        variants = renderer.every
        for (group, _), of_group, mask in zip(renderer.masks, classes, chosen, strict=True):
            block[group] = of_group[mask]
            variants &= mask
        strata.setdefault(format(variants, "b"), []).append(tuple(block))
    return strata


class _Sampler:
    """Draws from a part of the space in random order, each once: a shuffle that is made only as far as needed."""

    def __init__(self, blocks: Sequence[_Block], key: str) -> None:
        self._blocks = [(prod(len(options) for options in block), block) for block in blocks]
        self._size = sum(size for size, _ in self._blocks)
        self._taken = 0
        self._moved: dict[int, int] = {}
        self._random = _random(key)

    @property
    def left(self) -> int:
        """How many draws are left."""
        return self._size - self._taken

    def draw(self) -> list[int] | None:
        """Return the next draw, or None after the last one."""
        if self._taken == self._size:
            return None
        # Fisher and Yates, with a table of the places that were swapped in the place of all of them.
        index = self._random.randrange(self._taken, self._size)
        number = self._moved.get(index, index)
        self._moved[index] = self._moved.pop(self._taken, self._taken)
        self._taken += 1
        for size, block in self._blocks:
            if number < size:
                return _decoded(number, block)
            number -= size
        raise AssertionError(number)


def _decoded(number: int, block: _Block) -> list[int]:
    draw = []
    for options in block:
        number, option = divmod(number, len(options))
        draw.append(options[option])
    return draw


class _Maker:
    """Makes cases from draws, each case once."""

    def __init__(
        self, space: Space, renderer: Renderer, declared: TestDeclaration, spoken: LanguageSuite
    ) -> None:
        self._space = space
        self._renderer = renderer
        self._declared = declared
        self._spoken = spoken
        self._seen: set[Rendition] = set()
        self._ids: set[str] = set()
        families: dict[str, list[int]] = {}
        for number, group in enumerate(space.groups):
            families.setdefault(group.family, []).append(number)
        self._rivals = [pair for members in families.values() for pair in combinations(members, 2)]

    def cases(self, sampler: _Sampler) -> Iterator[Case]:
        """Yield new cases until all draws were made, or too many in a row gave no new case."""
        vain = 0
        while vain < PATIENCE:
            draw = sampler.draw()
            if draw is None:
                return
            case = self._case(draw)
            if case is None:
                vain += 1
            else:
                vain = 0
                yield case

    def _case(self, draw: list[int]) -> Case | None:
        for first, second in self._rivals:
            if draw[first] == draw[second]:
                return None
        try:
            rendition = self._renderer.render(draw)
        except NoFormError:
            return None
        if rendition is None or rendition in self._seen:
            return None
        fills: dict[str, str] = {}
        for group, number in zip(self._space.groups, draw, strict=True):
            fills |= group.options[number].ids
        name = case_id(self._declared.id, fills)
        if name in self._ids:
            return None
        if rendition.contexts:
            self._seen.add(rendition)
        self._ids.add(name)
        return Case(
            id=name,
            test=self._declared.id,
            language=self._spoken.language,
            examples=_examples(name, rendition),
            capability=self._declared.capability,
            type=self._declared.type,
            fills=fills,
            normalise=self._spoken.profile,
        )


def _examples(name: str, rendition: Rendition) -> tuple[CaseExample, ...]:
    number = 0
    examples = []
    pairs = list(zip(rendition.questions, rendition.answers, strict=True))
    for context in rendition.contexts:
        for question, answer in pairs:
            number += 1
            examples.append(
                CaseExample(id=f"{name}/{number}", context=context, question=question, answer=answer)
            )
    return tuple(examples)


def _in_turn(turns: list[Iterator[Case]]) -> Iterator[Case]:
    """Yield one item of each in turn, of fewer when some have run out."""
    while turns:
        remaining = []
        for turn in turns:
            case = next(turn, None)
            if case is not None:
                remaining.append(turn)
                yield case
        turns = remaining


def _shortage(name: str, made: int, n: int, space: Space, *, exhausted: bool) -> str:
    groups = " x ".join(f"{len(group.options):,} {'+'.join(group.slots)}" for group in space.groups)
    draws = f"{space.size:,} {'draw' if space.size == 1 else 'draws'} ({groups or 'no slots'})"
    how = f"were found: of {draws}, {PATIENCE:,} in a row gave no new case"
    if exhausted:
        lost = space.size - made
        how = f"exist: {draws}{f', {lost:,} of them impossible or the same as others' if lost else ''}"
    way = "give more fill-ins or names" + (f", or --cases {made}" if made else "")
    return f"{name}: only {made} of the {n} cases {how}; {way}."


class NoFormError(Exception):
    """A text needs a fill-in that has no form for this draw: the draw is impossible."""


@dataclass(frozen=True, slots=True)
class Rendition:
    """The texts of one draw."""

    contexts: tuple[str, ...]
    questions: tuple[str, ...]
    answers: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _Shown:
    """The templates of variants that apply together, and their placeholders, each once."""

    contexts: tuple[TextTemplate, ...]
    questions: tuple[TextTemplate, ...]
    answers: tuple[TextTemplate, ...]
    used: tuple[tuple[int, Placeholder], ...]
    """With the group that each is drawn in."""
    wholes: tuple[tuple[int, Placeholder], ...]
    """One for each slot, pairs aside: no two may show the same words."""


class Renderer:
    """Renders the draws of a test in one language."""

    def __init__(self, test: TestTemplate, space: Space, language: str) -> None:
        self._space = space
        self._language = language
        self._contexts = [parse(context.text) for context in test.contexts]
        self._questions = [(parse(item.ask), parse(item.answer)) for item in test.questions]
        self._shown: dict[int, _Shown] = {}
        self._known: dict[tuple[str, int], str] = {}
        """Reference and option -> a value that depends on nothing else."""
        self.every: int = (1 << (len(test.contexts) + len(test.questions))) - 1
        self.masks = self._option_masks(test)

    def _option_masks(self, test: TestTemplate) -> tuple[tuple[int, tuple[int, ...]], ...]:
        """Return, for every group that conditions name, its number and the variants that each option allows."""
        masks: dict[int, list[int]] = {}
        conditions = [*(item.when for item in test.contexts), *(item.when for item in test.questions)]
        for bit, when in enumerate(conditions):
            for key, allowed in when.items():
                group, met = self._space.options_where(key, allowed)
                group_masks = masks.setdefault(group, [self.every] * len(self._space.groups[group].options))
                for number in range(len(group_masks)):
                    if number not in met:
                        group_masks[number] &= ~(1 << bit)
        return tuple((group, tuple(group_masks)) for group, group_masks in sorted(masks.items()))

    def render(self, draw: Draw) -> Rendition | None:
        """Return the texts of a draw; raises `NoFormError`. None: two slots show the same words."""
        variants = self.every  # one bit each: contexts in the lowest, questions above
        for group, masks in self.masks:
            variants &= masks[draw[group]]
        if variants not in self._shown:
            self._shown[variants] = self._applying(variants)
        templates = self._shown[variants]
        if len(templates.wholes) > 1:
            wholes = {self._texts(self._entry(group, item, draw), draw) for group, item in templates.wholes}
            if len(wholes) < len(templates.wholes):
                return None
        values = {}
        for group, item in templates.used:
            cached = self._known.get((item.reference, draw[group]))
            values[item.reference] = self._value(item, draw) if cached is None else cached
        return Rendition(
            tuple([template.fill(values) for template in templates.contexts]),
            tuple([template.fill(values) for template in templates.questions]),
            tuple([template.fill(values) for template in templates.answers]),
        )

    def _applying(self, variants: int) -> _Shown:
        contexts = tuple(item for bit, item in enumerate(self._contexts) if variants >> bit & 1)
        pairs = [item for bit, item in enumerate(self._questions, len(self._contexts)) if variants >> bit & 1]
        if not contexts or not pairs:
            return _Shown((), (), (), (), ())
        questions, answers = zip(*pairs, strict=True)
        used = {
            item.reference: item for text in (*contexts, *questions, *answers) for item in text.placeholders
        }
        grouped = tuple((self._space.group_of[item.key], item) for item in used.values())
        wholes = {item.key: (group, item) for group, item in grouped if item.attribute is None}
        return _Shown(contexts, questions, answers, grouped, tuple(wholes.values()))

    def _entry(self, group: int, placeholder: Placeholder, draw: Draw) -> FillInEntry:
        return self._space.groups[group].options[draw[group]].entries[placeholder.entry]

    def _texts(self, entry: FillInEntry, draw: Draw) -> tuple[str, ...]:
        for form in entry.forms:
            if not form.when or self._is_met(form.when, draw):
                return form.texts
        raise NoFormError

    def _is_met(self, when: Condition, draw: Draw) -> bool:
        met = (self._space.options_where(key, allowed) for key, allowed in when.items())
        return all(draw[group] in options for group, options in met)

    def _value(self, placeholder: Placeholder, draw: Draw) -> str:
        group = self._space.group_of[placeholder.key]
        entry = self._entry(group, placeholder, draw)
        template = parse(self._texts(entry, draw)[placeholder.index])
        text = template.fill({inner.reference: self._value(inner, draw) for inner in template.placeholders})
        if placeholder.transform is not None:
            text = TRANSFORMS[placeholder.transform](text, self._language)
        if not template.placeholders and not entry.forms[0].when:
            self._known[placeholder.reference, draw[group]] = text
        return text


@dataclass(frozen=True, slots=True, kw_only=True)
class Tally:
    """How many cases of a test were made in one language."""

    language: str
    test: str
    cases: int = 0
    examples: int = 0
    empty: int = 0
    """Cases without examples, because no context or no question applies: they count as failed."""
    asked: int
    possible: int | None = None
    """How many cases exist, where all were made."""
    note: str | None = None


def task_name(suite: Suite, given: str | None) -> str:
    """Return the name of the task that runs the cases; raises `UsageError` for an invalid name."""
    if given is None:
        return "checklist_" + re.sub(r"[^a-z0-9_\-]", "_", suite.name.lower())
    if not _TASK.fullmatch(given):
        raise UsageError(f"--task takes small letters, digits, _ and -; found {given!r}.")
    return given


def make_folder(folder: Path) -> None:
    """Make a folder for cases; raises `UsageError` where it cannot be made."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UsageError(f"The folder {str(folder)!r} cannot be created: {error.strerror}.") from error


def generate_cases(
    suite: Suite,
    languages: Sequence[str],
    tests: Sequence[str],
    *,
    n: int,
    seed: int,
    folder: Path | None,
    task: str,
) -> list[Tally]:
    """Write ``LANGUAGE.jsonl`` for every language that has cases, and ``task.yaml``; without a folder print the cases.

    Returns the tallies. One language is held in memory at a time. Raises `UnknownNameError` for unknown languages and
    tests, `UsageError` for tests of another type than MFT and for a folder that cannot be created.
    """
    for language in languages:
        if language not in suite.languages:
            raise UnknownNameError(f"language of suite {suite.name!r}", language, suite.languages)
    for name in tests:
        if name not in suite.tests:
            raise UnknownNameError(f"test of suite {suite.name!r}", name, suite.tests)
        if suite.tests[name].type != "MFT":
            raise UsageError(_not_generated(suite.tests[name]))
    tallies: list[Tally] = []
    written: list[str] = []
    if folder is None:
        for language in languages:
            batches = list(_drawn(suite, language, tests, n, seed))
            tallies += [tally for tally, _ in batches]
            echo(case_lines(case for _, cases in batches for case in cases), nl=False)
        return tallies
    make_folder(folder)
    with show_progress() as progress:
        progress.start(f"Generating {suite.name}", len(languages), "languages")
        for language in languages:
            batches = list(_drawn(suite, language, tests, n, seed))
            tallies += [tally for tally, _ in batches]
            if lines := case_lines(case for _, cases in batches for case in cases):
                write_atomically(folder / f"{language}.jsonl", lines)
                written.append(language)
            progress.advance(1)
        progress.finish()
    if written:
        write_atomically(folder / "task.yaml", _task_yaml(suite, task, written, n, seed))
    return tallies


def _not_generated(test: TestDeclaration) -> str:
    return f"{test.id} is a test of type {test.type}; only tests of type MFT are generated so far."


def _drawn(
    suite: Suite, language: str, tests: Sequence[str], n: int, seed: int
) -> Iterator[tuple[Tally, tuple[Case, ...]]]:
    """Yield the cases of every test of a language, none for those that were requested but cannot be drawn."""
    for test in suite.tests.values():
        if tests and test.id not in tests:
            continue
        if test.id in suite.languages[language].tests and test.type == "MFT":
            drawn = draw_cases(suite, test.id, language, n, seed)
            yield (
                Tally(
                    language=language,
                    test=test.id,
                    cases=len(drawn.cases),
                    examples=sum([len(case.examples) for case in drawn.cases]),
                    empty=sum([not case.examples for case in drawn.cases]),
                    asked=n,
                    possible=drawn.possible,
                    note=drawn.note,
                ),
                drawn.cases,
            )
        elif test.id in suite.languages[language].tests or tests:
            why = f"has no test {test.id}." if tests else _not_generated(test)
            yield Tally(language=language, test=test.id, asked=n, possible=0, note=f"{language} {why}"), ()


def _task_yaml(suite: Suite, task: str, languages: Sequence[str], n: int, seed: int) -> str:
    spec = {
        "task": task,
        "kind": "span_extraction",
        "version": suite.version,
        "description": suite.description or f"Test cases of the suite {suite.name}.",
        "citation": suite.citation or "unknown",
        "license": suite.license or "unknown",
        "metrics": ["pass_rate", "case_error", "case_floor", "corrected_error", "example_error"],
        "cluster": "case",
        "draw": "clusters",
        "transfer": {"source": suite.source_language, "stages": ["squad"], "recipe": "xtreme_r"},
        "splits": {"test": {"local": "{language}.jsonl", "reader": "checklist"}},
        "languages": {language: {} for language in languages},
    }
    comment = f"# Made by: harness checklist generate, suite {suite.name}, --cases {n} --seed {seed}\n"
    return f"{comment}# With 'draw: clusters', --limit N takes N test cases, whole.\n{yaml_text(spec)}"
