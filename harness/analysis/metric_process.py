"""Asks a metric that is a program of its own, such as COMET or MetricX in another environment, to score answers.

The program reads JSON lines: ``source``, ``prediction``, ``reference``, ``source_language``, ``language`` and ``id`` of
one answer per line. It writes JSON lines: first ``{"model": ..., "version": ...}``, which names what scores, then
``{"score": NUMBER}`` for every answer, in order. It runs without a shell. Scores are kept as they come, so that a
program that fails continues where it was.
"""

from __future__ import annotations

import json
import math
import os
import re
import select
import shlex
import signal
import subprocess
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from hashlib import blake2b
from pathlib import Path
from typing import IO, Any

from harness.errors import DataError, HarnessError, UsageError
from harness.metrics.external import COMMAND, COMMAND_KINDS, COMMAND_SCORES
from harness.metrics.scoring import answers_of, repeat_count
from harness.storage.records import REPEATS, ItemRecord
from harness.storage.redaction import clean_text
from harness.storage.results import CellResult
from harness.storage.run_folder import Run

NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,39}")
SILENCE = 600.0
"""Seconds without a line after which a program is ended, where the user names none."""
CHUNK = 65_536
"""Bytes that are read at a time."""
SIGNATURE = 200
"""Characters of a signature, at most."""


def is_command(text: str) -> bool:
    """Return whether a value of ``--metric`` is ``NAME=COMMAND`` rather than names of metrics."""
    return "=" in text


@dataclass(frozen=True, slots=True, kw_only=True)
class MetricCommand:
    """A program that scores answers."""

    name: str
    words: tuple[str, ...]
    silence: float = SILENCE

    @classmethod
    def of(cls, text: str, silence: float | None = None) -> MetricCommand:
        """Return the command of ``NAME=COMMAND``; raises `UsageError` for a name or command that cannot be used."""
        name, _, command = text.partition("=")
        if not NAME.fullmatch(name):
            raise UsageError(
                f"The metric {name!r} cannot be named so; expected small letters, digits, '-' and '_', "
                "as in --metric comet='python comet_driver.py'."
            )
        try:
            words = tuple(shlex.split(command))
        except ValueError as error:
            raise UsageError(f"The command of the metric {name!r} cannot be read: {error}.") from error
        if not words:
            raise UsageError(f"The metric {name!r} has no command; expected {name}=COMMAND.")
        return cls(name=name, words=words, silence=SILENCE if silence is None else silence)

    @property
    def metric(self) -> str:
        """The name of the metric in results."""
        return f"{COMMAND}:{self.name}"

    def digest(self) -> str:
        """Return a digest of the command and of the files that it names."""
        contents = [word.encode("utf-8", "surrogatepass") + b"\0" for word in self.words]
        for word in self.words[1:]:
            with suppress(OSError):
                contents.append(Path(word).read_bytes() if Path(word).is_file() else b"")
        return blake2b(b"".join(contents), digest_size=8).hexdigest()


