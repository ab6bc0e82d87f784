"""The typology index of a set of languages, from the syntactic features of URIEL.

Source: Ruder et al. (2021), Table 8: the mean over 103 binary features of the entropy of their
distribution over the languages. The values come from the data files of the package lang2vec 1.1.2 (Littell et al.
2017). They are read directly: importing that package needs pkg_resources, which setuptools no longer has.
"""

from __future__ import annotations

import importlib.metadata
import math
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from harness.errors import DataError, MissingExtraError

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from harness.languages.table import Language

FEATURE_SETS = {"syntax_knn": "feature_predictions.npz", "syntax_average": "feature_averages.npz"}
"""Two sets of lang2vec, with their files: gaps predicted from like languages, and the mean of sources with its gaps."""
SYNTAX = "S_"
"""Prefix of the names of syntactic features."""


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


def syntax_shares(codes: Sequence[str], feature_set: str = "syntax_knn") -> npt.NDArray[np.float64]:
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
    filled: npt.NDArray[np.float64] = np.where(gaps, np.nanmean(present, axis=0), values)
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
