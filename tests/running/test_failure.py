"""One failed cell leaves the others alone; what is done stays."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from harness.errors import UsageError
from harness.storage.run_folder import Run

from .conftest import Cli, DataFolder, RunTasks

SAMPLE = ("--data", "sample", "--output", "run")
EVAL = ("eval", *SAMPLE, "--recipe", "quick", "--train-limit", "30", "--limit", "4")


def _status(run: Run) -> dict[str, tuple[str, str]]:
    return {cell.language: (cell.status, cell.reason) for cell in run.cells}


@pytest.mark.usefixtures("planted")
@pytest.mark.parametrize(
    ("ref", "reason"),
    [
        ("raises", "RuntimeError: planted failure"),
        ("nan", "classify() returned scores that are not finite for task 'xnli'."),
        ("count", "classify() returned 4 answers to 5 requests."),
        ("columns", "classify() returned scores of shape (5, 2); expected (5, 3)."),
    ],
)
def test_a_model_that_fails_in_one_language_keeps_the_others(run: RunTasks, ref: str, reason: str) -> None:
    finished = run("xnli:de+hi+sw", f"planted:{ref}")
    assert _status(finished) == {"de": ("ok", ""), "hi": ("failed", reason), "sw": ("ok", "")}
    failed = next(cell for cell in finished.cells if cell.status == "failed")
    assert (failed.n, failed.metrics, failed.protocol) == (0, {}, "frozen")
    trace = (finished.path / str(failed.traceback)).read_text(encoding="utf-8")
    assert trace.startswith("xnli:hi\nTraceback (most recent call last)")
    assert reason.rsplit(": ", maxsplit=1)[-1] in trace
    assert {path.parent.name for path in finished.path.glob("records/xnli/*/*.parquet")} == {"de", "sw"}
    [row] = finished.results.tasks
    assert (row.languages, row.missing) == (2, ["hi"])


@pytest.mark.usefixtures("planted")
@pytest.mark.parametrize(("method", "count"), [("reversed", 5), ("too_few", 4)])
def test_a_method_must_keep_the_order_and_the_count(run: RunTasks, method: str, count: int) -> None:
    [cell] = run("xnli:de", "planted:good", method=method).cells
    assert cell.status == "failed"
    assert cell.reason.startswith(f"The method {method!r} answered {count} items for 5")


@pytest.mark.usefixtures("planted")
@pytest.mark.parametrize(
    ("ref", "reason"),
    [
        ("nan-loss", "The loss is NaN at step 3. Lower the learning rate."),
        ("broken-fit", "RuntimeError: out of memory"),
        ("lost-head", "The model fitted with the head 'classification' does not offer Classifies."),
    ],
)
def test_a_fit_that_fails_fails_its_cells_and_no_others(run: RunTasks, ref: str, reason: str) -> None:
    finished = run(["xnli:de+sw", "pawsx:en"], f"planted:{ref}", recipe="quick")
    assert {cell.reason for cell in finished.cells} == {reason}
    assert {cell.status for cell in finished.cells} == {"failed"}
    assert finished.results.fits == {}
    assert len(list((finished.path / "failures").glob("*.txt"))) == 3
    kept = [path for path in (finished.path.parent / "cache" / "fits").iterdir() if path.name.startswith(".")]
    assert kept == [], "what a failed fit wrote is removed"


@pytest.mark.usefixtures("planted")
def test_a_failed_fit_leaves_other_tasks_alone(run: RunTasks, data_folder: DataFolder) -> None:
    row = "He sleeps.\tHe is awake.\t{}\n"
    folder = data_folder(
        {
            "xnli/train-en.tsv": row.format("entailment") + row.format("entialment"),
            "xnli/test-de.tsv": row.format("neutral"),
            "pawsx/train-en.tsv": row.format("1") + row.format("0"),
            "pawsx/test-de.tsv": row.format("1"),
        }
    )
    finished = run(["xnli:de", "pawsx:de"], "planted:fit", data=folder)
    reasons = {cell.task: (cell.status, cell.reason) for cell in finished.cells}
    assert reasons["pawsx"] == ("ok", "")
    status, reason = reasons["xnli"]
    assert status == "failed"
    assert reason.startswith(f"{folder}/xnli/train-en.tsv:2: ")
    assert "'entialment'" in reason
    assert "(task 'mnli'). Did you mean 'entailment'?" in reason


@pytest.mark.usefixtures("planted")
def test_the_exit_status_is_1_where_a_cell_failed(cli: Cli) -> None:
    status, out, err = cli(*EVAL, "--tasks", "xnli:de+hi+sw", "--model", "planted:raises")
    assert status == 1
    assert "xnli:hi failed: RuntimeError: planted failure" in err
    assert "FAILED: 1 cell" in out
    assert "xnli hi: RuntimeError: planted failure" in out
    assert "Traceback" not in out + err


@pytest.mark.usefixtures("planted")
def test_what_is_done_stays_after_ctrl_c(cli: Cli) -> None:
    status, out, err = cli(*EVAL, "--tasks", "xnli:de+hi+sw", "--model", "planted:interrupt")
    assert (status, out) == (130, "")
    assert err.endswith("harness eval --resume run\n")
    run = Run(Path("run"))
    stopped = ("skipped", "the run was stopped before this cell")
    assert _status(run) == {"de": ("ok", ""), "hi": stopped, "sw": stopped}
    assert len(list(run.records(run.cells[0]))) == 4
    status, out, _ = cli("report", "run")
    assert status == 0
    assert "STOPPED: 2 cells not run. Continue: harness eval --resume run\n" in out


@pytest.mark.usefixtures("planted")
def test_an_observer_that_raises_is_reported_and_loses_nothing(
    cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PLANTED_OBSERVER", "1")
    status, _, err = cli(*EVAL, "--tasks", "xnli:de+sw", "--model", "planted:good")
    assert status == 0
    for code in ("de", "sw"):
        assert (
            "The plugin 'planted_adapter' could not observe this: "
            f"harness_cell_finished raised ValueError: observed {code}." in err
        )
    assert "harness_run_finished raised ValueError: observed run" in err
    assert {cell.status for cell in Run(Path("run")).cells} == {"ok"}


def test_a_folder_that_cannot_be_used_is_rejected_before_any_work(
    cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_work(*_: Any, **__: Any) -> None:
        raise AssertionError("work has started")

    monkeypatch.setattr("harness.running.fit_store.FitStore.fit", no_work)
    monkeypatch.setattr("harness.data.sources.DataFinder.find", no_work)
    Path("file").write_text("", encoding="utf-8")
    Path("run").mkdir()
    Path("run/results.json").write_text("{}", encoding="utf-8")
    faults = dict.fromkeys(("file", "file/below", "file/further/below"), "cannot be written: ")
    for output, fault in {
        **faults,
        "run": "already holds a run. Resume it (harness eval --resume run)",
    }.items():
        command = ("eval", "--tasks", "xnli:de", "--model", "baseline:char-ngram", "--data", "sample")
        status, out, err = cli(*command, "--output", output)
        assert (status, out) == (2, "")
        assert f"folder '{output}' {fault}" in err
        assert err.lower().endswith("give another folder with --output.\n")
    assert Path("file").read_text(encoding="utf-8") == ""
    assert Path("run/results.json").read_text(encoding="utf-8") == "{}"


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        ("a\tb\tneutral\nc\td\n", "test-de.tsv:2: expected 3 columns"),
        ("a\tb\tneutral\nc\td\tnuetral\n", "'nuetral'"),
        (b"a\tb\tneutral\nc\t\xe4\tneutral\n", "test-de.tsv:2: expected UTF-8"),
        ("", "The test split of 'xnli' in 'de' holds no items."),
    ],
)
def test_a_faulty_test_file_fails_its_cell_and_no_other(
    run: RunTasks, data_folder: DataFolder, content: str | bytes, reason: str
) -> None:
    rows = "He sleeps.\tHe is awake.\tcontradiction\nHe sleeps.\tHe is asleep.\tentailment\n"
    folder = data_folder({"xnli/train-en.tsv": rows, "xnli/test-de.tsv": content, "xnli/test-sw.tsv": rows})
    finished = run("xnli:de+sw", "baseline:majority", data=folder, limit=None)
    status = _status(finished)
    assert status["sw"] == ("ok", "")
    assert status["de"][0] == "failed"
    assert reason in status["de"][1]


def test_an_empty_selection_leaves_no_folder_behind(run: RunTasks, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="Nothing is left to run"):
        run("xquad:sw", output=tmp_path / "empty")
    assert not (tmp_path / "empty").exists()


MISSING_EXTRA = """
from harness.models.adapters import AdapterEntry
from harness.models.capabilities import Capability, ModelDescription
from harness.hookspecs import hookimpl

