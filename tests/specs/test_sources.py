"""Where a source leads: codes of a task's own files, values of an axis, languages that are read as the split is."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from harness.data.resolve import DataOptions, resolve
from harness.data.sources import data_ref
from harness.errors import MissingDataError
from harness.languages.table import known_languages
from harness.specs.schema import HubSource, LocalSource, Source
from tests.builders import split_ref
from tests.specs.conftest import Problems, SessionWith

NEWS = """
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


@pytest.mark.parametrize(
    ("code", "path", "config"),
    [("de", "deu-Latn", "deu_Latn"), ("zh", "zho-CN", "zho_Hans"), ("qu", "quz-Latn", "quz_Latn")],
)
def test_codes_fill_braces_by_language_or_by_default(
    session_with: SessionWith, code: str, path: str, config: str
) -> None:
    ref = split_ref(session_with(NEWS), "news", code)
    assert [files.paths for files in ref.local] == [(f"news/{path}.csv",)]
    assert ref.hub is not None
    assert ref.hub.config == config


def test_a_language_with_its_own_file_is_read_as_the_split_is(session_with: SessionWith) -> None:
    session = session_with(NEWS)
    [files], hub = (ref := split_ref(session, "news", "sw")).local, ref.hub
    assert (files.paths, files.reader) == (("swahili.csv",), "csv")
    assert files.columns == "text=body,label=topic"
    assert files.label_map == {"0": "sport", "1": "health"}
    assert hub is not None
    assert (hub.path, hub.config, hub.split) == ("other/swahili", None, "train"), "places are not taken"
    assert (hub.columns, hub.label_map) == ("text=text,label=gold", {"s": "sport"})


def test_columns_and_options_stay_with_their_reader(session_with: SessionWith) -> None:
    [files] = split_ref(session_with(NEWS), "news", "yo").local
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
    spec = session_with(NEWS).catalog.task("news").spec
    assert spec.provenance_of("de") == "human-translated"
    assert spec.provenance_of("sw") == "native"


def test_a_fragment_gives_its_code_alone(session_with: SessionWith) -> None:
    fragment = "extends: news\nlanguages: {ha: {codes: {ours: hausa}, provenance: native}}\n"
    session = session_with(NEWS, fragment)
    [files] = split_ref(session, "news", "ha").local
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
    assert old in NEWS
    assert not problems(NEWS)
    found = problems(NEWS.replace(old, new))
    assert len(found) == 1
    assert place in found[0]


SOURCE = Source(
    local=(
        "own/{language}/{bank}.conllu",
        LocalSource(path="ud/hi.conllu", only={"bank": "original", "language": "hi"}),
        LocalSource(path="ud/ta.conllu", only={"bank": "original", "language": "ta"}),
        LocalSource(path="cg/{language}.conllu", only={"bank": ("cg", "cscg")}),
    ),
    reader="conllu",
    options={"language": "{bank}"},
    sample=LocalSource(path="x/{language}/{bank}.conllu"),
)


def paths(language: str, **conditions: str) -> list[str]:
    ref = data_ref(
        SOURCE,
        owner="mine",
        language=known_languages().get(language),
        split="test",
        folder=None,
        conditions=conditions,
    )
    return [path for files in ref.local for path in files.paths]


def test_only_what_serves_a_cell_is_looked_for() -> None:
    assert paths("hi", bank="original") == ["own/hi/original.conllu", "ud/hi.conllu"]
    assert paths("ta", bank="original") == ["own/ta/original.conllu", "ud/ta.conllu"]
    assert paths("ur", bank="original") == ["own/ur/original.conllu"]
    assert paths("hi", bank="cscg") == ["own/hi/cscg.conllu", "cg/hi.conllu"]


def test_a_listing_shows_those_of_all_values() -> None:
    found = paths("hi", bank="{bank}")
    assert found == ["own/hi/{bank}.conllu", "ud/hi.conllu", "cg/hi.conllu"]


def test_axes_fill_options_and_a_sample_is_read_as_the_source_is(tmp_path: Path) -> None:
    file = tmp_path / "sample/x/hi/cg.conllu"
    file.parent.mkdir(parents=True)
    file.touch()
    ref = data_ref(
        SOURCE,
        owner="mine",
        language=known_languages().get("hi"),
        split="test",
        folder=tmp_path,
        conditions={"bank": "cg"},
    )
    assert [dict(files.options) for files in ref.local] == [{"language": "cg"}] * 2
    found = resolve(ref, DataOptions(mode="sample"))
    assert (found.reader, dict(found.options), found.paths) == ("conllu", {"language": "cg"}, (file,))
    file.unlink()
    with pytest.raises(MissingDataError, match=r"there is no x/hi/cg\.conllu"):
        resolve(ref, DataOptions(mode="sample"))


def test_the_faults_of_only_and_of_a_sample(problems: Problems) -> None:
    assert problems(
        """\
task: mine
kind: token_tagging
version: 1
description: d
citation: c
license: l
labels: [A, B]
metrics: [weighted_f1]
axes: {bank: [original, cg]}
splits:
  test:
    local:
      - "x/{bank}"
      - {path: a, only: {bnak: cg}}
      - {path: b, only: {bank: [cg, gc], language: de}}
    reader: conllu
    sample: {path: c, reader: conlu, options: {tokns: fused}}
languages: {hi: {}}
"""
    ) == [
        "line 14: splits.test.local.1.only.bnak: No axis named 'bnak'. Did you mean 'bank'?",
        "line 15: splits.test.local.2.only.bank: No value of 'bank' named 'gc'. Known: cg, original.",
        "line 15: splits.test.local.2.only.language: No value of 'language' named 'de'. Known: hi.",
        "line 17: splits.test.sample.reader: No reader named 'conlu'. Did you mean 'conllu' or 'jsonl'?",
    ]
