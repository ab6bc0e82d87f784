"""The entry point ``harness``: finds the command, runs it, turns errors into one line and an exit status."""

from __future__ import annotations

import importlib
import importlib.metadata
import sys
import traceback
from collections.abc import Sequence
from typing import Any

import click

from harness.errors import HarnessError, near_names

__all__ = ["cli", "main", "run"]

COMMANDS = {
    "eval": ("harness.cli.evaluate", "Evaluate a model: fine-tune or prompt it, score every language, summarise."),
    "plan": ("harness.cli.plan", "Show what eval would do, without doing it."),
    "score": ("harness.cli.score", "Score a run again from its records, also with further metrics; needs no model."),
    "report": ("harness.cli.report", "Print or write the report of a run."),
    "tasks": ("harness.cli.tasks", "List, show and validate task specs; print their JSON schema."),
    "models": ("harness.cli.models", "List the model adapters, or show what a model can do."),
    "plugins": ("harness.cli.plugins", "List the installed plugins, and what is wrong with broken ones."),
    "languages": ("harness.cli.languages", "List the languages: codes, scripts, families, tasks."),
}
GROUP = "harness.commands"


class _LazyGroup(click.Group):
    """Knows the names of all commands and imports the code of one only when it is called."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return [*COMMANDS, *sorted(set(_plugin_commands()) - set(COMMANDS))]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name in COMMANDS:
            return _command(importlib.import_module(COMMANDS[cmd_name][0]).app, cmd_name)
        entry_point = _plugin_commands().get(cmd_name)
        if entry_point is not None:
            return _command(entry_point.load(), cmd_name)
        return None

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args and self.get_command_name(args[0]) is None:
            near = near_names(args[0], self.list_commands(ctx))
            meant = f" Did you mean {near[0]!r}?" if near else ""
            raise click.UsageError(f"No command named {args[0]!r}.{meant} Run 'harness --help' to see all.", ctx)
        return super().resolve_command(ctx, args)

    def get_command_name(self, name: str) -> str | None:
        return name if name in COMMANDS or name in _plugin_commands() or name.startswith("-") else None

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        rows = [(name, summary) for name, (_, summary) in COMMANDS.items()]
        for name, entry_point in sorted(_plugin_commands().items()):
            if name not in COMMANDS:
                distribution = entry_point.dist.name if entry_point.dist is not None else "?"
                rows.append((name, SHIPPED.get(name) or f"Comes with the plugin package {distribution}."))
        with formatter.section("Commands"):
            formatter.write_dl(rows)


SHIPPED = {"submission": "Score, export and import the public XTREME-R submission files."}
"""Help of the commands that our own plugins bring: told without importing them."""


def _plugin_commands() -> dict[str, importlib.metadata.EntryPoint]:
    return {entry_point.name: entry_point for entry_point in importlib.metadata.entry_points(group=GROUP)}


def _command(app: Any, name: str) -> click.Command:
    if isinstance(app, click.Command):
        return app
    import typer.main

    command = typer.main.get_command(app)
    command.name = name
    return command


def _print_version(ctx: click.Context, _: click.Parameter, value: bool) -> None:
    if value and not ctx.resilient_parsing:
        click.echo(f"harness {importlib.metadata.version('multilingual-harness')}")
        ctx.exit()


@click.command(
    cls=_LazyGroup,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog="First run, offline: harness eval --tasks xnli --model baseline:char-ngram --data sample",
    no_args_is_help=True,
)
@click.option("--debug", is_flag=True, help="Show the traceback of an error.")
@click.option(
    "--version", is_flag=True, is_eager=True, expose_value=False, callback=_print_version, help="Show the version."
)
@click.pass_context
def cli(ctx: click.Context, debug: bool) -> None:
    """Evaluate multilingual models on cross-lingual benchmarks."""
    ctx.obj = {"debug": debug}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command line and return its exit status: 0 fine, 1 something failed, 2 wrong usage, 130 Ctrl-C."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    debug = "--debug" in given
    given = ["--debug", *(item for item in given if item != "--debug")] if debug else given
    try:
        status = cli.main(args=given, prog_name="harness", standalone_mode=False)
    except HarnessError as error:
        _tell(f"Error: {error}", debug)
        return error.exit_code
    except click.UsageError as error:
        command = error.ctx.command_path if error.ctx is not None else "harness"
        _tell(f"Error: {error.format_message()}", debug)
        if "--help" not in error.format_message():
            click.echo(f"Run '{command} --help' to see its options.", err=True)
        return 2
    except click.ClickException as error:
        _tell(f"Error: {error.format_message()}", debug)
        return error.exit_code
    except (KeyboardInterrupt, click.Abort):
        _tell("Stopped. What was finished is kept in the run folder.", debug)
        return 130
    except BrokenPipeError:
        return 0
    return status if isinstance(status, int) else 0


def _tell(message: str, debug: bool) -> None:
    if debug:
        traceback.print_exc()
    click.echo(message, err=True)


def run() -> None:
    """Run the command line and exit."""
    sys.exit(main())
