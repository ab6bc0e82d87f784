"""The candidates of a retrieval task in a run: read and embedded once, whole whatever the limit, and reported."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import harness.kinds.retrieval
import harness.running.cell_run
import harness_baseline.model
from harness.analysis.rescoring import rescore
from harness.registry.registry import Registry
from harness.reporting.overview.summary import summarise
from harness.storage.run_folder import Run

from .conftest import DataFolder, RunTasks

Calls = list[tuple[int, str, int]]

SENTENCES = 24
"""Of every language of the sample."""


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> Calls:
    """What was embedded: (model, side, number of texts)."""
    found: Calls = []
    original = harness_baseline.model.Baseline.embed

    def counted(self: Any, texts: Sequence[str], *, side: Any, options: Any = None) -> Any:
        found.append((id(self), side, len(texts)))
        return original(self, texts, side=side, options=options)

    monkeypatch.setattr(harness_baseline.model.Baseline, "embed", counted)
    return found


def _records(run: Run) -> dict[tuple[str | None, str], dict[str, Any]]:
    return {
        (cell.protocol, cell.language): {record.id: record for record in run.records(cell)}
        for cell in run.cells
        if cell.status == "ok"
    }


def test_the_pool_of_all_languages_is_embedded_once_a_model(run: RunTasks, calls: Calls) -> None:
    finished = run("lareqa:en+de+zh", protocols=("zero_shot_transfer", "frozen"), limit=4)
    assert [cell.status for cell in finished.cells] == ["ok"] * 6
    whole = 8 * SENTENCES  # languages that are not tested add their sentences too
    assert {(cell.pool or {})["size"] for cell in finished.cells} == {whole}
    models = {model for model, side, _ in calls if side == "passage"}
    assert len(models) == 2
    for model in models:
        embedded = [size for own, side, size in calls if own == model and side == "passage"]
        assert sum(embedded) == whole
    assert sum(size for _, side, size in calls if side == "query") == 4 * 6


def test_a_limit_leaves_the_pool_whole_and_what_it_keeps_unchanged(run: RunTasks) -> None:
    whole, limited = run("lareqa:en+de", limit=None), run("lareqa:en+de", limit=5)
    all_records = _records(whole)
    for key, records in _records(limited).items():
        assert len(records) == 5
        assert records == {name: all_records[key][name] for name in records}
    assert [cell.pool for cell in limited.cells] == [cell.pool for cell in whole.cells]


def test_chunks_change_nothing(run: RunTasks, calls: Calls, monkeypatch: pytest.MonkeyPatch) -> None:
    before = run("lareqa:en+de", limit=None)
    calls.clear()
    monkeypatch.setattr(harness.running.cell_run, "CHUNK", 5)
    monkeypatch.setattr(harness.kinds.retrieval, "EMBED_CHUNK", 50)
    after = run("lareqa:en+de", limit=None)
    assert sum(size for _, side, size in calls if side == "passage") == 192
    assert [size for _, side, size in calls if side == "query"] == [5, 5, 5, 3] * 2
    assert _records(after) == _records(before)
    assert after.results.tasks == before.results.tasks


def test_ranks_after_the_cut_off_are_kept_and_rescoring_gives_the_same(
    run: RunTasks, registry: Registry
) -> None:
    finished = run(["lareqa:en+de", "mewslix:en"], limit=6)
    for (_, _), records in _records(finished).items():
        for record in records.values():
            others = len(record.reference["targets"]) - 1
            assert len(record.prediction["candidates"]) == 20
            assert len(record.prediction.get("further", [])) == others
            assert (
                len({*record.prediction["candidates"], *record.prediction.get("further", [])}) == 20 + others
            )
    before = finished.results
    spoiled = before.to_json()
    for cell in spoiled["cells"]:
        for score in cell["metrics"].values():
            score["value"], score["groups"] = 0.123, {}
    (finished.path / "results.json").write_text(json.dumps(spoiled), encoding="utf-8")
    rescore(finished.path, registry)
    assert Run(finished.path).results == before


def test_equal_sentences_are_reported_as_ties(run: RunTasks, monkeypatch: pytest.MonkeyPatch) -> None:
    def alike(self: Any, texts: Sequence[str], **_: Any) -> Any:
        return np.tile(np.asarray([[0.6, 0.8]], dtype=np.float32), (len(texts), 1))

    monkeypatch.setattr(harness_baseline.model.Baseline, "embed", alike)
    finished = run("lareqa:en+de", protocols=("frozen",), limit=3)
    assert [cell.tied for cell in finished.cells] == [3, 3]
    assert "lareqa: in 6 rankings a tie crosses the cut-off" in summarise([finished]).notes
    for records in _records(finished).values():
        rankings = {tuple(record.prediction["candidates"]) for record in records.values()}
        assert rankings == {next(iter(rankings))}  # the order of the pool


def _released(folder: DataFolder, *codes: str) -> Path:
    """Write LAReQA files of two short contexts in the released layout."""
    files: dict[str, str | bytes] = {}
    for code in codes:
        paragraphs = []
        for number in range(2):
            sentences = [f"{code} {word} {number}." for word in ("zero", "one", "two")]
            context = " ".join(sentences)
            starts = [context.index(sentence) for sentence in sentences]
            breaks = [[start, start + len(text)] for start, text in zip(starts, sentences, strict=True)]
            answer = {"text": "one", "answer_start": context.index("one")}
            question = {"id": f"q{number}", "question": f"{code} one {number}?", "answers": [answer]}
            paragraph = {"context": context, "sentence_breaks": breaks, "sentences": sentences}
            paragraphs.append({**paragraph, "qas": [question]})
        document = {"data": [{"title": "t", "paragraphs": paragraphs}]}
        files[f"lareqa/xquad-r/{code}.json"] = json.dumps(document)
    return folder(files)


def test_languages_missing_in_the_pool_are_reported(run: RunTasks, data_folder: DataFolder) -> None:
    folder = _released(data_folder, "en", "de")
    finished = run("lareqa", data=folder, protocols=("frozen",), limit=None)
    done = [cell for cell in finished.cells if cell.status == "ok"]
    assert [cell.language for cell in done] == ["de", "en"]
    for cell in done:
        assert (cell.pool or {})["languages"] == ["de", "en"]
        assert (cell.pool or {})["missing"] == ["ar", "el", "es", "hi", "ru", "th", "tr", "vi", "zh"]
        assert (cell.release or {})["name"] is None
    [note] = [note for note in finished.results.notes if note.startswith("lareqa: ")]
    assert "ar el es hi ru th tr vi zh" in note
    assert note in summarise([finished]).notes
    for records in _records(finished).values():
        assert {tuple(record.reference["languages"]) for record in records.values()} == {("de", "en")}


def _linking(folder: DataFolder, *, gold: str | None) -> Path:
    mention = "The { City } grew."
    queries = {"id": "m1", "query": mention, "document": "d1"}
    if gold is not None:
        queries["target"] = gold
    entities = [{"id": f"Q{number}", "text": f"the city {number}", "language": "en"} for number in range(30)]
    return folder(
        {
            "pool/mentions.en.jsonl": json.dumps(queries) + "\n",
            "pool/entities.jsonl": "".join(json.dumps(entity) + "\n" for entity in entities),
        }
    )


SPEC = """\
task: linking
kind: ranked_retrieval
version: 1
description: Mentions and entities of a test.
citation: someone2020
license: cc0-1.0
metrics: [map_at_20, mrr_at_20, one_target_map_at_20]
cluster: document
candidates: {local: pool/entities.jsonl, reader: jsonl}
splits:
  test: {local: "pool/mentions.{language}.jsonl", reader: jsonl}
