"""Suites in the summary: overall scores, published systems, baselines, and what stands under the table."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from statistics import fmean
from typing import Any

import pytest
from hypothesis import given, strategies as st

import harness
from harness.reporting.blocks.number import Score
from harness.reporting.documents import latex_text, markdown_text, terminal_text
from harness.reporting.overview.matrix import suite_tables
from harness.reporting.overview.means import Place, published_rows, published_score
from harness.reporting.overview.run_remarks import few_items, published_remarks
from harness.reporting.overview.summary import Summary, summarise
from harness.running.manifest import published_documents
from harness.running.session import Session, open_session
from harness.scores.aggregation import aggregate_suites
from harness.storage.results import CellResult, Manifest, RunResults, SuiteScore, SuiteSummary, TaskScore
from harness.storage.run_folder import Run, with_baselines

pytestmark = pytest.mark.thorough

OVERALL = {"mBERT": 54.1, "mT5-XXL": 64.6, "XLM-R Large": 65.3}
"""Table 4 of Ruder et al. (2021), without translated training data."""


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> list[Run]:
    """The whole suite on the sample, with the baselines and the published scores."""
    folder = tmp_path_factory.mktemp("suite")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HARNESS_CACHE", str(folder / "cache"))
        finished = harness.evaluate(
            "xtreme_r",
            "baseline:char-ngram",
            data="sample",
            recipe="quick",
            limit=3,
            train_limit=12,
            with_published=True,
            with_baselines=True,
            output=folder / "run",
        )
    return with_baselines(finished)


@pytest.fixture(scope="module")
def summary(runs: list[Run]) -> Summary:
    return summarise(runs)


def _rows(rows: Any) -> dict[str, list[float | None]]:
    return {label: [score.value for score in scores] for label, scores in rows}


# The table of the suite ---------------------------------------------------------------------------------


def test_published_systems_get_the_averages_that_were_published(summary: Summary) -> None:
    [table] = summary.suites
    rows = _rows(table.rows)
    for label, overall in OVERALL.items():
        assert round((rows[f"published {label}"][0] or 0) * 100, 1) == overall
    assert rows["published Human"][0] is None
    assert table.title == "Suite xtreme_r (zero_shot_transfer)"
    assert table.columns == (
        *("overall", "flat", "classification", "structured prediction"),
        *("question answering", "retrieval"),
    )


def test_the_model_stands_first_and_its_baselines_under_it(runs: list[Run], summary: Summary) -> None:
    [table] = summary.suites
    labels = [label for label, _ in table.rows]
    assert labels[0] == "char-ngram"
    assert {"majority", "random"} & set(labels[1:3])
    assert all(label.startswith("published ") for label in labels[len(runs) :])
    for run, (_, scores) in zip(runs, table.rows, strict=False):
        row = next((row for row in run.results.suites if row.protocol == "zero_shot_transfer"), None)
        if row is None:
            assert scores == (Score(),) * 6
            continue
        categories = [row.paper.categories[name] for name in ("classification", "structured_prediction")]
        assert [score.value for score in scores[:4]] == [row.paper.value, row.flat.value, *categories]


def test_scores_over_fewer_languages_are_marked_and_counted(summary: Summary) -> None:
    """The sample has some of the languages of most tasks."""
    [table] = summary.suites
    assert {score.mark for score in table.rows[0][1]} == {"~"}
    assert {
        score.mark for label, scores in table.rows for score in scores if label.startswith("published")
    } == {"", "~", "~°"}  # a mean over the whole test sets is not one over the sample's languages
    [note] = [note for note in table.notes if note.startswith("~")]
    assert "not comparable with published scores: " in note
    assert "xnli " in note
    assert "mlqa" not in note  # all seven languages are in the sample


def test_the_overall_score_is_that_of_the_columns(summary: Summary) -> None:
    means = dict(zip(summary.columns, dict(summary.means)["mean"], strict=True))
    by_task: dict[str, list[float]] = {}
    for column, score in means.items():
        if column.protocol == "zero_shot_transfer":
            by_task.setdefault(column.task, []).append(score.value or 0.0)
    scores = {task: fmean(values) for task, values in by_task.items()}
    assert len(scores) == 10
    flat = summary.suites[0].rows[0][1][1].value
    assert flat == pytest.approx(fmean(scores.values()))


def test_the_table_is_in_every_text(runs: list[Run]) -> None:
    legend = "overall: the mean of the 4 categories; flat: the mean of the suite's 10 task scores"
    for text in (terminal_text(runs, width=150), markdown_text(runs)):
        plain = " ".join(text.replace("\\", "").split())
        for part in ("Suite xtreme_r (zero_shot_transfer)", "published mBERT", legend):
            assert part in plain
    latex = latex_text(runs)
    assert f"% {legend}" in latex
    assert "% Over all queries (micro)" in latex or "so there is no matrix" in latex


SUITE = {
    "suite": "mine",
    "protocol": "zero_shot_transfer",
    "tasks": ["nli", "qa"],
    "categories": {"classes": ["nli"], "answers": ["qa"]},
    "languages": {"nli": ["en"], "qa": ["en"]},
}
PUBLISHED = {"suite": "mine", "label": "X", "protocol": "zero_shot_transfer", "comparable": {}}


class _Run:
    """As much of a run as the tables of suites read."""

    def __init__(self, *rows: dict[str, Any], model: str = "mine", items: int = 24) -> None:
        tasks = {"nli": {"headline": ["acc"]}}
        self.manifest = Manifest.model_validate({"model": model, "suites": [SUITE], "tasks": tasks})
        scores = [TaskScore.model_validate({"metric": "acc", "value": 0.0, **row}) for row in rows]
        suites = aggregate_suites(scores, [SuiteSummary.model_validate(SUITE)])
        self.results = RunResults(cells=[], suites=suites)
        names = ("task", "protocol", "method", "view")
        self.cells = [
            CellResult(**{name: row[name] for name in names}, language=code, status="ok", n=items, metrics={})
            for row in rows
            for code in row["by_language"]
        ]


def _row(task: str, value: float, **fields: Any) -> dict[str, Any]:
    given = {"task": task, "protocol": "zero_shot_transfer", "method": "head", "view": {}, "headline": True}
    return {**given, "by_language": {"en": value}, **fields}


def _tables(*runs: Any, published: Any = ()) -> Any:
    return suite_tables(runs, published)


def test_only_a_whole_suite_has_an_overall_score() -> None:
    [table] = _tables(_Run(_row("nli", 0.8), _row("qa", 0.4)))
    assert [score.mark for _, scores in table.rows for score in scores] == [""] * 4
    assert len(table.notes) == 1
    [table] = _tables(_Run(_row("nli", 0.8)))
    assert table.rows == (("mine", (Score(), Score(), Score(value=0.8, mark="~"), Score())),)
    assert table.notes[1] == "No overall score: qa has none."


def test_published_scores_stand_under_fine_tuning_and_their_own_view() -> None:
    scores = {"nli": {"acc": 90.0, "other": 10.0}, "qa": {"f1": 60.0, "em": 40.0}}
    documents = [
        {**PUBLISHED, "scores": scores},
        {**PUBLISHED, "label": "T", "protocol": "translate_train", "scores": scores},
        {**PUBLISHED, "label": "H", "protocol": "human", "scores": {"nli": {"acc": 95.0}}},
        {**PUBLISHED, "label": "O", "suite": "other", "scores": scores},
        {**PUBLISHED, "label": "P", "protocol": "prompted", "scores": scores},
        {**PUBLISHED, "label": "V", "scores": scores, "views": {key: {"variant": "v"} for key in scores}},
    ]
    whole = [_row("nli", 0.8), _row("qa", 0.4)]
    view = {"variant": "v"}
    plain, other = _tables(_Run(*whole, *({**row, "view": view} for row in whole)), published=documents)
    labels = ["mine", "published X", "published T, tr-train", "published H"]
    assert [label for label, _ in plain.rows] == labels
    assert _rows(plain.rows)["published X"] == pytest.approx([0.7, 0.7, 0.9, 0.5])
    assert _rows(plain.rows)["published H"] == [None, None, 0.95, None]
    assert (other.title, [label for label, _ in other.rows]) == (
        "Suite mine (zero_shot_transfer, variant=v)",
        ["mine", "published V"],
    )


def test_a_baseline_without_the_row_has_blanks() -> None:
    whole = [_row("nli", 0.8), _row("qa", 0.4)]
    [table] = _tables(_Run(*whole), _Run(_row("nli", 0.1, protocol="frozen"), model="baseline:random"))
    assert table.rows[1] == ("random", (Score(),) * 4)
    assert table.notes[1] == "random has no score of this suite under this protocol and these conditions."


def test_a_further_run_over_other_items_is_marked() -> None:
    whole = [_row("nli", 0.8), _row("qa", 0.4)]
    [same] = _tables(_Run(*whole), _Run(*whole, model="hf:other"))
    assert [score.mark for _, scores in same.rows for score in scores] == [""] * 8
    [table] = _tables(_Run(*whole), _Run(*whole, model="hf:other", items=6))
    assert [[score.mark for score in scores] for _, scores in table.rows] == [[""] * 4, ["~"] * 4]
    assert table.notes[1] == "~ other: over other languages, items or data than the first row in nli, qa."


def test_added_languages_are_reported_next_to_the_published_average() -> None:
    run = _Run({**_row("nli", 0.8), "by_language": {"en": 0.8, "xx": 0.2}}, _row("qa", 0.4))
    [table] = _tables(run)
    assert table.rows[0][1][0].value == pytest.approx(0.6)
    assert [label for label, _ in table.rows] == ["mine", "mine ⁺"]
    assert table.rows[1][1] == tuple(Score(value=value, mark="⁺") for value in (0.45, 0.45, 0.5, 0.4))
    assert table.notes[-1].startswith("⁺ with languages that others added")
    assert table.notes[-1].endswith(": nli xx.")
    # An older run has no extended scores of categories.
    [suite] = run.results.suites
    content = suite.to_json()
    del content["extended"]["categories"], content["extended"]["languages"]
    run.results = run.results.changed(suites=[SuiteScore.model_validate(content)])
    [table] = _tables(run)
    overall = pytest.approx(0.45)
    assert [score.value for score in table.rows[1][1]] == [overall, overall, None, None]
    assert table.notes[-1].endswith("published scores.")


# Published scores next to the columns of tasks -----------------------------------------------------------


def test_published_rows_stand_in_columns_of_their_protocol(summary: Summary) -> None:
    rows = {label: dict(zip(summary.columns, scores, strict=True)) for label, scores in summary.means}
    published = rows["published mBERT"]
    by_name = {(column.task, column.protocol, column.metric): score for column, score in published.items()}
    table = open_session().catalog.published("xtreme_r_mbert").languages["xnli"]["accuracy"]
    [column] = [own for own in summary.columns if (own.task, own.protocol) == ("xnli", "zero_shot_transfer")]
    place = summary.columns.index(column)
    rows_of_languages = [row for part in summary.sections for row in part.rows]
    codes = [code for code, _, scores in rows_of_languages if scores[place].value is not None]
    assert 0 < len(codes) < len(table)
    score = by_name["xnli", "zero_shot_transfer", "accuracy"]
    assert score.value == pytest.approx(fmean(table[code] for code in codes) / 100)
    assert score.mark == ""
    assert by_name["udpos", "zero_shot_transfer", "chunk_f1"].mark == "~"  # Table 17 could not be read
    assert by_name["mewslix", "zero_shot_transfer", "map_at_20"].mark == "°"
    assert by_name["lareqa", "zero_shot_transfer", "map_at_20"].mark == ""
    frozen = [score for (_, protocol, _), score in by_name.items() if protocol == "frozen"]
    assert frozen
    assert set(frozen) == {Score()}
    assert {"published mBERT, tr-train", "published mT5-XXL, tr-train+"} <= set(rows)
    assert any(note.startswith("° mBERT,") and " mewslix: " in note for note in summary.notes)
    sources = [note for note in summary.notes if note.startswith("published ") and "XLM-R Large" in note]
    assert any(": Ruder et al. 2021, Table 4" in note for note in sources)


def test_systems_of_which_the_same_is_said_share_a_remark() -> None:
    item = {"source": "a paper.", "recipe": "r", "release": "d", "comparable": {"xnli": "why"}, "label": "A"}
    found = [remark.text for remark in published_remarks([item, {**item, "label": "B"}])]
    assert found == ["published A, B: a paper. Recipe: r. Data: d.", "° A, B, xnli: why"]


def test_few_items_say_what_they_cannot_separate() -> None:
    """Wilson's interval of 7 of 14 is 26.8 to 73.2, and two such shares differ by chance by 37 points."""
    text = few_items("include", {"es": 55, "de": 14})
    assert "de 14, es 55" in text
    assert "27 to 73" in text
    assert "less than 37 points apart" in text
    assert "less than 4 points apart" in few_items("mgsm", {"en": 1400})


