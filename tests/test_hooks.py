"""Every hook through a plugin that is really installed; `test_convention` sees to it that none is left out."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from harness.api import evaluate
from harness.errors import UsageError
from harness.registry.registry import Registry
from harness.running.auditor import open_auditor
from harness.running.session import open_session
from harness.storage.run_folder import Run
from tests.builders import SPEC_PLUGIN
from tests.conftest import Cli, InstallPlugin

Declare = Callable[[str, str, str], Registry]

IMPORTS = "from harness import hookimpl\n"
SPEC = """
task: greetings
kind: {kind}
version: 1
description: d
citation: c
license: l
inputs: [text]
labels: [friendly, rude]
metrics: [{metric}]
protocols: [{protocol}]
transfer: {{stages: [greetings]}}
languages:
  en:
    train: {{local: en.{suffix}, reader: {reader}}}
    test: {{local: en.{suffix}, reader: {reader}}}
"""


def _spec(**given: str) -> str:
    usual = {"kind": "sequence_classification", "metric": "accuracy", "reader": "jsonl"}
    filled = {**usual, "protocol": "zero_shot_transfer", **given}
    return SPEC.format(**filled, suffix=filled["reader"])


@pytest.fixture
def evaluated(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Run]:
    """Evaluate the task ``greetings`` on a small file of its own."""
    monkeypatch.setenv("HARNESS_CACHE", str(tmp_path / "cache"))

    def run(spec: str, model: str = "baseline:majority", content: str | None = None) -> Run:
        folder = tmp_path / "data"
        folder.mkdir(exist_ok=True)
        (folder / "greetings.yaml").write_text(spec, encoding="utf-8")
        rows = [("good day", "friendly"), ("welcome", "friendly"), ("go away", "rude")]
        lines = [json.dumps({"text": text, "label": label}) for text, label in rows]
        (folder / "en.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")
        if content is not None:
            (folder / "en.shouted").write_text(content, encoding="utf-8")
        return evaluate("greetings", model, data=folder, tasks_from=[folder], output=tmp_path / "run")

    return run


def test_hook_register_task_specs(install_plugin: InstallPlugin, cli: Cli) -> None:
    install_plugin(
        "with_task",
        {
            "with_task/__init__.py": SPEC_PLUGIN,
            "with_task/specs/greetings.yaml": _spec(),
            "with_task/specs/nested/greet.yaml": "suite: greet\ndescription: d\ncitation: c\n"
            "protocol: zero_shot_transfer\ntasks: [greetings, xnli]\n",
            "with_task/specs/sample/not_read.yaml": "a: [",
        },
    )
    catalog = open_session().catalog
    assert catalog.task("greetings").plugin == "with_task"
    assert catalog.suite("greet").tasks == ("greetings", "xnli")
    assert catalog.problems == []
    status, out, _ = cli("tasks", "list", "g*")
    assert status == 0
    assert "greetings         sequence_classification" in out
    assert "suite greet: greetings xnli" in out


def test_hook_register_kinds(install_plugin: InstallPlugin, evaluated: Callable[..., Run]) -> None:
    install_plugin(
        "with_kind",
        IMPORTS
        + """
from typing import Literal
from dataclasses import replace

@hookimpl
def harness_register_kinds():
    from harness.kinds.choices import SEQUENCE_CLASSIFICATION, SequenceClassificationSpec

    class MoodSpec(SequenceClassificationSpec):
        kind: Literal["mood"]
        mood: str = "any"

    return [replace(SEQUENCE_CLASSIFICATION, name="mood", spec_model=MoodSpec, summary="a mood")]

@hookimpl
def harness_register_methods():
    from harness.kinds.choices import METHODS
    return [replace(METHODS[0], kind="mood")]

@hookimpl
def harness_register_metrics():
    from harness.metrics.catalog import METRICS
    return [replace(METRICS[0], name="mood_accuracy", kinds=frozenset({"mood"}))]
""",
    )
    run = evaluated(_spec(kind="mood", metric="mood_accuracy") + "mood: good\n")
    assert run.manifest.specs["greetings"]["mood"] == "good"
    [cell] = run.cells
    assert cell.metrics["mood_accuracy"].value == pytest.approx(2 / 3)


def test_hook_register_methods(install_plugin: InstallPlugin, evaluated: Callable[..., Run]) -> None:
    install_plugin(
        "with_method",
        IMPORTS
        + """
