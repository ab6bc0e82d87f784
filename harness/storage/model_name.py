"""What a model and its run folder are called wherever people read of them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

__all__ = ["folder_names", "model_name"]

_CHECKPOINT = re.compile(
    r"(?i)[0-9a-f]{40}|((checkpoint|ckpt|epoch|(global_)?step|iter)s?[-_]?)?\d+|best|last|final"
)
_HUB_CACHE = re.compile(r"models--(.+)")
_COMMIT = re.compile(r"[0-9a-f]{40,64}")
_SHORT_COMMIT = 7


def model_name(
    reference: str, served: str | None = None, revision: str | None = None, *, is_folder: bool = False
) -> str:
    """Return the name of a model, which is never an address or a path.

    The rule: a model behind an address has the name that its server gives it, or that of its adapter where that is
    unknown; a path is called by its last part, and a part that is only a checkpoint or a commit is the revision of the
    part before it; a name of the Hub keeps its owner. A revision follows an ``@``, a commit in 7 letters.

    ``hf:/models/e5-small`` is ``e5-small``, ``hf:out/mine/checkpoint-500`` is ``mine@checkpoint-500``, and
    ``baseline:majority`` is ``majority``.

    Args:
        reference: ``ADAPTER:NAME_OR_PATH``.
        served: Name of the model at its server.
        revision: Branch, tag or commit that was chosen.
        is_folder: Whether a name such as ``models/e5-small`` is that of a folder, not of the Hub.
    """
    adapter, _, name = reference.partition(":")
    name = name or reference
    if "://" in name:
        name, is_folder = served or adapter, False
    is_path = (
        is_folder or name.startswith(("/", ".", "~")) or "\\" in name or name.partition("@")[0].count("/") > 1
    )
    if is_path:
        parts = [part for part in re.split(r"[/\\]+", name) if part]
        if not parts or parts[-1] in {".", "..", "~"}:
            parts = [*Path(name).expanduser().resolve().parts]
        if len(parts) > 1 and _CHECKPOINT.fullmatch(parts[-1]):
            checkpoint = parts.pop()
            revision = revision or checkpoint
        if len(parts) > 1 and parts[-1] == "snapshots":
            parts.pop()
        cached = _HUB_CACHE.fullmatch(parts[-1])
        name = cached[1].replace("--", "/") if cached else parts[-1]
    if revision and _COMMIT.fullmatch(revision):
        revision = revision[:_SHORT_COMMIT]
    return f"{name}@{revision}" if revision else name


def folder_names(paths: Sequence[Path]) -> list[str]:
    """Return the shortest end of every path that no other path has: the last part, or the last two, or more."""
    every = {path.absolute().parts for path in paths}
    names = []
    for path in paths:
        parts = path.absolute().parts
        sizes = range(1, len(parts) + 1)
        count = next(size for size in sizes if sum(other[-size:] == parts[-size:] for other in every) == 1)
        names.append(str(Path(*parts[-count:])))
    return names
