"""The options that several commands share, and how their texts become a configuration."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from harness.errors import UsageError

__all__ = ["key_values", "make_config", "resumed_config"]

RUN, DATA, TRAINING, OUTPUT = "What to run", "Data", "Training", "Output"
MACHINES = "Processes and machines"
PROMPTS = "Prompts"
SINGULAR = {"protocols": "protocol"}
"""Names of values whose option is another one."""
OF_EVAL = frozenset(
    {
        *("output", "with_baselines", "with_published", "shard"),
        *("reuse", "locked", "batch_tokens", "num_processes"),
    }
)
"""What a configuration file may say although plan needs it not: it takes the configuration of eval."""

USUAL: dict[str, Any] = {
    "shots": 0,
    "shots_from": "train",
    "shots_language": "source",
    "literals": "english",
    "romanised": "keep",
    "train_pivot": "es",
    **dict.fromkeys(("chat", "constrained", "allow_code", "with_baselines", "with_published"), False),
}
"""What is taken where neither the command nor its file says anything."""

Tasks = Annotated[
    list[str],
    typer.Option(
        "--tasks", "-t", help="Tasks, suites or globs; 'xnli:sw+hi' picks languages.", rich_help_panel=RUN
    ),
]
ModelOption = Annotated[
    str,
    typer.Option(
        "--model", "-m", help="ADAPTER:NAME_OR_PATH, e.g. hf:xlm-roberta-base.", rich_help_panel=RUN
    ),
]
Options = Annotated[
    list[str] | None,
    typer.Option("--option", "-o", metavar="KEY=VALUE", help="Option of the adapter.", rich_help_panel=RUN),
]
Languages = Annotated[
    list[str] | None,
    typer.Option("--languages", "-l", help="Restrict all tasks to these codes.", rich_help_panel=RUN),
]
TasksFrom = Annotated[
    list[Path] | None,
    typer.Option("--tasks-from", help="File or folder with further specs.", rich_help_panel=RUN),
]
Protocols = Annotated[
    list[str] | None,
    typer.Option(
        "--protocol", help="zero_shot_transfer, in_language, frozen, prompted ...", rich_help_panel=RUN
    ),
]
MethodOption = Annotated[
    str | None,
    typer.Option("--method", help="head, embed, rank, generate, probe, fill ...", rich_help_panel=RUN),
]
Data = Annotated[
    list[str] | None,
    typer.Option("--data", "-d", help="hub (default), sample, or folders.", rich_help_panel=DATA),
]
Limit = Annotated[
    int | None,
    typer.Option("--limit", help="At most N items per cell, drawn by a seed.", rich_help_panel=DATA),
]
TrainLimit = Annotated[
    int | None,
    typer.Option("--train-limit", help="At most N training items per stage.", rich_help_panel=DATA),
]
Seeds = Annotated[
    str | None, typer.Option("--seeds", help="Training seeds, e.g. 1,2,3.", rich_help_panel=TRAINING)
]
Recipe = Annotated[
    str | None,
    typer.Option(
        "--recipe", help="xtreme_r, xtreme_r_paper, quick, mt5, or your own.", rich_help_panel=TRAINING
    ),
]
TrainLanguages = Annotated[
    list[str] | None,
    typer.Option("--train-languages", help="Train on these instead of English.", rich_help_panel=TRAINING),
]
SelectOn = Annotated[
    str | None,
    typer.Option(
        "--select-on", help="Language whose dev set chooses the checkpoint.", rich_help_panel=TRAINING
    ),
]
WithBaselines = Annotated[
    bool,
    typer.Option("--with-baselines", help="Run the baselines too and show them.", rich_help_panel=OUTPUT),
]
PromptName = Annotated[
    str | None,
    typer.Option("--prompt", help="Preset: default, letters, lm_eval, mt5 ...", rich_help_panel=PROMPTS),
]
Shots = Annotated[
    int | None,
    typer.Option("--shots", help="Examples with their answers before each item.", rich_help_panel=PROMPTS),
]
ShotsFrom = Annotated[
    str | None, typer.Option("--shots-from", help="train (default) or validation.", rich_help_panel=PROMPTS)
]
ShotsLanguage = Annotated[
    str | None,
    typer.Option("--shots-language", help="source (default: English) or target.", rich_help_panel=PROMPTS),
]
InstructionLanguage = Annotated[
    str | None,
    typer.Option(
        "--instruction-language",
        help="Language of the prompt's words; default the item's.",
        rich_help_panel=PROMPTS,
    ),
]
LiteralsPolicy = Annotated[
    str | None,
    typer.Option(
        "--literals",
        help="Where a prompt has no words in a language: english (default) or fail.",
        rich_help_panel=PROMPTS,
    ),
]
Chat = Annotated[
    bool,
    typer.Option("--chat", help="Ask in turns, with the model's chat template.", rich_help_panel=PROMPTS),
]
Constrained = Annotated[
    bool,
    typer.Option("--constrained", help="Let the server allow only valid answers.", rich_help_panel=PROMPTS),
]
AllowCode = Annotated[
    bool,
    typer.Option(
        "--allow-code", help="Let metrics run that are programs (evaluate:...).", rich_help_panel=RUN
    ),
]
WithPublished = Annotated[
    bool,
    typer.Option("--with-published", help="Show published scores of the suites too.", rich_help_panel=OUTPUT),
]
Variants = Annotated[
    list[str] | None,
    typer.Option(
        "--variants",
        help="Versions of the test items; 'original' and those of the tasks.",
        rich_help_panel=DATA,
    ),
]
Gold = Annotated[
    Path | None,
    typer.Option(
        "--gold", metavar="FILE", help="Score with the corrected labels of FILE.", rich_help_panel=DATA
    ),
]
TranslatorNames = Annotated[
    list[str] | None,
    typer.Option(
        "--translator",
        metavar="NAME",
        help="Makes the variants tt, te and bt: NAME[:REF] or ALIAS=NAME:REF; several with commas.",
        rich_help_panel=DATA,
    ),
]
Romanised = Annotated[
    str | None,
    typer.Option(
        "--romanised",
        metavar="keep|skip|NAME",
        help="Romanised texts of tt: keep, skip, or write in their script by this translator first.",
        rich_help_panel=DATA,
    ),
]
TrainVariant = Annotated[
    str | None,
    typer.Option(
        "--train-variant",
        metavar="NAME",
        help="Train on b-train, t-train, bt-orig or mt-LANGUAGE.",
        rich_help_panel=TRAINING,
    ),
]
TrainPivot = Annotated[
    str | None,
    typer.Option(
        "--train-pivot", metavar="CODE", help="Through this language; default es.", rich_help_panel=TRAINING
    ),
]
Output = Annotated[
    Path | None,
    typer.Option("--output", "--out", help="The run folder; default runs/<id>.", rich_help_panel=OUTPUT),
]
NumProcesses = Annotated[
    int | None,
    typer.Option("--num-processes", min=1, help="Run in N processes.", rich_help_panel=MACHINES),
]
ShardName = Annotated[
    str | None,
    typer.Option(
        "--shard",
        metavar="I/N",
        help="Only part I of N of the cells; 'harness merge' joins the runs.",
        rich_help_panel=MACHINES,
    ),
]
BatchTokens = Annotated[
    int | None,
    typer.Option(
        "--batch-tokens",
        min=1,
        help="Tokens in a batch; halved when memory runs out.",
        rich_help_panel=MACHINES,
    ),
]
Reuse = Annotated[
    list[Path] | None,
    typer.Option("--reuse", metavar="RUN", help="Reuse answers of this run.", rich_help_panel=MACHINES),
]
Resume = Annotated[
    Path | None,
    typer.Option(
        "--resume", metavar="RUN", help="Resume this run with its own options.", rich_help_panel=OUTPUT
    ),
]
Locked = Annotated[
    Path | None,
    typer.Option(
        "--locked",
        metavar="FILE",
        help="Reject data, specs and models that FILE does not name.",
        rich_help_panel=DATA,
    ),
]
ConfigFile = Annotated[
    Path | None, typer.Option("--config", help="YAML file with any of these options.", rich_help_panel=RUN)
]
JsonFile = Annotated[
    Path | None,
    typer.Option("--json", help="Also write the table's rows to this file.", rich_help_panel=OUTPUT),
]


def key_values(items: list[str] | None) -> dict[str, str]:
    """Return the pairs of repeated ``key=value`` options; raises `UsageError` for anything else."""
    pairs: dict[str, str] = {}
    for item in items or []:
        key, equals, value = item.partition("=")
        if not equals or not key:
            raise UsageError(f"The option -o {item!r} is not of the form KEY=VALUE.")
        pairs[key.strip()] = value
    return pairs


def make_config(given: dict[str, Any], config_file: Path | None) -> Any:
    """Return the `RunConfig` of a command: what was given, over what the configuration file says."""
    from harness.cli.configuration import read_configuration
    from harness.planning.plan import RunConfig
    from harness.running.session import data_options
    from harness.specs.selection import split_names

    known = {*given, *OF_EVAL}
    # That the programs of others may run is for the command line to say, not for a file that came from them.
    known.discard("allow_code")
    values = read_configuration(config_file, known) if config_file is not None else {}
    values |= {
        name: value
        for name, value in given.items()
        if value is not None and value is not False and value not in ([], "")
    }
    if not values.get("tasks"):
        raise UsageError("No task was named.", hint="Give --tasks; run 'harness tasks list' to see all.")
    if not values.get("model"):
        raise UsageError(
            "No model was named.", hint="Give --model; run 'harness models' to see the adapters."
        )
    languages = values.get("languages")
    return RunConfig(
        tasks=tuple(split_names(values["tasks"])),
        model=values["model"],
        options=_options(values),
        languages=tuple(split_names(languages)) if languages else None,
        tasks_from=tuple(Path(path) for path in values.get("tasks_from") or ()),
        data=data_options(values.get("data") or []),
        protocols=tuple(_protocols(split_names(values.get("protocols") or []))),
        method=values.get("method"),
        seeds=_seeds(values.get("seeds")),
        limit=values.get("limit"),
        train_limit=values.get("train_limit"),
        recipe=values.get("recipe"),
        train_languages=tuple(split_names(values.get("train_languages") or [])),
        select_on=values.get("select_on"),
        prompt=values.get("prompt"),
        instruction_language=values.get("instruction_language"),
        variants=tuple(split_names(values.get("variants") or [])),
        translators=tuple(values.get("translators") or ()),
        train_variant=values.get("train_variant"),
        num_processes=values.get("num_processes"),
        shard=values.get("shard"),
        reuse=tuple(Path(path) for path in values.get("reuse") or ()),
        locked=None if values.get("locked") is None else Path(values["locked"]),
        gold=None if values.get("gold") is None else Path(values["gold"]),
        output=None if values.get("output") is None else Path(values["output"]),
        **{name: values.get(name) or default for name, default in USUAL.items()},
    )


def _options(values: dict[str, Any]) -> dict[str, str]:
    """Return the adapter's options; ``--batch-tokens`` is one of them, which every adapter calls the same."""
    options = key_values(values.get("options"))
    tokens = values.get("batch_tokens")
    return options if tokens is None else {**options, "batch_tokens": str(tokens)}


