"""Whole runs of a model that is asked: what it is asked, what is stored, and what is counted."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from harness.cli.report import app
from harness.errors import CapabilityError
from harness.models.requests import Turn
from harness.prompts.prompter import item_seed
from harness.reporting.documents import terminal_text
from harness.reporting.overview.provenance import banners
from harness.reporting.overview.run_remarks import run_remarks, unreadable_answers, unreadable_line
from harness.reporting.overview.summary import read_material
from harness.storage.results import CellResult
from harness.storage.run_folder import Run

from .conftest import RunTasks

Calls = Callable[[], list[Any]]


@pytest.fixture
def calls(take_calls: Calls) -> Calls:
    """A function that returns the requests to the models of ``asks`` since its last call."""
    return lambda: [request for _, request in take_calls()]


def _contexts(asked: list[Any]) -> set[str]:
    return {request.context for request in asked}


def _cell(run: Run) -> CellResult:
    [cell] = run.cells
    assert cell.status == "ok", cell.reason
    return cell


def test_ranked_answers_are_stored_with_all_that_other_views_need(run: RunTasks, calls: Calls) -> None:
    finished = run("xnli:sw", "asks:ranks", prompt="letters")
    cell = _cell(finished)
    assert (cell.method, cell.protocol, cell.view) == ("rank", "prompted", {"prompt": "letters"})
    asked = calls()
    assert len(asked) == 15
    for record in finished.records(cell):
        assert record.prediction == {
            "label": "contradiction",
            "scores": [-1.0, -1.0, -1.0],
            "tokens": [1, 1, 1],
            "characters": [2, 2, 2],
            "bytes": [2, 2, 2],
            "greedy": [False] * 3,
        }
        assert record.flags == {"truncated": False, "unparsed": False}
    golds = [record.reference for record in finished.records(cell)]
    assert cell.metrics["accuracy"].value == pytest.approx(golds.count("contradiction") / 5)
    prompt = dict(cell.prompt or {})
    assert len(prompt["digest"]) == 16
    expected = {"name": "xnli/letters", "words": "sw", "shots": 0, "shots_data": None}
    assert {name: prompt[name] for name in expected} == expected


@pytest.mark.parametrize(
    ("says", "label", "tokens"), [(" True", "entailment", 10), (" Who knows?", None, 15)]
)
def test_what_is_written_is_stored_read_and_counted(
    run: RunTasks, calls: Calls, says: str, label: str | None, tokens: int
) -> None:
    finished = run("xnli:en", "asks:writes", prompt="mega", options={"says": says})
    cell = _cell(finished)
    is_unread = label is None
    assert (cell.n, cell.unparsed, cell.truncated, cell.tokens) == (5, 5 * is_unread, 0, tokens)
    for record in finished.records(cell):
        assert record.prediction == {"label": label, "raw": says}
        assert record.flags["unparsed"] == is_unread
        assert not is_unread or record.scores == {"accuracy": 0.0}
    assert not is_unread or cell.metrics["accuracy"].value == 0.0
    for _, options in calls():
        assert (options.temperature, options.choices, options.stop) == (0.0, None, ("\n",))


@pytest.mark.parametrize(("says", "unread"), [(" Who knows?", 5), (" True| Who knows?| False", None)])
def test_unreadable_answers_are_listed_and_lead_the_remarks(
    run: RunTasks, calls: Calls, says: str, unread: int | None
) -> None:
    finished = run("xnli:en", "asks:writes", prompt="mega", options={"says": says})
    answers = list(unreadable_answers(finished))
    cell = _cell(finished)
    assert len(answers) == cell.unparsed == (cell.unparsed if unread is None else unread) > 0
    assert {(answer["task"], answer["language"], answer["written"]) for answer in answers} == {
        ("xnli", "en", " Who knows?")
    }
    line = unreadable_line(finished)
    assert line.startswith(f"{cell.unparsed} of 5 answers unreadable")
    assert "'Who knows?'" in line
    heaviest = max(run_remarks(finished), key=lambda remark: remark.weight)
    assert heaviest.brief.startswith(line)
    [banner] = [own for own in banners(read_material([finished])) if own.title.startswith(line)]
    assert "--unreadable" in banner.text
    done = CliRunner().invoke(app, [str(finished.path), "--unreadable"])
    assert done.exit_code == 0
    assert done.stdout.count("Who knows?") == cell.unparsed


@pytest.mark.parametrize("task", ["udpos", "xquad", "wikiann_raw"])
def test_unreadable_answers_of_other_kinds_are_wrong_too(run: RunTasks, calls: Calls, task: str) -> None:
    says = " " if task == "xquad" else "PER: no one at all"
    cell = _cell(run(f"{task}:de", "asks:writes", options={"says": says}))
    assert cell.unparsed == cell.n == 5
    assert cell.metrics
    assert {metric.value for metric in cell.metrics.values()} == {0.0}


def test_cut_prompts_are_counted(run: RunTasks, calls: Calls) -> None:
    for ref in ("ranks", "writes"):
        cell = _cell(run("xnli:en", f"asks:{ref}", options={"cuts": "true"}))
        assert cell.truncated == 5


def test_every_item_is_generated_with_a_seed_of_its_own(run: RunTasks, calls: Calls) -> None:
    finished = run("udpos:de+hi", "asks:writes")
    seeds = [options.seed for _, options in calls()]
    assert len(set(seeds)) == 10
    expected = [
        item_seed(42, "udpos", cell.language, record.id)
        for cell in finished.cells
        for record in finished.records(cell)
    ]
    assert sorted(seeds) == sorted(expected)


def test_shots_are_the_same_for_any_limit_and_chunk(
    run: RunTasks, calls: Calls, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = {"shots": 3, "limit": None}
    run("udpos:de", "asks:writes", **settings)
    whole = [asked for asked, _ in calls()]
    monkeypatch.setattr("harness.running.cell_run.CHUNK", 2)
    run("udpos:de", "asks:writes", **settings)
    assert sorted(asked for asked, _ in calls()) == sorted(whole)
    run("udpos:de", "asks:writes", shots=3, limit=4)
    few = [asked for asked, _ in calls()]
    assert len(few) == 4
    assert set(few) < set(whole)


def test_parallel_items_have_the_same_shots_in_every_language(run: RunTasks, calls: Calls) -> None:
    """With words of one language, the prompts of two languages differ in nothing but the item."""
    run("xnli:de+sw", "asks:ranks", shots=2, instruction_language="en")
    contexts = list(dict.fromkeys(request.context for request in calls()))
    german, swahili = contexts[:5], contexts[5:]
    assert len(swahili) == 5
    # A model is asked the longest texts first, so that the items of a language come in any order.
    shots = [sorted(context.rsplit("\n\n", maxsplit=1)[0] for context in half) for half in (german, swahili)]
    assert shots[0] == shots[1]
    assert len(set(shots[0])) > 1


def test_other_seeds_draw_other_shots(run: RunTasks, calls: Calls) -> None:
    run("xnli:de", "asks:ranks", shots=2, seeds=(1,))
    first = _contexts(calls())
    run("xnli:de", "asks:ranks", shots=2, seeds=(2,))
    assert _contexts(calls()) != first


def test_no_tested_item_is_a_shot(run: RunTasks, calls: Calls) -> None:
    finished = run("udpos:en", "asks:writes", shots=4, limit=None)
    data = (_cell(finished).prompt or {})["shots_data"]
    assert (data["split"], data["stands_in"]) == ("train", False)
    prompts = [asked for asked, _ in calls()]
    items = [prompt.rsplit("\n\n", maxsplit=1)[1] for prompt in prompts]
    assert len(set(items)) == len(items)
    assert not any(item in other.rsplit("\n\n", maxsplit=1)[0] for item in items for other in prompts)


def test_shots_that_do_not_fit_are_dropped_and_counted(run: RunTasks, calls: Calls) -> None:
    run("xnli:de", "asks:ranks", shots=3)
    asked = {request.context for request in calls()}
    longest = max(len(context.split()) for context in asked)
    finished = run("xnli:de", "asks:ranks", shots=3, options={"context": longest - 20})
    cell = _cell(finished)
    kept = {request.context for request in calls()}
    assert all(len(context.split()) <= longest - 20 for context in kept)
    dropped = sum(3 - context.count("\n\n") for context in kept)
    assert cell.dropped_shots == dropped > 0
    assert f"{dropped} shots did not fit and were dropped" in terminal_text([finished], width=100)
    assert cell.view == {"shots": "3"}


def test_a_conversation_has_roles_and_no_stop_string(run: RunTasks, calls: Calls) -> None:
    cell = _cell(run("udpos:de", "asks:both", shots=1, chat=True))
    assert (cell.method, cell.view) == ("generate", {"chat": "yes", "shots": "1"})
    for turns, options in calls():
        assert all(isinstance(turn, Turn) for turn in turns)
        assert [turn.role for turn in turns][-3:] == ["user", "assistant", "user"]
        assert options.stop == ()


def test_constraints_reach_the_model_only_where_they_are_asked_for(run: RunTasks, calls: Calls) -> None:
    run("xnli:en", "asks:writes", prompt="letters", constrained=True)
    assert {options.choices for _, options in calls()} == {("A", "B", "C")}
    run("xnli:en", "asks:writes", prompt="letters")
    assert {options.choices for _, options in calls()} == {None}


def test_missing_words_are_english_unless_the_user_forbids_it(run: RunTasks, calls: Calls) -> None:
    settings = {"instruction_language": "yo", "prompt": "default"}
    finished = run("xnli:en", "asks:ranks", **settings)
    assert (_cell(finished).prompt or {})["words"] == "en"
    assert "asked with English words" in terminal_text([finished], width=100)
    assert "English ones" not in terminal_text([run("xnli:sw", "asks:ranks")], width=100)
    with pytest.raises(CapabilityError, match="'yo'"):
        run("xnli:en", "asks:ranks", literals="fail", **settings)


def test_the_command_takes_the_same_options(cli: Callable[..., Any], calls: Calls) -> None:
    command = (
        *("eval", "--tasks", "xnli:sw", "--model", "asks:both", "--data", "sample", "--limit", "3"),
        *("--prompt", "letters", "--shots", "2", "--shots-from", "validation", "--shots-language", "source"),
        *("--instruction-language", "en", "--literals", "fail", "--chat", "--constrained"),
        *("-o", "says=B", "--output", "run"),
    )
    status, _, err = cli(*command)
    assert status == 0, err
    cell = _cell(Run(Path("run")))
    assert cell.view == {
        "chat": "yes",
        "constrained": "yes",
        "instruction": "en",
        "prompt": "letters",
        "shots": "2",
        "shots_from": "validation",
    }
    assert (cell.method, cell.unparsed) == ("generate", 0)
    assert (cell.prompt or {})["shots_data"]["split"] == "validation"
    asked = calls()
    assert len(asked) == 3
    for turns, options in asked:
        assert [turn.role for turn in turns if turn.role != "system"] == ["user", "assistant"] * 2 + ["user"]
        assert options.choices == ("A", "B", "C")


SENTIMENT = """task: senti
kind: sequence_classification
version: 1
description: Made-up sentences.
citation: none
license: cc0-1.0
inputs: [text]
labels: [bad, good]
metrics: [accuracy]
provenance: native
protocols: [prompted]
parallel: PARALLEL
transfer: {source: en, stages: [senti], recipe: xtreme_r}
splits:
  train: {local: "train-{language}.tsv", columns: [text, label]}
  test: {local: "test-{language}.tsv", columns: [text, label]}
