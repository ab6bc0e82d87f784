"""The words of a split that may stand in for one another."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b

from harness_vyakarana.agreement import Agreement
from harness_vyakarana.conllu import Sentence, Token
from harness_vyakarana.grammar import DERIVED, Grammar, Substitution
from harness_vyakarana.paradigm import Paradigms

__all__ = ["MODES", "PAPER", "Donor", "DonorPool", "Facts", "facts_of", "keys_of", "surroundings", "draw"]

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
    """The multi-word token that the word is a part of."""

    @property
    def reference(self) -> str:
        """Return ``<sent_id>:<id>``."""
        return f"{self.sent_id}:{self.word}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """What the key of a word is made of, beside its own columns."""

    word: Token
    gender: str | None
    slot: str = ABSENT
    marked: str = ABSENT
    frame: str = ABSENT
    surroundings: Key = ()
    surface: str | None = None


@dataclass(slots=True, kw_only=True)
class _Cell:
    """The types of a cell, sorted by form once all are known."""

    by_form: dict[str, Donor] = field(default_factory=dict)
    forms: list[str] | None = None

    def add(self, donor: Donor) -> None:
        known = self.by_form.get(donor.form)
        # The smallest reference, so that the order of sentences does not matter.
        if known is None or (donor.sent_id, donor.word) < (known.sent_id, known.word):
            self.by_form[donor.form] = donor

    def sorted_forms(self) -> list[str]:
        if self.forms is None:
            self.forms = sorted(self.by_form)
        return self.forms


def surroundings(sentence: Sentence) -> dict[int, tuple[Key, str]]:
    """Return, by the id of a word inside a multi-word token, its place and the forms beside it, and the range's form.

    A donor inside a multi-word token comes from one with the same clitics (released CG-TTB: no exception).
    """
    found: dict[int, tuple[Key, str]] = {}
    for token in sentence.tokens:
        if token.span is None:
            continue
        first, last = token.span
        for number in range(first, last + 1):
            beside = (
                "*" if other == number else sentence.words[other - 1].form
                for other in range(first, last + 1)
            )
            found[number] = (tuple(beside), token.form)
    return found


def facts_of(
    sentence: Sentence, agreement: Agreement | None, paradigms: Paradigms
) -> list[Facts]:
    """Return the facts of every word; without `agreement` those of the paper's mode."""
    inside = surroundings(sentence)
    made = []
    for number, word in enumerate(sentence.words, start=1):
        beside, surface = inside.get(number, ((), None))
        slot = marked = frame = ABSENT
        if agreement is not None:
            gender = word.feature("Gender")
            found = paradigms.find(word, gender) if gender else None
            slot = paradigms.slot(found) if found else ABSENT
            marked = "marked" if word.upos != "VERB" and agreement.marked(number) else ABSENT
            frame = agreement.frame(number) if word.upos == "VERB" else ABSENT
        made.append(
            Facts(
                word=word,
                gender=word.feature("Gender"),
                slot=slot,
                marked=marked,
                frame=frame,
                surroundings=beside,
                surface=surface,
            )
        )
    return made


def keys_of(
    facts: Facts, rule: Substitution, mode: str, *, gender: str | None = None, slot: str | None = None
) -> list[Key]:
    """Return the keys of a word, from the full one down the ladder; none for a word that is never replaced.

    `gender` and `slot` are those that the donor shall have, where they differ from the word's own.
    """
    features = facts.word.features
    if mode == PAPER:
        if not rule.paper or any(name not in features for name in rule.paper):
            return []
        values = [
            gender if name == "Gender" and gender is not None else features[name] for name in rule.paper
        ]
        return [(facts.word.upos, *values, *facts.surroundings)]
    if not rule.key or facts.word.lemma in rule.keep or any(name not in features for name in rule.requires):
        return []
    values_by_name = {name: features.get(name, ABSENT) for name in rule.key if name not in DERIVED}
    if gender is not None and "Gender" in values_by_name:
        values_by_name["Gender"] = gender
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
        keys.append((facts.word.upos, *kept, *facts.surroundings))
    return keys


class DonorPool:
    """All donors of a split, by key."""

    def __init__(self, grammar: Grammar, mode: str) -> None:
        self.grammar, self.mode = grammar, mode
        self.paradigms = Paradigms(grammar)
        self._cells: dict[Key, _Cell] = {}

    def add(self, sentences: Iterable[Sentence]) -> DonorPool:
        """Add the words of sentences; return the pool."""
        for sentence in sentences:
            if sentence.sent_id is None:
                continue
            for number, facts in enumerate(self.facts(sentence), start=1):
                rule = self.grammar.content.get(facts.word.upos)
                if rule is None:
                    continue
                donor = Donor(
                    form=facts.word.form,
                    lemma=facts.word.lemma,
                    sent_id=sentence.sent_id,
                    word=number,
                    surface=facts.surface,
                )
                for key in keys_of(facts, rule, self.mode):
                    self._cells.setdefault(key, _Cell()).add(donor)
        return self

    def facts(self, sentence: Sentence) -> list[Facts]:
        """Return the facts of every word of a sentence in this pool's mode."""
        return facts_of(sentence, self.agreement(sentence), self.paradigms)

    def agreement(self, sentence: Sentence) -> Agreement | None:
        """Return the agreement of a sentence, None in the paper's mode, which knows of none."""
        return None if self.mode == PAPER else Agreement(sentence, self.grammar, self.paradigms)

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
            form = forms[draw(place, count)]
            if count < len(forms) and form >= own:
                form = forms[draw(place, count) + 1]
            return cell.by_form[form], step
        return None, len(keys)

    def types(self, key: Key) -> int:
        """Return the number of types of a cell."""
        return len(self._cells[key].by_form) if key in self._cells else 0

    def has(self, key: Key, form: str) -> bool:
        """Return whether a form is a type of a cell."""
        return key in self._cells and form in self._cells[key].by_form


def draw(place: bytes, count: int) -> int:
    """Return a number below `count` that depends on nothing but the place."""
    return int.from_bytes(blake2b(place, digest_size=8).digest(), "big") % count

