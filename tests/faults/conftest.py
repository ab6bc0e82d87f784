"""Tiny models, undisturbed runs, and a server that starts commands without waiting for their imports."""

from __future__ import annotations

import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import torch

from ..hf.conftest import FAMILIES, save_decoder, sizes
from .command import HERE, Commands, command_environment
from .evaluation import Evaluation

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
    folder = tmp_path_factory.mktemp("models") / "bert"
    config_class, model_class, make_tokenizer, positions = FAMILIES["bert"]
    tokenizer = make_tokenizer()
    torch.manual_seed(0)
    model_class(config_class(**sizes(tokenizer, positions))).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


@pytest.fixture(scope="session")
def decoder_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A Llama."""
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


@pytest.fixture
def filled_cache(trained: Evaluation, commands: Commands) -> Commands:
    """Commands whose cache has the fits of the undisturbed run."""
    shutil.copytree(trained.reference.parent / "cache", commands.cache)
    return commands