languages: {en, de}
---
prompt: senti/letters
tasks: [senti]
kind: sequence_classification
formulation: hybrid
description: It shows the choices.
source: this project
item: "{word} {text}\\n{choices}\\nAnswer:"
choice: " {label}"
literals:
  mul: {provenance: native, words: {word: "Sentence:", label.good: good, label.bad: bad}}
"""
ENGLISH = "I like it\tgood\nI hate it\tbad\nFine day\tgood\nAwful day\tbad\n"


@pytest.mark.parametrize("parallel", ["true", "false"])
def test_no_shot_has_the_text_of_the_tested_item_or_of_its_translation(
    run: RunTasks, calls: Calls, data_folder: Callable[..., Path], tmp_path: Path, parallel: str
) -> None:
    (tmp_path / "senti.yaml").write_text(SENTIMENT.replace("PARALLEL", parallel), encoding="utf-8")
    german = "Ich mag es\tgood\nIch hasse es\tbad\nSch\u00f6ner Tag\tgood\n"
    data = data_folder(
        {"train-en.tsv": ENGLISH, "test-en.tsv": ENGLISH.replace("I like", " i  LIKE"), "test-de.tsv": german}
    )
    given = {"tasks_from": [tmp_path / "senti.yaml"], "data": data, "prompt": "letters", "shots": 3}
    finished = run("senti", "asks:writes", limit=None, options={"says": " good"}, **given)
    translations = {"Ich mag es": "I like it", "Ich hasse es": "I hate it", "Sch\u00f6ner Tag": "Fine day"}
    for prompt, _ in calls():
        *shots, item = [block.partition("\n")[0] for block in prompt.split("Sentence: ")[1:]]
        assert len(shots) == 3
        assert " ".join(item.lower().split()) not in [shot.lower() for shot in shots]
        assert parallel == "false" or translations.get(item) not in shots
    excluded = {cell.language: cell.excluded_shots for cell in finished.cells}
    assert excluded["en"] > 0
    assert (excluded["de"] > 0) == (parallel == "true")
    assert f"{sum(excluded.values())} shots replaced" in terminal_text([finished], width=100)