def describe(ref, options):
    labels = ("contradiction", "entailment", "neutral")
    return ModelDescription(adapter="incomplete", ref=ref, offers=frozenset({Capability.CLASSIFIES}), labels=labels)

@hookimpl
def harness_register_adapters():
    options = "harness.models.options:AdapterOptions"
    return [
        AdapterEntry(
            name="incomplete", target="incomplete_model:Model", describe="incomplete:describe", options=options,
            summary="x", extra="hf",
        )
    ]
"""


def test_a_missing_package_is_reported_before_there_is_a_folder(
    cli: Cli, install_plugin: Callable[..., Path]
) -> None:
    """The same command must do once the package is there."""
    install_plugin(
        "incomplete",
        {"incomplete.py": MISSING_EXTRA, "incomplete_model.py": "import no_such_package_anywhere\n"},
    )
    status, _, err = cli("eval", *SAMPLE, "--tasks", "xnli:de", "--model", "incomplete:it")
    assert status == 2
    assert "The adapter 'incomplete' needs the package 'no_such_package_anywhere'" in err
    assert not Path("run").exists()


def test_what_no_model_of_an_adapter_can_do_names_the_list_of_adapters(cli: Cli) -> None:
    model = ("--model", "baseline:majority", "--data", "sample")
    status, _, err = cli("eval", "--tasks", "xnli:de", "--protocol", "prompted", *model)
    assert status == 2
    assert "(1) 'prompted' needs Generates or ScoresContinuations; baseline:majority offers " in err
    assert err.endswith(". Run 'harness models' to see what the models of other adapters can do.\n")
