"""Metrics that are programs of their own: real processes that score, miscount, crash, hang or answer no number."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from harness.analysis.metric_process import CommandScores, MetricCommand, _ask
from harness.errors import HarnessError

pytestmark = pytest.mark.thorough

PROGRAM = """
import json, sys, time
mode = sys.argv[1]
print(json.dumps({"model": "lengths", "version": "1"}), flush=True)
for number, line in enumerate(sys.stdin):
    if number == 2 and mode == "crash":
        sys.exit("out of memory")
    if number == 2 and mode == "hang":
        time.sleep(60)
    if number == 2 and mode == "few":
        break
    score = float("nan") if number == 2 and mode == "nan" else len(json.loads(line)["prediction"]) / 10
    print(json.dumps({"score": score}), flush=True)
if mode == "many":
    print(json.dumps({"score": 1}))
"""


def _kept(folder: Path, digest: str = "d") -> CommandScores:
    command = MetricCommand(name="own", words=("program",))
    return CommandScores(command=command, path=folder / "kept", digest=digest)


def ask(folder: Path, mode: str, kept: CommandScores) -> None:
    program = folder / "program.py"
    program.write_text(PROGRAM, encoding="utf-8")
    kept.command = MetricCommand(name="own", words=(sys.executable, str(program), mode), silence=5)
    asked = {f"k{number}": "x" * number for number in range(4) if f"k{number}" not in kept.scores}
    lines = folder / "asked"
    lines.write_text("".join(json.dumps({"prediction": text}) + "\n" for text in asked.values()), "utf-8")
    with lines.open(encoding="utf-8") as file:
        _ask(file, asked, kept)


def test_each_answer_gets_its_score(tmp_path: Path) -> None:
    kept = _kept(tmp_path)
    ask(tmp_path, "good", kept)
    assert kept.scores == {"k0": 0.0, "k1": 0.1, "k2": 0.2, "k3": 0.3}
    assert kept.signature.startswith("lengths|1|command:")


@pytest.mark.parametrize(
    ("mode", "message"),
    [
        ("crash", "ended with status 1 after 2 of 4 scores: out of memory"),
        ("hang", "wrote nothing for 5 s"),
        ("nan", "NaN"),
    ],
)
def test_what_a_failing_program_gave_is_kept(tmp_path: Path, mode: str, message: str) -> None:
    with pytest.raises(HarnessError, match=message):
        ask(tmp_path, mode, _kept(tmp_path))
    again = _kept(tmp_path)
    again.read()
    assert again.scores == {"k0": 0.0, "k1": 0.1}
    other = _kept(tmp_path, "e")
    other.read()
    assert other.scores == {}


@pytest.mark.parametrize("mode", ["few", "many"])
def test_a_program_that_miscounts_is_not_believed(tmp_path: Path, mode: str) -> None:
    kept = _kept(tmp_path)
    with pytest.raises(HarnessError, match="none of them was taken"):
        ask(tmp_path, mode, kept)
    assert not kept.scores and not kept.path.exists()
