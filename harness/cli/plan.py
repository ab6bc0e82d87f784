"""``harness plan``."""

from __future__ import annotations

import typer

from harness.cli import option as o

app = typer.Typer(add_completion=False)


@app.command()
def plan(
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
    config: o.ConfigFile = None,
    json_file: o.JsonFile = None,
) -> None:
    """Show the cells that eval would run, the models it would fit, and what it would skip and why."""
    given = dict(locals())
    del given["config"], given["json_file"]
    from harness.api import open_session, prepare
    from harness.cli.display import broken_told, show_plan, write_rows

    run_config = o.make_config(given, config)
    session = open_session(run_config.tasks_from)
    with broken_told(session.registry.plugins, session.catalog):
        prepared = prepare(run_config, session)
    show_plan(prepared.plan, brief=False)
    if json_file is not None:
        write_rows(json_file, [cell.identity() for cell in prepared.plan.cells])
