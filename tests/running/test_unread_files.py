"""A plan names the files of a data folder that no task reads."""

from __future__ import annotations

from fnmatch import fnmatchcase
from pathlib import Path

import pytest
from hypothesis import given, strategies as st

from harness.data.resolve import DataOptions
from harness.planning.unread_files import _unmatched, unread_file_notes
from harness.running.session import Session
from harness.specs.selection import select


def _notes(session: Session, root: Path, tasks: str, *files: str, mode: str = "local") -> list[str]:
    for name in files:
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).touch()
    catalog = session.catalog
    options = DataOptions(mode=mode, folders=(root,))  # type: ignore[arg-type]
    return unread_file_notes(select(catalog, [tasks]), catalog, options)


@pytest.mark.parametrize(
    ("tasks", "read", "unread"),
    [
        ("vyakarana_pos:ta", ["vyakarana/ta/cg/test.conllu"], ["vyakarana/ta/cg/ta_ttb-ud-train.conllu"]),
        ("vyakarana_pos:hi", ["vyakarana/hindi/CG-HDTB/dev.conllu"], ["mine/test.conllu"]),
        (
            "xcopa:et",
            ["xcopa/data/et/test.et.jsonl", "xcopa/data/it/val.it.jsonl"],
            ["xcopa/data/et/et.jsonl"],
        ),
        ("tatoeba:de", ["tatoeba/tatoeba.fra-eng.eng", "tatoeba/tatoeba.cmn-eng.cmn"], ["tatoeba/mine.eng"]),
        ("xcopa:et", ["notes.md", "xcopa/README.txt"], ["test.et.jsonl"]),
    ],
)
def test_files_without_a_source_are_named(
    tasks: str, read: list[str], unread: list[str], session: Session, tmp_path: Path
) -> None:
    assert not _notes(session, tmp_path, tasks, *read)
    (note,) = _notes(session, tmp_path, tasks, *unread)
    assert all(Path(name).name in note and str(tmp_path / Path(name).parent) in note for name in unread)
    assert not any(Path(name).name in note.split("; ")[0] for name in read)
    assert not _notes(session, tmp_path, tasks, mode="sample")


def test_other_folders_matter_only_where_a_test_set_is_missing(session: Session, tmp_path: Path) -> None:
    complete = ["xcopa/data/et/test.et.jsonl", "mine/et.jsonl"]
    assert not _notes(session, tmp_path, "xcopa:et", *complete)
    (tmp_path / complete[0]).unlink()
    assert len(_notes(session, tmp_path, "xcopa:et")) == 1


def test_many_files_are_counted(session: Session, tmp_path: Path) -> None:
    (note,) = _notes(session, tmp_path, "xcopa:et", *(f"xcopa/data/et/{number}.jsonl" for number in range(9)))
    assert "and 4 more" in note
    assert "test.et.jsonl" in note


PARTS = st.lists(st.sampled_from(["a", "b", "ab", "*", "a*", "*b", "?"]), min_size=1, max_size=3)


@given(st.lists(PARTS), st.lists(st.sampled_from(["a", "b"]), max_size=2), st.lists(st.sampled_from("abc")))
def test_a_file_is_read_where_a_pattern_matches_every_part_of_its_path(
    patterns: list[list[str]], folder: list[str], files: list[str]
) -> None:
    known: dict[tuple[str, ...], set[str]] = {}
    for *parts, name in patterns:
        known.setdefault(tuple(parts), set()).add(name)
    unread = [
        file
        for file in files
        if not any(
            len(pattern) == len(folder) + 1 and all(map(fnmatchcase, [*folder, file], pattern))
            for pattern in patterns
        )
    ]
    assert _unmatched(files, "/".join(folder) or ".", known) == unread
