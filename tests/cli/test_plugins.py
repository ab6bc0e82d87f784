"""Broken, misspelt, double and disabled plugins: named, with the next step, and never in the way of the others."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from harness.registry.registry import Registry
from tests.builders import SPEC_PLUGIN
from tests.conftest import Cli, InstallPlugin

EVAL = (
    *("eval", "--tasks", "xnli:de", "--model", "baseline:majority", "--data", "sample"),
    *("--limit", "2", "--train-limit", "20", "--output", "run"),
)
METRIC = """
import numpy as np
from harness import hookimpl
from harness.metrics import Metric, MetricResult

@hookimpl
def harness_register_metrics():
    return [Metric(name="accuracy", compute=lambda p, r, c: MetricResult(value=1.0, items=np.ones(len(p))),
                   kinds=frozenset({"sequence_classification"}), description="d", source="s")]
"""
ADAPTER = """
from harness import hookimpl
from harness.models import AdapterEntry

@hookimpl
def harness_register_adapters():
    return [AdapterEntry(name="baseline", target="x:y", describe="x:y", options="x:y", summary="s")]
"""
METHOD = """
from harness import hookimpl
from harness.kinds import Method
from harness.models import Capability

@hookimpl
def harness_register_methods():
    return [Method(name="head", kind="sequence_classification", requires=Capability.CLASSIFIES,
                   protocols=frozenset({"frozen"}), predict=lambda *a: [])]
