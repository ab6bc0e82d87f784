"""Plugins that misbehave, in processes of their own: each is named with what to do, and the others work."""

from __future__ import annotations

import importlib.metadata
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.thorough

Package = Callable[..., Path]
Harness = Callable[..., Any]

IMPORT = "from harness import hookimpl\n"
LIST = ("tasks", "list", "xnli")
TASK = """
task: greetings
kind: sequence_classification
version: 1
description: d
citation: c
license: l
inputs: [text]
labels: [friendly, rude]
metrics: [accuracy]
protocols: [zero_shot_transfer]
transfer: {stages: [greetings]}
languages:
  en:
    test: {local: en.jsonl, reader: jsonl}
"""
VERSION = importlib.metadata.version("multilingual-harness")
PLAN = ("plan", "--tasks", "xnli:de", "--model", "baseline:majority", "--data", "sample")
SPECS = (
    IMPORT + "from importlib.resources import files\n@hookimpl\n"
    "def harness_register_task_specs(): return [files(__name__) / 'specs']\n"
)


FAULTS = {
    "exits": ("raise SystemExit(3)", "SystemExit: 3. Repair it, or"),
    "leaves": ("import sys; sys.exit()", "SystemExit: . Repair it, or"),
    "generates": ("raise GeneratorExit", "GeneratorExit: . Repair it, or"),
    "cancelled": ("import asyncio; raise asyncio.CancelledError('x')", "CancelledError: x. Repair it, or"),
    "newer": (
        "HARNESS_HOOKS = 2",
        f"it needs hooks of version 2, this harness {VERSION} has hooks of version 1. Run 'pip install --upgrade "
        "multilingual-harness', or",
    ),
    "versionless": (
        "HARNESS_HOOKS = '1'",
        "its HARNESS_HOOKS is '1', expected the version of the hooks, such as 1. Repair it, or",
    ),
    "speechless": (
        "class Fault(Exception):\n    def __str__(self): raise ValueError('no')\nraise Fault",
        "Fault: (unprintable). Repair it, or",
    ),
    "faceless": (
        f"{IMPORT}class Thing:\n    def __repr__(self): raise ValueError('no')\n"
        "@hookimpl\ndef harness_register_task_specs(): return [Thing()]\n",
        "it returned (unprintable) from harness_register_task_specs, which is no folder. Repair it, or",
    ),
    "unknown": (
        f"{IMPORT}@hookimpl\ndef harness_predict_weather(): return []\n",
        f"it implements the unknown hook 'harness_predict_weather': this harness {VERSION} has hooks of version 1. "
        "Run 'pip install --upgrade multilingual-harness', or",
    ),
    "demanding": (
        f"{IMPORT}@hookimpl\ndef harness_cell_finished(cell, weather): pass\n",
        f"its hook 'harness_cell_finished' takes 'weather', but is given 'cell': this harness {VERSION} has hooks of "
        "version 1. Run 'pip install --upgrade multilingual-harness', or",
    ),
    "hooked": (
        f"{IMPORT}@hookimpl\ndef harness_register_task_specs(): raise SystemExit(3)\n",
        "harness_register_task_specs raised SystemExit: 3. Repair it, or",
    ),
}


def _states(harness: Harness, folder: Path) -> dict[str, str]:
    printed = harness("plugins", "--json", folder / "plugins.json")
    assert printed.status == 1
    rows = json.loads((folder / "plugins.json").read_text(encoding="utf-8"))
    return {row["name"]: row["state"] for row in rows}


def test_what_cannot_be_loaded_is_reported_and_all_others_work(
    package: Package, harness: Harness, tmp_path: Path
) -> None:
    for name, (source, _) in FAULTS.items():
        package(name, source)
    package("zz_fine", {"zz_fine/__init__.py": SPECS, "zz_fine/specs/greet.yaml": TASK})
    listed = harness("tasks", "list")
    assert listed.status == 0
    assert {"xnli", "greetings"} <= {line.split()[0] for line in listed.out.splitlines()}
    expected = {
        f"Warning: The plugin {name!r} ({name}) cannot be used: {fault} run with HARNESS_DISABLE_PLUGINS={name}."
        for name, (_, fault) in FAULTS.items()
    }
    assert set(listed.err.splitlines()) == expected
    states = _states(harness, tmp_path)
    assert {name for name, state in states.items() if state == "broken"} == set(FAULTS)
    assert (states["zz_fine"], states["core"]) == ("ok", "ok")
    assert harness("tasks", "list", HARNESS_DISABLE_PLUGINS=",".join(FAULTS)).err == ""


def test_debug_shows_where_a_plugin_failed(package: Package, harness: Harness) -> None:
    package("faulty", "def load():\n    raise SystemExit(3)\n\nload()\n")
    listed = harness("--debug", *LIST)
    assert listed.status == 0
    assert 'faulty.py", line 2, in load' in listed.err
    assert "Warning: The plugin 'faulty'" in listed.err


# Half uninstalled ----------------------------------------------------------------------------------------


def test_a_module_that_is_gone(package: Package, harness: Harness, site: Path, tmp_path: Path) -> None:
    package("gone", None)
    listed = harness(*LIST)
    assert listed.status == 0
    assert listed.err == (
        "Warning: The plugin 'gone' (gone) cannot be used: its module 'gone' is not there, only the metadata of its "
        "package are. Run 'pip uninstall gone' or 'pip install --force-reinstall gone', or run with "
        "HARNESS_DISABLE_PLUGINS=gone.\n"
    )
    (site / "gone-1.0.dist-info" / "RECORD").unlink()
    assert f"remove the folder {str(site / 'gone-1.0.dist-info')!r}" in harness(*LIST).err
    (site / "gone-1.0.dist-info" / "METADATA").unlink()
    assert "The plugin 'gone' (gone) cannot be used" in harness(*LIST).err
    assert _states(harness, tmp_path)["gone"] == "broken"


