"""The languages of a suite: Table 7's columns, which task has which language, and the family and typology indices.

Source: Ruder et al. (2021), Tables 7 and 8. A language counts once for every task of the suite whose document lists
it; languages that other packages add to a task are named, and not counted, so that the numbers stay the suite's. The
typology index is the mean over 103 binary features of the entropy of their distribution over the languages. The values
come from the data files of the package lang2vec 1.1.2 (Littell et al. 2017). They are read directly: importing that
package needs pkg_resources, which setuptools no longer has.
"""

from __future__ import annotations

import importlib.metadata
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from harness.errors import DataError, MissingExtraError, Problem, SpecError, UnknownNameError
from harness.languages.table import TABLE_SOURCE, Language, known_languages
from harness.table import grouped

if TYPE_CHECKING:
    from harness.specs.catalog import Catalog
    from harness.specs.schema import SuiteSpec
    from harness.specs.task_entry import Entry
    from harness.statistics.interval import Floats
FEATURE_SETS = {"syntax_knn": "feature_predictions.npz", "syntax_average": "feature_averages.npz"}
"""Two sets of lang2vec, with their files: gaps predicted from like languages, and the mean of sources with its gaps."""
SYNTAX = "S_"
"""Prefix of the names of syntactic features."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CoveredLanguage:
    """One language of a suite and the tasks that have it."""

    language: Language
    tasks: tuple[str, ...]
    """In the order of the suite."""
    printed_datasets: int | None = None
    """The number of datasets that the suite's paper prints, where it is the paper of the language table."""

    @property
    def datasets(self) -> int:
        """The number of the suite's tasks that have the language."""
        return len(self.tasks)

    def row(self) -> dict[str, Any]:
        """Return the columns of Table 7 and the tasks, as plain values."""
        names = ("code", "name", "script", "printed_script", "family", "branch", "wikipedia_articles")
        marks = ("diacritics", "compounding", "clitics", "inflection", "derivation")
        row: dict[str, Any] = {name: getattr(self.language, name) for name in (*names, *marks)}
        row |= {"datasets": self.datasets, "printed_datasets": self.printed_datasets}
        return row | {"tasks": list(self.tasks)}


@dataclass(frozen=True, slots=True, kw_only=True)
class SuiteCoverage:
    """The languages of a suite by code, and its tasks."""

    suite: str
    tasks: tuple[str, ...]
    languages: tuple[CoveredLanguage, ...]
    compared: Mapping[str, tuple[Language, ...]]
    """The languages of other benchmarks whose indices the suite's paper prints."""
    added: tuple[str, ...]
    """``task:code (plugin)`` of the languages that other packages add, which do not count."""
    notes: Mapping[str, str]
    """Why the suite's paper prints other values: ``script``, ``datasets``, ``family_index``, ``typology_index``."""

    def total(self, task: str) -> int:
        """Return the number of languages of a task."""
        return sum(task in covered.tasks for covered in self.languages)


def suite_coverage(catalog: Catalog, name: str) -> SuiteCoverage:
    """Return the languages of a suite's tasks; their documents are read and not validated.

    Raises `UnknownNameError` for an unknown suite, `SpecError` for unknown tasks of it, and an error that names the
    code for a language that neither the language table nor the task's document describes.
    """
    suite = catalog.suite(name)
    lost = [task for task in suite.tasks if task not in catalog.names("task")]
    if lost:
        document = catalog.entry("suite", name).document
        lines = [document.line_of(["tasks", suite.tasks.index(task)]) for task in lost]
        messages = [str(UnknownNameError("task", task, catalog.names("task"))) for task in lost]
        pairs = zip(messages, lines, strict=True)
        problems = [Problem(message=message, key="tasks", line=line) for message, line in pairs]
        raise SpecError(document.source, problems)
    return cover(
        suite, {task: catalog.entry("task", task) for task in suite.tasks}, _added(catalog, suite.tasks)
    )


def cover(suite: SuiteSpec, entries: Mapping[str, Entry], added: Sequence[str] = ()) -> SuiteCoverage:
    """Return the languages of a suite whose task documents are `entries`."""
    pairs = ((code, entry) for entry in entries.values() for code in entry.languages)
    members = grouped((code, entry) for code, entry in pairs if suite.includes(entry.name, code))
    covered = []
    for code, having in members.items():
        language = _language(having[0], code)
        printed = language.printed_datasets if suite.citation == TABLE_SOURCE else ""
        covered.append(
            CoveredLanguage(
                language=language,
                tasks=tuple(entry.name for entry in having),
                printed_datasets=int(printed) if printed else None,
            )
        )
    return SuiteCoverage(
        suite=suite.suite,
        tasks=suite.tasks,
        languages=tuple(sorted(covered, key=lambda item: item.language.code)),
        compared={name: tuple(map(known_languages().get, codes)) for name, codes in suite.compared.items()},
        added=tuple(added),
        notes={str(key): note for key, note in suite.notes.items()},
    )


def family_index(languages: Iterable[Language]) -> tuple[int, int]:
    """Return the numbers of distinct top-level families (an isolate is one) and of languages.

    Their ratio is the family index of Ruder et al. (2021), Table 8, in (0, 1]: 16 / 50 for the languages of Table 7.
    """
    counted = list(languages)
    return len({language.family for language in counted}), len(counted)


