"""One split of a Hub dataset, downloaded at one commit: as a Parquet file, or its own files where a spec names them."""

from __future__ import annotations

import errno
import hashlib
import re
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote

from harness import MissingDataError
from harness.data import DataRef, HubFiles, ResolvedData, State
from harness.models import hub_is_unreachable
from harness_hub.card import (
    Card,
    Recipe,
    check_inside,
    class_names,
    in_plain_words,
    label_map,
    script_name,
    single_configs,
)

LONGEST_CONFIG = 60
"""Characters of a config in the name of a folder; longer ones are named by a digest."""
_COMMIT = re.compile(r"[0-9a-f]{40}")


def fetch(ref: DataRef, cache: Path) -> ResolvedData:
    """Return the files of the Hub split that `ref` names, downloading them if needed.

    Where the spec names files of the repository, they are returned as they are, from the cache of the Hub's client.
    Otherwise the split becomes one Parquet file in `cache`, as the dataset's card describes it.

    The file is kept by repository, config, split and resolved commit, so a pinned source that is in the cache
    needs no connection. A source without a revision takes the newest commit, which `ResolvedData.revision` names.

    Raises `MissingDataError` when the repository, revision, config or split is not available, with the next
    step; `DataError` when the dataset is a script, or its card points outside of the repository.
    """
    hub = ref.hub
    if hub is None:
        raise MissingDataError(f"No Hub dataset is known for {ref}.")
    if hub.files:
        return _named_files(ref, hub)
    if hub.revision is not None and _COMMIT.fullmatch(hub.revision):
        kept = kept_file(hub, hub.revision, cache)
        if kept.is_file():
            return _resolved(ref, hub, hub.revision, (kept,))
    card_folder = _download(hub, hub.revision, ["README.md", script_name(hub)])
    commit = card_folder.name
    kept = kept_file(hub, commit, cache)
    if not kept.is_file():
        card = Card.read(hub, card_folder)
        recipes = {own.config: card.recipe(own) for own in single_configs(hub, card)}
        _prepare(hub, recipes, commit, kept)
    return _resolved(ref, hub, commit, (kept,))


def _named_files(ref: DataRef, hub: HubFiles) -> ResolvedData:
    for pattern in hub.files:
        check_inside(hub, pattern)
    snapshot = _download(hub, hub.revision, hub.files)
    paths = []
    for pattern in hub.files:
        found = sorted(path for path in snapshot.glob(pattern) if path.is_file())
        if not found:
            raise MissingDataError(
                f"The Hub dataset {hub.path!r} at {snapshot.name} has no file {pattern!r}.",
                hint=f"See https://huggingface.co/datasets/{hub.path}/tree/{snapshot.name}, or use --data DIR.",
            )
        paths += found
    return _resolved(ref, hub, snapshot.name, tuple(paths))


def _resolved(ref: DataRef, hub: HubFiles, commit: str, paths: tuple[Path, ...]) -> ResolvedData:
    name = ", ".join(part for part in (hub.path, hub.config, hub.split) if part)
    pinned = hub.revision == commit
    return ResolvedData(
        reader=hub.reader,
        columns=hub.columns,
        options=hub.options,
        label_map=_labels(hub, paths[0]),
        paths=paths,
        origin="hub",
        split_used=ref.split,  # whatever the dataset calls it: XQuAD's test set is a split 'validation'
        revision=commit,
        pinned=pinned,
        describe=f"{name} at {commit[:12]}{'' if pinned else ' (unpinned)'}",
    )


def _labels(hub: HubFiles, path: Path) -> Mapping[str, str]:
    try:
        return label_map(hub, file_features(path))
    except (OSError, ValueError, RuntimeError) as error:
        raise _unreadable(hub, path.stem, error) from error


def file_features(source: Any) -> Mapping[str, Any]:
    """Return column -> feature of a Parquet file (a path or an open file), by its footer; empty for other formats.

    Raises `OSError`, `ValueError` or `RuntimeError` for a broken file.
    """
    import datasets
    from pyarrow import parquet

    if isinstance(source, Path) and source.suffix != ".parquet":
        return {}
    return dict(datasets.Features.from_arrow_schema(parquet.read_schema(source)))


def kept_file(hub: HubFiles, commit: str, cache: Path) -> Path:
    """Return where the split is kept as Parquet."""
    # Percent-encoding leaves no '/', and the '--' between the parts leaves no name that is only dots.
    config = hub.config or ""
    if len(config) > LONGEST_CONFIG:
        config = hashlib.blake2b(config.encode(), digest_size=16).hexdigest()
    name = "--".join(quote(part, safe="") for part in (hub.path, config, hub.split))
    return cache / name / f"{commit}.parquet"


# Download and conversion ------------------------------------------------------------------------------


