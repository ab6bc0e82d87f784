"""The settings of a run: one declaration of each, with its option and its treatment by plan, resume and merge."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, dataclass, field, fields, replace
from functools import cache, partial
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, Literal, NamedTuple, TypedDict, get_args, get_origin, get_type_hints

from harness.data.resolve import DataOptions
from harness.errors import UnknownNameError, UsageError, near_names

DEFAULT_SEED = 42
RUN, DATA, TRAINING, OUTPUT = "What to run", "Data", "Training", "Output"
MACHINES = "Processes and machines"
PROMPTS = "Prompts"


@dataclass(frozen=True, slots=True)
class Setting:
    """How a field of `RunConfig` is given and used.

    `name`, `type` and `default` are those of the field.
    """

    help: str
    panel: str
    option: str = ""
    """Without ``--``; empty where it is the field's name."""
    aliases: tuple[str, ...] = ()
    """Further names of the option, with dashes."""
    metavar: str | None = None
    minimum: int | None = None
    of_plan: bool = True
    """Whether ``harness plan`` has the option too."""
    of_file: bool = True
    """Whether a file that ``--config`` names may say it."""
    resumable: bool = False
    """Whether ``--resume`` accepts it: it changes no answer, or a changed one is noticed."""
    merged: Literal["first", "same", "task", "united"] = "first"
    """What a merge makes of the settings of its runs.

    The first one's, one that all must share, one that runs with a common task must share, or all together.
    """
    affects: str = ""
    """Name of the rule in `harness.planning.unused_options` that says on which cells it has an effect."""
    name: str = ""
    type: Any = None
    default: Any = None

    @property
    def long(self) -> str:
        """``--train-limit``."""
        return f"--{self.option or self.name.replace('_', '-')}"

    @property
    def shape(self) -> Shape:
        """How the values of its type are written."""
        single = next(
            (alternative for alternative in get_args(self.type) if alternative is not NoneType), None
        )
        registered = SHAPES.get(single if get_origin(self.type) is UnionType else self.type)
        words = " or ".join(get_args(self.type)) if get_origin(self.type) is Literal else "a text"
        return registered or Shape(str | None, words, lambda value: value)

    def read(self, value: Any) -> Any:
        """Return the value of the field for one from a command line, a YAML file, a manifest or a program.

        Raises:
            ValueError: For a value of another type, with what was expected.
            UsageError: For data folders that do not exist, and options without a key.
        """
        from pydantic import TypeAdapter, ValidationError

        try:
            plain = None if value is None else self.shape.plain(value)
            return TypeAdapter(self.type).validate_python(plain, strict=True)
        except (ValidationError, TypeError, ValueError) as error:
            raise ValueError(f"expected {self.shape.words}, found {value!r}") from error

    def check(self, value: Any) -> None:
        """Raise `UsageError` for a number that is too small and a word that is none of the choices."""
        if self.minimum is not None and value is not None and value < self.minimum:
            raise UsageError(f"{self.long} must be at least {self.minimum}, got {value}.")
        if get_origin(self.type) is Literal and value not in (allowed := get_args(self.type)):
            raise UsageError(f"{self.long} must be one of {', '.join(allowed)}, got {value!r}.")


# ruff: noqa: RUF009  each call below makes a field of a dataclass
Names = tuple[str, ...]
Paths = tuple[Path, ...]


def _setting(help: str, panel: str, default: Any = None, **further: Any) -> Any:
    """Declare a field; a callable `default` makes its value, and `...` means that a value is required."""
    metadata = {"setting": Setting(help, panel, **further)}
    if default is ...:
        return field(metadata=metadata)
    if callable(default):
        return field(default_factory=default, metadata=metadata)
    return field(default=default, metadata=metadata)


