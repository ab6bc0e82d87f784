"""Models whose weights are pickled: converted once to safetensors in the cache, never loaded as they are.

A converted copy is a folder ``converted/NAME-DIGEST`` of the cache: links to the model's other files, the weights in
safetensors, and a record of the source's digests. Its files are those of the source, so edits of config.json count.
"""

from __future__ import annotations

import hashlib
import json
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from harness import AdapterError
from harness.storage import FileLock, cache_folder, configuration_files, file_digest
from harness_hf.hub_snapshot import (
    SNAPSHOT_PATTERNS,
    from_hub,
    hub_files,
    name_and_revision,
    safetensors_commit,
)
from harness_hf.options import ModelOptions

RECORD = ".conversion.json"
"""Hidden, so that it is no file of the model."""
PICKLED = re.compile(r"(?P<folder>\d[^/]*/)?(?P<stem>pytorch_model|adapter_model)(?P<part>-\d+-of-\d+)?\.bin")
"""Weights of a model, perhaps in several files, of a low-rank adapter, and of a module such as ``2_Dense``."""
PATIENCE = 6 * 3600.0
"""Seconds that a process waits for another one that converts the same model."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PickledModel:
    """A model whose weights are pickled, and its converted copy."""

    ref: str
    """The name that the user gave."""
    source: str
    """An absolute path, or ``NAME@COMMIT`` of the Hub."""
    files: Mapping[str, str]
    """SHA-256 of the pickled files by name; "" where the Hub does not list it."""

    @classmethod
    def find(cls, ref: str, options: ModelOptions, revision: str | None) -> PickledModel | None:
        """Return the model if its weights are pickled only; None for others and where the Hub lists no files.

        `revision` is a commit; without it that of the Hub's repository is looked up.
        """
        folder = Path(ref).expanduser()
        if folder.is_dir():
            paths = [*folder.glob("*"), *folder.glob("[0-9]*/*")]
            files = _only_pickled(path.relative_to(folder).as_posix() for path in paths)
            digests = {file: file_digest(folder / file) for file in files}
            return cls(ref=ref, source=str(folder.resolve()), files=digests) if files else None
        commit = revision or Path(from_hub(ref, options, "config.json")).parent.name
        model = cls(ref=ref, source=f"{name_and_revision(ref, options)[0]}@{commit}", files={})
        if (model.folder / RECORD).is_file():
            return model
        listed = hub_files(ref, options, commit)
        files = _only_pickled(listed)
        return (
            cls(ref=ref, source=model.source, files={file: listed[file] for file in files}) if files else None
        )

    @property
    def folder(self) -> Path:
        """The folder of the converted copy, whether it exists or not."""
        digest = hashlib.sha256(self.source.encode()).hexdigest()[:16]
        return cache_folder() / "converted" / f"{Path(self.source).name}-{digest}"

    def is_converted(self) -> bool:
        """Return whether there is a converted copy of these very files; those of a commit never change."""
        if not (self.folder / RECORD).is_file() or not any(self.folder.rglob("*.safetensors")):
            return False
        recorded = json.loads((self.folder / RECORD).read_text(encoding="utf-8"))["files"]
        return not Path(self.source).is_absolute() or recorded == self.files

    def fault(self, options: ModelOptions) -> str:
        """Return why the model cannot be read, with the command that converts it; empty where it can be."""
        if options.convert_weights or self.is_converted():
            return ""
        return (
            f"The model {self.ref!r} has pickled weights only ({next(iter(self.files), 'none')}), and weights are read "
            f"from safetensors. Convert them once: harness fetch hf:{self.ref} --convert"
        )

    def converted(self, options: ModelOptions) -> Path:
        """Return the folder of the converted copy, made first if the options allow it; raises `AdapterError`."""
        if fault := self.fault(options):
            raise AdapterError(fault)
        self.folder.parent.mkdir(parents=True, exist_ok=True)
        lock = FileLock(self.folder.with_name(f".{self.folder.name}.lock"))
        if not lock.acquire(patience=PATIENCE):
            raise AdapterError(f"The weights of {self.ref!r} are being converted by {lock.holder()}.")
        try:
            if not self.is_converted():
                self._convert(options)
            _link_files(self._origin(options, SNAPSHOT_PATTERNS), self.folder)
        finally:
            lock.release()
        return self.folder

    def _origin(self, options: ModelOptions, patterns: Iterable[str]) -> Path:
        """Return the folder of the source's files, downloaded where it is a hub id."""
        if Path(self.source).is_absolute():
            return Path(self.source)
        return Path(from_hub(self.ref, options, None, self.source.rpartition("@")[2], [*patterns]))

    def _convert(self, options: ModelOptions) -> None:
        """Write the weights and the record into a new folder, which then gets the name of the copy."""
        new = Path(tempfile.mkdtemp(dir=self.folder.parent, prefix=".new-"))
        try:
            is_local = Path(self.source).is_absolute()
            safe = None if is_local else safetensors_commit(self.ref, options, self.files)
            if safe is None:
                origin = self._origin(options, [*SNAPSHOT_PATTERNS, *self.files])
                _unpickle(origin, new, [*self.files])
                digests = {file: file_digest(origin / file) for file in self.files}
                conversion = "torch.load(weights_only=True)"
            else:
                reference, commit = safe
                weights = Path(from_hub(self.ref, options, None, commit, ["*.safetensors*"]))
                _link(
                    weights, new, [str(file.relative_to(weights)) for file in weights.rglob("*.safetensors*")]
                )
                digests, conversion = dict(self.files), f"{reference} of the Hub's conversion bot at {commit}"
            record = {"source": self.source, "files": digests, "conversion": conversion}
            (new / RECORD).write_text(json.dumps(record, indent=2), encoding="utf-8")
            shutil.rmtree(self.folder, ignore_errors=True)
            new.rename(self.folder)
        finally:
            shutil.rmtree(new, ignore_errors=True)


