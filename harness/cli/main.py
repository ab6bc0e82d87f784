"""The entry point ``harness``: finds the command, runs it, turns errors into one line and an exit status."""

from __future__ import annotations

import gc
import importlib
import os
import sys
import traceback
import warnings
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from harness.cli.output import DEBUG, check_outputs_first, printable
from harness.errors import (
    BrokenPluginError,
    DeprecatedNameWarning,
    HarnessError,
    StoppedError,
    UnknownNameError,
    UsageError,
)
from harness.registry.guard import call_named, kept_streams

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

COMMANDS = {
    "eval": ("harness.cli.evaluate:app", "Evaluate a model: fine-tune or prompt it, score every language."),
    "plan": ("harness.cli.plan:app", "Show what eval would do, without doing it."),
    "fetch": ("harness.cli.fetch:app", "Download the data and models that a plan needs, for use offline."),
    "tune": (
        "harness.cli.tune:app",
        "Choose learning rates from a grid on the English dev set, as a recipe.",
    ),
    "score": ("harness.cli.runs:score_app", "Score a run again from its records; needs no model."),
    "merge": ("harness.cli.runs:merge_app", "Make one run of the runs of several machines or tasks."),
    "lock": ("harness.cli.lock:app", "Write the revisions and digests of a run's data, for eval --locked."),
    "report": ("harness.cli.report:app", "Print or write the report of a run."),
    "journal": ("harness.cli.runs:journal_app", "Check the answers that a run has written down."),
    "compare": ("harness.cli.compare:app", "Compare runs item by item: scores, differences, agreement."),
    "diagnose": ("harness.cli.diagnose:app", "Show where a run is weak, or where two differ, by attribute."),
    "tasks": ("harness.cli.tasks:app", "List, show and validate task specs; print their JSON schema."),
    "models": ("harness.cli.environment:models_app", "List the model adapters, or show what a model can do."),
    "doctor": (
        "harness.cli.environment:doctor_app",
        "Show versions, devices, plugins, caches, and what is missing for what.",
    ),
    "plugins": (
        "harness.cli.environment:plugins_app",
        "List the installed plugins, and what is wrong with broken ones.",
    ),
    "languages": ("harness.cli.languages:app", "List the languages: codes, scripts, families, tasks."),
}
ELSEWHERE = {
    "tasks list": "list ls",
    "eval": "run evaluate test benchmark bench start",
    "report": "show results view",
    "compare": "diff",
    "fetch": "download pull",
    "new": "create init add",
    "doctor": "info env check",
    "--version": "version",
}
"""Names of commands in other tools."""
LISTS = frozenset({"--languages", "-l", "--tasks", "-t", "--data", "-d", "--train-languages", "--seeds"})
"""Options of commands without arguments that take several values, which spaces may separate too."""
GROUP = "harness.commands"
OPTIONS = "harness.options"
"""Entry points ``COMMAND.NAME``: functions that take the function of a command, and return it with a further option."""
INTERRUPTED = 130
_COMPLETE_VARIABLE = "_HARNESS_COMPLETE"
"""Set by the shell's script to what it wants to know."""
_SHELLS = ("bash", "zsh", "fish", "powershell", "pwsh")
HELP = """\
Usage: harness [--debug] COMMAND [OPTIONS]

Evaluate multilingual models on cross-lingual benchmarks.

Commands:
{commands}

Options:
  --debug      Show the traceback of an error.
  --version    Show the version.
  --install-completion  Complete commands and options in this shell, or in the one named.
  -h, --help   Show this message; 'harness COMMAND --help' shows a command's options.

First run, offline:
  harness eval --tasks xnli --model baseline:majority --data sample
"""