def test_an_attribute_that_is_gone(package: Package, harness: Harness) -> None:
    package("half", "", entry_points="[harness]\nhalf = half:plugin\n")
    message = "its entry point is 'half:plugin', but 'half' has no 'plugin'. Run 'pip uninstall half' or 'pip install"
    assert message in harness(*LIST).err


def test_a_module_that_another_module_needs_is_no_half_package(package: Package, harness: Harness) -> None:
    package("needy", "import not_installed_anywhere")
    assert (
        "ModuleNotFoundError: No module named 'not_installed_anywhere'. Repair it, or" in harness(*LIST).err
    )


def test_a_spec_folder_that_is_gone(package: Package, harness: Harness, site: Path, tmp_path: Path) -> None:
    package("half", {"half/__init__.py": SPECS})
    listed = harness(*LIST)
    assert listed.status == 0
    assert listed.err == (
        f"Warning: The folder {str(site / 'half' / 'specs')!r} of the plugin 'half' cannot be read: No such file or "
        "directory. Install its package again, or uninstall it.\n"
    )
    assert _states(harness, tmp_path)["half"] == "faulty spec"


def test_damaged_entry_points(package: Package, harness: Harness, site: Path) -> None:
    for name, content in (("binary", b"\xff\xfe\x00"), ("split", b"[harness]\nno equals sign\n")):
        package(name, "")
        (site / f"{name}-1.0.dist-info" / "entry_points.txt").write_bytes(content)
    assert harness("--help").status == 0
    listed = harness(*LIST)
    assert listed.status == 0
    assert listed.out.splitlines()[1].startswith("xnli ")
    for name in ("binary", "split"):
        assert (
            f"The plugin {name!r} ({name}) cannot be used: its entry_points.txt cannot be read" in listed.err
        )


# Names -------------------------------------------------------------------------------------------------------


def test_no_package_replaces_our_plugins(package: Package, harness: Harness, tmp_path: Path) -> None:
    package("aaa", "", entry_points="[harness]\ncore = aaa\n")
    planned = harness(*PLAN)
    assert planned.status == 0
    message = "Warning: The plugin 'core' (aaa) cannot be used: its name is also used by 'harness.builtin' of"
    assert planned.err.startswith(message)


def test_commands_with_taken_names(package: Package, harness: Harness) -> None:
    app = "import typer\napp = typer.Typer()\n@app.command()\ndef run(): typer.echo('mine')\n"
    package("first", app, entry_points="[harness.commands]\nplan = first:app\ngreet = first:app\n")
    assert "mine" not in harness(*PLAN).out
    printed = harness("plugins")
    assert printed.status == 1
    assert printed.err == (
        "The command 'plan' of the package 'first' is never run: it is one of the harness itself.\n"
    )
    assert harness("greet").out == "mine\n"


def test_no_package_replaces_a_command_of_our_plugins(package: Package, harness: Harness) -> None:
    app = "import typer\napp = typer.Typer()\n@app.command()\ndef run(): typer.echo('mine')\n"
    package("aaa", app, entry_points="[harness.commands]\ngap = aaa:app\n")
    helped = harness("gap", "--help")
    assert (helped.status, helped.err) == (0, "")
    assert "translations" in helped.out
    printed = "The command 'gap' of the package 'aaa' is never run: it is one of the harness itself.\n"
    assert harness("plugins").err == printed


def test_names_that_two_plugins_register_are_reported_on_request(package: Package, harness: Harness) -> None:
    source = (
        f"{IMPORT}from harness.registry.declarations import ReportFormat\n@hookimpl\ndef harness_register_reports():\n"
        "    return [ReportFormat(name='html', suffix='.x', render=lambda runs: '')]\n"
    )
    package("twin", source)
    assert harness("plugins").status == 0
    checked = harness("plugins", "--check")
    assert checked.status == 1
    assert "report format 'html' is registered by both plugin 'core' and plugin 'twin'." in checked.err


def test_things_without_a_name_are_left_out(package: Package, harness: Harness) -> None:
    package(
        "nameless",
        f"{IMPORT}from harness.registry.declarations import ReportFormat\n@hookimpl\ndef harness_register_reports():\n"
        "    return [ReportFormat(name=None, suffix='.x', render=lambda runs: '')]\n",
    )
    checked = harness("plugins", "--check")
    assert checked.status == 1
    assert "from harness_register_reports, which is no report format. Repair it" in checked.err


def test_commands_that_cannot_be_loaded(package: Package, harness: Harness) -> None:
    faults: dict[str, tuple[str | None, str]] = {
        "exits": ("raise SystemExit(0)", "SystemExit: 0. Repair or uninstall it."),
        "gone": (
            None,
            "its module 'gone' is not there, only the metadata of its package are. Run 'pip uninstall gone'",
        ),
        "half": ("", "its entry point is 'half:app', but 'half' has no 'app'. Run 'pip uninstall half'"),
        "number": ("app = 5", "it is 5, expected a typer.Typer. Repair or uninstall it."),
    }
    for name, (source, _) in faults.items():
        package(name, source, entry_points=f"[harness.commands]\n{name} = {name}:app\n")
    printed = harness("--help").out
    for name, (_, fault) in faults.items():
        assert f"Comes with the plugin package {name}." in printed
        ended = harness(name)
        assert ended.status == 2
        message = f"Error: The command {name!r} of the package {name!r} cannot be loaded: {fault}"
        assert ended.err.startswith(message)
    assert harness(*LIST).err == ""
