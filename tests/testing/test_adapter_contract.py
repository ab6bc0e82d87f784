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
CAUGHT_BY: dict[str, set[str]] = {
    "answers-nothing-asked": {"test_no_request_gets_no_answer"},
    "batch-dependent": {"test_batch_size_changes_nothing"},
    "changing-blocks": {"test_blocks_have_one_size"},
    "chokes-on-empty-text": {"test_unusual_text_is_answered", "test_vectors_have_length_one"},
    "closes-once": {"test_closing_twice_is_fine"},
    "counts-neighbours": {"test_subwords_are_counted_text_by_text"},
    "counts-special-tokens": {"test_no_special_token_is_counted"},
    "covers-all": {"test_coverage_names_the_words_without_a_vector"},
    "cuts-at-tokens": {"test_text_ends_before_its_stop_strings"},
    "deaf-streamer": {"test_stopping_ends_a_stream"},
    "deaf-to-options-in-a-stream": {
        "test_text_ends_before_its_stop_strings",
        "test_text_keeps_to_its_constraint",
        "test_text_varies_with_the_seed_where_it_is_sampled",
    },
    "deaf-to-sentences": {"test_the_vector_of_the_sentence_depends_on_it"},
    "empty-identity": {"test_fitting_changes_the_identity", "test_identity_is_stable_text"},
    "first-options-for-all": {
        "test_text_ends_before_its_stop_strings",
        "test_text_keeps_to_its_constraint",
        "test_text_varies_with_the_seed_where_it_is_sampled",
    },
    "first-stop-only": {"test_text_ends_before_its_stop_strings"},
    "fit-keeps-identity": {"test_fitting_changes_the_identity"},
    "fits-in-place": {"test_fitting_leaves_the_model_alone"},
    "fits-on-nothing": {"test_fitting_on_nothing_is_rejected"},
    "fixed-seed": {"test_text_varies_with_the_seed_where_it_is_sampled"},
    "float64": {"test_answers_have_the_right_form"},
    "forgetful": {"test_saved_fit_answers_alike"},
    "forgets-passages": {"test_fitting_twice_gives_the_same", "test_saved_fit_answers_alike"},
    "greedy": {"test_text_varies_with_the_seed_where_it_is_sampled"},
    "head-without-capability": {
        "test_fitted_model_is_what_was_declared",
        "test_heads_declare_their_capability",
    },
    "heavy-describe": {"test_describing_imports_no_model_library"},
    "ignores-choices": {"test_text_keeps_to_its_constraint"},
    "ignores-json-schema": {"test_text_keeps_to_its_constraint"},
    "ignores-label-order": {"test_labels_may_come_in_any_order"},
    "ignores-regex": {"test_text_keeps_to_its_constraint"},
    "ignores-stop": {"test_text_ends_before_its_stop_strings"},
    "impatient-generation": {
        "test_batch_size_changes_nothing",
        "test_each_request_gets_one_answer",
        "test_order_is_kept",
        "test_text_ends_before_its_stop_strings",
        "test_text_varies_with_the_seed_where_it_is_sampled",
        "test_unusual_text_is_answered",
    },
    "keeps-the-stop": {"test_text_ends_before_its_stop_strings"},
    "long-vectors": {"test_vectors_have_length_one"},
    "loses-a-block": {"test_streamed_answers_are_those_of_the_method"},
    "loses-a-sentence": {
        "test_an_untrained_twin_is_another_model",
        "test_answers_have_the_right_form",
        "test_coverage_names_the_words_without_a_vector",
        "test_each_request_gets_one_answer",
        "test_the_vector_of_the_sentence_depends_on_it",
        "test_the_vector_of_the_sentence_stands_first",
        "test_unusual_text_is_answered",
    },
    "loses-a-tag": {"test_answers_have_the_right_form", "test_unusual_text_is_answered"},
    "lower-case-choice": {"test_text_keeps_to_its_constraint"},
    "missing-capability": {"test_model_does_what_it_declares"},
    "missing-head-capability": {"test_fitted_model_is_what_was_declared"},
    "nan": {"test_answers_are_finite", "test_vectors_have_length_one"},
    "no-room": {"test_room_is_a_number_of_subwords"},
    "nondeterministic": {
        "test_asking_again_changes_nothing",
        "test_batch_size_changes_nothing",
        "test_fitting_leaves_the_model_alone",
        "test_fitting_twice_gives_the_same",
        "test_opening_again_changes_nothing",
        "test_order_is_kept",
        "test_saved_fit_answers_alike",
    },
    "number-in-identity": {"test_identity_is_stable_text"},
    "one-twin": {"test_an_untrained_twin_is_another_model"},
    "opens-differently": {
        "test_fitting_twice_gives_the_same",
        "test_opening_again_changes_nothing",
        "test_saved_fit_answers_alike",
    },
    "other-in-a-stream": {
        "test_stopping_ends_a_stream",
        "test_streamed_answers_are_those_of_the_method",
    },
    "pickle": {"test_saved_fit_holds_no_pickle"},
    "positive-log-probability": {
        "test_answers_have_the_right_form",
        "test_unusual_text_is_answered",
    },
    "reads-masks": {"test_a_masked_word_has_a_vector_or_is_rejected"},
    "rejects-choices": {"test_text_keeps_to_its_constraint"},
    "rejects-stop": {"test_text_ends_before_its_stop_strings"},
    "samples-at-zero": {
        "test_a_stream_may_be_closed",
        "test_asking_again_changes_nothing",
        "test_batch_size_changes_nothing",
        "test_opening_again_changes_nothing",
        "test_order_is_kept",
        "test_stopping_ends_a_stream",
        "test_streamed_answers_are_those_of_the_method",
        "test_text_ends_before_its_stop_strings",
        "test_text_varies_with_the_seed_where_it_is_sampled",
    },
    "samples-at-zero-by-seed": {"test_text_varies_with_the_seed_where_it_is_sampled"},
    "shifted-span": {"test_answers_have_the_right_form", "test_unusual_text_is_answered"},
    "shifts-words": {"test_the_vector_of_the_sentence_stands_first"},
    "silently-unconstrained": {"test_text_keeps_to_its_constraint"},
    "streams-for-nothing": {"test_nothing_asked_streams_nothing"},
    "streams-twice": {
        "test_stopping_ends_a_stream",
        "test_streamed_answers_are_those_of_the_method",
    },
    "trims-letters": {"test_pieces_leave_no_visible_character_out"},
    "undeclared-capability": {"test_model_declares_what_it_does"},
    "unfinished-stop": {"test_text_ends_before_its_stop_strings"},
    "unknown-tag": {"test_tags_are_those_of_the_training_data"},
    "unseeded": {"test_text_varies_with_the_seed_where_it_is_sampled"},
    "unseeded-fit": {"test_fitting_twice_gives_the_same"},
    "unstable-identity": {"test_identity_is_stable_text", "test_saved_fit_answers_alike"},
    "upset-by-closing": {"test_a_stream_may_be_closed"},
    "wrong-count": {
        "test_batch_size_changes_nothing",
        "test_each_request_gets_one_answer",
        "test_fitting_twice_gives_the_same",
        "test_order_is_kept",
        "test_saved_fit_answers_alike",
        "test_unusual_text_is_answered",
    },
    "wrong-name": {"test_description_is_of_this_adapter_and_model"},
    "wrong-order": {"test_batch_size_changes_nothing", "test_order_is_kept"},
}
"""The checks that fail for each planted fault, and no others."""

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
