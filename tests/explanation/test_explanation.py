"""The regression of scores on properties of languages equals what straight computations of it give."""

from __future__ import annotations

import csv
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.stats import pearsonr, spearmanr, t

from harness.analysis.coverage import syntax_distances, syntax_shares
from harness.analysis.explanation import Explanation, explain
from harness.languages.table import known_languages
from harness.reporting.languages.explanation import explained, language_properties, read_explanation
from harness.running.session import open_session
from harness.storage.run_folder import Run
from tests.builders import make_cell, published_tables, write_run

Properties = dict[str, dict[str, float]]
CODES = "ar bg bn de el es et eu fi fr hi hu id ja ka ko ru sw ta tr vi zh".split()
FAMILIES = {code: known_languages().get(code).family for code in CODES}
SPEC = {"kind": "token_tagging", "metrics": ["accuracy"], "headline": ["accuracy"], "source": "en"}
LANGUAGES = {
    code: (known_languages().get(code).family, known_languages().get(code).script) for code in [*CODES, "en"]
}


def made(seed: int, codes: list[str]) -> tuple[dict[str, float], Properties]:
    random = np.random.default_rng(seed)
    properties = {name: dict(zip(codes, random.normal(size=len(codes)), strict=True)) for name in "abc"}
    scores = {code: 0.5 + 0.1 * properties["a"][code] + 0.05 * random.normal() for code in codes}
    return scores, properties


def fitted(scores: Mapping[str, Mapping[str, float]], properties: Properties) -> Explanation:
    found = explain(scores, properties, FAMILIES)
    assert found is not None
    return found


def dummies(rows: list[tuple[str, str, float]], properties: Properties, names: str) -> np.ndarray[Any, Any]:
    """Return the design of a regression with one level per task."""
    tasks = sorted({task for task, *_ in rows})
    codes = sorted({code for _, code, _ in rows})
    columns = [[float(task == own) for task, *_ in rows] for own in tasks]
    for name in names:
        values = np.array([properties[name][code] for code in codes])
        columns.append([(properties[name][code] - values.mean()) / values.std(ddof=1) for _, code, _ in rows])
    return np.array(columns).T


@pytest.mark.parametrize("tasks", [1, 2])
def test_slopes_and_jackknife_are_those_of_a_regression_with_levels(tasks: int) -> None:
    scores, properties = made(1, CODES)
    every = {"one": scores, "two": {code: own + 0.2 for code, own in made(2, CODES[:15])[0].items()}}
    every = dict(list(every.items())[:tasks])
    found = fitted(every, properties)
    rows = [(task, code, value) for task, own in every.items() for code, value in own.items()]
    y, x = np.array([value for *_, value in rows]), dummies(rows, properties, "abc")
    slopes = np.linalg.lstsq(x, y, rcond=None)[0][tasks:]
    groups = sorted({FAMILIES[code] for _, code, _ in rows})
    without, errors, means = [], [], []
    for group in groups:
        kept = np.array([FAMILIES[code] != group for _, code, _ in rows])
        own = np.linalg.lstsq(x[kept], y[kept], rcond=None)[0]
        without.append(own[tasks:])
        errors += list(y[~kept] - x[~kept] @ own)
        level = np.linalg.lstsq(x[kept][:, :tasks], y[kept], rcond=None)[0]
        means += list(y[~kept] - x[~kept][:, :tasks] @ level)
    count = len(groups)
    se = np.sqrt((count - 1) / count * ((np.array(without) - slopes) ** 2).sum(axis=0))
    assert [own.value for own in found.effects] == pytest.approx(list(slopes))
    assert [own.se for own in found.effects] == pytest.approx(list(se))
    assert [own.p for own in found.effects] == pytest.approx(list(2 * t.sf(abs(slopes / se), count - 1)))
    assert [own.high for own in found.effects] == pytest.approx(list(slopes + t.ppf(0.975, count - 1) * se))
    assert found.mae == pytest.approx(np.abs(errors).mean())
    assert found.mean_mae == pytest.approx(np.abs(means).mean())
    assert found.unseen_r2 == pytest.approx(1 - np.square(errors).sum() / np.square(means).sum())
    assert found.families == count


@pytest.mark.thorough
def test_the_fit_is_that_of_statsmodels() -> None:
    regression = pytest.importorskip("statsmodels.api")
    scores, properties = made(3, CODES)
    found = fitted({"one": scores}, properties)
    rows = [("one", code, value) for code, value in scores.items()]
    x = dummies(rows, properties, "abc")
    same = regression.OLS(np.array(list(scores.values())), x).fit()
    assert found.r2 == pytest.approx(same.rsquared)
    assert [own.value for own in found.effects] == pytest.approx(list(same.params[1:]))


