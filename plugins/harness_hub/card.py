"""A dataset's card: configurations, the files of their splits, how they are read, and label names."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path, PurePosixPath
from typing import Any, Self

from harness import DataError, MissingDataError, near_names
from harness.data import HubFiles, wanted_columns

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
        check_inside(hub, folder)
        if config.get("data_files") is None:
            return Recipe(download=_all_data(folder), folder=folder, options=options, features=features)
        patterns = _split_patterns(hub, config["data_files"])
        for pattern in patterns:
            check_inside(hub, pattern)
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


def check_inside(hub: HubFiles, pattern: str) -> None:
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
