"""The checkpoints that the Trainer of transformers writes, and whether one of them is complete."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from pathlib import Path

from harness import UsageError

NAME = re.compile(r"checkpoint-(\d+)")
LAST_FILE = "trainer_state.json"
"""Written after weights, tokenizer and optimizer."""
FileStates = frozenset[tuple[str, int, int]]
"""Path, size and time of change of every file of a folder."""


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
