"""The folder in which the frozen commands run: tiny models and a server, runs made when a command needs them."""

from __future__ import annotations

import contextlib
import io
import json
import os
import re
import shlex
import shutil
import sys
from collections import defaultdict
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from harness.storage.run_folder import Run, with_baselines
from tests.frozen.commands import FILES, OUTPUTS, RUNS
from tests.frozen.normal_text import normal_text, outline

PAGES = ("baseline", "merged", "prompts")
"""Runs whose page and terminal output are kept as texts."""
WINDOW = 4096
"""Tokens that decoder and server accept."""
ADDRESS = re.compile(r"127\.0\.0\.1:\d+")
SETTLED = "127.0.0.1:8000"
SETTLED_VALUES: dict[str, Any] = {
    **{"seconds": 1.5, "created": "2026-01-02T03:04:05+00:00", "reused": 0, "asked": 1},
    **dict.fromkeys(("harness", "torch", "transformers", "tokenizers"), "1.0"),
    "hardware": {"machine": "x86_64", "system": "Linux", "python": "3.11.0", "cpus": 2, "host": "host"},
    "versions": {"multilingual-harness": "1.0"},
    "plugins": {"core": "multilingual-harness 1.0"},
}
"""Values of keys of a run's files, which differ between two runs of the same command or between machines."""
USAGE = 2
"""Exit status of a command that could not do its work; a gate that says no has another one."""
UNREADABLE = frozenset({".pdf", ".png"})