from harness.kinds import Method
from harness.models import Capability
from harness.data.records import Prediction

def predict(adapter, examples, context):
    assert adapter.embed(["x"], side="query").shape[0] == 1
    return [Prediction(id=example.id, output={"label": "rude", "scores": []}) for example in examples]

@hookimpl
def harness_register_methods():
    return [Method(name="nearest", kind="sequence_classification", requires=Capability.EMBEDS,
                   protocols=frozenset({"frozen"}), predict=predict)]
""",
    )
    [cell] = evaluated(_spec(protocol="frozen")).cells
    assert (cell.method, cell.fit) == ("nearest", "none")
    assert cell.metrics["accuracy"].value == pytest.approx(1 / 3)


def test_hook_register_readers(install_plugin: InstallPlugin, evaluated: Callable[..., Run]) -> None:
    install_plugin(
        "with_reader",
        IMPORTS
        + """
from harness.data.readers.reader import Reader
from harness.data.records import Row

def read(paths, options):
    for path in paths:
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1):
            label, text = line.split("!")
            yield Row(fields={"text": text, "label": label}, path=str(path), line=number)

@hookimpl
def harness_register_readers():
    return [Reader(name="shouted", read=read, summary="LABEL!text")]
""",
    )
    [cell] = evaluated(_spec(reader="shouted"), content="rude!go\nrude!away\n").cells
    assert (cell.n, cell.metrics["accuracy"].value) == (2, 1.0)


def test_hook_register_metrics(install_plugin: InstallPlugin, evaluated: Callable[..., Run]) -> None:
    install_plugin(
        "with_metric",
        IMPORTS
        + """
import numpy as np
from harness.metrics import Metric, MetricResult

def compute(predictions, references, context):
    assert context.labels == ("friendly", "rude")
    items = np.array([float(p["label"] != r) for p, r in zip(predictions, references)])
    return MetricResult(value=float(items.mean()), items=items)

@hookimpl
def harness_register_metrics():
    return [Metric(name="error_rate", compute=compute, kinds=frozenset({"sequence_classification"}),
                   description="d", source="s", higher_is_better=False)]
""",
    )
    [cell] = evaluated(_spec(metric="error_rate")).cells
    assert cell.metrics["error_rate"].value == pytest.approx(1 / 3)


def test_hook_register_adapters(
    install_plugin: InstallPlugin, evaluated: Callable[..., Run], cli: Cli
) -> None:
    install_plugin(
        "with_adapter",
        IMPORTS
        + """
import numpy as np
from pydantic import Field
from harness.models import AdapterEntry, Capability, ModelDescription
from harness.models.options import AdapterOptions

class Options(AdapterOptions):
    favourite: int = Field(default=1, ge=0, description="Index of the label it says.")

def describe(ref, options):
    return ModelDescription(adapter="parrot", ref=ref, offers=frozenset({Capability.CLASSIFIES}),
                            labels=("friendly", "rude"))

class Parrot:
    def __init__(self, description, options):
        self.favourite = options.favourite
    def identity(self):
        return {"adapter": "parrot", "favourite": str(self.favourite)}
    def close(self):
        pass
    def classify(self, inputs, labels):
        return np.eye(len(labels), dtype=np.float32)[[self.favourite] * len(inputs)]

@hookimpl
def harness_register_adapters():
    return [AdapterEntry(name="parrot", target="with_adapter:Parrot", describe="with_adapter:describe",
                         options="with_adapter:Options", summary="It repeats itself.", examples=("parrot:polly",))]
""",
    )
    [cell] = evaluated(_spec(), model="parrot:polly").cells
    assert cell.protocol == "frozen"
    assert cell.metrics["accuracy"].value == pytest.approx(1 / 3)
    status, out, _ = cli("models")
    assert status == 0
    assert "It repeats itself." in out
    assert "Index of the label it says." in cli("models", "parrot")[1]
    assert cli("models", "parrot:polly")[0] == 0


def test_hook_register_launchers(
    install_plugin: InstallPlugin, cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("WORLD_SIZE", "ACCELERATE_MIXED_PRECISION"):
        monkeypatch.delenv(name, raising=False)
    install_plugin(
        "aa_launcher",
        IMPORTS
        + """
