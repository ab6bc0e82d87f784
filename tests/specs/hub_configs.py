"""The configurations that the Hub's datasets have, as other harnesses and the datasets' cards list them."""

from __future__ import annotations

from pathlib import Path

_ROWS = Path(__file__).with_suffix(".tsv").read_text(encoding="utf-8").splitlines()
CONFIGS = {
    task: configurations.split("|")
    for tasks, configurations in (row.split("\t") for row in _ROWS if "\t" in row)
    for task in tasks.split()
}
"""By task: the configurations, or the same in the names of files."""
