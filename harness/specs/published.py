"""The scores that a paper prints on a suite, for one system or for several: a YAML document of its own sort."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Literal

from pydantic import Field, model_validator

from harness.specs.schema import Code, Name, ProtocolName, SpecModel

Percent = Annotated[float, Field(ge=0, le=100)]
Count = Annotated[int, Field(gt=0)]
ByTest = dict[str, Percent]


class SystemScores(SpecModel):
    """The scores of one system, in percent as printed."""

    label: str = ""
    """The name of the system in tables, ``XLM-R Large``; of one among several, by default its key."""
    views: dict[Name, dict[Name, str]] = Field(default={})
    """By task: the conditions under which it was scored, ``variant: tt``. A report shows its score under columns of
    these conditions. Who translated is said by the label: runs give translators names of their own."""
    scores: dict[Name, Annotated[dict[Name, Percent], Field(min_length=1)]] = Field(default={})
    """By task and metric: the mean over languages."""
    languages: dict[Name, dict[Name, Annotated[dict[Code, Percent], Field(min_length=1)]]] = Field(default={})
    """By task, metric and language: the tables by language, as far as they are printed and legible."""
    families: dict[Name, dict[Name, Annotated[dict[str, Percent], Field(min_length=1)]]] = Field(default={})
    """By task, metric and family: means over the languages of families, where only these are printed."""
    groups: dict[Name, dict[Name, Annotated[dict[Code, ByTest], Field(min_length=1)]]] = Field(default={})
    """By task, metric, language and group: the scores on the tests of a checklist."""
    layers: dict[Name, Annotated[dict[Code, Count], Field(min_length=1)]] = Field(default={})
    """By task and language: the layer of a model whose probe has the score."""

    @model_validator(mode="after")
    def _names_scored_tasks(self) -> SystemScores:
        for key in ("views", "layers"):
            if unknown := sorted(set(getattr(self, key)) - set(self.scores)):
                raise ValueError(f"{key} names {', '.join(unknown)}, which 'scores' does not have")
        for key in ("languages", "families", "groups"):
            for task, tables in getattr(self, key).items():
                if task not in self.scores:
                    raise ValueError(f"{key} names {task}, which 'scores' does not have")
                missing = [metric for metric in tables if metric not in self.scores[task]]
                if missing:
                    raise ValueError(
                        f"{key}.{task} has {', '.join(missing)}, which scores.{task} does not have"
                    )
        return self


class PublishedSpec(SystemScores):
    """The published scores of one system or several, shown next to a run's and never mixed with them."""

    published: Name
    """The name."""
    suite: Name | None = None
    """The suite whose tasks were scored; null for tasks of no suite."""
    protocol: ProtocolName | Literal["human"]
    recipe: str
    """How the system was trained."""
    release: str
    """The data that it was scored on."""
    source: str
    """Paper and tables. Two sources of one system are two documents."""
    comparable: dict[Name, str] = Field(default={})
    """By task: why its number cannot be compared with a run's, or with the other rows."""
    errata: dict[Name, str] = Field(default={})
    """By task: where the paper disagrees with itself or cannot be read."""
    items: dict[Name, Annotated[dict[Code, Count], Field(min_length=1)]] = Field(default={})
    """By task and language: how many items were scored, where they are other ones than the release's or few."""
    overall: Percent | None = None
    """The printed average of the suite; null where none is printed."""
    systems: dict[str, SystemScores] = Field(default={})
    """The scores of several systems of one source, in place of `label` and `scores`. Systems of one label are one row
    of a report, each in the columns of its conditions."""

    @model_validator(mode="after")
    def _scores_systems(self) -> PublishedSpec:
        if bool(self.systems) == bool(self.scores) or bool(self.scores) != bool(self.label):
            raise ValueError("expected either 'label' and 'scores', or 'systems'")
        systems = [self, *self.systems.values()]
        scored = {task for system in systems for task in system.scores}
        for key in ("comparable", "errata", "items"):
            unknown = [task for task in getattr(self, key) if task not in scored]
            if unknown:
                raise ValueError(f"{key} names {', '.join(unknown)}, which 'scores' does not have")
        return self

    def each(self) -> Iterator[PublishedSpec]:
        """Yield one document for every system, with what is said of its own tasks."""
        if not self.systems:
            yield self
        for label, system in self.systems.items():
            by_task = {
                key: {task: value for task, value in getattr(self, key).items() if task in system.scores}
                for key in ("comparable", "errata", "items")
            }
            fields = {key: getattr(system, key) for key in SystemScores.model_fields}
            yield self.model_copy(update={**fields, "label": system.label or label, "systems": {}, **by_task})
