"""Whether files are released ones, by the digests that folders of specs carry."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from harness.data.origin import CHANGED, CHECKSUM_FILE, RELEASED, UNKNOWN, Checksums, FileState
from harness.data.resolve import DataOptions
from harness.data.sources import DataFinder, FoundData, data_ref
from harness.errors import SpecError
from harness.languages.table import known_languages
from harness.running.session import Session
from harness.specs.schema import SPLITS, LocalSource, Source

PAIR = LocalSource(path=("a/{language}.txt", "a/en.txt"))
SOURCE = Source(local=("old/{language}.tsv", "new/{language}.tsv", PAIR, "many/*.csv"))


def _sha(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def _table(folder: Path, files: Mapping[str, Sequence[str]]) -> Checksums:
    lines = [f"{_sha(text)}  {path}" for path, texts in files.items() for text in texts]
    (folder / CHECKSUM_FILE).write_text("\n".join(["# a comment", "", *lines]), encoding="utf-8")
    return Checksums.read([folder, folder / "without a table"])


def _found(session: Session, folder: Path, files: Mapping[str, str], mode: Any = "local") -> FoundData:
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, encoding="utf-8")
    finder = DataFinder(DataOptions(mode=mode, folders=(folder,)), session.registry, folder / "cache")
    source = SOURCE if mode == "local" else Source(local="old/x", sample="sw.jsonl")
    language = known_languages().get("sw")
    return finder.find(source, data_ref(source, owner="mine", language=language, split="test", folder=folder))


@pytest.mark.parametrize(
    ("files", "state"),
    [
        ({"old/sw.tsv": "first"}, FileState(word=RELEASED)),
        ({"old/sw.tsv": "second release"}, FileState(word=RELEASED)),
        ({"new/sw.tsv": "first"}, FileState(word=RELEASED)),  # known by the name of another alternative
        ({"new/sw.tsv": "other"}, FileState(word=CHANGED, changed={"old/sw.tsv": None})),
        ({"old/sw.tsv": "Hausa"}, FileState(word=CHANGED, changed={"old/sw.tsv": "old/ha.tsv"})),
        ({"a/sw.txt": "left", "a/en.txt": "right"}, FileState(word=RELEASED)),
        (
            {"a/sw.txt": "left", "a/en.txt": "left"},
            FileState(word=CHANGED, changed={"a/en.txt": "a/sw.txt"}),
        ),
        ({"many/x.csv": "x", "many/y.csv": "y"}, FileState(word=RELEASED)),
        ({"many/x.csv": "x", "many/z.csv": "z"}, FileState(word=UNKNOWN)),
        ({"many/x.csv": "", "many/z.csv": "z"}, FileState(word=CHANGED, changed={"many/x.csv": None})),
        ({"many/z.csv": "x"}, FileState(word=RELEASED)),  # a published file under another name
    ],
)
def test_the_state_of_files(
    session: Session, tmp_path: Path, files: Mapping[str, str], state: FileState
) -> None:
    known = {"old/sw.tsv": ["first", "second release"], "old/ha.tsv": ["Hausa"]}
    known |= {"a/sw.txt": ["left"], "a/en.txt": ["right"], "many/x.csv": ["x"], "many/y.csv": ["y"]}
    assert _table(tmp_path, known).state(_found(session, tmp_path, files)) == state


def test_samples_have_no_state(session: Session, tmp_path: Path) -> None:
    found = _found(session, tmp_path, {"sample/sw.jsonl": "{}"}, mode="sample")
    assert _table(tmp_path, {"old/x": ["{}"]}).state(found) is None


def test_a_line_in_another_format_is_named(tmp_path: Path) -> None:
    (tmp_path / CHECKSUM_FILE).write_text(f"{_sha('a')}  a.tsv\nMD5 (b.tsv) = 0\n", encoding="utf-8")
    with pytest.raises(SpecError) as caught:
        Checksums.read([tmp_path])
    assert [problem.line for problem in caught.value.problems] == [2]


def _shipped(session: Session) -> Checksums:
    return Checksums.read({str(entry.folder): entry.folder for entry in session.catalog.entries}.values())


def test_the_shipped_digests_are_those_of_the_published_files(session: Session, data_root: Path) -> None:
    table, read = _shipped(session), 0
    for path, digests in table.digests.items():
        if (data_root / path).is_file():
            read += 1
            assert hashlib.sha256((data_root / path).read_bytes()).hexdigest() in digests, path
    assert read >= 400


def test_each_shipped_digest_is_of_one_file_that_a_spec_reads(session: Session) -> None:
    table, catalog = _shipped(session), session.catalog
    assert sum(map(len, table.digests.values())) == len(table.paths)
    tasks = [catalog.task(name).spec for name in catalog.names("task")]
    specs = [*tasks, *(catalog.training(name)[0] for name in catalog.names("training"))]
    sources = [spec.source(code, split) for spec in specs for code in spec.languages for split in SPLITS]
    sources += [spec.pool_source for spec in tasks]
    sources += [own for spec in tasks for given in spec.variants.values() for own in given.splits.values()]
    patterns = {
        path
        for source in sources
        if source is not None
        for item in source.alternatives
        for path in item.paths
    }
    forms = [re.compile(re.sub(r"\\\{\w+\\\}|\\\*", "[^/]+", re.escape(pattern))) for pattern in patterns]
    assert [path for path in table.digests if not any(form.fullmatch(path) for form in forms)] == []
