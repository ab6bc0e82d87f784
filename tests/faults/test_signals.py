"""The first signal is a wish, the second an order; what was there before is there afterwards."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator

import pytest

from harness.running.processes import SAME_WISH, Interrupted, Interruption

pytestmark = pytest.mark.thorough

SIGNALS = [signal.SIGINT, signal.SIGTERM]


@pytest.fixture(autouse=True)
def _alone(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    for name in ("WORLD_SIZE", "ACCELERATE_MIXED_PRECISION"):
        monkeypatch.delenv(name, raising=False)
    before = [signal.getsignal(number) for number in SIGNALS]
    yield
    assert [signal.getsignal(number) for number in SIGNALS] == before


@pytest.mark.parametrize("number", SIGNALS)
def test_the_first_signal_is_a_wish_and_the_second_an_order(number: int) -> None:
    notices: list[str] = []
    interruption = Interruption(notices.append)
    with interruption.listening():
        assert not interruption.requested()
        interruption.check()
        os.kill(os.getpid(), number)
        assert interruption.requested()
        assert len(notices) == 1, "the first signal prints one notice"
        with pytest.raises(Interrupted):
            interruption.check()
        with pytest.raises(KeyboardInterrupt) as caught:
            os.kill(os.getpid(), number)
        assert not isinstance(caught.value, Interrupted)
    assert len(notices) == 1


def test_signals_of_both_kinds_count_together() -> None:
    with Interruption().listening(), pytest.raises(KeyboardInterrupt):
        os.kill(os.getpid(), signal.SIGTERM)
        os.kill(os.getpid(), signal.SIGINT)


def test_a_launcher_that_passes_on_the_same_ctrl_c_is_no_second_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WORLD_SIZE", "2")
    now = [100.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    with Interruption().listening():
        os.kill(os.getpid(), signal.SIGINT)
        now[0] += SAME_WISH
        os.kill(os.getpid(), signal.SIGINT)
        now[0] += 0.1
        with pytest.raises(KeyboardInterrupt):
            os.kill(os.getpid(), signal.SIGINT)


def test_former_handlers_come_back_after_an_error() -> None:
    def own(*_: object) -> None:
        raise AssertionError

    before = signal.signal(signal.SIGTERM, own)
    try:
        with pytest.raises(ValueError, match="x"), Interruption().listening():
            assert signal.getsignal(signal.SIGTERM) is not own
            raise ValueError("x")
        assert signal.getsignal(signal.SIGTERM) is own
    finally:
        signal.signal(signal.SIGTERM, before)


def test_nothing_changes_in_another_thread() -> None:
    before = [signal.getsignal(number) for number in SIGNALS]
    inside: list[object] = []

    def work() -> None:
        with Interruption().listening():
            inside.extend(signal.getsignal(number) for number in SIGNALS)

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert inside == before


def test_what_was_ignored_stays_ignored() -> None:
    """A shell lets its background commands ignore SIGINT."""
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        interruption = Interruption()
        with interruption.listening():
            assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
            os.kill(os.getpid(), signal.SIGINT)
            assert not interruption.requested()
            os.kill(os.getpid(), signal.SIGTERM)
            assert interruption.requested()
        assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGINT, before)


def test_a_background_command_of_a_shell() -> None:
    code = (
        "import os, signal\nfrom harness.running.processes import Interruption\nasked = Interruption()\n"
        "with asked.listening():\n    os.kill(os.getpid(), signal.SIGINT)\nprint(asked.requested())\n"
    )
    command = f"{sys.executable} -c '{code}' & wait"
    done = subprocess.run(["sh", "-c", command], capture_output=True, text=True, check=True)
    assert (done.stdout, done.stderr) == ("False\n", "")


def test_a_stop_is_a_keyboard_interrupt_with_a_message() -> None:
    assert isinstance(Interrupted(), KeyboardInterrupt)
    assert Interrupted("Resume with ...").message == str(Interrupted("Resume with ...")) == "Resume with ..."
