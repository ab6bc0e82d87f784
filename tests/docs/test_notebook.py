"""The example notebook: its cells run, and the outputs that it stores are what they give now, numbers aside."""

from __future__ import annotations

import ast
import json
import os
import re
import subprocess
from collections.abc import Mapping
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
NOTEBOOK = ROOT / "docs" / "notebook.ipynb"
PEERS = Path(os.environ.get("HARNESS_TEST_PEERS") or ROOT / ".venv-peers")


def _cells(path: Path) -> list[dict[str, Any]]:
    notebook = json.loads(path.read_text(encoding="utf-8"))
    return [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]


def _structure(text: str) -> str:
    """Return a text without its numbers, ids and blanks, which differ between machines and versions."""
    return re.sub(r"\s+", " ", re.sub(r"[-+]?\d[\d.,]*", "#", text)).strip()


def _stored(cell: Mapping[str, Any]) -> tuple[str, Mapping[str, str]]:
    """Return what a cell printed, and its result by format."""
    streams = [output for output in cell["outputs"] if output["output_type"] == "stream"]
    results = [output["data"] for output in cell["outputs"] if output["output_type"] == "execute_result"]
    progress = [output["data"] for output in cell["outputs"] if output["output_type"] == "display_data"]
    assert len(streams) + len(results) + len(progress) == len(cell["outputs"]), "no errors, no warnings"
    for own in progress:
        assert re.fullmatch(r"\d+ of \d+ cells done", "".join(own["text/plain"]))
    printed = "".join("".join(output["text"]) for output in streams)
    data = results[0] if results else {}
    return printed, {name: "".join(content) for name, content in data.items()}


def _execute(source: str, names: dict[str, Any]) -> tuple[str, Any]:
    """Run a cell as a notebook does; return what it printed and the value of its last line."""
    tree = ast.parse(source)
    last = tree.body[-1]
    expression = ast.Expression(last.value) if isinstance(last, ast.Expr) else None
    if expression is not None:
        tree.body.pop()
    printed = StringIO()
    with redirect_stdout(printed):
        exec(compile(tree, "cell", "exec"), names)
        value = None if expression is None else eval(compile(expression, "cell", "eval"), names)
    return printed.getvalue(), value


@pytest.fixture
def _an_empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HARNESS_CACHE", str(tmp_path / "cache"))


@pytest.mark.thorough
@pytest.mark.usefixtures("_an_empty_folder")
def test_the_cells_run_and_their_stored_outputs_are_fresh() -> None:
    names: dict[str, Any] = {}
    shown: set[str] = set()
    for cell in _cells(NOTEBOOK):
        source = "".join(cell["source"])
        printed, value = _execute(source, names)
        stored_text, stored = _stored(cell)
        assert _structure(stored_text) == _structure(printed), source
        assert (value is None) == (stored == {}), source
        shown |= set(stored)
        if "image/svg+xml" in stored:
            assert _words(stored["image/svg+xml"]) == _words(value._repr_svg_()), source
        elif "text/html" in stored:
            assert _structure(stored["text/html"]) == _structure(value._repr_html_()), source
    assert shown == {"text/html", "text/plain", "image/svg+xml"}
    assert Path("gap.svg").read_text(encoding="utf-8").startswith("<svg")


def _words(svg: str) -> list[str]:
    """Return the texts of a picture, without numbers."""
    return [_structure(text) for text in re.findall(r">([^<>]+)</text>", svg)]


@pytest.mark.thorough
def test_a_kernel_executes_the_notebook(tmp_path: Path) -> None:
    wanted = ("nbclient", "ipykernel")
    if not all(list(PEERS.glob(f"lib/python3*/site-packages/{name}")) for name in wanted):
        pytest.skip(
            f"no nbclient and ipykernel in {PEERS.name}: run make setup-peers, or set HARNESS_TEST_PEERS"
        )
    done = subprocess.run(
        [PEERS / "bin" / "python", ROOT / "docs_site" / "notebook.py", tmp_path / "made.ipynb"],
        capture_output=True,
        encoding="utf-8",
        check=False,
        timeout=300,
        env={"PATH": os.environ["PATH"], "HOME": str(tmp_path)},
    )
    assert done.returncode == 0, done.stderr[-3000:]
    for made, kept in zip(_cells(tmp_path / "made.ipynb"), _cells(NOTEBOOK), strict=True):
        (printed, data), (kept_text, kept_data) = _stored(made), _stored(kept)
        assert (_structure(printed), set(data)) == (_structure(kept_text), set(kept_data))
