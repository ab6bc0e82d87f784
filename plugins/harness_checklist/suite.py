"""A suite of behavioural tests: the models of its files, which are also what is drawn from and checked.

Every template text may hold placeholders: ``{slot}``, ``{slot[1]}`` (one of several aligned forms), ``{p.v1}`` (an
attribute of a pair), with a transformation after a bar, ``{obj[1]|capitalise}``; doubled braces are literal
ones. A slot whose name ends in a number, ``{first_name1}``, is a further, different draw from the fill-in of
the same name without it.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, Any, Literal, Self

from pydantic import (
    BeforeValidator,
    ConfigDict,
    Field,
    PrivateAttr,
    StringConstraints,
    TypeAdapter,
    model_validator,
)

from harness.specs import Code, SpecModel

NAME_SLOTS = ("first_name", "last_name")
"""Placeholders (also numbered) that `LanguageSuite.names` fills."""
Gender = Literal["male", "female", "any"]
Match = Literal["word", "start", "anywhere"]
Filled = Annotated[str, StringConstraints(pattern=r"\S")]
TestId = Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9_]*$")]


def _many(value: Any) -> Any:
    """Return a list, or one text for a list of it, as a tuple: strict models take no list from a validator."""
    return (value,) if isinstance(value, str) else tuple(value) if isinstance(value, list) else value


def _ids(value: Any) -> Any:
    many = _many(value)
    is_texts = isinstance(many, tuple) and all(isinstance(item, str) for item in many)
    return frozenset(many) if is_texts else many


Texts = Annotated[tuple[str, ...], BeforeValidator(_many)]
FilledTexts = Annotated[tuple[Filled, ...], BeforeValidator(_many)]
Ids = Annotated[frozenset[str], BeforeValidator(_ids)]
Condition = dict[str, Ids]
"""Slot, or slot and attribute (``p.p1``, ``first_name.gender``) -> the fill-in ids for which it holds, all of them."""


@dataclass(frozen=True, slots=True)
class SourcePlace:
    """A place in a file; line and column are 1-based."""

    path: str
    line: int | None = None
    column: int | None = None

    def __str__(self) -> str:
        """Return ``path:line:column``, as far as they are known."""
        return ":".join(
            str(component) for component in (self.path, self.line, self.column) if component is not None
        )


class Placed(SpecModel):
    """A part of a suite that knows where it is written."""

    model_config = ConfigDict(populate_by_name=True)
    _place: SourcePlace | None = PrivateAttr(default=None)

    @property
    def place(self) -> SourcePlace | None:
        """Where it is written, if it comes from a file."""
        return self._place

    def at(self, place: SourcePlace | None) -> Self:
        """Note where it is written, and return it."""
        self._place = place
        return self


class Profile(SpecModel):
    """The normalisation of answers in one language, as in ``clean`` in the released ``generate_test_utils.py``.

    Every article is replaced by a space, then `strip` is removed from both ends. Nothing is lower-cased
    and no Unicode form changes, unless `casefold` says so.
    """

    articles: Texts = ()
    match: Match = "word"
    """``word``: between word boundaries; ``start``: after a word boundary; ``anywhere``: even inside words."""
    strip: str = ",. "
    casefold: bool = False

    @cached_property
    def _pattern(self) -> re.Pattern[str] | None:
        if not self.articles:
            return None
        forms = "|".join(re.escape(form) for form in sorted(self.articles, key=len, reverse=True))
        edges = {"word": (r"\b(?:", r")\b"), "start": (r"\b(?:", ")"), "anywhere": ("(?:", ")")}
        before, after = edges[self.match]
        return re.compile(before + forms + after)

    def clean(self, text: str) -> str:
        """Return the text as it is compared: two answers are the same where their cleaned texts are equal."""
        if self._pattern is not None:
            text = self._pattern.sub(" ", text)
        text = text.strip(self.strip)
        return text.casefold() if self.casefold else text


class ContextTemplate(Placed):
    """A context; it belongs to the cases whose draw meets `when`. In a file without `when`: its text alone."""

    text: str
    when: Condition = Field(default={})

    @model_validator(mode="before")
    @classmethod
    def _short(cls, value: Any) -> Any:
        return {"text": value} if isinstance(value, str) else value


class QuestionTemplate(Placed):
    """A question with its answer; it belongs to the cases whose draw meets `when`."""

    ask: str
    answer: str
    when: Condition = Field(default={})


class Form(Placed):
    """The aligned forms of a fill-in (``older``, ``old``) where the draw meets `when`."""

    texts: Annotated[Texts, Field(min_length=1)] = Field(validation_alias="form")
    when: Condition = Field(default={})


@dataclass(frozen=True, slots=True)
class FillInEntry:
    """One value of a fill-in: its id (in imported suites the English words) and its forms.

    The first form whose condition holds is taken; a draw for which none holds is impossible and never made.
    """

    id: str
    forms: tuple[Form, ...]


class ListedFillIn(Placed):
    """A list of values. A fill-in that only conditions name chooses between variants."""

    values: dict[str, tuple[Form, ...]]

    @cached_property
    def entries(self) -> tuple[FillInEntry, ...]:
        """The values with their ids."""
        return tuple(FillInEntry(name, forms) for name, forms in self.values.items())


class PairFillIn(Placed):
    """Two different ones of several listed fill-ins, each with one of its values.

    Its attributes: ``v1`` and ``v2`` are the forms of the values, ``p1`` and ``p2`` what `named` calls the two
    fill-ins (its entry ids are their names). In conditions they are the ids.
    """

    of: Texts = Field(validation_alias="pairs")
    named: str | None = None
    ordered: bool = True
    """True: the first of the two always comes first in `of`. False: both orders are drawn."""


_VALUES = TypeAdapter(dict[str, tuple[Form, ...]])


def _fill_in(value: Any) -> Any:
    """Return a fill-in from its short form in a file: a list of texts, or a mapping of ids to forms."""
    if isinstance(value, (ListedFillIn, PairFillIn)):
        return value
    if isinstance(value, dict) and "pairs" in value:
        return PairFillIn.model_validate_json(json.dumps(value), strict=True)
    if isinstance(value, list):
        if any(isinstance(item, dict) for item in value):
            raise ValueError("a fill-in with a condition needs an id: expected a mapping of ids to forms")
        ids = [str(item[0]) if isinstance(item, list) and item else str(item) for item in value]
        doubled = [name for name in ids if ids.count(name) > 1]
        if doubled:
            raise ValueError(f"it has {doubled[0]!r} twice")
        value = dict(zip(ids, value, strict=True))
    if not isinstance(value, dict):
        raise ValueError("expected a list of texts, or a mapping of ids to forms")
    forms = {name: _forms(form) for name, form in value.items()}
    return ListedFillIn(values=_VALUES.validate_json(json.dumps(forms), strict=True))


def _forms(given: Any) -> list[Any]:
    """Return forms with conditions as they are, and aligned forms without one as the only form."""
    if isinstance(given, list) and any(isinstance(item, dict) for item in given):
        return [item if isinstance(item, dict) else {"form": item} for item in given]
    return [given] if isinstance(given, dict) else [{"form": given}]


FillIn = ListedFillIn | PairFillIn


class TestDeclaration(SpecModel):
    """The properties of a test that all languages share."""

    __test__ = False

    id: TestId
    name: str
    """The published name."""
    title: str
    """A short heading; the name, where a file has none."""
    capability: str
    type: Literal["MFT", "INV", "DIR"] = "MFT"
    """Minimum functionality, invariance, directional (CheckList). Only the first is generated and run so far."""
    description: str = ""


class TestTemplate(Placed):
    """A test in one language. A case is one draw of all its slots: contexts x questions that apply to the draw."""

    __test__ = False

    contexts: Annotated[tuple[ContextTemplate, ...], BeforeValidator(_many)]
    questions: Annotated[tuple[QuestionTemplate, ...], BeforeValidator(_many)]
    fills: dict[str, Annotated[FillIn, BeforeValidator(_fill_in)]] = Field(
        default={}, validation_alias="fill"
    )
    uses: str | None = None
    """The test whose fill-ins it has, too: ``fill: {use: TEST}`` in a file; None once these are among `fills`."""
    names: Gender = "any"
    """Which first names are drawn; ``male`` where the templates agree with a man only."""
    zips: Annotated[tuple[Texts, ...], BeforeValidator(_many)] = Field(default=(), validation_alias="zip")
    """Fill-ins of equal length that are drawn together, position by position; all others are crossed (a product)."""
    balance: str | None = None
    """A slot, or ``variants``: cases are drawn in equal parts from its values, or from the sets of contexts and
    questions that apply together. None: every draw is as likely as any other."""

    @model_validator(mode="before")
    @classmethod
    def _used(cls, value: Any) -> Any:
        if isinstance(value, dict) and isinstance(fill := value.get("fill"), dict) and "use" in fill:
            fill_ins = {name: forms for name, forms in fill.items() if name != "use"}
            return {**value, "fill": fill_ins, "uses": fill["use"]}
        return value


class Names(SpecModel):
    """The first and last names of one language."""

    male: FilledTexts = ()
    female: FilledTexts = ()
    last: FilledTexts = ()
    script: str = ""
    """ISO 15924 code of the script that they are written in."""
    borrowed: str | None = None
    """The language that the names come from, where the language has no names of its own."""
    lender: Code | None = Field(default=None, alias="from")
    """In a file: the language whose file has the names."""


class LanguageSuite(Placed):
    """The tests of a suite in one language."""

    language: Code
    names: Names = Names()
    profile: Profile = Field(default=Profile(), validation_alias="normalise")
    tests: dict[str, TestTemplate]


class SuiteHead(SpecModel):
    """The properties of a suite that all languages share: its ``suite.yaml``."""

    model_config = ConfigDict(populate_by_name=True)

    name: str = Field(validation_alias="suite")
    version: Annotated[int, Field(ge=1)]
    description: str = ""
    license: str = ""
    citation: str = ""
    source_language: Code = "en"
    tests: Annotated[dict[str, TestDeclaration], Field(min_length=1)]
    """The tests by id, in their order."""

    @model_validator(mode="before")
    @classmethod
    def _ids(cls, value: Any) -> Any:
        if not isinstance(value, dict) or not isinstance(value.get("tests"), dict):
            return value
        tests = {
            name: {"id": name, **({"title": test["name"]} if "name" in test else {}), **test}
            if isinstance(test, dict)
            else test
            for name, test in value["tests"].items()
        }
        return {**value, "tests": tests}


class Suite(SuiteHead):
    """A suite: its tests in their order, and their templates by language."""

    languages: dict[str, LanguageSuite]
