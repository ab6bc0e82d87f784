from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

from harness.data.readers.conllu import Sentence, read_sentences
from harness_vyakarana.command import app
from harness_vyakarana.grammar import Grammar, load_grammars

OWN = Path(__file__).parent / "data"


def run(*arguments: object) -> str:
    """Run a command of ``harness vyakarana`` that succeeds, and return its output."""
    result = CliRunner().invoke(app, [str(argument) for argument in arguments], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result.output


@pytest.fixture(scope="session")
def own() -> Path:
    """The folder of the small treebanks that were written for these tests."""
    return OWN


@pytest.fixture(scope="session")
def grammars() -> dict[str, Grammar]:
    return load_grammars()


@pytest.fixture(scope="session")
def hindi() -> tuple[Sentence, ...]:
    return tuple(read_sentences(OWN / "hi_own-ud-test.conllu"))


@pytest.fixture(scope="session")
def tamil() -> tuple[Sentence, ...]:
    return tuple(read_sentences(OWN / "ta_own-ud-test.conllu"))
