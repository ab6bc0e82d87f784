"""Evaluates each checkpoint once: its finished run folder is the mark, an unfinished one is resumed."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from harness import AdapterError, DataError, Progress, Run, UsageError
from harness.planning import RunConfig, require_cells
from harness.running import Session, execute, prepare
from harness_watch.checkpoint import Checkpoint

FREE = frozenset({"model", "name", "output", "allow_code", "log"})
"""Settings of a run that may differ between the evaluations of a training."""


class GoneError(AdapterError):
    """A checkpoint was deleted before it was evaluated, as ``save_total_limit`` does."""


class Evaluations:
    """The runs of the checkpoints of a training, in a folder with the name of each."""

    def __init__(self, folder: Path, config: RunConfig, session: Session) -> None:
        self.folder = folder
        self._config = config
        self._session = session

    def run_of(self, name: str) -> Run | None:
        """Return the finished run of a checkpoint, None where it is not finished.

        Raises:
            UsageError: It was evaluated with other settings, so that its scores cannot be in one curve with new ones.
        """
        folder = self.folder / name
        if not (folder / "manifest.json").is_file():
            return None
        recorded, wanted = Run.read_manifest(folder).config, self._config.to_json()
        differing = [key for key in wanted if key not in FREE and recorded.get(key) != wanted[key]]
        if differing:
            key = differing[0]
            raise UsageError(
                f"The run {str(folder)!r} was made with {key} {recorded.get(key)!r}, and now it is {wanted[key]!r}.",
                hint="Give the same options, or another folder with --output.",
            )
        try:
            run = Run(folder)
        except (UsageError, DataError):  # killed before its first cell was finished
            return None
        return None if any(cell.is_stopped for cell in run.cells) else run

    def runs(self) -> list[Run]:
        """Return all finished runs, by the steps of their checkpoints; raises as `run_of` does."""
        names = [path.name for path in self.folder.glob("checkpoint-*") if path.is_dir()]
        ordered = sorted(names, key=lambda name: int(name.rpartition("-")[2]))
        return [run for name in ordered if (run := self.run_of(name)) is not None]

    def evaluate(self, checkpoint: Checkpoint, progress: Progress) -> Run:
        """Return the run of a checkpoint, resumed where an earlier command was killed in it.

        Raises:
            GoneError: Its folder was deleted meanwhile.
            AdapterError: It cannot be opened.
            UsageError: For settings that no checkpoint could be evaluated with.
        """
        folder = self.folder / checkpoint.name
        config = replace(self._config, model=f"hf:{checkpoint.folder}", name=checkpoint.name, output=folder)
        try:
            prepared = prepare(config, self._session)
            require_cells(prepared.plan)
            execute(config, prepared, progress, resume=(folder / "manifest.json").is_file())
        except (AdapterError, UsageError, OSError) as error:
            if not checkpoint.folder.is_dir():
                raise GoneError(f"{checkpoint.name} was deleted before it was evaluated.") from error
            raise
        return Run(folder)