def test_published_rows_show_no_view_and_no_system_without_scores(session: Session) -> None:
    documents: list[Mapping[str, Any]] = list(
        published_documents(session.catalog, [SuiteSummary(suite="xtreme_r")])
    )
    assert len(documents) == 7
    place = Place(task="xnli", protocol="translate_train", metric="accuracy")
    rows = _rows(published_rows(documents, [place]))
    own = {
        item["label"]: item["scores"]["xnli"]["accuracy"] / 100
        for item in documents
        if item["protocol"] == "translate_train"
    }
    assert rows["published mBERT"] == [own["mBERT"]]
    assert rows["published mBERT, zero-shot"] == [pytest.approx(0.665)]
    assert rows["published Human"] == [pytest.approx(0.928)]
    assert own["mBERT"] != pytest.approx(0.665)  # Table 4 without translated data
    assert published_rows(documents, [replace(place, view="variant=v")]) == []
    assert published_rows(documents, [Place(task="udpos_raw", protocol="frozen", metric="span_f1")]) == []


ITEM: Mapping[str, Any] = {
    **PUBLISHED,
    "source": "A paper, Table 1",
    "scores": {"nli": {"acc": 50.0}},
    "languages": {"nli": {"acc": {"en": 90.0, "de": 60.0, "sw": 30.0}}},
}
NLI = Place(task="nli", protocol="zero_shot_transfer", metric="acc")


