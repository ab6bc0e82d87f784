"""The contract passes a sound adapter, and each planted fault fails the check that is there for it."""

from __future__ import annotations

import importlib
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from harness.testing.adapter_contract import AdapterContract
from tests.testing import direct_checks

pytest_plugins = ["pytester"]

FailedChecks = Callable[..., set[str]]

CONTRACT = """
import pytest
from planted import PLANTED
from harness.testing.adapter_contract import AdapterContract

class TestPlanted(AdapterContract):
    @pytest.fixture(scope="class")
    @classmethod
    def entry(cls):
        return PLANTED

    @pytest.fixture(scope="class")
    @classmethod
    def ref(cls):
        return {ref!r}
"""

SOUND = ("sound", "sound-decoder", "no-mask", "sound-streamer", "sound-writer", "sound-rejecter")
FAULTS_OF_CHECKS = {
    "a_masked_word_has_a_vector_or_is_rejected": "reads-masks",
    "a_stream_may_be_closed": "samples-at-zero upset-by-closing",
    "an_untrained_twin_is_another_model": "loses-a-sentence one-twin",
    "answers_are_finite": "nan",
    "answers_have_the_right_form": (
        "float64 loses-a-sentence loses-a-tag positive-log-probability shifted-span"
    ),
    "asking_again_changes_nothing": "nondeterministic samples-at-zero",
    "batch_size_changes_nothing": (
        "batch-dependent impatient-generation nondeterministic samples-at-zero wrong-count wrong-order"
    ),
    "blocks_have_one_size": "changing-blocks",
    "closing_twice_is_fine": "closes-once",
    "coverage_names_the_words_without_a_vector": "covers-all loses-a-sentence",
    "describing_imports_no_model_library": "heavy-describe",
    "description_is_of_this_adapter_and_model": "wrong-name",
    "each_request_gets_one_answer": "impatient-generation loses-a-sentence wrong-count",
    "fitted_model_is_what_was_declared": "head-without-capability missing-head-capability",
    "fitting_changes_the_identity": "empty-identity fit-keeps-identity",
    "fitting_leaves_the_model_alone": "fits-in-place nondeterministic",
    "fitting_on_nothing_is_rejected": "fits-on-nothing",
    "fitting_twice_gives_the_same": (
        "forgets-passages nondeterministic opens-differently unseeded-fit wrong-count"
    ),
    "heads_declare_their_capability": "head-without-capability",
    "identity_is_stable_text": "empty-identity number-in-identity unstable-identity",
    "labels_may_come_in_any_order": "ignores-label-order",
    "model_declares_what_it_does": "undeclared-capability",
    "model_does_what_it_declares": "missing-capability",
    "no_request_gets_no_answer": "answers-nothing-asked",
    "no_special_token_is_counted": "counts-special-tokens",
    "nothing_asked_streams_nothing": "streams-for-nothing",
    "opening_again_changes_nothing": "nondeterministic opens-differently samples-at-zero",
    "order_is_kept": "impatient-generation nondeterministic samples-at-zero wrong-count wrong-order",
    "pieces_leave_no_visible_character_out": "trims-letters",
    "room_is_a_number_of_subwords": "no-room",
    "saved_fit_answers_alike": (
        "forgetful forgets-passages nondeterministic opens-differently unstable-identity wrong-count"
    ),
    "saved_fit_holds_no_pickle": "pickle",
    "stopping_ends_a_stream": "deaf-streamer other-in-a-stream samples-at-zero streams-twice",
    "streamed_answers_are_those_of_the_method": (
        "loses-a-block other-in-a-stream samples-at-zero streams-twice"
    ),
    "subwords_are_counted_text_by_text": "counts-neighbours",
    "tags_are_those_of_the_training_data": "unknown-tag",
    "text_ends_before_its_stop_strings": (
        "cuts-at-tokens deaf-to-options-in-a-stream first-options-for-all first-stop-only ignores-stop "
        "impatient-generation keeps-the-stop rejects-stop samples-at-zero unfinished-stop"
    ),
    "text_keeps_to_its_constraint": (
        "deaf-to-options-in-a-stream first-options-for-all ignores-choices ignores-json-schema "
        "ignores-regex lower-case-choice rejects-choices silently-unconstrained"
    ),
    "text_varies_with_the_seed_where_it_is_sampled": (
        "deaf-to-options-in-a-stream first-options-for-all fixed-seed greedy impatient-generation "
        "samples-at-zero samples-at-zero-by-seed unseeded"
    ),
    "the_vector_of_the_sentence_depends_on_it": "deaf-to-sentences loses-a-sentence",
    "the_vector_of_the_sentence_stands_first": "loses-a-sentence shifts-words",
    "unusual_text_is_answered": (
        "chokes-on-empty-text impatient-generation loses-a-sentence loses-a-tag positive-log-probability "
        "shifted-span wrong-count"
    ),
    "vectors_have_length_one": "chokes-on-empty-text long-vectors nan",
}
"""Check without ``test_``, and the planted faults that fail it."""
CAUGHT_BY: dict[str, set[str]] = {}
"""Fault, and the checks that fail for it, and no others."""
for _check, _faults in FAULTS_OF_CHECKS.items():
    for _fault in _faults.split():
        CAUGHT_BY.setdefault(_fault, set()).add(f"test_{_check}")

