"""Compares what all commands make of twelve kinds and four models with what they made when it was frozen.

``python -m tests.frozen [NAME ...]``: the outputs whose names begin with a NAME; default all. Exit status 1 where one
differs. Before a refactoring: ``--reuse DIR --keep OLD``; after it: ``--reuse DIR --against OLD`` prints what changed.
``--update`` writes the digests anew; the commit message then names what changed, and why.
"""

from __future__ import annotations

import argparse
import difflib
import os
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from tests.frozen.commands import OUTPUTS, RUNS
from tests.frozen.normal_text import digest_text
from tests.frozen.workspace import PAGES, Workspace

HERE = Path(__file__).parent
DIGESTS = HERE / "digests.tsv"
TEXTS = HERE / "texts"
TEXT_NAMES = frozenset(f"report/{run}/{end}" for run in PAGES for end in ("console", "html/file.html.txt"))
"""Outputs of which the texts are frozen, so that a change is shown without an older folder."""
MOST_LINES = 40
"""Lines of a difference that are printed."""


def main(arguments: Sequence[str]) -> int:
    """Compare or update; return the exit status."""
    parser = argparse.ArgumentParser(prog="python -m tests.frozen")
    parser.add_argument("names", nargs="*", metavar="NAME", help="only outputs whose names begin so")
    parser.add_argument("--update", action="store_true", help="write the digests and texts")
    parser.add_argument("--keep", type=Path, help="write all compared texts into this folder")
    parser.add_argument("--against", type=Path, help="show differences from the texts of this folder")
    parser.add_argument("--reuse", type=Path, help="make runs in this folder, or use those that it has")
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as made:
        texts = collect(options.reuse or Path(made), options.names)
    for name, text in texts.items():
        if options.keep:
            _write(options.keep / f"{name}.txt", text)
        if options.update and name in TEXT_NAMES:
            _write(_text_file(name), text)
    if options.update:
        _update(texts, options.names)
        return 0
    changed = compare(texts, options.names)
    for name in changed:
        sys.stdout.write(f"{name}\n")
        sys.stdout.writelines(_difference(name, texts.get(name, ""), options.against))
    sys.stdout.write(f"{len(texts)} outputs, {len(changed)} differ\n")
    return 1 if changed else 0


def collect(folder: Path, names: Sequence[str]) -> dict[str, str]:
    """Return the compared texts of runs and outputs by name."""
    texts: dict[str, str] = {}
    workspace = Workspace(folder)
    with workspace.entered():
        for name in [*(f"runs/{run}" for run in RUNS), *OUTPUTS]:
            if _is_chosen(name, names):
                texts |= workspace.texts(name)
    return texts


def frozen_digests() -> dict[str, str]:
    """Return the frozen digests by name."""
    if not DIGESTS.is_file():
        return {}
    return dict(line.split("\t") for line in DIGESTS.read_text(encoding="utf-8").splitlines())


def compare(texts: dict[str, str], names: Sequence[str]) -> list[str]:
    """Return the names of texts that differ from the frozen ones, are new, or are missing."""
    frozen = {name: digest for name, digest in frozen_digests().items() if _is_chosen(name, names)}
    now = {name: digest_text(text) for name, text in texts.items()}
    return sorted(name for name in frozen | now if frozen.get(name) != now.get(name))


def _is_chosen(name: str, names: Sequence[str]) -> bool:
    return not names or any(name == chosen or name.startswith(f"{chosen}/") for chosen in names)


def _update(texts: dict[str, str], names: Sequence[str]) -> None:
    others = {name: digest for name, digest in frozen_digests().items() if not _is_chosen(name, names)}
    lines = others | {name: digest_text(text) for name, text in texts.items()}
    DIGESTS.write_text("".join(f"{name}\t{lines[name]}\n" for name in sorted(lines)), encoding="utf-8")


def _difference(name: str, text: str, folder: Path | None) -> Iterator[str]:
    path = folder / f"{name}.txt" if folder else _text_file(name)
    if path.is_file():
        before = path.read_text(encoding="utf-8").splitlines(keepends=True)
        lines = list(difflib.unified_diff(before, text.splitlines(keepends=True), "frozen", "now", n=1))
        yield from lines[:MOST_LINES]
        if len(lines) > MOST_LINES:
            yield f"... {len(lines) - MOST_LINES} more lines\n"


def _text_file(name: str) -> Path:
    return TEXTS / f"{name.removesuffix('/file.html.txt').replace('/', '-')}.txt"


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    sys.exit(main(sys.argv[1:]))
