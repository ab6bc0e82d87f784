"""Checks a generated treebank against its source, its language and its mode."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from harness.data import Sentence, Token
from harness_vyakarana.agreement import FREE, Agreement
from harness_vyakarana.colorless import DROPPED_LENGTH, bare
from harness_vyakarana.donors import PAPER, DonorPool, Facts, Key
from harness_vyakarana.grammar import Grammar, Inflection
from harness_vyakarana.treebank import variant_id

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

    def add(self, sent_id: str, word: str, message: str) -> None:
        """Add a violation."""
        self.violations.append(Violation(sent_id=sent_id, word=word, message=message))


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
    origin = {variant_id(name, number): name for name in by_id for number in range(len(grammar.variants))}
    result = CheckResult()
    checked: set[str] = set()
    checker: _Checker | None = None
    for sentence in generated:
        sent_id = sentence.sent_id or ""
        result.sentences += 1
        result.words += len(sentence.words)
        if sent_id not in origin:
            result.add(sent_id, "", "no sentence of the source has this variant")
            continue
        checked.add(sent_id)
        base = by_id[origin[sent_id]]
        if checker is None or checker.source is not base:
            checker = _Checker(base, donors, result)
        checker.check(sentence)
    for name, base_name in origin.items():
        if name not in checked and len(by_id[base_name].words) >= shortest:
            result.add(name, "", "the variant is missing")
    return result


class _Checker:
    """Compares a sentence of the source with its variants, one after another."""

    def __init__(self, source: Sentence, pool: DonorPool, result: CheckResult) -> None:
        self.source, self.pool, self.result = source, pool, result
        self.grammar, self.paradigms = pool.grammar, pool.paradigms
        self.agreement = pool.agreement(source)
        self.facts = pool.facts(source, self.agreement)

    def check(self, variant: Sentence) -> None:
        """Add the violations of a variant to the result."""
        sent_id = variant.sent_id or ""
        if [token.id for token in self.source.tokens] != [token.id for token in variant.tokens]:
            self.result.add(sent_id, "", "the ids are not those of the source")
            return
        violations: list[tuple[str, str]] = []
        for before, after in zip(self.source.tokens, variant.tokens, strict=True):
            for column in STRUCTURE:
                if getattr(before, column) != getattr(after, column):
                    violations.append((after.id, f"{column.upper()} is not that of the source"))
        for fact, word in zip(self.facts, variant.words, strict=True):
            violations += self._word(fact, word)
        violations += self._ranges(variant)
        if self.agreement is not None:
            violations += self._disagreements(variant, self.agreement)
        for word_id, message in violations:
            self.result.add(sent_id, word_id, message)

    def _word(self, fact: Facts, word: Token) -> Iterator[tuple[str, str]]:
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
            yield (
                word.id,
                f"no {word.upos} of the split with the key of {old.form!r} has the form {word.form!r}",
            )
        else:
            yield word.id, f"the function word {old.form!r} became {word.form!r}"

    def _found(self, fact: Facts) -> Inflection | None:
        """Return the paradigm of a word of the source; None in paper mode, which has none."""
        has_one = self.agreement is not None and fact.gender is not None
        return self.paradigms.find(fact.word, fact.gender or "") if has_one else None

    def _is_donor(self, fact: Facts, word: Token) -> bool:
        gender, slot = word.feature("Gender"), None
        if self.agreement is not None:
            gender = gender or self.paradigms.shown_gender(word)
            inflection = self._found(fact)
            if inflection is not None and gender not in (None, fact.gender):
                slot = self.paradigms.slot_in(inflection, gender or "", self.agreement.place(int(word.id)))
        return any(self._in_cell(key, word) for key in self.pool.keys(fact, gender=gender, slot=slot))

    def _in_cell(self, key: Key, word: Token) -> bool:
        lemmas, sandhi = self.pool.lemmas(key), self.grammar.sandhi
        if word.form in lemmas or sandhi is None or self.pool.mode == PAPER:
            return word.form in lemmas
        stem = bare(word.form, word.lemma, sandhi)
        return any(stem == bare(form, lemma, sandhi) for form, lemma in lemmas.items())

    def _is_inflected(self, fact: Facts, word: Token) -> bool:
        """Return whether the form is the source word's own in another gender."""
        old, sandhi = fact.word, self.grammar.sandhi
        if self.agreement is None:
            forms: Mapping[str, str] = self.grammar.paper.adpositions.get(old.lemma, {})
            return word.upos == "ADP" and forms.get(word.feature("Gender") or "") == word.form
        if word.lemma != old.lemma:
            return False
        if sandhi is not None and bare(word.form, word.lemma, sandhi) == bare(old.form, old.lemma, sandhi):
            return True
        inflection, context = self._found(fact), self.agreement.place(int(word.id))
        return inflection is not None and any(
            self.paradigms.form(inflection, gender, context) == word.form for gender in self.grammar.genders
        )

    def _ranges(self, variant: Sentence) -> Iterator[tuple[str, str]]:
        """Yield ranges whose surface changed although their words did not."""
        for before, after in zip(self.source.tokens, variant.tokens, strict=True):
            if before.span is None or before.form == after.form:
                continue
            first, last = before.span
            if self.pool.mode == PAPER and last > first + 1:
                continue  # a third clitic is lost even if the word is its own donor
            pairs = zip(self.source.words[first - 1 : last], variant.words[first - 1 : last], strict=True)
            if all(old.form == new.form for old, new in pairs):
                yield after.id, f"the range became {after.form!r}, but none of its words changed"

    def _disagreements(self, variant: Sentence, agreement: Agreement) -> Iterator[tuple[str, str]]:
        for number, word in enumerate(variant.words, start=1):
            controller = agreement.controller(number)
            if controller in (0, FREE) or word.upos in self.grammar.nominal:
                continue
            noun = variant.words[controller - 1]
            gender = self.paradigms.shown_gender(word) or word.feature("Gender")
            if gender is not None and gender != noun.feature("Gender"):
                yield (
                    word.id,
                    f"{word.form!r} is {gender} but its noun {noun.form!r} is {noun.feature('Gender')}",
                )


def _without_gender(feats: str) -> str:
    return "|".join(item for item in feats.split("|") if not item.startswith("Gender="))
