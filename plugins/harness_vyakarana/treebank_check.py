"""Checks a generated treebank against its source, its language and its mode."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from harness_vyakarana.agreement import FREE, Agreement
from harness_vyakarana.colorless import DROPPED_LENGTH, variant_id
from harness_vyakarana.conllu import Sentence, Token
from harness_vyakarana.donors import PAPER, DonorPool, Facts
from harness_vyakarana.grammar import Grammar
from harness_vyakarana.sandhi import bare

__all__ = ["CheckResult", "Violation", "check_colorless"]

STRUCTURE = ("id", "upos", "xpos", "head")
"""Columns that must equal the source's; DEPREL, DEPS and FEATS may come from another release."""
RELEASED = ("feats", "deprel")


@dataclass(frozen=True, slots=True, kw_only=True)
class Violation:
    """A violation of the rules of a generated treebank."""

    sent_id: str
    word: str
    """Id of the word; empty for a sentence."""
    message: str

    def __str__(self) -> str:
        """Return ``test-s1-org2:4: message``."""
        return f"{self.sent_id}{':' if self.word else ''}{self.word}: {self.message}"


@dataclass(slots=True, kw_only=True)
class CheckResult:
    """The result of a check."""

    sentences: int = 0
    words: int = 0
    changed: Counter[str] = field(default_factory=Counter)
    """Changed words by UPOS."""
    other_release: Counter[str] = field(default_factory=Counter)
    """Words whose FEATS or DEPREL differ from the source without a change of gender, by column."""
    violations: list[Violation] = field(default_factory=list)


def check_colorless(
    source: Sequence[Sentence],
    generated: Iterable[Sentence],
    grammar: Grammar,
    mode: str,
    *,
    pool: DonorPool | None = None,
    shortest: int = DROPPED_LENGTH,
) -> CheckResult:
    """Return the violations in a treebank that was generated from `source`.

    Every replaced word must have a donor of the same split, the same UPOS and the same key (`pool`: donors that
    replace those of the source); function words, ids, UPOS, XPOS and heads must be the source's; no variant may be
    missing; in default mode, every word must agree with the noun that it agrees with in the source.
    """
    donors = pool if pool is not None else DonorPool(grammar, mode).add(source)
    by_id = {sentence.sent_id: sentence for sentence in source if sentence.sent_id is not None}
    result = CheckResult()
    seen: set[str] = set()
    known: dict[str, _Source] = {}
    origin = {
        variant_id(sent_id, number): sent_id for sent_id in by_id for number in range(len(grammar.variants))
    }
    for sentence in generated:
        sent_id = sentence.sent_id or ""
        result.sentences += 1
        result.words += len(sentence.words)
        if sent_id not in origin:
            result.violations.append(
                Violation(sent_id=sent_id, word="", message="no sentence of the source has this variant")
            )
            continue
        seen.add(sent_id)
        base = origin[sent_id]
        if base not in known:
            known = {base: _Source.of(by_id[base], donors)}
        result.violations += _Checker(known[base], sentence, grammar, donors, result).violations()
    wanted = (name for name, base in origin.items() if len(by_id[base].words) >= shortest)
    result.violations += [
        Violation(sent_id=name, word="", message="the variant is missing")
        for name in wanted
        if name not in seen
    ]
    return result


@dataclass(frozen=True, slots=True, kw_only=True)
class _Source:
    """A sentence of the source with the data for comparing its variants."""

    sentence: Sentence
    facts: Sequence[Facts]
    agreement: Agreement | None

    @classmethod
    def of(cls, sentence: Sentence, pool: DonorPool) -> _Source:
        agreement = pool.agreement(sentence)
        return cls(sentence=sentence, facts=pool.facts(sentence, agreement), agreement=agreement)


