"""The training loop that all fits share."""

from __future__ import annotations