def run_command(arguments: Sequence[str] | None = None) -> int:
    """Run a command line and return its exit status: 0 fine, 1 something failed, 2 wrong usage, 130 Ctrl-C."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    debug = "--debug" in words
    words = [item for item in words if item != "--debug"]
    token = DEBUG.set(debug)
    try:
        with kept_streams(), warnings.catch_warnings():  # so that an error can be printed
            warnings.simplefilter("default", DeprecatedNameWarning)
            return _dispatch(words)
    except StoppedError as error:
        _print_error(str(error), debug=debug)
        return error.exit_code
    except HarnessError as error:
        _print_error(f"Error: {error}", debug=debug)
        return error.exit_code
    except KeyboardInterrupt:
        _print_error("Stopped. What was finished is kept in the run folder.", debug=debug)
        return INTERRUPTED
    except BrokenPipeError:
        sys.stderr.close()
        return 0
    except Exception as error:  # an internal error or one of a plugin still ends in one line
        status = 1
        advice = "" if debug else " This is a fault of the harness or of a plugin; --debug shows where."
        message = f"{type(error).__name__}: {error}.{advice}"
        if isinstance(error, OSError) and error.filename is not None:  # such as a path of 300 characters
            status, message = 2, f"The file system cannot use {str(error.filename)!r}: {error.strerror}."
        _print_error(f"Error: {message}", debug=debug)
        return status
    finally:
        DEBUG.reset(token)


def _dispatch(given: list[str]) -> int:
    if _COMPLETE_VARIABLE in os.environ:
        return _complete(command_summaries(), _app)
    if not given or given[0] in {"-h", "--help", "help"}:
        sys.stdout.write(printable(_help()))
        return 0 if given else 2
    if given[0] == "--version":
        from importlib.metadata import version

        sys.stdout.write(f"harness {version('multilingual-harness')}\n")
        return 0
    if given[0] == "--install-completion":
        shell, path = _install_completion(*given[1:2])
        sys.stdout.write(f"{shell}: wrote {path}; open a new terminal to use it\n")
        return 0
    name, arguments = given[0], given[1:]
    plugin_commands = _plugin_commands() if name not in COMMANDS else {}
    if name in COMMANDS or name in plugin_commands:
        return _invoke(
            _app(name), name, _repeated(arguments) if name in {"eval", "plan", "fetch"} else arguments
        )
    meant = [f"harness {command}" for command, names in ELSEWHERE.items() if name.lower() in names.split()]
    raise UnknownNameError(
        "command", name, [*COMMANDS, *plugin_commands], hint="Run 'harness --help' to see all.", near=meant
    )


def _repeated(arguments: Sequence[str]) -> list[str]:
    """Return a command line in which every further value of a list has its option: ``-l sw hi`` is ``-l sw -l hi``."""
    written: list[str] = []
    option, has_value = "", False
    for item in arguments:
        if item.startswith("-"):
            option, has_value = item.partition("=")[0], "=" in item
        elif option in LISTS and has_value:
            written.append(option)
        else:
            has_value = True
        written.append(item)
    return written


def _app(name: str) -> Any:
    """Return the typer app of a command, with the options that plugins add to it."""
    if name not in COMMANDS:
        return _load(name)
    module, _, attribute = COMMANDS[name][0].partition(":")
    app = getattr(importlib.import_module(module), attribute)
    for entry_point in _entry_points(f"{name}.", OPTIONS):
        try:
            app = extended(app, _loaded(entry_point, f"The option {entry_point.name!r}"))
        except Exception as error:  # noqa: BLE001, RUF100  the command works without it
            _print_error(f"Warning: {error}")
    return app


def extended(app: Any, extension: Callable[[Any], Any]) -> Any:
    """Return the typer app of a single command with the further option of an extension; `app` stays as it is."""
    import typer

    new = typer.Typer(add_completion=False)
    new.command()(extension(app.registered_commands[0].callback))
    return new


def _load(name: str) -> Any:
    """Return the typer app of a plugin's command; raises `BrokenPluginError`."""
    entry_points = _entry_points(name)
    owners = [_owner(entry_point) for entry_point in entry_points]
    if len({entry_point.value for entry_point in entry_points}) > 1:
        raise BrokenPluginError(
            f"The command {name!r} comes with both {owners[0]!r} and {owners[1]!r}.",
            hint="Uninstall one of them.",
        )
    app = _loaded(entry_points[0], f"The command {name!r}")
    if not any(cls.__name__ == "Typer" for cls in type(app).__mro__):
        raise BrokenPluginError(
            f"The command {name!r} of the package {owners[0]!r} cannot be loaded: it is {app!r}, expected a "
            "typer.Typer.",
            hint="Repair or uninstall it.",
        )
    return app


