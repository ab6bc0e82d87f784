"""Renders the templates of a new package and writes its files."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path
from string import Template

from harness import UsageError

__all__ = ["LAYERS", "check_output_folder", "render", "write_package"]

LAYERS: Mapping[str, tuple[str, ...]] = {
    "plugin": ("package", "specs", "measure", "plugin"),
    "task": ("package", "specs", "task"),
    "language": ("package", "language"),
    "adapter": ("package", "adapter"),
    "metric": ("package", "measure", "metric"),
}
"""The folders of templates that a package is made of; no two of one package have the same file."""
_SUFFIX = ".template"


def render(sort: str, words: Mapping[str, str]) -> dict[str, str]:
    """Return the text of every file of a package, by path.

    ``$word`` in a text, and an upper-case ``WORD`` as (a part of) a name in a path, are replaced by the words; an
    unknown ``$word`` raises `KeyError`.
    """
    found: dict[str, str] = {}
    for layer in LAYERS[sort]:
        for name, template in _templates(files("harness_scaffold") / "templates" / layer):
            path = _named(name, words)
            assert path not in found, f"{path} is in two layers"
            found[path] = Template(template.read_text(encoding="utf-8")).substitute(words)
    return found


def _named(path: str, words: Mapping[str, str]) -> str:
    for word in ("package", "task", "code"):
        path = path.replace(word.upper(), words.get(word, word.upper()))
    return path


def _templates(folder: Traversable, above: str = "") -> Iterator[tuple[str, Traversable]]:
    for item in sorted(folder.iterdir(), key=lambda item: item.name):
        if item.is_dir():
            yield from _templates(item, f"{above}{item.name}/")
        elif item.name.endswith(_SUFFIX):
            yield above + item.name.removesuffix(_SUFFIX), item


def check_output_folder(folder: Path) -> None:
    """Raise `UsageError` where a package cannot be written: it exists, or its parent folder does not."""
    if folder.exists() or folder.is_symlink():
        raise UsageError(
            f"{str(folder)!r} exists already; nothing was written.", hint="Name another folder with --output."
        )
    if not folder.absolute().parent.is_dir():
        raise UsageError(
            f"The folder {str(folder.absolute().parent)!r} does not exist, so {folder.name!r} cannot be created in it."
        )


def write_package(folder: Path, contents: Mapping[str, str]) -> None:
    """Write the files of a package, all or none; raises `UsageError` where the folder exists or cannot be written."""
    check_output_folder(folder)
    target = folder.absolute()
    try:
        with tempfile.TemporaryDirectory(dir=target.parent, prefix=f".{target.name}.") as temporary:
            made = Path(temporary) / target.name
            for name, text in contents.items():
                file = made / name
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_text(text, encoding="utf-8")
            made.rename(target)
    except OSError as error:
        raise UsageError(f"The folder {str(folder)!r} cannot be written: {error.strerror}.") from error
