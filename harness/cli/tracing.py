"""Whether tracebacks are shown."""

from __future__ import annotations

from contextvars import ContextVar

DEBUG: ContextVar[bool] = ContextVar("DEBUG", default=False)
"""Whether the command line has ``--debug``."""
