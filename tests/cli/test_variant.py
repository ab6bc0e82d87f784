"""``--variants`` on the command line, in the configuration file and in the report."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

from harness.storage.run_folder import Run

Cli = Callable[..., tuple[int, str, str]]

GIVEN = ("--model", "baseline:majority", "--recipe", "quick")


def _copa(name: str, question: str) -> None:
    path = Path("data/xcopa") / name
    path.parent.mkdir(parents=True, exist_ok=True)
    texts = {"premise": "p", "choice1": "a", "choice2": "b"}
    lines = [json.dumps({**texts, "question": question, "label": n % 2, "idx": n}) + "\n" for n in range(4)]
    path.write_text("".join(lines), encoding="utf-8")


def _released() -> None:
    _copa("data/et/test.et.jsonl", "cause")
    _copa("data/tr/test.tr.jsonl", "effect")
    for split in ("train", "val"):
        _copa(f"copa-en/{split}-en.jsonl", "cause")
    path = Path("data/siqa/socialIQa_v1.4_trn.jsonl")
    path.parent.mkdir()
    answers = {f"answer{letter}": letter for letter in "ABC"}
    path.write_text(json.dumps({"context": "c", "question": "q", **answers, "correct": "A"}) + "\n")


def test_both_versions_of_a_task_stand_side_by_side(cli: Cli) -> None:
    _released()
    arguments = ("--tasks", "xcopa:tr", "--data", "data", "--variants", "original,aligned_question")
    status, out, err = cli("eval", *GIVEN, *arguments, "--out", "run")
    assert status == 0, err
    run = Run(Path("run"))
    assert [cell.view for cell in run.cells] == [{}, {"variant": "aligned_question"}]
    assert run.manifest.config["variants"] == ["original", "aligned_question"]
    assert "variant=aligned_question" in out


def test_the_configuration_file_names_variants_too(cli: Cli) -> None:
    _released()
    Path("run.yaml").write_text(
        "tasks: xcopa:tr\nmodel: baseline:majority\ndata: data\nvariants: aligned_question\nwith-published: false\n",
        encoding="utf-8",
    )
    status, _, err = cli("plan", "--config", "run.yaml", "--json", "plan.json")
    assert status == 0, err
    [cell] = json.loads(Path("plan.json").read_text(encoding="utf-8"))
    assert cell["view"] == {"variant": "aligned_question"}
    Path("run.yaml").write_text("variants: 5\nwith_published: often\n", encoding="utf-8")
    status, _, err = cli("plan", "--config", "run.yaml")
    assert status == 2
    assert "variants: expected a text or a list of texts, found 5" in " ".join(err.split())
    assert "with_published: expected true or false, found 'often'" in " ".join(err.split())


def test_a_variant_that_no_task_has_leaves_nothing_to_run(cli: Cli) -> None:
    status, _, err = cli("eval", *GIVEN, "--tasks", "xcopa:tr", "--data", "sample", "--variants", "aligned")
    assert status != 0
    assert "task 'xcopa' has no variant 'aligned'; it has: original, aligned_question" in " ".join(
        err.split()
    )
