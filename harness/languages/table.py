"""The languages the harness knows: code, name, script, family, segmentation, and the codes of other collections.

The rows with `printed_datasets` are the 50 languages of XTREME-R: names, families, sizes and collection codes of these
and of Hausa are those of Ruder et al. (2021), Table 7, and of the released data; scripts are ISO 15924 codes of the
text that the data sets hold, where the paper prints a tradition (`printed_script`). All other rows are made by
``benchmarks/language_table.py`` from LinguaMeta (Ritchie et al., 2024), Glottolog 5.1 (Hammarström et al., 2024) and
the classes of Joshi et al. (2020): the languages of FLORES-200, SIB-200, NTREX-128, Belebele, MultiBLiMP and the
African, American, Indic and Indonesian benchmarks.

All other living languages of ISO 639-3 are in living.tsv, made by ``benchmarks/living_languages.py``, which is read
when a code or name is looked up that the first table does not have. Lists and near names are of the first table.

A code has one meaning: ours. It is ISO 639-1 where there is one, for the language of a macrolanguage that the
benchmarks mean (`ku` is Northern Kurdish); other scripts and countries than the main one have a subtag (`zh-Hant`). The
codes of other collections (`cmn`, `zho`, ``zh_``, ``iw``) and names are read as that code where a user names a
language. A spec must have the code itself: two names for one language would split its rows in every table.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Container, Iterable, Iterator, Mapping
from dataclasses import dataclass, fields, replace
from functools import cache, cached_property
from importlib import resources
from typing import Any

from harness.errors import UnknownNameError, UsageError

TABLE_SOURCE = "ruder2021xtremer"
"""Citation key of the paper whose Table 7 holds `printed_script`, `printed_datasets` and the typological marks."""
TEXT_SCRIPTS = {
    "Hans": "Hani", "Hant": "Hani", "Hang": "Kore", "Hira": "Jpan", "Kana": "Jpan", "Hrkt": "Jpan",
}  # fmt: skip
"""ISO 15924 code of a language or code -> that of texts, which has one name for scripts that are used together."""
_CHINESE = frozenset("cdo cjy cmn cnp cpx csp czh czo gan hak hsn lzh mnp nan wuu yue zh".split())
"""Members of the macrolanguage Chinese (ISO 639-3)."""
_UNSPACED = frozenset(
    "Ahom Bali Bugi Cham Hani Java Jpan Kawi Khmr Lana Laoo Maka Mymr Tale Talu Tavt Thai Tibt Yiii".split()
)
"""Scripts that put no space between words: line break classes SA, AK, AS and ID of Unicode Standard Annex 14."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Language:
    """One language; fields that a collection has no code for are empty strings."""

    code: str
    """BCP-47 code, ISO 639-1 where there is one."""
    name: str
    script: str
    """ISO 15924 code of the script of its data: ``Latn``, ``Deva``."""
    family: str
    """Top-level family: ``Indo-European``."""
    branch: str = ""
    """Branch within a large family: ``Germanic``."""
    iso639_3: str = ""
    """Individual ISO 639-3 code as URIEL uses it: ``arb``, not ``ara``."""
    tatoeba: str = ""
    tatoeba_pairs: str = ""
    ud_name: str = ""
    ud_prefix: str = ""
    ud_release: str = ""
    tydiqa: str = ""
    panx_prefix: str = ""
    mewslix_role: str = ""
    multichecklist: str = ""
    flores: str = ""
    """Code of FLORES-200, SIB-200 and NLLB. Cusco Quechua has that of Ayacucho Quechua, the only one of NLLB."""
    wikipedia_articles: str = ""
    """Millions of Wikipedia articles, as Table 7 prints them."""
    segmentation: str = "space"
    """``space``, or ``character`` where writing does not separate words by spaces."""
    printed_script: str = ""
    """The script column of Table 7."""
    diacritics: str = ""
    """Table 7: diacritics or special characters. Its marks are ``1`` and ``0``, with a ``?`` behind those that cannot
    be read with certainty in the paper's text; empty where the paper does not have the language."""
    compounding: str = ""
    """Table 7: extensive compounding."""
    clitics: str = ""
    """Table 7: bound words or clitics."""
    inflection: str = ""
    derivation: str = ""
    printed_datasets: str = ""
    """The number of datasets that Table 7 prints."""
    iso639_2: str = ""
    """ISO 639-2 codes, separated by spaces: macrolanguages (``ara``) and bibliographic codes (``chi``) among them.

    Given where `code` has two letters.
    """
    retired: str = ""
    """Withdrawn ISO 639-1 codes: ``iw``, ``in``."""
    glottocode: str = ""
    """Glottolog's code, that of a family (``sard1257``) where the data do not say which language of it."""
    resource_class: str = ""
    """Class ``0`` (least) to ``5`` of Joshi et al. (2020), by the language's name; empty where no name was found."""
    macrolanguage: str = ""
    """The code of the macrolanguage that ISO 639-3 puts it in, for languages of living.tsv."""
    names: tuple[tuple[str, str], ...] = ()
    """Its codes in a task's files, by the name of their set; they may name the codes above in braces."""

    @property
    def is_whole(self) -> bool:
        """Whether name, script and family are known."""
        return bool(self.name and self.script and self.family)

    def codes(self) -> Mapping[str, str]:
        """Return the codes that ``{...}`` in a spec's paths and configs may name."""
        code_by_name = {
            name: str(getattr(self, "code" if name == "language" else name)) for name in CODE_NAMES
        }
        return code_by_name | {name: code.format_map(code_by_name) for name, code in self.names}


