"""The conversion of GitHub's Markdown to the site's: info strings of fences, links out of ``docs``."""

from __future__ import annotations

import posixpath
import re

FENCE = re.compile(r"^( *`{3,})([^\n`]*)$(.*?)^\1$", flags=re.MULTILINE | re.DOTALL)
PLAIN = frozenset({"conllu", "tsv"})
"""Languages without a highlighter."""
MOVED = {"../CHANGELOG.md": "project/changelog.md", "../CONTRIBUTING.md": "project/contributing.md"}
"""Files outside ``docs`` that are pages of the site, by their address from the index."""


def site_text(markdown: str, path: str) -> str:
    """Return the text of the page at `path` (below ``docs``) for the site."""
    pieces: list[str] = []
    end = 0
    for fence in FENCE.finditer(markdown):
        pieces += [_relinked(markdown[end : fence.start()], path), _fence(fence)]
        end = fence.end()
    return "".join([*pieces, _relinked(markdown[end:], path)])


def _fence(fence: re.Match[str]) -> str:
    """Return a fence with an info string of the site's Markdown: a title instead of our attributes."""
    ticks, info, body = fence.groups()
    language, *attributes = info.split() or [""]
    given = dict(attribute.split("=", 1) for attribute in attributes)
    title = given.get("file") or ("ends with exit status " + given["status"] if "status" in given else "")
    language = "text" if language in PLAIN else language
    return f'{ticks}{language} title="{title}"{body}{ticks}' if title else f"{ticks}{language}{body}{ticks}"


def _relinked(prose: str, path: str) -> str:
    """Return prose with links to the site's pages instead of files outside ``docs``."""
    folder = posixpath.dirname(path)

    def target(link: re.Match[str]) -> str:
        address, anchor = link[1], link[2] or ""
        moved = MOVED.get(posixpath.normpath(posixpath.join(folder, address)))
        return f"]({posixpath.relpath(moved, folder or '.') if moved else address}{anchor})"

    return re.sub(r"\]\(([^)\s#:]+)(#[^)\s]*)?\)", target, prose)
