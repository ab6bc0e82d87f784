"""The table of all tasks in ``docs/tasks.md``, made from the specs.

Write it anew with ``python -m docs_site.task_table``; a test compares it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

from harness.running.session import open_session
from harness.specs.catalog import Catalog
from harness.specs.schema import TaskSpec

DOCS = Path(__file__).resolve().parents[1] / "docs"
PAGE = DOCS / "tasks.md"
HEAD = "| task | kind | languages | items | data | trained on | licence |"


def task_table(catalog: Catalog) -> str:
    """Return the Markdown table: one row a task, in the order of their names."""
    pages = _pages()
    rows = [_row(name, catalog, pages) for name in catalog.names("task")]
    return "\n".join([HEAD, "|---|---|---|---|---|---|---|", *rows])


def replaced(text: str, table: str) -> str:
    """Return the text of the page with another table; raises `ValueError` where it has none."""
    lines = text.splitlines()
    if HEAD not in lines:
        raise ValueError(f"the page has no line {HEAD!r}")
    start = lines.index(HEAD)
    end = next((at for at in range(start, len(lines)) if not lines[at].startswith("|")), len(lines))
    return "\n".join([*lines[:start], table, *lines[end:]]) + "\n"


def _pages() -> Mapping[str, str]:
    """Return the page of every task: that whose first table has it in its head."""
    found = {}
    for path in sorted((DOCS / "benchmarks").glob("*.md")):
        head = re.search(r"^\| task \|.*$", path.read_text(encoding="utf-8"), re.MULTILINE)
        for name in re.findall(r"`(\w+)`", head[0]) if head else ():
            found[name] = path.name
    return found


def _row(name: str, catalog: Catalog, pages: Mapping[str, str]) -> str:
    entry = catalog.task(name)
    own = len(entry.spec.languages) - len(entry.added)
    languages = f"{own} + {len(entry.added)}" if entry.added else str(own)
    stages = entry.spec.transfer.stages if entry.spec.transfer is not None else ()
    cells = (
        f"[`{name}`](benchmarks/{pages[name]})" if name in pages else f"`{name}`",
        f"`{entry.spec.kind}`",
        languages,
        _items(entry.spec),
        _data(entry.spec),
        ", ".join(f"`{stage}`" for stage in stages),
        entry.spec.license,
    )
    return f"| {' | '.join(cells)} |"


def _items(spec: TaskSpec) -> str:
    """Return how many items a language has in the published test sets; empty where no spec says it."""
    counts = [
        count
        for release in spec.releases.values()
        for count in ([release.counts] if isinstance(release.counts, int) else release.counts.values())
    ]
    if not counts:
        return ""
    fewest, most = min(counts), max(counts)
    return f"{fewest:,}" if fewest == most else f"{fewest:,} to {most:,}"


def _data(spec: TaskSpec) -> str:
    """Return from where test data are read: files, the Hub, the web, or made by the harness."""
    sources = [source for code in spec.languages if (source := spec.source(code, "test")) is not None]
    kinds = {
        "files": any(source.local is not None for source in sources),
        "Hub": any(source.hub is not None for source in sources),
        "web": any(source.web is not None for source in sources),
    }
    return ", ".join(kind for kind, known in kinds.items() if known)


if __name__ == "__main__":
    PAGE.write_text(
        replaced(PAGE.read_text(encoding="utf-8"), task_table(open_session().catalog)), encoding="utf-8"
    )