LONGEST_CODE = 3
CODE_NAMES = (*(field.name for field in fields(Language) if field.name != "names"), "language")
"""Names that braces may hold for every language: the columns of the table."""


_VARIETY = re.compile(r"([A-Za-z]{2,3})(?:[-_]([A-Za-z]{4}))?(?:[-_]([A-Za-z]{2}|[0-9]{3}))?")
"""A BCP 47 tag of language, script and country (region)."""
_SAME_SCRIPTS = {"Kore": "Hang", "Aran": "Arab"}
_SCRIPTS_OF_COUNTRIES = {
    f"{language}-{country}": script
    for script, codes in {
        "Hant": "zh: TW HK MO",
        "Hans": "yue: CN",
        "Latn": "sr: ME RO TR; ky: TR",
        "Cyrl": "az: RU; ug: KZ MN",
        "Arab": "pa: PK; uz: AF; az: IQ IR; kk: CN IR; ky: CN; tg: PK; ku: IQ IR; ha: CM SD; ms: CC",
        "Deva": "sd: IN",
        "Mong": "mn: CN",
    }.items()
    for language, _, countries in (entry.strip().partition(": ") for entry in codes.split(";"))
    for country in countries.split()
}
"""Countries whose usual script of a language is another one: likely subtags of CLDR 44."""

FOREIGN_CODES = {
    "tatoeba": "Tatoeba code",
    "iso639_3": "ISO 639-3 code",
    "iso639_2": "ISO 639-2 code",
    "retired": "withdrawn ISO 639-1 code",
    "flores": "FLORES code",
    "ud_name": "Universal Dependencies name",
    "ud_prefix": "Universal Dependencies file prefix",
    "tydiqa": "TyDiQA name",
    "panx_prefix": "WikiANN line prefix",
}
"""The fields whose values name a language elsewhere, in the words that an error uses."""


def _schemes(language: Language, code: str) -> list[str]:
    return [
        title for field, title in FOREIGN_CODES.items() if code in getattr(language, field).lower().split()
    ]