@given(st.sets(st.sampled_from(["en", "de", "sw", "zz"])))
def test_a_published_mean_is_over_the_same_languages_or_marked(codes: set[str]) -> None:
    place = replace(NLI, languages=frozenset(codes), published=frozenset(["en", "de", "sw", "zz", "xx"]))
    score = published_score(ITEM, place)
    table = ITEM["languages"]["nli"]["acc"]
    if codes and codes < set(table):
        assert score.value == pytest.approx(fmean(table[code] for code in codes) / 100)
        assert score.mark == ""
    else:
        assert score == Score(value=0.5, mark="~" if codes - set(table) else "")
    if not codes & set(table):  # another benchmark of the task's format
        assert published_score(ITEM, replace(place, published=frozenset(["ay", "zz"]))) == Score()
    assert published_score({**ITEM, "languages": {}}, place) == Score(value=0.5, mark="~" if codes else "")


VIEWS = st.dictionaries(st.sampled_from(["variant", "train_variant"]), st.sampled_from("ab"))


@given(VIEWS, VIEWS, st.sampled_from(["", "translator=nllb", "train_translator=g translator=n"]))
def test_a_published_score_is_shown_under_its_conditions_for_any_translator(
    printed: dict[str, str], asked: dict[str, str], translators: str
) -> None:
    view = " ".join(filter(None, [*(f"{name}={value}" for name, value in asked.items()), translators]))
    score = published_score({**ITEM, "views": {"nli": printed}}, replace(NLI, view=view))
    assert (score.value is not None) == (printed == asked)


