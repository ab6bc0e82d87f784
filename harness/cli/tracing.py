"""Whether tracebacks are shown."""

from __future__ import annotations

from contextvars import ContextVar

__all__ = ["DEBUG"]

DEBUG: ContextVar[bool] = ContextVar("DEBUG", default=False)
"""Whether the command line has ``--debug``."""