class Workspace:
    """A folder of models, runs and outputs; what it has already is used as it is, but for outputs."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder.resolve()
        self._server: Any = None

    @contextlib.contextmanager
    def entered(self) -> Iterator[None]:
        """Make the folder the current one, with a cache and a home of its own, and close the server at the end."""
        fixed = {
            "COLUMNS": "100",
            "TERMINAL_WIDTH": "100",
            "NO_COLOR": "1",
            "TERM": "dumb",
            "HF_HUB_OFFLINE": "1",
        }
        own = {"HARNESS_CACHE": str(self.folder / "cache"), "HOME": "home"}
        before, home = dict(os.environ), Path.cwd()
        self.folder.mkdir(parents=True, exist_ok=True)
        os.environ.update(fixed | own)
        os.environ.pop("HARNESS_DATA", None)
        os.chdir(self.folder)
        for name, text in FILES.items():
            Path(name).write_text(text, encoding="utf-8")
        try:
            yield
        finally:
            if self._server is not None:
                self._server.shutdown()
                self._server.server_close()
            os.chdir(home)
            os.environ.clear()
            os.environ.update(before)

    def texts(self, name: str) -> dict[str, str]:
        """Return what is frozen of a run (``runs/NAME``) or an output, by name; makes the runs that it needs."""
        if name.startswith("runs/"):
            self._need(name)
            return self._run_texts(name)
        out = Path("out") / name
        shutil.rmtree(out, ignore_errors=True)
        out.mkdir(parents=True)
        printed = self._call(OUTPUTS[name].replace("{out}", str(out)))
        found = {name: normal_text(name, printed)}
        for path in sorted(out.rglob("*")):
            if path.is_file() and path.suffix not in UNREADABLE:
                key = str(path.relative_to("out"))
                found[key] = normal_text(key, path.read_text(encoding="utf-8"))
        page, run = f"{name}/file.html", name.split("/")[1]
        if run in PAGES and page in found:
            found[f"{page}.txt"] = outline(found[page])
        return found

    def _run_texts(self, name: str) -> dict[str, str]:
        results: dict[str, list[Any]] = defaultdict(list)
        records: dict[str, list[Any]] = defaultdict(list)
        heads = []
        for run in with_baselines(Run(Path(name))):
            content = json.loads((run.path / "results.json").read_text(encoding="utf-8"))
            content["run"].pop("id")
            for entry in [*content.pop("cells"), *content.pop("tasks")]:
                results[entry["task"]].append(entry)
            heads.append(content)
            for cell in run.cells:
                if cell.status == "ok":
                    about = [cell.task, cell.language, cell.protocol, cell.method, cell.view, cell.seed]
                    records[cell.task].append([about, [vars_of(record) for record in run.records(cell)]])
        named = {f"{name}/results.json": heads}
        named |= {f"{name}/{task}/results.json": entries for task, entries in results.items()}
        named |= {f"{name}/{task}/records.json": entries for task, entries in records.items()}
        return {key: normal_text(key, json.dumps(value)) for key, value in named.items()}

    def _call(self, line: str, *more: str) -> str:
        """Run a command in this process, after what its line needs; return its exit status and stdout.

        Steps are printed to stderr where they take long, so stderr is not compared.
        """
        from harness.cli.main import run_command

        for needed in re.findall(r"(?<![\w/])(?:models|runs)/[\w-]+", line):
            self._need(needed)
        if "{server}" in line:
            line = line.replace("{server}", self._address())
        words = [*shlex.split(line), *more]
        printed, errors = _stream(), _stream()
        before, sys.argv = sys.argv, ["harness", *words]
        try:
            with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(errors):
                status = run_command(words)
        finally:
            sys.argv = before
        text = _written(printed)
        if status == USAGE:
            raise RuntimeError(f"harness {line} failed: {text}{_written(errors)}")
        return f"exit status {status}\n{text}"

    def _need(self, name: str) -> None:
        if Path(name).exists():
            return
        kind, _, own = name.partition("/")
        if kind == "models":
            save_model(own, Path(name))
            return
        printed = self._call(RUNS[own], "--output", name)
        if not (Path(name) / "results.json").is_file():
            raise RuntimeError(f"{name} was not made: {printed}")
        for path in Path(name).rglob("*.json"):
            path.write_text(json.dumps(settled(json.loads(ADDRESS.sub(SETTLED, path.read_text())))))

    def _address(self) -> str:
        from tests.vllm.stand_in import StandIn

        if self._server is None:
            self._need("models/decoder")
            self._server = StandIn(Path("models/decoder"), context=WINDOW)
            self._server.thread.start()
        return str(self._server.url)


def settled(value: Any) -> Any:
    """Return the JSON value of a run without what another run of the same command has otherwise: times, versions."""
    if isinstance(value, dict):
        return {
            key: type(item)(SETTLED_VALUES[key])
            if key in SETTLED_VALUES and isinstance(item, type(SETTLED_VALUES[key]) | str | float | int)
            else settled(item)
            for key, item in value.items()
        }
    return [settled(item) for item in value] if isinstance(value, list) else value


def _stream() -> io.TextIOWrapper:
    return io.TextIOWrapper(io.BytesIO(), encoding="utf-8", write_through=True)


def _written(stream: io.TextIOWrapper) -> str:
    buffer: Any = stream.buffer
    return str(buffer.getvalue().decode())


def vars_of(record: Any) -> Mapping[str, Any]:
    """Return the fields of a record, its inputs as the object that they are."""
    return {**{name: getattr(record, name) for name in record.__slots__}, "inputs": record.fields}


def save_model(name: str, folder: Path) -> None:
    """Save the tiny encoder or decoder, with weights that are large enough for clear choices.

    Their tokenizers are of bytes: the trainers of other tokenizers order pieces by chance.
    """
    import torch

    from tests.hf.conftest import FAMILIES, MASKED, save_decoder, sizes

    torch.set_num_threads(1)
    if name == "decoder":
        save_decoder(folder, "llama", max_position_embeddings=WINDOW)
        path = folder / "tokenizer_config.json"
        path.write_text(json.dumps({**json.loads(path.read_text()), "model_max_length": WINDOW}))
        return
    config_class, _, make_tokenizer, positions = FAMILIES["roberta"]
    tokenizer = make_tokenizer()
    torch.manual_seed(0)
    network: Any = MASKED["roberta"](config_class(**sizes(tokenizer, positions), initializer_range=0.3))
    network.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
