"""The language of an lm-eval task, read from the names in its file."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any

from harness.languages import known_languages

_LOCALE = re.compile(r"([A-Za-z]{2})[_-][A-Z]{2}")
"""A language with its country: ``HI_IN`` is Hindi, though ``in`` alone once meant Indonesian."""
_PAIR = re.compile(r"[a-z]{2,3}[_-][a-z]{2}")
_LEAST_WORD = 4
"""Letters of a name such as ``thai``; shorter ends are often words: ``physics_gre``, ``meta_ar_msa``."""


def read_language(data: Mapping[str, Any]) -> tuple[str, str] | None:
    """Return the language code and the key that it comes from, ``dataset_name`` or ``task``; None without one.

    A code that is only the end of a longer name counts where no other part of the task's name is a code:
    ``blimp_nl__om_te`` is not Telugu.
    """
    for key in ("dataset_name", "task"):
        name = str(data.get(key) or "")
        for part in _whole_codes(name):
            code = known_code(part)
            if code is not None:
                return code, key
        code = _ending(name, str(data.get("task") or ""))
        if code is not None:
            return code, key
    return None


def _whole_codes(name: str) -> Iterator[str]:
    """Yield full codes: the name, the language of ``HI_IN``, and ``swh_Latn`` at its end."""
    yield name
    locale = _LOCALE.fullmatch(name)
    if locale is not None:
        yield locale.group(1).lower()
    pair = re.split(r"[_.\-]", name)[-2:]
    if len(pair) == 2 and len(pair[1]) == _LEAST_WORD:
        yield "_".join(pair)


def _ending(name: str, task: str) -> str | None:
    parts = re.split(r"[_.\-]", name)
    known = known_languages().listed
    if len(parts[-1]) >= _LEAST_WORD:
        return known_code(parts[-1])
    others = {*parts[:-1], *re.split(r"[_.\-]", task)} - {parts[-1]}
    is_pair = re.search(rf"(?:^|_)[a-z]{{2,3}}-{re.escape(parts[-1])}$", name) is not None
    if parts[-1] not in known or (not is_pair and any(part in known for part in others)):
        return None
    return parts[-1]


@lru_cache(maxsize=65_536)
def known_code(name: str) -> str | None:
    """Return the language code of a name; English names of fewer than four letters are words, ``en_fr`` is a pair."""
    table = known_languages().listed  # codes of three letters are words of tasks: law, med
    code = None if _PAIR.fullmatch(name) else table.code_of(name)
    is_short = code is not None and len(name) < _LEAST_WORD and name.lower() == table.get(code).name.lower()
    return None if is_short and name not in table else code
