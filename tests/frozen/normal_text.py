"""What is compared of an output: its text without times, digests, versions and folders, and with rounded numbers.

Numbers keep `DIGITS` significant digits, since processors differ in the last ones. Those of a tiny network keep
`NETWORK_DIGITS`: kernels of torch differ more. On another machine with the same versions of packages the digests are
thus the same, unless a number lies at an edge of rounding, or two answers of a network have almost the same score.
"""

from __future__ import annotations

import hashlib
import json
import re
from html.parser import HTMLParser
from typing import Any

DIGITS, NETWORK_DIGITS = 10, 4
NETWORKS = ("encoder", "decoder", "four", "two", "models", "kinds")
"""Parts of names of outputs whose numbers come from a network."""
DROPPED = frozenset(
    "seconds created started finished harness reused asked digest inputs_digest weights files torch transformers "
    "tokenizers retrieved_timestamp evaluation_id".split()
)
"""Keys of JSON objects that times, ids and versions are kept under."""
MASKS = (
    (re.compile(r"127\.0\.0\.1:\d+"), "HOST"),
    (re.compile(r"\b20\d\d-\d\d-\d\d([T ]\d\d:\d\d(:\d\d)?(\.\d+)?(Z|[+-]\d\d:\d\d)?( UTC)?)?"), "TIME"),
    (re.compile(r"\b\d{1,2} (Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)[a-z]* 20\d\d\b"), "DATE"),
    (re.compile(r"(?<![.\w])(?=[0-9a-f]*[a-f])(?=[0-9a-f]*[0-9])[0-9a-f]{8,64}\b"), "DIGEST"),
    (re.compile(r"(?<![.\w])\d[\d,.]*( |\xa0| )?(ms|s|min|h)\b(?!\w)"), "SECONDS"),
)
NUMBER = re.compile(r"(?<![\w.])-?\d+\.\d+(e[+-]?\d+)?(?![\d.])")
VOID = frozenset("area br col hr img input link meta source wbr".split())
"""Elements without an end."""
SILENT = frozenset({"script", "style"})


def digest_text(text: str) -> str:
    """Return the first 16 hexadecimal digits of a text's SHA-256."""
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def normal_text(name: str, text: str) -> str:
    """Return what is compared of an output's text; the end of the name says whether it is JSON or a page."""
    if name.endswith((".json", ".jsonl")):
        lines = text.splitlines() if name.endswith("l") else [text]
        text = "\n".join(_dump(json.loads(line)) for line in lines)
    elif name.endswith((".html", ".svg", ".xml")):
        text = text.replace("><", ">\n<")
    for pattern, mask in MASKS:
        text = pattern.sub(mask, text)
    digits = NETWORK_DIGITS if set(NETWORKS) & set(re.split(r"[/.]", name)) else DIGITS
    text = NUMBER.sub(lambda match: _rounded(match[0], digits), text)
    return "".join(line.rstrip() + "\n" for line in text.splitlines())


def _dump(value: Any) -> str:
    return json.dumps(_without_dropped(value), ensure_ascii=False, indent=1, sort_keys=True)


def _without_dropped(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without_dropped(item) for key, item in value.items() if key not in DROPPED}
    return [_without_dropped(item) for item in value] if isinstance(value, list) else value


def _rounded(number: str, digits: int) -> str:
    significant = number.partition("e")[0].lstrip("-0.").replace(".", "")
    return number if len(significant) <= digits else f"{float(number):.{digits}g}"


class _Outline(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.lines: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag in VOID:
            return
        named = dict(attrs)
        self.open.append(".".join(filter(None, [tag, named.get("id"), named.get("class")])))

    def handle_endtag(self, tag: str) -> None:
        while self.open and self.open.pop().partition(".")[0] != tag:
            pass

    def handle_data(self, data: str) -> None:
        text = " ".join(data.split())
        if text and not (self.open and self.open[-1].partition(".")[0] in SILENT):
            self.lines.append(f"{' '.join(self.open[-1:])}: {text}")


def outline(page: str) -> str:
    """Return the texts of a page, one per line after the element that holds it: tag, id and classes."""
    parser = _Outline()
    parser.feed(page)
    return "\n".join(parser.lines) + "\n"