def dataset_differences(languages: Iterable[CoveredLanguage]) -> list[tuple[str, int, int]]:
    """Return code, printed and counted number of datasets where the two differ."""
    return [
        (item.language.code, item.printed_datasets, item.datasets)
        for item in languages
        if item.printed_datasets is not None and item.printed_datasets != item.datasets
    ]


def _language(entry: Entry, code: str) -> Language:
    table = known_languages()
    if code in table:
        return table.get(code)
    description = entry.document.data["languages"][code]
    texts = description if isinstance(description, Mapping) else {}
    name, script, family = (texts.get(key) for key in ("name", "script", "family"))
    if isinstance(name, str) and isinstance(script, str) and isinstance(family, str):
        return Language(code=code, name=name, script=script, family=family)
    message = (
        table.meant_by(code)
        or f"{code!r} needs 'name', 'script' and 'family': it is not in the language table"
    )
    line = entry.document.line_of(["languages", code])
    raise SpecError(entry.document.source, [Problem(message=message, key=f"languages.{code}", line=line)])


def _added(catalog: Catalog, tasks: Iterable[str]) -> list[str]:
    return [
        f"{entry.name}:{code} ({entry.plugin})"
        for task in tasks
        for entry in catalog.entries
        if entry.sort == "extends" and entry.name == task
        for code in entry.languages
    ]


def typology_index(languages: Sequence[Language], feature_set: str = "syntax_knn") -> float:
    """Return the typology index of languages, in [0, ln 2].

    Raises `MissingExtraError` without lang2vec, and `DataError` where URIEL has no such language or no values of a
    feature.
    """
    nameless = [language.code for language in languages if not language.iso639_3]
    if nameless or not languages:
        raise DataError(
            f"URIEL uses ISO 639-3 codes, and {', '.join(nameless) or 'no language'} has no such code here."
        )
    values = syntax_shares([language.iso639_3 for language in languages], feature_set)
    return mean_entropy([float(share) for share in values.mean(axis=0)])


def mean_entropy(shares: Sequence[float]) -> float:
    """Return the mean entropy, in nats, of binary features that hold for these shares of the languages."""
    return math.fsum(_entropy(share) for share in shares) / len(shares)


def syntax_shares(codes: Sequence[str], feature_set: str = "syntax_knn") -> Floats:
    """Return the values of the syntactic features in [0, 1], shape (languages, features), for ISO 639-3 codes.

    A value between 0 and 1 is the share of URIEL's sources that give the language the feature.
    """
    path = _data_file(FEATURE_SETS[feature_set])
    import numpy as np

    with np.load(path, allow_pickle=False) as archive:
        row_of = {str(code): index for index, code in enumerate(archive["langs"])}
        columns = [index for index, name in enumerate(archive["feats"]) if str(name).startswith(SYNTAX)]
        unknown = [code for code in codes if code not in row_of]
        if unknown:
            raise DataError(
                f"URIEL has no language {', '.join(map(repr, unknown))}; "
                "expected individual ISO 639-3 codes such as 'arb' and 'cmn'."
            )
        rows = [row_of[code] for code in codes]
        values = archive["data"][:, :, 0].astype(np.float64)[np.ix_(rows, columns)]
    gaps = (values < 0) | ~np.isfinite(values)  # URIEL writes a value that it does not have as -1
    present = np.where(gaps, np.nan, values)
    empty = int(gaps.all(axis=0).sum())
    if empty:
        raise DataError(
            f"URIEL's {feature_set} has no value of {empty} of its {len(columns)} syntactic features "
            f"in the {len(codes)} languages."
        )
    # A language without a value does not count for this feature: it takes the mean of the others.
    filled: Floats = np.where(gaps, np.nanmean(present, axis=0), values)
    return filled


def syntax_distances(codes: Sequence[str], reference: str) -> dict[str, float]:
    """Return the share of syntactic features in which languages differ from another one, by ISO 639-3 code.

    Languages that URIEL does not have are missing. Raises `MissingExtraError` without lang2vec.
    """
    import numpy as np

    with np.load(_data_file(FEATURE_SETS["syntax_knn"]), allow_pickle=False) as archive:
        uriel_codes = set(map(str, archive["langs"]))
    covered = [code for code in dict.fromkeys(codes) if code in uriel_codes]
    first, *rows = syntax_shares([reference, *covered])
    return {code: float(np.abs(row - first).mean()) for code, row in zip(covered, rows, strict=True)}


def _entropy(share: float) -> float:
    return -sum(probability * math.log(probability) for probability in (share, 1 - share) if probability > 0)


def _data_file(name: str) -> Path:
    try:
        distribution = importlib.metadata.distribution("lang2vec")
    except importlib.metadata.PackageNotFoundError as error:
        raise MissingExtraError("The typology index", "typology", "lang2vec") from error
    path = Path(str(distribution.locate_file(f"lang2vec/data/{name}")))
    if not path.is_file():
        raise DataError(f"The package lang2vec {distribution.version} has no file {str(path)!r}.")
    return path
