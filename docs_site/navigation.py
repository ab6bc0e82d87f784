"""The navigation and the home page, both from ``docs/README.md``: a new page is one line there."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any, Protocol

HEADING = re.compile(r"^(##|###) (.+)$")
ENTRY = re.compile(r"^[-*] \[([^\]]+)\]\(([^)#\s]+\.md)\)")


class Listed(Protocol):
    """A page that is not in the index, and its section."""

    @property
    def section(self) -> str:
        """Its section: a heading of the index."""
        ...

    @property
    def title(self) -> str:
        """Its name in the navigation."""
        ...

    @property
    def path(self) -> str:
        """Its path below the documentation's folder."""
        ...


def navigation(index: str, generated: Sequence[Listed]) -> list[Any]:
    """Return the navigation for MkDocs: one section per heading of level 2, one group per heading of level 3.

    Raises `ValueError` if the index has no section for a generated page.
    """
    sections: dict[str, list[Any]] = {}
    entries: list[Any] = []
    for level, title, path in _lines(index):
        if level == 2:
            entries = sections.setdefault(title, [])
            section = entries
        elif level == 3:
            entries = []
            section.append({title: entries})
        elif not sections:
            raise ValueError(f"docs/README.md lists {path!r} before its first heading of level 2")
        else:
            entries.append({title: path})
    for page in generated:
        if page.section not in sections:
            raise ValueError(f"docs/README.md has no section {page.section!r} for the page {page.path!r}")
        sections[page.section].append({page.title: page.path})
    return [{"Home": "README.md"}, *({title: pages} for title, pages in sections.items())]


def indexed_pages(index: str) -> list[str]:
    """Return the paths of the pages that the index lists, in its order."""
    return [path for level, _, path in _lines(index) if not level]


def _lines(index: str) -> Iterator[tuple[int, str, str]]:
    """Yield (level, heading, "") of headings and (0, title, path) of entries."""
    for line in index.splitlines():
        if heading := HEADING.match(line):
            yield len(heading[1]), heading[2], ""
        elif entry := ENTRY.match(line):
            yield 0, entry[1], entry[2]


def home(readme: str, index: str, generated: Sequence[Listed] = ()) -> str:
    """Return the home page: the README up to its first section, then the index without its title.

    Links of the README are relative to the root of the repository, those of the index to ``docs``. Generated
    pages are at the end of their sections.
    """
    opening = readme.partition("\n## ")[0]
    opening = re.sub(r"\]\(docs/", "](", opening)
    opening = re.sub(r"\]\((CHANGELOG|CONTRIBUTING)\.md\)", r"](../\1.md)", opening)
    sections = re.split(r"^(?=## )", index.partition("\n")[2], flags=re.MULTILINE)
    listed = []
    for section in sections:
        title = section.partition("\n")[0].removeprefix("## ")
        pages = [f"- [{page.title}]({page.path})" for page in generated if page.section == title]
        listed.append("\n\n".join(part for part in (section.strip(), "\n".join(pages)) if part))
    return "\n\n".join(part for part in (opening.rstrip(), *listed) if part) + "\n"
