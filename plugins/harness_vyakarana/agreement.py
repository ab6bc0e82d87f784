"""Agreement in a sentence: the noun that each agreeing word takes its gender from, by the tree.

The relations are those of Universal Dependencies; their names, and the ergative adposition, are data of the
language. A verb agrees with its nominative subject, else with a nominative object (Kachru, Hindi, 2006);
with neither it has the default gender and no variant may change it. A noun counts as controller only if the source
agrees with it, so that errors of annotation and default agreement leave the word unchanged.
"""

from __future__ import annotations

from collections.abc import Iterator

from harness.data import Sentence, Token
from harness_vyakarana.grammar import MARKED, Grammar, ParadigmPlace, Paradigms

FREE = -1
"""The controller is a pronoun without a visible gender: any gender is right if all words of the clause share it."""
NONE = 0
SINGULAR, PLURAL = "Sing", "Plur"
DEEPEST = 4
"""The number of heads to climb in search of a shared subject."""
OBLIQUE_RELATIONS = ("obl", "advmod", "nmod")


def is_relation(deprel: str, names: tuple[str, ...]) -> bool:
    """Return whether a relation is one of `names`, with or without its subtype."""
    return deprel in names or deprel.partition(":")[0] in names


class Agreement:
    """The agreement of one sentence; words are numbered by their ids."""

    def __init__(self, sentence: Sentence, grammar: Grammar, paradigms: Paradigms) -> None:
        self.words, self.heads = sentence.words, sentence.heads
        self.grammar, self.paradigms = grammar, paradigms
        self.children: list[list[int]] = [[] for _ in range(len(self.words) + 1)]
        for number, head in enumerate(self.heads, start=1):
            self.children[head].append(number)
        self._marked: dict[int, bool] = {}
        self._controllers: dict[int, int] = {}
        self._places: dict[int, ParadigmPlace] = {}
        self._of_other_number: frozenset[int] | None = None

    def word(self, number: int) -> Token:
        """Return the word with an id."""
        return self.words[number - 1]

    def dependents(self, number: int, names: tuple[str, ...]) -> list[int]:
        """Return the dependents of a word in one of some relations."""
        return [child for child in self.children[number] if is_relation(self.words[child - 1].deprel, names)]

    def gender(self, number: int) -> str | None:
        """Return the gender of a word, if it is one that variants set.

        It is its feature; without one, the gender that the form of an agreeing word shows, if another word of the
        sentence has that gender. None also for a form that contradicts its feature.
        """
        return self._stated(number) if self.settled(number) else None

    def settled(self, number: int) -> bool:
        """Return whether form, feature and sentence agree on the gender of a word, or it has no gender."""
        word = self.word(number)
        if word.upos in self.grammar.nominal:
            return number not in self._contradicted() and not self._contradicts_itself(number)
        form_gender = self._shown(number)
        feature = word.feature("Gender")
        if feature is not None:
            return form_gender in (None, feature) or feature not in self.grammar.genders
        return form_gender is None or self.controller(number) != NONE

    def _contradicts_itself(self, number: int) -> bool:
        word = self.word(number)
        for conditions, endings in self.grammar.contradictions.items():
            if word.form.endswith(endings) and all(
                self._meets(number, condition) for condition in conditions.split()
            ):
                return True
        return False

    def _meets(self, number: int, condition: str) -> bool:
        if condition == MARKED:
            return self.marked(number)
        name, equals, value = condition.partition("=")
        word = self.word(number)
        return word.feature(name) == value if equals else word.upos == name

    def _contradicted(self) -> frozenset[int]:
        """Return the common nouns that are singular by their feature and plural by a verb that agrees with them.

        The form of many nouns is the same in both numbers, and treebanks call it singular: a donor that is
        singular would not fit the verb. Several subjects together have a plural verb.
        """
        if self._of_other_number is None:
            self._of_other_number = frozenset()
            verbs = [
                number
                for number, word in enumerate(self.words, start=1)
                if word.upos in ("VERB", "AUX") and word.feature("Number") == PLURAL
            ]
            nouns = {noun for noun in map(self._found_controller, verbs) if noun > 0}
            self._of_other_number = frozenset(
                noun
                for noun in nouns
                if self.word(noun).upos == "NOUN"
                and self.word(noun).feature("Number") == SINGULAR
                and not self.dependents(noun, self.grammar.relations.coordination)
            )
        return self._of_other_number

    def _shown(self, number: int) -> str | None:
        return self.paradigms.shown_gender(self.word(number))

    def _stated(self, number: int) -> str | None:
        word = self.word(number)
        value = word.feature("Gender")
        if value is None and word.upos in self.grammar.shown:
            value = self._shown(number)
        return value if value in self.grammar.genders else None

    def has_adposition(self, number: int) -> bool:
        """Return whether an adposition is a dependent of the word itself."""
        adpositions = self.dependents(number, self.grammar.relations.adposition)
        return any(child > number and self.word(child).upos == "ADP" for child in adpositions)

    def marked(self, number: int) -> bool:
        """Return whether an adposition governs the noun: its own, or that of its phrase."""
        if number not in self._marked:
            chained = self.grammar.relations.chained
            governed = self.has_adposition(number)
            if not governed and self.heads and is_relation(self.word(number).deprel, chained):
                head = self.heads[number - 1]
                governed = head > 0 and self.word(head).upos in self.grammar.nominal and self.marked(head)
            if not governed:
                governed = any(
                    map(self.has_adposition, self.dependents(number, self.grammar.relations.coordination))
                )
            self._marked[number] = governed
        return self._marked[number]

    def frame(self, number: int) -> str:
        """Return the frame of a verb: ``e`` ergative subject, ``o`` object or clause, ``p`` passive auxiliary."""
        relations = self.grammar.relations
        frame = ""
        if any(map(self.ergative, self.dependents(number, relations.subject))):
            frame += "e"
        if self.dependents(number, relations.object + relations.clausal):
            frame += "o"
        return frame + ("p" if self.dependents(number, relations.passive) else "")

    def ergative(self, number: int) -> bool:
        """Return whether a nominal is ergative: by its adposition, its case or, of pronouns, its ending."""
        word = self.word(number)
        markers = self.grammar.ergative
        if any(self.word(child).form in markers for child in self.children[number]):
            return True
        if "Erg" in (word.feature("Case") or "").split(","):
            return True
        return word.upos == "PRON" and any(word.form.endswith(marker) for marker in markers)

    def place(self, number: int) -> ParadigmPlace:
        """Return number, case and place of an agreeing word, for the choice of its form."""
        if number not in self._places:
            self._places[number] = self._place(number)
        return self._places[number]

    def _place(self, number: int) -> ParadigmPlace:
        word, controller = self.word(number), self.controller(number)
        attributive = controller > 0 and self._attributive(number, controller)
        word_number = word.feature("Number")
        noun_number = self.word(controller).feature("Number") if controller > 0 else None
        # A polite subject is singular and its verb plural; either number may be annotated wrongly.
        plural = not attributive and PLURAL in (word_number, noun_number)
        annotated = noun_number or word_number if attributive else word_number or noun_number
        return ParadigmPlace(
            number=PLURAL if plural else annotated or SINGULAR,
            oblique=attributive and self._oblique(controller),
            last=not attributive and not self._auxiliary_follows(number),
        )

    def controller(self, number: int) -> int:
        """Return the id of the noun that a word agrees with, `FREE` for a pronoun without gender, 0 for none."""
        if number not in self._controllers:
            self._controllers[number] = self._found_controller(number)
        return self._controllers[number]

    def _found_controller(self, number: int) -> int:
        gender = self._stated(number)
        if gender is None or not self.heads or self._shown(number) not in (None, gender):
            return NONE
        free = False
        contradicted = self._contradicted()
        for candidate in self._candidates(number):
            word = self.word(candidate)
            if candidate in contradicted:
                return NONE
            if word.upos in self.grammar.nominal:
                if self._stated(candidate) == gender:
                    return candidate
            elif word.upos == "PRON" and self._shown(candidate) is None:
                free = free or word.feature("Gender") in (None, gender)
        return FREE if free else NONE

    # Candidates, best first ---------------------------------------------------------------------------

    def _candidates(self, number: int) -> Iterator[int]:
        word, head = self.word(number), self.heads[number - 1]
        if word.upos == "ADP":
            yield from self._of_adposition(number, head)
        elif word.upos == "PRON":
            yield from self._of_pronoun(number, head)
        elif word.upos == "AUX" and head and is_relation(word.deprel, self.grammar.relations.auxiliary):
            yield from self._of_clause(head)
        elif word.upos in ("VERB", "AUX"):
            yield from self._of_clause(number)
        else:
            yield from self._of_attribute(number, head)

    def _of_adposition(self, number: int, head: int) -> Iterator[int]:
        """Yield candidates for an adposition, which is between its noun and the noun that it agrees with."""
        if head == 0 or self._begins_compound(number, head):
            return
        for _ in range(DEEPEST):
            if not is_relation(self.word(head).deprel, self.grammar.relations.chained):
                break
            head = self.heads[head - 1]
        owner = self.heads[head - 1]
        if owner > number:
            yield owner
        following = number + 1
        if following <= len(self.words) and owner and self.heads[following - 1] == owner:
            yield following
        if owner == 0:
            yield from self._of_clause(head)  # a predicate: किताब राम की है
        elif owner > number and self.word(owner).upos in ("VERB", "AUX") and not self._may_be_oblique(number):
            yield from self._of_clause(owner)  # a predicative: यह हवा जैसी होती है

    def _may_be_oblique(self, number: int) -> bool:
        gender = self._stated(number)
        inflection = self.paradigms.find(self.word(number), gender) if gender else None
        return inflection is None or any(cell.case == "Obl" for cell in inflection.cells)

    def _begins_compound(self, number: int, head: int) -> bool:
        """Return whether another adposition follows: the gender of कی ओर and के साथ is that of the second."""
        if self.dependents(number, self.grammar.relations.fixed):
            return True
        following = number + 1
        return (
            following <= len(self.words)
            and self.heads[following - 1] in (head, number)
            and self.word(following).upos == "ADP"
        )

    def _of_pronoun(self, number: int, head: int) -> Iterator[int]:
        gender = self._stated(number)
        assert gender is not None
        if self.paradigms.find(self.word(number), gender) is None:
            yield number
        elif head > number and not self.has_adposition(number):
            yield head

    def _of_attribute(self, number: int, head: int) -> Iterator[int]:
        word = self.word(number)
        if head and is_relation(word.deprel, self.grammar.relations.attribute):
            yield head
        elif head and is_relation(word.deprel, self.grammar.relations.coordination):
            yield from self._of_attribute(head, self.heads[head - 1])
        else:
            yield from self._of_clause(number)
            if head and self.word(head).upos in ("VERB", "AUX"):
                yield from self._of_clause(head)  # a predicative: खुले रहते थे

    def _of_clause(self, verb: int, depth: int = 0) -> Iterator[int]:
        """Yield subject, object and noun of a complex predicate; then what the clause modifies or shares."""
        relations, word = self.grammar.relations, self.word(verb)
        subjects = self.dependents(verb, relations.subject)
        citation = self._is_citation(verb)
        if citation and not self._agrees_as_citation(verb):
            return
        if not citation:
            for subject in filter(self._nominative, subjects):
                # यह and similar pronouns announce a clause: the verb has the default gender.
                announces = self.word(subject).lemma in self.grammar.expletive
                if not (announces and self.dependents(verb, relations.clausal)):
                    yield from self._resolved(subject, verb)
        for names in (relations.object, relations.light):
            for child in self.dependents(verb, names):
                if self.word(child).upos in self.grammar.nominal and self._nominative(child):
                    yield child
        if self.dependents(verb, ("cop",)) and word.upos in self.grammar.nominal and self._nominative(verb):
            yield verb
        head = self.heads[verb - 1]
        if subjects or citation or head == 0 or depth >= DEEPEST or self.has_adposition(verb):
            return
        if is_relation(word.deprel, ("acl",)) and self.word(head).upos in self.grammar.nominal:
            yield head
        elif is_relation(word.deprel, relations.inherited) and not word.deprel.startswith("acl"):
            yield from self._of_clause(head, depth + 1)

    def _resolved(self, subject: int, verb: int) -> Iterator[int]:
        """Yield a subject and its conjuncts; for a relative pronoun the noun that its clause modifies."""
        word = self.word(subject)
        if word.lemma in self.grammar.relative_pronouns:
            head = self.heads[verb - 1]
            if is_relation(self.word(verb).deprel, self.grammar.relations.relative):
                yield head
                return
        yield subject
        yield from self.dependents(subject, self.grammar.relations.coordination)

    # What a word is ----------------------------------------------------------------------------------

    def _nominative(self, number: int) -> bool:
        word = self.word(number)
        if self.has_adposition(number):
            return False
        if word.upos == "PRON":
            return word.feature("Case") in (None, "Nom") and not self.ergative(number)
        return True

    def _is_citation(self, number: int) -> bool:
        word, gender = self.word(number), self._stated(number)
        inflection = self.paradigms.find(word, gender) if gender else None
        return inflection is not None and inflection.paradigm in self.grammar.citation_forms

    def _agrees_as_citation(self, number: int) -> bool:
        """Return whether an infinitive agrees with its object: करनी है, किताब पढ़नी होगी, but not करने के लिए."""
        if self._may_be_oblique(number) or self.has_adposition(number):
            return False
        gender = self._stated(number)
        if gender != self.grammar.genders[0]:
            return True
        around = [*self.children[number], *([self.heads[number - 1]] if self.heads[number - 1] else [])]
        return any(self.word(neighbour).lemma in self.grammar.obligation for neighbour in around)

    def _attributive(self, number: int, controller: int) -> bool:
        """Return whether the word is in the noun phrase of its controller."""
        if self.word(number).upos == "ADP" and controller == number + 1:
            return True
        node = number
        for _ in range(DEEPEST):
            head = self.heads[node - 1]
            if head == controller:
                deprel = self.word(node).deprel
                return not is_relation(deprel, self.grammar.relations.relative) and (
                    self.word(number).upos != "AUX" or is_relation(deprel, ("acl",))
                )
            if head == 0:
                return False
            node = head
        return False

    def _oblique(self, noun: int) -> bool:
        """Return whether a noun is in the oblique form: before an adposition, or as a bare adverbial."""
        if self.marked(noun):
            return True
        word = self.word(noun)
        return word.feature("Case") not in (None, "Nom") and is_relation(word.deprel, OBLIQUE_RELATIONS)

    def _auxiliary_follows(self, number: int) -> bool:
        head = self.heads[number - 1] if self.word(number).upos == "AUX" else number
        return any(child > number for child in self.dependents(head, self.grammar.relations.auxiliary))
