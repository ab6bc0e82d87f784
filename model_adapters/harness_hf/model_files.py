"""Files of a model repository on the Hub: one file, a snapshot, the list, and the Hub's own safetensors conversion.

Models whose weights are pickled are converted once to safetensors in the cache, never loaded as they are.

A converted copy is a folder ``converted/NAME-DIGEST`` of the cache: links to the model's other files, the weights in
safetensors, and a record of the source's digests. Its files are those of the source, so edits of config.json count.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from harness import AdapterError, HarnessError, UsageError, near_names
from harness.models import hub_is_unreachable
from harness.storage import FileLock, cache_folder, configuration_files, file_digest
from harness_hf.options import ModelOptions

HUB_ID = re.compile(r"[A-Za-z0-9][\w.-]*(/[A-Za-z0-9][\w.-]*)?(@[\w.-]+(/[\w.-]+)*)?")
"""``NAME``, ``OWNER/NAME``, and either with ``@REVISION``."""
SNAPSHOT_PATTERNS = ("*.json", "*.safetensors", "*.model", "*.txt", "*.jinja", "*.py")
"""What is downloaded: configuration, tokenizer, safetensors; pickled weights only to convert them."""
SNAPSHOT_IGNORED = ["onnx/*", "openvino/*", "coreml/*", "[!0-9]*/*.safetensors"]
"""Weights in folders are other models, but for those of modules such as ``2_Dense``."""
CONVERSION_BOT = "SFconvertbot"
"""Account of the Hub that opens pull requests with safetensors; anyone may give a pull request its title."""
RECORD = ".conversion.json"
"""Hidden, so that it is no file of the model."""
PICKLED = re.compile(r"(?P<folder>\d[^/]*/)?(?P<stem>pytorch_model|adapter_model)(?P<part>-\d+-of-\d+)?\.bin")
"""Weights of a model, perhaps in several files, of a low-rank adapter, and of a module such as ``2_Dense``."""
PATIENCE = 6 * 3600.0
"""Seconds that a process waits for another one that converts the same model."""


def name_and_revision(ref: str, options: ModelOptions) -> tuple[str, str | None]:
    """Return the repository and the revision of ``NAME@REVISION``; raises `UsageError` where the option names another.

    Without ``@`` the revision is that of the option.
    """
    name, _, revision = ref.partition("@")
    if revision and options.revision not in (None, revision):
        raise UsageError(
            f"The model {ref!r} names the revision {revision!r}, and the option names {options.revision!r}.",
            hint="Omit -o revision.",
        )
    return name, revision or options.revision


def from_hub(
    ref: str,
    options: ModelOptions,
    file: str | None = None,
    revision: str | None = None,
    patterns: Sequence[str] = SNAPSHOT_PATTERNS,
) -> str:
    """Return the path of one file of a repository, or of a snapshot of it where `file` is None."""
    name, chosen = name_and_revision(ref, options)
    revision = revision or chosen
    is_local = options.local_files_only or hub_is_unreachable()
    try:
        if file is not None:
            from huggingface_hub import hf_hub_download

            return str(hf_hub_download(name, file, revision=revision, local_files_only=is_local))
        from huggingface_hub import snapshot_download

        return str(
            snapshot_download(
                name,
                revision=revision,
                local_files_only=is_local,
                allow_patterns=list(patterns),
                ignore_patterns=SNAPSHOT_IGNORED,
            )
        )
    except Exception as error:
        raise _explain(name, revision, error) from error


def _hub_files(ref: str, options: ModelOptions, revision: str) -> Mapping[str, str]:
    """Return the names of a repository's files with the SHA-256 of large ones, "" for others; empty if unreachable."""
    from huggingface_hub import constants

    if options.local_files_only or hub_is_unreachable():
        return {}
    return _list_files(constants.ENDPOINT, name_and_revision(ref, options)[0], revision)[1]


