"""Names of a model and of its run folder in everything that people read."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

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
        segments = [segment for segment in re.split(r"[/\\]+", name) if segment]
        if not segments or segments[-1] in {".", "..", "~"}:
            segments = [*Path(name).expanduser().resolve().parts]
        if len(segments) > 1 and _CHECKPOINT.fullmatch(segments[-1]):
            checkpoint = segments.pop()
            revision = revision or checkpoint
        if len(segments) > 1 and segments[-1] == "snapshots":
            segments.pop()
        cached = _HUB_CACHE.fullmatch(segments[-1])
        name = cached[1].replace("--", "/") if cached else segments[-1]
    if revision and _COMMIT.fullmatch(revision):
        revision = revision[:_SHORT_COMMIT]
    return f"{name}@{revision}" if revision else name


def folder_names(paths: Sequence[Path]) -> list[str]:
    """Return the shortest end of every path that no other path has: the last part, or the last two, or more."""
    every = {path.absolute().parts for path in paths}
    names = []
    for path in paths:
        segments = path.absolute().parts
        sizes = range(1, len(segments) + 1)
        count = next(
            size for size in sizes if sum(candidate[-size:] == segments[-size:] for candidate in every) == 1
        )
        names.append(str(Path(*segments[-count:])))
    return names
