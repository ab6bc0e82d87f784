"""Fixtures of all tests: a fresh session, the command line in this process, and plugins that are really installed.

No test reaches the network, the user's cache or the plugins of another test.
"""

from __future__ import annotations

import importlib
import os
import shutil
import signal
import socket
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import hypothesis
import pytest

from harness.api import evaluate
from harness.registry.registry import Registry
from harness.running.session import Session, open_session
from harness.storage.run_folder import Run
from tests.builders import released_data

os.environ |= {"COLUMNS": "100", "TERMINAL_WIDTH": "100", "NO_COLOR": "1", "TERM": "dumb"}
os.environ["HF_HUB_OFFLINE"] = "1"
# In the background of a shell Ctrl-C is ignored, here and in all that is started; several tests send it.
signal.signal(signal.SIGINT, signal.default_int_handler)

# A busy machine must not fail a property: no deadline, and the same examples every time.
hypothesis.settings.register_profile(
    "tests", deadline=None, derandomize=True, suppress_health_check=[hypothesis.HealthCheck.too_slow]
)
hypothesis.settings.load_profile("tests")

Cli = Callable[..., tuple[int, str, str]]
InstallPlugin = Callable[..., Path]

BROWSER_ARGUMENTS = (
    "--no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking "
    "--disable-component-update --disable-sync"
).split()
_LOOPBACK = ("127.", "::1", "localhost")


THOROUGH = Path(__file__).with_name("thorough.txt")
THOROUGH_MARKS = {"models", "packaging", "vllm"}
THOROUGH_FIXTURES = {"browser"}


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the tests of ``make test-all``, before pytest selects by marks."""
    lines = [line.strip() for line in THOROUGH.read_text(encoding="utf-8").splitlines()]
    listed = tuple(line for line in lines if line and not line.startswith("#"))
    for item in items:
        if (
            any(
                item.nodeid == line or item.nodeid.startswith((f"{line}/", f"{line}::", f"{line}["))
                for line in listed
            )
            or THOROUGH_MARKS & {mark.name for mark in item.iter_markers()}
            or THOROUGH_FIXTURES & set(getattr(item, "fixturenames", ()))
        ):
            item.add_marker("thorough")


@pytest.fixture(autouse=True, scope="session")
def _no_network() -> Iterator[None]:
    connect = socket.socket.connect

    def guarded(self: socket.socket, address: Any) -> None:
        if self.family in (socket.AF_INET, socket.AF_INET6) and not str(address[0]).startswith(_LOOPBACK):
            raise RuntimeError(f"A test tried to connect to {address!r}.")
        connect(self, address)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(socket.socket, "connect", guarded)
        yield


@pytest.fixture(autouse=True, scope="session")
def _cache_of_the_tests(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HARNESS_CACHE", str(tmp_path_factory.mktemp("harness-cache")))
        yield


@pytest.fixture(autouse=True)
def _no_settings_of_the_user(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HARNESS_DATA", "HARNESS_DISABLE_PLUGINS", "HARNESS_TRACE_HOOKS"):
        monkeypatch.delenv(name, raising=False)


def _evaluate_sample(model: str, folder: Path) -> Run:
    return evaluate(
        ["xnli", "xquad", "udpos", "tatoeba"],
        model,
        languages=["en", "de", "hi", "sw", "tr", "zh", "th"],
        data="sample",
        recipe="quick",
        seeds=(1,),
        output=folder / "run",
    )


@pytest.fixture(scope="session")
def sample_run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """Four tasks in seven languages, some skipped; shared by all tests, which only read it.

    The model guesses from hashes of the items, so its scores are the same on every machine.
    """
    return _evaluate_sample("baseline:random", tmp_path_factory.mktemp("sample-random"))


@pytest.fixture(scope="session")
def trained_sample_run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """The tasks of `sample_run`, answered by a model that was fitted; tests only read it."""
    return _evaluate_sample("baseline:char-ngram", tmp_path_factory.mktemp("sample-trained"))


@pytest.fixture
def session() -> Session:
    """What a command works with, made anew."""
    return open_session()


@pytest.fixture(scope="session")
def data_root() -> Path:
    """Return the folder of released data sets; tests that use it are skipped without one."""
    return released_data()


@pytest.fixture
def registry(session: Session) -> Registry:
    """What the installed plugins declare."""
    return session.registry


@pytest.fixture
def cli(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Cli:
    """Run a command line in this process, in an empty folder with an empty cache: (status, stdout, stderr)."""
    from harness.cli.main import main

    monkeypatch.setenv("HARNESS_CACHE", str(tmp_path / "cache"))
    folder = tmp_path / "cwd"
    folder.mkdir()
    monkeypatch.chdir(folder)

    def run(*arguments: object) -> tuple[int, str, str]:
        capsys.readouterr()
        status = main([str(argument) for argument in arguments])
        out, err = capsys.readouterr()
        return status, out, err

    return run


@pytest.fixture
def install_plugin(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[InstallPlugin]:
    """Install a package as pip would lay it out; returns the folder that it was put into.

    The source is that of one module, or the files of several modules by path. Unless `entry_points` says
    otherwise, the module is a plugin under its own name.
    """
    before = set(sys.modules)
    folders: list[Path] = []

    def install(
        name: str,
        source: str | Mapping[str, str],
        *,
        version: str = "1.0",
        distribution: str | None = None,
        entry_points: str | None = None,
    ) -> Path:
        package = distribution or name.replace("_", "-")
        folder = tmp_path / "site" / package
        files = {f"{name}.py": source} if isinstance(source, str) else dict(source)
        information = f"{package.replace('-', '_')}-{version}.dist-info"
        files[f"{information}/METADATA"] = f"Metadata-Version: 2.1\nName: {package}\nVersion: {version}\n"
        files[f"{information}/entry_points.txt"] = entry_points or f"[harness]\n{name} = {name}\n"
        for path, text in files.items():
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
            (folder / path).write_text(text, encoding="utf-8")
        monkeypatch.syspath_prepend(str(folder))
        folders.append(folder)
        return folder

    yield install
    for module_name in set(sys.modules) - before:
        path = getattr(sys.modules[module_name], "__file__", None) or ""
        if any(Path(path).is_relative_to(folder) for folder in folders):
            del sys.modules[module_name]
    importlib.invalidate_caches()


@pytest.fixture
def declare(install_plugin: InstallPlugin) -> Callable[[str, str, str], Registry]:
    """Install a plugin that declares one thing, and return what all plugins declare: hook, module, expression."""

    def install(hook: str, module: str, made: str) -> Registry:
        head = f"from harness import hookimpl\nfrom {module} import {made.partition('(')[0]}\n@hookimpl\n"
        install_plugin(f"with_{hook}", head + f"def harness_register_{hook}(): return [{made}]\n")
        return open_session().registry

    return install


@pytest.fixture(scope="session")
def browser() -> Iterator[Any]:
    """Chromium, headless and without network services; one for all tests, since a process can drive only one."""
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    path = shutil.which("chromium") or shutil.which("chromium-browser")
    if path is None:
        pytest.skip("no Chromium is installed: make setup-browser")
    with playwright.sync_playwright() as driver:
        opened = driver.chromium.launch(executable_path=path, headless=True, args=BROWSER_ARGUMENTS)
        yield opened
        opened.close()
