"""Donors: the words of a split that may replace one another."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from hashlib import blake2b

from harness.data import Sentence, Token
from harness_vyakarana.agreement import Agreement
from harness_vyakarana.grammar import DERIVED, Grammar, Paradigms, Substitution

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
class Facts:
    """The parts of the key of a word that are not its own columns."""

    word: Token
    gender: str | None
    slot: str = ABSENT
    marked: str = ABSENT
    frame: str = ABSENT
    settled: bool = True
    """Whether form, annotation and sentence agree on its gender; if not, it is neither replaced nor a donor."""
    surface: str | None = None
    """The multi-word token that the word is part of."""
    neighbours: Key = ()
    """The forms of the words of that token, with ``*`` for the word itself."""
    donates: bool = True


class DonorPool:
    """All donors of a split, by key."""

    def __init__(self, grammar: Grammar, mode: str) -> None:
        self.grammar, self.mode = grammar, mode
        self.paradigms = Paradigms(grammar)
        self._cells: dict[Key, dict[str, Donor]] = {}
        self._forms: dict[Key, list[str]] = {}
        self._keys: dict[tuple[object, ...], list[Key]] = {}
        self._analyses: dict[int, tuple[Sentence, Agreement | None, list[Facts]]] = {}

    def add(self, sentences: Iterable[Sentence], *, keep: bool = False) -> DonorPool:
        """Add the words of sentences; return the pool. With `keep` it holds them and their `analysis`."""
        for sentence in sentences:
            if sentence.sent_id is None:
                continue
            agreement, words = self.analysis(sentence)
            if keep:
                self._analyses[sentence.line] = sentence, agreement, words
            for number, facts in enumerate(words, start=1):
                if not facts.donates:
                    continue
                word = facts.word
                donor = Donor(
                    form=word.form,
                    lemma=word.lemma,
                    sent_id=sentence.sent_id,
                    word=number,
                    surface=facts.surface,
                )
                for key in self.keys(facts):
                    cell = self._cells.setdefault(key, {})
                    current = cell.get(word.form)
                    # With the smallest reference, the order of sentences does not matter.
                    if current is None or (donor.sent_id, donor.word) < (current.sent_id, current.word):
                        cell[word.form] = donor
        self._forms = {}
        return self

    def analysis(self, sentence: Sentence) -> tuple[Agreement | None, list[Facts]]:
        """Return the agreement and the facts of a sentence, computed once for a sentence that is held."""
        held = self._analyses.get(sentence.line)
        if held is not None and held[0] is sentence:
            return held[1:]
        agreement = self.agreement(sentence)
        return agreement, self.facts(sentence, agreement)

    def agreement(self, sentence: Sentence) -> Agreement | None:
        """Return the agreement of a sentence, None in paper mode, which has none."""
        return None if self.mode == PAPER else Agreement(sentence, self.grammar, self.paradigms)

    def facts(self, sentence: Sentence, agreement: Agreement | None) -> list[Facts]:
        """Return the facts of every word of a sentence, given its `agreement` in this pool's mode.

        Of parts of speech that are never replaced only the gender is returned.
        """
        inside = self._surroundings(sentence)
        word_facts = []
        for number, word in enumerate(sentence.words, start=1):
            surface, neighbours, donates = inside.get(number, (None, (), True))
            gender = word.feature("Gender")
            slot = marked = frame = ABSENT
            settled = True
            if agreement is not None:
                gender = agreement.gender(number) or gender
                if word.upos in self.grammar.content:
                    inflection = self.paradigms.find(word, gender) if gender else None
                    slot = self.paradigms.slot(inflection) if inflection else ABSENT
                    if word.upos == "VERB":
                        frame = agreement.frame(number)
                    elif agreement.marked(number):
                        marked = "marked"
                    settled = agreement.settled(number)
            word_facts.append(
                Facts(
                    word=word, gender=gender, slot=slot, marked=marked, frame=frame, settled=settled,
                    surface=surface, neighbours=neighbours, donates=donates,
                )
            )  # fmt: skip
        return word_facts

    def _surroundings(self, sentence: Sentence) -> dict[int, tuple[str, Key, bool]]:
        """Return (surface, neighbours, donates) of each word inside a multi-word token, by the id of the word.

        A donor inside a multi-word token comes from one with the same clitics. In paper mode only the first two
        words count and donors come from tokens of two words: a third clitic is lost (released CG-TTB).
        """
        surroundings = {}
        for token in sentence.tokens:
            if token.span is None:
                continue
            first, last = token.span
            for number in range(first, last + 1):
                end = first + 1 if self.mode == PAPER and number <= first + 1 else last
                forms = (
                    "*" if neighbour == number else sentence.words[neighbour - 1].form
                    for neighbour in range(first, end + 1)
                )
                surroundings[number] = (token.form, tuple(forms), self.mode != PAPER or last == first + 1)
        return surroundings

    def keys(self, facts: Facts, *, gender: str | None = None, slot: str | None = None) -> list[Key]:
        """Return the keys of a word, from the full one down the ladder; none for a word that is never replaced.

        `gender` and `slot` are those of the donor, if they differ from the word's own. Equal words are computed once.
        """
        word = facts.word
        rule = self.grammar.content.get(word.upos)
        if rule is None:
            return []
        gender = facts.gender if gender is None else gender
        slot = facts.slot if slot is None else slot
        traits = (facts.settled and word.lemma not in rule.keep, facts.marked, facts.frame, facts.neighbours)
        alike = (word.upos, word.feats, word.xpos, gender, slot, *traits)
        if alike not in self._keys:
            make = self._paper_keys if self.mode == PAPER else self._default_keys
            self._keys[alike] = make(facts, rule, gender, slot)
        return self._keys[alike]

    @staticmethod
    def _paper_keys(facts: Facts, rule: Substitution, gender: str | None, slot: str) -> list[Key]:
        features = dict(facts.word.features)
        if not rule.paper or any(name not in features for name in rule.paper):
            return []
        if gender is not None:
            features["Gender"] = gender
        return [(facts.word.upos, *(features[name] for name in rule.paper), *facts.neighbours)]

    @staticmethod
    def _default_keys(facts: Facts, rule: Substitution, gender: str | None, slot: str) -> list[Key]:
        word, features = facts.word, facts.word.features
        is_kept = not rule.key or not facts.settled or word.lemma in rule.keep
        if is_kept or any(name not in features for name in rule.requires):
            return []
        values = {"xpos": word.xpos, "marked": facts.marked, "inflection": slot, "frame": facts.frame}
        values["Gender"] = gender or ABSENT
        # Features come before what is derived, as long as keys decide on draws.
        names = sorted(rule.key, key=lambda name: name in DERIVED)
        keys = []
        dropped: set[str] = set()
        for step in ((), *rule.ladder):
            dropped |= set(step)
            pairs = (
                f"{name}={values[name] if name in values else features.get(name, ABSENT)}"
                for name in names
                if name not in dropped
            )
            keys.append((word.upos, *pairs, *facts.neighbours))
        return keys

    def needed(self, upos: str) -> Sequence[str]:
        """Return the features without which a word of a part of speech is not replaced in this mode."""
        rule = self.grammar.content.get(upos)
        return () if rule is None else rule.paper if self.mode == PAPER else rule.requires if rule.key else ()

    def draw(self, keys: Sequence[Key], own: str, place: bytes) -> tuple[Donor | None, int]:
        """Return a donor, uniform over the types of the first cell that has one, and the step of the ladder.

        In paper mode the word's own type is among them; in the default mode it is not. The draw depends on the place
        alone.
        """
        number = int.from_bytes(blake2b(place, digest_size=8).digest(), "big")
        for step, key in enumerate(keys):
            cell = self._cells.get(key, {})
            candidates = len(cell) - (self.mode != PAPER and own in cell)
            if candidates:
                if key not in self._forms:
                    self._forms[key] = sorted(cell)
                forms = self._forms[key]
                index = number % candidates
                skip = candidates < len(forms) and forms[index] >= own
                return cell[forms[index + skip]], step
        return None, len(keys)

    def lemmas(self, key: Key) -> dict[str, str]:
        """Return the lemma of every form of a cell."""
        return {form: donor.lemma for form, donor in self._cells.get(key, {}).items()}
