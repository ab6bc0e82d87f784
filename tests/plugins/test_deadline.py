"""The limit of imports: what it interrupts and reports, and that the alarm of other code is left alone."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Iterator
from types import FrameType

import pytest

from harness.errors import UsageError
from harness.registry.deadline import TIMEOUT_VARIABLE, HangingError, Watch, patience


@pytest.fixture(autouse=True)
def _free_alarm() -> Iterator[None]:
    handler = signal.signal(signal.SIGALRM, signal.SIG_DFL)
    yield
    signal.setitimer(signal.ITIMER_REAL, 0)
    signal.signal(signal.SIGALRM, handler)


def _state() -> tuple[object, tuple[float, float], int]:
    return signal.getsignal(signal.SIGALRM), signal.getitimer(signal.ITIMER_REAL), threading.active_count()


def test_five_seconds_unless_the_environment_says_otherwise(monkeypatch: pytest.MonkeyPatch) -> None:
    assert patience() == 5.0
    for given, seconds in (("0", 0.0), (" 2.5 ", 2.5), ("", 5.0)):
        monkeypatch.setenv(TIMEOUT_VARIABLE, given)
        assert patience() == seconds
    for given in ("soon", "-1", "nan", "inf"):
        monkeypatch.setenv(TIMEOUT_VARIABLE, given)
        with pytest.raises(UsageError, match=TIMEOUT_VARIABLE):
            patience()


def test_what_hangs_is_interrupted_and_what_comes_after_it_is_not() -> None:
    before = _state()
    reported: list[str] = []
    with Watch(0.2, reported.append) as watch:
        began = time.monotonic()
        with pytest.raises(HangingError), watch.over("first"):
            time.sleep(600)
        assert 0.15 < time.monotonic() - began < 300
        with watch.over("second"):
            pass
        time.sleep(0.5)
    assert reported == []
    assert _state() == before


def test_other_errors_pass_and_the_timer_ends() -> None:
    before = _state()
    with pytest.raises(KeyError), Watch(0.2, print) as watch, watch.over("first"):
        raise KeyError("x")
    assert _state() == before
    time.sleep(0.4)


def test_ours_are_not_interrupted() -> None:
    reported: list[str] = []
    with Watch(0.1, reported.append) as watch, watch.over("core", lambda: False):
        time.sleep(1.2)
    assert reported == ["core"]


def test_no_limit() -> None:
    before = _state()
    with Watch(0.0, print) as watch, watch.over("first"):
        assert _state() == before
        time.sleep(0.3)


def test_an_alarm_of_the_user_is_left_alone() -> None:
    rung: list[int] = []

    def ring(number: int, frame: FrameType | None) -> None:
        rung.append(number)

    signal.signal(signal.SIGALRM, ring)
    signal.setitimer(signal.ITIMER_REAL, 0.5)
    reported: list[str] = []
    with Watch(0.1, reported.append) as watch, watch.over("first"):
        until = time.monotonic() + 1.2
        while time.monotonic() < until:
            time.sleep(0.05)
    assert rung == [signal.SIGALRM]
    assert reported == ["first"]
    assert signal.getsignal(signal.SIGALRM) is ring


def test_a_plugin_that_takes_the_alarm_keeps_it() -> None:
    rung: list[int] = []

    def ring(number: int, frame: FrameType | None) -> None:
        rung.append(number)

    with Watch(0.2, print) as watch:
        with watch.over("first"):
            signal.signal(signal.SIGALRM, ring)
            signal.setitimer(signal.ITIMER_REAL, 0.4)
        with watch.over("second"):
            time.sleep(0.1)
    assert signal.getsignal(signal.SIGALRM) is ring
    until = time.monotonic() + 5
    while not rung and time.monotonic() < until:
        time.sleep(0.05)
    assert rung == [signal.SIGALRM]


def test_in_another_thread_it_is_only_reported() -> None:
    before = _state()
    reported: list[str] = []
    done: list[bool] = []

    def work() -> None:
        with Watch(0.1, reported.append) as watch, watch.over("first"):
            time.sleep(1.2)
        done.append(True)

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert (reported, done) == (["first"], [True])
    assert _state() == before


def test_the_users_stop_is_distinguished_from_a_plugins() -> None:
    handler = signal.getsignal(signal.SIGINT)
    with Watch(5.0, print) as watch:
        assert not watch.is_stop(KeyboardInterrupt())
        with pytest.raises(KeyboardInterrupt) as caught:
            signal.raise_signal(signal.SIGINT)
        assert watch.is_stop(caught.value)
        assert not watch.is_stop(SystemExit())
    assert signal.getsignal(signal.SIGINT) is handler
    signal.signal(signal.SIGINT, lambda number, frame: None)
    try:
        with Watch(5.0, print) as watch:
            assert watch.is_stop(KeyboardInterrupt())
    finally:
        signal.signal(signal.SIGINT, handler)


def test_one_inside_another_leaves_the_outer_one() -> None:
    with Watch(0.3, print) as outer:
        with pytest.raises(HangingError), outer.over("first"):
            with Watch(0.1, lambda _: None) as inner, inner.over("second"):
                pass
            time.sleep(20)
