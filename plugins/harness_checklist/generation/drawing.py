"""Draws cases from the templates of a test: deterministic and without replacement."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from itertools import combinations, islice, product
from math import prod
from random import Random

from harness import UnknownNameError
from harness_checklist.generation.case import Case, CaseExample
from harness_checklist.generation.rendering import NoFormError, Renderer, Rendition
from harness_checklist.suites.checking import check_test
from harness_checklist.suites.space import Space
from harness_checklist.suites.suite import LanguageSuite, Suite, TestDeclaration
from harness_checklist.suites.template import TemplateError

PATIENCE = 100_000
"""Drawing stops after so many draws in a row without a new case."""


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


_Block = tuple[Sequence[int], ...]
"""The options of every group whose product is a part of the space."""


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
