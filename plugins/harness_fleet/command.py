"""Evaluate many models: jobs on this machine, Ray or Slurm; their state and results."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from harness import UsageError
from harness.cli import AllowCode, BatchTokens, ConfigFile, JsonFile, echo, takes_settings
from harness.planning import OUTPUT, RUN, key_values, settings

if TYPE_CHECKING:
    from collections.abc import Sequence

    from harness.planning import RunConfig
    from harness.registry import JobRunner
    from harness.running import Session
    from harness_fleet.folder import Consent, Fleet
    from harness_fleet.submission import Group

JOBS = "Jobs and machines"
INTERRUPTED = 130
OWN = frozenset({"model", "output", "shard", "fits_only", "with_baselines", "with_published"})
"""Settings that a fleet gives each job by itself, or that concern one run alone."""
app = typer.Typer(add_completion=False, invoke_without_command=True)

Backend = Annotated[
    str | None,
    typer.Option("--backend", help="local (default), or a plugin's: ray, slurm.", rich_help_panel=JOBS),
]
BackendOptions = Annotated[
    list[str] | None,
    typer.Option(
        "--backend-option", "-b", metavar="KEY=VALUE", help="Option of the backend.", rich_help_panel=JOBS
    ),
]
Gpus = Annotated[
    float | None,
    typer.Option("--gpus", min=0, help="GPUs of a job; 0.5 shares one.", rich_help_panel=JOBS),
]
Memory = Annotated[
    float | None,
    typer.Option("--memory", min=0, metavar="GIB", help="Memory of a job.", rich_help_panel=JOBS),
]
Minutes = Annotated[
    int | None,
    typer.Option("--minutes", min=1, help="The longest that a job may run.", rich_help_panel=JOBS),
]
Folder = Annotated[Path, typer.Argument(metavar="DIR", help="The folder of the fleet.")]


@app.callback()
@takes_settings(*(name for name in settings() if name not in OWN))
def submit(
    context: typer.Context,
    models: Annotated[
        list[str] | None,
        typer.Option(
            "--model", "-m", help="ADAPTER:NAME_OR_PATH; give one for each model.", rich_help_panel=RUN
        ),
    ] = None,
    batch_tokens: BatchTokens = None,
    config: ConfigFile = None,
    jobs: Annotated[
        int, typer.Option("--jobs", min=1, help="Divide a model into at most N jobs.", rich_help_panel=JOBS)
    ] = 1,
    backend: Backend = None,
    backend_option: BackendOptions = None,
    gpus: Gpus = None,
    memory: Memory = None,
    minutes: Minutes = None,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "--out",
            help="The folder of the fleet; default runs/fleet-<time>.",
            rich_help_panel=OUTPUT,
        ),
    ] = None,
    **fields: Any,
) -> int:
    """Evaluate many models with the options of eval, as jobs that open one model once.

    Example: harness submit --model hf:xlm-roberta-base --model baseline:char-ngram --tasks xnli --output runs/two
    """
    if context.invoked_subcommand is not None:
        return 0
    from harness.running import open_session
    from harness_fleet.folder import TRUST, Consent, Resources, check_new, new_folder
    from harness_fleet.showing import show_groups
    from harness_fleet.submission import make_fleet, open_backend

    configs = _configs({**fields, "batch_tokens": batch_tokens}, models or [], config)
    folder, first = output or new_folder(), configs[0]
    check_new(folder)
    session = open_session(first.tasks_from, allow_code=first.allow_code)
    name, options = backend or "local", key_values(backend_option)
    runner = open_backend(session, name, options)
    groups = _planned(configs, session, jobs)
    show_groups(groups)
    resources = Resources(
        gpus=gpus or 0.0, processes=first.num_processes or 1, memory_gib=memory, minutes=minutes
    )
    fleet = make_fleet(folder, groups, name, options, resources)
    consent = Consent(allow_code=first.allow_code, trust_remote_code=first.options.get(TRUST))
    return _run(fleet, runner, session, consent)


def _planned(configs: Sequence[RunConfig], session: Session, jobs: int) -> list[Group]:
    """Return the jobs of all models; raises `UsageError` where one cannot be evaluated, after naming all such."""
    from harness.cli import reporting_broken_plugins, show_steps
    from harness_fleet.submission import plan_models

    with reporting_broken_plugins(session.registry.plugins, session.catalog), show_steps():
        groups, errors = plan_models(configs, session, jobs)
    for model, error in errors.items():
        echo(f"{model}: {error}", err=True)
    if errors:
        raise UsageError(f"{len(errors)} of {len(configs)} models cannot be evaluated; nothing was started.")
    return groups


def _configs(fields: dict[str, Any], models: Sequence[str], file: Path | None) -> list[RunConfig]:
    """Return the configuration of every model; a file may name a single one."""
    from harness.cli import make_config

    repeated = next((model for number, model in enumerate(models) if model in models[:number]), None)
    if repeated is not None:
        raise UsageError(f"The model {repeated!r} was given twice.", hint="Give every --model once.")
    configs = [make_config(fields | ({"model": model} if model else {}), file) for model in models or [""]]
    for name in OWN - {"model"}:
        setting = settings()[name]
        if getattr(configs[0], name) != setting.default:
            raise UsageError(f"harness submit takes no {setting.long.removeprefix('--')!r} from --config.")
    return configs


def _run(
    fleet: Fleet,
    runner: JobRunner,
    session: Session,
    consent: Consent,
    names: Sequence[str] | None = None,
) -> int:
    """Start jobs; collect them unless a scheduler continues without this process; return the exit status."""
    from harness.registry import JobState
    from harness_fleet.submission import start_jobs

    if start_jobs(fleet, runner, consent, names):
        echo(f"Stopped; all answers are kept. Continue: harness submit retry {fleet.path}", err=True)
        return INTERRUPTED
    queued = runner.states(fleet.jobs()).values()
    if any(state in {JobState.WAITING, JobState.RUNNING} for state in queued):
        echo(f"The jobs are submitted. Their states: harness submit status {fleet.path}")
        return 0
    return _collect(fleet, session)


def _collect(fleet: Fleet, session: Session) -> int:
    from harness_fleet.showing import show_gaps, show_results
    from harness_fleet.state import collect as collect_runs, gaps

    show_results(collect_runs(fleet, session))
    return show_gaps(fleet, gaps(fleet))


@app.command()
def status(folder: Folder, json_file: JsonFile = None) -> None:
    """Show the states of the jobs and how many cells are done, while they run and afterwards."""
    from harness.cli import check_output_file, write_rows
    from harness.running import open_session
    from harness_fleet.folder import Fleet
    from harness_fleet.showing import show_status, status_rows
    from harness_fleet.state import job_states
    from harness_fleet.submission import open_backend

    check_output_file(json_file, ".json")
    fleet = Fleet(folder)
    runner = open_backend(open_session(), fleet.file.backend, fleet.file.backend_options)
    states = job_states(fleet, runner.states(fleet.jobs()))
    rows = status_rows(fleet, states)
    show_status(fleet, states, rows)
    if json_file is not None:
        write_rows(json_file, rows)


@app.command()
def collect(
    folder: Folder,
    check: Annotated[
        bool,
        typer.Option("--check", help="Only name cells without a score; the exit status is 1 where any is."),
    ] = False,
) -> int:
    """Make one run of each model's jobs, and print a summary of all models."""
    from harness.running import open_session
    from harness_fleet.folder import Fleet
    from harness_fleet.showing import show_gaps
    from harness_fleet.state import gaps

    fleet = Fleet(folder)
    return show_gaps(fleet, gaps(fleet)) if check else _collect(fleet, open_session())


