"""The options of commands: those of `RunConfig`, and the few that several commands share besides."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer

from harness.planning.run_config import MACHINES, OUTPUT, RUN, settings


def option(name: str) -> Any:
    """Return the option of a setting, for the annotation of a command's parameter."""
    setting = settings()[name]
    return typer.Option(
        setting.long,
        *setting.aliases,
        help=setting.help,
        rich_help_panel=setting.panel,
        metavar=setting.metavar,
    )


def takes_settings(*names: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Give a command the options of some settings, in front of its own; it gets them as keyword arguments."""

    def decorate(command: Callable[..., Any]) -> Callable[..., Any]:
        parameters = [
            inspect.Parameter(
                name,
                inspect.Parameter.KEYWORD_ONLY,
                default=False if setting.shape.option is bool else None,
                annotation=Annotated[setting.shape.option, option(name)],
            )
            for name, setting in settings().items()
            if name in names
        ]
        return _with_parameters(command, [*parameters, *_parameters(command)])

    return decorate


def extends(command: Callable[..., Any]) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Give a function the help and the parameters of a command, in front of its own; it gets them as ``**given``."""

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        function.__doc__ = command.__doc__
        return _with_parameters(function, [*_parameters(command), *_parameters(function)])

    return decorate


def _parameters(command: Callable[..., Any]) -> list[inspect.Parameter]:
    return [
        item.replace(kind=inspect.Parameter.KEYWORD_ONLY)
        for item in inspect.signature(command, eval_str=True).parameters.values()
        if item.kind is not inspect.Parameter.VAR_KEYWORD
    ]


def _with_parameters(command: Callable[..., Any], parameters: list[inspect.Parameter]) -> Callable[..., Any]:
    command.__annotations__ = {item.name: item.annotation for item in parameters}
    command.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    return command


Languages = Annotated[list[str] | None, option("languages")]
TasksFrom = Annotated[list[Path] | None, option("tasks_from")]
Data = Annotated[list[str] | None, option("data")]
Limit = Annotated[int | None, option("limit")]
Romanised = Annotated[str | None, option("romanised")]
Gold = Annotated[Path | None, option("gold")]
AllowCode = Annotated[bool, option("allow_code")]
BatchTokens = Annotated[
    int | None,
    typer.Option(
        "--batch-tokens",
        min=1,
        help="Tokens in a batch; halved when memory runs out.",
        rich_help_panel=MACHINES,
    ),
]
ConvertWeights = Annotated[
    bool,
    typer.Option(
        "--convert-weights",
        help="Convert pickled weights once to safetensors; they are never loaded as they are.",
        rich_help_panel=MACHINES,
    ),
]
Resume = Annotated[
    Path | None,
    typer.Option(
        "--resume", metavar="RUN", help="Resume this run with its own options.", rich_help_panel=OUTPUT
    ),
]
ConfigFile = Annotated[
    Path | None, typer.Option("--config", help="YAML file with any of these options.", rich_help_panel=RUN)
]
JsonFile = Annotated[
    Path | None,
    typer.Option("--json", help="Also write the table's rows to this file.", rich_help_panel=OUTPUT),
]
Details = Annotated[
    bool,
    typer.Option("--details", help="Also show the tables by language.", rich_help_panel=OUTPUT),
]