def _loaded(entry_point: EntryPoint, title: str) -> Any:
    """Return the object that an entry point names; raises `BrokenPluginError`."""
    from harness.registry.plugin import DISTRIBUTION, load_entry_point

    owner = _owner(entry_point)
    subject = f"{title} of the package {owner!r} cannot be loaded"
    label = f"{title[4:]}: if it hangs, press Ctrl-C or Ctrl-\\, and repair or uninstall {owner!r}"
    try:
        with kept_streams() as faults:
            load = partial(load_entry_point, entry_point)
            loaded = load() if owner == DISTRIBUTION else call_named(load, label)
    except BrokenPluginError as error:
        raise BrokenPluginError(
            f"{subject}: {error.message}.", hint=f"{error.hint or 'Repair it'}."
        ) from error
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        raise BrokenPluginError(
            f"{subject}: {type(error).__name__}: {error}.", hint="Repair or uninstall it."
        ) from error
    for fault in faults:
        _print_error(f"Warning: {title} of the package {owner!r} {fault}, which was restored.")
    return loaded


def _owner(entry_point: EntryPoint) -> str:
    from harness.registry.plugin import package_of

    return package_of(entry_point.dist)[0]


def _invoke(app: Any, name: str, arguments: list[str]) -> int:
    import typer
    import typer.main

    # Since 0.29 typer brings its own copy of click: its public BadParameter leads to the right UsageError.
    usage_error: Any = typer.BadParameter.__mro__[1]
    command = typer.main.get_command(app)
    check_outputs_first(command)
    _skip_absent_values(command)
    try:
        status = command.main(args=arguments, prog_name=f"harness {name}", standalone_mode=False)
    except typer.Exit as error:
        return error.exit_code
    except typer.Abort as error:
        raise KeyboardInterrupt from error
    except usage_error as error:
        path = error.ctx.command_path if error.ctx is not None else f"harness {name}"
        message = error.format_message()
        if not message:  # a group without a command: its help was printed
            return 2
        end = "" if message.endswith((".", "?")) else "."
        _print_error(f"Error: {message}{end} Run '{path} --help' to see its options.")
        return 2
    if status == INTERRUPTED:  # what typer makes of Ctrl-C
        raise KeyboardInterrupt
    return status if isinstance(status, int) else 0


def _skip_absent_values(command: Any) -> None:
    """Let a command convert only the values that are given: for any conversion, typer imports pydantic."""
    for child in getattr(command, "commands", {}).values():
        _skip_absent_values(child)
    list_options = command.get_params

    def get_params(context: Any) -> list[Any]:
        options: list[Any] = list_options(context)  # with --help, which is made when it is asked for
        for option in options:
            vars(option).setdefault("process_value", partial(_processed, option, option.process_value))
        return options

    command.get_params = get_params


def _processed(option: Any, process: Callable[[Any, Any], Any], context: Any, value: Any) -> Any:
    if value is not None or option.required:
        return process(context, value)
    absent = () if option.multiple or option.nargs == -1 else None
    return absent if option.callback is None else option.callback(context, option, absent)


def _help() -> str:
    return HELP.format(
        commands="\n".join(f"  {name:<13} {summary}" for name, summary in command_summaries().items())
    )


