"""The languages the harness knows: code, name, script, family, segmentation, and the codes of other collections.

The table lists the 50 languages of XTREME-R and Hausa (which MultiCheckList adds). Names, families, sizes and
collection codes are those of Ruder et al. (2021), Table 7, and of the released data; scripts are ISO 15924
codes of the text that the data sets hold, where the paper prints a tradition (`printed_script`).

A code has one meaning: ours. The codes of other collections (`cmn`, `zho`, ``zh_``, ``iw``) are rejected, and the
error names the code to use: two names for one language would split its rows in every table.
"""

from __future__ import annotations

import csv
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, fields
from functools import cache
from importlib import resources

from harness.errors import UnknownNameError, UsageError

__all__ = ["TABLE_SOURCE", "Language", "LanguageTable", "known_languages", "recorded_name"]

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
    """ISO 639-2 codes, separated by spaces: macrolanguages (``ara``) and bibliographic codes (``chi``) among them."""
    retired: str = ""
    """Withdrawn ISO 639-1 codes: ``iw``, ``in``."""

    def codes(self) -> Mapping[str, str]:
        """Return what ``{...}`` in a spec's paths and configs may name."""
        named = {field.name: str(getattr(self, field.name)) for field in fields(self)}
        return named | {"language": self.code}


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
        for language in self:
            schemes = [
                title
                for field, title in FOREIGN_CODES.items()
                if code.lower() in (value.lower() for value in getattr(language, field).split())
            ]
            if schemes:
                return f"{code!r} is the {' and '.join(schemes)} of {language.name}: use {language.code!r}"
        return None

    def extended(self, additional: Mapping[str, Language]) -> LanguageTable:
        """Return a table that knows the additional languages too."""
        return LanguageTable({**additional, **self._languages})


def recorded_name(code: str, recorded: Iterable[Mapping[str, str]]) -> str:
    """Return the name of a language: the table's, or the one that a task of a run records, or the code."""
    table = known_languages()
    if code in table:
        return table.get(code).name
    return next((names[code] for names in recorded if code in names), code)


@cache
def known_languages() -> LanguageTable:
    """Return the shipped table: 50 languages and Hausa."""
    text = resources.files("harness.languages").joinpath("languages.tsv").read_text(encoding="utf-8")
    rows = csv.DictReader(text.splitlines(), delimiter="\t", quoting=csv.QUOTE_NONE)
    return LanguageTable({row["code"]: Language(**row) for row in rows})
