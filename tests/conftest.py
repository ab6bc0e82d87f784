"""Fixtures of all tests: a fresh session, the command line in this process, and plugins that are really installed.

No test reaches the network, the user's cache or the plugins of another test.
"""

from __future__ import annotations

import importlib.metadata
import inspect
import os
import re
import shutil
import signal
import socket
import sys
from collections.abc import Callable, Generator, Iterator, Mapping
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Any

import hypothesis
import pytest

from harness.api import evaluate
from harness.errors import HarnessError
from harness.registry.registry import Registry
from harness.running.session import Session, open_session
from harness.specs.folder import SpecIndex, read_folder
from harness.specs.task_entry import Entry
from harness.storage.run_folder import Run
from tests.builders import released_data

os.environ |= {"COLUMNS": "100", "TERMINAL_WIDTH": "100", "NO_COLOR": "1", "TERM": "dumb"}
os.environ["HF_HUB_OFFLINE"] = "1"
for _name in ("HARNESS_DATA", "HARNESS_DISABLE_PLUGINS", "HARNESS_TRACE_HOOKS"):
    os.environ.pop(_name, None)  # settings of the user
# In the background of a shell Ctrl-C is ignored, here and in all that is started; several tests send it.
signal.signal(signal.SIGINT, signal.default_int_handler)

# A busy machine must not fail a property: no deadline, and the same examples every time.
hypothesis.settings.register_profile(
    "tests",
    deadline=None,
    derandomize=True,
    max_examples=50,
    suppress_health_check=[hypothesis.HealthCheck.too_slow],
)
hypothesis.settings.load_profile("tests")

ROOT = Path(__file__).resolve().parents[1]
Cli = Callable[..., tuple[int, str, str]]
InstallPlugin = Callable[..., Path]

BROWSER_ARGUMENTS = (
    "--no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking "
    "--disable-component-update --disable-sync"
).split()
_LOOPBACK = ("127.", "::1", "localhost")


THOROUGH_MARKS = {"models", "packaging", "thorough", "vllm"}
THOROUGH_FIXTURES = {"browser"}
THOROUGH_FILE = re.compile(rf"^pytestmark = .*\bmark\.({'|'.join(sorted(THOROUGH_MARKS))})\b", re.MULTILINE)
MOST_SECONDS = 2.0
"""CPU seconds of a test of `make test`, on a machine that counts to two million in `COUNT_SECONDS`."""
COUNT_SECONDS = 0.08
IMPORTED = 50
"""Modules from which a test counts as one that imports a package."""


def _skips_thorough(config: pytest.Config) -> bool:
    return "not thorough" in config.option.markexpr


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Import no file whose tests are all marked: the libraries of some take seconds in every worker."""
    if collection_path.suffix == ".py" and _skips_thorough(config):
        return THOROUGH_FILE.search(collection_path.read_text(encoding="utf-8")) is not None or None
    return None


@pytest.hookimpl(tryfirst=True)
def pytest_pycollect_makeitem(collector: pytest.Collector, obj: object) -> list[pytest.Item] | None:
    """Make no items of a marked class or function, which pytest would deselect one by one."""
    marks = getattr(obj, "pytestmark", ()) if inspect.isclass(obj) or inspect.isfunction(obj) else ()
    is_marked = THOROUGH_MARKS & {mark.name for mark in marks}
    return [] if is_marked and _skips_thorough(collector.config) else None


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the tests of ``make test-all``, before pytest selects by marks.

    A class names inherited tests in ``thorough``: a mark on them would be one on those of its siblings.
    """
    for item in items:
        inherited: frozenset[str] = getattr(getattr(item, "cls", None), "thorough", frozenset())
        if (
            getattr(item, "originalname", item.name) in inherited
            or THOROUGH_MARKS & {mark.name for mark in item.iter_markers()}
            or THOROUGH_FIXTURES & set(getattr(item, "fixturenames", ()))
        ):
            item.add_marker("thorough")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, Any, Any]:
    """Fail a test that takes more than `MOST_SECONDS` of CPU time and is not marked ``thorough`` or ``slow``.

    A test that imports a package before all others pays for it, so such a test may take longer.
    """
    modules, before = len(sys.modules), _cpu_seconds()
    result = yield
    seconds, imported = _cpu_seconds() - before, len(sys.modules) - modules
    is_quick = not {"thorough", "slow", "gpu"} & {mark.name for mark in item.iter_markers()}
    is_long = is_quick and imported < IMPORTED and seconds > MOST_SECONDS
    # Two tests at once share caches, and a new environment compiles modules: only twice as long is too long for sure.
    if is_long and seconds > 2 * MOST_SECONDS * _count() / COUNT_SECONDS:
        pytest.fail(f"It takes {seconds:.1f} CPU seconds: make it cheaper, or mark it 'thorough'.")
    return result


def _cpu_seconds() -> float:
    times = os.times()
    return times.user + times.system + times.children_user + times.children_system


def _count() -> float:
    """Return the CPU seconds in which this machine, as busy as it is, counts to two million."""
    before = _cpu_seconds()
    sum(number % 7 for number in range(2_000_000))
    return _cpu_seconds() - before


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


@pytest.fixture(autouse=True, scope="session")
def _entry_points_are_read_once() -> Iterator[None]:
    """Read the metadata of all packages once per state of the path: every command reads them twice."""
    read: Any = importlib.metadata.entry_points
    known: dict[tuple[tuple[str, int], ...], Any] = {}

    def entry_points(**wanted: Any) -> Any:
        key = tuple((path, Path(path).stat().st_mtime_ns) for path in sys.path if Path(path).exists())
        if key not in known:
            known[key] = read()
        return known[key].select(**wanted)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(importlib.metadata, "entry_points", entry_points)
        yield


@pytest.fixture(autouse=True, scope="session")
def _shipped_specs_are_read_once() -> Iterator[None]:
    """Read the specs of the repository once per process: they take half the time of opening a session."""
    known: dict[tuple[str, Path], tuple[list[Entry], list[HarnessError]]] = {}

    def read(
        plugin: str, folder: Traversable, index: SpecIndex | None = None
    ) -> tuple[list[Entry], list[HarnessError]]:
        if not isinstance(folder, Path) or not folder.is_relative_to(ROOT):
            return read_folder(plugin, folder, index)
        entries, problems = known.get((plugin, folder)) or read_folder(plugin, folder)
        known[plugin, folder] = entries, problems
        return [*entries], [*problems]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("harness.specs.catalog.read_folder", read)
        yield


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


@pytest.fixture(scope="module")
def session() -> Session:
    """What a command works with; the tests of a file only read it."""
    return open_session()


@pytest.fixture(scope="session")
def data_root() -> Path:
    """Return the folder of released data sets; tests that use it are skipped without one."""
    return released_data()


@pytest.fixture(scope="module")
def registry(session: Session) -> Registry:
    """What the installed plugins declare."""
    return session.registry


@pytest.fixture
def cli(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Cli:
    """Run a command line in this process, in an empty folder with an empty cache: (status, stdout, stderr)."""
    from harness.cli.main import run_command

    monkeypatch.setenv("HARNESS_CACHE", str(tmp_path / "cache"))
    folder = tmp_path / "cwd"
    folder.mkdir()
    monkeypatch.chdir(folder)

    def run(*arguments: object) -> tuple[int, str, str]:
        capsys.readouterr()
        status = run_command([str(argument) for argument in arguments])
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
