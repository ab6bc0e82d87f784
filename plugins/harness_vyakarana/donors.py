"""Donors: the words of a split that may replace one another."""

from __future__ import annotations

from collections.abc import Container, Iterable, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b

from harness_vyakarana.agreement import Agreement
from harness_vyakarana.conllu import Sentence, Token
from harness_vyakarana.grammar import DERIVED, Grammar, Substitution
from harness_vyakarana.paradigm import Paradigms

__all__ = [
    "DEFAULT",
    "MODES",
    "PAPER",
    "Donor",
    "DonorPool",
    "Facts",
    "draw",
    "facts_of",
    "keys_of",
    "surroundings",
]

DEFAULT, PAPER = "default", "paper"
MODES = (DEFAULT, PAPER)

Key = tuple[str, ...]
ABSENT = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Donor:
    """A type: its form, and the first token that has it."""

    form: str
    lemma: str
    sent_id: str
    word: int
    surface: str | None = None
    """The multi-word token of the word."""

    @property
    def reference(self) -> str:
        """Return ``<sent_id>:<id>``."""
        return f"{self.sent_id}:{self.word}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Range:
    """The context of a word in a multi-word token."""

    neighbours: Key
    """The forms of its words, with ``*`` for the word itself."""
    surface: str | None
    donates: bool = True