@app.command()
def retry(
    folder: Folder,
    backend: Backend = None,
    backend_option: BackendOptions = None,
    gpus: Gpus = None,
    memory: Memory = None,
    minutes: Minutes = None,
    allow_code: AllowCode = False,
    option: Annotated[
        list[str] | None,
        typer.Option("--option", "-o", metavar="KEY=VALUE", help="Only trust_remote_code=true, given again."),
    ] = None,
) -> int:
    """Run the jobs again that did not end or have failed cells; they resume, and ask no answered request again.

    Backend and resources are those of before, unless others are given.
    """
    from harness.running import open_session
    from harness_fleet.folder import TRUST, Consent, Fleet
    from harness_fleet.state import job_states, unfinished
    from harness_fleet.submission import open_backend

    fleet, session, consents = Fleet(folder), open_session(), key_values(option)
    if set(consents) - {TRUST}:
        raise UsageError(f"harness submit retry takes no option but {TRUST}.", hint="Submit a new fleet.")
    fleet_file, name = fleet.file, backend or fleet.file.backend
    options = (fleet_file.backend_options if name == fleet_file.backend else {}) | key_values(backend_option)
    runner = open_backend(session, name, options)
    queued = runner.states(fleet.jobs())
    names = unfinished(fleet, job_states(fleet, queued), queued)
    if not names:
        echo(f"No job is left to run. See: harness submit status {folder}")
        return 0
    requested = {"gpus": gpus, "memory_gib": memory, "minutes": minutes}
    changed = {key: value for key, value in requested.items() if value is not None}
    fleet.change(
        backend=name, backend_options=options, resources=fleet_file.resources.model_copy(update=changed)
    )
    echo(
        f"Running again: {', '.join(names)}" if len(names) < 9 else f"Running {len(names)} jobs again.",
        err=True,
    )
    return _run(
        fleet, runner, session, Consent(allow_code=allow_code, trust_remote_code=consents.get(TRUST)), names
    )
