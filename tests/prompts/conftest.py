from __future__ import annotations

import itertools
import os
import subprocess
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from harness.data.records import Row
from harness.data.sources import DataFinder, data_ref
from harness.errors import MissingDataError
from harness.kinds.kind import ReadContext, TaskKind
from harness.languages.table import known_languages
from harness.planning.run_config import data_options
from harness.prompts.preset import CompiledPrompt, PromptItem, compile_prompt
from harness.running.session import Session, open_session
from harness.specs.documents import PromptSpec
from harness.specs.schema import TaskSpec, TrainingSpec

HERE = Path(__file__).parent
PEERS = Path(os.environ.get("HARNESS_TEST_PEERS") or HERE.parents[1] / ".venv-peers")

AskPeer = Callable[[str, str], str]
MakeItem = Callable[[str, Mapping[str, Any]], PromptItem]
Compile = Callable[..., CompiledPrompt]
Sample = Callable[[str], list[Any]]


@cache
def _session() -> Session:
    return open_session()


def _spec(task: str) -> TaskSpec | TrainingSpec:
    catalog = _session().catalog
    return catalog.task(task).spec if task in catalog.names("task") else catalog.training(task)[0]


def _kind(task: str) -> TaskKind:
    return _session().registry.kinds.get(_spec(task).kind)


def _example(task: str, row: Row, label_map: Mapping[str, str]) -> Any:
    spec = _spec(task)
    context = ReadContext.of(spec, task, "en", "test", label_map)
    return _kind(task).example(row, row.line, context)


@pytest.fixture(scope="session")
def shipped() -> Session:
    """The shipped documents; opened once."""
    return _session()


@pytest.fixture
def ask_peer(tmp_path: Path) -> AskPeer:
    """Run a script of this folder in the environment that has lm-eval, and return what it prints."""

    def ask(script: str, documents: str) -> str:
        python = PEERS / "bin" / "python"
        if not python.exists():
            pytest.skip(f"lm-eval is not installed in {PEERS.name}: make .venv-peers/bin/lm-eval")
        environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
        environment |= {"HF_HUB_OFFLINE": "1", "HF_HOME": str(tmp_path), "OMP_NUM_THREADS": "1"}
        done = subprocess.run(
            [str(python), str(HERE / script)],
            input=documents,
            capture_output=True,
            encoding="utf-8",
            env=environment,
            cwd=tmp_path,
            timeout=300,
            check=False,
        )
        assert done.returncode == 0, done.stderr[-2000:]
        return done.stdout

    return ask


@pytest.fixture(scope="session")
def item() -> MakeItem:
    """Return the fields of a row as templates see them, through the task's kind."""

    def make(task: str, fields: Mapping[str, Any]) -> PromptItem:
        example = _example(task, Row(fields=fields, path="made-up", line=1), {})
        to_item = _kind(task).prompt_item
        assert to_item is not None
        return to_item(example)

    return make


@pytest.fixture(scope="session")
def compiled() -> Compile:
    """Compile a shipped prompt for a task and language."""

    def make(task: str, preset: str, language: str, **options: Any) -> CompiledPrompt:
        spec = _session().catalog.prompt(task, preset)
        inherited = _session().catalog.inherited_prompt(spec)
        return compile_prompt(spec, language, inherited=inherited, **options)

    return make


@pytest.fixture(scope="session")
def sample(tmp_path_factory: pytest.TempPathFactory) -> Sample:
    """Return the examples of a task's embedded sample, in the first language that has one."""
    folder: Path = tmp_path_factory.mktemp("prompt-data")

    @cache
    def read(task: str) -> list[Any]:
        session, spec = _session(), _spec(task)
        finder = DataFinder(data_options(["sample"]), session.registry, folder)
        root = session.catalog.entry("task" if isinstance(spec, TaskSpec) else "training", task).folder
        axes = spec.axes if isinstance(spec, TaskSpec) else {}
        table = session.catalog.task(task).languages if isinstance(spec, TaskSpec) else known_languages()
        for language, values in itertools.product(spec.languages, itertools.product(*axes.values())):
            source = spec.source(language, "test" if isinstance(spec, TaskSpec) else "train")
            assert source is not None
            ref = data_ref(
                source,
                owner=task,
                language=table.get(language),
                split="test",
                folder=root,
                conditions={**spec.names_of(language), **dict(zip(axes, values, strict=True))},
            )
            try:
                found = finder.find(source, ref)
            except MissingDataError:
                continue
            return [_example(task, row, found.label_map) for row in finder.rows(found)]
        raise AssertionError(f"no sample of {task}")

    return read


@pytest.fixture(scope="session")
def prompts(shipped: Session) -> list[PromptSpec]:
    """All shipped prompts, validated."""
    catalog = shipped.catalog
    names = [
        (catalog.entry("prompt", name).document.data["tasks"][0], name) for name in catalog.names("prompt")
    ]
    return [catalog.prompt(task, name.partition("/")[2]) for task, name in names]
