"""``harness fetch``."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Annotated, Any

import typer

from harness.cli import option as o
from harness.cli.output import echo, reporting_broken_plugins, write_rows
from harness.errors import HarnessError
from harness.planning.run_config import settings

if TYPE_CHECKING:
    from collections.abc import Sequence

    from harness.planning.run_config import RunConfig
    from harness.running.session import Fetched, FetchedPlan, Session

app = typer.Typer(add_completion=False)


@app.command()
@o.takes_settings(*(name for name, setting in settings().items() if setting.of_plan and name != "model"))
def fetch(
    names: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[MODEL]...", help="ADAPTER:NAME_OR_PATH, as --model; without --tasks, these alone."
        ),
    ] = None,
    model: Annotated[
        list[str] | None,
        typer.Option("--model", "-m", help="ADAPTER:NAME_OR_PATH; repeat it for several models."),
    ] = None,
    convert: Annotated[
        bool,
        typer.Option(
            "--convert",
            help="Convert pickled weights once to safetensors; they are never loaded as they are.",
        ),
    ] = False,
    config: o.ConfigFile = None,
    json_file: o.JsonFile = None,
    **given: Any,
) -> int:
    """Download the data, training sets and models that 'harness eval' with these options needs.

    Example: harness fetch hf:xlm-roberta-base hf:google/mt5-small --convert --tasks xnli,xquad
    """
    from harness.cli.live import show_steps
    from harness.running.session import fetch_plan, fetched_data, open_session

    references: list[str | None] = [*dict.fromkeys([*(names or []), *(model or [])])]
    configs = [
        o.make_config({**given, "model": reference}, config, needs_task=not references)
        for reference in references or [None]  # None leaves it to the configuration file
    ]
    session = open_session(configs[0].tasks_from)
    with reporting_broken_plugins(session.registry.plugins, session.catalog), show_steps():
        print_downloads(configs[0], session)
        fetched = [fetch_plan(each, session, convert=convert) for each in configs]
    models = [each.model for each in fetched if each.model is not None]
    data = fetched_data(each.plan for each in fetched if each.plan is not None)
    missing = {
        run_config.model: each.reason
        for run_config, each in zip(configs, fetched, strict=True)
        if each.model is None
    }
    _show([*models, *data], missing, fetched)
    write_rows(json_file, _rows([*models, *data], missing))
    return 1 if missing or (configs[0].tasks and not data) else 0


def print_downloads(config: RunConfig, session: Session) -> None:
    """Print how much a run will fetch from the Hub at most, and which datasets are gated, before it is fetched."""
    if config.data.mode != "hub":
        return
    from harness.planning.hub_sources import HubSources
    from harness.registry.doctor import shown_size
    from harness.reporting.blocks.words import counted
    from harness.specs.selection import select
    from harness.storage.files import cache_folder

    with suppress(HarnessError):  # the plan that follows raises it
        selected = select(session.catalog, config.tasks, config.languages, shots=config.shots)
        sources = HubSources(selected, session.registry, session.catalog, cache_folder() / "data")
        files, gated = sources.downloads(config.train_languages)
        if files:
            size = f"{shown_size(sum(files.values()))} in {counted(len(files), 'file')}"
            echo(f"To download from the Hub, at most: {size}", err=True)
        for path in gated:
            page = f"https://huggingface.co/datasets/{path}"
            echo(f"Gated: {path}. Accept its conditions at {page}, then run: hf auth login", err=True)


def _show(fetched: Sequence[Fetched], missing: dict[str, str], found: Sequence[FetchedPlan]) -> None:
    from harness.cli.display import print_table
    from harness.registry.doctor import shown_size
    from harness.reporting.blocks.words import counted
    from harness.reporting.overview.missing import skipped_lines
    from harness.running.session import translators_of
    from harness.storage.files import cache_folder

    plans = [each.plan for each in found if each.plan is not None]
    rows = [
        [item.what, item.name, item.place, str(len(item.files)), shown_size(item.size) if item.files else "-"]
        for item in fetched
    ]
    print_table(["what", "name", "from", "files", "size"], rows)
    lines = [f"missing {name}: {reason}" for name, reason in missing.items()]
    lines += dict.fromkeys(line.strip() for plan in plans for line in skipped_lines(plan))
    if translators := translators_of(plans):
        lines.append(f"not downloaded: the models of the translators {', '.join(translators)}")
    cells = sum(len(each.plan.cells) for each in found if each.model and each.plan)
    ready = f"{counted(cells, 'cell')} of {counted(len(found) - len(missing), 'model')} have what they need"
    size = shown_size(sum(file.stat().st_size for file in {file for item in fetched for file in item.files}))
    lines.append(
        f"{ready if plans else 'Models on this machine'}: {size}. To run them without a connection: "
        f"HF_HUB_OFFLINE=1 harness eval ..., with the same HF_HOME and HARNESS_CACHE={cache_folder()}"
    )
    for line in lines:
        echo(line)


def _rows(fetched: Sequence[Fetched], missing: dict[str, str]) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = [
        {
            "what": item.what,
            "name": item.name,
            "from": item.place,
            "files": len(item.files),
            "bytes": item.size,
            "missing": None,
        }
        for item in fetched
    ]
    rows += [
        {"what": "model", "name": name, "from": None, "files": 0, "bytes": 0, "missing": reason}
        for name, reason in missing.items()
    ]
    return rows
