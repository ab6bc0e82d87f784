"""Which published release a test set is, known by its number of items."""

from __future__ import annotations

import json
from typing import Any

import pytest

from harness.reporting.overview.summary import summarise
from harness.running.session import Session
from harness.storage.run_folder import Run

from .conftest import DataFolder, RunTasks


def _squad(count: int) -> str:
    answer = {"text": "here", "answer_start": 3}
    asked = [{"id": f"q{number}", "question": "Where?", "answers": [answer]} for number in range(count)]
    paragraphs = [{"context": "It here is.", "qas": asked}]
    return json.dumps({"data": [{"title": "t", "paragraphs": paragraphs}]})


def _mlqa(split: str, **counts: int) -> dict[str, str | bytes]:
    return {
        "squad/train-v1.1.json": _squad(3),
        **{
            f"mlqa/MLQA_V1/{split}/{split}-context-{code}-question-{code}.json": _squad(count)
            for code, count in counts.items()
        },
    }


def _releases(run: Run) -> dict[str, Any]:
    return {cell.language: cell.release for cell in run.cells if cell.status == "ok"}


def test_the_dev_set_of_mlqa_used_as_test_is_recognised(run: RunTasks, data_folder: DataFolder) -> None:
    folder = data_folder(_mlqa("dev", es=500, zh=504))
    finished = run("mlqa", "baseline:majority", data=folder, limit=2)
    known = {"name": "MLQA V1 dev", "note": ""}
    assert _releases(finished) == {"es": known, "zh": known}
    assert [(cell.n, cell.size) for cell in finished.cells if cell.status == "ok"] == [
        (2, 500),
        (2, 504),
    ]
    assert not any("MLQA V1" in note for note in summarise([finished]).notes)
    assert any("mlqa:es, mlqa:zh" in note for note in summarise([finished]).notes)


def test_a_size_that_no_release_has_is_reported_for_all_languages_at_once(
    run: RunTasks, data_folder: DataFolder
) -> None:
    folder = data_folder(_mlqa("test", es=4, zh=504, hi=9))  # 504 is the size of a dev set
    finished = run("mlqa", "baseline:majority", data=folder)
    note = "the number of items is that of no known release (MLQA V1 test)"
    assert _releases(finished)["es"] == {"name": None, "note": note}
    assert any(
        set(own.split(": ")[0].split()) == {"mlqa", "es", "zh", "hi"}
        for own in summarise([finished]).notes
        if note in own
    )


def test_the_sample_is_no_release(run: RunTasks) -> None:
    finished = run(["mlqa:es", "xcopa:et", "mewslix:en"], "baseline:char-ngram")
    assert [cell.release for cell in finished.cells if cell.status == "ok"] == [None] * len(finished.cells)
    assert not any("release" in note for note in summarise([finished]).notes)


def test_a_task_without_releases_reports_none(run: RunTasks, data_folder: DataFolder) -> None:
    names = ("squad/train-v1.1.json", "mlqa/MLQA_V1/test/test-context-de-question-es.json")
    finished = run(
        "mlqa_cross:de", "baseline:majority", data=data_folder({name: _squad(3) for name in names})
    )
    assert "releases" not in finished.manifest.specs["mlqa_cross"]
    assert _releases(finished) == {"de": None}


@pytest.mark.parametrize(
    ("task", "language", "size", "name"),
    [
        ("mlqa", "en", 11590, "MLQA V1 test"),
        ("mlqa", "en", 1148, None),
        ("pawsx", "de", 2000, "PAWS-X test"),
        ("mlqa", "de", 11590, None),
        ("xcopa", "qu", 500, "XCOPA test"),
        ("xcopa", "qu", 100, None),
        ("lareqa", "th", 1190, "XQuAD-R v1"),
        ("mewslix", "ro", 672, "Mewsli-X 20220518_6"),
        ("mewslix", "ro", 1482, "Mewsli-X of the paper"),
        ("mewslix", "ro", 1501, None),
    ],
)
def test_sizes_of_the_published_sets(
    session: Session, task: str, language: str, size: int, name: str | None
) -> None:
    assert session.catalog.task(task).spec.release_of(language, size) == name


def test_a_dev_file_of_the_size_of_the_test_file_is_no_test_release(
    run: RunTasks, data_folder: DataFolder
) -> None:
    finished = run("mlqa", "baseline:majority", data=data_folder(_mlqa("dev", de=4517)), limit=2)
    note = "the number of items is that of no known release (MLQA V1 dev)"
    assert _releases(finished) == {"de": {"name": None, "note": note}}
    finished = run("mlqa", "baseline:majority", data=data_folder(_mlqa("test", de=4517)), limit=2)
    assert _releases(finished) == {"de": {"name": "MLQA V1 test", "note": ""}}


def test_a_release_is_of_one_split(session: Session) -> None:
    spec = session.catalog.task("mlqa").spec
    assert spec.release_of("en", 1148, "validation") == "MLQA V1 dev"
    assert spec.release_of("en", 11590, "validation") is None


def test_the_mentions_of_each_published_mewsli_x_set_add_up(session: Session) -> None:
    releases = session.catalog.task("mewslix").spec.releases
    sums = {
        name: sum(release.count(code) or 0 for code in session.catalog.task("mewslix").spec.languages)
        for name, release in releases.items()
    }
    assert sums["Mewsli-X of the paper"] == 15_000
    assert "not comparable" in releases["Mewsli-X 20220518_6"].note
