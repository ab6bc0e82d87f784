"""Instruction following: a model writes an answer to every turn of a conversation, and rules check the answers."""

from __future__ import annotations

import csv
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any, Final, Literal

from harness import DataError
from harness.data import (
    Example,
    Prediction,
    Reader,
    Row,
    choice,
    is_blank_line,
    numbered_lines,
    parse_json,
    without_blank_lines,
)
from harness.kinds import (
    MethodContext,
    ReadContext,
    TaskKind,
    cluster_of,
    generate_method,
    group_of,
    id_of,
    meta_of,
)
from harness.models import Generates, Prompt, Turn
from harness.prompts import Prompter, PromptItem, generate_answers
from harness.specs import TaskSpec
from harness_instructions.rules import instruction_fault

TURNS: Final = (1, 2, 3)


class InstructionFollowingSpec(TaskSpec):
    """The spec of a task whose answers are checked by rules."""

    kind: Literal["instruction_following"]


@dataclass(frozen=True, slots=True, kw_only=True)
class InstructedConversation(Example):
    """A conversation of one turn or several; a row with the field ``prompt`` is one turn without instructions."""

    turns: tuple[Mapping[str, Any], ...]
    """By turn ``prompt``, the message of the user, and ``instructions``, a list of ids with their arguments."""


def _example(row: Row, number: int, context: ReadContext) -> InstructedConversation:
    turns = row.fields.get("turns")
    if turns is None and "prompt" in row.fields:
        turns = [{"prompt": row.fields["prompt"], "instruction_id_list": [], "kwargs": []}]
    if not isinstance(turns, list) or not turns:
        raise DataError(f"{row.where}: expected a list of turns in the field 'turns' of {context.owner!r}.")
    return InstructedConversation(
        id=id_of(row, number),
        cluster=cluster_of(row, context),
        group=group_of(row),
        meta=meta_of(row),
        turns=tuple([_turn(turn, row) for turn in turns]),
    )


def _turn(turn: Mapping[str, Any], row: Row) -> dict[str, Any]:
    names, arguments = turn.get("instruction_id_list"), turn.get("kwargs")
    if not isinstance(names, list) or not isinstance(arguments, list) or len(arguments) < len(names):
        raise DataError(
            f"{row.where}: expected a list of instructions, and arguments for each of them, in 'kwargs'."
        )
    # The official script pairs them by position and leaves further arguments unread.
    pairs = [[name, values] for name, values in zip(names, arguments, strict=False)]
    for identifier, values in pairs:
        fault = instruction_fault(identifier, values)
        if fault is not None:
            raise DataError(f"{row.where}: this item {fault}.")
    return {"prompt": str(turn.get("prompt")), "instructions": pairs}


def _reference(example: InstructedConversation) -> list[Mapping[str, Any]] | None:
    """Return the turns with their instructions; None for plain prompts, whose answers only a judge can rate."""
    return list(example.turns) if any(turn["instructions"] for turn in example.turns) else None


def _prompt_item(example: InstructedConversation) -> PromptItem:
    # There is no right answer that a shot could show.
    return PromptItem(fields={"prompt": example.turns[-1]["prompt"]})


@dataclass(frozen=True, slots=True, kw_only=True)
class ConversationPrompter(Prompter):
    """Puts the turns of a conversation before the prompt of its last one."""

    history: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """By id of the item: the messages so far, of the user and the model in turn."""

    def generation(self, example: Any, shots: int) -> Prompt:
        """Return the conversation that the model continues, or its text without a chat template."""
        prompt = Prompter.generation(self, example, shots)
        before = self.history.get(example.id, ())
        if isinstance(prompt, str):
            return "".join(f"{message}\n\n" for message in before) + prompt
        roles: tuple[Literal["user", "assistant"], ...] = ("user", "assistant")
        turns = [Turn(role=roles[index % 2], text=message) for index, message in enumerate(before)]
        return (*prompt[:-1], *turns, prompt[-1])


def _predict(
    adapter: Generates, examples: Sequence[InstructedConversation], context: MethodContext
) -> list[Prediction]:
    assert context.prompter is not None
    prompter = context.prompter
    copied = {entry.name: getattr(prompter, entry.name) for entry in fields(Prompter)}
    history: dict[str, list[str]] = {example.id: [] for example in examples}
    readings: dict[str, list[Prediction]] = {example.id: [] for example in examples}
    for number in range(max((len(example.turns) for example in examples), default=0)):
        asked = [
            replace(example, turns=example.turns[: number + 1])
            for example in examples
            if len(example.turns) > number
        ]
        speaker = ConversationPrompter(**copied, history=history)
        answers = generate_answers(adapter, asked, speaker, speaker.options, _read)
        for example, prediction in zip(asked, answers, strict=True):
            readings[example.id].append(prediction)
            history[example.id] += [example.turns[-1]["prompt"], prediction.output["text"]]
    return [_joined(example.id, readings[example.id]) for example in examples]