"""


def _rows(cli: Cli) -> dict[str, dict[str, str]]:
    cli("plugins", "--json", "plugins.json")
    rows = {row["name"]: row for row in json.loads(Path("plugins.json").read_text(encoding="utf-8"))}
    Path("plugins.json").unlink()
    return rows


@pytest.mark.parametrize(
    ("source", "fault"),
    [
        ("import not_installed_anywhere", "ModuleNotFoundError: No module named 'not_installed_anywhere'"),
        ("1 / 0", "ZeroDivisionError: division by zero"),
        ("def broken(:", "SyntaxError: invalid syntax (faulty.py, line 1)"),
        (
            "from harness import hookimpl\n@hookimpl\ndef harness_register_metric(): return []\n",
            "it implements the unknown hook 'harness_register_metric'",
        ),
        (
            "from harness import hookimpl\n@hookimpl\ndef harness_cell_finished(cells): pass\n",
            "its hook 'harness_cell_finished' takes 'cells', but is given 'cell'",
        ),
    ],
    ids=["missing module", "raises", "syntax", "misspelt hook", "misspelt argument"],
)
def test_a_plugin_that_cannot_be_loaded_is_reported_and_the_others_work(
    cli: Cli, install_plugin: InstallPlugin, source: str, fault: str
) -> None:
    install_plugin("faulty", source)
    status, out, err = cli("plugins")
    assert status == 1
    assert err.startswith("faulty (faulty): ")
    assert fault in err
    row = _rows(cli)["faulty"]
    assert row["state"] == "broken"
    assert fault in row["error"]
    status, out, err = cli(*EVAL)
    assert status == 0
    assert err.startswith("Warning: The plugin 'faulty' (faulty) cannot be used: ")
    assert fault in err
    assert "Repair it, or run with HARNESS_DISABLE_PLUGINS=faulty." in err
    assert "Traceback" not in out + err


def test_working_plugins_are_listed_and_names_that_a_broken_one_may_have_are_reported_with_it(
    cli: Cli, install_plugin: InstallPlugin
) -> None:
    install_plugin("fine", "", version="2.3", distribution="a-fine-package")
    assert cli("plugins")[0] == 0
    row = _rows(cli)["fine"]
    assert [row[name] for name in ("package", "version", "module", "state")] == [
        "a-fine-package",
        "2.3",
        "fine",
        "ok",
    ]
    install_plugin("mine", "import not_installed_anywhere")
    warning = "Warning: The plugin 'mine' (mine) cannot be used: ModuleNotFoundError"
    for command, expected in {
        "plan --tasks xnli --model mine:model": 2,
        "tasks validate mine": 2,
        "tasks list": 0,
        "languages sw": 0,
    }.items():
        status, _, err = cli(*command.split())
        lines = err.splitlines()
        assert (status, lines[0].startswith(warning)) == (expected, True), command
        assert [line.startswith("Error: No ") for line in lines[1:]] == [True] * (status == 2), command


HOOKS = ("metrics", "readers", "methods", "kinds", "adapters", "task_specs")


@pytest.mark.parametrize(
    ("hook", "body", "fault"),
    [
        *((hook, "raise KeyError('x')", "raised KeyError: 'x'") for hook in HOOKS),
        ("metrics", "return 5", "raised TypeError: 'int' object is not iterable"),
        *((hook, "return [5]", "which is no ") for hook in HOOKS),
        ("readers", "return [dict]", "which is no reader"),
    ],
)
def test_a_hook_that_raises_or_returns_a_wrong_thing_is_reported_and_the_others_answer(
    cli: Cli, install_plugin: InstallPlugin, hook: str, body: str, fault: str
) -> None:
    name = f"harness_register_{hook}"
    install_plugin("faulty", f"from harness import hookimpl\n@hookimpl\ndef {name}():\n    {body}\n")
    status, _, err = cli("plan", *EVAL[1:7])
    assert status == 0
    warning = err.splitlines()[0]
    assert warning.startswith("Warning: The plugin 'faulty' (faulty) cannot be used: ")
    assert name in warning and fault in warning


def test_a_resolver_that_raises_is_reported(cli: Cli, install_plugin: InstallPlugin) -> None:
    # The plugin that was loaded last is asked first, and plugins are loaded by name.
    install_plugin(
        "zealous",
        "from harness import hookimpl\n@hookimpl\ndef harness_resolve_data(ref, cache): raise KeyError(ref.owner)\n",
    )
    status, _, err = cli("plan", "--tasks", "xnli:de", "--model", "baseline:majority", "--data", "hub")
    assert status == 2
    assert (
        "Error: The plugin 'zealous' (zealous) cannot be used: harness_resolve_data raised KeyError: 'xnli'."
        in err
    )


def test_two_plugins_of_one_name(cli: Cli, install_plugin: InstallPlugin) -> None:
    install_plugin("first", "")
    install_plugin("second", "", entry_points="[harness]\nfirst = second\n")
    status, out, err = cli("plugins")
    assert status == 1
    assert err == (
        "first (second): its name is also used by 'first' of 'first'. Uninstall one of them, or run with "
        "HARNESS_DISABLE_PLUGINS=first.\n"
    )
    assert [line.split()[-1] for line in out.splitlines() if line.startswith("first")] == ["ok", "broken"]


@pytest.mark.parametrize(
    ("source", "message"),
    [
        (METRIC, "The metric 'accuracy' is registered by both plugin 'core' and plugin 'twin'."),
        (ADAPTER, "The adapter 'baseline' is registered by both plugin 'baseline' and plugin 'twin'."),
        (METHOD, "The method 'sequence_classification:head' is registered by both plugin 'core' and plug"),
    ],
    ids=["metric", "adapter", "method"],
)
def test_no_plugin_takes_a_name_of_the_harness(
    cli: Cli, install_plugin: InstallPlugin, source: str, message: str
) -> None:
    expected = cli("plan", *EVAL[1:7])
    install_plugin("twin", source)
    status, out, err = cli("plan", *EVAL[1:7])
    assert (status, out) == expected[:2]
    assert message in err
    assert "is used. Uninstall the other, or run with HARNESS_DISABLE_PLUGINS=twin" in err


def test_a_name_that_two_strangers_register_is_an_error_that_names_both(
    cli: Cli, install_plugin: InstallPlugin
) -> None:
    source = ADAPTER.replace("baseline", "mine")
    install_plugin("twin", source)
    install_plugin("double", source)
    status, _, err = cli("plan", *EVAL[1:4], "mine:x", *EVAL[5:7])
    assert status == 2
    assert "Error: The adapter 'mine' is registered by both plugin 'double' and plugin 'twin'." in err
    assert "HARNESS_DISABLE_PLUGINS=twin" in err
    assert cli("plan", *EVAL[1:7])[0] == 0


def test_a_double_name_is_no_trouble_for_those_who_do_not_use_it(
    cli: Cli, install_plugin: InstallPlugin, monkeypatch: pytest.MonkeyPatch
) -> None:
    install_plugin("twin", METRIC)
    assert cli("plan", "--tasks", "xquad:de", *EVAL[3:7])[0] == 0
    monkeypatch.setenv("HARNESS_DISABLE_PLUGINS", "twin, other")
    assert cli(*EVAL)[0] == 0
    assert _rows(cli)["twin"]["state"] == "disabled"


def test_a_task_that_two_plugins_bring(cli: Cli, install_plugin: InstallPlugin) -> None:
    spec = (
        "task: xnli\nkind: span_extraction\nversion: 1\ndescription: d\ncitation: c\nlicense: l\nmetrics: [f1]\n"
        "languages: {en: {test: {sample: a}}}\n"
    )
    install_plugin(
        "twin",
        {"twin/__init__.py": SPEC_PLUGIN, "twin/specs/xnli.yaml": spec, "twin/specs/faulty.yaml": "a: ["},
    )
    message = "Warning: The task 'xnli' is registered by both plugin 'task_specs' and plugin 'twin'. That of"
    letters = spec.replace("xnli", "letters")
    install_plugin("third", {"third/__init__.py": SPEC_PLUGIN, "third/specs/letters.yaml": letters})
    for command in (("plan", *EVAL[1:7]), ("tasks", "list"), ("languages", "sw")):
        status, _, err = cli(*command)
        assert status == 0
        assert message in err
        assert "faulty.yaml has 1 fault" in err
    assert {"xnli", "letters"} <= _listed(cli)
    install_plugin("fourth", {"fourth/__init__.py": SPEC_PLUGIN, "fourth/specs/letters.yaml": letters})
    double = "The task 'letters' is registered by both plugin 'fourth' and plugin 'third'."
    status, _, err = cli("plan", "--tasks", "letters", *EVAL[3:7])
    assert status == 2
    assert f"Error: {double}" in err
    assert f"Warning: {double}" in cli("tasks", "list")[2]
    assert "xnli" in _listed(cli)
    assert "letters" not in _listed(cli)


def _listed(cli: Cli) -> set[str]:
    return {line.split()[0] for line in cli("tasks", "list")[1].splitlines()}


def test_hooks_are_traced_on_request(
    cli: Cli, install_plugin: InstallPlugin, monkeypatch: pytest.MonkeyPatch, registry: Registry
) -> None:
    install_plugin(
        "watcher",
        "from harness import hookimpl\n@hookimpl\ndef harness_cell_finished(cell): pass\n"
        "@hookimpl\ndef harness_register_metrics(): return []\n",
    )
    assert "hook " not in cli(*EVAL)[2]
    monkeypatch.setenv("HARNESS_TRACE_HOOKS", "1")
    status, _, err = cli(*EVAL[:-1], "again")
    assert status == 0
    count = sum(registry.metrics.plugin_of(name) == "core" for name in registry.metrics.names)
    assert f"hook harness_register_metrics: core -> {count} declared\n" in err
    assert "hook harness_register_metrics: watcher -> 0 declared\n" in err
    assert "hook harness_cell_finished: watcher -> observed\n" in err


# Commands ----------------------------------------------------------------------------------------------

GROUP = "[harness.commands]\n{}\n"
APP = """
import typer
app = typer.Typer()