def test_systems_of_one_label_fill_one_row_and_two_sources_two() -> None:
    places = [NLI, replace(NLI, view="translator=x variant=tt")]
    translated = {**ITEM, "views": {"nli": {"variant": "tt"}}, "scores": {"nli": {"acc": 40.0}}}
    other = {**ITEM, "source": "Another paper, Table 9", "scores": {"nli": {"acc": 70.0}}}
    assert _rows(published_rows([ITEM, translated, other], places)) == {
        "published X": [0.5, 0.4],
        "published X, Another paper": [0.7, None],
    }


def test_the_gap_to_humans_is_that_of_the_published_scores(summary: Summary) -> None:
    rows = _rows(summary.means)
    human = rows["published Human"]
    shown = [
        (column.task, gap, person, mean)
        for column, gap, person, mean in zip(
            summary.columns, rows["gap to human"], human, rows["mean"], strict=True
        )
        if gap is not None
    ]
    # Of the tasks that people were scored on, the sample has every published language of one.
    assert {task for task, *_ in shown} == {"mlqa"}
    assert all(gap == pytest.approx((person or 0.0) - (mean or 0.0)) for _, gap, person, mean in shown)


# Means by family and script -----------------------------------------------------------------------------


def test_families_with_several_languages_have_a_mean(summary: Summary) -> None:
    for section in summary.sections:
        for index in range(len(summary.columns)):
            values = [row[2][index].value for row in section.rows]
            known = [value for value in values if value is not None]
            mean = section.means[index].value
            assert mean == (pytest.approx(fmean(known)) if len(known) > 1 else None)


