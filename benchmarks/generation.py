"""Generation of colorless-green treebanks: sentences of output a CPU second, in both modes, from file to file.

The limit is 3,000 sentences a second in each mode. Without --treebank the treebank is made up of Hindi sentences of
about 14 words, in which adjectives, possessors, auxiliaries and adpositions agree.
Run: make bench, or python -m benchmarks.generation [--treebank FILE --language CODE] [--sentences N] [--rounds N]
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console
from rich.table import Table

from benchmarks.measuring import record
from harness.data.readers.conllu import read_sentences
from harness_vyakarana.colorless import generate_file
from harness_vyakarana.donors import MODES
from harness_vyakarana.grammar import load_grammars
from harness_vyakarana.treebank import Job

LIMIT = 3_000
LETTERS = "कखगचजटडतदनपबमरलवसह"
NOUN = "Case={case}|Gender={gender}|Number=Sing|Person=3"
AGREEING = {"Masc": ("का", "मेरा", "बड़ा", "गया", "था", "ा"), "Fem": ("की", "मेरी", "बड़ी", "गयी", "थी", "ी")}


def _stem(number: int) -> str:
    """Return three letters, another stem for each of the first 5,832 numbers."""
    count = len(LETTERS)
    return "".join(LETTERS[number // count**power % count] + "ो" * (power < 2) for power in range(3))


def made_up(sentences: int) -> str:
    """Return a Hindi treebank in CoNLL-U; every noun is of one of 2,000 stems."""
    lines: list[str] = []
    for number in range(sentences):
        gender = ("Masc", "Fem")[number % 2]
        genitive, mine, big, went, was, ending = AGREEING[gender]
        feats = f"Case=Nom|Gender={gender}|Number=Sing"
        stems = [_stem((number * 7 + place * 613) % 2_000) for place in range(4)]
        rows = [
            (mine, "मैं", "PRON", f"Gender={gender}|Number=Sing|Poss=Yes", 6, "nmod"),
            (stems[0] + "ा", stems[0] + "ा", "NOUN", NOUN.format(case="Acc", gender="Masc"), 6, "nmod"),
            (genitive, "का", "ADP", feats, 2, "case"),
            ("बहुत", "बहुत", "ADV", "_", 5, "advmod"),
            (big, "बड़ा", "ADJ", feats, 6, "amod"),
            (
                stems[1] + ending,
                stems[1] + ending,
                "NOUN",
                NOUN.format(case="Nom", gender=gender),
                12,
                "nsubj",
            ),
            ("और", "और", "CCONJ", "_", 8, "cc"),
            (stems[2], stems[2], "PROPN", NOUN.format(case="Acc", gender="Masc"), 6, "conj"),
            (stems[3], stems[3], "NOUN", NOUN.format(case="Acc", gender="Masc"), 12, "obl"),
            ("में", "में", "ADP", "_", 9, "case"),
            ("जल्दी", "जल्दी", "ADV", "_", 12, "advmod"),
            (went, "जाना", "VERB", f"Aspect=Perf|Gender={gender}|Number=Sing|VerbForm=Part", 0, "root"),
            (was, "था", "AUX", f"Gender={gender}|Number=Sing|Tense=Past", 12, "aux"),
            ("।", "।", "PUNCT", "_", 12, "punct"),
        ]
        lines.append(f"# sent_id = s{number}")
        lines += [
            f"{place}\t{form}\t{lemma}\t{upos}\t_\t{feats}\t{head}\t{deprel}\t_\t_"
            for place, (form, lemma, upos, feats, head, deprel) in enumerate(rows, start=1)
        ]
        lines.append("")
    return "\n".join(lines) + "\n"


def measure(path: Path, language: str, rounds: int) -> list[tuple[str, float, float]]:
    """Return (mode, sentences, words) of output a CPU second, medians of the rounds."""
    grammars = load_grammars()
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        job = Job(source=path, target=Path(folder) / "made.conllu", language=language)
        for mode in MODES:
            seconds = []
            for _ in range(rounds):
                started = time.process_time()
                report = generate_file(job, grammars[job.language], mode)
                seconds.append(time.process_time() - started)
            median = statistics.median(seconds)
            assert sum(1 for _ in read_sentences(job.target)) == report.written
            rows.append((mode, report.written / median, sum(report.words.values()) / median))
    return rows


def _show(name: str, rows: Sequence[tuple[str, float, float]]) -> None:
    table = Table(name, "sentences a CPU second", "words", "limit, sentences", title_justify="left")
    for mode, sentences, words in rows:
        table.add_row(mode, f"{sentences:,.0f}", f"{words:,.0f}", f"{LIMIT:,}")
    Console(width=110).print(table)


def main(arguments: list[str] | None = None) -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--treebank", type=Path, help="a CoNLL-U file; otherwise one is made up")
    parser.add_argument("--language", default="hi", help="of --treebank")
    parser.add_argument("--sentences", type=int, default=1_000, help="of the treebank that is made up")
    parser.add_argument("--rounds", type=int, default=3)
    given = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as folder:
        path, language = given.treebank, given.language
        if path is None:
            path, language = Path(folder) / "hi_made-ud-test.conllu", "hi"
            path.write_text(made_up(given.sentences), encoding="utf-8")
        rows = measure(path, language, given.rounds)
    _show(path.name, rows)
    for mode, rate, _ in rows:
        record(f"generation, mode {mode}: sentences/CPU s", rate, LIMIT, least=True)


if __name__ == "__main__":
    main()
