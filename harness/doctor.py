"""What this environment has and lacks: versions, devices, plugins, caches, and the extras of features.

Versions are read from installed metadata; nothing that is described is imported, except torch where it is asked for.
"""

from __future__ import annotations

import importlib.metadata
import os
import platform
import re
import shutil
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

from harness.discovery import Plugins
from harness.storage import cache_folder

__all__ = ["Finding", "examine"]

DISTRIBUTION = "multilingual-harness"
FEATURES: Final[Mapping[str, str]] = {
    "hf": "models and data of the Hugging Face Hub, fine-tuning, several processes",
    "vllm": "tokens counted for vLLM and other endpoints",
    "metrics": "the metrics bleu and chrf",
    "translate": "checks of translations: language and chrF",
    "evaluate": "metrics named evaluate:NAME",
    "retrieval": "search with faiss in large pools",
    "typology": "the typology index of languages",
}
"""Extra -> what it is for."""
_FURTHER = ("vllm", "lm_eval")
"""Packages that no extra brings and whose versions matter."""
_PATIENCE = 10.0
_REQUIREMENT = re.compile(r"^([A-Za-z0-9._-]+)")
_EXTRA = re.compile(r"extra\s*==\s*[\"']([^\"']+)[\"']")


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One line of the examination."""

    area: str
    """``version``, ``device``, ``plugin``, ``cache`` or ``feature``."""
    name: str
    state: str
    """``ok``, ``missing``, ``broken`` or ``disabled``."""
    detail: str = ""
    """A version, a size, or what is wrong."""
    advice: str = ""
    """The next command; empty where nothing is to be done."""

    def to_json(self) -> dict[str, Any]:
        """Return it as a plain object."""
        return asdict(self)


def examine(plugins: Plugins, *, devices: bool = False) -> list[Finding]:
    """Return what is there and what is missing, area by area; raises nothing for what is broken.

    Args:
        plugins: The plugins of this environment, as they were found.
        devices: Also import torch and ask it; without, only ``nvidia-smi`` is asked.
    """
    return [
        *_versions(),
        *_devices(),
        *(_torch_devices() if devices else ()),
        *_plugins(plugins),
        *_caches(),
        *_features(),
    ]


def _requirements() -> dict[str, list[str]]:
    """Return the packages of every extra of ours; those that are always needed under the empty name."""
    found: dict[str, list[str]] = {"": [], **{extra: [] for extra in FEATURES}}
    try:
        declared = importlib.metadata.requires(DISTRIBUTION) or []
    except importlib.metadata.PackageNotFoundError:
        return found
    for text in declared:
        package, extra = _REQUIREMENT.match(text), _EXTRA.search(text)
        name = "" if extra is None else extra.group(1)
        if package is not None and package.group(1) != DISTRIBUTION and name in found:
            found[name].append(package.group(1))
    return found


def _version(package: str) -> str | None:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None


def _versions() -> Iterator[Finding]:
    yield Finding(area="version", name="python", state="ok", detail=platform.python_version())
    yield Finding(area="version", name="platform", state="ok", detail=platform.platform(terse=True))
    packages = dict.fromkeys(name for names in _requirements().values() for name in names)
    for name in (DISTRIBUTION, *packages, *_FURTHER):
        version = _version(name)
        yield Finding(
            area="version", name=name, state="missing" if version is None else "ok", detail=version or ""
        )


def _devices() -> Iterator[Finding]:
    available = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    yield Finding(area="device", name="cpu", state="ok", detail=f"{available} cores")
    command = shutil.which("nvidia-smi")
    if command is None:
        yield Finding(area="device", name="gpu", state="missing", detail="no nvidia-smi")
        return
    query = [command, "--query-gpu=name,memory.total,driver_version", "--format=csv,noheader"]
    try:
        answer = subprocess.run(query, capture_output=True, text=True, timeout=_PATIENCE, check=True)
    except (OSError, subprocess.SubprocessError) as error:
        reason = "it does not answer" if isinstance(error, subprocess.TimeoutExpired) else "it failed"
        yield Finding(area="device", name="gpu", state="broken", detail=f"nvidia-smi: {reason}")
        return
    for number, line in enumerate(answer.stdout.splitlines()):
        yield Finding(area="device", name=f"gpu {number}", state="ok", detail=line.strip())


def _torch_devices() -> Iterator[Finding]:
    try:
        import torch
    except Exception as error:  # noqa: BLE001, RUF100  a broken installation may raise anything
        missing = isinstance(error, ModuleNotFoundError) and error.name == "torch"
        state, detail = (
            ("missing", "not installed") if missing else ("broken", f"{type(error).__name__}: {error}")
        )
        yield Finding(area="device", name="torch", state=state, detail=detail, advice=_install("hf"))
        return
    if torch.cuda.is_available():
        for number in range(torch.cuda.device_count()):
            name = torch.cuda.get_device_name(number)
            yield Finding(area="device", name=f"torch cuda:{number}", state="ok", detail=name)
    else:
        yield Finding(area="device", name="torch", state="ok", detail="uses the CPU; it sees no GPU")


def _plugins(plugins: Plugins) -> Iterator[Finding]:
    broken = {plugin.name for plugin in plugins.broken}
    for plugin in plugins.loaded:
        if plugin.name not in broken:
            detail = f"{plugin.distribution} {plugin.version}"
            yield Finding(area="plugin", name=plugin.name, state="ok", detail=detail)
    for plugin, problem in zip(plugins.broken, plugins.problems, strict=True):
        yield Finding(
            area="plugin",
            name=plugin.name,
            state="broken",
            detail=plugin.error or "",
            advice=problem.hint or "",
        )
    for name in plugins.disabled:
        yield Finding(area="plugin", name=name, state="disabled")


def _caches() -> Iterator[Finding]:
    own = cache_folder()
    folders = {f"{own.name}/{path.name}": path for path in sorted(own.glob("*")) if path.is_dir()}
    for name, path in {"harness": own, **folders, "huggingface": _hub_cache()}.items():
        if path.is_dir():
            files, size = _size(path)
            yield Finding(
                area="cache", name=name, state="ok", detail=f"{_shown(size)} in {files:,} files, {path}"
            )
        else:
            yield Finding(area="cache", name=name, state="missing", detail=str(path))


def _hub_cache() -> Path:
    """Return where huggingface_hub keeps downloads, by its documented environment variables."""
    given = os.environ.get("HF_HUB_CACHE")
    if given:
        return Path(given)
    home = os.environ.get("HF_HOME")
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return (Path(home) if home else cache / "huggingface") / "hub"


def _size(folder: Path) -> tuple[int, int]:
    """Return files and bytes below a folder; links are not followed, what vanishes meanwhile is left out."""
    files = size = 0
    for root, _, names in os.walk(folder):
        for name in names:
            try:
                status = (Path(root) / name).lstat()
            except OSError:
                continue
            files, size = files + 1, size + status.st_size
    return files, size


def _shown(size: int) -> str:
    amount = float(size)
    for unit in ("B", "KiB", "MiB"):
        if amount < 1024:
            return f"{amount:.0f} {unit}"
        amount /= 1024
    return f"{amount:.1f} GiB"


def _install(extra: str) -> str:
    return f"pip install '{DISTRIBUTION}[{extra}]'"


def _features() -> Iterator[Finding]:
    requirements = _requirements()
    for extra, purpose in FEATURES.items():
        missing = [name for name in requirements[extra] if _version(name) is None]
        if missing:
            yield Finding(
                area="feature",
                name=extra,
                state="missing",
                detail=f"{purpose}: no {_listed(missing)}",
                advice=_install(extra),
            )
        else:
            yield Finding(area="feature", name=extra, state="ok", detail=purpose)


def _listed(names: Sequence[str]) -> str:
    return ", ".join(names)