@dataclass(slots=True, kw_only=True)
class CommandScores:
    """Scores of a program for the answers of a run, by their content, and the file that keeps them until then."""

    command: MetricCommand
    path: Path
    """The file; the results of the run hold the scores at the end."""
    digest: str
    """That of the command."""
    signature: str = ""
    scores: dict[str, float] = field(default_factory=dict)

    def add(self, record: ItemRecord, run: Run, cell: CellResult) -> ItemRecord:
        """Return a record whose answers have their scores."""
        items = _items(record, run, cell)
        if not items:
            return record
        name = self.command.name
        answers = [
            {**answer, COMMAND_SCORES: {**answer.get(COMMAND_SCORES, {}), name: self.scores[key]}}
            for answer, (key, _) in zip(answers_of(record.prediction), items, strict=True)
        ]
        several = repeat_count(record.prediction) > 1
        return replace(record, prediction={**record.prediction, REPEATS: answers} if several else answers[0])

    def read(self) -> None:
        """Read what the same command has given before; a line that was cut off does not count."""
        with suppress(FileNotFoundError):
            for line in self.path.read_text(encoding="utf-8").splitlines():
                with suppress(ValueError):
                    record = json.loads(line)
                    if "key" in record:
                        self.scores[record["key"]] = float(record["score"])
                    elif record.get("digest") == self.digest:
                        self.signature = str(record["signature"])
                    else:
                        return

    def begin(self, signature: str) -> IO[str]:
        """Return the open file; raises `HarnessError` where other scores in it are of another model."""
        if self.scores and signature != self.signature:
            raise HarnessError(
                f"The scores in {str(self.path)!r} are of {self.signature!r}, and the command names itself "
                f"{signature!r} now.",
                hint="Delete that file to score all answers again.",
            )
        self.signature = signature
        file = self.path.open("a" if self.scores else "w", encoding="utf-8")
        # A line of its own, also after one that was cut off.
        file.write("\n" + json.dumps({"digest": self.digest, "signature": signature}) + "\n")
        return file


def ask_command(command: MetricCommand, runs: Sequence[Run]) -> CommandScores:
    """Return the scores of all answers of runs; the first run's folder keeps them until they are written.

    Raises `HarnessError` where the program cannot be started, fails, is silent for too long, or writes something else
    than one score per answer; `DataError` where the records have no texts.
    """
    path = runs[0].path / f"{COMMAND}-{command.name}.jsonl"
    kept = CommandScores(command=command, path=path, digest=command.digest())
    kept.read()
    with tempfile.TemporaryFile("w+", encoding="utf-8") as requests:
        pending: dict[str, str] = {}
        for run in runs:
            for cell in run.cells:
                if cell.status == "ok" and run.manifest.tasks[cell.task].kind in COMMAND_KINDS:
                    for record in run.records(cell):
                        for key, item in _items(record, run, cell):
                            if key not in kept.scores and key not in pending:
                                pending[key] = f"{item['id']!r} of {cell.task}:{cell.language}"
                                requests.write(json.dumps(item, ensure_ascii=False) + "\n")
        requests.flush()
        requests.seek(0)
        if pending:
            _ask(requests, pending, kept)
    return kept


def _items(record: ItemRecord, run: Run, cell: CellResult) -> list[tuple[str, dict[str, Any]]]:
    """Return the program's input for each answer of a record, with its digest; nothing without a reference."""
    if record.reference is None:
        return []
    spec = run.manifest.specs.get(cell.task, {})
    source = record.fields.get("source")
    if source is None:
        raise DataError(
            f"The records of {cell.task}:{cell.language} have no source texts, which a metric with a command needs."
        )
    common = {
        "source": source,
        "reference": record.reference[0],
        "source_language": spec.get("source_language") or cell.language,
        "language": run.manifest.tasks[cell.task].answer_language or cell.language,
        "id": record.id,
    }
    requests = []
    for answer in answers_of(record.prediction):
        item = {**common, "prediction": (answer or {}).get("text") or ""}
        content = json.dumps({**item, "id": ""}, sort_keys=True)
        requests.append((blake2b(content.encode(), digest_size=16).hexdigest(), item))
    return requests


def _ask(requests: IO[str], pending: Mapping[str, str], kept: CommandScores) -> None:
    command = kept.command
    with _started(command, requests) as (process, errors):
        lines = _lines(command, process)
        line, count = next(lines, None), 0
        if line is not None:
            with kept.begin(_signature(command, line)) as file:
                for key, item_name in pending.items():
                    line = next(lines, None)
                    if line is None:
                        break
                    kept.scores[key] = _score(command, line, item_name)
                    file.write(json.dumps({"key": key, "score": kept.scores[key]}) + "\n")
                    file.flush()
                    count += 1
                else:
                    line = next(lines, None)
        try:
            status = process.wait(command.silence)
        except subprocess.TimeoutExpired as error:
            raise _silent(command) from error
        if status != 0:
            problem = f"ended with status {status} after {count:,} of {len(pending):,} scores"
            raise _fault(command, f"{problem}{_reason(errors)}")
        if count < len(pending) or line is not None:
            # Scores of a program that miscounts belong to other answers.
            kept.scores.clear()
            kept.path.unlink(missing_ok=True)
            more = "more than " if line is not None else ""
            raise HarnessError(
                f"The command of the metric {command.name!r} wrote {more}{count:,} scores for {len(pending):,} "
                "answers; expected one line per answer, so none of them was taken."
            )


