"""The engine ``indictrans``: the error if it is not installed, and the use of its answers."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

from harness.errors import PluginError, UsageError
from harness.running.session import open_session
from harness_transliteration import indictrans
from harness_transliteration.indictrans import INDICTRANS
from tests.builders import released_data

PACKAGE = "indictrans.utils.Transliterator"


@pytest.fixture(autouse=True)
def _fresh() -> Iterator[None]:
    indictrans._word.cache_clear()
    indictrans._engine.cache_clear()
    yield
    indictrans._word.cache_clear()
    indictrans._engine.cache_clear()


def _install(monkeypatch: pytest.MonkeyPatch, module: ModuleType) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: object())
    monkeypatch.setitem(sys.modules, PACKAGE, module)


def _package(asked: list[str]) -> ModuleType:
    class Transliterator:
        def __init__(self, *, source: str, target: str, build_lookup: bool) -> None:
            assert (source, target) == ("tam", "eng")

        def convert(self, word: str) -> str:
            asked.append(word)
            return "" if word == "…" else "latin"

    module = ModuleType(PACKAGE)
    module.Transliterator = Transliterator  # type: ignore[attr-defined]
    return module


def test_it_says_how_to_install_it_and_under_which_licence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    assert INDICTRANS.ready is not None
    with pytest.raises(PluginError, match=r"AGPL-3\.0.*pip install indictrans"):
        INDICTRANS.ready()
    with pytest.raises(PluginError, match="pip install indictrans"):
        indictrans.transliterate(["அ"], "ta")


def test_a_type_is_asked_once_and_ascii_never(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []
    _install(monkeypatch, _package(asked))
    words = ["அவர்", "abc", "அவர்", "…"]
    assert indictrans.transliterate(words, "ta") == ["latin", "abc", "latin", "…"]
    assert asked == ["அவர்", "…"]


def test_a_package_that_does_not_start_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    _install(monkeypatch, ModuleType(PACKAGE))
    with pytest.raises(PluginError, match=r"AttributeError.*--engine rules"):
        indictrans.transliterate(["அ"], "ta")


def test_an_unknown_language_is_rejected() -> None:
    with pytest.raises(UsageError, match="'fr'"):
        indictrans.transliterate(["é"], "fr")


def test_the_registered_engines() -> None:
    engines = open_session().registry.transliterators
    assert {"indictrans", "rules"} <= set(engines.names)
    assert (engines.get("rules").licence, engines.get("indictrans").licence) == (
        "Apache-2.0",
        "AGPL-3.0-only",
    )


def test_it_reproduces_the_released_treebank() -> None:
    """csCG-TTB of Patil et al. (2021), train and dev: every form and lemma."""
    root = released_data()
    if importlib.util.find_spec("indictrans") is None:
        pytest.skip("indictrans is not installed")
    folder = root / "vyakarana" / "tamil"
    for name in ("train.conllu", "dev.conllu"):
        given, released = (_columns(folder / part / name) for part in ("CG-TTB", "csCG-TTB"))
        assert indictrans.transliterate(given, "ta") == released


def _columns(path: Path) -> list[str]:
    lines = [line.split("\t") for line in path.read_text(encoding="utf-8").splitlines() if line[:1].isdigit()]
    return [cell for line in lines for cell in line[1:3]]
