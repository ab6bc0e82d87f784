"""Axes: every language crossed with a second condition, from the plan to the matrix; and unlabelled variants."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from harness.errors import UsageError
from harness.reporting.documents import markdown_text, terminal_text
from harness.reporting.overview.summary import summarise
from harness_xtreme_r.submission.run import export_run

from .conftest import Cli, DataFolder, MakePlan, RunTasks

MLQA = ("en", "es", "de", "ar", "hi", "vi", "zh")
SAMPLE = {("de", "en"), ("en", "de"), ("en", "hi"), ("es", "zh"), ("hi", "en"), ("zh", "es")}
"""Pairs of context and question language of which the sample has items."""


def _squad(context: str, question: str, count: int = 2) -> str:
    text = f"{context} is here. The answer is {question}."
    answer = {"text": "here", "answer_start": text.index("here")}
    asked = [
        {"id": f"q{number}", "question": f"Where {number}?", "answers": [answer]} for number in range(count)
    ]
    paragraph = {"context": text, "qas": asked}
    return json.dumps({"data": [{"title": "t", "paragraphs": [paragraph]}]})


@pytest.fixture
def released(data_folder: DataFolder) -> Path:
    """All 49 files of MLQA's test set in the released layout, tiny, and a training set."""
    files = {
        f"mlqa/MLQA_V1/test/test-context-{code}-question-{other}.json": _squad(code, other)
        for code in MLQA
        for other in MLQA
    }
    return data_folder(
        {**files, "squad/train-v1.1.json": _squad("en", "en"), "squad/dev-v1.1.json": _squad("en", "en")}
    )


def test_mlqa_cross_has_a_cell_for_each_of_its_49_pairs(make_plan: MakePlan, released: Path) -> None:
    plan = make_plan("mlqa_cross", data=released)
    assert plan.skipped == ()
    assert {(cell.language.code, cell.view["question_language"]) for cell in plan.cells} == {
        (code, other) for code in MLQA for other in MLQA
    }
    assert (len(plan.cells), len({cell.digest for cell in plan.cells}), len(plan.fits)) == (49, 49, 1)
    for cell in plan.cells:
        [path] = cell.test.files.paths
        other = cell.view["question_language"]
        assert path.name == f"test-context-{cell.language.code}-question-{other}.json"


def test_the_dev_file_of_a_pair_replaces_its_own_test_file(make_plan: MakePlan, released: Path) -> None:
    (released / "mlqa/MLQA_V1/test/test-context-de-question-vi.json").unlink()
    plan = make_plan("mlqa_cross:de", data=released)
    assert (len(plan.cells), [skip.view for skip in plan.skipped]) == (6, [{"question_language": "vi"}])
    dev = released / "mlqa/MLQA_V1/dev/dev-context-de-question-vi.json"
    dev.parent.mkdir()
    dev.write_text(_squad("de", "vi"), encoding="utf-8")
    plan = make_plan("mlqa_cross:de", data=released)
    [cell] = [cell for cell in plan.cells if cell.test.files.stands_in]
    assert (cell.view, cell.test.files.paths) == ({"question_language": "vi"}, (dev,))


def test_pairs_without_files_are_skipped_with_their_view(make_plan: MakePlan) -> None:
    plan = make_plan("mlqa_cross")
    assert {(cell.language.code, cell.view["question_language"]) for cell in plan.cells} == SAMPLE
    assert len({(skip.language, skip.view["question_language"]) for skip in plan.skipped}) == 43


def test_what_cannot_be_fitted_keeps_its_view_too(make_plan: MakePlan, released: Path) -> None:
    plan = make_plan("mlqa_cross:de", data=released, protocols=("in_language",))
    assert plan.cells == ()
    assert {skip.reason for skip in plan.skipped} == {
        "The training set 'squad' has no training split in 'de'. It has: en."
    }
    assert [skip.view for skip in plan.skipped] == [{"question_language": code} for code in MLQA]


@pytest.mark.parametrize("seeds", [(42,), (1, 2)])
def test_the_scores_of_the_pairs_are_a_matrix_and_no_columns(run: RunTasks, seeds: tuple[int, ...]) -> None:
    finished = run(["mlqa_cross", "xnli:de"], seeds=seeds)
    summary = summarise([finished])
    assert {column.task for column in summary.columns} == {"xnli"}
    titles = [matrix.title for matrix in summary.matrices]
    assert titles == [
        "mlqa_cross F1 (zero_shot_transfer), 6 of 49 pairs",
        "mlqa_cross EM (zero_shot_transfer), 6 of 49 pairs",
    ]
    values: dict[tuple[str, str], list[float]] = {}
    for cell in finished.cells:
        if cell.task == "mlqa_cross" and cell.status == "ok":
            field = (cell.language, cell.view["question_language"])
            values.setdefault(field, []).append(cell.metrics["mlqa_f1"].value)
    assert set(values) == SAMPLE
    matrix = summary.matrices[0]
    shown = {
        (row, column): score.value
        for row, scores in matrix.rows
        for column, score in zip(matrix.columns, scores, strict=True)
        if score.value is not None
    }
    assert shown == {field: pytest.approx(sum(found) / len(seeds)) for field, found in values.items()}
    everywhere = sum(shown.values()) / len(shown)
    assert matrix.notes == (f"Mean of the pairs: across languages {everywhere * 100:.1f}.",)
    assert matrix.corner == "language \\ question language"
    assert [row for row, _ in matrix.rows] == [code for code in matrix.columns if code in dict(matrix.rows)]
    for text in (terminal_text([finished]), markdown_text([finished])):
        assert "F1 (zero" in text
        assert "6 of 49 pairs" in text
        assert "language=" not in text.split("Consistency between languages")[0]