_run = partial(_setting, panel=RUN)
_data = partial(_setting, panel=DATA)
_training = partial(_setting, panel=TRAINING, merged="same")
_prompts = partial(_setting, panel=PROMPTS, merged="same")
_machines = partial(_setting, panel=MACHINES, of_plan=False)
_output = partial(_setting, panel=OUTPUT, of_plan=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class RunConfig:
    """The settings of a run: a field for each, with its type, default and `Setting`.

    The options of ``eval`` and ``plan``, the keys of ``--config``, the arguments of `harness.evaluate`, the ``config``
    of a manifest, and what ``--resume`` and ``merge`` accept all come from these fields.
    """

    tasks: Names = _run(
        "Tasks, suites or globs; 'xnli:sw+hi' or 'xnli:!en' picks languages, '@sw' all tasks in one.",
        default=...,
        aliases=("-t",),
        merged="united",
    )
    model: str = _run(
        "ADAPTER:NAME_OR_PATH, e.g. hf:xlm-roberta-base.", default=..., aliases=("-m",), resumable=True
    )
    options: Mapping[str, str] = _run(
        "Option of the adapter.",
        default=dict,
        option="option",
        aliases=("-o",),
        metavar="KEY=VALUE",
        resumable=True,
    )
    name: str | None = _run("What reports call the model.", metavar="TEXT")
    languages: Names | None = _run(
        "Restrict all tasks to these codes; '!en' excludes one.", aliases=("-l",), merged="united"
    )
    tasks_from: Paths = _run("File or folder with further specs.", default=(), merged="united")
    protocols: Names = _run(
        "zero_shot_transfer, in_language, frozen, prompted ...",
        default=(),
        option="protocol",
        merged="united",
    )
    method: str | None = _run("head, embed, rank, generate, probe, fill ...")
    data: DataOptions = _data(
        "hub (default), sample, or folders.", default=lambda: data_options(()), aliases=("-d",)
    )
    limit: int | None = _data("At most N items per cell, drawn by a seed.", minimum=1, merged="task")
    precision: float | None = _data(
        "Stop a cell when its 95 % interval is within so many points.",
        metavar="POINTS",
        minimum=0,
        merged="task",
        affects="samples",
    )
    budget: int | None = _data(
        "At most N items in all cells, where they help most.", minimum=1, merged="task"
    )
    train_limit: int | None = _data(
        "At most N training items per stage.", minimum=1, merged="same", affects="learning"
    )
    seeds: tuple[int, ...] = _training("Training seeds, e.g. 1,2,3.", default=(), minimum=0, affects="seeds")
    """Empty takes 42, the seed of the public XTREME scripts."""
    recipe: str | None = _training(
        "xtreme_r, xtreme_r_paper, quick, lora, qlora, mt5, or your own.", affects="fits"
    )
    train_languages: Names = _training(
        "Train on these instead of English.", default=(), affects="fits on chosen languages"
    )
    select_on: str | None = _training("Language whose dev set chooses the checkpoint.", affects="fits")
    split: Literal["test", "validation"] = _data(
        "test (default), or validation: score the dev sets.", default="test", merged="same"
    )
    variants: Names = _data(
        "Versions of the test items; 'original' and those of the tasks.", default=(), merged="united"
    )
    """Empty takes the tasks' own. `zs` is another name of `original`."""
    gold: Path | None = _data("Score with the corrected labels of FILE.", metavar="FILE")
    translators: Names = _data(
        "Makes the variants tt, te and bt: NAME[:REF] or ALIAS=NAME:REF; several with commas.",
        default=(),
        option="translator",
        metavar="NAME",
        merged="united",
        affects="translation",
    )
    """The first one translates training sets."""
    romanised: str = _data(
        "Romanised texts of tt: keep, skip, or write in their script by this translator first.",
        default="keep",
        metavar="keep|skip|NAME",
        merged="same",
        affects="tt",
    )
    train_variant: str | None = _training(
        "Train on b-train, t-train, bt-orig or mt-LANGUAGE.", metavar="NAME", affects="fits"
    )
    train_pivot: str = _training(
        "Through this language; default es.", default="es", metavar="CODE", affects="pivot"
    )
    prompt: Names | None = _prompts(
        "Preset: default, letters, lm_eval, mt5 ...; several with commas are compared.",
        metavar="NAME",
        affects="prompts",
    )
    """None takes `default`, and `mt5` for text-to-text models that are fine-tuned."""
    repeats: int = _prompts(
        "Sampled answers per item; needs -o temperature=T.", default=1, minimum=1, affects="repeats"
    )
    shots: int = _prompts(
        "Examples with their answers before each item.", default=0, minimum=0, affects="shots"
    )
    shots_from: Literal["train", "validation"] = _prompts(
        "train (default) or validation.", default="train", affects="shots"
    )
    shots_language: Literal["source", "target"] = _prompts(
        "source (default: English) or target.", default="source", affects="shots"
    )
    instruction_language: str | None = _prompts(
        "Language of the prompt's words; default the item's.", affects="prompts"
    )
    literals: Literal["english", "fail"] = _prompts(
        "Where a prompt has no words in a language: english (default) or fail.",
        default="english",
        affects="prompts",
    )
    chat: bool = _prompts(
        "Ask in turns, with the model's chat template.", default=False, affects="generation"
    )
    constrained: bool = _prompts(
        "Let the server allow only valid answers.", default=False, affects="generation"
    )
    # Whether the programs of others may run is not for a file to say that came from them.
    allow_code: bool = _run(
        "Let metrics run that are programs (evaluate:...).",
        default=False,
        of_plan=False,
        of_file=False,
        resumable=True,
    )
    locked: Path | None = _data(
        "Reject data, specs and models that FILE does not name.", metavar="FILE", of_plan=False
    )
    num_processes: int | None = _machines("Run in N processes.", minimum=1, resumable=True)
    """None takes those that a launcher started, or one."""
    shard: str | None = _machines(
        "Only part I of N of the cells; 'harness merge' joins the runs.", metavar="I/N"
    )
    fits_only: bool = _machines(
        "Train the models that the plan needs, and score nothing yet.", default=False, resumable=True
    )
    reuse: Paths = _machines("Reuse answers of this run.", default=(), metavar="RUN", resumable=True)
    with_baselines: bool = _output("Run the baselines too and show them.", default=False)
    with_published: bool = _output("Show published scores of the suites too.", default=False)
    log: Names = _output(
        "Also log the run to a tracker: wandb, mlflow, trackio.",
        default=(),
        metavar="TRACKER",
        resumable=True,
    )
    output: Path | None = _output("The run folder; default runs/<id>.", aliases=("--out",))

    def __post_init__(self) -> None:
        for name, setting in settings().items():
            value = getattr(self, name)
            for item in value if name == "seeds" else [value]:
                setting.check(item)

    @classmethod
    def read(cls, values: Mapping[str, Any], caller: str = "RunConfig") -> RunConfig:
        """Return the configuration of values as `Setting.read` takes them.

        Raises `UsageError` for a value of another type, and `UnknownNameError` for a name that is no setting.
        """
        declared, read = settings(), {}
        for name, value in values.items():
            if name not in declared:
                raise UnknownNameError(f"setting of {caller}", name, declared)
            try:
                read[name] = declared[name].read(value)
            except ValueError as error:
                raise UsageError(f"The setting {name!r} of {caller}: {error}.") from error
        return cls(**read)

    def to_json(self) -> dict[str, Any]:
        """Return the record of a manifest; paths are absolute, but the output, which a resumed run is given anew."""
        plain = {name: _to_json(getattr(self, name)) for name in settings()}
        return plain | {"output": None if self.output is None else str(self.output)}


@cache
def settings() -> Mapping[str, Setting]:
    """Return the settings by the names of their fields, in the order in which help lists them."""
    hints = get_type_hints(RunConfig)
    return {
        item.name: replace(
            item.metadata["setting"],
            name=item.name,
            type=hints[item.name],
            default=None if item.default is MISSING else item.default,
        )
        for item in fields(RunConfig)
    }


def key_values(items: Sequence[str] | None) -> dict[str, str]:
    """Return the pairs of repeated ``key=value`` options; raises `UsageError` for anything else."""
    pairs: dict[str, str] = {}
    for item in items or []:
        key, equals, value = item.partition("=")
        if not equals or not key:
            raise UsageError(f"The option -o {item!r} is not of the form KEY=VALUE.")
        pairs[key.strip()] = value
    return pairs


def data_options(data: Sequence[str | Path]) -> DataOptions:
    """Return where data are looked for: ``hub`` (default), ``sample``, or folders; ``$HARNESS_DATA`` adds folders.

    Raises `UsageError` for a folder that is not there, and for ``hub`` or ``sample`` together with anything else.
    """
    variable = os.environ.get("HARNESS_DATA", "").split(os.pathsep)
    sources = [piece for item in data for piece in _folders(str(item))] or [item for item in variable if item]
    modes = [item for item in sources if item in {"hub", "sample"}]
    if modes and len(sources) > 1:
        raise UsageError(f"--data {modes[0]} excludes other values; {len(sources) - 1} more were given.")
    if modes == ["sample"]:
        return DataOptions(mode="sample")
    if not sources or modes == ["hub"]:
        return DataOptions(mode="hub")
    for folder in sources:
        if not Path(folder).is_dir():
            near = near_names(folder, ["hub", "sample"], limit=1)
            meant = f"Did you mean {near[0]!r}? " if near else ""
            raise UsageError(
                f"The data folder {folder!r} does not exist.",
                hint=f"{meant}Give --data hub, --data sample, or a folder that holds the published files.",
            )
    return DataOptions(mode="local", folders=tuple(Path(item) for item in sources))


def _folders(text: str) -> list[str]:
    """Return the parts of a text between commas, or the text itself where it is a folder."""
    return [text] if Path(text).is_dir() else [piece for piece in text.split(",") if piece] or [text]


def _to_json(value: Any) -> Any:
    match value:
        case DataOptions():
            return {"mode": value.mode, "folders": _to_json(value.folders)}
        case Path():
            return str(value.absolute())
        case tuple():
            return [_to_json(item) for item in value]
        case Mapping():
            return dict(value)
    return value


# How values are written ---------------------------------------------------------------------------------


class Shape(NamedTuple):
    """How the values of a type are written."""

    option: Any
    """The type of an option on the command line, where a list is given by repeating it."""
    words: str
    """What a value is."""
    plain: Callable[[Any], Any]
    """Turns what may be written into what pydantic checks: names with commas apart, texts of paths into paths."""


def _list(value: Any) -> list[Any]:
    if isinstance(value, Mapping):
        raise TypeError
    return [value] if isinstance(value, str | int | Path) else list(value)


def _texts(parts: list[Any]) -> list[Any]:
    if not all(isinstance(value, str | Path) for value in parts):
        raise TypeError
    return parts


def _names(value: Any) -> tuple[str, ...]:
    from harness.specs.selection import split_names

    return tuple(split_names(_texts(_list(value))))


def _paths(value: Any) -> tuple[Path, ...]:
    return tuple(Path(path) for path in _texts(_list(value)))


def _numbers(value: Any) -> tuple[Any, ...]:
    numbers = [
        item for number in _list(value) for item in (_names(number) if isinstance(number, str) else [number])
    ]
    if not numbers and isinstance(value, str):
        raise ValueError
    return tuple(dict.fromkeys(int(number) if isinstance(number, str) else number for number in numbers))


def _adapter_options(value: Any) -> dict[str, str]:
    if not isinstance(value, Mapping):
        return key_values(_texts(_list(value)))
    return {key: str(item).lower() if isinstance(item, bool) else str(item) for key, item in value.items()}


def _data_options(value: Any) -> DataOptions:
    if isinstance(value, Mapping):
        return DataOptions(mode=value["mode"], folders=tuple(map(Path, value["folders"])))
    return value if isinstance(value, DataOptions) else data_options(_texts(_list(value)))


TEXTS = "a text or a list of texts"
SHAPES: Mapping[Any, Shape] = {
    Names: Shape(list[str] | None, TEXTS, _names),
    Paths: Shape(list[Path] | None, TEXTS, _paths),
    tuple[int, ...]: Shape(str | None, "a whole number or a list of them", _numbers),
    Mapping[str, str]: Shape(
        list[str] | None, "a mapping of keys to values, or a list of KEY=VALUE", _adapter_options
    ),
    DataOptions: Shape(list[str] | None, TEXTS, _data_options),
    Path: Shape(Path | None, "a text", lambda value: Path(value) if isinstance(value, str) else value),
    float: Shape(float | None, "a number", lambda value: value),
    bool: Shape(bool, "true or false", lambda value: value),
    int: Shape(int | None, "a whole number", lambda value: int(value) if isinstance(value, str) else value),
}
"""By type; all others are texts."""

GivenNames = str | Sequence[str]
GivenPaths = str | Path | Sequence[str | Path]


class RunSettings(TypedDict, total=False):
    """Arguments of `harness.evaluate` besides tasks and model: a key for every further field of `RunConfig`.

    The types are what `Setting.read` accepts.
    """

    options: Mapping[str, Any] | None
    name: str | None
    languages: GivenNames | None
    tasks_from: GivenPaths
    protocols: GivenNames
    method: str | None
    data: GivenPaths
    limit: int | None
    precision: float | None
    budget: int | None
    train_limit: int | None
    seeds: int | str | Sequence[int]
    recipe: str | None
    train_languages: GivenNames
    select_on: str | None
    split: Literal["test", "validation"]
    variants: GivenNames
    gold: str | Path | None
    translators: GivenNames
    romanised: str
    train_variant: str | None
    train_pivot: str
    prompt: GivenNames | None
    repeats: int
    shots: int
    shots_from: Literal["train", "validation"]
    shots_language: Literal["source", "target"]
    instruction_language: str | None
    literals: Literal["english", "fail"]
    chat: bool
    constrained: bool
    allow_code: bool
    locked: str | Path | None
    num_processes: int | None
    shard: str | None
    fits_only: bool
    reuse: GivenPaths
    with_baselines: bool
    with_published: bool
    log: GivenNames
    output: str | Path | None
