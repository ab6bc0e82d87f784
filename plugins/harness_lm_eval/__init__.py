"""Tasks of lm-evaluation-harness: its YAML files as specs and prompts of ours. Nothing of lm-eval is imported."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from harness.hookspecs import hookimpl

if TYPE_CHECKING:
    from harness.data.readers.reader import Reader
    from harness.importers import TaskImporter


@hookimpl
def harness_register_importers() -> Iterable[TaskImporter]:
    """Return the importer of lm-eval's task files."""
    from harness.importers import TaskImporter

    return [
        TaskImporter(
            name="lm_eval",
            target="harness_lm_eval.conversion:import_task",
            summary="task YAML of lm-evaluation-harness: multiple_choice and generate_until",
        )
    ]


@hookimpl
def harness_register_readers() -> Iterable[Reader]:
    """Return the reader of questions whose answers are texts without a place."""
    from harness_lm_eval.answer_reader import READER

    return [READER]
