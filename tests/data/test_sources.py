from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from harness.data.resolve import DataOptions
from harness.data.sources import DataFinder, data_ref
from harness.errors import DataError, HarnessError, MissingDataError, UnknownNameError
from harness.languages.table import known_languages
from harness.running.session import open_session
from harness.specs.schema import HubSource, LocalSource, Source


def _ref(source: Source, code: str = "sw", **fields: Any) -> Any:
    language = known_languages().get(code)
    return data_ref(
        source, **{"owner": "mine", "language": language, "split": "test", "folder": None, **fields}
    )


def test_codes_are_filled_into_paths_configs_and_options() -> None:
    source = Source(
        local=(
            "a/{language}.tsv",
            LocalSource(path=("{tatoeba}.x", "eng"), options={"language": "{iso639_3}"}),
        ),
        hub=HubSource(path="some/one", config="{ud_name}-{script}", split="test", options={"o": "{flores}"}),
        sample="mine/{language}.jsonl",
        options={"token_prefix": "{language}"},
    )
    ref = _ref(source, "de", folder=Path("specs"))
    assert [files.paths for files in ref.local] == [("a/de.tsv",), ("deu.x", "eng")]
    assert [dict(files.options) for files in ref.local] == [{"token_prefix": "de"}, {"language": "deu"}]
    assert (ref.hub.config, dict(ref.hub.options)) == ("German-Latn", {"o": "deu_Latn"})
    assert ref.sample.paths == ("mine/de.jsonl",)
    assert ref.sample_root == Path("specs/sample")


def test_what_an_alternative_says_replaces_what_the_source_says() -> None:
    source = Source(
        local=("a", LocalSource(path="b", reader="csv", columns={"x": "y"}, label_map={}, options={})),
        reader="tsv",
        columns=("p", "q"),
        label_map={"0": "no"},
        options={"header": "true"},
    )
    first, second = _ref(source).local
    assert (first.reader, first.columns, first.label_map, first.options) == (
        *("tsv", "p,q"),
        *({"0": "no"}, {"header": "true"}),
    )
    assert (second.reader, second.columns, second.label_map, second.options) == ("csv", "x=y", {}, {})


@pytest.mark.parametrize(
    ("path", "error", "message"),
    [
        ("a/{langauge}.tsv", UnknownNameError, "No language code in 'a/{langauge}.tsv'"),
        ("a/{}.tsv", DataError, "The path 'a/{}.tsv' of 'mine' has a brace that is no {code}"),
        ("a/{language.tsv", DataError, "The path 'a/{language.tsv' of 'mine' has a brace that is no {code}"),
        (
            "a/{language.real}",
            DataError,
            "The path 'a/{language.real}' of 'mine' has a brace that is no {code}",
        ),
    ],
)
def test_braces_that_are_no_codes_are_rejected(path: str, error: type[HarnessError], message: str) -> None:
    with pytest.raises(error) as caught:
        _ref(Source(local=path))
    assert str(caught.value).startswith(message)


def test_a_language_that_a_hub_dataset_must_not_be_taken_from_says_why(tmp_path: Path) -> None:
    source = Source(
        local="a.tsv",
        hub=HubSource(path="x/y", split="test", lacks={"sw": "it is another language"}, note="n"),
    )
    (tmp_path / "a.tsv").write_text("x\n", encoding="utf-8")
    registry = open_session().registry
    with pytest.raises(MissingDataError, match="cannot be used: it is another language"):
        DataFinder(DataOptions(mode="hub"), registry, tmp_path).find(source, _ref(source))
    found = DataFinder(DataOptions(mode="local", folders=(tmp_path,)), registry, tmp_path).find(
        source, _ref(source)
    )
    assert (found.files.origin, found.note) == ("local", ""), "the note is about the Hub's data"


def test_the_digest_changes_with_the_bytes_and_with_how_they_are_read(tmp_path: Path) -> None:
    (tmp_path / "a.tsv").write_text("x\ty\n", encoding="utf-8")
    finder = DataFinder(DataOptions(mode="local", folders=(tmp_path,)), open_session().registry, tmp_path)

    def digest(**fields: Any) -> str:
        source = Source(local="a.tsv", **fields)
        return finder.find(source, _ref(source)).digest()

    digests = {
        digest(),
        digest(columns=("p", "q")),
        digest(columns=("q", "p")),
        digest(label_map={"a": "b"}),
        digest(reader="csv"),
        digest(options={"header": "true"}),
    }
    assert len(digests) == 6
    assert digest() in digests
    source = Source(local="a.tsv", options={"haeder": "true"})
    with pytest.raises(UnknownNameError, match="No option of the reader 'tsv' named 'haeder'"):
        list(finder.rows(finder.find(source, _ref(source))))
