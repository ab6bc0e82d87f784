"""Conversations: files become turns, a model sees its own answers, and four accuracies count the verdicts."""

from __future__ import annotations

import csv
import json
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from harness import DataError
from harness.data import Row
from harness.kinds import ReadContext
from harness.metrics import MetricContext
from harness.models import Generated, GenerateOptions, Prompt, Turn
from harness.prompts import Prompter, compile_prompt
from harness.specs import PromptSpec
from harness_instructions.kind import KIND, METHODS, READERS
from harness_instructions.metrics import METRICS

IFEVAL, MULTI_IF = READERS
NO_COMMA = ["punctuation:no_comma"]
PROMPT = PromptSpec(
    prompt="instruction/default",
    tasks=("t",),
    kind="instruction_following",
    formulation="generation",
    description="-",
    source="-",
    item="{prompt}",
    answer="{gold}",
    stop=(),
)


def example(*prompts: str, identifier: str = "1") -> Any:
    turns = [{"prompt": prompt, "instruction_id_list": NO_COMMA, "kwargs": [{}]} for prompt in prompts]
    row = Row(fields={"id": identifier, "turns": turns}, path="file", line=3)
    return KIND.example(row, 1, ReadContext(owner="t", language="en", split="test"))


class Echo:
    """Answers with the number of messages so far."""

    def __init__(self) -> None:
        self.prompts: list[Prompt] = []

    def generate(self, prompts: Sequence[Prompt], options: Sequence[GenerateOptions]) -> list[Generated]:
        self.prompts += prompts
        return [Generated(text=f"answer {len(prompt)}\n", tokens=2, finished=True) for prompt in prompts]


def predict(model: Echo, examples: Sequence[Any], *, chat: bool) -> list[Any]:
    assert KIND.prompt_item is not None
    prompter = Prompter(
        prompt=compile_prompt(PROMPT, "en"), item=KIND.prompt_item, task="t", language="en", chat=chat
    )
    context: Any = SimpleNamespace(prompter=prompter)
    return METHODS[0].predict(model, examples, context)


def test_a_turn_follows_the_answers_before_it() -> None:
    model = Echo()
    long, short = predict(model, [example("a", "b", "c"), example("d", identifier="2")], chat=True)
    assert model.prompts[0] == (Turn(role="user", text="a"),)
    assert model.prompts[-1] == (
        Turn(role="user", text="a"),
        Turn(role="assistant", text="answer 1"),
        Turn(role="user", text="b"),
        Turn(role="assistant", text="answer 3"),
        Turn(role="user", text="c"),
    )
    assert long.output["answers"] == ["answer 1", "answer 3", "answer 5"]
    assert (short.output["answers"], short.output["text"]) == (["answer 1"], "answer 1")
    assert (long.id, long.tokens, short.id, short.tokens) == ("1", 6, "2", 2)


def test_without_a_chat_template_a_conversation_is_a_text() -> None:
    model = Echo()
    predict(model, [example("a", "b")], chat=False)
    assert model.prompts == ["a", "a\n\nanswer 1\n\nb"]


def test_accuracies_count_prompts_and_instructions() -> None:
    turn = {"prompt": "p", "instructions": [["punctuation:no_comma", {}], ["startend:quotation", {}]]}
    answers = ['"yes"', '"a, b"', 'Sure:\n"yes"']
    predictions = [{"answers": [answers[0]]}, {"answers": answers[1:]}]
    results = {
        metric.name: metric.compute(predictions, [[turn], [turn, turn]], MetricContext(language="en"))
        for metric in METRICS
    }
    assert {name: result.value for name, result in results.items()} == pytest.approx(
        {
            "prompt_level_strict_acc": 1 / 3,
            "inst_level_strict_acc": 4 / 6,
            "prompt_level_loose_acc": 2 / 3,
            "inst_level_loose_acc": 5 / 6,
            "ifeval_mean_acc": (1 / 3 + 4 / 6 + 2 / 3 + 5 / 6) / 4,
        }
    )
    by_turn = {
        name: (group.value, group.n) for name, group in results["prompt_level_loose_acc"].groups.items()
    }
    assert by_turn == {"turn 1": (0.5, 2), "turn 2": (1.0, 1)}
    assert results["inst_level_strict_acc"].groups["startend:quotation"].n == 3
    assert results["ifeval_mean_acc"].groups["turn 2"].value == (0 + 1 / 2 + 1 + 1) / 4


def test_an_unknown_instruction_is_a_fault_of_the_file() -> None:
    turns = [{"prompt": "p", "instruction_id_list": ["x:y"], "kwargs": [{}]}]
    row = Row(fields={"turns": turns}, path="file", line=3)
    with pytest.raises(DataError, match="file:3: this item has the unknown instruction 'x:y'"):
        KIND.example(row, 1, ReadContext(owner="t", language="en", split="test"))


def test_each_instruction_needs_arguments_and_further_ones_are_unread() -> None:
    """Two Spanish items of Marco-Bench-MIF have arguments of an instruction that they do not have."""
    context = ReadContext(owner="t", language="es", split="test")
    turn = {"prompt": "p", "instruction_id_list": NO_COMMA, "kwargs": [{}, {"language": "es"}]}
    item = KIND.example(Row(fields={"turns": [turn]}, path="file", line=1), 1, context)
    assert KIND.reference(item) == [{"prompt": "p", "instructions": [["punctuation:no_comma", {}]]}]
    with pytest.raises(DataError, match="arguments for each of them"):
        KIND.example(Row(fields={"turns": [{**turn, "kwargs": []}]}, path="file", line=1), 1, context)


def test_lines_of_ifeval(tmp_path: Path) -> None:
    """The second item of a key gets an id of its own; a line that is no JSON is skipped where the spec says so."""
    path = tmp_path / "id.jsonl"
    line = json.dumps({"key": 7, "prompt": "p", "instruction_id_list": NO_COMMA, "kwargs": [{}]})
    path.write_text(f'{line}\n{{"key": 8, "prompt": ""p"}}\n{line}\n', encoding="utf-8")
    assert [row.fields["id"] for row in IFEVAL.rows([path], {"malformed": "skip"})] == ["7", "7#2"]
    with pytest.raises(DataError, match=r"id\.jsonl:2"):
        list(IFEVAL.rows([path], {}))


def test_rows_of_multi_if(tmp_path: Path) -> None:
    path = tmp_path / "multi.csv"
    turn = {
        "prompt": json.dumps({"role": "user", "content": "p, q"}),
        "instruction_id_list": json.dumps(NO_COMMA),
        "kwargs": json.dumps(["{}"]),
    }
    record = {"key": "1:1", "language": "Hindi"}
    record |= {f"turn_{index}_{name}": value for index in (1, 2) for name, value in turn.items()}
    record["turn_3_prompt"] = "None"
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, list(record))
        writer.writeheader()
        writer.writerows([record, {**record, "key": "2:1", "language": "French"}])
    [row] = MULTI_IF.rows([path], {"language": "Hindi"})
    assert row.fields["id"] == "1:1"
    assert row.fields["turns"] == [{"prompt": "p, q", "instruction_id_list": NO_COMMA, "kwargs": [{}]}] * 2
