"""Sources that serve one value of an axis, options that hold an axis, samples of any format."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from harness.data.resolve import DataOptions, resolve
from harness.data.sources import data_ref
from harness.errors import MissingDataError
from harness.languages.table import known_languages
from harness.specs.schema import LocalSource, Source

Problems = Callable[[str], list[str]]

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
