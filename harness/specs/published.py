"""The scores that a paper prints for one system on a suite: a YAML document of its own sort."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, model_validator

from harness.specs.schema import Code, Name, ProtocolName, SpecModel

__all__ = ["PublishedSpec"]

Percent = Annotated[float, Field(ge=0, le=100)]


class PublishedSpec(SpecModel):
    """The published scores of one system, in percent as printed; shown next to a run's and never mixed with them."""

    published: Name
    """The name."""
    suite: Name
    """The suite whose tasks were scored."""
    label: str
    """The name of the system in tables: ``XLM-R Large``."""
    protocol: ProtocolName | Literal["human"]
    recipe: str
    """How the system was trained."""
    release: str
    """The data that it was scored on."""
    source: str
    """Paper and tables."""
    comparable: dict[Name, str] = Field(default={})
    """By task: why its number cannot be compared with a run's, or with the other rows."""
    errata: dict[Name, str] = Field(default={})
    """By task: where the paper disagrees with itself or cannot be read."""
    overall: Percent | None = None
    """The printed average of the suite; null where none is printed."""
    scores: dict[Name, Annotated[dict[Name, Percent], Field(min_length=1)]] = Field(min_length=1)
    """By task and metric."""
    languages: dict[Name, dict[Name, Annotated[dict[Code, Percent], Field(min_length=1)]]] = Field(default={})
    """By task, metric and language: the tables by language, as far as they are printed and legible."""

    @model_validator(mode="after")
    def _names_scored_tasks(self) -> PublishedSpec:
        for key in ("comparable", "errata", "languages"):
            unknown = [task for task in getattr(self, key) if task not in self.scores]
            if unknown:
                raise ValueError(f"{key} names {', '.join(unknown)}, which 'scores' does not have")
        for task, tables in self.languages.items():
            missing = [metric for metric in tables if metric not in self.scores[task]]
            if missing:
                raise ValueError(
                    f"languages.{task} has {', '.join(missing)}, which scores.{task} does not have"
                )
        return self
