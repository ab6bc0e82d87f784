"""Colorless-green sentences: content words replaced at random by words with the same features, in gender variants.

Source: Patil et al. (MRL 2021), section 3, after Gulordava et al. (NAACL 2018). The ``paper`` mode reproduces the
released treebanks with their errors; the default mode keeps agreement (see `agreement`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from harness_vyakarana.agreement import FREE, Agreement
from harness_vyakarana.conllu import NONE, Sentence, Token, feats_of
from harness_vyakarana.donors import PAPER, Donor, DonorPool, Facts
from harness_vyakarana.grammar import Grammar
from harness_vyakarana.sandhi import apply_sandhi

__all__ = ["DONOR_KEY", "DROPPED_LENGTH", "Generator", "Report", "text_of", "variant_id"]

DROPPED_LENGTH = 4
"""Sentences with fewer words are dropped (recomputed from the released counts)."""
DONOR_KEY = "Donor"
NO_SPACE = "SpaceAfter=No"
KEPT_COMMENTS = ("newdoc", "newpar")


@dataclass(slots=True, kw_only=True)
class Report:
    """The counts of a generator."""

    read: int = 0
    dropped: int = 0
    written: int = 0
    words: Counter[str] = field(default_factory=Counter)
    """Words of the output by UPOS; so are all counts below."""
    replaced: Counter[str] = field(default_factory=Counter)
    inflected: Counter[str] = field(default_factory=Counter)
    """Forms that were looked up in a paradigm."""
    stepped: Counter[tuple[str, int]] = field(default_factory=Counter)
    """Donors by the step of the ladder; step 0 is the full key."""
    without_donor: Counter[str] = field(default_factory=Counter)
    """Replaceable words without a donor at any step."""
    genders: Counter[tuple[int, str]] = field(default_factory=Counter)
    """Words with a gender, by variant (from 0) and gender."""

    def add(self, other: Report) -> None:
        """Add the counts of another report."""
        self.read, self.dropped, self.written = (
            self.read + other.read,
            self.dropped + other.dropped,
            self.written + other.written,
        )
        for mine, theirs in (
            (self.words, other.words),
            (self.replaced, other.replaced),
            (self.inflected, other.inflected),
            (self.without_donor, other.without_donor),
        ):
            mine.update(theirs)
        self.stepped.update(other.stepped)
        self.genders.update(other.genders)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Change:
    """The replacement of a word."""

    form: str
    lemma: str
    gender: str | None
    donor: Donor | None = None


def variant_id(sent_id: str, variant: int) -> str:
    """Return the id of a variant, counted from 0: ``<sent_id>-org1`` as in the released treebanks."""
    return f"{sent_id}-org{variant + 1}"


def text_of(tokens: Sequence[Token], *, spaced: bool = False) -> str:
    """Return the text of a sentence by ``SpaceAfter=No``, or with a space after every token."""
    pieces: list[str] = []
    inside = 0
    if not spaced and all(token.id.isdigit() for token in tokens):
        closed = (NO_SPACE in token.misc and NO_SPACE in token.misc.split("|") for token in tokens)
        return "".join(
            token.form if joined else token.form + " " for token, joined in zip(tokens, closed, strict=True)
        ).rstrip(" ")
    for token in tokens:
        span = token.span
        if span is not None:
            inside = span[1]
        elif not token.is_word or int(token.id) <= inside:
            continue
        pieces.append(token.form)
        if spaced or NO_SPACE not in token.misc.split("|"):
            pieces.append(" ")
    return "".join(pieces).rstrip(" ")


class Generator:
    """Makes the variants of sentences from a pool of donors; independent of the position of a sentence."""

    def __init__(self, grammar: Grammar, pool: DonorPool, *, seed: int = 0) -> None:
        self.grammar, self.pool, self.seed = grammar, pool, seed
        self.mode = pool.mode
        self.paradigms = pool.paradigms
        self.report = Report()

    def variants(self, sentence: Sentence, *, header: Sequence[str] = ()) -> list[Sentence]:
        """Return all variants of a sentence with a tree and a sent_id, in order; `header` are comment lines.

        Raises `ValueError` for a sentence without a sent_id.
        """
        if sentence.sent_id is None:
            raise ValueError("A sentence without a sent_id has no variants.")
        agreement = self.pool.agreement(sentence)
        facts = self.pool.facts(sentence, agreement)
        controllers = _controllers(agreement, facts)
        made = []
        genders = Counter(gender for word in sentence.words if (gender := word.feature("Gender")) is not None)
        for number, variant in enumerate(self.grammar.variants):
            place = f"{self.seed}\0{sentence.sent_id}\0{number}\0"
            if agreement is None:
                changes = self._as_published(facts, variant, place)
            else:
                changes = self._agreeing(facts, agreement, controllers, variant, place)
            made.append(self._written(sentence, changes, number, header if number == 0 else ()))
            self._count(sentence, made[-1], changes, number, genders)
        for word in sentence.words:
            self.report.words[word.upos] += len(made)
        return made

    # The released treebanks -----------------------------------------------------------------------------

    def _as_published(self, facts: Sequence[Facts], variant: str, place: str) -> dict[int, _Change]:
        paper, changes = self.grammar.paper, {}
        taken: set[str] = set()
        for number, fact in enumerate(facts, start=1):
            word, gender = fact.word, fact.gender
            flips = word.upos in paper.flips and gender is not None
            target = self.grammar.gender_in(variant, gender) if flips and gender is not None else gender
            donor = self._donor(fact, place + word.id, target, None, taken)
            form, lemma = (word.form, word.lemma) if donor is None else (donor.form, donor.lemma)
            if word.upos == "ADP" and word.lemma in paper.adpositions and target is not None:
                form = paper.adpositions[word.lemma].get(target, form)
            if donor is not None or form != word.form or target != gender:
                changes[number] = _Change(form=form, lemma=lemma, gender=target, donor=donor)
        return changes

    # With agreement -------------------------------------------------------------------------------------

    def _agreeing(
        self,
        facts: Sequence[Facts],
        agreement: Agreement,
        controllers: Mapping[int, int],
        variant: str,
        place: str,
    ) -> dict[int, _Change]:
        changes: dict[int, _Change] = {}
        genders: dict[int, str | None] = {}
        taken: set[str] = set()
        for number, fact in enumerate(facts, start=1):
            if fact.word.upos in self.grammar.nominal:
                change = self._nominal(fact, variant, place, taken)
                genders[number] = fact.gender if change is None else change.gender
                if change is not None:
                    changes[number] = change
        for number, fact in enumerate(facts, start=1):
            if fact.word.upos in self.grammar.nominal:
                continue
            gender, controller = fact.gender, controllers.get(number, 0)
            if controller > 0:
                gender = genders[controller]
            elif controller == FREE and gender is not None:
                gender = self.grammar.gender_in(variant, gender)
            change = self._agreeing_word(number, fact, gender, agreement, place, taken)
            if change is not None:
                changes[number] = change
        return changes

    def _nominal(self, fact: Facts, variant: str, place: str, taken: set[str]) -> _Change | None:
        target = None if fact.gender is None else self.grammar.gender_in(variant, fact.gender)
        donor = self._donor(fact, place + fact.word.id, target, None, taken)
        if donor is None:
            return None
        return _Change(form=donor.form, lemma=donor.lemma, gender=target, donor=donor)

    def _agreeing_word(
        self,
        number: int,
        fact: Facts,
        gender: str | None,
        agreement: Agreement,
        place: str,
        taken: set[str],
    ) -> _Change | None:
        word, turned = fact.word, gender is not None and gender != fact.gender
        slot = form = None
        if turned and gender is not None and fact.gender is not None:
            found = self.paradigms.find(word, fact.gender)
            if found is not None:
                where = agreement.place(number)
                slot = self.paradigms.slot_in(found, gender, where)
                form = self.paradigms.form(found, gender, where)
        donor = self._donor(fact, place + word.id, gender, slot, taken)
        if donor is not None:
            return _Change(form=donor.form, lemma=donor.lemma, gender=gender, donor=donor)
        if not turned:
            return None
        if form is not None and form != word.form:
            self.report.inflected[word.upos] += 1
        return _Change(form=form or word.form, lemma=word.lemma, gender=gender)

    def _donor(
        self, fact: Facts, place: str, gender: str | None, slot: str | None, taken: set[str]
    ) -> Donor | None:
        """Return a donor; `taken` are multi-word tokens with a replaced word."""
        if fact.around.surface is not None and fact.around.surface in taken:
            return None
        keys = self.pool.keys(fact, gender=gender, slot=slot)
        if not keys:
            return None
        donor, step = self.pool.draw(keys, fact.word.form, place.encode())
        if donor is None:
            self.report.without_donor[fact.word.upos] += 1
            return None
        self.report.stepped[fact.word.upos, step] += 1
        if fact.around.surface is not None:
            taken.add(fact.around.surface)
        return donor

    # Lines ------------------------------------------------------------------------------------------------

    def _written(
        self, sentence: Sentence, changes: Mapping[int, _Change], variant: int, header: Sequence[str]
    ) -> Sentence:
        words = [
            word if (change := changes.get(number)) is None else self._word(word, change)
            for number, word in enumerate(sentence.words, start=1)
        ]
        tokens = _add_ranges(sentence, words, changes)
        if self.mode != PAPER and self.grammar.sandhi is not None:
            tokens = apply_sandhi(tokens, self.grammar.sandhi, _changed(sentence.tokens, tokens))
            words = [token for token in tokens if token.is_word]
        return Sentence(
            sent_id=variant_id(sentence.sent_id or "", variant),
            comments=self._comments(sentence, tokens, variant, header),
            tokens=tuple(tokens),
            words=tuple(words),
            heads=sentence.heads,
            line=sentence.line,
        )

    def _word(self, word: Token, change: _Change) -> Token:
        feats, misc = word.feats, word.misc
        if change.gender is not None and word.feature("Gender") not in (None, change.gender):
            feats = feats_of({**word.features, "Gender": change.gender})
        if self.mode != PAPER and (change.form, change.lemma) != (word.form, word.lemma):
            misc = _without(misc, self.grammar.stale)
        if change.donor is not None:
            donor = f"{DONOR_KEY}={change.donor.reference}"
            misc = donor if misc == NONE else f"{misc}|{donor}"
        return Token(
            id=word.id,
            form=change.form,
            lemma=change.lemma,
            upos=word.upos,
            xpos=word.xpos,
            feats=feats,
            head=word.head,
            deprel=word.deprel,
            deps=word.deps,
            misc=misc,
        )

    def _comments(
        self, sentence: Sentence, tokens: Sequence[Token], variant: int, header: Sequence[str]
    ) -> tuple[str, ...]:
        sent_id = variant_id(sentence.sent_id or "", variant)
        if self.mode == PAPER:
            text = text_of(tokens, spaced=True)
            own = (f"# text = {text}", "# translit = _", "# orig_file_sentence = _")
            return (*header, f"# sent_id = {sent_id}", *own)
        kept = [
            comment
            for comment in sentence.comments
            if variant == 0 and comment[1:].strip().startswith(KEPT_COMMENTS)
        ]
        lines = (
            f"# sent_id = {sent_id}",
            f"# source_sent_id = {sentence.sent_id}",
            f"# variant = {self.grammar.variants[variant]}",
            f"# text = {text_of(tokens)}",
        )
        return (*header, *kept, *lines)

    def _count(
        self,
        source: Sentence,
        made: Sentence,
        changes: Mapping[int, _Change],
        variant: int,
        genders: Counter[str],
    ) -> None:
        """Count a variant; `genders` are the genders of the source's words."""
        report = self.report
        report.written += 1
        for gender, count in genders.items():
            report.genders[variant, gender] += count
        for number, change in changes.items():
            old, new = source.words[number - 1], made.words[number - 1]
            if change.donor is not None and new.form != old.form:
                report.replaced[new.upos] += 1
            before, after = old.feature("Gender"), new.feature("Gender")
            if before is not None and after is not None and before != after:
                report.genders[variant, before] -= 1
                report.genders[variant, after] += 1