from pathlib import Path
from harness.registry.declarations import Launcher

def start(arguments, count, configuration=None):
    Path("started").write_text(f"{count}")
    return 7

@hookimpl
def harness_register_launchers():
    return [Launcher(name="aa", start="aa_launcher:start", join="aa_launcher:join")]
""",
    )
    assert [launcher.name for launcher in open_session().registry.launchers] == ["aa", "accelerate"]
    command = ("eval", "--tasks", "xnli:de", "--model", "baseline:majority", "--data", "sample")
    assert cli(*command, "--num-processes", "3")[0] == 7
    assert Path("started").read_text(encoding="utf-8") == "3"
    assert not Path("runs").exists()


def test_hook_register_reports(declare: Declare, evaluated: Callable[..., Run], cli: Cli) -> None:
    render = "lambda runs: runs[0].manifest.model + chr(10)"
    made = f"ReportFormat(name='haiku', suffix='.txt', render={render})"
    declare("reports", "harness.registry", made)
    run = evaluated(_spec())
    assert cli("report", run.path, "--format", "haiku") == (0, "baseline:majority\n", "")


def test_hook_register_features(
    install_plugin: InstallPlugin, evaluated: Callable[..., Run], cli: Cli
) -> None:
    install_plugin(
        "with_feature",
        IMPORTS
        + """
@hookimpl
def harness_register_features():
    from harness.data.features import Feature

    def politeness(items, context):
        return ["polite" if "good" in text else "curt" for text in items.texts("text")]

    return [Feature(name="politeness", title="how polite", compute=politeness, continuous=False)]
""",
    )
    run = evaluated(_spec())
    status, out, err = cli(
        "diagnose", run.path, "--attributes", "politeness", "--json", run.path / "rows.json"
    )
    assert (status, err) == (0, "")
    rows = json.loads((run.path / "rows.json").read_text(encoding="utf-8"))
    scores = {row["bucket"]: (row["n"], row["value"]) for row in rows if row["kind"] == "single"}
    assert scores == {"curt": (2, 0.5), "polite": (1, 1.0)}
    assert "politeness" in out


def test_hook_register_transliterators(declare: Declare) -> None:
    shout = "transliterate=lambda words, language: [word.upper() for word in words]"
    made = f"Transliterator(name='shout', version='1', licence='MIT', languages=None, summary='s', {shout})"
    registry = declare("transliterators", "harness.data.translation.services", made)
    engine = registry.transliterators.get("shout")
    assert engine.transliterate(["ok", "no"], "hi") == ["OK", "NO"]


def test_hook_register_translators(declare: Declare) -> None:
    made = "TranslatorEntry(name='x', target='with_translators:open', summary='s')"
    registry = declare("translators", "harness.data.translation.services", made)
    assert {"identity", "hf-seq2seq", "x"} <= set(registry.translators.names)


def test_hook_register_task_sources(declare: Declare) -> None:
    made = "TaskSource(name='x', target='builtins:print')"
    registry = declare("task_sources", "harness.specs.task_entry", made)
    assert str(registry.task_sources.get("x").open()) == str(print)


def test_hook_register_task_checks(install_plugin: InstallPlugin, cli: Cli, tmp_path: Path) -> None:
    install_plugin(
        "with_checks",
        {
            "with_checks/__init__.py": IMPORTS
            + """
@hookimpl
def harness_register_task_checks():
    from harness.registry import TaskChecks
    return [TaskChecks(name="loud", target="with_checks.checks:Loud", summary="texts do not shout"), "no checks"]
""",
            "with_checks/checks.py": """
from harness.checks import Finding, TaskAudit

class Loud:
    def __init__(self, setting):
        self.setting = setting

    def check(self, entry, *, only=()):
        finding = Finding(task=entry.spec.task, languages=("en",), check="shouting", expected="a calm text",
                          found="an exclamation mark")
        return TaskAudit(task=entry.spec.task, languages=("en",), items=3, findings=[finding])
