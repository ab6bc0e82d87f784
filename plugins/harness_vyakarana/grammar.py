"""Language definitions: the features that donors share, agreement, word forms and their paradigms.

A plugin can add definitions. A paradigm has cells that a form fills, and the forms of other cells.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from importlib.resources import files
from importlib.resources.abc import Traversable
from itertools import product
from typing import TYPE_CHECKING, Annotated

from pydantic import BeforeValidator, Field, model_validator

from harness import DuplicateNameError, UnknownNameError
from harness.data import Token
from harness.specs import SpecModel, read_yaml, validate_document

if TYPE_CHECKING:
    from harness.registry import Registry

SAME_GENDER, OPPOSITE_GENDER = "same", "opposite"
MARKED = "marked"
DERIVED = frozenset({"xpos", MARKED, "inflection", "frame"})
"""Parts of a key that are not features: the XPOS column; whether a nominal has an adposition; the inflectional slot of
the form; whether a verb has an ergative subject and an object."""

_GENDERS = ("Masc", "Fem", "Neut", "Com")
_NUMBERS = ("Sing", "Plur", "Dual")
_CASES = ("Dir", "Obl")
_LAST = "Last"
CELL_PARTS = frozenset({*_GENDERS, *_NUMBERS, *_CASES, _LAST})
"""The parts of the name of a cell of a paradigm."""


Names = tuple[str, ...]
Forms = Annotated[Names, BeforeValidator(lambda value: (value,) if isinstance(value, str) else tuple(value))]


class Substitution(SpecModel):
    """How the words of one part of speech are replaced."""

    paper: Names = ()
    """Features that a donor shares in paper mode; a word without one is never replaced. Empty: none is replaced."""
    key: Names = ()
    """The same for the default mode, in which a missing feature is a value too; `DERIVED` names are allowed."""
    requires: Names = ()
    """Features without which a word is not replaced in default mode."""
    ladder: tuple[Names, ...] = ()
    """The parts to drop from `key`, step by step, if no donor is found."""
    keep: Names = ()
    """Lemmas that count as function words in default mode."""

    @model_validator(mode="after")
    def _known(self) -> Substitution:
        lower = {name for name in self.key if name[:1].islower()} - DERIVED
        if lower:
            raise ValueError(f"unknown parts of a key: {', '.join(sorted(lower))}")
        lost = {name for step in self.ladder for name in step} - set(self.key)
        if lost:
            raise ValueError(f"the ladder drops parts that are not in the key: {', '.join(sorted(lost))}")
        if "Gender" in {name for step in self.ladder for name in step}:
            raise ValueError("the ladder cannot drop Gender")
        return self


class ParadigmSpec(SpecModel):
    """Forms of agreeing words by gender, number, case (Dir, Obl) and place (Last: no auxiliary follows)."""

    name: str
    group: str = ""
    """Paradigms of one group have the same slots; default: the name."""
    upos: Names
    lemmas: Names = ()
    """Lemmas that inflect by it; empty for any."""
    stems: Names = ()
    """Closed classes: a form is a stem and an ending. Empty with `open` false: the cells hold whole forms."""
    open: bool = False
    """Whether a form of any stem that ends like a cell belongs here."""
    stem: str = "any"
    """Open classes: ``any`` stem; ``lemma``: the stem must be the lemma or the lemma less `lemma_ending`;
    ``citation``: the lemma must end like the first cell."""
    lemma_ending: str = ""
    cells: Mapping[str, Forms]
    """By cell, such as ``Masc Sing Dir``: the spellings of a form or an ending, the usual one first."""

    @model_validator(mode="after")
    def _readable(self) -> ParadigmSpec:
        if self.stem not in ("any", "lemma", "citation"):
            raise ValueError(f"stem must be any, lemma or citation, got {self.stem!r}")
        if not self.cells:
            raise ValueError("a paradigm needs cells")
        unknown = {value for cell in self.cells for value in cell.split()} - CELL_PARTS
        if unknown:
            raise ValueError(f"unknown parts of a cell: {', '.join(sorted(unknown))}")
        if self.open and self.stems:
            raise ValueError("an open paradigm has no stems")
        return self


class Relations(SpecModel):
    """Names of relations; a name without a subtype includes all its subtypes."""

    subject: Names = ("nsubj",)
    object: Names = ("obj", "dobj")
    light: Names = ("compound",)
    """Nouns of complex predicates."""
    clausal: Names = ("ccomp", "csubj")
    passive: Names = ("aux:pass",)
    adposition: Names = ("case",)
    auxiliary: Names = ("aux", "cop")
    attribute: Names = ("amod", "det", "nmod", "nummod", "acl")
    """Relations of dependents that agree with their head noun."""
    relative: Names = ("acl:relcl",)
    coordination: Names = ("conj",)
    inherited: Names = ("conj", "xcomp")
    """Clauses without a subject, which share that of their head."""
    chained: Names = ("conj", "flat", "compound", "appos")
    """Parts of a noun phrase that have the case of their head."""
    fixed: Names = ("fixed", "mwe")


class Paper(SpecModel):
    """Settings of paper mode only."""

    flips: Names = ()
    """Parts of speech whose Gender is rewritten by the variant."""
    adpositions: Mapping[str, Mapping[str, str]] = Field(default_factory=dict)
    """The form by lemma and new gender, for any number and case."""


class Sandhi(SpecModel):
    """Final consonants that repeat the first consonant of the next word."""

    consonants: Names
    suffix: str
    """The ending after the final consonant of a word."""
    cases: Names = ()
    """Cases whose forms get the consonant, if they end in one of `endings`."""
    endings: Names = ()
    verb_forms: Mapping[str, Names] = Field(default_factory=dict)
    """By VerbForm: endings of the forms that get the consonant; an empty ending means all."""


class Grammar(SpecModel):
    """The definition of one language."""

    language: str
    name: str
    transliterator: str | None = None
    genders: Names = ()
    """Values of Gender that variants set; others stay."""
    variants: Names
    """``same``, ``opposite`` or a gender for every noun."""
    content: Mapping[str, Substitution]
    """By UPOS."""
    nominal: Names = ("NOUN", "PROPN")
    """Parts of speech whose gender is their own; all others agree."""
    paper: Paper = Field(default_factory=Paper)
    relations: Relations = Field(default_factory=Relations)
    ergative: Names = ()
    """Lemmas of the ergative adposition, and endings of pronouns that contain it."""
    relative_pronouns: Names = ()
    expletive: Names = ()
    """Lemmas of pronouns that may announce a clause and then control nothing."""
    shown: Names = ()
    """Parts of speech whose form shows the gender if the annotation does not."""
    invariable: Names = ()
    """Lemmas that end like a citation form but do not inflect."""
    obligation: Names = ()
    """Lemmas of verbs with which an infinitive of the first gender agrees with its object."""
    citation_forms: Names = ()
    """Names of paradigms of infinitives, which agree with their object only."""
    paradigms: tuple[ParadigmSpec, ...] = ()
    contradictions: Mapping[str, Names] = Field(default_factory=dict)
    """By conditions, ``NOUN Gender=Masc marked``: endings that a nominal which meets them all cannot have. Words with
    such an ending are annotation errors: they stay, and are not donors."""
    equal_letters: Mapping[str, str] = Field(default_factory=dict)
    """Spellings in which a stem and its lemma may differ."""
    sandhi: Sandhi | None = None
    stale: Names = ("Translit", "LTranslit")
    """Keys of MISC that are not valid for a replaced word."""

    @model_validator(mode="after")
    def _consistent(self) -> Grammar:
        unknown = set(self.variants) - {SAME_GENDER, OPPOSITE_GENDER, *self.genders}
        if unknown:
            raise ValueError(f"variants must be same, opposite or a gender, got {', '.join(sorted(unknown))}")
        if OPPOSITE_GENDER in self.variants and len(self.genders) != 2:
            raise ValueError("the variant 'opposite' needs two genders")
        if not self.variants:
            raise ValueError("variants must not be empty")
        names = [paradigm.name for paradigm in self.paradigms]
        lost = set(self.citation_forms) - set(names)
        if lost:
            raise ValueError(f"unknown paradigms: {', '.join(sorted(lost))}")
        return self

    def gender_in(self, variant: str, gender: str) -> str:
        """Return the gender of a noun of `gender` in a variant."""
        if variant == SAME_GENDER or gender not in self.genders:
            return gender
        if variant == OPPOSITE_GENDER:
            return self.genders[1 - self.genders.index(gender)]
        return variant


def load_grammars(folders: Iterable[Traversable] | None = None) -> dict[str, Grammar]:
    """Return the language definitions of folders (default: those of this plugin) by language code.

    Raises `SpecError` with all faults of a file, `DuplicateNameError` for a language that two files define.
    """
    grammars: dict[str, Grammar] = {}
    origins: dict[str, str] = {}
    for folder in [files("harness_vyakarana") / "grammars"] if folders is None else folders:
        for path in sorted(folder.iterdir(), key=lambda item: item.name):
            if not path.name.endswith((".yaml", ".yml")):
                continue
            grammar = validate_document(Grammar, read_yaml(path.read_text(encoding="utf-8"), str(path)))
            if grammar.language in grammars:
                raise DuplicateNameError("grammar", grammar.language, origins[grammar.language], str(path))
            grammars[grammar.language], origins[grammar.language] = grammar, str(path)
    return grammars


def registered_grammars(registry: Registry) -> dict[str, Grammar]:
    """Return the language definitions of all plugins by language code; raises like `load_grammars`."""
    return load_grammars([folder for _, folder in registry.grammar_folders()])


def grammar_of(language: str, grammars: Mapping[str, Grammar]) -> Grammar:
    """Return the definition of a language; raises `UnknownNameError`."""
    if language not in grammars:
        raise UnknownNameError(
            "language definition",
            language,
            grammars,
            hint="Give a known language with --language; plugins can add others (docs/treebanks.md).",
        )
    return grammars[language]


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
            gender=only(name, _GENDERS),
            number=only(name, _NUMBERS),
            case=only(name, _CASES),
            last=_LAST in name.split(),
            forms=forms,
        )
        for name, forms in spec.cells.items()
    )