def test_correlations_are_those_of_scipy() -> None:
    scores, properties = made(4, CODES)
    for effect in fitted({"one": scores}, properties).effects:
        pair = [scores[code] for code in CODES], [properties[effect.name][code] for code in CODES]
        assert effect.pearson == pytest.approx(pearsonr(*pair).statistic)
        assert effect.spearman == pytest.approx(spearmanr(*pair).statistic)


def test_few_languages_have_few_properties_or_no_model() -> None:
    scores, properties = made(5, CODES)
    some = {code: scores[code] for code in "ar bg bn de el es fi hi id tr".split()}
    found = fitted({"one": some}, properties)
    # Five of the ten languages are Indo-European: five others for one property.
    assert [own.value is not None for own in found.effects] == [True, False, False]
    assert explain({"one": dict(list(some.items())[:9])}, properties, FAMILIES) is None
    related = {code: "one" for code in CODES}
    assert explain({"one": scores}, properties, related) is None
    assert explain({"one": dict.fromkeys(CODES, 0.5)}, properties, FAMILIES) is None


def test_a_property_that_is_unknown_of_a_language_or_a_mixture_has_no_effect() -> None:
    scores, properties = made(6, CODES)
    unknown = {**properties, "b": {"ar": 1.0}}
    assert [own.name for own in fitted({"one": scores}, unknown).effects] == ["a", "c"]
    double = {"a": properties["a"], "b": {code: 2 * own for code, own in properties["a"].items()}}
    assert [own.value is None for own in fitted({"one": scores}, double).effects] == [False, True]


def test_syntax_distances_are_shares_of_features() -> None:
    pytest.importorskip("lang2vec")
    found = syntax_distances(["deu", "jpn", "xxx"], "eng")
    english, german = syntax_shares(["eng", "deu"])
    assert found.keys() == {"deu", "jpn"}
    assert found["deu"] == pytest.approx(float(np.abs(english - german).mean()))
    assert found["deu"] < found["jpn"]


def explained_run(folder: Path, data: str = "local") -> Run:
    scores, _ = made(7, CODES)
    cells = [make_cell("udpos", code, {"accuracy": value}) for code, value in {**scores, "en": 0.9}.items()]
    return write_run(folder, cells, {"udpos": {**SPEC, "languages": LANGUAGES}}, run={"data": data})


def test_the_section_skips_english_and_the_sample(tmp_path: Path) -> None:
    [found], _ = explained([explained_run(tmp_path / "one")])
    assert found.found.languages == tuple(sorted(CODES))
    section = read_explanation([explained_run(tmp_path / "two")])
    assert section is not None
    rows = section.rows()
    assert [row["kind"] for row in rows][:2] == ["model", "property"]
    assert {row["name"] for row in rows[1:]} >= {"Wikipedia articles", "Latin script"}
    assert read_explanation([explained_run(tmp_path / "three", "sample")]) is None


def test_the_sizes_and_scores_of_the_paper_give_its_tables_correlation() -> None:
    """XTREME-R: Table 15 (XNLI) against the articles of Table 7, from the tables and from what is shipped."""
    folder = published_tables("xtreme_r")
    sizes = {row["iso639_1"]: float(row["wiki_articles_millions"]) for row in table(folder / "languages.tsv")}
    [printed] = [row for row in table(folder / "table15_xnli.tsv") if row["model"] == "mBERT"]
    codes = [code for code in printed if code in sizes and code != "en"]
    [shipped] = [
        own for own in open_session().catalog.published_for("xtreme_r") if own.published == "xtreme_r_mbert"
    ]
    scores = {code: own / 100 for code, own in shipped.languages["xnli"]["accuracy"].items() if code != "en"}
    languages = [known_languages().get(code) for code in scores]
    found = fitted_published(scores, language_properties(languages, None, []))
    [articles] = [own for own in found.effects if own.name == "Wikipedia articles"]
    pair = [float(printed[code]) for code in codes], [np.log2(sizes[code]) for code in codes]
    assert articles.pearson == pytest.approx(pearsonr(*pair).statistic)
    assert articles.spearman == pytest.approx(spearmanr(*pair).statistic)
    assert articles.spearman > 0.8


def fitted_published(scores: Mapping[str, float], properties: Properties) -> Explanation:
    families = {code: known_languages().get(code).family for code in scores}
    found = explain({"xnli": scores}, properties, families)
    assert found is not None
    return found


def table(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8") as file:
        return list(csv.DictReader(file, delimiter="\t"))
