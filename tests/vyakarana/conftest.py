from __future__ import annotations

from pathlib import Path

import pytest

from harness.data.readers.conllu import Sentence, read_sentences
from harness_vyakarana.grammar import Grammar, load_grammars

OWN = Path(__file__).parent / "data"


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
