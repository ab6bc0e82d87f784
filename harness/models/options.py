"""The options of adapters: pydantic models filled from ``-o key=value``."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Mapping
from itertools import pairwise
from textwrap import dedent
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from harness.errors import UnknownNameError, UsageError
from harness.models.adapters import AdapterEntry
from harness.models.requests import KNOWN_MARKERS, Markers


class AdapterOptions(BaseModel):
    """The options of one adapter; a plugin subclasses it. Strings from ``-o key=value`` are converted."""

    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)


class SamplingOptions(AdapterOptions):
    """How any model that writes draws its answers; the prompt's own settings are used where these are not given.

    An adapter whose options derive from it declares that it obeys stop strings, temperature and seed.
    """

    temperature: float | None = Field(
        default=None,
        ge=0,
        le=10,
        description="Temperature of written answers; 0 is greedy, by default as the prompt says.",
    )
    top_p: float | None = Field(
        default=None,
        gt=0,
        le=1,
        description="Share of the likeliest tokens that are drawn from; by default as the prompt says.",
    )
    max_tokens: int | None = Field(
        default=None,
        ge=1,
        description="Tokens that a written answer may have; by default as the prompt says.",
    )
    stop: str | None = Field(
        default=None,
        min_length=1,
        description="TEXT,TEXT,...: a written answer ends before the first of them; \\n is a line end. By default as "
        "the prompt says; with --chat none.",
    )
    system: str | None = Field(
        default=None,
        min_length=1,
        description="The system turn with --chat, else the text before everything; by default as the prompt says.",
    )
    answer_regex: str | None = Field(
        default=None,
        min_length=1,
        description="Regular expression whose last match, or its first group, is read as the answer.",
    )


class ReasoningOptions(SamplingOptions):
    """How a model that reasons before its answer is asked."""

    thinking: Literal["auto", "on", "off"] = Field(
        default="auto",
        description="Whether the model reasons before its answer: the chat template's switch; auto leaves it as it is.",
    )
    reasoning_effort: Literal["low", "medium", "high"] | None = Field(
        default=None, description="How much the model reasons, for chat templates with levels (gpt-oss)."
    )
    reasoning_budget: int | None = Field(
        default=None,
        ge=1,
        description="Tokens that the reasoning may have, apart from those of the answer; by default 4,096.",
    )
    reasoning_markers: str | None = Field(
        default=None,
        description="START,END: marks around the reasoning besides <think>, [THINK] and the channels of gpt-oss.",
    )

    @field_validator("reasoning_markers")
    @classmethod
    def _require_two_markers(cls, value: str | None) -> str | None:
        if value is not None and (len(marks := value.split(",")) != 2 or not all(marks)):
            raise ValueError("expected two marks with a comma between them, START,END")
        return value

    @property
    def budget(self) -> int:
        """The tokens that reasoning may have."""
        return DEFAULT_BUDGET if self.reasoning_budget is None else self.reasoning_budget

    @property
    def reasons(self) -> bool:
        """Whether the user asks for reasoning, in any way."""
        has_setting = self.reasoning_effort is not None or self.reasoning_budget is not None
        return self.thinking == "on" or (self.thinking == "auto" and has_setting)

    def markers(self, own: tuple[str, str] | None = None) -> tuple[Markers, ...]:
        """Return the marks to look for: those of a prompt, those of the user, and the known ones."""
        user_markers = () if self.reasoning_markers is None else (tuple(self.reasoning_markers.split(",")),)
        return (*(Markers(*pair) for pair in (own, *user_markers) if pair is not None), *KNOWN_MARKERS)

    def template_variables(self) -> dict[str, bool | str]:
        """Return the variables of a chat template: names of the switch in templates of today, and the effort."""
        variables: dict[str, bool | str] = {}
        if self.thinking != "auto":
            variables |= dict.fromkeys(THINKING_SWITCHES, self.thinking == "on")
        if self.reasoning_effort is not None:
            variables["reasoning_effort"] = self.reasoning_effort
        return variables

    def reasoning_identity(self) -> dict[str, str]:
        """Return the options that change answers and were given, for the identity of a model."""
        fields = ReasoningOptions.model_fields
        names = [name for name in fields if name not in SamplingOptions.model_fields]
        return {
            f"option.{name}": str(value)
            for name in names
            if (value := getattr(self, name)) != fields[name].default
        }


DEFAULT_BUDGET = 4096
THINKING_SWITCHES = ("enable_thinking", "thinking")
"""Qwen3, GLM-4.5 and SmolLM3 read the first, Granite and DeepSeek-V3.1 the second."""


def options_model(entry: AdapterEntry) -> type[AdapterOptions]:
    """Return the pydantic model that the entry names."""
    model = entry.load(entry.options)
    assert isinstance(model, type) and issubclass(model, AdapterOptions)
    return model


def option_meanings(model: type[AdapterOptions]) -> dict[str, str]:
    """Return the meaning of each option: its description, or the docstring below it in its class.

    pydantic's ``use_attribute_docstrings`` reads the source of every class at its import, which no run needs.
    """
    meanings: dict[str, str] = {}
    for cls in reversed(model.__mro__[: model.__mro__.index(AdapterOptions)]):
        try:
            body = ast.parse(dedent(inspect.getsource(cls))).body[0]
        except (OSError, TypeError):  # a class that no file has
            continue
        for item, doc in pairwise(body.body if isinstance(body, ast.ClassDef) else ()):
            match item, doc:
                case ast.AnnAssign(target=ast.Name(id=name)), ast.Expr(value=ast.Constant(value=str(text))):
                    meanings[name] = " ".join(text.split())
    fields = model.model_fields.items()
    return {name: field.description or meanings.get(name, "") for name, field in fields}


def parse_options(entry: AdapterEntry, given: Mapping[str, str]) -> AdapterOptions:
    """Return the adapter's validated options from ``key=value`` pairs; raises `UsageError` naming near keys."""
    model = options_model(entry)
    option_names = sorted(model.model_fields)
    for key in given:
        if key not in option_names:
            raise UnknownNameError(
                f"option of the adapter {entry.name!r}",
                key,
                option_names,
                hint=f"Run 'harness models {entry.name}' to see its options.",
            )
    try:
        return model.model_validate(dict(given))
    except ValidationError as error:
        first = error.errors()[0]
        name = ".".join(str(segment) for segment in first["loc"])
        raise UsageError(
            f"The option {name!r} of the adapter {entry.name!r} got {first.get('input')!r}: {first['msg']}.",
            hint=f"Run 'harness models {entry.name}' to see its options.",
        ) from error
