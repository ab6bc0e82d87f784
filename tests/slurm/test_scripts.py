"""What is submitted: which jobs become one array, and the scripts that sbatch gets."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from harness import AdapterError, UsageError
from harness.registry import FleetJob, JobState
from harness_slurm.options import SlurmOptions
from harness_slurm.runner import SlurmRunner

from .conftest import write_commands

Cli = Callable[..., tuple[int, str, str]]
GOLDEN = Path(__file__).with_name("golden")
COUNTER = 'echo x >> "$LOG/calls"; echo "Submitted batch job $(wc -l < "$LOG/calls")"'


@pytest.fixture
def recorder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Commands of Slurm that run nothing; the folder of the fleet's jobs."""
    pytest.importorskip("submitit")
    write_commands(
        tmp_path / "bin",
        ("sbatch", "srun", "squeue", "scancel"),
        lambda name: {"sbatch": COUNTER, "scancel": 'echo "$@" > "$LOG/cancelled"'}.get(name, ":"),
    )
    monkeypatch.setenv("PATH", str(tmp_path / "bin"), prepend=os.pathsep)
    monkeypatch.setenv("LOG", str(tmp_path))
    return tmp_path / "jobs"


def make_job(folder: Path, name: str, *after: str, **resources: float) -> FleetJob:
    """Return a job with a folder."""
    path = folder / name
    path.mkdir(parents=True, exist_ok=True)
    given = {"minutes": 90, **resources}
    return FleetJob(name=name, command=("true",), folder=path, model="m", after=after, **given)  # type: ignore[arg-type]


def submit(jobs: list[FleetJob], **options: str) -> list[tuple[str, JobState]]:
    """Submit jobs and return what was reported."""
    reported: list[tuple[str, JobState]] = []
    runner = SlurmRunner(SlurmOptions.model_validate(options))
    runner.run(jobs, lambda name, state: reported.append((name, state)), lambda: False)
    return reported


def numbers(jobs: list[FleetJob]) -> dict[str, str]:
    """Return the ids of jobs in Slurm, as they are kept in their folders."""
    return {job.name: json.loads((job.folder / "slurm.json").read_text())["job"] for job in jobs}


def scripts(folder: Path) -> list[str]:
    """Return the submitted scripts in their order, without the paths of this machine."""
    paths = sorted((folder / "_slurm").glob("*_submission.sh"), key=lambda path: int(path.name.split("_")[0]))
    texts = [path.read_text(encoding="utf-8") for path in paths]
    return [text.replace(str(folder), "JOBS").replace(sys.executable, "PYTHON") for text in texts]


def test_scripts(recorder: Path) -> None:
    fits = [make_job(recorder, "001-xlmr-fit-1", gpus=1.0, memory_gib=40.5)]
    parts = [
        make_job(recorder, f"001-xlmr-{part}", fits[0].name, gpus=0.5, processes=2, minutes=5)
        for part in range(5)
    ]
    joined = [make_job(recorder, f"002-e5-{part}", fits[0].name, "001-xlmr-3") for part in range(2)]
    reported = submit(
        [*joined, *parts, *fits],
        parallel="2",
        cpus="8",
        partition="gpu",
        account="nlp",
        qos="long",
        constraint="a100|h100",
        setup="module load cuda\nexport HF_HUB_OFFLINE=1",
        sbatch="--exclusive --mail-user='a b@c.d'",
    )
    assert reported == [(job.name, JobState.WAITING) for job in [*fits, *parts, *joined]]
    assert numbers(fits + parts + joined) == {
        "001-xlmr-fit-1": "1",
        **{f"001-xlmr-{part}": f"2_{part}" for part in range(5)},
        **{f"002-e5-{part}": f"3_{part}" for part in range(2)},
    }
    for name, script in zip(("fit", "array", "both"), scripts(recorder), strict=True):
        golden = GOLDEN / f"{name}.sh"
        if os.environ.get("HARNESS_UPDATE_GOLDEN"):
            golden.write_text(script, encoding="utf-8")
        assert script == golden.read_text(encoding="utf-8")


