"""The languages the harness knows: code, name, script, family, segmentation, and the codes of other collections.

The rows with `printed_datasets` are the 50 languages of XTREME-R: names, families, sizes and collection codes of these
and of Hausa are those of Ruder et al. (2021), Table 7, and of the released data; scripts are ISO 15924 codes of the
text that the data sets hold, where the paper prints a tradition (`printed_script`). All other rows are made by
``benchmarks/language_table.py`` from LinguaMeta (Ritchie et al., 2024), Glottolog 5.1 (Hammarström et al., 2024) and
the classes of Joshi et al. (2020): the languages of FLORES-200, SIB-200, NTREX-128, Belebele, MultiBLiMP and the
African, American, Indic and Indonesian benchmarks.

A code has one meaning: ours. It is ISO 639-1 where there is one, for the language of a macrolanguage that the
benchmarks mean (`ku` is Northern Kurdish); other scripts and countries than the main one have a subtag (`zh-Hant`). The
codes of other collections (`cmn`, `zho`, ``zh_``, ``iw``) are rejected, and the error names the code to use: two names
for one language would split its rows in every table.
"""

from __future__ import annotations

import csv
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, fields, replace
from functools import cache
from importlib import resources
from typing import Any

from harness.errors import UnknownNameError, UsageError

__all__ = ["CODE_NAMES", "TABLE_SOURCE", "Language", "LanguageTable", "known_languages", "recorded_name"]

TABLE_SOURCE = "ruder2021xtremer"
"""Citation key of the paper whose Table 7 holds `printed_script`, `printed_datasets` and the typological marks."""


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
    names: tuple[tuple[str, str], ...] = ()
    """Its codes in a task's files, by the name of their set; they may name the codes above in braces."""

    def codes(self) -> Mapping[str, str]:
        """Return what ``{...}`` in a spec's paths and configs may name."""
        named = {name: str(getattr(self, "code" if name == "language" else name)) for name in CODE_NAMES}
        return named | {name: code.format_map(named) for name, code in self.names}


CODE_NAMES = (*(field.name for field in fields(Language) if field.name != "names"), "language")
"""What braces may name for every language: the columns of the table."""


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

    def __init__(self, languages: Mapping[str, Language]) -> None:
        self._languages = dict(languages)

    def __iter__(self) -> Iterator[Language]:
        """Iterate over the languages by code."""
        return iter(sorted(self._languages.values(), key=lambda language: language.code))

    def __contains__(self, code: str) -> bool:
        return code in self._languages

    def __len__(self) -> int:
        return len(self._languages)

    def get(self, code: str) -> Language:
        """Return the language of a code.

        Raises `UsageError` with the right code for a name and for the code of another collection, and
        `UnknownNameError` with near codes for anything else.
        """
        if code in self._languages:
            return self._languages[code]
        by_name = {language.name.lower(): language.code for language in self}
        if code.lower() in by_name:
            raise UsageError(f"Languages are named by code: {code!r} is {by_name[code.lower()]!r}.")
        meant = self.meant_by(code)
        if meant is not None:
            raise UsageError(f"{meant}.")
        raise UnknownNameError("language", code, self._languages, hint="Run 'harness languages' to see all.")

    def meant_by(self, code: str) -> str | None:
        """Return what an unknown code means elsewhere and which one to use, as a clause; None for any other code.

        ``'cmn' is the Tatoeba code and ISO 639-3 code of Mandarin Chinese: use 'zh'``
        """
        if code in self._languages:
            return None
        found = [(language, schemes) for language in self if (schemes := _schemes(language, code.lower()))]
        if not found:
            return None
        # A variety shares the codes of its language, whose own code is shorter; Cusco Quechua has the FLORES code of
        # Ayacucho Quechua.
        language, schemes = min(
            found, key=lambda item: (not code.lower().startswith(item[0].iso639_3), len(item[0].code))
        )
        return f"{code!r} is the {' and '.join(schemes)} of {language.name}: use {language.code!r}"

    def code_of(self, name: str) -> str | None:
        """Return the code of a language by its code, English name or a code of another collection; None if unknown.

        ``hin_Latn`` is Hindi in Latin script, where the table has it, though FLORES-200 does not.
        """
        if name in self._languages:
            return name
        by_name = {language.name.lower(): language.code for language in self}
        if name.lower() in by_name:
            return by_name[name.lower()]
        meant = self.meant_by(name) if name else None
        if meant is not None:
            return meant.rsplit("'", 2)[-2]
        language, _, script = name.partition("_")
        base = self.code_of(language) if script else None
        return f"{base}-{script}" if f"{base}-{script}" in self._languages else None

    def extended(self, additional: Mapping[str, Language]) -> LanguageTable:
        """Return a table that knows the additional languages too."""
        return LanguageTable({**additional, **self._languages})

    def with_names(self, names: Mapping[str, Mapping[str, str]]) -> LanguageTable:
        """Return a table whose languages have the codes of a task's files too: by language, by set."""
        named = {
            code: replace(self._languages[code], names=tuple(sorted(own.items())))
            for code, own in names.items()
            if own and code in self._languages
        }
        return LanguageTable({**self._languages, **named}) if named else self


def recorded_name(code: str, recorded: Iterable[Mapping[str, str]]) -> str:
    """Return the name of a language: the table's, or the one that a task of a run records, or the code."""
    table = known_languages()
    if code in table:
        return table.get(code).name
    return next((names[code] for names in recorded if code in names), code)


@cache
def known_languages() -> LanguageTable:
    """Return the shipped table."""
    text = resources.files("harness.languages").joinpath("languages.tsv").read_text(encoding="utf-8")
    rows: Iterable[Any] = csv.DictReader(text.splitlines(), delimiter="\t", quoting=csv.QUOTE_NONE)
    return LanguageTable({row["code"]: Language(**row) for row in rows})
