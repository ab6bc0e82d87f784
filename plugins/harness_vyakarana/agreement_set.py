"""Agreement items from a treebank: a verb, and the same verb in a form that does not agree.

As in Gulordava et al. (NAACL 2018) the noun that the verb agrees with precedes it, and its wrong form differs in one
feature only. The form comes from the paradigms of the language, or from the treebank if the language has none.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from harness.data import Sentence, Token, surface
from harness_vyakarana.agreement import Agreement, is_relation
from harness_vyakarana.grammar import Grammar, Paradigms
from harness_vyakarana.labels import NOMINALS, strict_agreement_items
from harness_vyakarana.treebank import feats_of, source_of

GENDER, NUMBER = "Gender", "Number"
COMMON, OF_COMMON = "Com", frozenset({"Masc", "Fem"})
"""A common gender is one or the other (Universal Dependencies, Gender): their forms are not wrong for each other."""
IGNORED_FEATURES = frozenset({GENDER, NUMBER, "Polite"})
"""Features in which forms of one lexeme may differ; in Tamil a common gender is also polite."""
SINGULAR, PLURAL = "Sing", "Plur"


@dataclass(slots=True, kw_only=True)
class SetReport:
    """Counts of the verbs of a treebank."""

    sentences: int = 0
    items: Counter[tuple[str, str]] = field(default_factory=Counter)
    """Items by group and contrast."""
    skipped: Counter[str] = field(default_factory=Counter)
    """Agreeing verbs without an item, by reason."""

    def row(self, source: str) -> dict[str, Any]:
        """Return the counts as a plain object."""
        items = [
            {"group": group, "contrast": contrast, "items": count}
            for (group, contrast), count in sorted(self.items.items())
        ]
        return {"source": source, "sentences": self.sentences, "items": items, "left": dict(self.skipped)}


class Lexicon:
    """Verb forms of a treebank by gender and number, for each lemma and set of features except `IGNORED_FEATURES`."""

    def __init__(self, sentences: Iterable[Sentence] = ()) -> None:
        self._forms: dict[tuple[str, ...], dict[tuple[str | None, str | None], Counter[str]]] = {}
        for sentence in sentences:
            for word in sentence.words:
                if word.upos == "VERB":
                    cells = self._forms.setdefault(_lexeme(word), {})
                    cells.setdefault(_cell(word), Counter())[word.form] += 1

    def other_gender(self, word: Token) -> str | None:
        """Return the most frequent form of another gender and the same number; ties are broken by letters.

        A form that the treebank also has in the word's own gender and number is right, so it is not used.
        """
        cells = self._forms.get(_lexeme(word), {})
        gender, number = _cell(word)
        right_forms = {word.form, *cells.get((gender, number), ())}
        counts: Counter[str] = Counter()
        for (cell_gender, cell_number), forms in cells.items():
            if cell_number == number and _exclude(gender, cell_gender):
                counts.update({form: count for form, count in forms.items() if form not in right_forms})
        return min(counts, key=lambda form: (-counts[form], form), default=None)


def _lexeme(word: Token) -> tuple[str, ...]:
    features = {name: value for name, value in word.features.items() if name not in IGNORED_FEATURES}
    return (word.upos, word.lemma, feats_of(features))


def _exclude(first: str | None, second: str | None) -> bool:
    """Return whether two genders exclude each other."""
    if first is None or second is None or first == second:
        return False
    return not (COMMON in (first, second) and OF_COMMON & {first, second})


def _cell(word: Token) -> tuple[str | None, str | None]:
    return word.feature(GENDER), word.feature(NUMBER)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Contrast:
    """A wrong form of a verb, and the one feature that makes it wrong."""

    name: str
    feature: str
    value: str | None
    """The value that the wrong form shows; None for any value except the right one."""
    form: str


class AgreementSet:
    """Makes the items of sentences in one language.

    Args:
        grammar: The definition of the language, with its paradigms.
        lexicon: The forms, for languages without paradigms.
    """

    def __init__(self, grammar: Grammar, lexicon: Lexicon) -> None:
        self._grammar, self._lexicon = grammar, lexicon
        self._paradigms = Paradigms(grammar)
        self.report = SetReport()

    def items(self, sentence: Sentence) -> Iterator[dict[str, Any]]:
        """Yield the items of a sentence with a tree and a sent_id, in the order of its verbs, as plain objects."""
        self.report.sentences += 1
        assert sentence.sent_id is not None
        source = source_of(sentence.sent_id)
        group = "original" if source == sentence.sent_id else "generated"
        for verb, controller, contrasts in self._verbs(sentence):
            texts = _around(sentence.tokens, verb)
            if texts is None:
                self.report.skipped["part of a multi-word token"] += 1
                continue
            if not contrasts:
                self.report.skipped["no other form"] += 1
            word, noun = sentence.words[verb - 1], sentence.words[controller - 1]
            for contrast in contrasts:
                self.report.items[group, contrast.name] += 1
                yield {
                    "id": f"{sentence.sent_id}:{verb}:{contrast.name}",
                    "construction": source,
                    "group": group,
                    "before": texts[0],
                    "right": word.form,
                    "wrong": contrast.form,
                    "after": texts[1],
                    "tags": {
                        "contrast": contrast.name,
                        "controller": noun.form,
                        "attractors": str(_attractors(sentence.words[controller : verb - 1], noun, contrast)),
                        "distance": str(verb - controller - 1),
                    },
                }

    def _verbs(self, sentence: Sentence) -> Iterator[tuple[int, int, list[_Contrast]]]:
        """Yield (id of an agreeing verb, id of the noun before it, wrong forms)."""
        if not self._grammar.paradigms:
            for item in strict_agreement_items(sentence):
                if item.subject is not None and item.subject < item.word:
                    yield item.word + 1, item.subject + 1, self._from_treebank(sentence.words[item.word])
            return
        agreement = Agreement(sentence, self._grammar, self._paradigms)
        for number, word in enumerate(sentence.words, start=1):
            if word.upos != "VERB" or not 0 < (controller := agreement.controller(number)) < number:
                continue
            if self._has_pronoun(agreement, number):
                self.report.skipped["may agree with a pronoun"] += 1
            else:
                yield number, controller, self._from_paradigm(agreement, number, controller)

    def _has_pronoun(self, agreement: Agreement, verb: int) -> bool:
        """Return whether a verb has a nominative pronoun as subject, whose gender no form shows."""
        names = self._grammar.relations.subject
        return any(
            is_relation(child.deprel, names)
            and child.upos == "PRON"
            and child.lemma not in self._grammar.relative_pronouns
            and child.feature("Case") in (None, "Nom")
            and not agreement.ergative(number)
            for number in agreement.children[verb]
            for child in [agreement.word(number)]
        )

    def _from_treebank(self, word: Token) -> list[_Contrast]:
        form = self._lexicon.other_gender(word)
        return [] if form is None else [_Contrast(name="gender", feature=GENDER, value=None, form=form)]

    def _from_paradigm(self, agreement: Agreement, number: int, controller: int) -> list[_Contrast]:
        """Return the forms of the other genders, and the singular if the noun requires a plural.

        The plural of a verb is not wrong for a singular noun: it is polite. An infinitive has no wrong form, since
        not all speakers make it agree.
        """
        word, context = agreement.word(number), agreement.place(number)
        gender = agreement.gender(number)
        inflection = None if gender is None else self._paradigms.find(word, gender)
        if gender is None or inflection is None or inflection.paradigm in self._grammar.citation_forms:
            return []
        if self._paradigms.form(inflection, gender, context) != word.form:
            return []
        contrasts = []
        for candidate in self._grammar.genders:
            form = None if candidate == gender else self._paradigms.form(inflection, candidate, context)
            if form not in (None, word.form):
                contrasts.append(_Contrast(name="gender", feature=GENDER, value=candidate, form=str(form)))
        if context.number == PLURAL == agreement.word(controller).feature(NUMBER):
            # The number of the present form must not decide the number of the other form.
            freed = replace(inflection, cells=tuple(replace(cell, number=None) for cell in inflection.cells))
            form = self._paradigms.form(freed, gender, replace(context, number=SINGULAR))
            if form not in (None, word.form):
                contrasts.append(_Contrast(name="number", feature=NUMBER, value=SINGULAR, form=str(form)))
        return contrasts


def _around(tokens: Sequence[Token], verb: int) -> tuple[str, str] | None:
    """Return the texts before and after a word, spaces included; None within a multi-word token."""
    surface_tokens = [tokens[position] for position in surface(tokens)]
    if str(verb) not in [token.id for token in surface_tokens]:
        return None
    position = [token.id for token in surface_tokens].index(str(verb))
    pieces = [token.form + " " * token.space_after for token in surface_tokens]
    after = " " * surface_tokens[position].space_after + "".join(pieces[position + 1 :])
    return "".join(pieces[:position]), after.rstrip(" ")


def _attractors(between: Sequence[Token], noun: Token, contrast: _Contrast) -> int:
    """Return how many nominals between noun and verb agree with the wrong form (Linzen et al., TACL 2016)."""
    noun_value = noun.feature(contrast.feature)
    values = [word.feature(contrast.feature) for word in between if word.upos in NOMINALS]
    if contrast.value is not None:
        return values.count(contrast.value)
    return sum(value not in (None, noun_value) for value in values)
