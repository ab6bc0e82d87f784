"""One split of a Hub dataset, downloaded at one commit: as a Parquet file, or its own files where a spec names them."""

from __future__ import annotations

import hashlib
import re
import tempfile
import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path, PurePosixPath
from typing import Any
from urllib.parse import quote

from harness import DataError, DataRef, MissingDataError, ResolvedData, near_names
from harness.data.resolve import HubFiles
from harness.models.hub_access import hub_is_unreachable

__all__ = ["fetch"]

ALL, SEVERAL = "*", "+"
"""All configs of a dataset, and what stands between the names of several."""
LONGEST_CONFIG = 60
"""Characters of a config in the name of a folder; longer ones are named by a digest."""
_COMMIT = re.compile(r"[0-9a-f]{40}")
_CARD_FIELDS = frozenset(
    {"data_files", "data_dir", "default", "description", "version", "drop_labels", "drop_metadata"}
)
# A card is text from outside: only options that say how its own files are read reach the loader.
_READING_OPTIONS = frozenset(
    "column_names columns delimiter encoding escapechar features field header keep_linebreaks names "
    "quotechar quoting sample_by sep skiprows".split()
)
_DATA_SUFFIXES = ("parquet", "jsonl", "json", "csv", "tsv", "txt", "arrow")


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
        kept = _kept_file(hub, hub.revision, cache)
        if kept.is_file():
            return _resolved(ref, hub, hub.revision, (kept,))
    card_folder = _download(hub, hub.revision, ["README.md", _script_name(hub)])
    commit = card_folder.name
    kept = _kept_file(hub, commit, cache)
    if not kept.is_file():
        recipes = {own.config: _recipe(own, card_folder) for own in _single_configs(hub, card_folder)}
        _prepare(hub, recipes, commit, kept)
    return _resolved(ref, hub, commit, (kept,))


def _named_files(ref: DataRef, hub: HubFiles) -> ResolvedData:
    for pattern in hub.files:
        _check_inside(hub, pattern)
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
        label_map=hub.label_map,
        paths=paths,
        origin="hub",
        split_used=hub.split,
        stands_in=hub.split != ref.split,
        revision=commit,
        pinned=pinned,
        describe=f"{name} at {commit[:12]}{'' if pinned else ' (unpinned)'}",
    )


def _kept_file(hub: HubFiles, commit: str, cache: Path) -> Path:
    # Percent-encoding leaves no '/', and the '--' between the parts leaves no name that is only dots.
    config = hub.config or ""
    if len(config) > LONGEST_CONFIG:
        config = hashlib.blake2b(config.encode(), digest_size=16).hexdigest()
    name = "--".join(quote(part, safe="") for part in (hub.path, config, hub.split))
    return cache / name / f"{commit}.parquet"


# What the dataset's card says -------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class _Recipe:
    """Which files of the repository make up the split, and how the loader reads them."""

    download: tuple[str, ...]
    """Patterns of what is downloaded."""
    data_files: tuple[str, ...] | None = None
    """Patterns of the split's files; None lets the loader find the splits in `folder`."""
    folder: str = ""
    options: Mapping[str, Any] = field(default_factory=dict)


def _single_configs(hub: HubFiles, card_folder: Path) -> list[HubFiles]:
    """Return one source per config: of all that the card names where it is ``*``, and of ``a+b`` those of both."""
    if hub.config == ALL:
        names = list(_card_configs(hub, card_folder))
        if not names:
            raise _unknown(hub, "config", ALL, {})
    elif hub.config is not None and SEVERAL in hub.config:
        names = hub.config.split(SEVERAL)
    else:
        return [hub]
    return [replace(hub, config=name) for name in names]


def _recipe(hub: HubFiles, card_folder: Path) -> _Recipe:
    configs = _card_configs(hub, card_folder)
    if not configs:
        if (card_folder / _script_name(hub)).is_file():
            raise DataError(
                f"The Hub dataset {hub.path!r} is a script ({_script_name(hub)}), which is never run.",
                hint="Name a dataset of data files in the spec, or use --data DIR.",
            )
        if hub.config not in (None, "default"):
            raise _unknown(hub, "config", str(hub.config), {"default": None})
        return _Recipe(download=_all_data(""))
    config = _config(hub, configs)
    folder = str(config.get("data_dir") or "")
    options = {name: value for name, value in config.items() if name not in _CARD_FIELDS}
    for name in options:
        if name not in _READING_OPTIONS:
            raise DataError(
                f"The card of the Hub dataset {hub.path!r} has an option {name!r}, which is unknown."
            )
    _check_inside(hub, folder)
    if config.get("data_files") is None:
        return _Recipe(download=_all_data(folder), folder=folder, options=options)
    patterns = _split_patterns(hub, config["data_files"])
    for pattern in patterns:
        _check_inside(hub, pattern)
    data_files = tuple(str(PurePosixPath(folder) / pattern) for pattern in patterns)
    return _Recipe(download=data_files, data_files=data_files, options=options)


def _card_configs(hub: HubFiles, card_folder: Path) -> Mapping[str, Mapping[str, Any]]:
    from datasets.utils.metadata import MetadataConfigs
    from huggingface_hub import DatasetCard

    readme = card_folder / "README.md"
    if not readme.is_file():
        return {}
    try:
        card = DatasetCard.load(readme, ignore_metadata_errors=True)
        configs: Mapping[str, Mapping[str, Any]] = MetadataConfigs.from_dataset_card_data(card.data)
    except ValueError as error:
        raise DataError(
            f"The card of the Hub dataset {hub.path!r} cannot be understood: {_reason(error)}."
        ) from error
    return configs