def conversion_identity(folder: Path) -> dict[str, str]:
    """Return the digest of the pickled source of a converted copy and the way of conversion; empty for others."""
    if not (folder / RECORD).is_file():
        return {}
    record = json.loads((folder / RECORD).read_text(encoding="utf-8"))
    digests = "".join(record["files"][file] for file in sorted(record["files"]))
    return {
        "converted_from": hashlib.sha256(digests.encode("ascii")).hexdigest(),
        "conversion": record["conversion"],
    }


def _only_pickled(names: Iterable[str]) -> list[str]:
    """Return the pickled weights among the names of a model's files that have no counterpart in safetensors.

    One file that holds all weights is read in preference to several, as transformers does, and an adapter's folder
    has no other weights.
    """
    names, pickled = set(names), []
    stem = "adapter_model" if "adapter_config.json" in names else "pytorch_model"
    for name in sorted(names):
        if (match := PICKLED.fullmatch(name)) and match["stem"] == stem:
            folder = match["folder"] or ""
            safe = f"{folder}{stem.removeprefix('pytorch_')}.safetensors"
            is_extra = match["part"] and f"{folder}{stem}.bin" in names
            if not is_extra and not names & {safe, f"{safe}.index.json"}:
                pickled.append(name)
    return pickled


def _unpickle(origin: Path, target: Path, files: Iterable[str]) -> None:
    """Convert the pickled files of a folder in a process of its own; raises `AdapterError` with its one sentence."""
    command = [sys.executable, "-m", "harness_hf.unpickling", str(origin), str(target), *files]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        lines = (done.stdout if done.returncode == 1 else done.stderr).strip().splitlines()
        reason = lines[-1] if lines else f"the process ended with status {done.returncode}"
        raise AdapterError(f"The weights of {str(origin)!r} were not converted: {reason.rstrip('.')}.")


def _link_files(origin: Path, copy: Path) -> None:
    """Link the files of a model that are not pickled into its converted copy."""
    safe = [*origin.glob("*.safetensors"), *origin.glob("[0-9]*/*.safetensors")]
    _link(
        origin, copy, [*configuration_files(origin), *(file.relative_to(origin).as_posix() for file in safe)]
    )


def _link(origin: Path, copy: Path, files: Iterable[str]) -> None:
    for file in files:
        link = copy / file
        # The index of the pickled weights names files that the copy does not have.
        if not file.endswith(".bin.index.json") and not link.exists():
            link.parent.mkdir(parents=True, exist_ok=True)
            link.unlink(missing_ok=True)
            link.symlink_to((origin / file).resolve())
