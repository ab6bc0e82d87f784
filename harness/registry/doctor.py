"""State of this environment, missing parts included: versions, devices, plugins, caches, and the extras of features.

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
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from packaging.requirements import Requirement

from harness.registry.discovery import Plugins
from harness.registry.plugin import declared, describe_mismatch, installed_version
from harness.storage.files import cache_folder

DISTRIBUTION = "multilingual-harness"
FEATURES: Final[Mapping[str, str]] = {
    "baselines": "baseline:char-ngram",
    "board": "harness board: needs nothing more",
    "endpoints": "requests to vLLM and other endpoints, and their tokens counted",
    "evaluate": "metrics named evaluate:NAME",
    "hf": "models and data of the Hugging Face Hub, fine-tuning, several processes",
    "inspect": "logs of inspect_ai (harness import)",
    "metrics": "the metrics bleu and chrf",
    "mlflow": "runs logged to MLflow (--log mlflow)",
    "peft": "fine-tuning with the recipes lora and qlora, 4-bit weights",
    "plots": "figures as PDF and PNG",
    "ray": "fleets of runs on Ray (harness submit --backend ray)",
    "retrieval": "search with faiss in large pools; without it numpy searches",
    "slurm": "fleets of runs on Slurm (harness submit --backend slurm)",
    "trackio": "runs logged to trackio (--log trackio)",
    "translate": "languages of translations, written answers and words of prompts; chrF",
    "translate-apis": "the translators google-cloud and deepl",
    "typology": "the typology index of languages",
    "vllm": "the same as endpoints",
    "wandb": "runs logged to Weights & Biases (--log wandb)",
}
"""Extra -> what it is for."""
_APART: Final[Mapping[str, tuple[Requirement, str, str]]] = {
    "vllm": (
        Requirement("vllm"),
        "vLLM started here as vllm:MODEL; best in an environment of its own: -o python=vllm-env/bin/python",
        "python -m venv vllm-env && vllm-env/bin/pip install vllm",
    ),
    "lm_eval": (
        Requirement("lm_eval>=0.4.13,<0.5"),
        "tasks of lm-evaluation-harness by name",
        "pip install 'lm-eval>=0.4.13,<0.5'",
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


@dataclass(frozen=True, slots=True)
class SetupFinding:
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


def examine(plugins: Plugins, *, devices: bool = False) -> list[SetupFinding]:
    """Return the present and the missing parts, area by area; raises nothing for broken ones.

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


def _versions() -> Iterator[SetupFinding]:
    yield SetupFinding("version", "python", "ok", platform.python_version())
    yield SetupFinding("version", "platform", "ok", platform.platform(terse=True))
    harness_version = installed_version(DISTRIBUTION)
    yield SetupFinding(
        "version", DISTRIBUTION, "missing" if harness_version is None else "ok", harness_version or ""
    )
    needed = {item.name: item for item in declared(DISTRIBUTION)}
    optional = {item.name: item for extra in FEATURES for item in declared(DISTRIBUTION, extra)}
    for name, requirement in {**optional, **needed}.items():
        version = installed_version(name)
        if version is not None:
            yield _version(requirement, version)
        elif name in needed:
            yield SetupFinding("version", name, "missing", advice=_install_version(requirement))
    for requirement, _, _ in _APART.values():
        if (version := installed_version(requirement.name)) is not None:
            yield _version(requirement, version)


def _version(requirement: Requirement, version: str) -> SetupFinding:
    fault = describe_mismatch(requirement, version)
    if fault is None:
        return SetupFinding("version", requirement.name, "ok", version)
    advice = _install_version(requirement)
    return SetupFinding("version", requirement.name, "outdated", f"{version}: {fault}", advice)


def _devices() -> Iterator[SetupFinding]:
    available = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    yield SetupFinding("device", "cpu", "ok", f"{available} cores")
    command = shutil.which("nvidia-smi")
    if command is None:
        yield SetupFinding("device", "gpu", "missing", "no nvidia-smi")
        return
    query = [command, "--query-gpu=name,memory.total,driver_version", "--format=csv,noheader"]
    try:
        answer = subprocess.run(query, capture_output=True, text=True, timeout=_PATIENCE, check=True)
    except (OSError, subprocess.SubprocessError) as error:
        reason = "it does not answer" if isinstance(error, subprocess.TimeoutExpired) else "it failed"
        yield SetupFinding("device", "gpu", "broken", f"nvidia-smi: {reason}")
        return
    for number, line in enumerate(answer.stdout.splitlines()):
        yield SetupFinding("device", f"gpu {number}", "ok", line.strip())


