"""lm-eval's rules of IFEval on answers, run by its own Python: ``python peer_rules.py CASES VERDICTS``."""

from __future__ import annotations

import importlib
import json
import sys
from pathlib import Path
from typing import Any


def main() -> None:
    """Write for each case, a pair of instruction and answer, lm-eval's strict and loose verdict."""
    punkt: Any = importlib.import_module("nltk.tokenize.punkt")
    nltk: Any = importlib.import_module("nltk")
    # Without downloads, Punkt runs untrained: its algorithm without the abbreviations that it has learnt.
    nltk.download = lambda *_, **__: True
    nltk.data.find = lambda *_, **__: None
    treebank: Any = importlib.import_module("nltk.tokenize.destructive")
    util: Any = importlib.import_module("lm_eval.tasks.ifeval.instructions_util")
    scoring: Any = importlib.import_module("lm_eval.tasks.ifeval.utils")
    util._get_sentence_tokenizer = punkt.PunktSentenceTokenizer
    nltk.word_tokenize = treebank.NLTKWordTokenizer().tokenize
    langdetect: Any = importlib.import_module("langdetect")
    langdetect.DetectorFactory.seed = 0
    verdicts = []
    for identifier, values, prompt, answer in json.loads(Path(sys.argv[1]).read_text(encoding="utf-8")):
        item = scoring.InputExample(key=0, instruction_id_list=[identifier], prompt=prompt, kwargs=[values])
        strict = scoring.test_instruction_following_strict(item, answer)
        loose = scoring.test_instruction_following_loose(item, answer)
        verdicts.append([strict.follow_all_instructions, loose.follow_all_instructions])
    Path(sys.argv[2]).write_text(json.dumps(verdicts), encoding="utf-8")


if __name__ == "__main__":
    main()
