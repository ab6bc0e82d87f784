"""Transliteration: tokens a CPU second of the engine ``rules``, uncached and cached, and of code-switching a treebank.

The limit is 100,000 tokens a second for code-switching. Next to it, on the same word types, what is installed of two
peers: anyascii (a table of characters, no schwa deletion) and indic-transliteration (ITRANS, a scholarly scheme).
Without --treebank, the treebank is made up of Hindi and Tamil words with suffixes, every fifth token a new type.
Run: make bench, or python -m benchmarks.transliteration [--treebank FILE --language CODE] [--tokens N] [--rounds N]
"""

from __future__ import annotations

import argparse
import importlib
import statistics
import tempfile
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from benchmarks.measuring import record
from harness.data.readers.conllu import read_sentences
from harness_transliteration.rules import RULES, romanize_word
from harness_vyakarana.code_switch import CodeSwitch, code_switch_file

LIMIT = 100_000
SENTENCE = 20
WORDS = {
    "hi": "सरकार प्रधानमंत्री समझना लड़कियाँ राष्ट्रीय विश्वविद्यालय अंतरिक्ष कार्यक्रम में और".split(),
    "ta": "அவர்கள் குடிபெயர்ந்து வருகின்றனர் முயற்சிகளுக்கு மூன்று இந்த வெற்றி தம்பி என்று மாநிலம்".split(),
}
SUFFIXES = {"hi": "ाििीुूेैोौकखगचजतदनपबमयरलवसह", "ta": "ாிீுூெேைொோகசடதபமயரலவன"}


def made_up(language: str, tokens: int) -> str:
    """Return a treebank of a number of tokens, in CoNLL-U; one token in five is of a type of its own."""
    words, suffixes = WORDS[language], SUFFIXES[language]
    lines: list[str] = []
    for number in range(tokens // SENTENCE):
        forms = []
        for place in range(SENTENCE):
            count = number * SENTENCE + place
            form = words[count * 7 % len(words)]
            if count % 5 == 0:
                for power in range(3):
                    form += suffixes[count // 5 // len(suffixes) ** power % len(suffixes)]
            forms.append(form)
        lines += [f"# sent_id = s{number}", "# text = " + " ".join(forms)]
        for place, form in enumerate(forms, start=1):
            lines.append(f"{place}\t{form}\t{form}\tNOUN\t_\tCase=Nom\t{place - 1}\tdep\t_\t_")
        lines.append("")
    return "\n".join(lines) + "\n"


def _rate(
    run: Callable[[], object], tokens: int, rounds: int, prepare: Callable[[], object] | None = None
) -> float:
    seconds = []
    for _ in range(rounds):
        if prepare is not None:
            prepare()
        started = time.process_time()
        run()
        seconds.append(time.process_time() - started)
    return tokens / statistics.median(seconds)


def _peers() -> dict[str, Callable[[Sequence[str]], list[str]]]:
    """Return what is installed of the peers."""
    peers: dict[str, Callable[[Sequence[str]], list[str]]] = {}
    try:
        anyascii: Any = importlib.import_module("anyascii")
        peers["anyascii"] = lambda words: [anyascii.anyascii(word) for word in words]
    except ImportError:
        pass
    try:
        sanscript: Any = importlib.import_module("indic_transliteration.sanscript")
        peers["indic-transliteration"] = lambda words: [
            sanscript.transliterate(word, "devanagari" if word[0] < "\u0b80" else "tamil", "itrans")
            for word in words
        ]
    except ImportError:
        pass
    return peers


def measure(path: Path, language: str, rounds: int) -> list[tuple[str, float]]:
    """Return (what, words or tokens a CPU second, median of the rounds) for one treebank."""
    forms = [token.form for sentence in read_sentences(path) for token in sentence.tokens]
    types = sorted({form for form in forms if not form.isascii()})
    clear = romanize_word.cache_clear
    rows = [
        (title, _rate(partial(RULES.transliterate, words, language), len(words), rounds, clear))
        for title, words in (("rules, types, uncached", types), ("rules, tokens, cached by type", forms))
    ]
    for name, peer in _peers().items():
        rows.append((f"{name}, types", _rate(partial(peer, types), len(types), rounds)))
    whole = CodeSwitch(engine=RULES, language=language)
    part = CodeSwitch(engine=RULES, language=language, ratio=0.5, noise=0.2)
    with tempfile.TemporaryDirectory() as folder:
        for title, switch in (("code-switch, file to file", whole), ("half of it, with noise", part)):
            run = partial(code_switch_file, path, Path(folder) / "switched.conllu", switch)
            rows.append((title, _rate(run, len(forms), rounds, clear)))
    return rows


def _show(language: str, rows: Sequence[tuple[str, float]]) -> None:
    table = Table(language, "a CPU second", "ratio to rules, uncached", "limit", title_justify="left")
    for name, rate in rows:
        limit = f"{LIMIT:,}" if name.startswith("code-switch") else ""
        table.add_row(name, f"{rate:,.0f}", f"{rate / rows[0][1]:.2f}", limit)
    Console(width=110).print(table)


def main(arguments: list[str] | None = None) -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--treebank", type=Path, help="a CoNLL-U file; otherwise one is made up")
    parser.add_argument("--language", default="hi", help="of --treebank")
    parser.add_argument("--tokens", type=int, default=40_000, help="of each treebank that is made up")
    parser.add_argument("--rounds", type=int, default=5)
    given = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as folder:
        treebanks = {given.language: given.treebank} if given.treebank else {}
        if not treebanks:
            for language in WORDS:
                treebanks[language] = Path(folder) / f"{language}.conllu"
                treebanks[language].write_text(made_up(language, given.tokens), encoding="utf-8")
        for language, path in treebanks.items():
            rows = measure(path, language, given.rounds)
            _show(language, rows)
            rate = min(rate for name, rate in rows if name.startswith("code-switch"))
            record(f"code-switching of {language}: tokens/CPU s", rate, LIMIT, least=True)


if __name__ == "__main__":
    main()
