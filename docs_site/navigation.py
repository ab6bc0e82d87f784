"""The navigation and the home page, both from ``docs/README.md``: who adds a page adds one line there."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any, Protocol

__all__ = ["Listed", "home", "indexed_pages", "navigation"]

HEADING = re.compile(r"^(##|###) (.+)$")
ENTRY = re.compile(r"^[-*] \[([^\]]+)\]\(([^)#\s]+\.md)\)")


class Listed(Protocol):
    """A page that is not in the index, and where it stands."""

    @property
    def section(self) -> str:
        """Heading of the index under which it stands."""
        ...

    @property
    def title(self) -> str:
        """Its name in the navigation."""
        ...

    @property
    def path(self) -> str:
        """Where it lies, below the documentation's folder."""
        ...


def navigation(index: str, generated: Sequence[Listed]) -> list[Any]:
    """Return the navigation as MkDocs takes it: a section a heading of level 2, a group a heading of level 3.

    Raises `ValueError` where a generated page wants a section that the index does not have.
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
            raise ValueError(
                f"docs/README.md has no section {page.section!r}, where {page.path!r} shall stand"
            )
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

    The README's links lead from the root of the repository, the index' ones from ``docs``. Generated pages are
    listed at the end of their sections.
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
