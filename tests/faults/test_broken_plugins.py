"""Plugins that misbehave, in processes of their own: each is named with what to do, and the others work."""

from __future__ import annotations

import importlib.metadata
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from .mood_spec import PLAN, SPECS, task_text

pytestmark = pytest.mark.thorough

Package = Callable[..., Path]
Harness = Callable[..., Any]

IMPORT = "from harness import hookimpl\n"
LIST = ("tasks", "list", "xnli")
NEEDS = "this harness {} has hooks of version 1. Run 'pip install --upgrade multilingual-harness'".format(
    importlib.metadata.version("multilingual-harness")
)


FAULTS: dict[str, tuple[str, str]] = {
    "exits": ("raise SystemExit(3)", "SystemExit: 3."),
    "leaves": ("import sys; sys.exit()", "SystemExit: ."),
    "generates": ("raise GeneratorExit", "GeneratorExit: ."),
    "cancelled": ("import asyncio; raise asyncio.CancelledError('x')", "CancelledError: x."),
    "needy": ("import not_installed", "ModuleNotFoundError: No module named 'not_installed'."),
    "newer": ("HARNESS_HOOKS = 2", f"it needs hooks of version 2, {NEEDS}"),
    "versionless": ("HARNESS_HOOKS = '1'", "its HARNESS_HOOKS is '1', expected the version of the hooks"),
    "speechless": (
        "class Fault(Exception):\n    def __str__(self): raise ValueError('no')\nraise Fault",
        "Fault: (unprintable).",
    ),
    "faceless": (
        f"{IMPORT}class Thing:\n    def __repr__(self): raise ValueError('no')\n"
        "@hookimpl\ndef harness_register_task_specs(): return [Thing()]\n",
        "it returned (unprintable) from harness_register_task_specs, which is no folder.",
    ),
    "unknown": (
        f"{IMPORT}@hookimpl\ndef harness_predict_weather(): return []\n",
        f"it implements the unknown hook 'harness_predict_weather': {NEEDS}",
    ),
    "demanding": (
        f"{IMPORT}@hookimpl\ndef harness_cell_finished(cell, weather): pass\n",
        f"its hook 'harness_cell_finished' takes 'weather', but is given 'cell': {NEEDS}",
    ),
    "hooked": (
        f"{IMPORT}@hookimpl\ndef harness_register_task_specs(): raise SystemExit(3)\n",
        "harness_register_task_specs raised SystemExit: 3.",
    ),
    "half": ("", "its entry point is 'half:plugin', but 'half' has no 'plugin'. Run 'pip uninstall half'"),
}
"""Source of a plugin, and what is wrong with it."""


def _states(harness: Harness, folder: Path) -> dict[str, str]:
    printed = harness("plugins", "--json", folder / "plugins.json")
    assert printed.status == 1
    rows = json.loads((folder / "plugins.json").read_text(encoding="utf-8"))
    return {row["name"]: row["state"] for row in rows}


def test_what_cannot_be_loaded_is_reported_and_all_others_work(
    package: Package, harness: Harness, tmp_path: Path
) -> None:
    for name, (source, _) in FAULTS.items():
        package(name, source, entry_points="[harness]\nhalf = half:plugin\n" if name == "half" else None)
    package("zz_fine", {"zz_fine/__init__.py": SPECS, "zz_fine/specs/greet.yaml": task_text("greetings")})
    listed = harness("tasks", "list")
    assert listed.status == 0
    assert {"xnli", "greetings"} <= {line.split()[0] for line in listed.out.splitlines()}
    warnings = sorted(listed.err.splitlines())
    for line, (name, (_, fault)) in zip(warnings, sorted(FAULTS.items()), strict=True):
        assert line.startswith(f"Warning: The plugin {name!r} ({name}) cannot be used: {fault}")
        assert line.endswith(f" run with HARNESS_DISABLE_PLUGINS={name}.")
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


def test_a_module_that_is_gone(package: Package, harness: Harness, site: Path, tmp_path: Path) -> None:
    package("gone", None)
    information = site / "gone-1.0.dist-info"
    for removed, way_out in (
        (None, "Run 'pip uninstall gone' or 'pip install --force-reinstall gone', or run with "),
        ("RECORD", f"remove the folder {str(information)!r}"),
        ("METADATA", ""),
    ):
        if removed is not None:
            (information / removed).unlink()
        listed = harness(*LIST)
        assert listed.status == 0
        assert listed.err.startswith(
            "Warning: The plugin 'gone' (gone) cannot be used: its module 'gone' is not"
        )
        assert way_out in listed.err
    assert _states(harness, tmp_path)["gone"] == "broken"