class _Checker:
    def __init__(
        self, source: _Source, made: Sentence, grammar: Grammar, pool: DonorPool, result: CheckResult
    ) -> None:
        self.source, self.made, self.grammar, self.pool, self.result = source, made, grammar, pool, result

    def violations(self) -> Iterator[Violation]:
        old, new = self.source.sentence, self.made
        if [token.id for token in old.tokens] != [token.id for token in new.tokens]:
            yield self._violation("", "the ids are not those of the source")
            return
        for before, after in zip(old.tokens, new.tokens, strict=True):
            for column in STRUCTURE:
                if getattr(before, column) != getattr(after, column):
                    yield self._violation(after.id, f"{column.upper()} is not that of the source")
        for fact, word in zip(self.source.facts, new.words, strict=True):
            yield from self._word(fact, word)
        yield from self._ranges()
        if self.source.agreement is not None:
            yield from self._disagreements(self.source.agreement)

    def _violation(self, word: str, message: str) -> Violation:
        return Violation(sent_id=self.made.sent_id or "", word=word, message=message)

    def _word(self, fact: Facts, word: Token) -> Iterator[Violation]:
        old = fact.word
        for column in RELEASED:
            same = _without_gender(getattr(old, column)) == _without_gender(getattr(word, column))
            self.result.other_release[column] += not same
        if old.form == word.form:
            return
        self.result.changed[word.upos] += 1
        if self._is_donor(fact, word) or self._is_inflected(fact, word):
            return
        if word.upos in self.grammar.content:
            yield self._violation(
                word.id,
                f"no {word.upos} of the split with the key of {old.form!r} has the form {word.form!r}",
            )
        else:
            yield self._violation(word.id, f"the function word {old.form!r} became {word.form!r}")

    def _is_donor(self, fact: Facts, word: Token) -> bool:
        gender = word.feature("Gender") or (
            self.pool.paradigms.shown_gender(word) if self.source.agreement is not None else None
        )
        slots: list[str | None] = [None]
        if (
            self.source.agreement is not None
            and gender not in (None, fact.gender)
            and fact.gender is not None
        ):
            found = self.pool.paradigms.find(fact.word, fact.gender)
            place = self.source.agreement.place(int(word.id))
            slots = [self.pool.paradigms.slot_in(found, gender, place) if found and gender else None]
        keys = [key for slot in slots for key in self.pool.keys(fact, gender=gender, slot=slot)]
        return any(self._in_cell(key, word) for key in keys)

    def _in_cell(self, key: tuple[str, ...], word: Token) -> bool:
        sandhi = self.grammar.sandhi
        if self.pool.has(key, word.form):
            return True
        if sandhi is None or self.pool.mode == PAPER:
            return False
        wanted = bare(word.form, word.lemma, sandhi)
        return any(wanted == bare(form, lemma, sandhi) for form, lemma in self.pool.types(key))

    def _is_inflected(self, fact: Facts, word: Token) -> bool:
        """Return whether the form is the source word's own in another gender."""
        if self.pool.mode == PAPER:
            forms: Mapping[str, str] = self.grammar.paper.adpositions.get(fact.word.lemma, {})
            return word.upos == "ADP" and forms.get(word.feature("Gender") or "") == word.form
        if self.grammar.sandhi is not None and word.lemma == fact.word.lemma:
            sandhi = self.grammar.sandhi
            if bare(word.form, word.lemma, sandhi) == bare(fact.word.form, fact.word.lemma, sandhi):
                return True
        if fact.gender is None or self.source.agreement is None or word.lemma != fact.word.lemma:
            return False
        found = self.pool.paradigms.find(fact.word, fact.gender)
        place = self.source.agreement.place(int(word.id))
        return found is not None and any(
            self.pool.paradigms.form(found, gender, place) == word.form for gender in self.grammar.genders
        )

    def _ranges(self) -> Iterator[Violation]:
        """Yield ranges whose surface changed although their words did not."""
        for before, after in zip(self.source.sentence.tokens, self.made.tokens, strict=True):
            if before.span is None:
                continue
            first, last = before.span
            if self.pool.mode == PAPER and last > first + 1:
                continue  # a third clitic is lost even if the word is its own donor
            pairs = list(zip(self.source.sentence.words, self.made.words, strict=True))[first - 1 : last]
            changed = any(old.form != new.form for old, new in pairs)
            if before.form != after.form and not changed:
                yield self._violation(
                    after.id, f"the range became {after.form!r}, but none of its words changed"
                )

    def _disagreements(self, agreement: Agreement) -> Iterator[Violation]:
        for number, word in enumerate(self.made.words, start=1):
            controller = agreement.controller(number)
            if controller in (0, FREE) or word.upos in self.grammar.nominal:
                continue
            noun = self.made.words[controller - 1]
            shown = self._shown(word)
            if shown is not None and shown != noun.feature("Gender"):
                yield self._violation(
                    word.id,
                    f"{word.form!r} is {shown} but its noun {noun.form!r} is {noun.feature('Gender')}",
                )

    def _shown(self, word: Token) -> str | None:
        """Return the gender that a form shows, by the paradigms; else by its feature."""
        shown = self.pool.paradigms.shown_gender(word)
        return shown if shown is not None else word.feature("Gender")


def _without_gender(feats: str) -> str:
    return "|".join(item for item in feats.split("|") if not item.startswith("Gender="))