class LanguageTable:
    """Languages by code; a task may add some for itself without changing the table of others."""

    def __init__(self, languages: Mapping[str, Language], *, knows_living: bool = False) -> None:
        self._languages = dict(languages)
        self._knows_living = knows_living

    @property
    def listed(self) -> LanguageTable:
        """The same table without the living languages that it does not list."""
        return LanguageTable(self._languages)

    def __iter__(self) -> Iterator[Language]:
        """Iterate over the languages by code."""
        return iter(sorted(self._languages.values(), key=lambda language: language.code))

    def __contains__(self, code: str) -> bool:
        return code in self._languages or (self._knows_living and code in living_languages())

    def __len__(self) -> int:
        return len(self._languages)

    def get(self, code: str) -> Language:
        """Return the language of a code.

        Raises `UsageError` with the right code for a name and for the code of another collection, and
        `UnknownNameError` with near codes for anything else.
        """
        if code in self:
            return self._languages.get(code) or living_languages()[code]
        code_of_name = self.listed.code_named(code)
        if code_of_name is not None:
            raise UsageError(f"Languages are named by code: {code!r} is {code_of_name!r}.")
        meant = self.meant_by(code)
        if meant is not None:
            raise UsageError(f"{meant}.")
        language, *further = re.split("[-_]", code)
        near = self.code_of(code) or (self.code_of(language.lower()) if further else None)
        hint = (
            "Run 'harness languages' to see all; a task describes any other with --language-name NAME --script Latn "
            "--family FAMILY of 'harness new task', or with name, script and family in its spec."
        )
        names = [language.name for language in self] if len(code) > LONGEST_CODE else []
        raise UnknownNameError(
            "language", code, [*self._languages, *names], hint=hint, near=[near] if near else None
        )

    def plain_code(self, code: str) -> str | None:
        """Return the table's code for a code with script and country, in any case; None where there is none.

        A country and the usual script are dropped, in this order: ``zh-CN``, ``zh_Hans_SG`` are ``zh``, ``pt-PT`` is
        ``pt`` and ``sr-Latn-RS`` is ``sr-Latn``. A country may imply a script: ``zh-TW`` is ``zh-Hant``. A variety of
        the table is itself: ``pt_br`` is ``pt-BR``. Another script, a dialect or a private use is another language.
        """
        match = _VARIETY.fullmatch(code)
        language = "" if match is None else match[1].lower()
        if match is None or language not in self:
            return None
        country, usual = (match[3] or "").upper(), self.get(language).script
        script = (match[2] or _SCRIPTS_OF_COUNTRIES.get(f"{language}-{country}", usual)).title()
        script = _SAME_SCRIPTS.get(script, script)
        names = [f"{language}-{script}", *([language] if script == usual else [])]
        if match[2] is None:
            names.insert(0, f"{language}-{country}")
        return next((name for name in names if name in self), None)

    def meant_by(self, code: str) -> str | None:
        """Return the meaning of an unknown code elsewhere and the code to use, as a clause; None for any other code.

        ``'cmn' is the Tatoeba code and ISO 639-3 code of Mandarin Chinese: use 'zh'``
        """
        if code in self:
            return None
        # Only the code of a living language of two letters is another one elsewhere.
        living = living_languages() if self._knows_living else {}
        languages = [*self, *(living[living_code] for living_code in living if len(living_code) == 2)]
        matches = [
            (language, schemes) for language in languages if (schemes := _schemes(language, code.lower()))
        ]
        if not matches:
            return None
        # A variety shares the codes of its language, whose own code is shorter; Cusco Quechua has the FLORES code of
        # Ayacucho Quechua.
        language, schemes = min(
            matches, key=lambda item: (not code.lower().startswith(item[0].iso639_3), len(item[0].code))
        )
        return f"{code!r} is the {' and '.join(schemes)} of {language.name}: use {language.code!r}"

    def code_named(self, name: str) -> str | None:
        """Return the code of a language by its English name, in any case; None if unknown."""
        code = next((language.code for language in self if language.name.lower() == name.lower()), None)
        return (
            living_languages().codes_by_name.get(name.lower())
            if code is None and self._knows_living
            else code
        )

    def code_of(self, name: str) -> str | None:
        """Return the code of a language by its code, English name or a code of another collection; None if unknown.

        Script and country are read as `plain_code` does: ``hin_Latn`` is ``hi-Latn``, ``deu-AT`` is ``de``. The name of
        a language that the table does not list comes last: ``zul`` is Zulu, though another language is called Zul.
        """
        if name in self:
            return name
        code_of_name = self.listed.code_named(name)
        if code_of_name is not None:
            return code_of_name
        meant = self.meant_by(name) if name else None
        if meant is not None:
            return meant.rsplit("'", 2)[-2]
        language, *further = name.replace("_", "-").split("-")
        base = self.code_of(language) if further else None
        code = self.plain_code(name if base is None else "-".join([base, *further]))
        return code or self.code_named(name)

    def extended(self, additional: Mapping[str, Language]) -> LanguageTable:
        """Return a table that knows the additional languages too."""
        return LanguageTable({**additional, **self._languages}, knows_living=self._knows_living)

    def with_names(self, names: Mapping[str, Mapping[str, str]]) -> LanguageTable:
        """Return a table whose languages have the codes of a task's files too: by language, by set."""
        extended = {
            code: replace(self.get(code), names=tuple(sorted(file_codes.items())))
            for code, file_codes in names.items()
            if file_codes and code in self
        }
        return (
            LanguageTable({**self._languages, **extended}, knows_living=self._knows_living)
            if extended
            else self
        )


