"""Plugins that hang, or take the standard streams away: named, with the way to leave them out."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from itertools import product
from pathlib import Path
from typing import IO

import pytest

from harness.registry import guard
from harness.registry.plugin import find_entry_points, package_of

from ..conftest import InstallPlugin

HOOK = "from harness import hookimpl\n"
LIST = ("tasks", "list", "xnli")
HANGING = {
    "keeps_the_lock": "import ctypes\nctypes.PyDLL(None).sleep(600)\n",
    "blocks_in_c": (
        "import ctypes\nlibc, lock = ctypes.CDLL(None), ctypes.create_string_buffer(64)\n"
        "libc.pthread_mutex_lock(lock)\nlibc.pthread_mutex_lock(lock)\n"
    ),
    "swallows": "import time\nwhile True:\n    try: time.sleep(60)\n    except BaseException: pass\n",
}


def _start(folder: Path, *arguments: str, err: int | IO[str] = subprocess.PIPE) -> subprocess.Popen[str]:
    path = os.pathsep.join(filter(None, [os.environ.get("PYTHONPATH", ""), str(folder)]))
    return subprocess.Popen(
        [sys.executable, "-m", "harness", *arguments],
        stdout=subprocess.PIPE,
        stderr=err,
        text=True,
        env={**os.environ, "PYTHONPATH": path},
    )


@pytest.mark.thorough
def test_a_plugin_that_cannot_be_interrupted_is_named_while_it_is_imported(
    install_plugin: InstallPlugin, tmp_path: Path
) -> None:
    started = []
    for number, (name, command) in enumerate(product(HANGING, (LIST, ("plugins",)))):
        log = tmp_path / str(number)
        with log.open("w", encoding="utf-8") as file:
            started.append((name, log, _start(install_plugin(name, HANGING[name]), *command, err=file)))
    until = time.monotonic() + 60
    try:
        for name, log, process in started:
            sentence = rf"plugin '{name}'.*HARNESS_DISABLE_PLUGINS={name}"
            while not re.search(sentence, log.read_text(encoding="utf-8")):
                assert process.poll() is None
                assert time.monotonic() < until, name
                time.sleep(0.1)
    finally:
        for _, _, process in started:
            process.kill()
            process.communicate()


def test_ctrl_c_ends_a_command_whose_plugin_hangs(install_plugin: InstallPlugin, tmp_path: Path) -> None:
    on = tmp_path / "on"
    source = f"import pathlib, time\npathlib.Path({str(on)!r}).touch()\ntime.sleep(600)\n"
    process = _start(install_plugin("endless", source), *LIST)
    while not on.exists():
        assert process.poll() is None
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "HARNESS_DISABLE_PLUGINS=endless" in err


@pytest.mark.parametrize(
    ("entry_points", "source", "command", "way_out"),
    [
        (
            None,
            f"{HOOK}import time\n@hookimpl\ndef harness_register_metrics():\n    time.sleep(1.5)\n    return []\n",
            ("plan", "--tasks", "xnli:de", "--model", "baseline:majority", "--data", "sample"),
            "HARNESS_DISABLE_PLUGINS=slow",
        ),
        (
            "[harness.commands]\ngreet = slow:app\n",
            "import time, typer\ntime.sleep(1.5)\napp = typer.Typer()\n@app.command()\ndef run(): pass\n",
            ("greet",),
            "uninstall 'slow'",
        ),
    ],
)
def test_slow_hooks_and_commands_are_named_and_work(
    install_plugin: InstallPlugin,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    capfd: pytest.CaptureFixture[str],
    entry_points: str | None,
    source: str,
    command: tuple[str, ...],
    way_out: str,
) -> None:
    from harness.cli.main import run_command

    monkeypatch.setenv("HARNESS_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(guard, "SECONDS", 0.4)
    install_plugin("slow", source, entry_points=entry_points)
    assert run_command(command) == 0
    err = capfd.readouterr().err
    assert way_out in err
    assert "slow.py" in err


def test_loading_leaves_signals_and_threads_alone(install_plugin: InstallPlugin, tmp_path: Path) -> None:
    seen = tmp_path / "seen"
    source = (
        "import pathlib, signal, threading\n"
        "taken = [signal.getsignal(signal.SIGALRM) != signal.SIG_DFL, signal.getitimer(signal.ITIMER_REAL)[0] > 0,\n"
        "         signal.getsignal(signal.SIGINT) != signal.default_int_handler, threading.active_count() > 1]\n"
        f"pathlib.Path({str(seen)!r}).write_text(str(any(taken)))\n"
    )
    process = _start(install_plugin("looking", source), *LIST)
    _, err = process.communicate(timeout=60)
    assert (process.returncode, err, seen.read_text()) == (0, "", "False")


STREAMS = {
    "closes_out": "import sys\nsys.stdout.close()\n",
    "no_out": "import sys\nsys.stdout = None\n",
    "deletes_out": "import sys\ndel sys.stdout\n",
    "closes_err": "import sys\nsys.stderr.close()\n",
    "no_err": "import sys\nsys.stderr = None\n",
    "wraps": "import io, sys\nsys.stdout = io.TextIOWrapper(sys.stdout.buffer, encoding='utf-8')\n",
    "detaches": "import codecs, sys\nsys.stdout = codecs.getwriter('utf-8')(sys.stdout.detach())\n",
    "closes_both": "import sys\nsys.stdout.close()\nsys.stderr.close()\nsys.stdout = sys.stderr = None\n",
    "and_exits": "import sys\nsys.stdout = sys.stderr = None\nsys.exit(3)\n",
}


@pytest.mark.parametrize("name", STREAMS)
def test_streams_that_an_import_takes_away_are_restored(install_plugin: InstallPlugin, name: str) -> None:
    process = _start(install_plugin(name, STREAMS[name]), *LIST)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 0
    assert out.splitlines()[1].startswith("xnli ")
    expected = {f"sys.std{end}" for end in ("out", "err") if f"std{end}" in STREAMS[name]}
    named = [line for line in err.splitlines() if repr(name) in line]
    assert {stream for line in named for stream in re.findall(r"sys\.std\w+", line)} == expected
    assert all(f"HARNESS_DISABLE_PLUGINS={name}" in line for line in named)


def test_streams_that_hooks_and_commands_take_away_are_restored(
    install_plugin: InstallPlugin, tmp_path: Path
) -> None:
    away = "    sys.stdout.close()\n    sys.stderr = None\n"
    folder = install_plugin(
        "greedy",
        f"{HOOK}import sys\n@hookimpl\ndef harness_register_metrics():\n{away}    return []\n"
        f"@hookimpl\ndef harness_cell_finished(cell):\n{away}",
    )
    given = ("--tasks", "xnli:en", "--data", "sample", "--output", str(tmp_path / "run"))
    process = _start(folder, "eval", *given, "--model", "baseline:majority")
    out, err = process.communicate(timeout=120)
    assert process.returncode == 0, err
    assert "xnli" in out
    for stream in ("sys.stdout", "sys.stderr"):
        [line] = [line for line in err.splitlines() if stream in line]
        assert "'greedy'" in line
    app = "import sys, typer\nsys.stdout = sys.stderr = None\napp = typer.Typer()\n"
    app += "@app.command()\ndef run(): typer.echo('hello')\n"
    folder = install_plugin("greeter", app, entry_points="[harness.commands]\ngreet = greeter:app\n")
    process = _start(folder, "greet")
    out, err = process.communicate(timeout=60)
    assert (process.returncode, out) == (0, "hello\n")
    assert [line for line in err.splitlines() if "'greeter'" in line and "sys.stdout" in line]


def test_a_package_whose_entry_points_cannot_be_read_is_reported(install_plugin: InstallPlugin) -> None:
    folder = install_plugin("binary", "")
    next(folder.glob("*.dist-info")).joinpath("entry_points.txt").write_bytes(b"\xff\xfe")
    entry_points, broken = find_entry_points("harness")
    assert [package_of(package)[0] for package, _ in broken] == ["binary"]
    assert "core" in {entry_point.name for entry_point in entry_points}