""",
        },
    )
    session = open_session()
    assert session.registry.task_checks.names == ["audit", "loud"]
    assert [plugin.name for plugin in session.registry.plugins.broken] == ["with_checks"]
    auditor = open_auditor(session, ["sample"])
    audit = auditor.audit(session.catalog.task("pawsx"), only=["en"])
    assert [item.check for item in audit.findings] == ["shouting"]
    assert (audit.languages, audit.items) == (("en",), 20)
    status, _, err = cli("tasks", "validate", "pawsx", "--data", "sample", "--json", tmp_path / "rows.json")
    assert (status, "with_checks" in err) == (1, True)
    [row] = json.loads((tmp_path / "rows.json").read_text(encoding="utf-8"))
    assert [item["check"] for item in row["proof"]["findings"]] == ["shouting"]
    assert row["proof"]["items"] == 80


def test_checking_on_data_needs_a_plugin_with_checks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HARNESS_DISABLE_PLUGINS", "audit")
    with pytest.raises(UsageError):
        open_auditor(open_session(), ["sample"])


def test_hook_register_aligners(declare: Declare) -> None:
    made = "Aligner(name='x', target='with_aligners:open', licence='MIT', summary='s', reference='R')"
    assert {"own", "x"} <= set(declare("aligners", "harness.data.translation.services", made).aligners.names)


def test_hook_register_grammars(install_plugin: InstallPlugin) -> None:
    source = IMPORTS + (
        "from importlib.resources import files\n@hookimpl\n"
        "def harness_register_grammars(): return [files(__name__) / 'grammars', 'no folder']\n"
    )
    install_plugin("with_grammar", {"with_grammar/__init__.py": source, "with_grammar/grammars/xx.yaml": ""})
    registry = open_session().registry
    folders = dict(registry.grammar_folders())
    assert [path.name for path in folders["with_grammar"].iterdir()] == ["xx.yaml"]
    [problem] = registry.plugins.problems
    assert "'no folder'" in str(problem)


def test_hook_resolve_data(install_plugin: InstallPlugin, cli: Cli, tmp_path: Path) -> None:
    source = (
        IMPORTS
        + """
import json
from harness.data.resolve import ResolvedData

@hookimpl
def harness_resolve_data(ref, cache):
    if ref.owner != "greetings":
        return None
    path = cache / f"{ref.split}.jsonl"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps({"text": "go", "label": "0"}) + "\\n", encoding="utf-8")
    return ResolvedData(paths=(path,), origin="hub", split_used=ref.split, describe=f"mirror of {ref.hub.path}",
                        reader="jsonl", label_map=ref.hub.label_map, revision="a" * 40)
"""
    )
    install_plugin("zz_mirror", source)
    hub = "{path: someone/greetings, split: s, label_map: {'0': rude}}"
    spec = _spec().replace("local: en.jsonl, reader: jsonl", f"hub: {hub}")
    Path("greetings.yaml").write_text(spec, encoding="utf-8")
    status, _, err = cli(
        *("eval", "--tasks", "greetings", "--tasks-from", "greetings.yaml", "--model", "baseline:majority"),
        *("--data", "hub", "--output", "run"),
    )
    assert status == 0, err
    run = Run(Path("run"))
    [cell] = run.cells
    assert (cell.data["origin"], cell.data["files"]) == ("hub", "mirror of someone/greetings")
    assert (cell.data["revision"], cell.metrics["accuracy"].value) == ("a" * 40, 1.0)
    [record] = run.records(cell)
    assert record.reference == "rude"


def test_hook_inspect_data(install_plugin: InstallPlugin, cli: Cli) -> None:
    source = (
        IMPORTS
        + """
from harness.data.resolve import SourceState

@hookimpl
def harness_inspect_data(refs, cache, footers):
    states = {"en": SourceState(state="right", files={"a": 2048}), "sw": SourceState(state="gated", detail="ask")}
    return [states.get(ref.language, SourceState(state="gone", detail="gone")) for ref in refs]
