"""Forms of agreeing words: the cells of a paradigm that a form fills, and the forms of other cells."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product

from harness.data import Token
from harness_vyakarana.grammar import CASES, GENDERS, LAST, NUMBERS, Grammar, ParadigmSpec


@dataclass(frozen=True, slots=True, kw_only=True)
class ParadigmPlace:
    """The context that determines a form in addition to the gender."""

    number: str | None
    oblique: bool
    last: bool = True
    """Whether no auxiliary follows."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ParadigmCell:
    """A cell of a paradigm; None matches every value."""

    name: str
    gender: str | None
    number: str | None
    case: str | None
    last: bool
    forms: tuple[str, ...]

    def fits(self, gender: str, place: ParadigmPlace) -> bool:
        """Return whether a word of this gender and place has this form."""
        return (
            self.gender in (None, gender)
            and self.number in (None, place.number)
            and self.case in (None, "Obl" if place.oblique else "Dir")
            and (place.last or not self.last)
        )

    @property
    def precision(self) -> int:
        """Return the number of values that the cell names."""
        return sum(value is not None for value in (self.gender, self.number, self.case)) + self.last


@dataclass(frozen=True, slots=True, kw_only=True)
class Inflection:
    """A form that was found in a paradigm."""

    paradigm: str
    stem: str
    cells: tuple[ParadigmCell, ...]
    """The cells that the form fills."""
    spelling: int
    """The number of its spelling in the cell."""


class Paradigms:
    """The paradigms of a language; closed paradigms are searched before open ones."""

    def __init__(self, grammar: Grammar) -> None:
        self._open = [spec for spec in grammar.paradigms if spec.open]
        self._specs = {spec.name: spec for spec in grammar.paradigms}
        self._cells = {spec.name: _cells(spec) for spec in grammar.paradigms}
        self._endings = {
            name: list(dict.fromkeys(form for cell in cells for form in cell.forms))
            for name, cells in self._cells.items()
        }
        self._closed: dict[tuple[str, str], list[tuple[ParadigmSpec, str, str]]] = {}
        for spec in grammar.paradigms:
            for upos, stem in product(spec.upos, () if spec.open else spec.stems or ("",)):
                for ending in self._endings[spec.name]:
                    self._closed.setdefault((upos, stem + ending), []).append((spec, stem, ending))
        self._invariable = frozenset(grammar.invariable)
        self._genders = grammar.genders
        self._equal = str.maketrans(dict(grammar.equal_letters))
        self._found: dict[tuple[str, str, str, str], Inflection | None] = {}
        self._shown: dict[tuple[str, str, str], str | None] = {}

    def find(self, word: Token, gender: str) -> Inflection | None:
        """Return the place of the form of a word of this gender; None if it shows no agreement."""
        key = (word.upos, word.form, word.lemma, gender)
        if key not in self._found:
            self._found[key] = next(self._all(word, gender), None)
        return self._found[key]

    def shown_gender(self, word: Token) -> str | None:
        """Return the gender that the form of a word shows, None if it shows none or several."""
        key = (word.upos, word.form, word.lemma)
        if key not in self._shown:
            genders = [gender for gender in self._genders if self.find(word, gender) is not None]
            self._shown[key] = genders[0] if len(genders) == 1 else None
        return self._shown[key]

    def _all(self, word: Token, gender: str) -> Iterator[Inflection]:
        for spec, stem, ending in self._closed.get((word.upos, word.form), ()):
            if not spec.lemmas or word.lemma in spec.lemmas:
                yield from self._inflection(spec, stem, ending, gender)
        for spec in self._open:
            if word.upos not in spec.upos or (spec.lemmas and word.lemma not in spec.lemmas):
                continue
            endings = [form for form in self._endings[spec.name] if word.form.endswith(form)]
            for ending in sorted(endings, key=len, reverse=True):
                stem = word.form[: len(word.form) - len(ending)]
                if stem and self._is_stem(stem, word, spec):
                    yield from self._inflection(spec, stem, ending, gender)

    def _inflection(self, spec: ParadigmSpec, stem: str, ending: str, gender: str) -> Iterator[Inflection]:
        every = self._cells[spec.name]
        cells = tuple(cell for cell in every if ending in cell.forms and cell.gender in (None, gender))
        if cells:
            spelling = cells[0].forms.index(ending)
            yield Inflection(paradigm=spec.name, stem=stem, cells=cells, spelling=spelling)

    def _is_stem(self, stem: str, word: Token, spec: ParadigmSpec) -> bool:
        if spec.stem == "lemma":
            lemma = word.lemma.translate(self._equal)
            return stem.translate(self._equal) in (lemma, lemma.removesuffix(spec.lemma_ending))
        if spec.stem == "citation":
            return word.lemma not in self._invariable and word.lemma.endswith(next(iter(spec.cells.values())))
        return True

    def slot(self, inflection: Inflection) -> str:
        """Return the group and the first cell of a form: the same for all words that show the same agreement."""
        return self._slot(inflection.paradigm, inflection.cells[0])

    def slot_in(self, inflection: Inflection, gender: str, place: ParadigmPlace) -> str | None:
        """Return the slot of the word in another gender, None if the paradigm has no cell for it."""
        cell = self._cell(inflection, gender, place)
        return None if cell is None else self._slot(inflection.paradigm, cell)

    def _slot(self, name: str, cell: ParadigmCell) -> str:
        first = next(c for c in self._cells[name] if c.forms == cell.forms and c.gender == cell.gender)
        return f"{self._specs[name].group or name}:{first.name}"

    def form(self, inflection: Inflection, gender: str, place: ParadigmPlace) -> str | None:
        """Return the form in another gender, in the same spelling if there are several."""
        cell = self._cell(inflection, gender, place)
        if cell is None:
            return None
        return inflection.stem + cell.forms[min(inflection.spelling, len(cell.forms) - 1)]

    def _cell(self, inflection: Inflection, gender: str, place: ParadigmPlace) -> ParadigmCell | None:
        # If all its cells agree, the form is more reliable for number and case than the annotation.
        numbers = {cell.number for cell in inflection.cells}
        cases = {cell.case for cell in inflection.cells}
        context = ParadigmPlace(
            number=place.number if len(numbers) > 1 or None in numbers else next(iter(numbers)),
            oblique=place.oblique if len(cases) > 1 or None in cases else cases == {"Obl"},
            last=place.last,
        )
        fitting = [cell for cell in self._cells[inflection.paradigm] if cell.fits(gender, context)]
        return max(fitting, key=lambda cell: cell.precision, default=None)


def _cells(spec: ParadigmSpec) -> tuple[ParadigmCell, ...]:
    def only(name: str, known: tuple[str, ...]) -> str | None:
        return next((value for value in name.split() if value in known), None)

    return tuple(
        ParadigmCell(
            name=name,
            gender=only(name, GENDERS),
            number=only(name, NUMBERS),
            case=only(name, CASES),
            last=LAST in name.split(),
            forms=forms,
        )
        for name, forms in spec.cells.items()
    )
