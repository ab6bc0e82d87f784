"""Inspection of splits on the Hub without their data: file lists, cards and Parquet footers."""

from __future__ import annotations

import functools
import io
import re
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

from harness import DataError, MissingDataError
from harness.data import DataRef, HubFiles, SourceState, source_columns, wanted_columns, wanted_records
from harness.models import hub_is_unreachable
from harness_hub.dataset import (
    Card,
    Recipe,
    file_features,
    hub_problem,
    in_plain_words,
    kept_file,
    label_map,
    script_name,
    single_configs,
)

REQUESTS = 16
"""Requests at once."""
TIMEOUT = 30.0
FOOTER = 8192
"""Bytes of a Parquet file that are asked for first; the footers of most files are smaller."""
_SPLITS = {
    "train": "train|training",
    "validation": "validation|valid|dev|val",
    "test": "test|testing|eval|evaluation",
}
"""Split -> words in the paths of its files, where no card names them (as the loader of `datasets` looks for them)."""


def inspect(refs: Sequence[DataRef], cache: Path, *, footers: bool) -> list[SourceState]:
    """Return the state of each split on the Hub, in their order.

    Args:
        refs: Splits with a Hub dataset.
        cache: Where prepared splits are kept, which are not downloaded again.
        footers: Also compare the columns and label names of the files.
    """
    hubs = [ref.hub for ref in refs if ref.hub is not None]
    if not footers and all(hub.revision and kept_file(hub, hub.revision, cache).is_file() for hub in hubs):
        return [SourceState(state="right")] * len(hubs)
    groups: dict[tuple[str, str | None], list[HubFiles]] = {}
    for hub in hubs:
        groups.setdefault((hub.path, hub.revision), []).append(hub)
    with ThreadPoolExecutor(REQUESTS) as pool:
        datasets = dict(zip(groups, pool.map(_Dataset.ask, groups.values()), strict=True))
        of_refs = [datasets[hub.path, hub.revision] for hub in hubs]
        return list(pool.map(lambda known, ref: known.state(ref, cache, footers=footers), of_refs, refs))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Dataset:
    """A dataset at one revision."""

    path: str = ""
    """The name that it has today."""
    commit: str = ""
    sizes: Mapping[str, int] = field(default_factory=dict)
    """File -> bytes."""
    card: Card = field(default_factory=Card)
    problem: SourceState | None = None

    @classmethod
    def ask(cls, hubs: Sequence[HubFiles]) -> _Dataset:
        """Return the dataset of splits, all of one revision, as the Hub describes it."""
        from huggingface_hub import HfApi, errors, hf_hub_download

        hub, card = hubs[0], Card()
        try:
            if hub_is_unreachable():
                raise errors.OfflineModeIsEnabled("")
            info = HfApi().dataset_info(hub.path, revision=hub.revision, files_metadata=True, timeout=TIMEOUT)
            if info.gated:
                HfApi().auth_check(hub.path, repo_type="dataset")
            sizes = {file.rfilename: file.size or 0 for file in info.siblings or ()}
            if "README.md" in sizes and not all(hub.files for hub in hubs):
                readme = hf_hub_download(hub.path, "README.md", repo_type="dataset", revision=info.sha)
                card = Card.read(hub, Path(readme).parent)
        except Exception as error:
            return cls(problem=_state_of(hub, error))
        card = replace(card, has_script=script_name(hub) in sizes)
        return cls(path=info.id, commit=str(info.sha), sizes=sizes, card=card)

    def state(self, ref: DataRef, cache: Path, *, footers: bool) -> SourceState:
        """Return the state of one split."""
        hub = ref.hub
        if self.problem is not None or hub is None:
            return self.problem or SourceState(state="right")
        try:
            files = self._files(hub)
            for name, features in files.items():
                is_read = footers and name.endswith(".parquet")
                _check_columns(ref, hub, _footer(self, name) if is_read else features, f"{hub.path}/{name}")
        except Exception as error:
            return _state_of(hub, error)
        absent = self._absent(hub, files, cache)
        if self.path == hub.path:
            return SourceState(state="right", files=absent)
        detail = f"The Hub dataset {hub.path!r} is now {self.path!r}. Name it so in the spec."
        return SourceState(state="renamed", detail=detail, files=absent)

    def _files(self, hub: HubFiles) -> dict[str, Mapping[str, Any]]:
        """Return the files of a split, each with the features that the card declares.

        Raises `DataError` for what a download would raise it for.
        """
        if hub.files:
            return {name: {} for pattern in hub.files for name in self._matches(hub, pattern)}
        files: dict[str, Mapping[str, Any]] = {}
        for single in single_configs(hub, self.card):
            recipe = self.card.recipe(single)
            names = (
                self._split_files(single, recipe)
                if recipe.data_files is None
                else [name for pattern in recipe.data_files for name in self._matches(single, pattern)]
            )
            files |= dict.fromkeys(names, recipe.features)
        return files

    def _matches(self, hub: HubFiles, pattern: str) -> list[str]:
        from fsspec.utils import glob_translate  # type: ignore[import-untyped]

        names = list(filter(re.compile(glob_translate(pattern)).fullmatch, self.sizes))
        if not names:
            raise MissingDataError(
                f"The Hub dataset {hub.path!r} at {self.commit} has no file {pattern!r}.",
                hint=f"See https://huggingface.co/datasets/{hub.path}/tree/{self.commit}, or use --data DIR.",
            )
        return names

    def _split_files(self, hub: HubFiles, recipe: Recipe) -> list[str]:
        """Return the files whose paths have the name of the split; those of ``train`` where no path has any."""
        names = [name for name in self.sizes if any(fnmatch(name, each) for each in recipe.download)]
        words = {hub.split: hub.split, **_SPLITS}
        by_split = {
            split: [name for name in names if re.search(rf"(?<![a-z])({item})(?![a-z])", name)]
            for split, item in words.items()
        }
        if hub.split == "train" and not any(by_split.values()):
            return names
        if not by_split[hub.split]:
            raise MissingDataError(
                f"The Hub dataset {hub.path!r} has no split {hub.split!r}.",
                hint=f"It has: {', '.join(split for split, found in by_split.items() if found) or 'no data'}.",
            )
        return by_split[hub.split]

    def _absent(self, hub: HubFiles, names: Mapping[str, object], cache: Path) -> dict[str, int]:
        """Return the files that are not on this machine, with their sizes."""
        from huggingface_hub import try_to_load_from_cache

        if kept_file(hub, self.commit, cache).is_file():
            return {}
        return {
            f"{self.path}@{self.commit}/{name}": self.sizes[name]
            for name in names
            if not isinstance(
                try_to_load_from_cache(hub.path, name, repo_type="dataset", revision=self.commit), str
            )
        }


