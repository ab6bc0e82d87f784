"""Calls of third-party code: named while they hang, and the standard streams restored."""

from __future__ import annotations

import faulthandler
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import TextIO, TypeVar

SECONDS = 5.0
"""How long third-party code may take before it is named."""
Result = TypeVar("Result")
_foreign_streams: list[TextIO] = []
"""Streams that plugins set, kept for good: one that is garbage-collected closes the stream that it wraps."""


def call_named(function: Callable[[], Result], label: str) -> Result:
    """Call third-party code; after 5 s the stack is printed on stderr, with `label` as the name of a file.

    The timer of `faulthandler` is in C: it needs neither threads, signals nor the interpreter, so it also works while
    C code blocks. It prints only the stack, so the sentence is where the name of a file is.
    """
    if sys.__stderr__ is None:
        return function()
    call = compile("function()", label, "eval")
    faulthandler.dump_traceback_later(SECONDS, file=2)
    try:
        value: Result = eval(call, {"function": function})  # noqa: S307  a text of our own
        return value
    finally:
        faulthandler.cancel_dump_traceback_later()


@contextmanager
def kept_streams() -> Iterator[list[str]]:
    """Restore ``sys.stdout`` and ``sys.stderr`` after third-party code; the list then says what was done to them."""
    faults: list[str] = []
    streams = [(name, getattr(sys, name, None)) for name in ("stdout", "stderr")]
    saved = [(name, stream, _opening(stream)) for name, stream in streams if stream is not None]
    try:
        yield faults
    finally:
        for name, stream, open_again in saved:
            current = getattr(sys, name, None)
            closed = _is_closed(stream)
            if closed or current is not stream:
                faults.append(f"{'closed' if closed else 'replaced'} sys.{name}")
                with suppress(OSError):
                    setattr(sys, name, open_again() if closed else stream)
            if current is not None and current is not stream:
                _foreign_streams.append(current)
                with suppress(Exception):
                    current.flush()


def _opening(stream: TextIO) -> Callable[[], TextIO]:
    """Return the function that opens a stream again; closing a standard stream leaves its descriptor open."""
    try:
        descriptor, encoding, errors = stream.fileno(), stream.encoding, stream.errors
    except (AttributeError, OSError, ValueError):  # a notebook's, or one of a test
        return lambda: stream
    return lambda: open(descriptor, "w", 1, encoding=encoding, errors=errors, closefd=False)


def _is_closed(stream: TextIO) -> bool:
    try:
        return bool(getattr(stream, "closed", False))
    except ValueError:  # its buffer was detached
        return True
