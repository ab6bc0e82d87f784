"""The typology index against the published values, scipy's entropy, and files with gaps."""

from __future__ import annotations

import importlib.metadata
import math
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, strategies as st
from scipy.stats import entropy

from harness.analysis import coverage
from harness.analysis.coverage import FEATURE_SETS, mean_entropy, syntax_shares, typology_index
from harness.errors import DataError, MissingExtraError
from harness.languages.table import Language, known_languages

KNOWN = known_languages()
NEW = "az gu ht lt pa pl qu ro uk wo".split()
"""Ruder et al. (2021), Table 7: the languages that XTREME did not have."""
XTREME_R = [language for language in KNOWN if language.printed_datasets]
XTREME = [language for language in XTREME_R if language.code not in NEW]
XGLUE = [KNOWN.get(code) for code in "ar bg de el en es fr hi it nl pl pt ru sw th tr ur vi zh".split()]


def file_of(name: str) -> Path:
    try:
        distribution = importlib.metadata.distribution("lang2vec")
    except importlib.metadata.PackageNotFoundError:
        pytest.skip("lang2vec is not installed")
    return Path(str(distribution.locate_file(f"lang2vec/data/{FEATURE_SETS[name]}")))


@pytest.mark.parametrize(
    ("languages", "printed", "knn", "average"),
    [(XTREME_R, 0.42, 0.413, 0.420), (XTREME, 0.43, 0.420, 0.426), (XGLUE, 0.35, 0.352, 0.361)],
    ids=["XTREME-R", "XTREME", "XGLUE"],
)
def test_the_indices_of_table_8(
    languages: list[Language], printed: float, knn: float, average: float
) -> None:
    """Ruder et al. (2021), Table 8 prints two digits, and not from which of the two sets."""
    file_of("syntax_knn")
    found = [typology_index(languages, "syntax_knn"), typology_index(languages, "syntax_average")]
    assert found == pytest.approx([knn, average], abs=5e-4)
    assert min(abs(value - printed) for value in found) <= 0.01 + 1e-9


@pytest.mark.parametrize("name", FEATURE_SETS)
def test_the_index_is_scipys_mean_entropy(name: str) -> None:
    with np.load(file_of(name), allow_pickle=False) as archive:
        rows = [list(archive["langs"]).index(language.iso639_3) for language in XGLUE]
        names = [str(feature) for feature in archive["feats"]]
        columns = [index for index, feature in enumerate(names) if feature.startswith("S_")]
        values = archive["data"][rows][:, columns, 0].astype(float)
    assert len(columns) == 103
    entropies = []
    for column in values.T:
        known = column[column >= 0]
        entropies.append(entropy([known.mean(), 1 - known.mean()]))
    assert typology_index(XGLUE, name) == pytest.approx(float(np.mean(entropies)), abs=1e-9)


@given(st.lists(st.floats(0, 1), min_size=1, max_size=20))
def test_mean_entropy(shares: list[float]) -> None:
    expected = float(np.mean([entropy([share, 1 - share]) for share in shares]))
    assert mean_entropy(shares) == pytest.approx(expected, abs=1e-12)
    assert -1e-12 <= mean_entropy(shares) <= math.log(2) + 1e-12
    assert mean_entropy([1 - share for share in shares]) == pytest.approx(expected, abs=1e-12)


@pytest.fixture
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A file like lang2vec's with three languages and four features, three of them syntactic."""
    path = tmp_path / "features.npz"
    values = np.array([[1, 1, 0, -1], [0, 1, 1, -1], [1, -1, 1, -1]], dtype=np.float32)[:, :, None]
    langs, feats = np.array(["aaa", "bbb", "ccc"]), np.array(["S_A", "S_B", "P_C", "S_D"])
    np.savez(path, data=values, langs=langs, feats=feats, sources=np.array(["predicted"]))
    monkeypatch.setattr(coverage, "_data_file", lambda name: path)
    return path


def rewritten(path: Path, value: float) -> None:
    with np.load(path) as archive:
        arrays = {name: archive[name] for name in archive.files}
    arrays["data"][0, 3, 0] = value
    np.savez(path, **arrays)


def test_a_language_without_a_value_does_not_count_for_a_feature(data: Path) -> None:
    rewritten(data, 1)
    assert syntax_shares(["aaa", "bbb", "ccc"]).tolist() == [[1, 1, 1], [0, 1, 1], [1, 1, 1]]
    assert syntax_shares(["ccc", "aaa"]).tolist() == [[1, 1, 1], [1, 1, 1]]
    languages = [
        Language(code=code[:2], name="x", script="Latn", family="x", iso639_3=code) for code in ("aaa", "bbb")
    ]
    assert typology_index(languages) == pytest.approx(math.log(2) / 3)


def test_languages_and_features_without_values_are_errors(data: Path) -> None:
    with pytest.raises(DataError, match="no value of 1 of its 3 syntactic features in the 3 languages"):
        syntax_shares(["aaa", "bbb", "ccc"])
    with pytest.raises(DataError, match="URIEL has no language 'zho', 'ara'"):
        syntax_shares(["aaa", "zho", "ara"])
    nameless = Language(code="gsw", name="Swiss German", script="Latn", family="Indo-European")
    for languages, message in (([KNOWN.get("de"), nameless], r"ISO 639-3 .*\bgsw\b"), ([], "no language")):
        with pytest.raises(DataError, match=message):
            typology_index(languages)


def test_macrolanguages_give_another_index() -> None:
    """URIEL has them next to their individual languages, so that the codes must be those of the language table."""
    file_of("syntax_knn")
    codes = [language.iso639_2.split()[0] for language in XTREME_R]
    assert {"ara", "aze", "fas", "que", "swa", "zho"} <= set(codes)
    shares = syntax_shares(codes).mean(axis=0)
    assert mean_entropy([float(share) for share in shares]) == pytest.approx(0.418, abs=5e-4)


def test_without_lang2vec_one_sentence_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    def lost(name: str) -> None:
        raise importlib.metadata.PackageNotFoundError(name)

    monkeypatch.setattr(importlib.metadata, "distribution", lost)
    with pytest.raises(MissingExtraError, match=r"pip install 'multilingual-harness\[typology\]'"):
        typology_index(XGLUE)
