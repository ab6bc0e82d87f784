"""``harness eval``."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import typer

from harness.cli import option as o

app = typer.Typer(add_completion=False)


@app.command()
def evaluate(
    tasks: o.Tasks = [],  # noqa: B006
    model: o.ModelOption = "",
    options: o.Options = None,
    languages: o.Languages = None,
    tasks_from: o.TasksFrom = None,
    protocols: o.Protocols = None,
    method: o.MethodOption = None,
    data: o.Data = None,
    limit: o.Limit = None,
    train_limit: o.TrainLimit = None,
    seeds: o.Seeds = None,
    recipe: o.Recipe = None,
    train_languages: o.TrainLanguages = None,
    select_on: o.SelectOn = None,
    variants: o.Variants = None,
    gold: o.Gold = None,
    translators: o.TranslatorNames = None,
    romanised: o.Romanised = None,
    train_variant: o.TrainVariant = None,
    train_pivot: o.TrainPivot = None,
    prompt: o.PromptName = None,
    shots: o.Shots = None,
    shots_from: o.ShotsFrom = None,
    shots_language: o.ShotsLanguage = None,
    instruction_language: o.InstructionLanguage = None,
    literals: o.LiteralsPolicy = None,
    chat: o.Chat = False,
    constrained: o.Constrained = False,
    allow_code: o.AllowCode = False,
    locked: o.Locked = None,
    num_processes: o.NumProcesses = None,
    shard: o.ShardName = None,
    batch_tokens: o.BatchTokens = None,
    reuse: o.Reuse = None,
    with_baselines: o.WithBaselines = False,
    with_published: o.WithPublished = False,
    output: o.Output = None,
    resume: o.Resume = None,
    config: o.ConfigFile = None,
    json_file: o.JsonFile = None,
) -> int:
    """Evaluate a model on tasks: fine-tune or prompt it, score every language, print a summary.

    Example: harness eval --tasks xnli,xquad --model hf:xlm-roberta-base --data hub
    """
    given = dict(locals())
    del given["config"], given["json_file"], given["resume"]
    run_config = o.make_config(given, config) if resume is None else o.resumed_config(given, config, resume)
    return _run(run_config, resume, json_file)


def _run(run_config: Any, resume: Path | None, json_file: Path | None) -> int:
    from harness.cli.display import ConsoleProgress, show_plan, show_run
    from harness.cli.output import check_output_file, reporting_broken_plugins
    from harness.errors import StoppedError
    from harness.progress import SilentProgress
    from harness.running.launch import join_processes, start_processes
    from harness.running.processes import launched
    from harness.running.run import execute
    from harness.running.session import check_output_folder, open_session, prepare, prepare_together
    from harness.running.signals import Interrupted

    if resume is None:
        check_output_folder(run_config)
    check_output_file(json_file)
    wanted = run_config.num_processes
    session = open_session(run_config.tasks_from, allow_code=run_config.allow_code)
    if wanted is not None and wanted > 1 and not launched():
        with reporting_broken_plugins(session.registry.plugins, session.catalog):
            prepare(run_config, session)  # errors are reported once, before processes are started
        return start_processes(session.registry, sys.argv[1:], wanted)
    processes = join_processes(session.registry, wanted=wanted, cpu=run_config.options.get("device") == "cpu")
    try:
        with reporting_broken_plugins(session.registry.plugins, session.catalog):
            prepared = prepare_together(run_config, session, processes)
        if not processes.is_main:
            execute(run_config, prepared, SilentProgress(), processes=processes, resume=resume is not None)
            return 0
        show_plan(prepared.plan, brief=True)
        with ConsoleProgress() as progress:
            folder = execute(run_config, prepared, progress, processes=processes, resume=resume is not None)
        return show_run(folder, json_file)
    except Interrupted as error:
        raise StoppedError(error.message) from error
    finally:
        processes.close()
