"""Codes of a task's own files, and languages that are read as the task's split is."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from harness.data.resolve import DataRef
from harness.data.sources import data_ref
from harness.running.session import Session
from harness.specs.schema import HubSource, Source

SessionWith = Callable[..., Session]

TASK = """
task: news
kind: sequence_classification
version: 1
description: Topics.
citation: none
license: cc0-1.0
inputs: [text]
labels: [sport, health]
metrics: [accuracy]
provenance: human-translated
codes: {ours: {default: "{iso639_3}-{script}", zh: zho-CN}, flores: {qu: quz_Latn}}
splits:
  test:
    local: news/{ours}.csv
    reader: csv
    columns: {text: body, label: topic}
    label_map: {"0": sport, "1": health}
    hub:
      {path: someone/news, config: "{flores}", split: test, columns: {text: text, label: gold}, label_map: {s: sport}}
languages:
  de:
  zh:
  qu:
  sw: {test: {local: swahili.csv, hub: {path: other/swahili, split: train}}, provenance: native}
  yo: {test: {local: yo.tsv, reader: tsv, columns: [text, label]}}
"""


def _ref(session: Session, code: str, task: str = "news") -> DataRef:
    entry = session.catalog.task(task)
    source = entry.spec.source(code, "test")
    assert source is not None
    return data_ref(source, owner=task, language=entry.languages.get(code), split="test", folder=None)


@pytest.mark.parametrize(
    ("code", "path", "config"),
    [("de", "deu-Latn", "deu_Latn"), ("zh", "zho-CN", "zho_Hans"), ("qu", "quz-Latn", "quz_Latn")],
)
def test_codes_fill_braces_by_language_or_by_default(
    session_with: SessionWith, code: str, path: str, config: str
) -> None:
    ref = _ref(session_with(TASK), code)
    assert [files.paths for files in ref.local] == [(f"news/{path}.csv",)]
    assert ref.hub is not None
    assert ref.hub.config == config


def test_a_language_with_its_own_file_is_read_as_the_split_is(session_with: SessionWith) -> None:
    session = session_with(TASK)
    [files], hub = (ref := _ref(session, "sw")).local, ref.hub
    assert (files.paths, files.reader) == (("swahili.csv",), "csv")
    assert files.columns == "text=body,label=topic"
    assert files.label_map == {"0": "sport", "1": "health"}
    assert hub is not None
    assert (hub.path, hub.config, hub.split) == ("other/swahili", None, "train"), "places are not taken"
    assert (hub.columns, hub.label_map) == ("text=text,label=gold", {"s": "sport"})


def test_columns_and_options_stay_with_their_reader(session_with: SessionWith) -> None:
    [files] = _ref(session_with(TASK), "yo").local
    assert (files.reader, files.columns) == ("tsv", "text,label")
    assert files.label_map == {"0": "sport", "1": "health"}
    shared = Source(local="a", reader="squad", options={"answers": "all"}, columns={"id": "x"})
    own = Source(local="b", reader="jsonl", hub=HubSource(path="a/b", split="test")).read_like(shared)
    assert (own.reader, own.options, own.columns, own.hub) == (
        "jsonl",
        {},
        None,
        HubSource(path="a/b", split="test"),
    )


def test_the_provenance_of_a_task_is_that_of_languages_that_give_none(session_with: SessionWith) -> None:
    spec = session_with(TASK).catalog.task("news").spec
    assert spec.provenance_of("de") == "human-translated"
    assert spec.provenance_of("sw") == "native"


def test_a_fragment_gives_its_code_alone(session_with: SessionWith) -> None:
    fragment = "extends: news\nlanguages: {ha: {codes: {ours: hausa}, provenance: native}}\n"
    session = session_with(TASK, fragment)
    [files] = _ref(session, "ha").local
    assert files.paths == ("news/hausa.csv",)
    assert session.catalog.task("news").spec.provenance_of("ha") == "native"


@pytest.mark.parametrize(
    ("old", "new", "place"),
    [
        ("zh: zho-CN}", "fr: zho-CN}", "codes.ours.fr"),
        ('default: "{iso639_3}-{script}"', 'default: "{iso}"', "codes.ours.default"),
        ('default: "{iso639_3}-{script}"', 'default: "{"', "codes.ours.default"),
        ('default: "{iso639_3}-{script}", ', "", "codes.ours"),
        ("news/{ours}.csv", "news/{theirs}.csv", "splits.test.local"),
    ],
)
def test_codes_that_do_not_fit_are_reported(
    problems: Callable[[str], list[str]], old: str, new: str, place: str
) -> None:
    assert old in TASK
    assert not problems(TASK)
    found = problems(TASK.replace(old, new))
    assert len(found) == 1
    assert place in found[0]
