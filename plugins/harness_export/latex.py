"""Systems and tasks in one LaTeX table: that of the report's page, with names that may be published."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from harness import Run
from harness.reporting import read_material, system_table, systems_latex
from harness_export.score import clean_model_name


def files(runs: Sequence[Run]) -> Mapping[str, str]:
    """Return the table of all runs; where several are of one model, the names of their folders are added."""
    models = [clean_model_name(run) for run in runs]
    names = {
        run.path: f"{model} ({run.path.name})" if models.count(model) > 1 else model
        for run, model in zip(runs, models, strict=True)
    }
    material = replace(read_material(runs), names=names)
    table = system_table(material)
    return {} if table is None else {"systems.tex": systems_latex(material, table)}
