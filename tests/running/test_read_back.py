"""Results that are read back: every number is finite, every score a fraction, every name safe in a path."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from harness.analysis.merge import merge_runs
from harness.api import compare_runs
from harness.errors import UsageError
from harness.running.session import open_session
from harness.storage.results import CellResult, DamagedRunError
from harness.storage.run_folder import RESULTS, Run

from .conftest import Cli

Edited = Callable[..., Path]
LONG = "x" * 300


@pytest.fixture
def edited(sample_run: Run, tmp_path: Path) -> Edited:
    """Write the results and the manifest of a run with another value at a key, the first of each list."""

    def edit(keys: Sequence[Any], value: Any, name: str = "edited", file: str = RESULTS) -> Path:
        folder = tmp_path / name
        folder.mkdir()
        (folder / "records").symlink_to((sample_run.path / "records").resolve())
        for source in (sample_run.path / RESULTS, sample_run.path / "manifest.json"):
            content = place = json.loads(source.read_text(encoding="utf-8"))
            if source.name == file:
                for key in keys[:-1]:
                    place = place[key]
                place[keys[-1]] = value
            (folder / source.name).write_text(json.dumps(content), encoding="utf-8")
        return folder

    return edit


SCORE = ("cells", 0, "metrics", "accuracy")


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf, 101, 1.01, -7, "1.0", True, None, [1.0]])
@pytest.mark.parametrize(
    "keys", [(*SCORE, "value"), ("tasks", 0, "value"), ("tasks", 0, "by_language", "de")]
)
def test_a_score_that_is_no_fraction_names_its_key(edited: Edited, keys: Sequence[Any], value: Any) -> None:
    folder = edited(keys, value)
    with pytest.raises(DamagedRunError, match=r"is damaged at '(cells\.0\.metrics|tasks\.0)"):
        Run(folder)


@pytest.mark.parametrize(
    ("keys", "value"),
    [
        ((*SCORE, "se"), math.nan),
        ((*SCORE, "ci"), [0.0, math.inf]),
        (("cells", 0, "n"), "24"),
        (("cells", 0, "n"), math.nan),
        (("cells", 0, "seconds"), "1.0"),
        (("cells", 0, "ledger"), {"words": {"mean": math.nan}}),
        (("cells", 0, "details"), {"curve": [0.5, -math.inf]}),
        (("cells", 0, "task"), "../../evil"),
        (("cells", 0, "language"), "de/../../.."),
        (("cells", 0, "digest"), ".."),
    ],
)
def test_other_faults_name_their_key(edited: Edited, keys: Sequence[Any], value: Any) -> None:
    folder = edited(keys, value)
    with pytest.raises(DamagedRunError, match=re.escape(f"is damaged at '{'.'.join(map(str, keys))}")):
        Run(folder)


def test_a_number_beyond_floats_is_infinite(edited: Edited) -> None:
    folder = edited((*SCORE, "value"), 0.123456)
    text = (folder / RESULTS).read_text(encoding="utf-8")
    (folder / RESULTS).write_text(text.replace("0.123456", "1e999"), encoding="utf-8")
    with pytest.raises(DamagedRunError, match=r"cells\.0\.metrics\.accuracy\.value"):
        Run(folder)


@pytest.mark.parametrize("target", ["eval-results", "eee", "model-index", "csv"])
def test_an_export_never_holds_nan(cli: Cli, edited: Edited, tmp_path: Path, target: str) -> None:
    folder, output = edited((*SCORE, "value"), math.nan), tmp_path / "exported"
    assert cli("export", folder, "--to", target, "--allow-sample", "--output", output)[0] == 1
    assert not output.exists()


def test_a_gate_on_a_damaged_run_is_not_no_go(cli: Cli, edited: Edited, sample_run: Run) -> None:
    folder = edited((*SCORE, "value"), 101)
    assert cli("gate", folder, "--against", sample_run.path)[0] == 4
    assert cli("gate", sample_run.path, "--against", folder)[0] == 4
    assert cli("gate", sample_run.path, "--against", sample_run.path)[0] in {0, 3}


@pytest.mark.parametrize(
    ("keys", "value", "file"),
    [
        (("cells", 0, "data", "digest"), "0" * 12, RESULTS),
        (("run", "harness"), "0.0.1", RESULTS),
        (("versions", "multilingual-harness"), "0.0.1", "manifest.json"),
    ],
)
def test_a_digest_or_version_that_differs_is_noted(
    edited: Edited, sample_run: Run, keys: Sequence[Any], value: str, file: str
) -> None:
    from harness_gate.verdict import Policy, decide

    runs = [sample_run, Run(edited(keys, value, file=file))]
    metrics, policy = open_session().registry.metrics, Policy()
    compared = compare_runs(runs, tasks=["xnli"]).notes
    decided = decide(runs[1], runs[0], metrics, policy).notes
    expected = "xnli:" if "digest" in keys else "0.0.1"
    for notes in (compared, decided):
        assert [expected in note for note in notes].count(True) == 1, notes
    same = Run(edited(("run", "id"), "same", name="same"))
    for notes in (
        compare_runs([runs[0], same], tasks=["xnli"]).notes,
        decide(same, runs[0], metrics, policy).notes,
    ):
        assert not any("not the same" in note for note in notes)


def test_a_run_lies_in_no_other_run(edited: Edited, sample_run: Run, tmp_path: Path) -> None:
    outer = edited(("run", "id"), "outer")
    link = tmp_path / "link"
    link.symlink_to(outer)
    for output in (outer / "x", outer / "deep" / "x", link / "x"):
        with pytest.raises(UsageError, match="lies in the run"):
            merge_runs([sample_run.path], output, open_session().registry.metrics)
        with pytest.raises(UsageError, match="lies in the run"):
            Run.at(output).check_new()
    assert not (outer / "x").exists()


@pytest.mark.parametrize(
    "command",
    [
        ("eval", "--tasks", "xnli:en", "--data", "sample", "--model", "baseline:majority", "--output", LONG),
        ("eval", "--tasks", "xnli:en", "--data", "sample", "--model", f"hf:{LONG}"),
        ("eval", "--tasks", LONG, "--data", "sample", "--model", "baseline:majority"),
        ("report", LONG),
        ("lock", LONG),
    ],
)
def test_a_name_that_is_too_long_is_one_sentence(cli: Cli, command: Sequence[str]) -> None:
    status, _, err = cli(*command)
    assert status == 2
    assert "fault of the harness" not in err
    assert LONG in err


@pytest.mark.parametrize("name", ["length_ratio", "command:wer"])
def test_ratios_and_users_programs_have_their_own_scale(name: str) -> None:
    cell = {"task": "t", "language": "de", "status": "ok", "n": 2, "metrics": {name: {"value": 4.4}}}
    assert CellResult.model_validate(cell).metrics[name].value == 4.4
    with pytest.raises(ValueError, match="expected a fraction"):
        CellResult.model_validate({**cell, "metrics": {"accuracy": {"value": 4.4}}})