def test_a_spec_folder_that_is_gone(package: Package, harness: Harness, site: Path, tmp_path: Path) -> None:
    package("half", {"half/__init__.py": SPECS})
    listed = harness(*LIST)
    assert listed.status == 0
    folder = str(site / "half" / "specs")
    assert listed.err.startswith(
        f"Warning: The folder {folder!r} of the plugin 'half' cannot be read: No such"
    )
    assert _states(harness, tmp_path)["half"] == "faulty spec"


def test_damaged_entry_points(package: Package, harness: Harness, site: Path) -> None:
    damages = {"binary": b"\xff\xfe\x00", "split": b"[harness]\nno equals sign\n"}
    for name, content in damages.items():
        package(name, "")
        (site / f"{name}-1.0.dist-info" / "entry_points.txt").write_bytes(content)
    assert harness("--help").status == 0
    listed = harness(*LIST)
    assert listed.status == 0
    assert listed.out.splitlines()[1].startswith("xnli ")
    for name in damages:
        assert f"The plugin {name!r} ({name}) cannot be used: its entry_points.txt cannot be" in listed.err


def test_no_package_replaces_our_plugins(package: Package, harness: Harness, tmp_path: Path) -> None:
    package("aaa", "", entry_points="[harness]\ncore = aaa\n")
    planned = harness(*PLAN)
    assert planned.status == 0
    message = "Warning: The plugin 'core' (aaa) cannot be used: its name is also used by 'harness.builtin' of"
    assert planned.err.startswith(message)


def test_commands_with_names_of_ours_are_never_run(package: Package, harness: Harness) -> None:
    """Of the core (plan) and of our plugins (gap)."""
    app = "import typer\napp = typer.Typer()\n@app.command()\ndef run(): typer.echo('mine')\n"
    entries = "".join(f"{name} = aaa:app\n" for name in ("plan", "gap", "greet"))
    package("aaa", app, entry_points=f"[harness.commands]\n{entries}")
    assert "mine" not in harness(*PLAN).out
    helped = harness("gap", "--help")
    assert (helped.status, helped.err) == (0, "")
    assert "translations" in helped.out
    printed = harness("plugins")
    assert printed.status == 1
    assert sorted(printed.err.splitlines()) == [
        f"The command {name!r} of the package 'aaa' is never run: it is one of the harness itself."
        for name in ("gap", "plan")
    ]
    assert harness("greet").out == "mine\n"


@pytest.mark.parametrize(
    ("name", "fault"),
    [
        ("'html'", "report format 'html' is registered by both plugin 'core' and plugin 'twin'."),
        ("None", "from harness_register_reports, which is no report format. Repair it"),
    ],
)
def test_things_with_a_second_or_no_name_are_reported(
    package: Package, harness: Harness, name: str, fault: str
) -> None:
    package(
        "twin",
        f"{IMPORT}from harness.registry.declarations import ReportFormat\n@hookimpl\ndef harness_register_reports():\n"
        f"    return [ReportFormat(name={name}, suffix='.x', render=lambda runs: '')]\n",
    )
    assert harness("plugins").status == 0
    checked = harness("plugins", "--check")
    assert checked.status == 1
    assert fault in checked.err


def test_commands_that_cannot_be_loaded(package: Package, harness: Harness) -> None:
    faults: dict[str, tuple[str | None, str]] = {
        "exits": ("raise SystemExit(0)", "SystemExit: 0. "),
        "gone": (None, "its module 'gone' is not there, only the metadata of its package are. Run 'pip"),
        "half": ("", "its entry point is 'half:app', but 'half' has no 'app'. Run 'pip uninstall half'"),
        "number": ("app = 5", "it is 5, expected a typer.Typer. "),
    }
    for name, (source, _) in faults.items():
        package(name, source, entry_points=f"[harness.commands]\n{name} = {name}:app\n")
    printed = harness("--help").out
    for name, (_, fault) in faults.items():
        assert f"Comes with the plugin package {name}." in printed
        ended = harness(name)
        assert ended.status == 2
        assert ended.err.startswith(
            f"Error: The command {name!r} of the package {name!r} cannot be loaded: {fault}"
        )
    assert harness(*LIST).err == ""