def recorded_name(code: str, recorded: Iterable[Mapping[str, str]]) -> str:
    """Return the name of a language: the table's, else the one that a task of a run records, else that of ISO 639-3."""
    table = known_languages()
    if code in table.listed:
        return table.get(code).name
    default = table.get(code).name if code in table else code
    return next((names[code] for names in recorded if code in names), default)


class _LivingLanguages(Mapping[str, Language]):
    """The languages of living.tsv; each is made when it is looked up."""

    def __init__(self) -> None:
        lines = _lines("living.tsv")
        self._head = lines[0].split("\t")
        self._rows = {row[0]: row for row in (line.split("\t") for line in lines[1:])}

    def __getitem__(self, code: str) -> Language:
        fields: dict[str, Any] = dict(zip(self._head, self._rows[code], strict=True))
        return Language(**fields)

    def __iter__(self) -> Iterator[str]:
        return iter(self._rows)

    def __len__(self) -> int:
        return len(self._rows)

    @cached_property
    def codes_by_name(self) -> Mapping[str, str]:
        """Codes by English name in lower case."""
        return {row[1].lower(): code for code, row in reversed(self._rows.items())}


living_languages = cache(_LivingLanguages)


def _lines(name: str) -> list[str]:
    return resources.files("harness.languages").joinpath(name).read_text(encoding="utf-8").splitlines()


@cache
def known_languages() -> LanguageTable:
    """Return the shipped table; it knows the living languages too, but lists only those of languages.tsv."""
    rows: Iterable[Any] = csv.DictReader(_lines("languages.tsv"), delimiter="\t", quoting=csv.QUOTE_NONE)
    return LanguageTable({row["code"]: Language(**row) for row in rows}, knows_living=True)


def library_code(code: str, known: Container[str]) -> str | None:
    """Return the code that a library has for a language; None where it has none.

    That is the code itself, or the language without script and country (``zh-Hant``: ``zh``, ``pt-BR``: ``pt``), its
    withdrawn code among them. A language in another script than its usual one is not what the library knows by that
    code: ``hi-Latn`` has none.
    """
    if code in known:
        return code
    table = known_languages()
    language = code.replace("_", "-").partition("-")[0].lower()
    if writing_of(code) != writing_of(language):
        return None
    names = (language, *(table.get(language).retired.split() if language in table else ()))
    return next((name for name in names if name in known), None)


def writing_of(code: str) -> str:
    """Return the script of the texts in a language: ``Hani``, ``Latn``; empty where the code does not show it."""
    table = known_languages()
    language, *subtags = code.replace("_", "-").split("-")
    script = next((subtag.title() for subtag in subtags if len(subtag) == 4 and subtag.isalpha()), "")
    script = script or next((table.get(name).script for name in (code, language) if name in table), "")
    return TEXT_SCRIPTS.get(script, script) or ("Hani" if language in _CHINESE else "")


def is_unspaced_language(code: str) -> bool:
    """Return whether a language is written without spaces between words."""
    return writing_of(code) in _UNSPACED
