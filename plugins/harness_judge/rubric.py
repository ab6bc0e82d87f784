"""A rubric: what a judge is asked, as a YAML document with words by language."""

from __future__ import annotations

from hashlib import sha256
from importlib.resources import files
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field

from harness import UnknownNameError, UsageError
from harness.specs import Code, Literals, Name, SpecModel, read_yaml, validate_document

INPUTS = {
    "gold": ("source", "reference", "answer"),
    "scale": ("source", "answer"),
    "pair": ("source", "first", "second"),
}
METRICS = {
    "gold": ("judge_accuracy", "judge_kappa"),
    "scale": ("judge_rating",),
    "pair": ("judge_preference", "judge_order_change"),
}


class Rubric(SpecModel):
    """A rubric; its texts are those of a prompt (`harness.specs.prompt.PromptSpec`)."""

    rubric: Name
    judges: Literal["gold", "scale", "pair"]
    """`gold`: whether an answer agrees with the reference, compared with the item's own score; `scale`: how good an
    answer is; `pair`: which of two answers is better."""
    description: str
    source: str
    labels: Annotated[tuple[str, ...], Field(min_length=2)]
    """The verdicts, from the worst to the best; ``no``, ``yes`` of gold and ``1``, ``2``, ``0`` (a tie) of pairs."""
    item: str
    choice: str = " {label}"
    literals: dict[Code, Literals]

    @property
    def inputs(self) -> tuple[str, ...]:
        """The fields that `item` may show: `languages`, a line before the source, only where it does."""
        further = ("languages",) if "{languages}" in self.item else ()
        return (*INPUTS[self.judges], *further)

    @property
    def identity(self) -> str:
        """``NAME@DIGEST``: the digest is of all its words, so that a passport is for what the judge is asked."""
        return f"{self.rubric}@{sha256(self.model_dump_json().encode()).hexdigest()[:16]}"

    @property
    def metrics(self) -> tuple[str, ...]:
        """Metrics of the verdicts."""
        return METRICS[self.judges]


def read_rubric(name: str) -> Rubric:
    """Return a shipped rubric by name, or one of a file; raises `UsageError`, and `SpecError` with all its faults."""
    shipped = {
        file.name.removesuffix(".yaml"): file
        for file in files("harness_judge").joinpath("rubrics").iterdir()
        if file.name.endswith(".yaml")
    }
    source = shipped.get(name) or Path(name)
    if name not in shipped and not name.endswith((".yaml", ".yml")):
        raise UnknownNameError("rubric", name, sorted(shipped))
    try:
        text = source.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
        raise UsageError(f"The rubric {name!r} cannot be read: {reason}.") from error
    return validate_document(Rubric, read_yaml(text, name))