IN_A_NEW_PROCESS = "test_describing_imports_no_model_library"
"""It starts Python anew, so it runs for the sound adapter and for its own fault only."""


@pytest.fixture
def failed_checks(
    tmp_path_factory: pytest.TempPathFactory, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[FailedChecks]:
    """Run checks on the planted adapter, and return the names of those that fail."""
    (tmp_path / "vllm.py").write_text("", encoding="utf-8")
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.syspath_prepend(str(Path(__file__).parent))
    installed = sys.modules.pop("vllm", None)

    def run(ref: str, chosen: Callable[[str], bool] = lambda name: True) -> set[str]:
        planted = importlib.import_module("planted")
        entry = planted.REJECTING if ref in planted.UNDECLARED else planted.PLANTED
        return direct_checks.failed_checks(entry, ref, tmp_path_factory.mktemp, chosen)

    yield run
    sys.modules.pop("vllm", None)  # the stub
    if installed is not None:
        sys.modules["vllm"] = installed


def failed_in_a_session(pytester: pytest.Pytester, ref: str, *arguments: str) -> set[str]:
    """Run the contract class of the planted adapter as its author would; return the checks that fail."""
    shutil.copy(Path(__file__).with_name("planted.py"), pytester.path / "planted.py")
    pytester.makepyfile(vllm="", test_planted=CONTRACT.format(ref=ref))
    pytester.syspathinsert()
    quick = ("-p", "no:cacheprovider", "-p", "no:hypothesispytest")
    record = pytester.inline_run(*quick, "-W", "error", *arguments)
    passed, _, failed = record.listoutcomes()
    assert passed or failed, "no check ran"
    return {report.nodeid.rpartition("::")[2].partition("[")[0] for report in failed}


@pytest.mark.parametrize("ref", SOUND)
def test_sound_adapter_passes(failed_checks: FailedChecks, ref: str) -> None:
    assert failed_checks(ref) == set()


@pytest.mark.parametrize("fault", CAUGHT_BY)
def test_fault_is_caught(failed_checks: FailedChecks, fault: str) -> None:
    starts_python = fault == "heavy-describe"
    assert failed_checks(fault, lambda name: (name == IN_A_NEW_PROCESS) == starts_python) == CAUGHT_BY[fault]


@pytest.mark.thorough
@pytest.mark.parametrize("ref", ["sound", "loses-a-sentence", "wrong-count"])
def test_a_session_of_pytest_finds_the_same(
    pytester: pytest.Pytester, failed_checks: FailedChecks, ref: str
) -> None:
    assert failed_in_a_session(pytester, ref) == failed_checks(ref) == CAUGHT_BY.get(ref, set())


def test_every_check_catches_a_fault() -> None:
    checks = {name for name in dir(AdapterContract) if name.startswith("test_")}
    unproven = checks - set().union(*CAUGHT_BY.values())
    assert unproven == set()


def test_pytest_is_not_needed_for_the_examples() -> None:
    code = "import sys, harness.testing; sys.exit('pytest' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