"""
    )
    install_plugin("zz_mirror", source)
    status, out, err = cli("doctor", "--hub", "msvamp:en+sw", "--json", "rows.json")
    assert (status, err) == (1, "")
    rows = json.loads(Path("rows.json").read_text(encoding="utf-8"))
    assert [(row["language"], row["state"], row["detail"]) for row in rows] == [
        ("en", "right", ""),
        ("sw", "gated", "ask"),
    ]
    assert "2 splits on the Hub, 1 not right" in out
    status, _, err = cli("plan", "--tasks", "msvamp:en+sw", "--model", "baseline:majority", "--data", "hub")
    assert "2 KiB in 1 file\n" in err
    assert "Gated: Mathoctopus/MSVAMP" in err


def test_hook_register_fleet_backends(install_plugin: InstallPlugin, cli: Cli) -> None:
    install_plugin(
        "at_once",
        IMPORTS
        + """
from pathlib import Path
from harness.models import AdapterOptions
from harness.registry import FleetBackend, JobState

class Options(AdapterOptions):
    slots: int = 1

class Runner:
    def __init__(self, options):
        self.slots = options.slots

    def run(self, jobs, report, stopping):
        Path("seen").write_text(f"{self.slots} {[job.model for job in jobs]}")
        for job in jobs:
            report(job.name, JobState.LOST)

    def states(self, jobs):
        return {}

@hookimpl
def harness_register_fleet_backends():
    return [FleetBackend(name="once", target="at_once:Runner", options="at_once:Options", summary="Never runs.")]
""",
    )
    assert "once" in open_session().registry.fleet_backends
    command = ("submit", "--tasks", "xnli:de", "--model", "baseline:majority", "--data", "sample")
    status, out, err = cli(*command, "--backend", "once", "-b", "slots=3", "--output", "fleet")
    assert (status, Path("seen").read_text(encoding="utf-8")) == (1, "3 ['baseline:majority']")
    assert "001-baseline-majority" in out + err
    assert cli(*command, "--backend", "once", "-b", "slot=3", "--output", "other")[0] == 2
    assert cli(*command, "--backend", "onze", "--output", "other")[0] == 2
    assert not Path("other").exists()


def test_hook_register_trackers(install_plugin: InstallPlugin, cli: Cli) -> None:
    install_plugin(
        "notebook_page",
        IMPORTS
        + """
from pathlib import Path
from harness.registry import Tracker

class Page:
    id = place = "page"
    def __init__(self, run): self.lines = []
    def log(self, values): self.lines += values
    def finish(self, results): self.lines.append(results.file.name)
    def close(self, *, finished): Path("page").write_text(" ".join(self.lines))

@hookimpl
def harness_register_trackers():
    return [Tracker(name="page", target="notebook_page:Page")]
""",
    )
    command = ("eval", "--tasks", "xnli:de", "--model", "baseline:majority", "--data", "sample")
    assert cli(*command, "--output", "run", "--log", "page")[0] == 0
    names = Path("page").read_text(encoding="utf-8").split()
    assert (names[0], names[-1]) == ("xnli/de/accuracy", "results.json")


OBSERVER = (
    IMPORTS
    + """
import json
from pathlib import Path
LOG = Path({log!r})

@hookimpl
def harness_cell_finished(cell):
    records = list(LOG.parent.glob("run/records/*/*/*.parquet"))
    with LOG.open("a") as file:
        file.write(json.dumps([cell.language, cell.status, len(records)]) + "\\n")

@hookimpl
def harness_run_finished(run):
    with LOG.open("a") as file:
        file.write(json.dumps([run.name, (run / "results.json").is_file()]) + "\\n")
"""
)


@pytest.fixture
def observed(install_plugin: InstallPlugin, evaluated: Callable[..., Run], tmp_path: Path) -> list[object]:
    """What an observer wrote of a run."""
    log = tmp_path / "log"
    install_plugin("observer", OBSERVER.format(log=str(log)))
    evaluated(_spec())
    return [json.loads(line) for line in log.read_text(encoding="utf-8").splitlines()]


def test_hook_cell_finished(observed: list[object]) -> None:
    assert observed[0] == ["en", "ok", 1]


def test_hook_run_finished(observed: list[object]) -> None:
    assert observed[-1] == ["run", True]