languages: {en: {provenance: native}, de: {provenance: native}}
"""


@pytest.fixture
def linking(run: RunTasks, data_folder: DataFolder, tmp_path: Path) -> Callable[[str | None], Run]:
    (tmp_path / "linking.yaml").write_text(SPEC, encoding="utf-8")

    def evaluated(gold: str | None) -> Run:
        folder = _linking(data_folder, gold=gold)
        given = {"data": folder, "protocols": ("frozen",), "tasks_from": (tmp_path / "linking.yaml",)}
        return run("linking:en", **given)

    return evaluated


def test_mentions_without_gold_are_predicted_and_not_scored(linking: Callable[[str | None], Run]) -> None:
    finished = linking(None)
    [cell] = finished.cells
    assert (cell.status, cell.n, cell.metrics) == ("ok", 1, {})
    assert cell.reason == "the test file has no labels: predicted, not scored"
    [record] = finished.records(cell)
    assert (record.reference, len(record.prediction["candidates"])) == (None, 20)
    assert finished.results.tasks == []


def test_a_gold_missing_in_the_pool_fails_the_cell_with_its_reason(
    linking: Callable[[str | None], Run],
) -> None:
    [cell] = linking("Q99").cells
    assert (cell.status, cell.metrics) == ("failed", {})
    assert cell.reason.startswith("The gold 'Q99' of query 'm1' of 'linking' is not among the 30 candidates")
    [cell] = linking("Q3").cells
    assert (cell.status, set(cell.metrics)) == (
        "ok",
        {"map_at_20", "mrr_at_20", "one_target_map_at_20"},
    )
    assert cell.metrics["one_target_map_at_20"].value == cell.metrics["map_at_20"].value
