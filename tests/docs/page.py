"""The pages of the documentation, their blocks, and the commands that blocks show."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
PAGES = sorted(DOCS.rglob("*.md"))


def page_name(page: Path) -> str:
    """Return the path of a page below ``docs``, without its suffix: ``benchmarks/xnli``."""
    return page.relative_to(DOCS).with_suffix("").as_posix()


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """One fenced block."""

    language: str
    attributes: dict[str, str]
    """``file=NAME`` and ``status=N`` of the info string."""
    lines: tuple[str, ...]
    line: int
    """1-based line of the fence in the page."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """One command of a console block, and the lines that the page shows under it."""

    text: str
    shown: tuple[str, ...]
    status: int
    line: int


def blocks(page: Path) -> Iterator[Block]:
    """Yield the fenced blocks of a page, in their order; those inside of a list lose its indentation."""
    opened: tuple[str, int, int] | None = None
    content: list[str] = []
    for number, text in enumerate(page.read_text(encoding="utf-8").splitlines(), start=1):
        if not text.lstrip(" ").startswith("```"):
            content.append(text)
        elif opened is None:
            fence = text.lstrip(" ")
            opened, content = (fence.removeprefix("```"), number, len(text) - len(fence)), []
        else:
            info, line, indent = opened
            language, *rest = info.split() or [""]
            attributes = dict(item.split("=", 1) for item in rest)
            lines = tuple(text[indent:] for text in content)
            yield Block(language=language, attributes=attributes, lines=lines, line=line)
            opened = None
    assert opened is None, f"{page.name}: the last block is never closed"


def unfenced(page: Path) -> Iterator[int]:
    """Yield the lines of code without a fence: indented or between tildes."""
    before = ""
    fenced = in_list = False
    for number, text in enumerate(page.read_text(encoding="utf-8").splitlines(), start=1):
        fenced ^= text.lstrip(" ").startswith("```")
        if fenced or not text:
            before = text if not fenced else "```"
            continue
        in_list = bool(re.match(r" *([-*]|\d+\.) ", text)) or (in_list and text.startswith(" "))
        if text.startswith("~~~") or (text.startswith("    ") and not before and not in_list):
            yield number
        before = text


def commands(block: Block) -> Iterator[Command]:
    """Yield the commands of a console block, each with the lines under it."""
    starts = [index for index, text in enumerate(block.lines) if text.startswith("$ ")]
    assert starts[:1] == [0], f"line {block.line}: a console block starts with '$ ' and a command"
    for start, end in zip(starts, [*starts[1:], len(block.lines)], strict=True):
        text, *shown = block.lines[start:end]
        while text.endswith("\\"):
            text = text.removesuffix("\\") + shown.pop(0).strip()
        status = int(block.attributes.get("status", 0)) if end == len(block.lines) else 0
        yield Command(
            text=text.removeprefix("$ "), shown=tuple(shown), status=status, line=block.line + start + 1
        )