def test_scripts_have_the_means_of_their_languages(runs: list[Run], summary: Summary) -> None:
    index = next(index for index, column in enumerate(summary.columns) if column.task == "xnli")
    cells = [cell for cell in runs[0].cells if cell.task == "xnli" and cell.status == "ok"]
    families = runs[0].manifest.tasks["xnli"].languages
    scripts: dict[str, list[float]] = {}
    for cell in cells:
        scripts.setdefault(families[cell.language][1], []).append(cell.metrics["accuracy"].value)
    shown = {
        label: scores[index].value for label, scores in summary.scripts if scores[index].value is not None
    }
    assert shown == {name: pytest.approx(fmean(values)) for name, values in scripts.items()}
    assert len(shown) > 3


# The command --------------------------------------------------------------------------------------------

Cli = Callable[..., tuple[int, str, str]]


def test_report_takes_published_scores_that_the_run_was_made_without(cli: Cli) -> None:
    given = ("--tasks", "xtreme_r", "--model", "baseline:random", "--data", "sample", "--recipe", "quick")
    status, _, err = cli("eval", *given, "--limit", 2, "--train-limit", 4, "--out", "run")
    assert status == 0, err
    _, without, _ = cli("report", "run")
    assert "Suite xtreme_r" in without
    assert "published" not in without.replace("not comparable with published", "")
    _, shown, _ = cli("report", "run", "--with-published")
    assert "published XLM-R" in shown
    _, markdown, _ = cli("report", "run", "--with-published", "--format", "markdown")
    assert "published XLM\\-R" in markdown or "published XLM-R" in markdown
    assert Run(Path("run")).manifest.published == []
