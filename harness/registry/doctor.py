"""What this environment has and what is missing: versions, devices, plugins, caches, and the extras of features.

Versions and the lowest that will do are read from installed metadata; nothing that is described is imported, except
torch where it is asked for.
"""

from __future__ import annotations

import os
import platform
import shlex
import shutil
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

from harness.registry.discovery import Plugins
from harness.registry.requirement import Requirement, declared, installed_version
from harness.storage.files import cache_folder

__all__ = ["Finding", "examine"]

DISTRIBUTION = "multilingual-harness"
FEATURES: Final[Mapping[str, str]] = {
    "board": "harness board: needs nothing more",
    "evaluate": "metrics named evaluate:NAME",
    "hf": "models and data of the Hugging Face Hub, fine-tuning, several processes",
    "metrics": "the metrics bleu and chrf",
    "retrieval": "search with faiss in large pools; without it numpy searches",
    "translate": "languages of translations, written answers and words of prompts; chrF",
    "typology": "the typology index of languages",
    "vllm": "tokens counted for vLLM and other endpoints",
}
"""Extra -> what it is for."""
_APART: Final[Mapping[str, tuple[Requirement, str, str]]] = {
    "vllm": (
        Requirement(name="vllm"),
        "vLLM started here as vllm:MODEL; best in an environment of its own: -o python=vllm-env/bin/python",
        "python -m venv vllm-env && vllm-env/bin/pip install vllm",
    ),
    "lm_eval": (
        Requirement(name="lm_eval", lowest="0.4.13"),
        "tasks of lm-evaluation-harness by name",
        "pip install 'lm-eval>=0.4.13'",
    ),
}
"""Package that no extra brings -> which version will do, what it is for, and the command that installs it."""
_CACHES: Final[Mapping[str, str]] = {
    "data": "downloaded data",
    "fits": "fine-tuned models",
    "specs": "parsed specs",
    "translations": "translated texts, which cost their translator's time or money again",
}
"""Folder of our cache -> what it holds; all of it is made again when it is needed."""
_PATIENCE = 10.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One line of the examination."""

    area: str
    """``version``, ``device``, ``plugin``, ``cache`` or ``feature``."""
    name: str
    state: str
    """``ok``, ``missing``, ``outdated`` (no version that will do), ``broken`` or ``disabled``."""
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


def _versions() -> Iterator[Finding]:
    yield Finding(area="version", name="python", state="ok", detail=platform.python_version())
    yield Finding(area="version", name="platform", state="ok", detail=platform.platform(terse=True))
    own = installed_version(DISTRIBUTION)
    yield Finding(
        area="version", name=DISTRIBUTION, state="missing" if own is None else "ok", detail=own or ""
    )
    wanted = {item.name: item for item in declared(DISTRIBUTION) if item.extra in {"", *FEATURES}}
    for name, requirement in wanted.items():
        version = installed_version(name)
        if version is not None:
            yield _version(requirement, version)
        elif not requirement.extra:
            yield Finding(area="version", name=name, state="missing", advice=f"pip install '{requirement}'")
    for requirement, _, _ in _APART.values():
        if (version := installed_version(requirement.name)) is not None:
            yield _version(requirement, version)


def _version(requirement: Requirement, version: str) -> Finding:
    fault = requirement.fault(version)
    return Finding(
        area="version",
        name=requirement.name,
        state="ok" if fault is None else "outdated",
        detail=version if fault is None else f"{version}: {fault}",
        advice="" if fault is None else f"pip install '{requirement}'",
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
    for plugin in plugins.broken:
        yield Finding(
            area="plugin",
            name=plugin.name,
            state="broken",
            detail=plugin.error or "",
            advice=plugin.problem.hint or "",
        )
    for name in plugins.disabled:
        yield Finding(area="plugin", name=name, state="disabled")


def _caches() -> Iterator[Finding]:
    own = cache_folder()
    inside = {f"{own.name}/{path.name}": path for path in sorted(own.glob("*")) if path.is_dir()}
    for name, path in {"harness": own, **inside, "huggingface": _hub_cache()}.items():
        if path.is_dir():
            files, size = _size(path)
            holds = f": {_CACHES[path.name]}" if path.parent == own and path.name in _CACHES else ""
            yield Finding(
                area="cache",
                name=name,
                state="ok",
                detail=f"{_shown(size)} in {files:,} files, {path}{holds}",
                advice=f"to clear it: rm -r {shlex.quote(str(path))}" if files else "",
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
    """Return files and bytes below a folder; links are not followed, and files that vanish meanwhile are skipped."""
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
    requirements = declared(DISTRIBUTION)
    for extra, purpose in FEATURES.items():
        unmet = _unmet([item for item in requirements if item.extra == extra])
        yield Finding(
            area="feature",
            name=extra,
            state="missing" if unmet else "ok",
            detail=f"{purpose}: {unmet}" if unmet else purpose,
            advice=_install(extra) if unmet else "",
        )
    for name, (requirement, purpose, command) in _APART.items():
        unmet = _unmet([requirement])
        yield Finding(
            area="feature",
            name=name if name not in FEATURES else f"{name} server",
            state="missing" if unmet else "ok",
            detail=f"{purpose}: {unmet}" if unmet else purpose,
            advice=command if unmet else "",
        )


def _unmet(requirements: Sequence[Requirement]) -> str:
    """Return why requirements are not met (``no torch, datasets; transformers 4.57 is too old``), or nothing."""
    versions = {item.name: installed_version(item.name) for item in requirements}
    absent = [name for name, version in versions.items() if version is None]
    faults = [
        f"{item.name} {version} is {fault.partition(',')[0]}"
        for item in requirements
        if (version := versions[item.name]) is not None and (fault := item.fault(version)) is not None
    ]
    return "; ".join([*([f"no {', '.join(absent)}"] if absent else []), *faults])