def _seeds(text: str | None) -> tuple[int, ...]:
    if text is None:
        return ()
    try:
        seeds = tuple(dict.fromkeys(int(part) for part in text.split(",") if part.strip()))
    except ValueError:
        seeds = ()
    if not seeds or min(seeds) < 0:
        raise UsageError(f"--seeds {text} is not a list of whole numbers from 0 on, such as 1,2,3.")
    return seeds


def _protocols(names: list[str]) -> list[str]:
    from typing import get_args

    from harness.errors import UnknownNameError
    from harness.specs.schema import ProtocolName

    for name in names:
        if name not in get_args(ProtocolName):
            raise UnknownNameError("protocol", name, get_args(ProtocolName))
    return names


WITH_RESUME = frozenset(
    {"model", "options", "num_processes", "batch_tokens", "reuse", "json_file", "allow_code"}
)
"""Options that ``--resume`` accepts: they change no answer, or a changed one is noticed."""


def resumed_config(given: dict[str, Any], config_file: Path | None, folder: Path) -> Any:
    """Return the configuration of a run that is resumed; raises `UsageError` for options that it has already."""
    from dataclasses import replace

    from harness.running.resume import read_configuration_of
    from harness.storage.run_folder import Run

    further = [
        name
        for name, value in given.items()
        if name not in WITH_RESUME and value is not None and value is not False and value not in ([], "")
    ]
    if further or config_file is not None:
        name = SINGULAR.get(further[0], further[0]) if further else "config"
        raise UsageError(
            f"--resume keeps the options of the run: --{name.replace('_', '-')} cannot be given with it."
        )
    own = read_configuration_of(Run.read_manifest(folder), folder)
    options = _options(given)
    _require_consent(own, options, allow_code=bool(given["allow_code"]))
    return replace(
        own,
        model=given["model"] or own.model,
        options={**own.options, **options},
        reuse=(*own.reuse, *(given["reuse"] or ())),
        num_processes=given["num_processes"],
    )


CODE_OPTION = "trust_remote_code"
"""Option of adapters that lets a model's folder run its own code."""


def _require_consent(own: Any, options: Mapping[str, str], *, allow_code: bool) -> None:
    """Raise `UsageError` if a run folder allows foreign code and the command line does not.

    A run folder may come from somebody else: only the user of this machine can allow code to run on it.
    """
    if own.allow_code and not allow_code:
        raise UsageError(
            "The run was started with --allow-code, which lets metrics run programs of others.",
            hint="Give --allow-code again to allow it.",
        )
    if CODE_OPTION in own.options and CODE_OPTION not in options:
        raise UsageError(
            f"The run was started with -o {CODE_OPTION}={own.options[CODE_OPTION]}, which lets the model run code.",
            hint=f"Give -o {CODE_OPTION}=true again to allow it.",
        )