def _config(hub: HubFiles, configs: Mapping[str, Mapping[str, Any]]) -> Mapping[str, Any]:
    name = hub.config
    if name is None:
        marked = [candidate for candidate, config in configs.items() if config.get("default")]
        only = list(configs) if len(configs) == 1 else []
        name = [*marked, *only, "default"][0]
    if name not in configs:
        raise _unknown(hub, "config", name, configs)
    return configs[name]


def _split_patterns(hub: HubFiles, data_files: Any) -> list[str]:
    from datasets.data_files import sanitize_patterns

    by_split: dict[str, list[str]] = sanitize_patterns(data_files)
    if hub.split not in by_split:
        raise _unknown(hub, "split", hub.split, by_split)
    return by_split[hub.split]


def _unknown(hub: HubFiles, what: str, name: str, known: Mapping[str, Any]) -> MissingDataError:
    near = near_names(name, known)
    names = sorted(known)
    shown = ", ".join(names[:12]) + (", ..." if len(names) > 12 else "")
    return MissingDataError(
        f"The Hub dataset {hub.path!r} has no {what} {name!r}.",
        hint=f"Did you mean {near[0]!r}?" if near else f"It has: {shown}.",
    )


def _check_inside(hub: HubFiles, pattern: str) -> None:
    # A card is text from outside, and the loader would follow it to any file or address.
    path = PurePosixPath(pattern)
    if path.is_absolute() or ".." in path.parts or ":" in pattern or "\\" in pattern or "~" in pattern:
        raise DataError(
            f"The {'spec' if pattern in hub.files else 'card'} of the Hub dataset {hub.path!r} points outside of its "
            f"repository: {pattern!r}."
        )


def _all_data(folder: str) -> tuple[str, ...]:
    return tuple(str(PurePosixPath(folder) / f"*.{suffix}") for suffix in _DATA_SUFFIXES)


def _script_name(hub: HubFiles) -> str:
    return f"{hub.path.rpartition('/')[2]}.py"


# Download and conversion ------------------------------------------------------------------------------


def _download(hub: HubFiles, revision: str | None, patterns: Sequence[str]) -> Path:
    """Return the snapshot folder, named after its commit, with the files that match."""
    from huggingface_hub import errors, snapshot_download

    name = f"{hub.path!r} at revision {revision or 'main'!r}"
    page = f"https://huggingface.co/datasets/{hub.path}"
    try:
        folder = snapshot_download(
            hub.path,
            repo_type="dataset",
            revision=revision,
            allow_patterns=list(patterns),
            local_files_only=hub_is_unreachable(),
        )
    except errors.GatedRepoError as error:
        raise MissingDataError(
            f"The Hub dataset {name} is only given to people who accept its conditions.",
            hint=f"Accept them at {page}, then run: hf auth login",
        ) from error
    except errors.RevisionNotFoundError as error:
        raise MissingDataError(f"The Hub dataset {name} was not found.", hint=f"See {page}.") from error
    except errors.RepositoryNotFoundError as error:
        raise MissingDataError(
            f"The Hub dataset {name} was not found, or it is private.",
            hint=f"See {page}; for a private dataset run: hf auth login",
        ) from error
    except (errors.LocalEntryNotFoundError, errors.OfflineModeIsEnabled) as error:
        raise MissingDataError(
            f"The Hub dataset {name} is not on this machine, and the Hub cannot be reached.",
            hint="Run once with a connection and without HF_HUB_OFFLINE, or use --data DIR.",
        ) from error
    # The HTTP library below the client, and so the other errors there are, changes with its version.
    except Exception as error:
        raise MissingDataError(
            f"The Hub dataset {name} could not be downloaded: {_reason(error)}.",
            hint=f"See {page}, or use --data DIR.",
        ) from error
    return Path(folder)


def _prepare(hub: HubFiles, recipes: Mapping[str | None, _Recipe], commit: str, kept: Path) -> None:
    """Write the split as one Parquet file, whole or not at all; of several configs, a column names each row's."""
    patterns = [pattern for recipe in recipes.values() for pattern in recipe.download]
    snapshot = _download(hub, commit, patterns)
    kept.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=kept.parent, prefix=".preparing-") as scratch:
        part = Path(scratch) / "split.parquet"
        _convert(hub, recipes, snapshot, Path(scratch), part)
        part.replace(kept)


def _convert(
    hub: HubFiles, recipes: Mapping[str | None, _Recipe], snapshot: Path, scratch: Path, part: Path
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
    except (FileNotFoundError, datasets.exceptions.DatasetsError, ValueError, RuntimeError) as error:
        raise MissingDataError(
            f"The split {hub.split!r} of the Hub dataset {hub.path!r} (config {hub.config!r}) "
            f"at {snapshot.name} could not be read: {_reason(error)}.",
            hint=f"See https://huggingface.co/datasets/{hub.path}/tree/{snapshot.name}, or use --data DIR.",
        ) from error


def _loaded(hub: HubFiles, recipe: _Recipe, snapshot: Path, scratch: Path) -> Any:
    import datasets

    if recipe.data_files is None:
        source, data_files = snapshot / recipe.folder, None
    else:
        source = scratch / "data"
        data_files = {hub.split: [str(snapshot / pattern) for pattern in recipe.data_files]}
    return datasets.load_dataset(
        str(source),
        data_files=data_files,
        split=hub.split,
        cache_dir=str(scratch / "cache"),
        **recipe.options,
    )


def _reason(error: Exception) -> str:
    text = str(error).strip().split("\n", maxsplit=1)[0].rstrip(".") or type(error).__name__
    return textwrap.shorten(text, width=300, placeholder=" ...")
