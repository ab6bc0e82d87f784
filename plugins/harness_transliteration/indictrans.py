"""The engine ``indictrans``: the structured perceptrons of Bhat et al. (2014), which made the released csCG treebanks.

The package is under the AGPL and is neither a dependency nor part of an extra: install it separately. It is imported on
first use, when it compiles four Cython files (a C compiler and about 20 s, once), runs in this process, and reads its
models with numpy's unpickler.

Bhat, Mujadia, Tammewar, Bhat and Shrivastava (2014), IIIT-H system submission for FIRE2014 shared task on
transliterated search.
"""

from __future__ import annotations

import importlib.metadata
import importlib.util
from collections.abc import Callable, Sequence
from functools import cache, lru_cache
from typing import Any

from harness import HarnessError, PluginError, UsageError
from harness.data import Transliterator

CODES = {
    **{"as": "asm", "bn": "ben", "gu": "guj", "hi": "hin", "kn": "kan", "kok": "kok", "ml": "mal"},
    **{"mr": "mar", "ne": "nep", "or": "ori", "pa": "pan", "ta": "tam", "te": "tel", "ur": "urd"},
}
"""Codes of the languages that it transliterates into Latin letters, and its own codes."""

_KEPT_TYPES = 1 << 17


def installed_version() -> str:
    """Return the version of the installed package, or ``not installed``."""
    try:
        return importlib.metadata.version("indictrans")
    except importlib.metadata.PackageNotFoundError:
        return "not installed"


def ready() -> None:
    """Raise `PluginError` with the install command unless the package is installed."""
    if importlib.util.find_spec("indictrans") is None:
        raise PluginError(
            "The transliterator 'indictrans' needs the package 'indictrans', which is not installed and is under the "
            "AGPL-3.0.",
            hint="Run: pip install indictrans (302 MB, needs a C compiler), or use --engine rules.",
        )


def transliterate(words: Sequence[str], language: str) -> list[str]:
    """Return the words in Latin letters as the package spells them; each type is computed once and cached.

    Raises `UsageError` for an unknown language and `PluginError` if it is not installed or fails.
    """
    if language not in CODES:
        raise UsageError(
            f"'indictrans' does not know the language {language!r}; it knows {', '.join(CODES)}."
        )
    return [word if word.isascii() else _word(word, language) for word in words]


@lru_cache(maxsize=_KEPT_TYPES)
def _word(word: str, language: str) -> str:
    latin = _engine(language)(word)
    return latin if latin.strip() else word


@cache
def _engine(language: str) -> Callable[[str], str]:
    ready()
    try:
        module: Any = importlib.import_module("indictrans.utils.Transliterator")
        engine = module.Transliterator(source=CODES[language], target="eng", build_lookup=True)
    except HarnessError:
        raise
    except Exception as error:
        # The compiler or a model file can raise anything; all of it is reported.
        raise PluginError(
            f"The package 'indictrans' is installed but does not start: {type(error).__name__}: {error}.",
            hint="It compiles itself when first used: is there a C compiler? --engine rules needs none.",
        ) from error
    convert: Callable[[str], str] = engine.convert
    return convert


INDICTRANS = Transliterator(
    name="indictrans",
    version=installed_version(),
    licence="AGPL-3.0-only",
    languages=frozenset(CODES),
    transliterate=transliterate,
    summary="structured perceptrons (Bhat et al., 2014); spells 100 % of the tokens of the released csCG-TTB alike",
    ready=ready,
)
