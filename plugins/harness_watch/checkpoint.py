"""The checkpoints that the Trainer of transformers writes: whether one is complete, and its evaluation, once each."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, replace
from pathlib import Path

from harness import AdapterError, DataError, Progress, Run, UsageError
from harness.planning import RunConfig, require_cells
from harness.running import Session, execute, prepare

NAME = re.compile(r"checkpoint-(\d+)")
LAST_FILE = "trainer_state.json"
"""Written after weights, tokenizer and optimizer."""
FileStates = frozenset[tuple[str, int, int]]
"""Path, size and time of change of every file of a folder."""
FREE = frozenset({"model", "name", "output", "allow_code", "log"})
"""Settings of a run that may differ between the evaluations of a training."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Checkpoint:
    """The folder of a checkpoint and the step that it was written at."""

    folder: Path
    step: int

    @property
    def name(self) -> str:
        """``checkpoint-500``."""
        return self.folder.name


@dataclass(frozen=True, slots=True)
class Look:
    """The checkpoints of a folder at a moment, by their steps."""

    complete: list[Checkpoint]
    """The Trainer's last file is there, and nothing has changed since the look before."""
    growing: list[Checkpoint]
    """Something has changed since then."""
    unfinished: list[Checkpoint]
    """Nothing has changed, and the last file is not there: the training is slow, or was killed while it saved."""


class CheckpointFolder:
    """A training's folder, looked at again and again."""

    def __init__(self, path: Path, *, must_exist: bool = False) -> None:
        """Keep the path; raises `UsageError` for a checkpoint itself, and for what is no folder.

        Unless it `must_exist`, the training may make its folder later.
        """
        if must_exist and not path.exists():
            raise UsageError(f"There is no folder {str(path)!r}.", hint="Without --once it is waited for.")
        if path.exists() and not path.is_dir():
            raise UsageError(f"{str(path)!r} is a file; expected the folder of a training's checkpoints.")
        if NAME.fullmatch(path.name) and (path / LAST_FILE).is_file():
            raise UsageError(
                f"{str(path)!r} is one checkpoint; expected the folder that holds all of the training.",
                hint=f"Give {str(path.parent)!r}.",
            )
        self.path = path
        self._states: dict[Path, FileStates] = {}

    def look(self) -> Look:
        """Return the checkpoints that are here now; nothing is complete at the first look."""
        complete: list[Checkpoint] = []
        growing: list[Checkpoint] = []
        unfinished: list[Checkpoint] = []
        for folder in self.path.glob("checkpoint-*"):
            match = NAME.fullmatch(folder.name)
            if match is None or not folder.is_dir():
                continue
            before, now = self._states.get(folder), _file_states(folder)
            self._states[folder] = now
            state = growing if now != before else complete if _has_state(folder) else unfinished
            state.append(Checkpoint(folder=folder, step=int(match[1])))
        return Look(*(sorted(state, key=lambda item: item.step) for state in (complete, growing, unfinished)))


def _has_state(folder: Path) -> bool:
    """Return whether the Trainer's last file is there as a whole."""
    try:
        return isinstance(json.loads((folder / LAST_FILE).read_text(encoding="utf-8")), dict)
    except (OSError, ValueError):
        return False


def _file_states(folder: Path) -> FileStates:
    """Return the states of the files of a folder; one that is deleted meanwhile is not there."""
    states = []
    for file in folder.rglob("*"):
        try:
            state = file.stat()
        except OSError:
            continue
        states.append((str(file), state.st_size, state.st_mtime_ns))
    return frozenset(states)


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
