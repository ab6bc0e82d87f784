"""What the maker of a system states about it: ``--metadata model.yaml``.

Amounts of data are a value and a unit, since papers print tokens, bytes and sentence pairs side by side (XTREME-R,
Table 13): numbers of different units are never compared.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field

from harness import UsageError
from harness.specs import SpecModel, read_yaml, validate_document

Unit = Literal["tokens", "words", "characters", "bytes", "sentences", "sentence_pairs", "documents"]


class Amount(SpecModel):
    """So much data, in one of a few units."""

    value: Annotated[float, Field(gt=0)]
    unit: Unit


class Parameters(SpecModel):
    """The size of a model."""

    total: Annotated[int, Field(gt=0)]
    active: Annotated[int, Field(gt=0)] | None = None
    """Those that one token passes through, where experts are chosen among."""


class SystemMetadata(SpecModel):
    """One system; every key but `name` is optional."""

    name: str
    """As the board calls the system: ``hf:xlm-roberta-base``, ``XLM-R Large``."""
    applies_to: tuple[str, ...] = ()
    """Further names of it."""
    label: str | None = None
    """What the board shall call it instead."""
    parameters: Parameters | None = None
    monolingual: Amount | None = None
    """Data of the pre-training in single languages."""
    parallel: Amount | None = None
    fine_tuning: str | None = None
    """Data of the fine-tuning, in words."""
    languages_seen: Annotated[int, Field(gt=0)] | tuple[str, ...] | None = None
    """Of the pre-training: how many, or their codes."""
    transfer: Literal["zero_shot", "translate_train", "translate_test", "in_language", "few_shot"] | None = (
        None
    )
    licence: str | None = None
    year: Annotated[int, Field(ge=1950, le=2100)] | None = None
    paper: str | None = None
    url: Annotated[str, Field(pattern="^(https://|http://)")] | None = None
    contamination: str | None = None
    """What is known of test data among the training data."""
    reported: Literal["self_reported", "reproduced"] | None = None

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the systems that it is about."""
        return (self.name, *self.applies_to)

    def plain(self) -> dict[str, Any]:
        """Return what a page needs."""
        found = self.model_dump(mode="json", exclude_none=True, exclude={"name", "applies_to", "label"})
        if self.parameters is not None:
            found["parameters"] = self.parameters.total
            if self.parameters.active is not None:
                found["active"] = self.parameters.active
        if isinstance(self.languages_seen, tuple):
            found["languages_seen"] = len(self.languages_seen)
        return found


def read_metadata(path: Path) -> SystemMetadata:
    """Return a metadata file; raises `UsageError`, and `SpecError` with all its faults and their lines."""
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
        raise UsageError(f"The metadata file {str(path)!r} cannot be read: {reason}.") from error
    return validate_document(SystemMetadata, read_yaml(text, str(path)))