class _BrokenFileError(DataError):
    """A file that cannot be read."""


def _state_of(hub: HubFiles, error: Exception) -> SourceState:
    """Return the state of a split that asking for it failed with."""
    # The HTTP library below the client, and so the errors there, changes with its version.
    if not isinstance(error, DataError):
        state, reason = hub_problem(hub, hub.revision, error)
        return SourceState(state=state, detail=str(reason))
    state = "broken" if isinstance(error, _BrokenFileError) else "different"
    return SourceState(state=state, detail=str(error))


@functools.cache
def _footer(dataset: _Dataset, name: str) -> Mapping[str, Any]:
    """Return column -> feature of a Parquet file; raises `_BrokenFileError`."""
    size = dataset.sizes[name]
    tail = _read_range(dataset, name, max(0, size - FOOTER), size)
    length = int.from_bytes(tail[-8:-4], "little") + 8
    if len(tail) < length <= size and tail[-4:] == b"PAR1":
        tail = _read_range(dataset, name, size - length, size)
    try:
        return file_features(io.BytesIO(b"PAR1" + tail[-length:]))
    except (OSError, ValueError, RuntimeError) as error:
        raise _BrokenFileError(
            f"{name!r} of the Hub dataset {dataset.path!r} cannot be read: {in_plain_words(error)}.",
            hint="Use --data DIR.",
        ) from error


def _read_range(dataset: _Dataset, name: str, start: int, end: int) -> bytes:
    from huggingface_hub import get_session, hf_hub_url
    from huggingface_hub.utils import build_hf_headers, hf_raise_for_status  # type: ignore[attr-defined]

    url = hf_hub_url(dataset.path, name, repo_type="dataset", revision=dataset.commit)
    headers = {**build_hf_headers(), "Range": f"bytes={start}-{end - 1}"}
    answer = get_session().get(url, headers=headers, timeout=TIMEOUT)
    hf_raise_for_status(answer)
    return bytes(answer.content if answer.status_code == 206 else answer.content[start:end])


def _check_columns(ref: DataRef, hub: HubFiles, features: Mapping[str, Any], where: str) -> None:
    """Raise `DataError` for a column that is missing, and where the label names are not those of the spec."""
    if features:
        columns = ",".join(ref.fields) if hub.columns is None else hub.columns
        wanted = wanted_columns({"columns": columns} if columns else {})
        source_columns(
            wanted, wanted_records(hub.options), [*features, "config"], where
        )  # the loader adds 'config'
        label_map(hub, features)