def _controllers(agreement: Agreement | None, facts: Sequence[Facts]) -> dict[int, int]:
    if agreement is None:
        return {}
    return {
        number: agreement.controller(number)
        for number, fact in enumerate(facts, start=1)
        if fact.gender is not None
    }


def _add_ranges(sentence: Sentence, words: Sequence[Token], changes: Mapping[int, _Change]) -> list[Token]:
    """Return all lines of a variant: the words as changed, and the ranges with their donors' surface."""
    if len(words) == len(sentence.tokens):
        return list(words)
    tokens: list[Token] = []
    for token in sentence.tokens:
        span = token.span
        if span is not None:
            inside = (changes.get(number) for number in range(span[0], span[1] + 1))
            surfaces = [c.donor.surface for c in inside if c is not None and c.donor is not None]
            tokens.append(token._replace(form=surfaces[0]) if surfaces and surfaces[0] else token)
        elif token.is_word:
            tokens.append(words[int(token.id) - 1])
        else:
            tokens.append(token)
    return tokens


def _changed(old: Sequence[Token], new: Sequence[Token]) -> list[bool]:
    return [before.form != after.form for before, after in zip(old, new, strict=True)]


def _without(misc: str, keys: Sequence[str]) -> str:
    kept = [item for item in misc.split("|") if item.partition("=")[0] not in keys]
    return "|".join(kept) or NONE