ALONE = Range(neighbours=(), surface=None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """The parts of the key of a word that are not its own columns."""

    word: Token
    gender: str | None
    slot: str = ABSENT
    marked: str = ABSENT
    frame: str = ABSENT
    around: Range = ALONE
    settled: bool = True
    """Whether form, annotation and sentence agree on its gender; if not, it is neither replaced nor a donor."""


@dataclass(slots=True, kw_only=True)
class _Cell:
    """The types of a cell, sorted by form when it is complete."""

    by_form: dict[str, Donor] = field(default_factory=dict)
    forms: list[str] | None = None

    def add(self, donor: Donor) -> None:
        known = self.by_form.get(donor.form)
        # With the smallest reference, the order of sentences does not matter.
        if known is None or (donor.sent_id, donor.word) < (known.sent_id, known.word):
            self.by_form[donor.form] = donor

    def sorted_forms(self) -> list[str]:
        if self.forms is None:
            self.forms = sorted(self.by_form)
        return self.forms


def surroundings(sentence: Sentence, mode: str) -> dict[int, Range]:
    """Return the context of each word inside a multi-word token, by the id of the word.

    A donor inside a multi-word token comes from one with the same clitics. In paper mode only the first two
    words count and donors come from tokens of two words: a third clitic is lost (released CG-TTB).
    """
    found: dict[int, Range] = {}
    for token in sentence.tokens:
        if token.span is None:
            continue
        first, last = token.span
        for number in range(first, last + 1):
            seen = (
                range(first, first + 2) if mode == PAPER and number <= first + 1 else range(first, last + 1)
            )
            neighbours = ("*" if other == number else sentence.words[other - 1].form for other in seen)
            found[number] = Range(
                neighbours=tuple(neighbours), surface=token.form, donates=mode != PAPER or last == first + 1
            )
    return found


def facts_of(
    sentence: Sentence, agreement: Agreement | None, paradigms: Paradigms, content: Container[str]
) -> list[Facts]:
    """Return the facts of every word; without `agreement`, the facts of the paper mode.

    Words of other parts of speech than `content` are never replaced: only their gender is returned.
    """
    inside = surroundings(sentence, PAPER if agreement is None else DEFAULT)
    made = []
    for number, word in enumerate(sentence.words, start=1):
        around = inside.get(number, ALONE)
        if agreement is None:
            made.append(Facts(word=word, gender=word.feature("Gender"), around=around))
            continue
        gender = agreement.gender(number) or word.feature("Gender")
        if word.upos not in content:
            made.append(Facts(word=word, gender=gender, around=around))
            continue
        found = paradigms.find(word, gender) if gender else None
        verb = word.upos == "VERB"
        made.append(
            Facts(
                word=word,
                gender=gender,
                around=around,
                slot=paradigms.slot(found) if found else ABSENT,
                marked="marked" if not verb and agreement.marked(number) else ABSENT,
                frame=agreement.frame(number) if verb else ABSENT,
                settled=agreement.settled(number),
            )
        )
    return made


def keys_of(
    facts: Facts, rule: Substitution, mode: str, *, gender: str | None = None, slot: str | None = None
) -> list[Key]:
    """Return the keys of a word, from the full one down the ladder; none for a word that is never replaced.

    `gender` and `slot` are those of the donor, if they differ from the word's own.
    """
    features = facts.word.features
    if mode == PAPER:
        if not rule.paper or any(name not in features for name in rule.paper):
            return []
        values = [
            gender if name == "Gender" and gender is not None else features[name] for name in rule.paper
        ]
        return [(facts.word.upos, *values, *facts.around.neighbours)]
    if (
        not rule.key
        or not facts.settled
        or facts.word.lemma in rule.keep
        or any(name not in features for name in rule.requires)
    ):
        return []
    values_by_name = {name: features.get(name, ABSENT) for name in rule.key if name not in DERIVED}
    if "Gender" in values_by_name:
        values_by_name["Gender"] = gender or facts.gender or ABSENT
    derived = {
        "xpos": facts.word.xpos,
        "marked": facts.marked,
        "inflection": facts.slot if slot is None else slot,
        "frame": facts.frame,
    }
    values_by_name |= {name: derived[name] for name in rule.key if name in DERIVED}
    keys = []
    dropped: set[str] = set()
    for step in ((), *rule.ladder):
        dropped |= set(step)
        kept = (f"{name}={value}" for name, value in values_by_name.items() if name not in dropped)
        keys.append((facts.word.upos, *kept, *facts.around.neighbours))
    return keys


class DonorPool:
    """All donors of a split, by key."""

    def __init__(self, grammar: Grammar, mode: str) -> None:
        self.grammar, self.mode = grammar, mode
        self.paradigms = Paradigms(grammar)
        self._cells: dict[Key, _Cell] = {}
        self._keys: dict[tuple[object, ...], list[Key]] = {}

    def add(self, sentences: Iterable[Sentence]) -> DonorPool:
        """Add the words of sentences; return the pool."""
        for sentence in sentences:
            if sentence.sent_id is None:
                continue
            for number, facts in enumerate(self.facts(sentence, self.agreement(sentence)), start=1):
                keys = self.keys(facts)
                if not keys or not facts.around.donates:
                    continue
                donor = Donor(
                    form=facts.word.form,
                    lemma=facts.word.lemma,
                    sent_id=sentence.sent_id,
                    word=number,
                    surface=facts.around.surface,
                )
                for key in keys:
                    self._cells.setdefault(key, _Cell()).add(donor)
        return self

    def facts(self, sentence: Sentence, agreement: Agreement | None) -> list[Facts]:
        """Return the facts of every word of a sentence, given its `agreement` in this pool's mode."""
        return facts_of(sentence, agreement, self.paradigms, self.grammar.content)

    def agreement(self, sentence: Sentence) -> Agreement | None:
        """Return the agreement of a sentence, None in paper mode, which has none."""
        return None if self.mode == PAPER else Agreement(sentence, self.grammar, self.paradigms)

    def keys(self, facts: Facts, *, gender: str | None = None, slot: str | None = None) -> list[Key]:
        """Return `keys_of` a word in this pool's mode; equal words are computed once."""
        word = facts.word
        rule = self.grammar.content.get(word.upos)
        if rule is None:
            return []
        alike = (
            word.upos,
            word.feats,
            word.xpos,
            word.lemma in rule.keep,
            facts.settled,
            facts.gender if gender is None else gender,
            facts.slot if slot is None else slot,
            facts.marked,
            facts.frame,
            facts.around.neighbours,
        )
        known = self._keys.get(alike)
        if known is None:
            known = self._keys[alike] = keys_of(facts, rule, self.mode, gender=gender, slot=slot)
        return known

    def draw(self, keys: Sequence[Key], own: str, place: bytes) -> tuple[Donor | None, int]:
        """Return a donor, uniform over the types of the first cell that has one, and the step of the ladder.

        In paper mode the word's own type is among them; in the default mode it is not.
        """
        for step, key in enumerate(keys):
            cell = self._cells.get(key)
            if cell is None:
                continue
            forms = cell.sorted_forms()
            if self.mode == PAPER:
                return cell.by_form[forms[draw(place, len(forms))]], step
            count = len(forms) - (own in cell.by_form)
            if count == 0:
                continue
            index = draw(place, count)
            form = forms[index]
            if count < len(forms) and form >= own:
                form = forms[index + 1]
            return cell.by_form[form], step
        return None, len(keys)

    def types(self, key: Key) -> list[tuple[str, str]]:
        """Return form and lemma of the types of a cell, by form."""
        cell = self._cells.get(key)
        return [] if cell is None else [(form, cell.by_form[form].lemma) for form in cell.sorted_forms()]

    def has(self, key: Key, form: str) -> bool:
        """Return whether a form is a type of a cell."""
        return key in self._cells and form in self._cells[key].by_form


def draw(place: bytes, count: int) -> int:
    """Return a number below `count` that depends only on the place."""
    return int.from_bytes(blake2b(place, digest_size=8).digest(), "big") % count
