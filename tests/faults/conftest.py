"""What faults are put into: finished runs, commands in processes of their own, packages as pip leaves them."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from harness.cli.main import run_command
from harness.storage.run_folder import Run

from ..conftest import Cli
from .command import HERE, Commands, command_environment
from .evaluation import Evaluation, plain_cells

TRAINED = ("--tasks", "xnli:en+sw,xquad:en+de", "--recipe", "quick", "--train-limit", "48")
PROMPTED = ("--tasks", "xnli:en+sw+de,xquad:en+de")
"""Ranks the choices of the first task and generates the answers of the second."""
SAMPLED = (
    "--tasks",
    "xnli:en+sw,mgsm:en+sw",
    "--repeats",
    "3",
    "--method",
    "generate",
    "--prompt",
    "letters,default",
)
"""Samples three answers per item."""
SMALL_BATCHES = ("-o", "batch_tokens=128")


@pytest.fixture(scope="session")
def encoder_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A bare BERT."""
    from .saved_models import save_encoder

    return save_encoder(tmp_path_factory.mktemp("models") / "bert")


@pytest.fixture(scope="session")
def decoder_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A Llama."""
    from ..hf.conftest import save_decoder

    return save_decoder(tmp_path_factory.mktemp("models") / "llama", "llama")


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[subprocess.Popen[bytes]]:
    """What starts warm commands."""
    process = subprocess.Popen(
        [sys.executable, HERE / "warm_start.py"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env=command_environment(tmp_path_factory.mktemp("temporary")),
    )
    with process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"ready\n"
        yield process
        assert process.stdin is not None
        process.stdin.close()
        process.wait()


@pytest.fixture(scope="session")
def commands_in(
    server: subprocess.Popen[bytes], tmp_path_factory: pytest.TempPathFactory
) -> Callable[[Path], Commands]:
    """Commands whose files lie in a folder."""
    environment = command_environment(tmp_path_factory.mktemp("temporary"))
    return lambda folder: Commands(folder, server, environment)


@pytest.fixture
def commands(commands_in: Callable[[Path], Commands], tmp_path: Path) -> Iterator[Commands]:
    """Commands with an empty cache."""
    commands = commands_in(tmp_path)
    yield commands
    commands.close()


MakeEvaluation = Callable[..., Evaluation]


@pytest.fixture(scope="session")
def undisturbed(
    commands_in: Callable[[Path], Commands], tmp_path_factory: pytest.TempPathFactory
) -> MakeEvaluation:
    """Run an evaluation to its end, and measure how long that takes."""

    def make(name: str, arguments: tuple[str, ...], pace: float) -> Evaluation:
        folder = tmp_path_factory.mktemp(name)
        began = time.monotonic()
        attempt = commands_in(folder).run(
            "eval", *arguments, "--output", folder / "run", faults={"pace": pace}
        )
        assert attempt.wait() == 0, attempt.err
        return Evaluation(
            name=name,
            arguments=arguments,
            pace=pace,
            reference=folder / "run",
            seconds=time.monotonic() - began,
        )

    return make


@pytest.fixture(scope="session")
def trained(undisturbed: MakeEvaluation, encoder_folder: Path) -> Evaluation:
    """A BERT that is fine-tuned twice; a checkpoint is written after every step."""
    options = ("--model", f"hf:{encoder_folder}", *SMALL_BATCHES, "-o", "train_checkpoint_minutes=0")
    return undisturbed("trained", (*TRAINED, *options, "--data", "sample"), 0.003)


@pytest.fixture(scope="session")
def prompted(undisturbed: MakeEvaluation, decoder_folder: Path) -> Evaluation:
    """A Llama that ranks and generates."""
    arguments = (*PROMPTED, "--model", f"hf:{decoder_folder}", *SMALL_BATCHES, "--data", "sample")
    return undisturbed("prompted", arguments, 0.006)


@pytest.fixture(scope="session")
def sampled(undisturbed: MakeEvaluation, decoder_folder: Path) -> Evaluation:
    """A Llama that samples several answers per item."""
    options = ("-o", "temperature=0.7", "-o", "max_tokens=8", *SMALL_BATCHES)
    return undisturbed(
        "sampled", (*SAMPLED, "--model", f"hf:{decoder_folder}", *options, "--data", "sample"), 0.006
    )


@pytest.fixture(params=["trained", "prompted"])
def evaluation(request: pytest.FixtureRequest) -> Evaluation:
    """Both, one after the other."""
    made: Evaluation = request.getfixturevalue(request.param)
    return made


TASKS = "xnli:de+hi,udpos:de,tatoeba:de"
EVAL = (
    *("eval", "--tasks", TASKS, "--model", "baseline:char-ngram", "--data", "sample", "--recipe", "quick"),
    *("--train-limit", "30", "--limit", "6"),
)


class Done:
    """An undisturbed run, its cache, and how others are compared with it."""

    def __init__(self, path: Path, cache: Path) -> None:
        self.path = path
        self.cache = cache
        self.command = EVAL
        self.planned: int = Run(path).results.run.requests["planned"]

    def assert_equal(self, path: Path) -> None:
        """Assert that a run has the same predictions and metrics to the bit."""
        assert plain_cells(path) == plain_cells(self.path)
        for cell in Run(self.path).cells:
            if cell.status == "ok":
                own, other = (Run(folder).records(cell) for folder in (self.path, path))
                assert list(own) == list(other)


@pytest.fixture(scope="session")
def undisturbed_done(tmp_path_factory: pytest.TempPathFactory) -> Done:
    """A run of several tasks that tests damage and resume."""
    folder = tmp_path_factory.mktemp("done")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HARNESS_CACHE", str(folder / "cache"))
        assert run_command([*EVAL, "--output", str(folder / "run")]) == 0
    return Done(folder / "run", folder / "cache")


@pytest.fixture
def done(undisturbed_done: Done, cli: Cli, monkeypatch: pytest.MonkeyPatch) -> Done:
    """Copy the undisturbed run to ``run`` below the working folder."""
    shutil.copytree(undisturbed_done.path, "run")
    monkeypatch.setenv("HARNESS_CACHE", str(undisturbed_done.cache))
    return undisturbed_done


@pytest.fixture
def flaky(install_plugin: Callable[..., Path]) -> Path:
    """Install the adapter ``flaky``, and return the folder that it was put into."""
    return install_plugin("flaky_adapter", (HERE / "flaky_adapter.py").read_text(encoding="utf-8"))


@pytest.fixture
def edit() -> Callable[..., None]:
    """Change a JSON file."""

    def edited(path: Path, change: Callable[[Any], None]) -> None:
        content = json.loads(path.read_text(encoding="utf-8"))
        change(content)
        path.write_text(json.dumps(content), encoding="utf-8")

    return edited


@dataclass(frozen=True, slots=True)
class Result:
    """How a command ended."""

    status: int
    out: str
    err: str


@pytest.fixture
def site(tmp_path: Path) -> Path:
    """A folder on the path of the commands."""
    folder = tmp_path / "site"
    folder.mkdir()
    return folder


@pytest.fixture
def package(site: Path) -> Callable[..., Path]:
    """Put a package on the path: a module of its name, or files by path; an entry point, a record."""

    def put(
        name: str,
        source: str | Mapping[str, str | bytes] | None,
        *,
        entry_points: str | None = None,
        is_recorded: bool = True,
    ) -> Path:
        files: dict[str, str | bytes] = (
            {f"{name}.py": source} if isinstance(source, str) else dict(source or {})
        )
        information = f"{name}-1.0.dist-info"
        files[f"{information}/METADATA"] = (
            f"Metadata-Version: 2.1\nName: {name.replace('_', '-')}\nVersion: 1.0\n"
        )
        files[f"{information}/entry_points.txt"] = entry_points or f"[harness]\n{name} = {name}\n"
        if is_recorded:
            files[f"{information}/RECORD"] = "".join(f"{path},,\n" for path in files)
        for path, content in files.items():
            target = site / path
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(content.encode() if isinstance(content, str) else content)
        return site

    return put


@pytest.fixture
def harness(site: Path, tmp_path: Path) -> Callable[..., Result]:
    """Run the command line in a process of its own and return how it ended."""

    def run(*arguments: object, **settings: str) -> Result:
        path = os.pathsep.join(filter(None, [os.environ.get("PYTHONPATH", ""), str(site)]))
        done = subprocess.run(
            [sys.executable, "-m", "harness", *map(str, arguments)],
            capture_output=True,
            text=True,
            check=False,
            cwd=tmp_path,
            env={**os.environ, "PYTHONPATH": path, "HARNESS_CACHE": str(tmp_path / "cache"), **settings},
            timeout=120,
        )
        return Result(status=done.returncode, out=done.stdout, err=done.stderr)

    return run
