"""Colorless-green sentences: content words replaced at random by words with the same features, in gender variants.

Source: Patil et al. (MRL 2021), section 3, after Gulordava et al. (NAACL 2018). The ``paper`` mode reproduces the
released treebanks with their errors; the default mode keeps agreement (see `agreement`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path

from harness.data import Sentence, Token, surface, text_of, token_of
from harness_vyakarana.agreement import FREE, Agreement
from harness_vyakarana.donors import PAPER, Donor, DonorPool, Facts
from harness_vyakarana.grammar import Grammar, ParadigmPlace, Sandhi
from harness_vyakarana.treebank import (
    Job,
    feats_of,
    licence_of,
    usable_sentences,
    variant_id,
    write_sentences,
)

DISTRIBUTION = "multilingual-harness"
DROPPED_LENGTH = 4
"""Sentences with fewer words are dropped (recomputed from the released counts)."""
RARE = 0.05
"""Less than this share of the words of a part of speech is nearly none."""
DONOR_KEY = "Donor"
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
    missing: Counter[tuple[str, str]] = field(default_factory=Counter)
    """Words of the output without a feature that the mode needs to replace them, by UPOS and feature."""

    def gender_counts(self) -> Counter[str]:
        """Return the words of all variants by gender: Table 2 of the paper."""
        counts: Counter[str] = Counter()
        for (_, gender), count in self.genders.items():
            counts[gender] += count
        return counts

    def rarely_replaced(self) -> list[str]:
        """Return a sentence for every part of speech of which nearly no word was replaced for want of features."""
        sentences = []
        for upos in dict.fromkeys(upos for upos, _ in self.missing):
            if self.replaced[upos] < RARE * self.words[upos]:
                counts = Counter({name: count for (of, name), count in self.missing.items() if of == upos})
                reasons = ", ".join(f"{count:,} have no {name}" for name, count in counts.most_common())
                sentences.append(
                    f"{self.replaced[upos]:,} of {self.words[upos]:,} {upos} were replaced: {reasons}"
                )
        return sentences

    def add(self, other: Report) -> None:
        """Add the counts of another report."""
        for name in self.__slots__:
            ours, theirs = getattr(self, name), getattr(other, name)
            if isinstance(ours, Counter):
                ours.update(theirs)
            else:
                setattr(self, name, ours + theirs)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Change:
    """The replacement of a word."""

    form: str
    lemma: str
    gender: str | None
    donor: Donor | None = None


def generate_file(
    job: Job,
    grammar: Grammar,
    mode: str,
    *,
    seed: int = 0,
    shortest: int = DROPPED_LENGTH,
    pool_file: Path | None = None,
    advance: Callable[[int], None] = lambda _: None,
) -> Report:
    """Write the variants of a file, in the order of the source, and return the counts.

    Donors come from the file itself, or from `pool_file`: a shard of a split needs it to get the same variants as
    the whole split. The file appears when it is complete. Raises `TreebankError` with all faults of the source.
    """
    donors = pool_file or job.source
    sentences = list(usable_sentences(job.source))
    pool = DonorPool(grammar, mode)
    pool.add(usable_sentences(pool_file) if pool_file else sentences, keep=not pool_file)
    generator = Generator(grammar, pool, seed=seed)
    header = (
        f"# generator = {DISTRIBUTION} {version(DISTRIBUTION)} colorless-green",
        f"# generated_from = {job.source.name}",
        f"# licence = {licence_of(job.source)}",
        f"# mode = {mode}, seed = {seed}, language = {job.language}, donors = {donors.name}",
    )

    def variants() -> Iterator[Sentence]:
        lines: Sequence[str] = header
        for sentence in sentences:
            generator.report.read += 1
            if len(sentence.words) < shortest:
                generator.report.dropped += 1
                continue
            yield from generator.variants(sentence, header=lines)
            lines = ()
            advance(1)

    write_sentences(job.target, variants())
    return generator.report


class Generator:
    """Makes the variants of sentences from a pool of donors; independent of the position of a sentence."""

    def __init__(self, grammar: Grammar, pool: DonorPool, *, seed: int = 0) -> None:
        self.grammar, self.pool, self.seed = grammar, pool, seed
        self.mode = pool.mode
        self.paradigms = pool.paradigms
        self.report = Report()
        self._forms: dict[tuple[str, str, str, str, str, ParadigmPlace], tuple[str, str | None]] = {}

    def variants(self, sentence: Sentence, *, header: Sequence[str] = ()) -> list[Sentence]:
        """Return all variants of a sentence with a tree and a sent_id, in order; `header` are comment lines.

        Raises `ValueError` for a sentence without a sent_id.
        """
        if sentence.sent_id is None:
            raise ValueError("A sentence without a sent_id has no variants.")
        agreement, facts = self.pool.analysis(sentence)
        sentences, changed = [], []
        for number, variant in enumerate(self.grammar.variants):
            draw_key = f"{self.seed}\0{sentence.sent_id}\0{number}\0"
            if agreement is None:
                changes = self._as_published(facts, variant, draw_key)
            else:
                changes = self._agreeing(facts, agreement, variant, draw_key)
            sentences.append(self._written(sentence, changes, number, header if number == 0 else ()))
            changed.append(changes)
        self._count(sentence, sentences, changed)
        return sentences

    # The released treebanks -----------------------------------------------------------------------------

    def _as_published(self, facts: Sequence[Facts], variant: str, draw_key: str) -> dict[int, _Change]:
        paper, changes = self.grammar.paper, {}
        replaced_tokens: set[str] = set()
        for number, fact in enumerate(facts, start=1):
            word, gender = fact.word, fact.gender
            flips = word.upos in paper.flips and gender is not None
            target = self.grammar.gender_in(variant, gender) if flips and gender is not None else gender
            donor = self._donor(fact, draw_key, target, None, replaced_tokens)
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
        variant: str,
        draw_key: str,
    ) -> dict[int, _Change]:
        changes: dict[int, _Change] = {}
        genders: dict[int, str | None] = {}
        replaced_tokens: set[str] = set()
        for number, fact in enumerate(facts, start=1):
            if fact.word.upos in self.grammar.nominal:
                gender = None if fact.gender is None else self.grammar.gender_in(variant, fact.gender)
                donor = self._donor(fact, draw_key, gender, None, replaced_tokens)
                genders[number] = fact.gender if donor is None else gender
                if donor is not None:
                    changes[number] = _Change(form=donor.form, lemma=donor.lemma, gender=gender, donor=donor)
        for number, fact in enumerate(facts, start=1):
            if fact.word.upos in self.grammar.nominal:
                continue
            gender = fact.gender
            controller = 0 if gender is None else agreement.controller(number)
            if controller > 0:
                gender = genders[controller]
            elif controller == FREE and gender is not None:
                gender = self.grammar.gender_in(variant, gender)
            form, slot = self._turned(number, fact, gender, agreement)
            donor = self._donor(fact, draw_key, gender, slot, replaced_tokens)
            if donor is not None:
                changes[number] = _Change(form=donor.form, lemma=donor.lemma, gender=gender, donor=donor)
            elif gender is not None and gender != fact.gender:
                if form != fact.word.form:
                    self.report.inflected[fact.word.upos] += 1
                changes[number] = _Change(form=form, lemma=fact.word.lemma, gender=gender)
        return changes

    def _turned(
        self, number: int, fact: Facts, gender: str | None, agreement: Agreement
    ) -> tuple[str, str | None]:
        """Return form and slot of a word in a gender; its own form and None without a paradigm."""
        word = fact.word
        if gender is None or fact.gender is None or gender == fact.gender:
            return word.form, None
        context = agreement.place(number)
        key = (word.upos, word.form, word.lemma, fact.gender, gender, context)
        if key not in self._forms:
            inflection = self.paradigms.find(word, fact.gender)
            self._forms[key] = word.form, None
            if inflection is not None:
                form = self.paradigms.form(inflection, gender, context) or word.form
                self._forms[key] = form, self.paradigms.slot_in(inflection, gender, context)
        return self._forms[key]

    def _donor(
        self, fact: Facts, draw_key: str, gender: str | None, slot: str | None, replaced_tokens: set[str]
    ) -> Donor | None:
        """Return a donor; `replaced_tokens` are multi-word tokens with a replaced word."""
        if fact.word.upos not in self.grammar.content or (
            fact.surface is not None and fact.surface in replaced_tokens
        ):
            return None
        keys = self.pool.keys(fact, gender=gender, slot=slot)
        if not keys:
            return None
        donor, step = self.pool.draw(keys, fact.word.form, (draw_key + fact.word.id).encode())
        if donor is None:
            self.report.without_donor[fact.word.upos] += 1
            return None
        self.report.stepped[fact.word.upos, step] += 1
        if fact.surface is not None:
            replaced_tokens.add(fact.surface)
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
            changed = [old.form != new.form for old, new in zip(sentence.tokens, tokens, strict=True)]
            tokens = apply_sandhi(tokens, self.grammar.sandhi, changed)
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
            misc = donor if misc == "_" else f"{misc}|{donor}"
        columns = (word.upos, word.xpos, feats, word.head, word.deprel, word.deps, misc)
        return token_of((word.id, change.form, change.lemma, *columns))

    def _comments(
        self, sentence: Sentence, tokens: Sequence[Token], variant: int, header: Sequence[str]
    ) -> tuple[str, ...]:
        sent_id = variant_id(sentence.sent_id or "", variant)
        if self.mode == PAPER:
            text = text_of(tokens, spaced=True)
            paper_lines = (f"# text = {text}", "# translit = _", "# orig_file_sentence = _")
            return (*header, f"# sent_id = {sent_id}", *paper_lines)
        document_comments = [
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
        return (*header, *document_comments, *lines)

    def _count(
        self, source: Sentence, variants: Sequence[Sentence], changed: Sequence[Mapping[int, _Change]]
    ) -> None:
        report = self.report
        report.written += len(variants)
        gendered = []
        for position, word in enumerate(source.words):
            report.words[word.upos] += len(variants)
            for name in self.pool.needed(word.upos):
                if word.feature(name) is None:
                    report.missing[word.upos, name] += len(variants)
            if (gender := word.feature("Gender")) is not None:
                gendered.append((position, gender))
        for variant, (sentence, changes) in enumerate(zip(variants, changed, strict=True)):
            for number in sorted(changes):
                old, new = source.words[number - 1], sentence.words[number - 1]
                if changes[number].donor is not None and new.form != old.form:
                    report.replaced[new.upos] += 1
            for position, before in gendered:
                report.genders[variant, before] += 0  # A gender that no word has left is shown as 0.
                report.genders[variant, sentence.words[position].feature("Gender") or before] += 1


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


def _without(misc: str, keys: Sequence[str]) -> str:
    items = [item for item in misc.split("|") if item.partition("=")[0] not in keys]
    return "|".join(items) or "_"


# Sandhi of Tamil ---------------------------------------------------------------------------------------


def bare(form: str, lemma: str, sandhi: Sandhi) -> str:
    """Return a form without its final sandhi consonant; a lemma that ends in one has none."""
    endings = tuple(consonant + sandhi.suffix for consonant in sandhi.consonants)
    if form.endswith(endings) and not lemma.endswith(endings):
        return form[: -len(endings[0])]
    return form


def apply_sandhi(tokens: Sequence[Token], sandhi: Sandhi, changed: Sequence[bool]) -> list[Token]:
    """Return the lines of a sentence in which changed words, and the words before them, fit the next word.

    Their final consonant repeats the first consonant of the next word, and is dropped before any other letter; the
    cases and verb forms that the language definition names get one. Words inside multi-word tokens stay: their surface
    comes from the donor.
    """
    lines, positions = list(tokens), surface(tokens)
    for position, following in zip(positions, [*positions[1:], None], strict=True):
        touched = changed[position] or (following is not None and changed[following])
        token = tokens[position]
        if not touched or not token.is_word:
            continue
        stem = bare(token.form, token.lemma, sandhi)
        if stem == token.form and not _gets_consonant(token, stem, sandhi):
            continue
        first = "" if following is None else tokens[following].form[:1]
        ending = first + sandhi.suffix if first in sandhi.consonants else ""
        lines[position] = token._replace(form=stem + ending)
    return lines


def _gets_consonant(token: Token, stem: str, sandhi: Sandhi) -> bool:
    if token.feature("Case") in sandhi.cases and stem.endswith(sandhi.endings):
        return True
    return stem.endswith(sandhi.verb_forms.get(token.feature("VerbForm") or "", ()))
