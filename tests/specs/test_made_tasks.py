"""Tasks named ``PREFIX:NAME``, made by a source that a plugin registered."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from harness.running.session import open_session
from harness.specs.selection import select

Cli = Callable[..., tuple[int, str, str]]
InstallPlugin = Callable[..., Path]

IMPORTS = "from harness import hookimpl\n"


def test_a_source_makes_tasks_when_they_are_named(install_plugin: InstallPlugin, cli: Cli) -> None:
    """They are shown, a glob finds them, and have metrics of their own."""
    source = IMPORTS + (
        "import json\n"
        "from harness.specs.task_source import MadeTask, TaskSource\n"
        "class Source:\n"
        "    def names(self, pattern): return ['one', 'two'] if pattern == '*' else [pattern]\n"
        "    def document(self, name, shots):\n"
        "        hub = {'path': f'made:{name}', 'split': 'test'}\n"
        "        head = {'task': f'made:{name}', 'description': f'with {shots} shots', 'version': 1}\n"
        "        head |= dict(kind='multiple_choice', citation='c', license='l', metrics=['accuracy', 'made:m'])\n"
        "        head |= dict(inputs=['question'], labels=['a', 'b'], languages={'sw': {'test': {'hub': hub}}})\n"
        "        return MadeTask(text=json.dumps(head), source='/from/somewhere.yaml')\n"
        "def metric(name):\n"
        "    from dataclasses import replace\n"
        "    from harness.metrics.catalog import METRICS\n"
        "    [own] = [metric for metric in METRICS if metric.name == 'accuracy']\n"
        "    return replace(own, name=name)\n"
        "SOURCE = Source()\n"
        "@hookimpl\n"
        "def harness_register_task_sources():\n"
        "    return [TaskSource(name='made', target='with_source:SOURCE', metric='with_source:metric')]\n"
    )
    install_plugin("with_source", source)
    session = open_session()
    assert session.registry.metrics.get("made:m").name == "made:m"
    assert session.catalog.make("made:x", shots=2) == {"made:x": None}
    assert session.catalog.task("made:x").spec.description == "with 2 shots"
    assert session.catalog.task("made:x").plugin == "with_source"
    assert [item.entry.spec.task for item in select(session.catalog, ["made:*"])] == ["made:one", "made:two"]
    status, shown, _ = cli("tasks", "show", "made:three")
    assert status == 0
    assert "made:three" in shown
    assert "/from/somewhere.yaml" in shown
    _, plan, _ = cli("plan", "--tasks", "made:three", "--model", "baseline:majority", "--data", "sample")
    assert "--data sample" in " ".join(plan.split())