def test_jobs_that_need_the_same_are_one_array(recorder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    jobs = [
        make_job(recorder, "fit-a"),
        make_job(recorder, "fit-b"),
        make_job(recorder, "big", gpus=4.0),
        make_job(recorder, "a-1", "fit-a"),
        make_job(recorder, "b-1", "fit-b"),
        make_job(recorder, "a-2", "fit-a"),
        make_job(recorder, "alone", "gone"),
        make_job(recorder, "short", minutes=6),
    ]
    submit(jobs)
    found = numbers(jobs)
    assert (found["fit-a"], found["fit-b"], found["alone"]) == ("1_0", "1_1", "1_2")
    assert (found["big"], found["short"]) == ("2", "3")
    assert (found["a-1"], found["a-2"], found["b-1"]) == ("4_0", "4_1", "5")
    texts = scripts(recorder)
    dependencies = [[line for line in script.splitlines() if "dependency" in line] for script in texts]
    fits = [[f"#SBATCH --dependency=afterok:{fit}"] for fit in ("1_0", "1_1")]
    assert dependencies == [[], [], [], *fits]
    # The warning comes in the last third of short jobs.
    assert ["USR2@120" in script for script in texts] == [False, False, True, False, False]
    assert ["USR2@300" in script for script in texts] == [True, True, False, True, True]
    monkeypatch.setattr("harness_slurm.runner.LARGEST_ARRAY", 2)
    many = [make_job(recorder, f"j{number}") for number in range(5)]
    submit(many)
    assert list(numbers(many).values()) == ["6_0", "6_1", "7_0", "7_1", "8"]


def test_a_rejected_job_cancels_those_before_it(recorder: Path, tmp_path: Path) -> None:
    errors = "echo sbatch: error: bad >&2; echo sbatch: error: no such QOS >&2"
    rejection = f'if [ $(wc -l < "$LOG/calls") = 3 ]; then {errors}; exit 1; fi'
    (tmp_path / "bin" / "sbatch").write_text(f"#!/bin/sh\n{COUNTER}\n{rejection}\n")
    jobs = [make_job(recorder, "a"), make_job(recorder, "b", "a"), make_job(recorder, "c", "b")]
    with pytest.raises(AdapterError, match=r"'c': no such QOS\.$"):
        submit(jobs)
    assert (tmp_path / "cancelled").read_text().split() == ["1", "2"]


def test_a_second_submission_replaces_what_waits(recorder: Path, tmp_path: Path) -> None:
    jobs = [make_job(recorder, "a"), make_job(recorder, "b"), make_job(recorder, "c")]
    submit(jobs)
    (tmp_path / "bin" / "squeue").write_text("#!/bin/sh\necho '1_1 PENDING'\necho '77 RUNNING'\n")
    submit(jobs[1:])
    assert (tmp_path / "cancelled").read_text().split() == ["1_1"]
    assert numbers(jobs) == {"a": "1_0", "b": "2_0", "c": "2_1"}


@pytest.mark.parametrize(
    ("queued", "status", "state"),
    [
        ("PENDING", None, JobState.WAITING),
        ("PENDING", {"status": None}, JobState.WAITING),
        ("CONFIGURING", None, JobState.WAITING),
        ("RUNNING", {"status": None}, JobState.RUNNING),
        ("COMPLETING", {"status": 0}, JobState.RUNNING),
        ("SUSPENDED", {"status": None}, JobState.RUNNING),
        (None, {"status": 0}, JobState.DONE),
        (None, {"status": 3}, JobState.FAILED),
        (None, {"status": 130}, JobState.LOST),
        (None, {"status": -9}, JobState.LOST),
        (None, {"status": None}, JobState.LOST),
        (None, None, JobState.FAILED),
    ],
)
def test_states(
    recorder: Path, tmp_path: Path, queued: str | None, status: dict[str, int] | None, state: JobState
) -> None:
    job, other = make_job(recorder, "a"), make_job(recorder, "never-submitted")
    submit([job])
    if status is not None:
        (job.folder / "slurm-status.json").write_text(json.dumps(status))
    (tmp_path / "bin" / "squeue").write_text(f"#!/bin/sh\n{f'echo 1 {queued}' if queued else ':'}\n")
    assert SlurmRunner(SlurmOptions()).states([job, other]) == {"a": state}


def test_slurm_and_a_walltime_are_needed(
    recorder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = FleetJob(name="a", command=("true",), folder=make_job(recorder, "a").folder, model="m")
    with pytest.raises(UsageError, match="--minutes"):
        submit([job])
    (tmp_path / "bin" / "squeue").write_text("#!/bin/sh\necho 'squeue: fatal: no controller' >&2; exit 1\n")
    with pytest.raises(AdapterError, match=r"queue: no controller\.$"):
        SlurmRunner(SlurmOptions()).states([])
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(UsageError, match="--backend local or ray"):
        submit([job])


@pytest.mark.parametrize(
    "text", ["-p gpu", "gpu", "--time=5", "--dependency=afterok:1", "--array=1-3", "--signal=B:TERM@9", "--="]
)
def test_options_that_the_backend_sets_are_rejected(text: str) -> None:
    with pytest.raises(ValueError, match="--name=value"):
        SlurmOptions(sbatch=text)