def _signature(command: MetricCommand, line: str) -> str:
    """Return the signature of a program whose first line is given."""
    header = _parsed(line)
    if not isinstance(header.get("model"), str) or not header["model"].strip() or "score" in header:
        raise HarnessError(
            f"The command of the metric {command.name!r} began with {line[:80]!r}; expected its name first, "
            'as in {"model": "Unbabel/wmt22-comet-da", "version": "unbabel-comet 2.2.7"}.'
        )
    names = [
        " ".join(header[key].split()) for key in ("model", "version") if isinstance(header.get(key), str)
    ]
    return f"{'|'.join(clean_text(name) for name in names)[:SIGNATURE]}|command:{command.digest()}"


def _score(command: MetricCommand, line: str, item_name: str) -> float:
    score = _parsed(line).get("score")
    if isinstance(score, bool) or not isinstance(score, int | float) or not math.isfinite(score):
        raise _fault(command, f'answered {line[:80]!r} to the item {item_name}; expected {{"score": NUMBER}}')
    return float(score)


def _parsed(line: str) -> Mapping[str, Any]:
    try:
        document = json.loads(line)
    except ValueError:
        return {}
    return document if isinstance(document, dict) else {}


def _fault(command: MetricCommand, problem: str) -> HarnessError:
    return HarnessError(
        f"The command of the metric {command.name!r} {problem}.",
        hint="Scores that it wrote before are kept: the same command continues after them.",
    )


def _silent(command: MetricCommand) -> HarnessError:
    return _fault(command, f"wrote nothing for {command.silence:g} s and was ended")


@contextmanager
def _started(
    command: MetricCommand, requests: IO[str]
) -> Iterator[tuple[subprocess.Popen[bytes], IO[bytes]]]:
    """Start a program and yield it with its error output; at the end it is ended with all that it started."""
    with tempfile.TemporaryFile() as errors:
        try:
            process = subprocess.Popen(
                command.words, stdin=requests, stdout=subprocess.PIPE, stderr=errors, start_new_session=True
            )
        except OSError as error:
            raise HarnessError(
                f"The command of the metric {command.name!r} cannot be started: "
                f"{command.words[0]!r}: {error.strerror}."
            ) from error
        with process:
            try:
                yield process, errors
            finally:
                with suppress(ProcessLookupError, PermissionError):
                    os.killpg(process.pid, signal.SIGKILL)


def _lines(command: MetricCommand, process: subprocess.Popen[bytes]) -> Iterator[str]:
    """Yield the lines as they come; raises `HarnessError` where nothing comes for too long."""
    assert process.stdout is not None
    begun, chunk = b"", b"\n"
    while chunk:
        if not select.select([process.stdout], [], [], command.silence)[0]:
            raise _silent(command)
        chunk = os.read(process.stdout.fileno(), CHUNK)
        *lines, begun = (begun + (chunk or b"\n")).split(b"\n")
        yield from (line.decode("utf-8", "replace").rstrip("\r") for line in lines if line.strip())


def _reason(errors: IO[bytes]) -> str:
    """Return the last line of the error output, for the end of a sentence."""
    errors.seek(max(0, errors.seek(0, os.SEEK_END) - 4096))
    lines = [line for line in errors.read().decode("utf-8", "replace").splitlines() if line.strip()]
    return f": {clean_text(lines[-1].strip()[:300]).rstrip('.')}" if lines else ""
