"""Files of a model repository on the Hub: one file, a snapshot, the list, and the Hub's own safetensors conversion."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path

from harness import AdapterError, HarnessError, UsageError, near_names
from harness.models import hub_is_unreachable
from harness_hf.options import ModelOptions

HUB_ID = re.compile(r"[A-Za-z0-9][\w.-]*(/[A-Za-z0-9][\w.-]*)?(@[\w.-]+(/[\w.-]+)*)?")
"""``NAME``, ``OWNER/NAME``, and either with ``@REVISION``."""
SNAPSHOT_PATTERNS = ("*.json", "*.safetensors", "*.model", "*.txt", "*.jinja", "*.py")
"""What is downloaded: configuration, tokenizer, safetensors; pickled weights only to convert them."""
SNAPSHOT_IGNORED = ["onnx/*", "openvino/*", "coreml/*", "[!0-9]*/*.safetensors"]
"""Weights in folders are other models, but for those of modules such as ``2_Dense``."""
CONVERSION_BOT = "SFconvertbot"
"""Account of the Hub that opens pull requests with safetensors; anyone may give a pull request its title."""


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


def hub_files(ref: str, options: ModelOptions, revision: str) -> Mapping[str, str]:
    """Return the names of a repository's files with the SHA-256 of large ones, "" for others; empty if unreachable."""
    from huggingface_hub import constants

    if options.local_files_only or hub_is_unreachable():
        return {}
    return _list_files(constants.ENDPOINT, name_and_revision(ref, options)[0], revision)[1]


@lru_cache(maxsize=64)
def _list_files(endpoint: str, name: str, revision: str) -> tuple[str, Mapping[str, str]]:
    """Return the commit of a revision and its files, as `hub_files` does; nothing where the Hub does not list them."""
    from huggingface_hub import HfApi

    try:
        info = HfApi(endpoint=endpoint).model_info(name, revision=revision, files_metadata=True)
    except Exception:
        return "", {}  # the download, which follows, reports what is wrong
    return info.sha or "", {
        file.rfilename: file.lfs.sha256 if file.lfs else "" for file in info.siblings or []
    }


def safetensors_commit(ref: str, options: ModelOptions, files: Mapping[str, str]) -> tuple[str, str] | None:
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
