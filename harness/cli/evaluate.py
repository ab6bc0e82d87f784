"""``harness eval``."""

from __future__ import annotations

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
    prompt: o.PromptName = None,
    shots: o.Shots = None,
    shots_from: o.ShotsFrom = None,
    shots_language: o.ShotsLanguage = None,
    instruction_language: o.InstructionLanguage = None,
    literals: o.LiteralsPolicy = None,
    chat: o.Chat = False,
    constrained: o.Constrained = False,
    allow_code: o.AllowCode = False,
    with_baselines: o.WithBaselines = False,
    with_published: o.WithPublished = False,
    output: o.Output = None,
    config: o.ConfigFile = None,
    json_file: o.JsonFile = None,
) -> int:
    """Evaluate a model on tasks: fine-tune or prompt it, score every language, print a summary.

    Example: harness eval --tasks xnli,xquad --model hf:xlm-roberta-base --data hub
    """
    given = dict(locals())
    del given["config"], given["json_file"]
    from harness.api import execute, open_session, prepare, refuse_output
    from harness.cli.display import ConsoleProgress, broken_told, refuse_file, show_plan, show_run

    run_config = o.make_config(given, config)
    refuse_output(run_config)
    refuse_file(json_file)
    session = open_session(run_config.tasks_from, allow_code=run_config.allow_code)
    with broken_told(session.registry.plugins, session.catalog):
        prepared = prepare(run_config, session)
    show_plan(prepared.plan, brief=True)
    with ConsoleProgress() as progress:
        folder = execute(run_config, prepared, progress)
    return show_run(folder, json_file)