def command_summaries() -> dict[str, str]:
    """Return command -> its help, without importing any: of a plugin's, the first line of its module."""
    from harness.registry.plugin import opening_line, package_of

    rows = {name: summary for name, (_, summary) in COMMANDS.items()}
    for name, entry_point in sorted(_plugin_commands().items()):
        line = opening_line(entry_point)
        rows.setdefault(name, line or f"Comes with the plugin package {package_of(entry_point.dist)[0]}.")
    return rows


def _entry_points(name: str, group: str = GROUP) -> list[EntryPoint]:
    """Return the entry points of a command; ours alone where there is one, so that no package replaces it.

    A name that ends with a dot is the start of many.
    """
    from harness.registry.plugin import DISTRIBUTION, find_entry_points

    entry_points = [
        item
        for item in find_entry_points(group)[0]
        if item.name == name or (name.endswith(".") and item.name.startswith(name))
    ]
    ours = [item for item in entry_points if item.name == name and _owner(item) == DISTRIBUTION]
    return sorted(ours or entry_points, key=lambda item: item.value)


def _plugin_commands() -> dict[str, EntryPoint]:
    from harness.registry.plugin import find_entry_points

    return {entry_point.name: entry_point for entry_point in find_entry_points(GROUP)[0]}


def _install_completion(shell: str | None = None) -> tuple[str, Path]:
    """Write the script of a shell and return its name and path; None finds the shell that runs the command.

    Raises `UsageError` for a shell that typer does not know.
    """
    if shell is not None and shell not in _SHELLS:
        raise UsageError(f"No completion for the shell {shell!r}; expected {', '.join(_SHELLS)}.")
    import typer

    try:
        shell_name, path = _typer_completion().install(
            shell, prog_name="harness", complete_var=_COMPLETE_VARIABLE
        )
    except typer.Exit as error:
        raise UsageError(
            f"The shell is not known; expected {', '.join(_SHELLS)}.",
            hint="Name it: harness --install-completion bash",
        ) from error
    return shell_name, path


def _complete(commands: Mapping[str, str], load: Callable[[str], Any]) -> int:
    """Print what may follow the words in the shell's variables; only the command that they name is loaded."""
    import typer.core
    import typer.main

    class Commands(typer.core.TyperGroup):
        def list_commands(self, ctx: Any) -> list[str]:
            return list(commands)

        def get_command(self, ctx: Any, cmd_name: str) -> Any:
            if cmd_name not in commands:
                return None
            words = (
                os.environ.get("COMP_WORDS", "").split() or os.environ.get("_TYPER_COMPLETE_ARGS", "").split()
            )
            if cmd_name not in words:  # its help is all that a list of commands needs
                return typer.core.TyperCommand(cmd_name, help=commands[cmd_name])
            return typer.main.get_command(load(cmd_name))

    _typer_completion().completion_init()
    group = Commands(name="harness")
    status = group.main(args=[], prog_name="harness", complete_var=_COMPLETE_VARIABLE, standalone_mode=False)
    return status if isinstance(status, int) else 0


def _typer_completion() -> Any:
    """Return typer's module, which does not declare what its commands use of it."""
    return importlib.import_module("typer.completion")


def _print_error(message: str, *, debug: bool = False) -> None:
    if debug:
        sys.stderr.write(printable(traceback.format_exc()))
    rank = os.environ.get("RANK", "0")
    sys.stderr.write(printable(f"{message}\n" if rank == "0" else f"Process {rank}: {message}\n"))


def run() -> None:
    """Run the command line and exit."""
    gc.set_threshold(500_000)  # most objects of a command stay until its end
    status = run_command()
    if "HARNESS_STATUS_FOLDER" in os.environ:  # this process was started by another one of the harness
        from harness.running.processes import leave_status

        status = leave_status(status)
    gc.freeze()  # or Python visits every object once more before it exits
    sys.exit(status)