def _read(example: Any, text: str) -> tuple[dict[str, Any], bool]:
    return {"text": text.strip()}, bool(text.strip())


def _joined(identifier: str, turns: Sequence[Prediction]) -> Prediction:
    """Return the prediction of a conversation: all answers, and as its text the last one."""
    last = turns[-1]
    return replace(
        last,
        id=identifier,
        output={**last.output, "answers": [turn.output["text"] for turn in turns]},
        truncated=any(turn.truncated for turn in turns),
        unparsed=any(turn.unparsed for turn in turns),
        unfinished=any(turn.unfinished for turn in turns),
        unanswered=any(turn.unanswered for turn in turns),
        tokens=sum(turn.tokens for turn in turns),
    )


METHODS = (generate_method("instruction_following", _predict, repeatable=False),)

KIND = TaskKind(
    name="instruction_following",
    spec_model=InstructionFollowingSpec,
    head=None,
    methods=("generate",),
    example=_example,
    reference=_reference,
    summary="answers follow instructions that rules check",
    prompt_item=_prompt_item,
    prompt_fields=lambda spec: ("prompt",),
    texts=lambda example, spec: tuple(turn["prompt"] for turn in example.turns),
)


def _read_ifeval(paths: Sequence[Path], options: Mapping[str, str]) -> Iterator[Row]:
    """Yield one row of one turn per line; the second item with a key gets ``KEY#2`` as its id."""
    skips = choice(options, "malformed", ("fail", "skip")) == "skip"
    for path in paths:
        keys: Counter[str] = Counter()
        for line, text in without_blank_lines(path, numbered_lines(path), is_blank_line):
            try:
                record = parse_json(text, path, first_line=line)
            except DataError:
                if skips:
                    continue
                raise
            key = str(record.get("key"))
            keys[key] += 1
            identifier = key if keys[key] == 1 else f"{key}#{keys[key]}"
            yield Row(fields={"id": identifier, "turns": [record]}, path=str(path), line=line)


def _read_multi_if(paths: Sequence[Path], options: Mapping[str, str]) -> Iterator[Row]:
    """Yield the conversations of one language; a turn with the prompt ``None`` or without one is no turn."""
    language = options.get("language")
    for path in paths:
        with path.open(encoding="utf-8", newline="") as file:
            for number, record in enumerate(csv.DictReader(file, strict=True), start=1):
                if language in (None, record.get("language")):
                    turns = [
                        turn
                        for turn in (_turn_fields(record, index, path, number) for index in TURNS)
                        if turn
                    ]
                    fields = {"id": str(record.get("key") or number), "turns": turns}
                    yield Row(fields=fields, path=str(path), line=number)


def _turn_fields(
    record: Mapping[str, str | None], index: int, path: Path, number: int
) -> dict[str, Any] | None:
    """Return a turn; its three cells are JSON, and so is every argument in the last of them."""
    written = record.get(f"turn_{index}_prompt")
    if written in (None, "", "None"):
        return None
    names, arguments = (
        parse_json(record.get(f"turn_{index}_{column}") or "[]", path, first_line=number)
        for column in ("instruction_id_list", "kwargs")
    )
    prompt = parse_json(str(written), path, first_line=number)
    if not isinstance(prompt, dict) or "content" not in prompt:
        raise DataError(f"{path}: record {number}: expected a message with 'content' in turn {index}.")
    values = [parse_json(text, path, first_line=number) for text in arguments]
    return {"prompt": prompt["content"], "instruction_id_list": names, "kwargs": values}


READERS: Final = (
    Reader(
        name="ifeval",
        read=_read_ifeval,
        summary="JSON lines with key, prompt, instruction_id_list and kwargs, as IFEval and Marco-Bench-MIF have them",
        options={"malformed": "a line that is no JSON: 'fail' (default) or 'skip'"},
        filters=frozenset(),
    ),
    Reader(
        name="multi_if",
        read=_read_multi_if,
        summary="Multi-IF: a table with up to three turns per row, whose cells are JSON",
        options={"language": "the English name in the column 'language', such as 'Hindi'; all without it"},
        filters=frozenset({"language"}),
    ),
)