def _torch_devices() -> Iterator[SetupFinding]:
    try:
        import torch
    except Exception as error:  # noqa: BLE001, RUF100  a broken installation may raise anything
        missing = isinstance(error, ModuleNotFoundError) and error.name == "torch"
        state, detail = (
            ("missing", "not installed") if missing else ("broken", f"{type(error).__name__}: {error}")
        )
        yield SetupFinding("device", "torch", state, detail, advice=_install("hf"))
        return
    for number in range(torch.cuda.device_count()):
        yield SetupFinding("device", f"torch cuda:{number}", "ok", torch.cuda.get_device_name(number))
    if not torch.cuda.is_available():
        yield SetupFinding("device", "torch", "ok", "uses the CPU; it sees no GPU")


def _plugins(plugins: Plugins) -> Iterator[SetupFinding]:
    broken = {plugin.name for plugin in plugins.broken}
    for plugin in plugins.loaded:
        if plugin.name not in broken:
            yield SetupFinding("plugin", plugin.name, "ok", f"{plugin.distribution} {plugin.version}")
    for plugin in plugins.broken:
        yield SetupFinding(
            "plugin", plugin.name, "broken", plugin.error or "", advice=plugin.problem.hint or ""
        )
    for name in plugins.disabled:
        yield SetupFinding("plugin", name, "disabled")


def _caches() -> Iterator[SetupFinding]:
    harness_cache = cache_folder()
    inside = {
        f"{harness_cache.name}/{path.name}": path for path in sorted(harness_cache.glob("*")) if path.is_dir()
    }
    for name, path in {"harness": harness_cache, **inside, "huggingface": _hub_cache()}.items():
        if path.is_dir():
            files, size = _size(path)
            holds = f": {_CACHES[path.name]}" if path.parent == harness_cache and path.name in _CACHES else ""
            advice = f"to clear it: rm -r {shlex.quote(str(path))}" if files else ""
            yield SetupFinding(
                "cache", name, "ok", f"{shown_size(size)} in {files:,} files, {path}{holds}", advice
            )
        else:
            yield SetupFinding("cache", name, "missing", str(path))


def _hub_cache() -> Path:
    """Return where huggingface_hub keeps downloads, by its documented environment variables."""
    hub_cache = os.environ.get("HF_HUB_CACHE")
    if hub_cache:
        return Path(hub_cache)
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


def shown_size(size: int) -> str:
    """Return a number of bytes for people: ``12 MiB``."""
    amount = float(size)
    for unit in ("B", "KiB", "MiB"):
        if amount < 1024:
            return f"{amount:.0f} {unit}"
        amount /= 1024
    return f"{amount:.1f} GiB"


def _install_version(requirement: Requirement) -> str:
    bounds = ",".join(sorted(map(str, requirement.specifier), reverse=True))  # >=5,<6
    return f"pip install '{requirement.name}{bounds}'"


def _install(extra: str) -> str:
    return f"pip install '{DISTRIBUTION}[{extra}]'"


def _features() -> Iterator[SetupFinding]:
    features = {
        extra: (declared(DISTRIBUTION, extra), FEATURES[extra], _install(extra)) for extra in FEATURES
    }
    for name, (requirement, purpose, command) in _APART.items():
        features[f"{name} server" if name in FEATURES else name] = ([requirement], purpose, command)
    for name, (requirements, purpose, command) in features.items():
        unmet = _unmet(requirements)
        if unmet:
            yield SetupFinding("feature", name, "missing", f"{purpose}: {unmet}", advice=command)
        else:
            yield SetupFinding("feature", name, "ok", purpose)


def _unmet(requirements: Sequence[Requirement]) -> str:
    """Return why requirements are not met (``no torch, datasets; transformers 4.57 is too old``), or nothing."""
    versions = {item.name: installed_version(item.name) for item in requirements}
    absent = [name for name, version in versions.items() if version is None]
    faults = [
        f"{item.name} {version} is {fault.partition(',')[0]}"
        for item in requirements
        if (version := versions[item.name]) is not None
        and (fault := describe_mismatch(item, version)) is not None
    ]
    return "; ".join([*([f"no {', '.join(absent)}"] if absent else []), *faults])