def _download(hub: HubFiles, revision: str | None, patterns: Sequence[str]) -> Path:
    """Return the snapshot folder, named after its commit, with the files that match."""
    from huggingface_hub import snapshot_download

    try:
        folder = snapshot_download(
            hub.path,
            repo_type="dataset",
            revision=revision,
            allow_patterns=list(patterns),
            local_files_only=hub_is_unreachable(),
        )
    # The HTTP library below the client, and so the other errors there are, changes with its version.
    except Exception as error:
        raise hub_problem(hub, revision, error)[1] from error
    return Path(folder)


def hub_problem(hub: HubFiles, revision: str | None, error: Exception) -> tuple[State, MissingDataError]:
    """Return the state of a dataset that the client of the Hub failed on, and the error for the user."""
    from huggingface_hub import errors

    name = f"{hub.path!r} at revision {revision or 'main'!r}"
    page = f"https://huggingface.co/datasets/{hub.path}"
    if isinstance(error, errors.GatedRepoError):
        message = f"The Hub dataset {name} is only given to people who accept its conditions."
        return "gated", MissingDataError(message, hint=f"Accept them at {page}, then run: hf auth login")
    if isinstance(error, errors.RevisionNotFoundError):
        return "gone", MissingDataError(f"The Hub dataset {name} was not found.", hint=f"See {page}.")
    if isinstance(error, errors.RepositoryNotFoundError):
        message = f"The Hub dataset {name} was not found, or it is private."
        return "gone", MissingDataError(message, hint=f"See {page}; for a private dataset run: hf auth login")
    if isinstance(error, errors.LocalEntryNotFoundError | errors.OfflineModeIsEnabled):
        message = f"The Hub dataset {name} is not on this machine, and the Hub cannot be reached."
        hint = "Run once with a connection and without HF_HUB_OFFLINE, or use --data DIR."
        return "unreachable", MissingDataError(message, hint=hint)
    message = f"The Hub dataset {name} could not be downloaded: {in_plain_words(error)}."
    return "unreachable", MissingDataError(message, hint=f"See {page}, or use --data DIR.")


def _unreadable(hub: HubFiles, commit: str, error: Exception) -> MissingDataError:
    return MissingDataError(
        f"The split {hub.split!r} of the Hub dataset {hub.path!r} (config {hub.config!r}) "
        f"at {commit} could not be read: {in_plain_words(error)}.",
        hint=f"See https://huggingface.co/datasets/{hub.path}/tree/{commit}, or use --data DIR.",
    )


def _prepare(hub: HubFiles, recipes: Mapping[str | None, Recipe], commit: str, kept: Path) -> None:
    """Write the split as one Parquet file, whole or not at all; of several configs, a column names each row's."""
    patterns = [pattern for recipe in recipes.values() for pattern in recipe.download]
    snapshot = _download(hub, commit, patterns)
    kept.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=kept.parent, prefix=".preparing-") as scratch:
        part = Path(scratch) / "split.parquet"
        _convert(hub, recipes, snapshot, Path(scratch), part)
        part.replace(kept)


def _convert(
    hub: HubFiles, recipes: Mapping[str | None, Recipe], snapshot: Path, scratch: Path, part: Path
) -> None:
    import datasets

    # The loader resolves the files of a card's first config even when another one is requested; those were
    # not downloaded. So a card's config is loaded from its own files, through a folder without a card.
    (scratch / "data").mkdir()
    try:
        loaded = {name: _loaded(hub, recipe, snapshot, scratch) for name, recipe in recipes.items()}
        [*splits] = loaded.values()
        if len(splits) > 1:
            named = [own.add_column("config", [name] * len(own)) for name, own in loaded.items()]
            splits = [datasets.concatenate_datasets(named)]
        splits[0].to_parquet(str(part))
    # Readers of files from outside raise whatever these lead to; only a full or closed disk is ours.
    except Exception as error:
        if isinstance(error, OSError) and error.errno not in (None, errno.ENOENT):
            raise
        raise _unreadable(hub, snapshot.name, error) from error


def _loaded(hub: HubFiles, recipe: Recipe, snapshot: Path, scratch: Path) -> Any:
    import datasets

    if recipe.data_files is None:
        source, data_files = snapshot / recipe.folder, None
    else:
        source = scratch / "data"
        data_files = {hub.split: [str(snapshot / pattern) for pattern in recipe.data_files]}
    split = datasets.load_dataset(
        str(source),
        data_files=data_files,
        split=hub.split,
        cache_dir=str(scratch / "cache"),
        **recipe.options,
    )
    # Without its card, integers of JSON and CSV files have no names.
    for column, feature in recipe.features.items():
        is_named = class_names(feature) and not class_names(split.features.get(column, feature))
        if is_named and "int" in str(split.features[column]):
            split = split.cast_column(column, feature)
    return split
