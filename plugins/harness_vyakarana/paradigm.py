"""Forms of agreeing words: the cells of a paradigm that a form fills, and the forms of other cells."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from harness_vyakarana.conllu import Token
from harness_vyakarana.grammar import CASES, GENDERS, LAST, NUMBERS, Grammar, ParadigmSpec

__all__ = ["Cell", "Inflection", "Paradigms", "Place"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """What determines a form in addition to the gender."""

    number: str | None
    oblique: bool
    last: bool = True
    """Whether no auxiliary follows."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """A cell of a paradigm; None matches every value."""

    name: str
    gender: str | None
    number: str | None
    case: str | None
    last: bool
    forms: tuple[str, ...]

    def fits(self, gender: str, place: Place) -> bool:
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
        return sum(part is not None for part in (self.gender, self.number, self.case)) + self.last


@dataclass(frozen=True, slots=True, kw_only=True)
class Inflection:
    """A form that was found in a paradigm."""

    paradigm: str
    stem: str
    cells: tuple[Cell, ...]
    """The cells that the form fills."""
    spelling: int
    """The number of its spelling in the cell."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Paradigm:
    spec: ParadigmSpec
    cells: tuple[Cell, ...]

    def cells_with_form(self, ending: str, gender: str) -> tuple[Cell, ...]:
        return tuple(cell for cell in self.cells if ending in cell.forms and cell.gender in (None, gender))


class Paradigms:
    """The paradigms of a language; closed paradigms are searched before open ones."""

    def __init__(self, grammar: Grammar) -> None:
        table = [_Paradigm(spec=spec, cells=_cells(spec)) for spec in grammar.paradigms]
        self._open = [paradigm for paradigm in table if paradigm.spec.open]
        self._by_name = {paradigm.spec.name: paradigm for paradigm in table}
        self._closed: dict[tuple[str, str], list[tuple[_Paradigm, str, str]]] = {}
        for paradigm in table:
            if not paradigm.spec.open:
                self._add_closed(paradigm)
        self._invariable = frozenset(grammar.invariable)
        self._genders = grammar.genders
        self._equal = str.maketrans(dict(grammar.equal_letters))
        self._found: dict[tuple[str, str, str, str], Inflection | None] = {}
        self._shown: dict[tuple[str, str, str], str | None] = {}

    def _add_closed(self, paradigm: _Paradigm) -> None:
        endings = {form for cell in paradigm.cells for form in cell.forms}
        for upos in paradigm.spec.upos:
            for stem in paradigm.spec.stems or ("",):
                for ending in endings:
                    self._closed.setdefault((upos, stem + ending), []).append((paradigm, stem, ending))

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
            shown = [gender for gender in self._genders if self.find(word, gender) is not None]
            self._shown[key] = shown[0] if len(shown) == 1 else None
        return self._shown[key]

    def _all(self, word: Token, gender: str) -> Iterator[Inflection]:
        for paradigm, stem, ending in self._closed.get((word.upos, word.form), ()):
            if not paradigm.spec.lemmas or word.lemma in paradigm.spec.lemmas:
                yield from _inflection(paradigm, stem, ending, gender)
        for paradigm in self._open:
            spec = paradigm.spec
            if word.upos not in spec.upos or (spec.lemmas and word.lemma not in spec.lemmas):
                continue
            endings = {form for cell in paradigm.cells for form in cell.forms if word.form.endswith(form)}
            for ending in sorted(endings, key=len, reverse=True):
                stem = word.form[: len(word.form) - len(ending)]
                if stem and self._is_stem(stem, word, spec):
                    yield from _inflection(paradigm, stem, ending, gender)

    def _is_stem(self, stem: str, word: Token, spec: ParadigmSpec) -> bool:
        if spec.stem == "lemma":
            lemma = word.lemma.translate(self._equal)
            return stem.translate(self._equal) in (lemma, lemma.removesuffix(spec.lemma_ending))
        if spec.stem == "citation":
            return word.lemma not in self._invariable and word.lemma.endswith(next(iter(spec.cells.values())))
        return True

    def slot(self, found: Inflection) -> str:
        """Return the group and the first cell of a form: the same for all words that show the same agreement."""
        return self._slot(found.paradigm, found.cells[0])

    def slot_in(self, found: Inflection, gender: str, place: Place) -> str | None:
        """Return the slot of the word in another gender, None if the paradigm has no cell for it."""
        cell = self._cell(found, gender, place)
        return None if cell is None else self._slot(found.paradigm, cell)

    def _slot(self, name: str, cell: Cell) -> str:
        paradigm = self._by_name[name]
        first = next(c for c in paradigm.cells if c.forms == cell.forms and c.gender == cell.gender)
        return f"{paradigm.spec.group or name}:{first.name}"

    def form(self, found: Inflection, gender: str, place: Place) -> str | None:
        """Return the form in another gender, in the same spelling if there are several."""
        cell = self._cell(found, gender, place)
        if cell is None:
            return None
        return found.stem + cell.forms[min(found.spelling, len(cell.forms) - 1)]

    def _cell(self, found: Inflection, gender: str, place: Place) -> Cell | None:
        # If all its cells agree, the form is more reliable for number and case than the annotation.
        numbers = {cell.number for cell in found.cells}
        cases = {cell.case for cell in found.cells}
        known = Place(
            number=place.number if len(numbers) > 1 or None in numbers else next(iter(numbers)),
            oblique=place.oblique if len(cases) > 1 or None in cases else cases == {"Obl"},
            last=place.last,
        )
        fitting = [cell for cell in self._by_name[found.paradigm].cells if cell.fits(gender, known)]
        return max(fitting, key=lambda cell: cell.precision, default=None)


def _inflection(paradigm: _Paradigm, stem: str, ending: str, gender: str) -> Iterator[Inflection]:
    cells = paradigm.cells_with_form(ending, gender)
    if cells:
        yield Inflection(
            paradigm=paradigm.spec.name, stem=stem, cells=cells, spelling=cells[0].forms.index(ending)
        )


def _cells(spec: ParadigmSpec) -> tuple[Cell, ...]:
    cells = []
    for name, forms in spec.cells.items():
        parts = name.split()
        cells.append(
            Cell(
                name=name,
                gender=_only(parts, GENDERS),
                number=_only(parts, NUMBERS),
                case=_only(parts, CASES),
                last=LAST in parts,
                forms=forms,
            )
        )
    return tuple(cells)


def _only(parts: list[str], known: tuple[str, ...]) -> str | None:
    return next((part for part in parts if part in known), None)
