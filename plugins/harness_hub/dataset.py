"""A dataset of the Hub at one commit: its card, and one split, downloaded as a Parquet file or as its own files.

The card has the configurations, the files of their splits, how they are read, and label names.
"""

from __future__ import annotations

import errno
import hashlib
import re
import tempfile
import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path, PurePosixPath
from typing import Any, Self
from urllib.parse import quote

from harness import DataError, MissingDataError, near_names
from harness.data import DataRef, HubFiles, ResolvedData, State, wanted_columns
from harness.models import hub_is_unreachable

ALL, SEVERAL = "*", "+"
"""All configs of a dataset, and what stands between the names of several."""
_CARD_FIELDS = frozenset(
    {"data_files", "data_dir", "default", "description", "version", "drop_labels", "drop_metadata"}
)
# A card is text from outside: only options that say how its own files are read reach the loader.
_READING_OPTIONS = frozenset(
    "column_names columns delimiter encoding escapechars features field header keep_linebreaks names "
    "quotechar quoting sample_by sep skiprows".split()
)
_DATA_SUFFIXES = ("parquet", "jsonl", "json", "csv", "tsv", "txt", "arrow")
LONGEST_CONFIG = 60
"""Characters of a config in the name of a folder; longer ones are named by a digest."""
_COMMIT = re.compile(r"[0-9a-f]{40}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Recipe:
    """Which files of the repository make up the split, and how the loader reads them."""

    download: tuple[str, ...]
    """Patterns of what is downloaded."""
    data_files: tuple[str, ...] | None = None
    """Patterns of the split's files; None lets the loader find the splits in `folder`."""
    folder: str = ""
    options: Mapping[str, Any] = field(default_factory=dict)
    features: Mapping[str, Any] = field(default_factory=dict)
    """Column -> feature, as the card declares them; empty where it does not."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Card:
    """The parts of a dataset's card that say how it is read."""

    configs: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    features: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """Configuration -> column -> feature."""
    has_script: bool = False

    @classmethod
    def read(cls, hub: HubFiles, folder: Path) -> Self:
        """Return the card in a folder; raises `DataError` for one that cannot be understood."""
        from datasets.info import DatasetInfosDict
        from datasets.utils.metadata import MetadataConfigs
        from huggingface_hub import DatasetCard

        readme, has_script = folder / "README.md", (folder / script_name(hub)).is_file()
        if not readme.is_file():
            return cls(has_script=has_script)
        # A card is text from outside, and the parsers raise whatever its shape leads to.
        try:
            data = DatasetCard.load(readme, ignore_metadata_errors=True).data
            configs = MetadataConfigs.from_dataset_card_data(data)
            infos = DatasetInfosDict.from_dataset_card_data(data)
            features = {name: dict(info.features or {}) for name, info in infos.items()}
        except Exception as error:
            raise _malformed(hub, error) from error
        return cls(configs=configs, features=features, has_script=has_script)

    def recipe(self, hub: HubFiles) -> Recipe:
        """Return how a split is read.

        Raises `MissingDataError` for an unknown config or split; `DataError` where the dataset is a script, or its
        card has an unknown option or points outside of the repository.
        """
        if not self.configs:
            if self.has_script:
                raise DataError(
                    f"The Hub dataset {hub.path!r} is a script ({script_name(hub)}), which is never run.",
                    hint="Name a dataset of data files in the spec, or use --data DIR.",
                )
            if hub.config not in (None, "default"):
                raise _unknown(hub, "config", str(hub.config), {"default": None})
            return Recipe(download=_all_data(""), features=self.features.get("default", {}))
        name = self._config_name(hub)
        config, features = self.configs[name], self.features.get(name, {})
        folder = str(config.get("data_dir") or "")
        options = {name: value for name, value in config.items() if name not in _CARD_FIELDS}
        for option in options:
            if option not in _READING_OPTIONS:
                raise DataError(
                    f"The card of the Hub dataset {hub.path!r} has an option {option!r}, which is unknown."
                )
        _check_inside(hub, folder)
        if config.get("data_files") is None:
            return Recipe(download=_all_data(folder), folder=folder, options=options, features=features)
        patterns = _split_patterns(hub, config["data_files"])
        for pattern in patterns:
            _check_inside(hub, pattern)
        data_files = tuple(str(PurePosixPath(folder) / pattern) for pattern in patterns)
        return Recipe(download=data_files, data_files=data_files, options=options, features=features)

    def _config_name(self, hub: HubFiles) -> str:
        name = hub.config
        if name is None:
            marked = [candidate for candidate, config in self.configs.items() if config.get("default")]
            only = list(self.configs) if len(self.configs) == 1 else []
            name = [*marked, *only, "default"][0]
        if name not in self.configs:
            raise _unknown(hub, "config", name, self.configs)
        return name


def single_configs(hub: HubFiles, card: Card) -> list[HubFiles]:
    """Return one source per config: of all that the card names where it is ``*``, and of ``a+b`` those of both."""
    if hub.config == ALL:
        names = list(card.configs)
        if not names:
            raise _unknown(hub, "config", ALL, {})
    elif hub.config is not None and SEVERAL in hub.config:
        names = hub.config.split(SEVERAL)
    else:
        return [hub]
    return [replace(hub, config=name) for name in names]


def class_names(feature: Any) -> Sequence[str]:
    """Return the label names of a feature or of the values of a list; empty where it has none."""
    if isinstance(feature, list):
        return class_names(feature[0])
    names = getattr(feature, "names", None)
    return class_names(feature.feature) if hasattr(feature, "feature") else names or ()


def label_map(hub: HubFiles, features: Mapping[str, Any]) -> Mapping[str, str]:
    """Return the label of each value in the files: integers follow the names that the features have for them.

    A `label_map` that has all of the names maps names; any other maps integers, and adds nothing to a name that is
    no label of it (``NEG`` for ``negative``).

    Raises `DataError`, with both, where the map of the integers contradicts the names.
    """
    columns = wanted_columns({} if hub.columns is None else {"columns": hub.columns}) or ()
    sources = {column.field: column.source for column in columns}
    labels = dict(hub.label_map)
    for field_name in ("label", "tags"):
        names = class_names(features.get(sources.get(field_name, field_name)))
        numbers = {str(number): name for number, name in enumerate(names)}
        if hub.label_map.keys() >= set(names):
            labels |= {number: hub.label_map[name] for number, name in numbers.items()}
            continue
        known = {label.casefold() for label in hub.label_map.values()}
        for number, name in numbers.items():
            label = hub.label_map.get(number, name)
            if name.casefold() in known - {label.casefold()}:
                raise DataError(
                    f"The label_map of the spec contradicts the label names of the Hub dataset {hub.path!r}: the spec "
                    f"has {_shown(hub.label_map)}; the dataset has {_shown(numbers)}.",
                    hint="Correct 'label_map' in the spec.",
                )
            labels[number] = label
    return {raw: label for raw, label in labels.items() if raw != label or raw in hub.label_map}


def _shown(labels: Mapping[str, str]) -> str:
    return textwrap.shorten(", ".join(f"{raw}: {label}" for raw, label in labels.items()), width=200)


def _split_patterns(hub: HubFiles, data_files: Any) -> list[str]:
    from datasets.data_files import sanitize_patterns

    try:
        by_split: dict[str, list[str]] = sanitize_patterns(data_files)
    except Exception as error:
        raise _malformed(hub, error) from error
    if hub.split not in by_split:
        raise _unknown(hub, "split", hub.split, by_split)
    return by_split[hub.split]


def _malformed(hub: HubFiles, error: Exception) -> DataError:
    return DataError(
        f"The card of the Hub dataset {hub.path!r} cannot be understood: {in_plain_words(error)}."
    )


def _unknown(hub: HubFiles, what: str, name: str, known: Mapping[str, Any]) -> MissingDataError:
    near = near_names(name, known)
    names = sorted(known)
    shown = ", ".join(names[:12]) + (", ..." if len(names) > 12 else "")
    return MissingDataError(
        f"The Hub dataset {hub.path!r} has no {what} {name!r}.",
        hint=f"Did you mean {near[0]!r}?" if near else f"It has: {shown}.",
    )


def _check_inside(hub: HubFiles, pattern: str) -> None:
    """Raise `DataError` for a path outside of the repository."""
    # A card is text from outside, and the loader would follow it to any file or address.
    path = PurePosixPath(pattern)
    if path.is_absolute() or ".." in path.parts or ":" in pattern or "\\" in pattern or "~" in pattern:
        raise DataError(
            f"The {'spec' if pattern in hub.files else 'card'} of the Hub dataset {hub.path!r} points outside of its "
            f"repository: {pattern!r}."
        )


def _all_data(folder: str) -> tuple[str, ...]:
    return tuple(str(PurePosixPath(folder) / f"*.{suffix}") for suffix in _DATA_SUFFIXES)


def script_name(hub: HubFiles) -> str:
    """Return the file of a dataset that is a script."""
    return f"{hub.path.rpartition('/')[2]}.py"


def in_plain_words(error: Exception) -> str:
    """Return the first line of an error's message, shortened."""
    text = str(error).strip().split("\n", maxsplit=1)[0].rstrip(".") or type(error).__name__
    return textwrap.shorten(text, width=300, placeholder=" ...")


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
