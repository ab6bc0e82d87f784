"""A new package: its name, its templates rendered, and its files written."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import keyword
import re
import sys
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path
from string import Template

from harness import UsageError

LAYERS: Mapping[str, tuple[str, ...]] = {
    "plugin": ("package", "specs", "measure", "plugin"),
    "task": ("package", "specs", "task"),
    "data": ("package", "data"),
    "language": ("package", "language"),
    "adapter": ("package", "adapter"),
    "metric": ("package", "measure", "metric"),
}
"""The folders of templates that a package is made of; no two of one package have the same file."""
_SUFFIX = ".template"
LONGEST = 60
_FORM = re.compile(r"[a-z][a-z0-9]*([-_][a-z0-9]+)*")


@dataclass(frozen=True, slots=True, kw_only=True)
class PackageName:
    """One name in its two spellings."""

    package: str
    """The import name; also the name of the plugin and of what it declares: ``my_mood``."""
    distribution: str
    """The name of the distribution and of its folder: ``my-mood``."""


def package_name(text: str) -> PackageName:
    """Return a name in its two spellings; raises `UsageError` where it is invalid or a name of Python itself."""
    package, distribution = text.replace("-", "_"), text.replace("_", "-")
    if not _FORM.fullmatch(text) or len(text) > LONGEST:
        raise UsageError(
            f"The name {text[: LONGEST + 1]!r} is not valid for a package: expected a lowercase letter, then at most "
            f"{LONGEST - 1} lowercase letters and digits, with single '-' or '_' between them.",
            hint="Choose the folder with --output.",
        )
    if keyword.iskeyword(package) or keyword.issoftkeyword(package) or package in sys.stdlib_module_names:
        raise UsageError(f"The name {text!r} is a name of Python itself, so a package cannot use it.")
    return PackageName(package=package, distribution=distribution)


def check_package_is_free(name: PackageName) -> None:
    """Raise `UsageError` where an installed package or module has the name."""
    try:
        owner = importlib.metadata.distribution(name.distribution)
    except importlib.metadata.PackageNotFoundError:
        pass
    else:
        raise UsageError(
            f"The name {name.distribution!r} is taken by an installed package, version {owner.version}.",
            hint="Choose another, or uninstall that one.",
        )
    found = importlib.util.find_spec(name.package)
    if found is not None and found.origin is not None:  # a folder without code has no origin
        raise UsageError(
            f"The name {name.package!r} is taken by the module at {found.origin!r}.", hint="Choose another."
        )


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
