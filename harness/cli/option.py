"""The options of commands, and the configuration that they give.

Options are those of `RunConfig`, and the few that several commands share besides. They go before the file of
``--config``, or what a resumed run says.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from harness.errors import Problem, SpecError, UsageError, near_names
from harness.planning.run_config import MACHINES, OUTPUT, RUN, RunConfig, Setting, settings

_ADAPTER_OPTIONS = {"batch_tokens": Setting("", "", type=int), "convert_weights": Setting("", "", type=bool)}
"""Options of adapters that the command has as options of its own."""
_CODE_OPTION = "trust_remote_code"
"""Option of adapters that lets a model's folder run its own code."""


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


def make_config(given: Mapping[str, Any], file: Path | None, *, needs_task: bool = True) -> RunConfig:
    """Return the configuration of a command: what was given, over what the configuration file says.

    Raises `UsageError` without a model, and without tasks where they are needed.
    """
    file_values, cli_values = {} if file is None else _read_file(file), read_options(given)
    values = file_values | cli_values
    if "options" in values:
        values["options"] = {**file_values.get("options", {}), **cli_values.get("options", {})}
    if needs_task and not values.get("tasks"):
        raise UsageError("No task was named.", hint="Give --tasks; run 'harness tasks list' to see all.")
    if not values.get("model"):
        raise UsageError(
            "No model was named.", hint="Give --model; run 'harness models' to see the adapters."
        )
    further = {name: str(values.pop(name)) for name in _ADAPTER_OPTIONS if name in values}
    return RunConfig(**{"tasks": (), **values, "options": {**values.get("options", {}), **further}})


def resumed_config(given: Mapping[str, Any], file: Path | None, folder: Path) -> RunConfig:
    """Return the configuration of a run that is resumed; raises `UsageError` for options that it has already."""
    from dataclasses import replace

    from harness.running.manifest import read_configuration_of
    from harness.storage.run_folder import Run

    values = read_options(given)
    settings_by_name = settings()
    further = [
        settings_by_name[name].long
        for name in values
        if name not in _ADAPTER_OPTIONS and not settings_by_name[name].resumable
    ]
    if further or file is not None:
        raise UsageError(
            f"--resume keeps the options of the run: {[*further, '--config'][0]} cannot be given with it."
        )
    manifest = Run.read_manifest(folder)
    saved = read_configuration_of(manifest, folder)
    options = dict(values.get("options", {}))
    options |= {name: str(values[name]) for name in _ADAPTER_OPTIONS if name in values}
    _require_consent(saved, options, allow_code=values.get("allow_code", False))
    return replace(
        saved,
        model=values.get("model", saved.model),
        options={**saved.options, **options},
        reuse=(*saved.reuse, *values.get("reuse", ())),
        num_processes=values.get("num_processes"),
        fits_only=values.get("fits_only", False),
        log=tuple(dict.fromkeys((*saved.log, *manifest.trackers, *values.get("log", ())))),
    )


def read_options(given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values of the options that were given."""
    values: dict[str, Any] = {}
    for name, value in given.items():
        if value is None or value is False or value in ([], ""):
            continue
        if name in _ADAPTER_OPTIONS:
            values[name] = value
            continue
        setting = settings()[name]
        try:
            values[name] = setting.read(value)
        except ValueError as error:
            raise UsageError(f"{setting.long} must be {setting.shape.words}, got {value!r}.") from error
    return values


def _read_file(path: Path) -> dict[str, Any]:
    """Return the values of a configuration file; raises `SpecError` with all its faults and their lines."""
    from harness.specs.loading import read_yaml

    try:
        document = read_yaml(path.read_text(encoding="utf-8"), str(path))
    except OSError as error:
        raise UsageError(f"The configuration file {str(path)!r} cannot be read: {error.strerror}.") from error
    except UnicodeDecodeError as error:
        raise UsageError(f"The configuration file {str(path)!r} is not UTF-8: {error}.") from error
    allowed = {name: setting for name, setting in settings().items() if setting.of_file}
    allowed |= _ADAPTER_OPTIONS
    names = {setting.option: name for name, setting in allowed.items() if setting.option}
    values: dict[str, Any] = {}
    problems: list[Problem] = []
    for written, value in document.data.items():
        key = written.replace("-", "_")
        key = names.get(key, key)
        try:
            if key not in allowed:
                near = near_names(key, allowed)
                raise ValueError("unknown key" + (f"; did you mean {near[0]!r}?" if near else ""))
            if key in values:
                raise ValueError("is given twice under two spellings")
            if value is not None:
                values[key] = allowed[key].read(value)
        except ValueError as error:
            problems.append(Problem(message=str(error), key=written, line=document.line_of([written])))
    if problems:
        raise SpecError(path, problems)
    return values


def _require_consent(own: RunConfig, options: Mapping[str, str], *, allow_code: bool) -> None:
    """Raise `UsageError` if a run folder allows foreign code and the command line does not.

    A run folder may come from somebody else: only the user of this machine can allow code to run on it.
    """
    if own.allow_code and not allow_code:
        raise UsageError(
            "The run was started with --allow-code, which lets metrics run programs of others.",
            hint="Give --allow-code again to allow it.",
        )
    if _CODE_OPTION in own.options and _CODE_OPTION not in options:
        raise UsageError(
            f"The run was started with -o {_CODE_OPTION}={own.options[_CODE_OPTION]}, which lets the model run code.",
            hint=f"Give -o {_CODE_OPTION}=true again to allow it.",
        )
