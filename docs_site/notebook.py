"""Executes the example notebook and stores its outputs: ``.venv-peers/bin/python docs_site/notebook.py [FILE]``.

The cells of ``docs/notebook.ipynb`` are its only source: edit them there, or in Jupyter, then run this. It needs
nbclient, ipykernel (``make setup-peers``) and pandas.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

ROOT = Path(__file__).resolve().parents[1]
NOTEBOOK = ROOT / "docs" / "notebook.ipynb"


def execute(target: Path) -> None:
    """Run the cells of the notebook in an empty folder, and write the notebook with their outputs to a file."""
    import nbformat
    from nbclient import NotebookClient

    notebook = nbformat.read(NOTEBOOK, as_version=4)
    sources = [str(ROOT / name) for name in ("", "plugins", "model_adapters", "task_specs")]
    with TemporaryDirectory() as folder:
        os.environ |= {
            "PYTHONPATH": os.pathsep.join(sources),
            "HARNESS_CACHE": str(Path(folder) / "cache"),
            "IPYTHONDIR": str(Path(folder) / "ipython"),
        }
        NotebookClient(notebook, timeout=300, resources={"metadata": {"path": folder}}).execute()
    for cell in notebook.cells:
        cell.metadata.pop("execution", None)  # times of this machine
    notebook.metadata = {"kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"}}
    nbformat.write(notebook, target)


if __name__ == "__main__":
    execute(Path(sys.argv[1]) if len(sys.argv) > 1 else NOTEBOOK)