@app.command()
def greet(name: str) -> None:
    typer.echo(f"Hello {name}")
"""


OPTION = """
from typing import Annotated, Any
import typer
from harness.cli import extends

def shouts(command: Any) -> Any:
    @extends(command)
    def listed(shout: Annotated[bool, typer.Option("--shout", help="Say it.")] = False, **given: Any) -> Any:
        if shout:
            typer.echo("HEY")
        return command(**given)
    return listed
"""


def test_a_plugin_adds_an_option_to_a_command(cli: Cli, install_plugin: InstallPlugin) -> None:
    plan = ("plan", "--tasks", "xnli:de", "--model", "baseline:majority", "--data", "sample")
    plain = cli(*plan)
    install_plugin("shouter", OPTION, entry_points="[harness.options]\nplan.shout = shouter:shouts\n")
    assert "--shout" in cli("plan", "--help")[1]
    assert cli(*plan)[:2] == plain[:2]
    status, out, _ = cli(*plan, "--shout")
    assert status == 0 and out == f"HEY\n{plain[1]}"


@pytest.mark.parametrize(
    "source", ["raise OSError('gone')", "def shouts(command): return 5 + command", "shouts = 5"]
)
def test_a_command_works_without_a_broken_option(
    cli: Cli, install_plugin: InstallPlugin, source: str
) -> None:
    install_plugin("broken", source, entry_points="[harness.options]\nplan.shout = broken:shouts\n")
    status, _, err = cli("plan", "--tasks", "xnli:de", "--model", "baseline:majority", "--data", "sample")
    assert status == 0 and "Warning" in err


def test_a_plugin_brings_a_command_unless_it_is_broken_or_double(
    cli: Cli, install_plugin: InstallPlugin
) -> None:
    install_plugin("greeter", APP, entry_points=GROUP.format("greet = greeter:app"))
    assert cli("greet", "you") == (0, "Hello you\n", "")
    assert "greet         Comes with the plugin package greeter." in cli("--help")[1]
    status, _, err = cli("greet")
    assert (status, "Missing argument 'name'" in err) == (2, True)
    assert "Did you mean 'greet'" in cli("gret")[2]
    install_plugin("waver", APP, entry_points=GROUP.format("greet = waver:app"))
    status, _, err = cli("greet", "you")
    assert (status, "'greet' comes with both 'greeter' and 'waver'" in err) == (2, True)
    install_plugin("leaver", "import not_installed_anywhere", entry_points=GROUP.format("leave = leaver:app"))
    assert cli("--help")[0] == 0
    status, _, err = cli("leave")
    assert (status, "'leave' of the package 'leaver' cannot be loaded: ModuleNotFoundError" in err) == (
        2,
        True,
    )
