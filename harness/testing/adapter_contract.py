"""The contract of a model adapter as a test class to inherit.

An adapter's author gives the fixtures `entry` and `ref`, and overrides the others where needed; fixtures are
of class scope or wider::

    from harness.testing.adapter_contract import AdapterContract

    class TestMyAdapter(AdapterContract):
        @pytest.fixture(scope="class")
        @classmethod
        def entry(cls) -> AdapterEntry:
            return MY_ENTRY

        @pytest.fixture(scope="class")
        @classmethod
        def ref(cls) -> str:
            return "tiny-model"

Checks of a capability or a head that the model does not declare are skipped, with the reason. The model is
trained about three times a head on a dozen examples; `training_settings` says how long.
"""

from __future__ import annotations

from harness.testing.answer_check import AnswerChecks, SubwordChecks, WritingChecks
from harness.testing.declaration_check import DeclarationChecks
from harness.testing.fit_check import FitChecks
from harness.testing.state_check import StateChecks
from harness.testing.stream_check import StreamChecks


class AdapterContract(
    DeclarationChecks, AnswerChecks, WritingChecks, StateChecks, StreamChecks, SubwordChecks, FitChecks
):
    """Checks that an adapter declares what it does and does what it declares."""
