"""With Portuguese, XNLI keeps the contract that the harness holds its own tasks to."""

from __future__ import annotations

import pytest

from harness.running import Session
from harness.specs import TaskEntry
from harness.testing import Sample, SpecContract


class TestXnli(SpecContract):
    """Checks all languages of the task; that ids are parallel and a baseline gets a score are among the checks."""

    sample_languages = 10
    sample_items = 24

    @pytest.fixture
    def task(self) -> str:
        return "xnli"

    def test_portuguese_is_there(self, entry: TaskEntry, sample: Sample) -> None:
        assert entry.added["pt"] == "xnli_portuguese"
        assert len(sample["pt",]) == 24

    def test_it_says_how_its_text_was_made(self, entry: TaskEntry) -> None:
        language = entry.spec.languages["pt"]
        assert language is not None
        assert language.provenance == "machine-translated"

    def test_labels_are_those_of_the_english_items(self, sample: Sample) -> None:
        english = {item.id: item.label for item in sample["en",]}
        assert {item.id: item.label for item in sample["pt",]} == english

    def test_the_prompt_has_words_of_its_own(self, session: Session, entry: TaskEntry) -> None:
        worded = entry.worded(session.catalog.prompt("xnli", "default"), "pt")
        assert worded.literals["pt"].words["label.entailment"] == "Sim"
