"""The reference page of all commands, from the command line itself."""

from __future__ import annotations

import importlib
import re
import tomllib
import types
import typing
from collections.abc import Iterator, Mapping
from enum import Enum
from functools import cache
from pathlib import Path
from typing import Any

from docs_site.markdown import GENERATED_NOTE, code, prose, table
from harness.cli.main import COMMANDS, command_summaries, extended

ROOT = Path(__file__).resolve().parents[1]
INTRODUCTION = """\
# Commands

{note}

`harness COMMAND --help` prints the same in a terminal. Two options belong to no command: `--debug` prints the traceback
of an error, `--version` the version. The exit status is 0 for success, 1 for a failure, 2 for a wrong command line or
spec, and 130 after Ctrl-C. A plugin adds a command with an entry point of the group `harness.commands`: a typer app.

"""
METAVARS = {"str": "TEXT", "Path": "PATH", "int": "INTEGER", "float": "NUMBER", "bool": ""}


@cache
def shipped_entry_points(group: str) -> Mapping[str, str]:
    """Return the entry points of the project itself in a group: name -> target, by name."""
    declared = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["entry-points"]
    return dict(sorted(declared[group].items()))


@cache
def commands() -> Mapping[str, Any]:
    """Return the command of every first word of a command line, core commands first."""
    import typer.main

    targets = {name: target for name, (target, _) in COMMANDS.items()}
    targets |= shipped_entry_points("harness.commands")
    apps = {name: _loaded(target) for name, target in targets.items()}
    for option, target in shipped_entry_points("harness.options").items():
        name = option.partition(".")[0]
        apps[name] = extended(apps[name], _loaded(target))
    return {name: typer.main.get_command(app) for name, app in apps.items()}


def _loaded(target: str) -> Any:
    module, _, attribute = target.partition(":")
    return getattr(importlib.import_module(module), attribute)


def leaf_commands() -> Iterator[tuple[str, Any]]:
    """Yield every command that does something by itself, with its words: ``tasks list``."""
    for name, command in commands().items():
        yield from _leaves(name, command)


def _leaves(name: str, command: Any) -> Iterator[tuple[str, Any]]:
    inner = getattr(command, "commands", None)
    if not inner or command.invoke_without_command:
        yield name, command
    for key, subcommand in (inner or {}).items():
        yield from _leaves(f"{name} {key}", subcommand)


def command_page() -> str:
    """Return the page: one section per command, with a table of its options by panel."""
    summaries = command_summaries()
    for name, command in commands().items():
        summaries.setdefault(name, _help_text(command).partition("\n\n")[0])
    rows = [(f"[`{name}`](#harness-{name})", summaries[name]) for name in commands()]
    sections = [_section(name, command, summaries[name]) for name, command in commands().items()]
    return (
        INTRODUCTION.format(note=GENERATED_NOTE)
        + "\n\n".join([table(["command", "purpose"], rows), *sections])
        + "\n"
    )


def _section(name: str, command: Any, summary: str) -> str:
    brought = shipped_entry_points("harness.commands").get(name)
    parts = [f"## harness {name}", _help_text(command) or summary]
    if brought:
        parts.append(f"*Part of the plugin `{brought.partition('.')[0]}`.*")
    leaves = list(_leaves(name, command))
    if len(leaves) == 1 and leaves[0][0] == name:
        return "\n\n".join([*parts, *_parameters(name, command)])
    for words, leaf in leaves:
        parts += [f"### harness {words}", _help_text(leaf), *_parameters(words, leaf)]
    return "\n\n".join(part for part in parts if part)


def _help_text(command: Any) -> str:
    """Return the help of a command, with its example as code."""
    return re.sub(r"^Example: (harness .+)$", r"Example: `\1`", prose(command.help), flags=re.MULTILINE)


def _parameters(words: str, command: Any) -> Iterator[str]:
    """Yield the usage line and the tables of arguments and options."""
    shown = [parameter for parameter in command.params if not parameter.hidden and parameter.name != "help"]
    arguments = [one for one in shown if not is_option(one)]
    options = [one for one in shown if is_option(one)]
    usage = " ".join([_usage(one) for one in arguments] + (["[OPTIONS]"] if options else []))
    yield f"```text\nharness {words} {usage}".rstrip() + "\n```"
    if any(one.help for one in arguments):
        yield table(["argument", "description"], [(code(_usage(one)), _help(one)) for one in arguments])
    panels: dict[str, list[Any]] = {}
    for one in options:
        panels.setdefault(one.rich_help_panel or "", []).append(one)
    for panel, inside in panels.items():
        if panel:
            yield f"**{panel}**"
        rows = [(_names(one), _help(one), _default(one)) for one in inside]
        heads = ("option", "description", "default")
        yield (
            table(heads, rows) if any(row[2] for row in rows) else table(heads[:2], [row[:2] for row in rows])
        )


def is_option(parameter: Any) -> bool:
    """Return whether a parameter is an option, not an argument."""
    return bool(parameter.opts[0].startswith("-"))


def _usage(argument: Any) -> str:
    name = (argument.metavar or argument.name or "").upper() + ("..." if argument.nargs == -1 else "")
    return name if argument.required else f"[{name}]"


def _names(option: Any) -> str:
    names = ", ".join([*option.opts, *option.secondary_opts])
    return code(f"{names} {_metavar(option)}".strip())


def _metavar(option: Any) -> str:
    if option.metavar:
        return str(option.metavar)
    if option.is_flag or option.count:
        return ""
    annotation = option.type_descriptor.annotation
    if typing.get_origin(annotation) in {list, types.UnionType, typing.Union}:
        annotation = next(kind for kind in typing.get_args(annotation) if kind is not type(None))
    if typing.get_origin(annotation) is typing.Literal:
        return "[" + "|".join(map(str, typing.get_args(annotation))) + "]"
    if isinstance(annotation, type) and issubclass(annotation, Enum):
        return "[" + "|".join(str(one.value) for one in annotation) + "]"
    return METAVARS.get(getattr(annotation, "__name__", ""), "TEXT")


def _help(parameter: Any) -> str:
    end = " Can be given several times." if is_option(parameter) and parameter.multiple else ""
    return prose(parameter.help) + end


def _default(option: Any) -> str:
    if option.required:
        return "**required**"
    if option.is_flag and not option.secondary_opts:
        return ""
    if option.is_flag:
        return code(option.opts[0] if option.default else option.secondary_opts[0])
    empty = option.default is None or option.default in ("", [], ())
    return "" if empty or callable(option.default) else code(option.default)
