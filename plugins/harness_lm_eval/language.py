"""Which language an lm-eval task is in, read off its names: no key of a task file says it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from harness.languages import known_languages

__all__ = ["read_language"]


def read_language(data: Mapping[str, Any]) -> tuple[str, str] | None:
    """Return our code and the key it was read off, ``dataset_name`` or ``task``; None where neither ends in one."""
    table = known_languages()
    for key in ("dataset_name", "task"):
        for part in _endings(str(data.get(key) or "")):
            meant = table.meant_by(part)
            code = part if part in table else meant.rsplit("'", 2)[-2] if meant else None
            if code is not None:
                return code, key
    return None


def _endings(name: str) -> list[str]:
    """Return what may be a language's code in a name: all of it, its last part, and ``swh_Latn`` at its end."""
    parts = re.split(r"[_.\-]", name)
    return [part for part in dict.fromkeys([name, "_".join(parts[-2:]), parts[-1]]) if part]
