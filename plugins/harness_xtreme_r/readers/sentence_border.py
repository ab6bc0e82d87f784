"""Where English sentences end: a heuristic of our own for SQuAD paragraphs, which have no sentence breaks.

A sentence ends at full stops, question or exclamation marks, together with the quotes, brackets and footnote
signs (``[12]``, ``[note 1]``) behind them, when white space and then a capital letter or a digit follow,
perhaps behind opening quotes or brackets. It does not end at a full stop after one of `ABBREVIATIONS`, nor after
initials (``J. Smith``, ``the U.S. Army``) unless a word that often begins a sentence follows (`OPENERS`).

The released training code uses a heuristic too (google-research/xtreme ``third_party/processors/sb_sed.py``),
with other rules.
"""

from __future__ import annotations

import re
from typing import Final

ABBREVIATIONS: Final = frozenset(
    "Adm Aug Bros Capt Col Dec Dr Fr Ft Gen Gov Inc Jan Jr Lt Ltd Maj Messrs Mr Mrs Ms Mt No Nos Nov Oct Op Pres "
    "Prof Rep Rev Sec Sen Sgt Sr St Sta Ste Vol al approx art b c ca cf ch d e.g eds est etc fl i.e p pp r v vol "
    "vs a.k.a".split()
)
"""Words, without their last full stop, that a full stop does not end a sentence after."""

OPENERS: Final = frozenset(
    "After Although An As At By During For He However If In It Its Many On Several She Since The Their There "
    "These They This Those To Under When While With".split()
)
"""Words that begin a sentence even after initials (``in the U.S. The ...``)."""

_BORDER: Final = re.compile(
    r"""(?P<marks>[.?!]+)(?P<behind>["'”’)\]]*(?:\[[^\[\]]{1,20}\])*)\s+(?=["'“‘(\[]*(?P<next>[^\W_]+))"""
)
_LONGEST_ABBREVIATION: Final = 8


def sentence_spans(text: str) -> list[tuple[int, int]]:
    """Return start and end of every sentence of a text, in code points, without the white space around."""
    spans = []
    start = len(text) - len(text.lstrip())
    for match in _BORDER.finditer(text):
        if _ends_sentence(match, text):
            spans.append((start, match.end("behind")))
            start = match.end()
    end = len(text.rstrip())
    if start < end:
        spans.append((start, end))
    return spans


def _ends_sentence(match: re.Match[str], text: str) -> bool:
    following = match["next"]
    if not (following[0].isupper() or following[0].isdigit()):
        return False
    if match["marks"] != "." or match["behind"]:
        return True
    before = text[max(0, match.start() - _LONGEST_ABBREVIATION) : match.start()]
    word = re.split(r"[\s\"'“‘(\[]", before)[-1]
    if word in ABBREVIATIONS:
        return False
    initials = all(len(part) == 1 and part.isupper() for part in word.split("."))
    return following in OPENERS or not initials