def test_a_pair_tested_on_its_dev_file_is_marked(run: RunTasks, released: Path) -> None:
    name = "context-de-question-vi.json"
    (released / f"mlqa/MLQA_V1/test/test-{name}").unlink()
    (released / "mlqa/MLQA_V1/dev").mkdir()
    (released / f"mlqa/MLQA_V1/dev/dev-{name}").write_text(_squad("de", "vi"), encoding="utf-8")
    finished = run("mlqa_cross:de", data=released)
    matrix = summarise([finished]).matrices[0]
    [(row, scores)] = matrix.rows
    assert (row, len(matrix.columns)) == ("de", 7)
    assert {code for code, score in zip(matrix.columns, scores, strict=True) if score.mark == "*"} == {"vi"}
    assert matrix.notes[0].startswith("Mean of the pairs: same language ")


def test_a_run_of_nothing_but_pairs_can_be_shown(run: RunTasks) -> None:
    finished = run("mlqa_cross:en+zh")
    summary = summarise([finished])
    assert summary.columns == ()
    assert "3 of 14 pairs" in terminal_text([finished])
    assert "3 of 14 pairs" in markdown_text([finished])


# An unlabelled variant ----------------------------------------------------------------------------------

TAGGED = "Anna\tB-PER\nlives\tO\nin\tO\nRome\tB-LOC\n\nHe\tO\nsings\tO\n\n"


@pytest.fixture
def wikiann(data_folder: DataFolder) -> Path:
    tokens = "".join(line.partition("\t")[0] + "\n" for line in TAGGED.splitlines())
    return data_folder(
        {
            **{
                f"panx/{split}-{code}.tsv": TAGGED
                for split in ("train", "dev", "test")
                for code in ("en", "de")
            },
            **{f"panx/unlabelled-test/test-{code}.tsv": tokens for code in ("en", "de")},
        }
    )


def test_the_unlabelled_test_set_is_predicted_exported_and_shown_as_unscored(
    run: RunTasks, wikiann: Path, cli: Cli, tmp_path: Path
) -> None:
    finished = run("wikiann:en+de", data=wikiann, variants=("unlabelled_test",), limit=None, train_limit=None)
    for cell in finished.cells:
        assert (cell.status, cell.n, cell.metrics) == ("ok", 2, {})
        assert cell.view == {"variant": "unlabelled_test"}
        assert {record.reference for record in finished.records(cell)} == {None}
        assert [len(record.prediction) for record in finished.records(cell)] == [4, 2]
    assert finished.results.tasks == []
    text = terminal_text([finished], width=120)
    assert "2 cells without a score, since the test file has no labels: wikiann" in text
    note = "predicted but not scored, since the test file has no labels: wikiann:de, wikiann:en"
    assert note in summarise([finished]).notes
    status, out, err = cli("submission", "export", finished.path, tmp_path / "export")
    assert status == 0, out + err
    for code in ("en", "de"):
        lines = (tmp_path / f"export/panx/test-{code}.tsv").read_text(encoding="utf-8").split("\n\n")
        assert [len(line.split()) for line in lines if line.strip()] == [4, 2]


def test_the_labelled_and_the_unlabelled_test_set_are_both_run(
    run: RunTasks, wikiann: Path, tmp_path: Path
) -> None:
    finished = run("wikiann:de", data=wikiann, variants=("original", "unlabelled_test"))
    assert [(cell.view, bool(cell.metrics)) for cell in finished.cells] == [
        ({}, True),
        ({"variant": "unlabelled_test"}, False),
    ]
    [row, *_] = finished.results.tasks
    assert (row.view, row.missing) == ({}, [])
    columns = summarise([finished]).columns
    assert [column.view for column in columns] == ["", "variant=unlabelled_test"]
    original, unlabelled = (
        {record.id: (record.inputs_digest, record.prediction) for record in finished.records(cell)}
        for cell in finished.cells
    )
    assert original == unlabelled
    with pytest.raises(UsageError) as caught:
        export_run(finished.path, tmp_path / "export")
    assert str(caught.value).startswith(
        "Two cells of the run would write 'test-de.tsv' of 'panx' (zero_shot_transfer, seed 42 and "
        "zero_shot_transfer, seed 42, variant=unlabelled_test)."
    )
    assert not (tmp_path / "export").exists()