@lru_cache(maxsize=64)
def _list_files(endpoint: str, name: str, revision: str) -> tuple[str, Mapping[str, str]]:
    """Return the commit of a revision and its files, as `_hub_files` does; nothing where the Hub does not list them."""
    from huggingface_hub import HfApi

    try:
        info = HfApi(endpoint=endpoint).model_info(name, revision=revision, files_metadata=True)
    except Exception:
        return "", {}  # the download, which follows, reports what is wrong
    return info.sha or "", {
        file.rfilename: file.lfs.sha256 if file.lfs else "" for file in info.siblings or []
    }


def _safetensors_commit(ref: str, options: ModelOptions, files: Mapping[str, str]) -> tuple[str, str] | None:
    """Return the reference and commit of the Hub's own conversion of pickled `files`; None where there is none.

    It is an open pull request of the Hub's bot whose pickled files have the same SHA-256 as those of the model.
    """
    from huggingface_hub import HfApi, constants

    if options.local_files_only or hub_is_unreachable() or "" in files.values():
        return None
    name, _ = name_and_revision(ref, options)
    try:
        requests = list(
            HfApi().get_repo_discussions(name, author=CONVERSION_BOT, discussion_type="pull_request")
        )
    except Exception:
        return None  # a mirror without pull requests
    for request in requests:
        if request.author != CONVERSION_BOT or request.status != "open" or not request.git_reference:
            continue
        commit, listed = _list_files(constants.ENDPOINT, name, request.git_reference)
        is_same = all(listed.get(file) == digest for file, digest in files.items())
        safe = {str(Path(file).parent) for file in listed if file.endswith(".safetensors")}
        if is_same and safe >= {str(Path(file).parent) for file in files}:
            return request.git_reference, commit
    return None


def near_models(folder: Path, name: str | None = None) -> str | None:
    """Return a hint naming the model folders below `folder` that resemble `name`, or all of them."""
    if not folder.is_dir():
        parent = folder.parent
        readable = parent.is_dir() and os.access(parent, os.R_OK | os.X_OK)
        siblings = [child.name for child in parent.iterdir() if child.is_dir()] if readable else []
        return next(
            (
                hint
                for sibling in near_names(folder.name, siblings)
                if (hint := near_models(parent / sibling, name))
            ),
            None,
        )
    models = sorted(child.name for child in folder.iterdir() if (child / "config.json").is_file())
    candidates = near_names(name, models) if name else models[:5]
    return (
        f"Did you mean {' or '.join(repr(str(folder / model)) for model in candidates)}?"
        if candidates
        else None
    )


def _explain(ref: str, revision: str | None, error: Exception) -> HarnessError:
    """Return the error for an answer of the hub, or for no answer."""
    from huggingface_hub import errors

    at = f" at revision {revision!r}" if revision else ""
    path = Path(ref)
    near = near_models(path.parent, path.name)
    if isinstance(error, errors.GatedRepoError):
        return AdapterError(
            f"The hub model {ref!r} is gated.", hint="Accept its terms on its page and run: hf auth login"
        )
    if isinstance(error, errors.RevisionNotFoundError):
        return UsageError(f"The hub model {ref!r} has no revision {revision!r}.")
    if isinstance(error, errors.RepositoryNotFoundError | errors.HFValidationError):
        return UsageError(f"There is no folder {ref!r} here and no such model on the hub.", hint=near)
    if isinstance(error, errors.LocalEntryNotFoundError | errors.OfflineModeIsEnabled):
        return AdapterError(
            f"There is no folder {ref!r} here, and the hub model of that name{at} is neither downloaded nor "
            "reachable.",
            hint=near or "Give a folder, or connect to the network (unset HF_HUB_OFFLINE).",
        )
    if isinstance(error, errors.EntryNotFoundError):
        return UsageError(f"The hub model {ref!r}{at} has no config.json, so transformers cannot open it.")
    return AdapterError(f"The hub could not give {ref!r}{at}: {type(error).__name__}: {error}.", hint=near)


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
        listed = _hub_files(ref, options, commit)
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
            safe = None if is_local else _safetensors_commit(self.ref, options, self.files)
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
